/* Every place is a closed form of the tuple, as everything else of a tree, so the picture is
 * written in one go. Lengths are in pixels, written as integers in tenths of one (the viewBox
 * is ten times the size): no decimal point, whatever the locale. */
#include "fabric_draw.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "fabric_svg.h"

#define INK       "#1f2a37" /* text */
#define INK_SOFT  "#64748b" /* what is less important */
#define PAPER     "#fbfcfd" /* of its own: a page may be dark */
#define CABLE     "#9aa8b7" /* nothing known of it */
#define CABLE_CUT "#475569" /* broken */

#define MARGIN      40.0
#define LABELS_LEFT 62.0 /* the names of the rows */
#define TOP         96.0 /* title */
#define BOTTOM      46.0 /* host names */
#define LEGEND      46.0
#define BOX_HEIGHT  24.0

struct layout {
	const struct fabric_draw *d;
	const struct fabric_pgft *t;
	double width, height;
	double left, unit; /* where hosts begin, and the distance of two of one leaf */
	double y[FABRIC_LEVELS_MAX + 1];
	double pitch[FABRIC_LEVELS_MAX + 1]; /* distance of two nodes of a level, at least */
	double box_w[FABRIC_LEVELS_MAX + 1];
	double gap; /* room that a cable has where it is plugged in, at least */
};

static long tenths(double v)
{
	return lround(v * 10);
}

static double clamp(double v, double lo, double hi)
{
	return fmin(fmax(v, lo), hi);
}

/* ---- places ---- */

/* The left edge of host j's slot, in slots: after each whole sub-tree there is a gap, so
 * that leaves, and sub-trees of leaves, can be told apart. */
static double slot(const struct fabric_pgft *t, uint32_t j)
{
	uint64_t gaps = 0;

	for (uint32_t l = 1; l < t->h; l++)
		gaps += j / t->M[l];
	return j + 0.8 * (double)gaps;
}

static double node_x(const struct layout *o, struct fabric_node n)
{
	const struct fabric_pgft *t = o->t;
	uint32_t a = n.index / t->W[n.level], b = n.index % t->W[n.level];
	double from = slot(t, a * t->M[n.level]);
	double to = slot(t, (a + 1) * t->M[n.level] - 1) + 1;

	/* The alike switches of a sub-tree stand evenly above it. */
	return o->left + o->unit * (from + (to - from) * (b + 0.5) / t->W[n.level]);
}

/* Port i of n along a node's edge. */
static double plug_x(const struct layout *o, struct fabric_node n, uint32_t i, uint32_t ports)
{
	double room = o->box_w[n.level] * 0.88;

	return node_x(o, n) + room * ((i + 0.5) / ports - 0.5);
}

static void place_level(struct layout *o, uint32_t l)
{
	const struct fabric_pgft *t = o->t;
	double span = slot(t, t->M[l] - 1) + 1;
	uint32_t ports = fabric_up_ports(t, l);

	if (ports < fabric_down_ports(t, l))
		ports = fabric_down_ports(t, l);
	o->pitch[l] = o->unit * span / t->W[l];
	if (l == 0)
		o->box_w[l] = clamp(o->unit * 0.62, 1.5, 22);
	else
		o->box_w[l] = fmin(clamp(ports * 9.0, 48, 220), o->pitch[l] * 0.78);
	o->gap = fmin(o->gap, o->box_w[l] * 0.88 / fmax(fabric_up_ports(t, l), 1));
	if (l > 0)
		o->gap = fmin(o->gap, o->box_w[l] * 0.88 / fabric_down_ports(t, l));
}

static void place(struct layout *o)
{
	const struct fabric_pgft *t = o->t;
	double slots = slot(t, fabric_hosts(t) - 1) + 1, most = slots, row, y;

	for (uint32_t l = 1; l <= t->h; l++)
		most = fmax(most, t->nodes[l] * 1.6);
	o->width = clamp(LABELS_LEFT + 2 * MARGIN + most * 13, 1200, 2600);
	o->left = MARGIN + LABELS_LEFT;
	o->unit = (o->width - o->left - MARGIN) / slots;
	o->gap = 12;
	row = clamp(o->width * 0.17, 200, 330);
	y = TOP + BOX_HEIGHT;
	for (uint32_t l = t->h; l > 0; l--) {
		o->y[l] = y;
		y += l > 1 ? row : 120;
	}
	o->y[0] = y;
	o->height = y + BOTTOM + (o->d->cables ? LEGEND : 0);
	for (uint32_t l = 0; l <= t->h; l++)
		place_level(o, l);
}

