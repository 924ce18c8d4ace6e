/* Names of policies, and the account of what is left, lost and under way. */
#include "stripe_in.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static int refuse(char *why, size_t why_size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(char *why, size_t why_size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, why_size, format, args);
	va_end(args);
	return -EINVAL;
}

/* What somebody wrote, fit to be printed. */
struct quoted {
	char text[48];
};

static struct quoted quote(const char *text)
{
	struct quoted q = {"'"};
	size_t n = 1;

	for (; *text && n < sizeof(q.text) - 5; text++)
		q.text[n++] = (char)(*text >= ' ' && *text <= '~' ? *text : '?');
	snprintf(q.text + n, sizeof(q.text) - n, "%s'", *text ? "..." : "");
	return q;
}

enum args { NONE, PATHS, BATCH, BATCH_OR_NOT, WEIGHTS };

static const struct {
	const struct stripe_policy *policy;
	enum args args;
	const char *form;
} policies[] = {
	{&stripe_single, NONE, "single"},
	{&stripe_original, NONE, "original"},
	{&stripe_even, PATHS, "even:N"},
	{&stripe_roundrobin, PATHS, "roundrobin:N"},
	{&stripe_weighted, WEIGHTS, "weighted:W,W,..."},
	{&stripe_hsam, PATHS, "hsam:N"},
	{&stripe_bss, BATCH, "bss:N,B"},
	{&stripe_pull, BATCH_OR_NOT, "pull:N or pull:N,B"},
	{&stripe_hop, PATHS, "hop:N"},
};

#define POLICIES (sizeof(policies) / sizeof(policies[0]))

/* A number from 1 to max that ends at *end; 0: it is none. */
static uint32_t number(const char *text, uint32_t max, const char **end)
{
	uint32_t n = 0;

	for (; *text >= '0' && *text <= '9' && n <= max; text++)
		n = 10 * n + (uint32_t)(*text - '0');
	*end = text;
	return n <= max ? n : 0;
}

#define WEIGHT_MAX 65535

/* "3,1,1": as many paths as weights, which add up to 1 then. */
static bool take_weights(struct stripe_conf *c, const char *text)
{
	double total = 0;

	for (c->paths = 0; c->paths < STRIPE_PATHS_MAX; text++) {
		uint32_t w = number(text, WEIGHT_MAX, &text);

		if (!w)
			return false;
		total += c->fixed[c->paths++] = w;
		if (*text != ',')
			break;
	}
	for (uint32_t i = 0; i < c->paths; i++)
		c->fixed[i] /= total;
	c->batch = c->paths;
	return !*text;
}

static bool take_args(struct stripe_conf *c, enum args args, const char *text)
{
	if (args == NONE)
		return !*text;
	if (*text++ != ':')
		return false;
	if (args == WEIGHTS)
		return take_weights(c, text);
	c->paths = c->batch = number(text, STRIPE_PATHS_MAX, &text);
	if (c->paths && (args == BATCH || (args == BATCH_OR_NOT && *text)))
		c->batch = *text == ',' ? number(text + 1, c->paths, &text) : 0;
	return !*text && c->paths && c->batch;
}

int stripe_parse(struct stripe_conf *c, const char *text, char *why, size_t why_size)
{
	struct stripe_conf got = {
		.paths = 1, .batch = 1, .alpha = STRIPE_ALPHA, .least = STRIPE_LEAST};
	size_t name = strcspn(text, ":");

	for (size_t i = 0; i < POLICIES; i++) {
		if (strlen(policies[i].policy->name) != name ||
		    strncmp(text, policies[i].policy->name, name) != 0)
			continue;
		if (!take_args(&got, policies[i].args, text + name))
			return refuse(why, why_size,
				      "%s is not right; expected %s with 1 to %d paths, a batch of "
				      "no more than there are, and weights of 1 to %d",
				      quote(text).text, policies[i].form, STRIPE_PATHS_MAX,
				      WEIGHT_MAX);
		got.policy = policies[i].policy;
		*c = got;
		return 0;
	}
	return refuse(why, why_size,
		      "%s is no way to stripe; known are single (or original), even:N, "
		      "roundrobin:N, weighted:W,W,..., hsam:N, bss:N,B, pull:N, pull:N,B and hop:N",
		      quote(text).text);
}

/* Weights as they were given, or such that give the same shares: the lightest is 1. */
static void print_weights(const struct stripe_conf *c, char text[STRIPE_NAME_MAX], int n)
{
	double least = 1;

	for (uint32_t i = 0; i < c->paths; i++)
		least = c->fixed[i] < least ? c->fixed[i] : least;
	for (uint32_t i = 0; i < c->paths && n < STRIPE_NAME_MAX; i++)
		n += snprintf(text + n, (size_t)(STRIPE_NAME_MAX - n), "%c%.4g", i ? ',' : ':',
			      c->fixed[i] / least);
}

