/* The report: one page, with its style and pictures in it. */
#include "repro.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Paper is white whatever the screen is. What is wide scrolls in a box of its own: a picture that a
 * phone made as narrow as itself could not be read. */
static const char style[] =
	":root{color-scheme:light;--bg:#fff;--fg:#1c1e21;--soft:#5c636a;--line:#d5d9dd;"
	"--card:#f7f8f9;--good:#146c2e;--half:#8a5a00;--none:#5c636a}\n"
	"@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--bg:#15181b;"
	"--fg:#e6e8ea;--soft:#a8b0b7;--line:#3a4046;--card:#1e2226;--good:#5fd07f;--half:#f0b84c;"
	"--none:#a8b0b7}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;padding:1rem;max-width:60rem;background:var(--bg);color:var(--fg);"
	"font:1rem/1.5 system-ui,sans-serif;overflow-wrap:break-word}\n"
	"h1{font-size:1.5rem;line-height:1.25}h2{margin-top:2.5rem;font-size:1.25rem;"
	"border-bottom:1px solid var(--line)}h3{margin:0;font-size:1.05rem}\n"
	"a{color:inherit}small,.soft{color:var(--soft)}small{font-size:.85rem}\n"
	"section{margin:1rem 0;padding:1rem;border:1px solid var(--line);border-radius:.5rem;"
	"background:var(--card);break-inside:avoid}\n"
	"section.long{break-inside:auto}section.long tr{break-inside:avoid}"
	"h2,h3{break-after:avoid}\n"
	".scroll{overflow-x:auto}\n"
	"svg{display:block;width:100%;height:auto;max-width:40rem;margin:.5rem auto}\n"
	"table{width:100%;border-collapse:collapse;font-size:.9rem}\n"
	"th,td{padding:.3rem .75rem .3rem 0;text-align:left;vertical-align:top;"
	"border-top:1px solid var(--line)}tbody th{white-space:nowrap}thead th{border-top:0}\n"
	".facts th{width:1%}\n"
	"pre{margin:.5rem 0;white-space:pre-wrap;font-size:.8rem;overflow-wrap:anywhere}"
	"summary{cursor:pointer}\n"
	".v{font-weight:600;white-space:nowrap}.v0{color:var(--good)}.v1{color:var(--half)}"
	".v2{color:var(--none)}\n"
	".n{font-variant-numeric:tabular-nums}\n"
	"@media screen and "
	"(max-width:36rem){svg{width:32rem}table{font-size:.85rem}th,td{padding-right:.4rem}.lines "
	"tr,.lines th,.lines td,"
	".claims tr,.claims td{display:block;border:0;padding:.1rem 0}"
	".claims thead{display:none}.lines tr,.claims tr{border-top:1px solid var(--line);"
	"padding:.4rem 0}"
	".claims td[data-l]::before{content:attr(data-l)\": \";color:var(--soft)}}\n"
	"@media print{body{max-width:none;padding:0;font-size:10pt}section{background:none}"
	".scroll{overflow:visible}svg{max-width:14cm}details{display:none}}\n";

static void put(FILE *to, const char *text)
{
	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", to);
			break;
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		default:
			fputc(*text, to);
		}
	}
}

/* Of several pictures in one page each has names of its own. */
static const char *named(const char *at)
{
	static const char *const before[] = {" id='", " id=\"", "href='#", "url(#"};

	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
		if (!strncmp(at, before[i], strlen(before[i])))
			return before[i];
	return NULL;
}

/* What gnuplot calls things is of no use to anybody who points at them. */
static const char *skip_title(const char *at)
{
	static const char *const from[] = {"<title>", "<desc>"}, *const to[] = {"</title>",
										"</desc>"};

	for (int i = 0; i < 2; i++)
		if (!strncmp(at, from[i], strlen(from[i]))) {
			const char *end = strstr(at, to[i]);

			return end ? end + strlen(to[i]) : at;
		}
	return at;
}

/* As part of the page: black becomes the colour of its text. */
static void put_svg(FILE *to, const char *svg, const char *name)
{
	const char *at = strstr(svg, "<svg");

	if (!at)
		return;
	fprintf(to, "<div class=scroll tabindex=0><svg role=img aria-label=\"%s\"", name);
	for (at += strlen("<svg"); *at;) {
		const char *id = named(at), *next = skip_title(at);

		if (id) {
			fprintf(to, "%s%s-", id, name);
			next = at + strlen(id);
		} else if (next == at && !strncmp(at, "black", 5)) {
			fputs("currentColor", to);
			next = at + 5;
		} else if (next == at) {
			fputc(*next++, to);
		}
		at = next;
	}
	fputs("</div>\n", to);
}