static double half_height(const struct layout *o, uint32_t level)
{
	return (level ? fmin(BOX_HEIGHT, o->box_w[level] * 1.6) : o->box_w[0]) / 2;
}

/* ---- cables ---- */

static bool known(double v)
{
	return v >= 0; /* not so for NaN */
}

static double line_width(const struct layout *o, double load)
{
	double thin = clamp(o->gap * 0.16, 0.25, 1.1), thick = clamp(o->gap * 0.42, 0.9, 3.6);

	return known(load) ? thin + (thick - thin) * fmin(load, 1) : thin;
}

struct segment {
	double x1, y1, x2, y2;
};

static struct segment cable_segment(const struct layout *o, const struct fabric_cable *c)
{
	const struct fabric_pgft *t = o->t;
	uint32_t l = c->upper.level;
	/* Plugs stand in the order of what they lead to, so that no two cables of a node
	 * cross; parallel ones are neighbours. */
	uint32_t up = c->q % t->w[l] * t->p[l] + c->q / t->w[l];
	uint32_t down = c->r % t->m[l] * t->p[l] + c->r / t->m[l];

	return (struct segment){
		.x1 = plug_x(o, c->lower, up, fabric_up_ports(t, l - 1)),
		.y1 = o->y[l - 1] - half_height(o, l - 1),
		.x2 = plug_x(o, c->upper, down, fabric_down_ports(t, l)),
		.y2 = o->y[l] + half_height(o, l),
	};
}

/* Shifted to the right of the way up; to the left, if by is negative. */
static void put_path(struct fabric_svg *s, const struct segment *g, double by)
{
	double dx = g->x2 - g->x1, dy = g->y2 - g->y1, len = hypot(dx, dy);
	double sx = -dy / len * by, sy = dx / len * by;

	fabric_svg_put(s, "<path d=\"M%ld %ldL%ld %ld\"", tenths(g->x1 + sx), tenths(g->y1 + sy),
		       tenths(g->x2 + sx), tenths(g->y2 + sy));
}

static void put_direction(struct fabric_svg *s, const struct layout *o, const struct segment *g,
			  double load, double side)
{
	double w = line_width(o, load);

	put_path(s, g, side * (w / 2 + clamp(o->gap * 0.06, 0.1, 0.5)));
	if (known(load))
		fabric_svg_put(s, " stroke=\"#%06x\"", (unsigned)fabric_svg_colour(load));
	fabric_svg_put(s, " stroke-width=\"%ld\"/>", tenths(fmax(w, 0.1)));
}

static void put_cable_title(struct fabric_svg *s, const struct fabric_pgft *t,
			    const struct fabric_cable *c, const struct fabric_draw_cable *v)
{
	char name[FABRIC_CABLE_NAME_MAX];

	fabric_cable_name(t, c, name);
	fabric_svg_put(s, "<title>%s", name);
	if (v && v->note[0]) {
		fabric_svg_put(s, " ");
		fabric_svg_text(s, v->note, sizeof(v->note));
	} else if (v && v->broken) {
		fabric_svg_put(s, " broken");
	} else if (v && known(v->up) && known(v->down)) {
		/* In whole percents: integers, as everything else. */
		fabric_svg_put(s, " up %ld %%, down %ld %%", lround(fmin(v->up, 1e6) * 100),
			       lround(fmin(v->down, 1e6) * 100));
	}
	fabric_svg_put(s, "</title>");
}