void stripe_print(const struct stripe_conf *c, char text[STRIPE_NAME_MAX])
{
	int n = snprintf(text, STRIPE_NAME_MAX, "%s", c->policy->name);
	char *end = text + n;
	size_t room = STRIPE_NAME_MAX - (size_t)n;

	for (size_t i = 0; i < POLICIES; i++) {
		enum args args = policies[i].args;

		if (policies[i].policy != c->policy)
			continue;
		if (args == WEIGHTS)
			print_weights(c, text, n);
		else if (args == BATCH || (args == BATCH_OR_NOT && c->batch < c->paths))
			snprintf(end, room, ":%u,%u", c->paths, c->batch);
		else if (args != NONE)
			snprintf(end, room, ":%u", c->paths);
	}
}

/* ---- paths ---- */

bool stripe_usable(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t path)
{
	if (!p->down[path])
		return true;
	for (uint32_t i = 0; i < c->paths; i++)
		if (!p->down[i])
			return false;
	return true;
}

uint32_t stripe_sort(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t *path)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->paths; i++) {
		uint32_t at = n;

		if (!stripe_usable(c, p, i))
			continue;
		for (; at > 0 && p->weight[path[at - 1]] < p->weight[i]; at--)
			path[at] = path[at - 1];
		path[at] = i;
		n++;
	}
	return n;
}

void stripe_peer_init(const struct stripe_conf *c, struct stripe_peer *p, uint64_t seed)
{
	*p = (struct stripe_peer){0};
	util_rand_seed(&p->rand, seed);
	c->policy->init(c, p);
}

void stripe_down(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path)
{
	if (path < c->paths)
		p->down[path] = true;
}

void stripe_heal(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path)
{
	if (path >= c->paths || !p->down[path])
		return;
	p->down[path] = false;
	c->policy->heal(c, p, path);
}

/* ---- messages ---- */

bool stripe_whole(const struct stripe_conf *c)
{
	return c->policy == &stripe_roundrobin;
}

/* What was learnt of paths is worth something for so many times as long as a message takes. */
#define FRESH 8

void stripe_begin(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		  uint64_t bytes, uint64_t now)
{
	*m = (struct stripe_msg){.bytes = bytes, .left = bytes};
	m->fresh = p->took && now < p->ended + FRESH * p->took;
	if (bytes)
		c->policy->begin(c, p, m);
}

bool stripe_next(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		 struct stripe_piece *piece)
{
	if (!m->left || m->all_out == STRIPE_OUT_MAX || !c->policy->next(c, p, m, piece))
		return false;
	/* What was lost goes again as it was, whole: so there are never more pieces than before. */
	if (m->n_lost) {
		struct stripe_range *r = &m->lost[--m->n_lost];

		piece->offset = r->offset;
		piece->bytes = r->bytes;
	} else {
		piece->offset = m->at;
		m->at += piece->bytes;
	}
	m->left -= piece->bytes;
	m->used |= 1u << piece->path;
	m->out[piece->path]++;
	p->out[piece->path]++;
	m->all_out++;
	m->flying[piece->path] += piece->bytes;
	return true;
}

void stripe_forget(struct stripe_peer *p, struct stripe_msg *m, const struct stripe_piece *piece)
{
	p->out[piece->path]--;
	m->out[piece->path]--;
	m->all_out--;
	m->flying[piece->path] -= piece->bytes;
}

bool stripe_done(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		 const struct stripe_piece *piece, uint64_t began, uint64_t now)
{
	if (!m->any || now != m->now) {
		m->were_out = m->all_out;
		m->found = 0;
	}
	m->found++;
	if (!m->any || began < m->began)
		m->began = began;
	m->any = true;
	m->now = now;
	stripe_forget(p, m, piece);
	c->policy->done(c, p, m, piece, began, now);
	if (m->left || m->all_out)
		return false;
	c->policy->end(c, p, m, now);
	p->ended = now;
	p->took = now > m->began ? now - m->began : 1;
	return true;
}

void stripe_failed(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		   const struct stripe_piece *piece)
{
	(void)c;
	stripe_forget(p, m, piece);
	m->lost[m->n_lost++] = (struct stripe_range){piece->offset, piece->bytes};
	m->left += piece->bytes;
	m->torn = true;
	p->down[piece->path] = true;
}
