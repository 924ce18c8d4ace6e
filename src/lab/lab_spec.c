/* What a lab is like: names, rates, addresses. Pure functions. */
#include "lab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util_clock.h"

int lab_fail(struct lab_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -code;
}

/* ---- names ---- */

/* <ctype.h> follows the locale; host names do not. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int lab_name_check(const char *name, struct lab_error *e)
{
	size_t n = strlen(name);
	bool ok = n > 0 && n < LAB_NAME_MAX && is_letter(name[0]) && name[n - 1] != '-';

	for (size_t i = 0; ok && i < n; i++)
		ok = is_letter(name[i]) || is_digit(name[i]) || name[i] == '-';
	if (ok)
		return 0;
	return lab_fail(
		e, EINVAL,
		"'%.40s' can not be the name of a lab: it becomes part of host names, so it "
		"begins with a letter, goes on with letters, digits and '-', does not end in "
		"'-' and has at most %d characters",
		name, LAB_NAME_MAX - 1);
}

void lab_host_name(const struct lab_spec *s, struct fabric_node n, char name[LAB_HOST_NAME_MAX])
{
	char node[FABRIC_NAME_MAX];

	fabric_name(n, node);
	snprintf(name, LAB_HOST_NAME_MAX, "%s-%s", s->name, node);
}

void lab_port_name(struct fabric_node n, bool up, uint32_t port, char name[LAB_PORT_MAX])
{
	const char *kind = n.level == 0 ? "eth" : up ? "u" : "d";

	snprintf(name, LAB_PORT_MAX, "%s%u", kind, port);
}

/* ---- numbers with a unit ---- */

struct unit {
	const char *name;
	double size;
};

/* Digits with at most one point, nothing else that strtod() knows (nan, hex, 1e9, another
 * locale's comma). Returns what follows, or NULL. Numbers that are too long become
 * infinite or not a number, which no range contains. */
static const char *number(const char *s, long double *value)
{
	long double scale = 1;
	bool point = false, digits = false;

	for (*value = 0; is_digit(*s) || (*s == '.' && !point); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		digits = true;
		*value = *value * 10 + (*s - '0');
		if (point)
			scale *= 10;
	}
	*value /= scale;
	return digits ? s : NULL;
}

static const struct unit *find_unit(const struct unit *units, const char *name, size_t len)
{
	for (; units->name; units++)
		if (strlen(units->name) == len && !strncasecmp(units->name, name, len))
			return units;
	return NULL;
}

static const struct unit rate_units[] = {
	{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}, {0},
};

/* Slower than this and a full-sized packet takes ten seconds and more; faster than this
 * nothing is, and sums of rates still fit. */
#define RATE_MIN 8000
#define RATE_MAX 1e15

static size_t without_per_second(const char *unit)
{
	size_t len = strlen(unit);

	return len > 2 && !strcasecmp(unit + len - 2, "/s") ? len - 2 : len;
}

/* "bps", "kbps", …: the letters in front of "bps", or -1. */
static int bps_prefix(const char *unit)
{
	size_t len = strlen(unit);

	return (len == 3 || len == 4) && !strcasecmp(unit + len - 3, "bps") ? (int)len - 3 : -1;
}

static int unknown_rate_unit(const char *text, const char *unit, struct lab_error *e)
{
	int digits = (int)(unit - text), prefix = bps_prefix(unit);

	if (!*unit)
		return lab_fail(e, EINVAL, "%.40s: which unit? For example %.40smbit", text, text);
	if (prefix >= 0)
		return lab_fail(e, EINVAL,
				"%.40s: tc takes %s for bytes per second, others take it for bits; "
				"write %.*s%.*sbit for bits per second",
				text, unit, digits, text, prefix, unit);
	return lab_fail(e, EINVAL,
			"%.40s: '%.20s' is not a unit of rates; expected bit, kbit, mbit, gbit or "
			"tbit, for example 100mbit",
			text, unit);
}

int lab_rate_parse(const char *text, uint64_t *rate, struct lab_error *e)
{
	const struct unit *u;
	const char *unit;
	long double v;

	if (!strcasecmp(text, "unlimited")) {
		*rate = 0;
		return 0;
	}
	unit = number(text, &v);
	if (!unit && text[0] == '-' && number(text + 1, &v))
		return lab_fail(e, EINVAL, "%.40s: a rate can not be negative", text);
	if (!unit)
		return lab_fail(e, EINVAL,
				"'%.40s' is not a rate; expected a number and a unit, for example "
				"100mbit or 2.5gbit, or 'unlimited'",
				text);
	u = find_unit(rate_units, unit, without_per_second(unit));
	if (!u)
		return unknown_rate_unit(text, unit, e);
	v *= u->size;
	if (v == 0)
		return lab_fail(e, EINVAL,
				"%.40s: a rate of zero lets nothing through; for no limit write "
				"'unlimited'",
				text);
	if (v < RATE_MIN)
		return lab_fail(e, EINVAL,
				"%.40s is too slow: a packet would take many seconds; the least is "
				"8kbit",
				text);
	if (!(v <= RATE_MAX))
		return lab_fail(e, EINVAL,
				"%.40s is too fast; the most is 1000tbit, and 'unlimited' sets no "
				"limit",
				text);
	*rate = (uint64_t)llroundl(v);
	return 0;
}

