/* Routes for people. A routing table of a fat tree is regular, so it is written as ranges:
 * a node, a port, and all destinations that leave there. */
#include "cli_lab_show.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { DEFAULT, HOST, SWITCH, OTHER };

struct entry {
	uint32_t node;
	char *ports; /* as text; allocated */
	enum kind kind;
	uint32_t address; /* which one of the host */
	uint32_t number;  /* of the host or switch, or the address itself */
	uint32_t prefix;
};

struct table {
	const struct lab *lab;
	struct entry *entry;
	size_t count, size;
};

/* "u0 u3-u11 d1-d9/4": single numbers, ranges, and ranges with a step. */
static void print_ranges(FILE *to, const char *prefix, const uint32_t *v, size_t n,
			 const char *suffix)
{
	for (size_t i = 0, last; i < n; i = last + 1) {
		uint32_t step = i + 1 < n ? v[i + 1] - v[i] : 0;

		for (last = i; last + 1 < n && v[last + 1] - v[last] == step;)
			last++;
		fprintf(to, "%s%s%u", i ? " " : "", prefix, v[i]);
		if (last - i < 2) {
			last = i; /* two numbers are no range */
		} else {
			fprintf(to, "-%s%u", prefix, v[last]);
			if (step > 1)
				fprintf(to, "/%u", step);
		}
		fputs(suffix, to);
	}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The ports of a route: letters once, numbers as ranges. */
static char *ports_text(const struct lab_route *r)
{
	size_t letters = r->count ? strcspn(r->port[0], "0123456789") : 0, size;
	uint32_t *v = calloc(r->count + 1, sizeof(*v));
	char *text = NULL, prefix[LAB_PORT_MAX] = "";
	FILE *to = open_memstream(&text, &size);

	if (!v || !to) {
		free(v);
		if (to)
			fclose(to);
		free(text);
		return NULL;
	}
	if (r->count)
		memcpy(prefix, r->port[0], letters);
	for (uint32_t i = 0; i < r->count; i++)
		v[i] = (uint32_t)strtoul(r->port[i] + letters, NULL, 10);
	qsort(v, r->count, sizeof(*v), by_number);
	print_ranges(to, prefix, v, r->count, "");
	free(v);
	fclose(to);
	return text;
}

static void set_destination(struct entry *en, const struct lab_spec *s, const struct lab_route *r)
{
	struct fabric_node n;

	en->prefix = r->prefix;
	en->number = ntohl(r->dst.s_addr);
	if (r->prefix == 0) {
		en->kind = DEFAULT;
	} else if (r->prefix != 32 || lab_find_address(s, r->dst, &n, &en->address)) {
		en->kind = OTHER;
	} else {
		en->kind = n.level ? SWITCH : HOST;
		en->number = fabric_number(&s->tree, n);
	}
}

static int add(const struct lab_route *r, void *arg)
{
	struct table *t = arg;
	struct entry *en;

	if (t->count == t->size) {
		size_t size = t->size ? 2 * t->size : 1024;

		en = realloc(t->entry, size * sizeof(*en));
		if (!en)
			return -ENOMEM;
		t->entry = en;
		t->size = size;
	}
	en = &t->entry[t->count];
	memset(en, 0, sizeof(*en));
	en->node = fabric_number(&t->lab->spec.tree, r->node);
	set_destination(en, &t->lab->spec, r);
	en->ports = ports_text(r);
	if (!en->ports)
		return -ENOMEM;
	t->count++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int d;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	d = strverscmp(x->ports, y->ports);
	if (d)
		return d;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return by_number(&x->number, &y->number);
}

/* Entries that one run of ranges can hold. */
static bool alike(const struct entry *x, const struct entry *y)
{
	return x->node == y->node && !strcmp(x->ports, y->ports) && x->kind == y->kind &&
	       x->address == y->address;
}

static void print_hosts(const struct entry *en, size_t n)
{
	uint32_t *v = calloc(n, sizeof(*v));
	char suffix[16] = "";

	for (size_t i = 0; v && i < n; i++)
		v[i] = en[i].number;
	if (en->address)
		snprintf(suffix, sizeof(suffix), "+%u", en->address);
	if (v)
		print_ranges(stdout, "h", v, n, suffix);
	free(v);
}

static void print_one(const struct table *t, const struct entry *en)
{
	struct in_addr addr = {.s_addr = htonl(en->number)};
	char name[FABRIC_NAME_MAX];

	if (en->kind == DEFAULT) {
		fputs("default", stdout);
	} else if (en->kind == SWITCH) {
		fabric_name(fabric_node(&t->lab->spec.tree, en->number), name);
		fputs(name, stdout);
	} else {
		inet_ntop(AF_INET, &addr, name, sizeof(name));
		printf("%s/%u", name, en->prefix);
	}
}

/* The line of entry i; returns the first that is not on it. */
static size_t print_line(const struct table *t, size_t i)
{
	const struct entry *first = &t->entry[i], *en;
	char name[FABRIC_NAME_MAX];

	fabric_name(fabric_node(&t->lab->spec.tree, first->node), name);
	printf("  %-6s %-6s", name, first->ports);
	while (i < t->count) {
		size_t n = 1;

		en = &t->entry[i];
		if (en->node != first->node || strcmp(en->ports, first->ports) != 0)
			break;
		while (en->kind == HOST && i + n < t->count && alike(en, en + n))
			n++;
		putchar(' ');
		if (en->kind == HOST)
			print_hosts(en, n);
		else
			print_one(t, en);
		i += n;
	}
	putchar('\n');
	return i;
}

int cli_lab_print_routes(const struct lab *lab, struct lab_error *e)
{
	struct table t = {.lab = lab};
	int ret = lab_routes(lab, add, &t, e);

	if (ret == -ENOMEM)
		lab_fail(e, ENOMEM, "out of memory");
	if (!ret) {
		qsort(t.entry, t.count, sizeof(*t.entry), compare);
		printf("\nRoutes (h1-h9/4: every fourth%s)\n",
		       lab->spec.routing.lmc ? "; h1+2: its address number 2" : "");
		for (size_t i = 0; i < t.count;)
			i = print_line(&t, i);
	}
	for (size_t i = 0; i < t.count; i++)
		free(t.entry[i].ports);
	free(t.entry);
	return ret;
}
