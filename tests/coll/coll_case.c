/* What cases of coll_check are made of. */
#include "coll_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- communicators ---- */

enum { WORLD, SAME, BACKWARDS, HALVES, SHUFFLED, MOST, ALONE, COMMS, FRESH = COMMS };
static const char *const comm_names[] = {
	"world",          "dup",         "backwards", "every other",
	"shuffled parts", "all but one", "self",      "fresh"};
static MPI_Comm comms[COMMS];

void cc_comms_make(void)
{
	struct util_rand r = mt_rand_own(7);

	comms[WORLD] = MPI_COMM_WORLD;
	comms[ALONE] = MPI_COMM_SELF;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[SAME]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -mt.rank, &comms[BACKWARDS]);
	MPI_Comm_split(MPI_COMM_WORLD, mt.rank % 2, mt.rank, &comms[HALVES]);
	MPI_Comm_split(MPI_COMM_WORLD, mt.rank < mt.size / 3, (int)util_rand_below(&r, 1000),
		       &comms[SHUFFLED]);
	MPI_Comm_split(MPI_COMM_WORLD, mt.rank == mt.size / 2 ? MPI_UNDEFINED : 0, mt.rank,
		       &comms[MOST]);
}

void cc_comms_free(void)
{
	for (int i = 0; i < COMMS; i++)
		if (i != WORLD && i != ALONE && comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
}

static int is_fresh(const struct cc_case *c)
{
	for (int i = 0; i < COMMS; i++)
		if (c->comm == comms[i])
			return 0;
	return 1;
}

/* ---- a case ---- */

static uint64_t name_key(const char *op)
{
	uint64_t h = 0;

	while (*op)
		h = h * 131 + (unsigned char)*op++;
	return h;
}

int cc_case_begin(struct cc_case *c, const char *op, int number)
{
	int which;

	*c = (struct cc_case){.op = op, .number = number};
	util_rand_seed(&c->shared, mt_key(-1, number, (int)mt.seed) + name_key(op));
	util_rand_seed(&c->own, mt_key(mt.rank, number, (int)mt.seed) + name_key(op));
	/* Half of them on the world, which has most ranks. */
	which = (int)util_rand_below(&c->shared, 2 * COMMS);
	which = which > FRESH ? WORLD : which;
	if (which == FRESH)
		MPI_Comm_dup(comms[BACKWARDS], &c->comm);
	else
		c->comm = comms[which];
	c->in_place = util_rand_below(&c->shared, 5) == 0;
	c->large = MPI_VERSION >= 4 && util_rand_below(&c->own, 3) == 0;
	if (c->comm == MPI_COMM_NULL)
		return 0;
	MPI_Comm_rank(c->comm, &c->rank);
	MPI_Comm_size(c->comm, &c->size);
	cc_say(c, "%s, rank %d of %d%s%s", comm_names[which], c->rank, c->size,
	       c->in_place ? ", in place" : "", c->large ? ", large" : "");
	return 1;
}

void cc_case_end(struct cc_case *c)
{
	if (c->comm != MPI_COMM_NULL && is_fresh(c))
		MPI_Comm_free(&c->comm);
}

void cc_say(struct cc_case *c, const char *fmt, ...)
{
	size_t at = strlen(c->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->text + at, sizeof(c->text) - at, fmt, ap);
	va_end(ap);
}

void cc_arrive(struct cc_case *c)
{
	uint64_t how = util_rand_below(&c->own, 8);

	if (how == 0)
		mt_nap((int)util_rand_below(&c->own, 3000));
	else if (how == 1)
		mt_relax();
}

size_t cc_bytes(struct cc_case *c, size_t most)
{
	/* Long ones take long, and so are rare. */
	static const size_t classes[] = {0, 64, 64, 64, 256, 256, 1024, 4096, 9000, 40000};
	uint64_t which = util_rand_below(&c->shared, 40);
	size_t top = which == 0   ? 4 << 20
		     : which <= 2 ? 300000
				  : classes[which % (sizeof(classes) / sizeof(*classes))];
	uint64_t draw = util_rand_next(&c->shared);

	top = top < most ? top : most;
	/* The ends of a range are where things change. */
	return draw % 3 == 0 ? top : draw / 3 % (top + 1);
}

uint64_t cc_pair(const struct cc_case *c, int a, int b)
{
	return mt_key(a, b, c->number) >> 8;
}

/* ---- layouts ---- */

enum { LAYOUTS = 5 };
static struct cc_layout layouts[LAYOUTS];

static void layout(int i, const char *name, int ints, MPI_Datatype type)
{
	MPI_Aint lb, extent;

	MPI_Type_commit(&type);
	MPI_Type_get_extent(type, &lb, &extent);
	layouts[i] = (struct cc_layout){type, name, ints, (int)extent};
}

void cc_layouts_make(void)
{
	static const int lengths[] = {1, 2}, places[] = {4, 0};
	MPI_Datatype t;

	MPI_Type_dup(MPI_INT, &t);
	layout(0, "int", 1, t);
	MPI_Type_contiguous(3, MPI_INT, &t);
	layout(1, "contiguous", 3, t);
	MPI_Type_vector(3, 2, 3, MPI_INT, &t);
	layout(2, "vector", 6, t);
	MPI_Type_create_resized(MPI_INT, 0, 12, &t);
	layout(3, "resized", 1, t);
	MPI_Type_indexed(2, lengths, places, MPI_INT, &t);
	layout(4, "indexed", 3, t);
}

void cc_layouts_free(void)
{
	for (int i = 0; i < LAYOUTS; i++)
		MPI_Type_free(&layouts[i].type);
}

const struct cc_layout *cc_layout(struct util_rand *r)
{
	/* What programs use most. */
	return &layouts[util_rand_below(r, 2) ? util_rand_below(r, LAYOUTS) : 0];
}

/* ---- results ---- */

void *cc_copy(const void *buf, size_t len)
{
	void *p = mt_alloc(len);

	memcpy(p, buf, len);
	return p;
}

static void repeat(const struct cc_case *c)
{
	static int said;

	if (!said++)
		fprintf(stderr,
			"rank %d: to repeat: COLL_CASE=%d, %d ranks, coll_check -s %llu -p %s\n",
			mt.rank, c->number, mt.size, (unsigned long long)mt.seed, c->op);
}

void cc_same(const struct cc_case *c, const void *got, const void *want, size_t len,
	     const char *what)
{
	const uint8_t *g = got, *w = want;
	size_t at = 0, wrong = 0;

	if (len == 0 || memcmp(got, want, len) == 0) {
		mt_good();
		return;
	}
	while (g[at] == w[at])
		at++;
	for (size_t i = at; i < len; i++)
		wrong += g[i] != w[i];
	mt_bad(c->op, c->number, "%s: %s: byte %zu of %zu is %02x, not %02x; %zu differ", c->text,
	       what, at, len, g[at], w[at], wrong);
	repeat(c);
}

void cc_near(const struct cc_case *c, const double *got, const double *want, int n)
{
	for (int i = 0; i < n; i++) {
		if (fabs(got[i] - want[i]) <= 1e-12 * c->size * (1 + fabs(want[i])))
			continue;
		mt_bad(c->op, c->number, "%s: number %d of %d is %.17g, not %.17g", c->text, i, n,
		       got[i], want[i]);
		repeat(c);
		return;
	}
	mt_good();
}
