#include "fabric_pgft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fabric_text.h"

/* ---- the tuple as text ---- */

struct scan {
	const char *text, *at;
	char *why;
	size_t why_size;
};

static void skip_blanks(struct scan *s)
{
	s->at += strspn(s->at, " \t\r\n");
}

static int unexpected(const struct scan *s, const char *expected)
{
	if (!*s->at)
		return fabric_refuse(s->why, s->why_size, "the tuple ends where %s should be",
				     expected);
	return fabric_refuse(s->why, s->why_size, "character %zu of the tuple is %s, expected %s",
			     (size_t)(s->at - s->text) + 1, fabric_quote_n(s->at, 1).text,
			     expected);
}

static bool take(struct scan *s, char c)
{
	skip_blanks(s);
	if (*s->at != c)
		return false;
	s->at++;
	return true;
}

/* The digits of a number; what is beyond the largest that any tree has becomes UINT32_MAX. */
struct digits {
	const char *text;
	size_t len;
	uint32_t value;
};

static int take_digits(struct scan *s, const char *expected, struct digits *d)
{
	uint64_t v = 0;

	skip_blanks(s);
	d->text = s->at;
	for (; *s->at >= '0' && *s->at <= '9'; s->at++)
		v = v > FABRIC_CABLES_MAX ? v : v * 10 + (uint64_t)(*s->at - '0');
	d->len = (size_t)(s->at - d->text);
	d->value = v > FABRIC_CABLES_MAX ? UINT32_MAX : (uint32_t)v;
	return d->len ? 0 : unexpected(s, expected);
}

static int take_levels(struct scan *s, struct fabric_pgft *t)
{
	struct digits d;
	int ret = take_digits(s, "the number of levels", &d);

	if (ret)
		return ret;
	if (d.value < 1 || d.value > FABRIC_LEVELS_MAX)
		return fabric_refuse(s->why, s->why_size,
				     "%s levels announced; a tree has 1 to %d levels",
				     fabric_quote_n(d.text, d.len).text, FABRIC_LEVELS_MAX);
	t->h = d.value;
	return 0;
}

static int check_value(const struct scan *s, const struct digits *d, char name, uint32_t level)
{
	if (d->value == 0)
		return fabric_refuse(s->why, s->why_size,
				     "level %u has %c = 0; every number must be at least 1", level,
				     name);
	if (d->value == UINT32_MAX)
		return fabric_refuse(s->why, s->why_size,
				     "level %u has %c = %s; no number can be more than %u", level,
				     name, fabric_quote_n(d->text, d->len).text, FABRIC_CABLES_MAX);
	return 0;
}

static int take_list(struct scan *s, char name, uint32_t h, uint32_t *values)
{
	struct digits d;
	char expected[48];
	uint32_t n = 0;
	int ret;

	do {
		snprintf(expected, sizeof(expected), "a value of %c", name);
		ret = take_digits(s, expected, &d);
		if (!ret && n < h)
			ret = check_value(s, &d, name, n + 1);
		if (ret)
			return ret;
		if (n < h)
			values[n + 1] = d.value;
		n++;
	} while (take(s, ','));
	if (n == h)
		return 0;
	if (*s->at && *s->at != ';' && *s->at != ')')
		return unexpected(s, n < h ? "','" : "';'");
	return fabric_refuse(s->why, s->why_size, "%u level%s announced, but %u value%s of %c", h,
			     h == 1 ? "" : "s", n, n == 1 ? "" : "s", name);
}

static int take_tuple(struct scan *s, struct fabric_pgft *t)
{
	uint32_t *const lists[] = {t->m, t->w, t->p};
	char expected[48];
	bool paren = false;
	int ret;

	skip_blanks(s);
	if (!strncasecmp(s->at, "PGFT", 4)) {
		s->at += 4;
		paren = take(s, '(');
		if (!paren)
			return unexpected(s, "'('");
	}
	ret = take_levels(s, t);
	for (int i = 0; !ret && i < 3; i++) {
		snprintf(expected, sizeof(expected), "';' and the values of %c", "mwp"[i]);
		ret = take(s, ';') ? take_list(s, "mwp"[i], t -> h, lists[i])
				   : unexpected(s, expected);
	}
	if (ret)
		return ret;
	if (paren && !take(s, ')'))
		return unexpected(s, "')'");
	skip_blanks(s);
	return *s->at ? unexpected(s, "the end: all values are there") : 0;
}

/* ---- sizes ---- */