static void put_number(FILE *to, double v)
{
	double a = fabs(v);

	if (isnan(v))
		fputs("\342\200\223", to); /* en dash */
	else if (a != 0 && a < 0.01)
		fprintf(to, "%.2g", v);
	else
		fprintf(to, "%.*f", a < 10 ? 2 : a < 100 ? 1 : 0, v);
}

static void put_verdict(FILE *to, enum repro_verdict v)
{
	fprintf(to, "<span class=\"v v%d\">%s</span>", (int)v, repro_verdict_name(v));
}

static void put_claim(FILE *to, const struct repro_claim *c, const struct repro_outcome *o)
{
	fputs("<tr><td>", to);
	put(to, c->says);
	fputs("</td><td data-l=\"published\">", to);
	put(to, c->published);
	fputs("</td><td class=n data-l=\"here\">", to);
	put_number(to, o->value);
	if (!isnan(o->value) && c->unit) {
		fputc(' ', to);
		put(to, c->unit);
	}
	if (o->n > 1) {
		fputs(" <small>[", to);
		put_number(to, o->low);
		fputs(" to ", to);
		put_number(to, o->high);
		fprintf(to, "], %zu rounds</small>", o->n);
	}
	fputs("</td><td data-l=\"verdict\">", to);
	put_verdict(to, o->verdict);
	if (o->why[0]) {
		fputs("<br><small>", to);
		put(to, o->why);
		fputs("</small>", to);
	}
	fputs("</td></tr>\n", to);
}

static void put_how(FILE *to, const struct repro_figure *f, const struct repro_options *o)
{
	const struct repro_experiment *x = f->experiment;

	fprintf(to, "<details><summary>How</summary><pre>");
	if (x->setup) {
		char *setup = repro_command(x->setup, o->mode);

		put(to, setup);
		fputc('\n', to);
		free(setup);
	}
	for (const struct repro_step *s = x->steps; s->command; s++) {
		char *command = repro_command(s->command, o->mode);

		put(to, command);
		fputc('\n', to);
		free(command);
	}
	fprintf(to, "</pre></details>");
}

static void put_finding(FILE *to, const struct repro_options *o, const struct repro_finding *r)
{
	const struct repro_figure *f = r->figure;

	fprintf(to, "<section id=\"%s\"><h3>%s ", f->name, f->name);
	put_verdict(to, r->verdict);
	fputs("</h3>\n<p>", to);
	put(to, f->shows);
	fputs("</p>\n", to);
	if (r->why[0] && (r->verdict == REPRO_NOT_HERE || !r->n)) {
		fputs("<p class=soft>", to);
		put(to, r->why);
		fputs("</p>\n", to);
	}
	if (r->svg)
		put_svg(to, r->svg, f->name);
	if (r->n && r->rounds) {
		fputs("<div class=scroll tabindex=0><table class=claims><thead><tr><th>claim"
		      "<th>published<th>here<th>verdict</tr></thead><tbody>\n",
		      to);
		for (size_t i = 0; i < r->n; i++)
			put_claim(to, &f->claims[i], &r->claims[i]);
		fputs("</tbody></table></div>\n", to);
	}
	if (f->differs) {
		fputs("<p><small>What is different here: ", to);
		put(to, f->differs);
		fputs("</small></p>\n", to);
	}
	if (r->rounds < r->wanted && r->rounds)
		fprintf(to, "<p><small>%zu of %zu rounds.</small></p>\n", r->rounds, r->wanted);
	if (r->note[0] && !strstr(r->why, r->note)) {
		fputs("<p><small>On the way: ", to);
		put(to, r->note);
		fputs("</small></p>\n", to);
	}
	if (f->experiment)
		put_how(to, f, o);
	fputs("</section>\n", to);
}

