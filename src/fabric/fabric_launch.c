#include "fabric_launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_lft.h"
#include "fabric_text.h"

struct writer {
	FILE *to;
	enum fabric_launch kind;
	const struct fabric_tree *t;
	const uint32_t *hosts;
	uint32_t count;
	uint32_t lmc;
	char *why;
	size_t why_size;
	const char *prefix; /* of every host's name */
};

/* ---- names ---- */

static const char *const kinds[] = {
	[FABRIC_LAUNCH_NAMES] = "names",     [FABRIC_LAUNCH_RANKFILE] = "openmpi-rankfile",
	[FABRIC_LAUNCH_OPENMPI] = "openmpi", [FABRIC_LAUNCH_MPICH] = "mpich",
	[FABRIC_LAUNCH_SLURM] = "slurm",     [FABRIC_LAUNCH_TOPOLOGY] = "slurm-topology",
	[FABRIC_LAUNCH_OPENSM] = "opensm",
};

int fabric_launch_parse(enum fabric_launch *kind, const char *text, char *why, size_t why_size)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(text, kinds[i])) {
			*kind = (enum fabric_launch)i;
			return 0;
		}
	return fabric_refuse(why, why_size,
			     "%s is no format for an order; known are names, openmpi-rankfile, "
			     "openmpi, mpich, slurm, slurm-topology and opensm",
			     fabric_quote(text).text);
}

/* Letters, digits, '.', '-' and '_' are a name to every launcher. */
static bool is_plain(const char *name)
{
	if (!*name || *name == '-')
		return false;
	for (; *name; name++) {
		char c = *name;

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		      c == '.' || c == '-' || c == '_'))
			return false;
	}
	return true;
}

/* What is found again in a list of names. */
static bool is_word(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++)
		if ((*name >= 0 && *name <= ' ') || strchr("#,\x7f", *name))
			return false;
	return true;
}

/* Ranks run on machines, whichever of their adapters and ports it is. */
static void host_name(const struct writer *w, uint32_t host, char name[FABRIC_TREE_NAME_MAX])
{
	size_t before = w->prefix ? strlen(w->prefix) : 0;
	char own[FABRIC_TREE_NAME_MAX];

	fabric_tree_machine_name(w->t, host, own);
	snprintf(name, FABRIC_TREE_NAME_MAX, "%.*s%s", (int)before, before ? w->prefix : "", own);
}

/* The one that it has in the network, else the one that our tables would give it. */
static uint32_t lid_of(const struct writer *w, uint32_t host)
{
	uint32_t lmc, lid = fabric_tree_lid(w->t, host, &lmc);

	return lid ? lid : fabric_lid(&w->t->pgft, w->lmc, host);
}

static int check_host(const struct writer *w, uint32_t host)
{
	char name[FABRIC_TREE_NAME_MAX];

	if (w->kind == FABRIC_LAUNCH_NAMES) {
		fabric_tree_name(w->t, host, name);
		if (is_word(name))
			return 0;
		return fabric_refuse(w->why, w->why_size,
				     "host %u is called %s, which would not be read again from a "
				     "list; expected no blanks, ',' and '#'",
				     host, fabric_quote(name).text);
	}
	host_name(w, host, name);
	/* OpenSM takes any name: it is the rest of the line. */
	if (w->kind != FABRIC_LAUNCH_OPENSM && !is_plain(name))
		return fabric_refuse(
			w->why, w->why_size,
			"host %u is called %s, which no launcher would read; expected letters, "
			"digits, '.', '-' and '_'",
			host, fabric_quote(name).text);
	if (w->kind == FABRIC_LAUNCH_OPENSM && lid_of(w, host) > FABRIC_LID_MAX)
		return fabric_refuse(w->why, w->why_size,
				     "host %s would have LID %u; the last is %u", name,
				     lid_of(w, host), FABRIC_LID_MAX);
	return 0;
}