/* UINT64_MAX stands for itself and all that is more. */
static uint64_t times(uint64_t a, uint64_t b)
{
	return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

static int too_many(const struct scan *s, uint64_t n, const char *what, uint32_t most)
{
	if (n == UINT64_MAX)
		return fabric_refuse(s->why, s->why_size,
				     "the tree has more than 2^64 %s; the most is %u", what, most);
	return fabric_refuse(s->why, s->why_size, "the tree has %" PRIu64 " %s; the most is %u", n,
			     what, most);
}

static int count_hosts(const struct scan *s, struct fabric_pgft *t)
{
	uint64_t hosts = 1;

	for (uint32_t l = 1; l <= t->h; l++)
		hosts = times(hosts, t->m[l]);
	if (hosts > FABRIC_HOSTS_MAX)
		return too_many(s, hosts, "hosts", FABRIC_HOSTS_MAX);
	t->M[0] = 1;
	for (uint32_t l = 1; l <= t->h; l++)
		t->M[l] = t->M[l - 1] * t->m[l];
	return 0;
}

static int count_nodes(const struct scan *s, struct fabric_pgft *t)
{
	uint64_t all = 0, alike = 1;
	char what[48];

	for (uint32_t l = 0; l <= t->h; l++) {
		uint64_t n;

		alike = times(alike, l ? t->w[l] : 1);
		n = times(alike, t->M[t->h] / t->M[l]);
		snprintf(what, sizeof(what), "switches at level %u", l);
		if (n > FABRIC_NODES_MAX)
			return too_many(s, n, what, FABRIC_NODES_MAX);
		t->W[l] = (uint32_t)alike;
		t->nodes[l] = (uint32_t)n;
		t->first[l] = (uint32_t)all;
		all += n;
		if (all > FABRIC_NODES_MAX)
			return too_many(s, all, "nodes or more", FABRIC_NODES_MAX);
	}
	t->first[t->h + 1] = (uint32_t)all;
	return 0;
}

static int count_cables(const struct scan *s, struct fabric_pgft *t)
{
	uint64_t all = 0;

	for (uint32_t l = 1; l <= t->h; l++) {
		uint64_t n = times(times(t->nodes[l - 1], t->w[l]), t->p[l]);

		if (n > FABRIC_CABLES_MAX || all + n > FABRIC_CABLES_MAX)
			return too_many(s, n > FABRIC_CABLES_MAX ? n : all + n, "cables or more",
					FABRIC_CABLES_MAX);
		t->cables[l] = (uint32_t)n;
		t->first_cable[l] = (uint32_t)all;
		all += n;
	}
	t->first_cable[t->h + 1] = (uint32_t)all;
	return 0;
}

int fabric_pgft_parse(struct fabric_pgft *t, const char *text, char *why, size_t why_size)
{
	struct scan s = {text, text, why, why_size};
	struct fabric_pgft new = {0};
	int ret;

	if (!text[strspn(text, " \t\r\n")])
		return fabric_refuse(why, why_size,
				     "the tuple is empty; expected h;m1,..;w1,..;p1,.., such as "
				     "2;12,12;1,6;1,2");
	ret = take_tuple(&s, &new);
	if (!ret)
		ret = count_hosts(&s, &new);
	if (!ret)
		ret = count_nodes(&s, &new);
	if (!ret)
		ret = count_cables(&s, &new);
	if (!ret)
		*t = new;
	return ret;
}

void fabric_pgft_print(const struct fabric_pgft *t, char text[FABRIC_TUPLE_MAX])
{
	const uint32_t *const lists[] = {t->m, t->w, t->p};
	int at = snprintf(text, FABRIC_TUPLE_MAX, "%u", t->h);

	/* It fits: 24 numbers of at most nine digits. */
	for (int i = 0; i < 3; i++)
		for (uint32_t l = 1; l <= t->h; l++)
			at += snprintf(text + at, FABRIC_TUPLE_MAX - (size_t)at, "%c%u",
				       l == 1 ? ';' : ',', lists[i][l]);
}

/* ---- nodes ---- */

struct fabric_node fabric_node(const struct fabric_pgft *t, uint32_t number)
{
	uint32_t level = 0;

	while (number >= t->first[level + 1])
		level++;
	return (struct fabric_node){level, number - t->first[level]};
}

void fabric_name(struct fabric_node n, char name[FABRIC_NAME_MAX])
{
	if (n.level == 0)
		snprintf(name, FABRIC_NAME_MAX, "h%u", n.index);
	else
		snprintf(name, FABRIC_NAME_MAX, "s%u.%u", n.level, n.index);
}

/* A number as we print it, without zeros in front. Returns what follows, or NULL. */
static const char *plain_number(const char *at, uint32_t *v)
{
	uint64_t n = 0;

	if (*at == '0' && at[1] >= '0' && at[1] <= '9')
		return NULL;
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		n = n * 10 + (uint64_t)(*at - '0');
		if (n > UINT32_MAX)
			return NULL;
	}
	*v = (uint32_t)n;
	return at;
}