static void put_cable(struct fabric_svg *s, const struct layout *o, uint32_t number)
{
	const struct fabric_draw_cable *v = o->d->cables ? &o->d->cables[number] : NULL;
	struct fabric_cable c = fabric_cable(o->t, number);
	struct segment g = cable_segment(o, &c);

	fabric_svg_put(s, "<g class=\"cable\">");
	put_cable_title(s, o->t, &c, v);
	/* Thin lines are hard to point at. */
	put_path(s, &g, 0);
	fabric_svg_put(s, " class=\"touch\"/>");
	if (v && v->broken) {
		put_path(s, &g, 0);
		fabric_svg_put(s, " class=\"cut\" stroke-width=\"%ld\"/>",
			       tenths(clamp(o->gap * 0.25, 0.8, 1.8)));
	} else if (!v) {
		put_path(s, &g, 0);
		fabric_svg_put(s, " stroke-width=\"%ld\"/>", tenths(1.3 * line_width(o, -1)));
	} else {
		put_direction(s, o, &g, v->up, 1);
		put_direction(s, o, &g, v->down, -1);
	}
	fabric_svg_put(s, "</g>\n");
}

/* Which layer a cable is drawn in: what is loaded lies above what is not. */
enum { LAYERS = 6 };

static unsigned layer(const struct fabric_draw_cable *v)
{
	double most;

	if (v->broken)
		return LAYERS - 1;
	most = fmax(known(v->up) ? v->up : -1, known(v->down) ? v->down : -1);
	return known(most) ? (unsigned)(fmin(most, 1) * (LAYERS - 2)) : 0;
}

static void put_cables(struct fabric_svg *s, const struct layout *o)
{
	unsigned layers = o->d->cables ? LAYERS : 1;

	fabric_svg_put(s, "<g fill=\"none\" stroke=\"" CABLE "\" stroke-linecap=\"round\">\n");
	for (unsigned k = 0; k < layers && !s->error; k++)
		for (uint32_t i = 0; i < fabric_cables(o->t) && !s->error; i++)
			if (layers == 1 || layer(&o->d->cables[i]) == k)
				put_cable(s, o, i);
	fabric_svg_put(s, "</g>\n");
}

/* ---- nodes ---- */

/* The width of a label is about this much of its font's size, per character. */
#define GLYPH 0.63

static double font_size(const struct layout *o, uint32_t l, size_t chars)
{
	double room = l ? o->box_w[l] * 0.9 : o->unit * 0.85;

	return clamp(room / ((double)chars * GLYPH), 0, l ? 12 : 11);
}

/* Names that would be too small to read are left out: all of a level of switches, but of
 * the hosts every n-th of a leaf remains. */
static uint32_t name_every(const struct layout *o, uint32_t l, size_t chars, double *size)
{
	uint32_t m = o->t->m[1], n;

	*size = font_size(o, l, chars);
	if (*size >= 6.5)
		return 1;
	*size = 8;
	if (l > 0)
		return 0;
	n = (uint32_t)ceil((double)chars * GLYPH * 8 / (o->unit * 0.85));
	if (n > m / 2) /* one per leaf, or per as many leaves as it takes */
		return m * (uint32_t)ceil((double)n / m);
	while (m % n)
		n++;
	return n;
}

static void put_node_title(struct fabric_svg *s, const struct fabric_pgft *t, struct fabric_node n,
			   const char *name)
{
	if (n.level == 0)
		fabric_svg_put(s, "<title>host %s</title>", name);
	else if (n.level == t->h)
		fabric_svg_put(s, "<title>switch %s: %u ports down</title>", name,
			       fabric_down_ports(t, n.level));
	else
		fabric_svg_put(s, "<title>switch %s: %u ports down, %u up</title>", name,
			       fabric_down_ports(t, n.level), fabric_up_ports(t, n.level));
}