static int ascending(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Two ranks of a machine, one for each of its adapters or ports, must not be bound to the same
 * core. */
static uint32_t slot_of(const struct writer *w, uint32_t host)
{
	char name[FABRIC_TREE_NAME_MAX];
	const uint32_t *hosts, *own;
	uint32_t n;

	host_name(w, host, name);
	n = fabric_tree_machine(w->t, name, &hosts);
	own = n ? bsearch(&host, hosts, n, sizeof(*hosts), ascending) : NULL;
	return own ? (uint32_t)(own - hosts) : 0;
}

static bool same_machine(const struct writer *w, uint32_t a, uint32_t b)
{
	char x[FABRIC_TREE_NAME_MAX], y[FABRIC_TREE_NAME_MAX];

	host_name(w, a, x);
	host_name(w, b, y);
	return !strcmp(x, y);
}

/* ---- rank by rank ---- */

static void write_rank(const struct writer *w, uint32_t rank, const char *name)
{
	char own[FABRIC_TREE_NAME_MAX];

	switch (w->kind) {
	case FABRIC_LAUNCH_RANKFILE:
		fprintf(w->to, "rank %u=%s slot=%u\n", rank, name, slot_of(w, w->hosts[rank]));
		break;
	case FABRIC_LAUNCH_MPICH:
		fprintf(w->to, "%s:1\n", name);
		break;
	case FABRIC_LAUNCH_NAMES:
		fabric_tree_name(w->t, w->hosts[rank], own);
		fprintf(w->to, "%s\n", own);
		break;
	default:
		fprintf(w->to, "%s\n", name);
	}
}

static void write_ranks(const struct writer *w)
{
	char name[FABRIC_TREE_NAME_MAX];

	for (uint32_t r = 0; r < w->count; r++) {
		host_name(w, w->hosts[r], name);
		write_rank(w, r, name);
	}
}

/* ---- Open MPI's hostfile ---- */

/* The first rank behind r that is on another machine. */
static uint32_t next_machine(const struct writer *w, uint32_t r)
{
	uint32_t next = r + 1;

	while (next < w->count && same_machine(w, w->hosts[r], w->hosts[next]))
		next++;
	return next;
}

/* To Open MPI each line is a node of its own only if it names another one: all ranks of a machine
 * have to be together. seen: by host, the first of a machine stands for all. */
static int check_together(const struct writer *w, uint8_t *seen)
{
	char name[FABRIC_TREE_NAME_MAX];

	for (uint32_t r = 0; r < w->count; r = next_machine(w, r)) {
		const uint32_t *hosts;

		host_name(w, w->hosts[r], name);
		if (fabric_tree_machine(w->t, name, &hosts) > 1 && seen[hosts[0]]++)
			return fabric_refuse(
				w->why, w->why_size,
				"ranks of %s are not together, which a hostfile of Open MPI can "
				"not say: rank %u is again there; expected --as openmpi-rankfile",
				fabric_quote(name).text, r);
	}
	return 0;
}

static int write_hostfile(const struct writer *w)
{
	uint8_t *seen = calloc(fabric_hosts(&w->t->pgft), 1);
	char name[FABRIC_TREE_NAME_MAX];
	int ret;

	if (!seen) {
		fabric_refuse(w->why, w->why_size, "no memory for %u hosts", w->count);
		return -ENOMEM;
	}
	ret = check_together(w, seen);
	free(seen);
	for (uint32_t r = 0, next; !ret && r < w->count; r = next) {
		next = next_machine(w, r);
		host_name(w, w->hosts[r], name);
		fprintf(w->to, "%s slots=%u\n", name, next - r);
	}
	return ret;
}

/* ---- OpenSM ---- */

static void write_ca(const struct writer *w, uint32_t host)
{
	char name[FABRIC_TREE_NAME_MAX];

	host_name(w, host, name);
	fprintf(w->to, "0x%04x\t%s\n", lid_of(w, host), name);
}

static bool ascends(const struct writer *w)
{
	for (uint32_t r = 1; r < w->count; r++)
		if (w->hosts[r] <= w->hosts[r - 1])
			return false;
	return true;
}

static void write_dummies(const struct writer *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		fputs("0xFFFF\tDUMMY\n", w->to);
}

static void write_ca_order(const struct writer *w)
{
	bool whole = ascends(w);
	uint32_t next = 0;

	for (uint32_t r = 0; r < w->count; r++) {
		if (whole)
			write_dummies(w, w->hosts[r] - next);
		write_ca(w, w->hosts[r]);
		next = w->hosts[r] + 1;
	}
	if (whole)
		write_dummies(w, fabric_hosts(&w->t->pgft) - next);
}

/* ---- Slurm's topology ---- */

/* The leaf of a host that it is most naturally known by: with several, the first that is there. A
 * name that Slurm would not read is replaced by the one that the tuple gives. */
static void leaf_name(const struct writer *w, uint32_t subtree, char name[FABRIC_TREE_NAME_MAX])
{
	const struct fabric_pgft *t = &w->t->pgft;
	struct fabric_node n = {1, subtree * t->W[1]};

	for (uint32_t b = 0; b < t->W[1]; b++) {
		struct fabric_node other = {1, subtree * t->W[1] + b};

		if (fabric_tree_has_node(w->t, fabric_number(t, other))) {
			n = other;
			break;
		}
	}
	fabric_tree_name(w->t, fabric_number(t, n), name);
	if (!is_plain(name))
		fabric_name(n, name);
}

static void subtree_name(const struct writer *w, uint32_t l, uint32_t subtree,
			 char name[FABRIC_TREE_NAME_MAX])
{
	if (l == 1)
		leaf_name(w, subtree, name);
	else
		snprintf(name, FABRIC_TREE_NAME_MAX, "t%u.%u", l, subtree);
}

/* The line of one sub-tree, whose hosts begin at sorted[from]. Returns where the next one's do. */
static uint32_t write_subtree(const struct writer *w, const uint32_t *sorted, uint32_t from,
			      uint32_t l)
{
	const struct fabric_pgft *t = &w->t->pgft;
	uint32_t subtree = sorted[from] / t->M[l], i = from, child = FABRIC_NONE;
	char name[FABRIC_TREE_NAME_MAX];

	subtree_name(w, l, subtree, name);
	fprintf(w->to, "SwitchName=%s %s=", name, l == 1 ? "Nodes" : "Switches");
	for (; i < w->count && sorted[i] / t->M[l] == subtree; i++) {
		if (sorted[i] / t->M[l - 1] == child)
			continue;
		child = sorted[i] / t->M[l - 1];
		if (l == 1)
			host_name(w, child, name);
		else
			subtree_name(w, l - 1, child, name);
		fprintf(w->to, "%s%s", i == from ? "" : ",", name);
	}
	fputc('\n', w->to);
	return i;
}

/* To Slurm a machine is at one leaf: that of the first of its hosts that take part. seen: by host,
 * the first of a machine stands for all. */
static uint32_t keep_machines(const struct writer *w, uint32_t *sorted, uint8_t *seen)
{
	char name[FABRIC_TREE_NAME_MAX];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		const uint32_t *hosts;

		host_name(w, sorted[i], name);
		if (fabric_tree_machine(w->t, name, &hosts) < 2 || !seen[hosts[0]]++)
			sorted[kept++] = sorted[i];
		else
			seen[hosts[0]] = 1;
	}
	return kept;
}

