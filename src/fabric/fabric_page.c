/* The page: a template (fabric_page.html, in the library as text) and data. */
#include "fabric_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_hsd.h"
#include "fabric_sim.h"
#include "fabric_text.h"

extern const char fabric_page_template[];

static const char mark[] = "@DATA@";

/* A JSON string that can not end the script it is in. */
static void put_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < ' ' || c == '<' || c == '>' || c == '&' || c == 0x7f)
			fprintf(to, "\\u%04x", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static void put_nodes(const struct fabric_tree *t, FILE *to)
{
	char name[FABRIC_TREE_NAME_MAX];

	fputs("\"nodes\":[", to);
	for (uint32_t i = 0; i < fabric_nodes(&t->pgft); i++) {
		fabric_tree_name(t, i, name);
		fputs(i ? ",[" : "[", to);
		put_string(to, name);
		fprintf(to, ",%u]", fabric_node(&t->pgft, i).level);
	}
	fputs("],\n\"cables\":[", to);
	for (uint32_t i = 0; i < fabric_cables(&t->pgft); i++) {
		struct fabric_cable c = fabric_cable(&t->pgft, i);

		fprintf(to, "%s[%u,%u,%u,%d]", i ? "," : "", fabric_number(&t->pgft, c.lower),
			fabric_number(&t->pgft, c.upper), c.q / t->pgft.w[c.upper.level],
			!fabric_tree_has_cable(t, i));
	}
	fputs("],\n", to);
}

static void put_flow(const struct fabric_page *p, struct fabric_flow f, bool first, FILE *to)
{
	uint32_t links[FABRIC_HOPS_MAX];
	int n = fabric_hsd_way(p->routes, p->hosts[f.from], p->hosts[f.to], 0, links);

	fprintf(to, "%s[%u,%u", first ? "" : ",", f.from, f.to);
	for (int i = 0; i < n; i++)
		fprintf(to, ",%u", links[i]);
	fputc(']', to);
}

static int put_stages(const struct fabric_page *p, FILE *to)
{
	struct fabric_flow *flows = calloc(p->cps->widest, sizeof(*flows));
	uint32_t fit = FABRIC_PAGE_FLOWS_MAX / p->cps->widest, some;

	if (!flows)
		return -ENOMEM;
	some = p->cps->stages < fit ? p->cps->stages : fit ? fit : 1;
	for (uint32_t k = 0; k < some; k++) {
		uint32_t s = fabric_sim_sample(k, some, p->cps->stages);
		uint32_t n = fabric_cps_flows(p->cps, s, flows);

		fprintf(to, "%s{\"name\":\"%u of %u\",\"flows\":[", k ? ",\n" : "", s + 1,
			p->cps->stages);
		for (uint32_t i = 0; i < n; i++)
			put_flow(p, flows[i], !i, to);
		fputs("]}", to);
	}
	fputs("]", to);
	if (some < p->cps->stages)
		fprintf(to, ",\n\"note\":\"%u of %u stages, evenly spread\"", some, p->cps->stages);
	free(flows);
	return 0;
}

static int put_data(const struct fabric_page *p, FILE *to)
{
	int err = 0;

	fputs("{\"title\":", to);
	put_string(to, p->title);
	fputs(",\n", to);
	put_nodes(p->routes->tree, to);
	fputs("\"order\":[", to);
	for (uint32_t r = 0; p->cps && r < p->cps->n; r++)
		fprintf(to, "%s%u", r ? "," : "", p->hosts[r]);
	fputs("],\n\"stages\":[", to);
	if (p->cps)
		err = put_stages(p, to);
	else
		fputs("]", to);
	fputs("}", to);
	return err;
}

int fabric_page(const struct fabric_page *p, FILE *to)
{
	const char *at = strstr(fabric_page_template, mark);
	int err;

	fwrite(fabric_page_template, 1, (size_t)(at - fabric_page_template), to);
	err = put_data(p, to);
	fputs(at + strlen(mark), to);
	return err ? err : fabric_flush(to);
}