void lab_rate_print(uint64_t rate, char text[32])
{
	const struct unit *u = rate_units;

	if (rate == 0) {
		snprintf(text, 32, "unlimited");
		return;
	}
	while (u[1].name && (double)rate >= u[1].size)
		u++;
	/* Fifteen digits hold every rate that can be parsed, so this reads back the same. */
	snprintf(text, 32, "%.15g%s", (double)rate / u->size, u->name);
}

static const struct unit time_units[] = {
	{"", 1e9},   {"us", 1e3},   {"ms", 1e6},   {"s", 1e9},
	{"m", 6e10}, {"min", 6e10}, {"h", 3600e9}, {0},
};

#define TIME_MIN UTIL_NS_PER_MS
#define TIME_MAX (10000 * 3600e9)

int lab_time_parse(const char *text, uint64_t *ns, struct lab_error *e)
{
	const struct unit *u = NULL;
	const char *unit;
	long double v;

	unit = number(text, &v);
	if (unit)
		u = find_unit(time_units, unit, strlen(unit));
	if (!u)
		return lab_fail(e, EINVAL,
				"'%.40s' is not a time; expected a number of seconds, or a number "
				"with us, ms, s, m or h, for example 10s or 500ms",
				text);
	v *= u->size;
	if (v < TIME_MIN)
		return lab_fail(e, EINVAL, "%.40s is too short; the least is 1ms", text);
	if (!(v <= TIME_MAX))
		return lab_fail(e, EINVAL, "%.40s is too long; the most is 10000h", text);
	*ns = (uint64_t)llroundl(v);
	return 0;
}

/* ---- addresses ---- */

/* The block has two halves: hosts in the lower one, from the second slot on, since the
 * block's first address is the name of the network; switches in the upper one. */
static uint64_t half(const struct lab_spec *s)
{
	return UINT64_C(1) << (31 - s->prefix);
}

static uint32_t switches(const struct lab_spec *s)
{
	return fabric_nodes(&s->tree) - fabric_hosts(&s->tree);
}

struct in_addr lab_address(const struct lab_spec *s, struct fabric_node n, uint32_t a)
{
	uint64_t offset;

	if (n.level == 0)
		offset = (((uint64_t)n.index + 1) << s->routing.lmc) + a;
	else
		offset = half(s) + fabric_number(&s->tree, n) - fabric_hosts(&s->tree);
	return (struct in_addr){.s_addr = htonl((uint32_t)(s->net + offset))};
}

uint64_t lab_address_count(const struct lab_spec *s)
{
	uint64_t lower = ((uint64_t)fabric_hosts(&s->tree) + 1) << s->routing.lmc;
	/* One more: the block's last address means "everybody" to some programs. */
	uint64_t upper = (uint64_t)switches(s) + 1;

	return 2 * (lower > upper ? lower : upper);
}

int lab_find_address(const struct lab_spec *s, struct in_addr addr, struct fabric_node *n,
		     uint32_t *a)
{
	uint64_t offset = (uint64_t)ntohl(addr.s_addr) - s->net;
	uint64_t slot = offset >> s->routing.lmc;

	/* Below the block, the subtraction has wrapped round: larger than any offset. */
	if (offset < half(s)) {
		if (slot == 0 || slot > fabric_hosts(&s->tree))
			return -ENOENT;
		*n = (struct fabric_node){.level = 0, .index = (uint32_t)slot - 1};
		*a = (uint32_t)(offset & ((1u << s->routing.lmc) - 1));
		return 0;
	}
	if (offset - half(s) >= switches(s))
		return -ENOENT;
	*n = fabric_node(&s->tree, fabric_hosts(&s->tree) + (uint32_t)(offset - half(s)));
	*a = 0;
	return 0;
}

static int no_such_node(const struct lab_spec *s, const char *text, struct lab_error *e)
{
	struct fabric_node last = {.level = s->tree.h, .index = s->tree.nodes[s->tree.h] - 1};
	char name[FABRIC_NAME_MAX];

	fabric_name(last, name);
	return lab_fail(e, ENOENT,
			"lab %s has no '%.40s'; its hosts are h0 to h%u, its switches s1.0 to %s",
			s->name, text, fabric_hosts(&s->tree) - 1, name);
}

int lab_find_node(const struct lab_spec *s, const char *text, struct fabric_node *n, uint32_t *a,
		  struct lab_error *e)
{
	size_t len = strlen(s->name);
	struct in_addr addr;
	char net[INET_ADDRSTRLEN];

	*a = 0;
	if (!fabric_find(&s->tree, text, n))
		return 0;
	if (!strncmp(text, s->name, len) && text[len] == '-' &&
	    !fabric_find(&s->tree, text + len + 1, n))
		return 0;
	if (inet_pton(AF_INET, text, &addr) != 1)
		return no_such_node(s, text, e);
	if (!lab_find_address(s, addr, n, a))
		return 0;
	addr.s_addr = htonl(s->net);
	inet_ntop(AF_INET, &addr, net, sizeof(net));
	return lab_fail(e, ENOENT, "%s is nobody's address in lab %s, whose block is %s/%u", text,
			s->name, net, s->prefix);
}