/* "Not here" is two things: it was looked for, or it could not be. */
static void put_summary(FILE *to, const struct repro_finding *r, size_t n)
{
	fputs("<h2>Summary</h2>\n<div class=scroll tabindex=0><table><thead><tr><th>paper"
	      "<th>reproduced<th>same direction<th>not here<th>not measured</tr></thead><tbody>\n",
	      to);
	for (const struct repro_paper *p = repro_papers; p->name; p++) {
		size_t count[4] = {0};

		for (size_t i = 0; i < n; i++)
			if (repro_paper_of(r[i].figure) == p)
				count[r[i].rounds ? (size_t)r[i].verdict : 3]++;
		if (!count[0] && !count[1] && !count[2] && !count[3])
			continue;
		fprintf(to, "<tr><td><a href=\"#%s\">%s</a>", p->name, p->name);
		for (size_t i = 0; i < 4; i++)
			fprintf(to, "<td class=n>%zu", count[i]);
		fputs("</tr>\n", to);
	}
	fputs("</tbody></table></div>\n", to);
}

static void put_facts(FILE *to, const json_t *environment, const json_t *missing)
{
	const char *name;
	json_t *value;
	size_t i;

	fputs("<h2>Where</h2>\n<div class=scroll tabindex=0><table class=facts><tbody>\n", to);
	json_object_foreach((json_t *)environment, name, value)
	{
		fputs("<tr><th>", to);
		put(to, name);
		fputs("<td>", to);
		put(to, json_string_value(value));
		fputs("</tr>\n", to);
	}
	fputs("</tbody></table></div>\n", to);
	if (!json_array_size(missing))
		return;
	fputs("<p>Missing here:</p><ul>\n", to);
	json_array_foreach (missing, i, value) {
		fputs("<li>", to);
		put(to, json_string_value(value));
		fputs("</li>\n", to);
	}
	fputs("</ul>\n", to);
}

static void put_paper(FILE *to, const struct repro_paper *p)
{
	fprintf(to, "<h2 id=\"%s\">", p->name);
	put(to, p->title);
	fputs("</h2>\n<p class=soft>", to);
	put(to, p->author);
	fputs("</p>\n", to);
}

/* What can not be measured is a line in a list, not a box. */
static bool is_line(const struct repro_finding *r)
{
	return !r->figure->experiment;
}

static void put_lines(FILE *to, const struct repro_paper *p, const struct repro_finding *r,
		      size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (repro_paper_of(r[i].figure) != p || !is_line(&r[i]))
			continue;
		if (!any)
			fputs("<section class=long><h3>Not measured</h3><table "
			      "class=lines><tbody>\n",
			      to);
		any = true;
		fprintf(to, "<tr id=\"%s\"><th>%s<td>", r[i].figure->name, r[i].figure->name);
		put(to, r[i].figure->shows);
		fputs("<br><small>", to);
		put_verdict(to, r[i].verdict);
		fputs(": ", to);
		put(to, r[i].why);
		fputs("</small></tr>\n", to);
	}
	if (any)
		fputs("</tbody></table></section>\n", to);
}

int repro_page(FILE *to, const struct repro_options *o, const struct repro_finding *r, size_t n,
	       const json_t *environment, const json_t *missing)
{
	fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
	      "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
	      "<title>Weft: the papers, and this machine</title>\n<style>\n",
	      to);
	fputs(style, to);
	fprintf(to,
		"</style></head><body>\n<h1>The papers, and this machine</h1>\n"
		"<p>Every figure and table of five papers: what the text claims, what was measured "
		"or "
		"simulated here, and whether that is the same. A %s run of weft %s.</p>\n"
		"<p class=soft><b>Reproduced</b>: what is claimed is reached. <b>Same "
		"direction</b>: "
		"the effect is there, and of another size. <b>Not here</b>: it is not seen, or can "
		"not "
		"be measured on this machine. Values are medians over rounds, with the interval of "
		"the "
		"median (of fewer than six rounds: all of them); a difference that the interval "
		"does "
		"not show is none.</p>\n",
		o->mode == REPRO_QUICK ? "quick" : "full", o->version);
	put_summary(to, r, n);
	put_facts(to, environment, missing);
	for (const struct repro_paper *p = repro_papers; p->name; p++) {
		bool any = false;

		for (size_t i = 0; i < n; i++)
			any |= repro_paper_of(r[i].figure) == p;
		if (!any)
			continue;
		put_paper(to, p);
		for (size_t i = 0; i < n; i++)
			if (repro_paper_of(r[i].figure) == p && !is_line(&r[i]))
				put_finding(to, o, &r[i]);
		put_lines(to, p, r, n);
	}
	fputs("</body></html>\n", to);
	return ferror(to) ? -1 : 0;
}