static void put_node(struct fabric_svg *s, const struct layout *o, struct fabric_node n, bool named,
		     double font)
{
	double x = node_x(o, n), y = o->y[n.level], w = o->box_w[n.level];
	double h = 2 * half_height(o, n.level);
	char name[FABRIC_NAME_MAX];

	fabric_name(n, name);
	fabric_svg_put(s, "<g>");
	put_node_title(s, o->t, n, name);
	fabric_svg_put(s, "<rect x=\"%ld\" y=\"%ld\" width=\"%ld\" height=\"%ld\" rx=\"%ld\"/>",
		       tenths(x - w / 2), tenths(y - h / 2), tenths(w), tenths(h),
		       tenths(fmin(w, h) * (n.level ? 0.22 : 0.3)));
	if (named)
		fabric_svg_put(s, "<text x=\"%ld\" y=\"%ld\">%s</text>", tenths(x),
			       tenths(n.level ? y + font * 0.36 : y + h / 2 + font + 3), name);
	fabric_svg_put(s, "</g>\n");
}

static void put_level(struct fabric_svg *s, const struct layout *o, uint32_t l)
{
	struct fabric_node n = {l, o->t->nodes[l] - 1};
	char longest[FABRIC_NAME_MAX];
	double font;
	uint32_t every;

	fabric_name(n, longest);
	every = name_every(o, l, strlen(longest), &font);
	fabric_svg_put(s,
		       "<g class=\"%s\" font-size=\"%ld\" stroke-width=\"%ld\" "
		       "text-anchor=\"middle\">\n",
		       l ? "switch" : "host", tenths(font), tenths(clamp(o->gap * 0.2, 0.3, 1.2)));
	for (n.index = 0; n.index < o->t->nodes[l] && !s->error; n.index++)
		put_node(s, o, n, every && n.index % every == 0, font);
	fabric_svg_put(s, "</g>\n");
}

static void put_row_name(struct fabric_svg *s, const struct layout *o, uint32_t l)
{
	fabric_svg_put(s, "<text class=\"soft\" x=\"%ld\" y=\"%ld\" font-size=\"120\">",
		       tenths(MARGIN), tenths(o->y[l] + 4));
	if (l)
		fabric_svg_put(s, "level %u</text>\n", l);
	else
		fabric_svg_put(s, "hosts</text>\n");
}

/* ---- around ---- */

static void put_begin(struct fabric_svg *s, const struct layout *o)
{
	fabric_svg_put(s,
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"weft\" width=\"%ld\" "
		       "height=\"%ld\" "
		       "viewBox=\"0 0 %ld %ld\" font-family=\"sans-serif\" fill=\"" INK "\">\n",
		       lround(o->width), lround(o->height), tenths(o->width), tenths(o->height));
	fabric_svg_put(s,
		       "<style>.weft .touch{stroke:#000;stroke-opacity:0;stroke-width:%ld}"
		       ".weft .cut{stroke:" CABLE_CUT ";stroke-dasharray:70 60}"
		       ".weft .cable:hover .touch{stroke-opacity:.2}"
		       ".weft .switch rect{fill:#e8eef5;stroke:#55708d}"
		       ".weft .host rect{fill:#55708d;stroke:none}"
		       ".weft .host text,.weft .soft{fill:" INK_SOFT "}</style>\n",
		       tenths(clamp(o->gap * 0.8, 0.5, 6)));
	fabric_svg_put(s, "<rect width=\"%ld\" height=\"%ld\" rx=\"120\" fill=\"" PAPER "\"/>\n",
		       tenths(o->width), tenths(o->height));
}

static void put_heading(struct fabric_svg *s, const struct layout *o)
{
	const struct fabric_pgft *t = o->t;
	char tuple[FABRIC_TUPLE_MAX];
	uint32_t switches = fabric_nodes(t) - fabric_hosts(t);

	fabric_pgft_print(t, tuple);
	if (o->d->title) {
		fabric_svg_put(s, "<title>");
		fabric_svg_text(s, o->d->title, SIZE_MAX);
		fabric_svg_put(s,
			       "</title>\n<text x=\"%ld\" y=\"%ld\" font-size=\"200\" "
			       "font-weight=\"600\">",
			       tenths(MARGIN), tenths(44));
		fabric_svg_text(s, o->d->title, SIZE_MAX);
		fabric_svg_put(s, "</text>\n");
	}
	fabric_svg_put(s, "<text class=\"soft\" x=\"%ld\" y=\"%ld\" font-size=\"130\">",
		       tenths(MARGIN), tenths(o->d->title ? 66 : 44));
	fabric_svg_put(s, "PGFT(%s) \u00b7 %u host%s \u00b7 %u switch%s \u00b7 %u cable%s</text>\n",
		       tuple, fabric_hosts(t), fabric_hosts(t) == 1 ? "" : "s", switches,
		       switches == 1 ? "" : "es", fabric_cables(t),
		       fabric_cables(t) == 1 ? "" : "s");
}