/* A node's name at the beginning of text. Returns what follows, or NULL. */
static const char *node_prefix(const struct fabric_pgft *t, const char *at, struct fabric_node *n)
{
	if (*at == 'h') {
		n->level = 0;
		at = plain_number(at + 1, &n->index);
	} else if (*at == 's') {
		at = plain_number(at + 1, &n->level);
		if (!at || *at != '.' || n->level < 1 || n->level > t->h)
			return NULL;
		at = plain_number(at + 1, &n->index);
	} else {
		return NULL;
	}
	return at && n->index < t->nodes[n->level] ? at : NULL;
}

int fabric_find(const struct fabric_pgft *t, const char *name, struct fabric_node *n)
{
	struct fabric_node found;
	const char *end = node_prefix(t, name, &found);

	if (!end || *end)
		return -ENOENT;
	*n = found;
	return 0;
}

bool fabric_is_below(const struct fabric_pgft *t, struct fabric_node n, uint32_t host)
{
	return host / t->M[n.level] == n.index / t->W[n.level];
}

/* ---- cables ---- */

struct fabric_cable fabric_cable_up(const struct fabric_pgft *t, struct fabric_node n, uint32_t q)
{
	uint32_t l = n.level + 1;
	uint32_t b = n.index % t->W[n.level], a = n.index / t->W[n.level];
	struct fabric_cable c = {.lower = n, .q = q};

	c.upper.level = l;
	c.upper.index = b + t->W[n.level] * (q % t->w[l]) + t->W[l] * (a / t->m[l]);
	c.r = a % t->m[l] + q / t->w[l] * t->m[l];
	return c;
}

struct fabric_cable fabric_cable_down(const struct fabric_pgft *t, struct fabric_node n, uint32_t r)
{
	uint32_t l = n.level, below = t->W[l - 1];
	uint32_t b = n.index % t->W[l], a = n.index / t->W[l];
	struct fabric_cable c = {.upper = n, .r = r};

	c.lower.level = l - 1;
	c.lower.index = b % below + below * (a * t->m[l] + r % t->m[l]);
	c.q = b / below + r / t->m[l] * t->w[l];
	return c;
}

struct fabric_cable fabric_cable(const struct fabric_pgft *t, uint32_t number)
{
	uint32_t l = 1, ports;

	while (number >= t->first_cable[l + 1])
		l++;
	number -= t->first_cable[l];
	ports = fabric_up_ports(t, l - 1);
	return fabric_cable_up(t, (struct fabric_node){l - 1, number / ports}, number % ports);
}

uint32_t fabric_cable_number(const struct fabric_pgft *t, const struct fabric_cable *c)
{
	uint32_t l = c->upper.level;

	return t->first_cable[l] + c->lower.index * fabric_up_ports(t, l - 1) + c->q;
}

void fabric_cable_name(const struct fabric_pgft *t, const struct fabric_cable *c,
		       char name[FABRIC_CABLE_NAME_MAX])
{
	char lower[FABRIC_NAME_MAX], upper[FABRIC_NAME_MAX];
	uint32_t l = c->upper.level;

	fabric_name(c->lower, lower);
	fabric_name(c->upper, upper);
	if (t->p[l] > 1)
		snprintf(name, FABRIC_CABLE_NAME_MAX, "%s-%s:%u", lower, upper, c->q / t->w[l]);
	else
		snprintf(name, FABRIC_CABLE_NAME_MAX, "%s-%s", lower, upper);
}

/* The cable number k between two nodes, if they are joined. */
static int join(const struct fabric_pgft *t, struct fabric_node lower, struct fabric_node upper,
		uint32_t k, struct fabric_cable *c)
{
	uint32_t l = upper.level, which;
	struct fabric_cable found;

	if (lower.level + 1 != l || k >= t->p[l])
		return -ENOENT;
	which = upper.index % t->W[l] / t->W[l - 1];
	found = fabric_cable_up(t, lower, which + k * t->w[l]);
	if (found.upper.index != upper.index)
		return -ENOENT;
	*c = found;
	return 0;
}

int fabric_find_cable(const struct fabric_pgft *t, const char *name, struct fabric_cable *c)
{
	struct fabric_node a, b;
	const char *at = node_prefix(t, name, &a);
	uint32_t k = 0;
	bool numbered;

	if (!at || *at != '-')
		return -ENOENT;
	at = node_prefix(t, at + 1, &b);
	numbered = at && *at == ':';
	if (numbered)
		at = plain_number(at + 1, &k);
	if (!at || *at)
		return -ENOENT;
	/* One of several must be named, so that nobody takes it for all of them. */
	if (!numbered && t->p[a.level > b.level ? a.level : b.level] > 1)
		return -ENOENT;
	return a.level < b.level ? join(t, a, b, k, c) : join(t, b, a, k, c);
}
