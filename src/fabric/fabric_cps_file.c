#include "fabric_cps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_text.h"

#define STAGE_MAX (1u << 30) /* flows */

struct reader {
	struct fabric_cps *c;
	FILE *from;
	char name[64];
	uint64_t line;
	uint64_t stage_line; /* 0: no stage yet */
	uint64_t count, room;
	uint32_t stages_room;
	char *why;
	size_t why_size;
};

#define REFUSE(r, fmt, ...)                                                                        \
	fabric_refuse((r)->why, (r)->why_size, "%s:%" PRIu64 ": " fmt, (r)->name, (r)->line,       \
		      ##__VA_ARGS__)

static int no_memory(const struct reader *r)
{
	fabric_refuse(r->why, r->why_size, "no memory for the flows of %s", r->name);
	return -ENOMEM;
}

/* ---- words ---- */

/* Two numbers of eight digits and a sign are all that a flow needs; of more, only the length is
 * kept. */
struct word {
	char text[64];
	size_t len;
};

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == ',';
}

static bool ends_line(int c)
{
	return c == '\n' || c == EOF;
}

/* The next word of the line, of length 0 at its end. *at is the character that is read next. */
static void next_word(struct reader *r, int *at, struct word *w)
{
	*w = (struct word){0};
	while (is_blank(*at))
		*at = getc(r->from);
	if (*at == '#')
		while (!ends_line(*at))
			*at = getc(r->from);
	while (!is_blank(*at) && !ends_line(*at) && *at != '#') {
		if (w->len < sizeof(w->text) - 1)
			w->text[w->len] = (char)*at;
		w->len++;
		*at = getc(r->from);
	}
}

static const char *take_rank(const char *at, uint64_t *rank)
{
	const char *begin = at;

	*rank = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		*rank = *rank > UINT32_MAX ? *rank : *rank * 10 + (uint64_t)(*at - '0');
	return at > begin ? at : NULL;
}

static int take_flow(const struct reader *r, const struct word *w, struct fabric_flow *flow)
{
	size_t kept = w->len < sizeof(w->text) ? w->len : sizeof(w->text) - 1;
	uint64_t from, to = 0;
	const char *at = take_rank(w->text, &from);

	at = at && *at == '>' ? take_rank(at + 1, &to) : NULL;
	if (!at || *at || kept < w->len || at != w->text + kept)
		return REFUSE(r, "%s is no flow; expected FROM>TO, such as 0>1",
			      fabric_quote_n(w->text, kept).text);
	if (from >= r->c->n || to >= r->c->n) {
		/* As it is written: it may be larger than any number here. */
		const char *rank = from >= r->c->n ? w->text : strchr(w->text, '>') + 1;

		return REFUSE(r, "%s: there is no rank %.*s; expected 0 to %u",
			      fabric_quote_n(w->text, kept).text, (int)strspn(rank, "0123456789"),
			      rank, r->c->n - 1);
	}
	if (from == to)
		return REFUSE(r, "rank %" PRIu64 " sends to itself; expected two different ranks",
			      from);
	*flow = (struct fabric_flow){(uint32_t)from, (uint32_t)to};
	return 0;
}

/* ---- stages ---- */

static int by_source(const void *a, const void *b)
{
	const struct fabric_flow *x = a, *y = b;

	if (x->from != y->from)
		return x->from > y->from ? 1 : -1;
	return (x->to > y->to) - (x->to < y->to);
}

static void end_stage(struct reader *r)
{
	struct fabric_cps *c = r->c;
	struct fabric_flow *flows;
	uint32_t n;

	if (r->stage_line == 0)
		return;
	flows = c->flows + c->first[c->stages];
	n = (uint32_t)(r->count - c->first[c->stages]);
	qsort(flows, n, sizeof(*flows), by_source);
	for (uint32_t i = 1; i < n; i++)
		c->several |= flows[i].from == flows[i - 1].from;
	c->widest = n > c->widest ? n : c->widest;
	c->first[++c->stages] = r->count;
}

static int begin_stage(struct reader *r)
{
	struct fabric_cps *c = r->c;
	uint64_t *first;

	end_stage(r);
	r->stage_line = r->line;
	if (c->stages + 1 < r->stages_room)
		return 0;
	if (r->stages_room >= UINT32_MAX / 4)
		return REFUSE(r, "more than %u stages; expected fewer", r->stages_room);
	r->stages_room *= 2;
	first = realloc(c->first, r->stages_room * sizeof(*first));
	if (!first)
		return no_memory(r);
	c->first = first;
	return 0;
}

static int add_flow(struct reader *r, struct fabric_flow flow)
{
	struct fabric_flow *flows;

	if (r->count - r->c->first[r->c->stages] == STAGE_MAX)
		return REFUSE(r, "more than %u flows in this stage, which begins in line %" PRIu64,
			      STAGE_MAX, r->stage_line);
	if (r->count == r->room) {
		r->room *= 2;
		flows = realloc(r->c->flows, r->room * sizeof(*flows));
		if (!flows)
			return no_memory(r);
		r->c->flows = flows;
	}
	r->c->flows[r->count++] = flow;
	return 0;
}

static int read_line(struct reader *r, int at)
{
	struct fabric_flow flow = {0};
	struct word w;
	int ret = 0;
	bool more;

	while (is_blank(at))
		at = getc(r->from);
	more = at == '+';
	if (more && r->stage_line == 0)
		return REFUSE(r, "there is no stage to continue; expected FROM>TO, such as 0>1");
	if (more)
		at = getc(r->from);
	next_word(r, &at, &w);
	if (w.len && !more)
		ret = begin_stage(r);
	while (!ret && w.len) {
		ret = take_flow(r, &w, &flow);
		if (!ret)
			ret = add_flow(r, flow);
		next_word(r, &at, &w);
	}
	return ret;
}

static int read_stages(struct reader *r)
{
	int at, ret = 0;

	errno = 0;
	for (r->line = 1; !ret && (at = getc(r->from)) != EOF; r->line++)
		ret = read_line(r, at);
	if (ret)
		return ret;
	if (ferror(r->from)) {
		ret = errno ? -errno : -EIO;
		fabric_refuse(r->why, r->why_size, "can not read %s: %s", r->name, strerror(-ret));
		return ret;
	}
	end_stage(r);
	if (r->count == 0)
		return fabric_refuse(r->why, r->why_size,
				     "%s has no flow; expected one stage per line, FROM>TO ...",
				     r->name);
	return 0;
}

int fabric_cps_read(struct fabric_cps *c, FILE *from, const char *name, uint32_t n, char *why,
		    size_t why_size)
{
	struct fabric_quote quote = fabric_quote(name);
	struct reader r = {.c = c, .from = from, .room = 64, .stages_room = 16};
	int ret;

	*c = (struct fabric_cps){.n = n};
	r.why = why;
	r.why_size = why_size;
	/* Where lines are named, names are not in quotes. */
	snprintf(r.name, sizeof(r.name), "%.*s", (int)strlen(quote.text) - 2, quote.text + 1);
	c->flows = malloc(r.room * sizeof(*c->flows));
	c->first = malloc(r.stages_room * sizeof(*c->first));
	if (!c->flows || !c->first) {
		ret = no_memory(&r);
	} else {
		c->first[0] = 0;
		ret = read_stages(&r);
	}
	if (ret)
		fabric_cps_free(c);
	return ret;
}