static void put_gradient(struct fabric_svg *s)
{
	fabric_svg_put(s, "<defs><linearGradient id=\"weft-load\">");
	for (unsigned i = 0; i <= 20; i++)
		fabric_svg_put(s, "<stop offset=\"%u%%\" stop-color=\"#%06x\"/>", i * 5,
			       (unsigned)fabric_svg_colour(i / 20.0));
	fabric_svg_put(s, "</linearGradient></defs>\n");
}

/* One direction of the sample cable, with its arrow. */
static void put_sample(struct fabric_svg *s, double x, double y, const char *arrow, double load)
{
	fabric_svg_put(s,
		       "<path d=\"M%ld %ldV%ld\" stroke=\"#%06x\" stroke-width=\"28\"/>"
		       "<path d=\"M%ld %ld%s\" stroke=\"" INK_SOFT "\" stroke-width=\"12\"/>\n",
		       tenths(x), tenths(y + 10), tenths(y - 10), (unsigned)fabric_svg_colour(load),
		       tenths(x + (load > 0.5 ? 8 : -8)), tenths(y), arrow);
}

static void put_legend(struct fabric_svg *s, const struct layout *o)
{
	double y = o->height - 36, x = MARGIN + LABELS_LEFT, bar = 220;

	if (!o->d->cables)
		return;
	put_gradient(s);
	/* A wedge: the width of a line grows with its colour. */
	fabric_svg_put(s, "<path d=\"M%ld %ldv30l%ld 40v-110z\" fill=\"url(#weft-load)\"/>\n",
		       tenths(x), tenths(y - 1.5), tenths(bar));
	fabric_svg_put(s,
		       "<g class=\"soft\" font-size=\"110\"><text x=\"%ld\" y=\"%ld\" "
		       "text-anchor=\"end\">0</text><text x=\"%ld\" y=\"%ld\">100 %%",
		       tenths(x - 7), tenths(y + 4), tenths(x + bar + 7), tenths(y + 4));
	if (o->d->scale) {
		fabric_svg_put(s, " \u00b7 ");
		fabric_svg_text(s, o->d->scale, SIZE_MAX);
	}
	fabric_svg_put(s, "</text></g>\n");
	x = o->width - MARGIN - 300;
	fabric_svg_put(s, "<g fill=\"none\" stroke-linecap=\"round\">\n");
	put_sample(s, x, y, "m0 -70v140m-30 -40l30 40l30 -40", 0.1);
	put_sample(s, x + 4, y, "m0 70v-140m-30 40l30 -40l30 40", 0.9);
	fabric_svg_put(s, "<path class=\"cut\" stroke-width=\"16\" d=\"M%ld %ldh320\"/></g>\n",
		       tenths(x + 190), tenths(y));
	fabric_svg_put(s,
		       "<g class=\"soft\" font-size=\"110\"><text x=\"%ld\" y=\"%ld\">"
		       "a cable, both directions</text>"
		       "<text x=\"%ld\" y=\"%ld\">broken</text></g>\n",
		       tenths(x + 24), tenths(y + 4), tenths(x + 230), tenths(y + 4));
}

int fabric_draw_svg(const struct fabric_draw *d, FILE *to)
{
	struct fabric_svg s = {.to = to};
	struct layout o = {.d = d, .t = d->tree};

	place(&o);
	put_begin(&s, &o);
	put_heading(&s, &o);
	put_cables(&s, &o);
	for (uint32_t l = 0; l <= o.t->h; l++) {
		put_row_name(&s, &o, l);
		put_level(&s, &o, l);
	}
	put_legend(&s, &o);
	fabric_svg_put(&s, "</svg>\n");
	if (!s.error && fflush(to))
		s.error = -errno;
	return s.error;
}