static int write_topology(struct writer *w)
{
	uint32_t *sorted = malloc((w->count ? w->count : 1) * sizeof(*sorted));
	uint8_t *seen = calloc(fabric_hosts(&w->t->pgft), 1);

	if (!sorted || !seen) {
		free(sorted);
		free(seen);
		fabric_refuse(w->why, w->why_size, "no memory to sort %u hosts", w->count);
		return -ENOMEM;
	}
	memcpy(sorted, w->hosts, w->count * sizeof(*sorted));
	qsort(sorted, w->count, sizeof(*sorted), ascending);
	w->count = keep_machines(w, sorted, seen);
	for (uint32_t l = 1; l <= w->t->pgft.h; l++)
		for (uint32_t i = 0; i < w->count;)
			i = write_subtree(w, sorted, i, l);
	free(sorted);
	free(seen);
	return 0;
}

int fabric_launch_write(FILE *to, enum fabric_launch kind, const struct fabric_tree *t,
			const uint32_t *hosts, uint32_t count, uint32_t lmc, char *why,
			size_t why_size)
{
	struct writer w = {to, kind, t, hosts, count, lmc, why, why_size, NULL};
	int ret = 0;

	for (uint32_t r = 0; !ret && r < count; r++)
		ret = check_host(&w, hosts[r]);
	if (ret)
		return ret;
	if (kind == FABRIC_LAUNCH_OPENSM)
		write_ca_order(&w);
	else if (kind == FABRIC_LAUNCH_TOPOLOGY)
		ret = write_topology(&w);
	else if (kind == FABRIC_LAUNCH_OPENMPI)
		ret = write_hostfile(&w);
	else
		write_ranks(&w);
	return ret ? ret : fabric_flush(to);
}

int fabric_launch_topology(FILE *to, const struct fabric_pgft *pgft, const char *prefix, char *why,
			   size_t why_size)
{
	uint32_t count = fabric_hosts(pgft), *hosts = malloc(count * sizeof(*hosts));
	struct fabric_tree t;
	struct writer w = {to, FABRIC_LAUNCH_TOPOLOGY, &t, hosts, count, 0, why, why_size, prefix};
	int ret;

	if (!hosts) {
		fabric_refuse(why, why_size, "no memory for a list of %u hosts", count);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		hosts[i] = i;
	fabric_tree_init(&t, pgft);
	ret = write_topology(&w);
	fabric_tree_free(&t);
	free(hosts);
	return ret ? ret : fabric_flush(to);
}
