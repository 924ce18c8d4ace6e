#include "fabric_order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_text.h"
#include "util_rand.h"

/* The first word of a line. Lines are never stored: one without an end costs nothing. */
struct line {
	char word[64]; /* longer ones are no names, and the rest is not kept */
	size_t len;    /* of the whole word */
	bool zero;     /* there is a zero byte in the line */
};

static bool ends_word(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '#';
}

/* False: there is no further line. */
static bool read_line(FILE *f, struct line *line)
{
	enum { BEFORE, WORD, AFTER } state = BEFORE;
	int c = getc(f);

	*line = (struct line){0};
	if (c == EOF)
		return false;
	for (; c != EOF && c != '\n' && !line->zero; c = getc(f)) {
		line->zero = c == 0;
		if (ends_word(c))
			state = state == BEFORE && c != '#' ? BEFORE : AFTER;
		else if (state == BEFORE)
			state = WORD;
		if (state != WORD)
			continue;
		if (line->len < sizeof(line->word) - 1)
			line->word[line->len] = (char)c;
		line->len++;
	}
	return true;
}

struct reader {
	const struct fabric_pgft *t;
	struct fabric_quote name;
	uint64_t *seen; /* in which line each host was, 0: in none */
	char *why;
	size_t why_size;
};

static int find_host(const struct reader *r, const struct line *line, uint64_t number,
		     uint32_t *host)
{
	struct fabric_quote word = fabric_quote_n(
		line->word, line->len < sizeof(line->word) ? line->len : sizeof(line->word) - 1);
	struct fabric_node n;

	if (fabric_find(r->t, line->word, &n))
		return fabric_refuse(r->why, r->why_size,
				     "line %" PRIu64 " of %s: %s is no host of this tree; its "
				     "hosts are h0 to h%u",
				     number, r->name.text, word.text, fabric_hosts(r->t) - 1);
	if (n.level > 0)
		return fabric_refuse(r->why, r->why_size,
				     "line %" PRIu64 " of %s: %s is a switch; ranks run on hosts, "
				     "h0 to h%u",
				     number, r->name.text, word.text, fabric_hosts(r->t) - 1);
	if (r->seen[n.index])
		return fabric_refuse(r->why, r->why_size,
				     "line %" PRIu64 " of %s: %s is in line %" PRIu64
				     " already; a host may be named once",
				     number, r->name.text, word.text, r->seen[n.index]);
	*host = n.index;
	return 0;
}

static int read_hosts(struct reader *r, FILE *from, uint32_t *hosts, uint32_t *count)
{
	struct line line;
	int ret;

	*count = 0;
	for (uint64_t number = 1; read_line(from, &line); number++) {
		if (line.zero)
			return fabric_refuse(r->why, r->why_size,
					     "line %" PRIu64 " of %s has a zero byte in it; "
					     "expected a text file",
					     number, r->name.text);
		if (line.len == 0)
			continue;
		ret = find_host(r, &line, number, &hosts[*count]);
		if (ret)
			return ret;
		r->seen[hosts[(*count)++]] = number;
	}
	if (ferror(from)) {
		ret = errno ? -errno : -EIO;
		fabric_refuse(r->why, r->why_size, "can not read %s: %s", r->name.text,
			      strerror(-ret));
		return ret;
	}
	if (*count == 0)
		return fabric_refuse(r->why, r->why_size,
				     "%s names no host; expected one of h0 to h%u per line",
				     r->name.text, fabric_hosts(r->t) - 1);
	return 0;
}

int fabric_order_read(const struct fabric_pgft *t, FILE *from, const char *name, uint32_t *hosts,
		      uint32_t *count, char *why, size_t why_size)
{
	struct reader r = {.t = t, .name = fabric_quote(name), .why = why, .why_size = why_size};
	int ret;

	r.seen = calloc(fabric_hosts(t), sizeof(*r.seen));
	if (!r.seen) {
		fabric_refuse(why, why_size, "no memory to read the order of %u hosts",
			      fabric_hosts(t));
		return -ENOMEM;
	}
	ret = read_hosts(&r, from, hosts, count);
	free(r.seen);
	return ret;
}

static int order_file(const struct fabric_pgft *t, const char *path, uint32_t *hosts,
		      uint32_t *count, char *why, size_t why_size)
{
	FILE *f;
	int ret;

	if (!*path)
		return fabric_refuse(why, why_size, "file: needs the name of a file, file:F");
	f = fopen(path, "re");
	if (!f) {
		ret = -errno;
		fabric_refuse(why, why_size, "can not open %s: %s", fabric_quote(path).text,
			      strerror(-ret));
		return ret;
	}
	ret = fabric_order_read(t, f, path, hosts, count, why, why_size);
	fclose(f);
	return ret;
}

static void ascending(const struct fabric_pgft *t, uint32_t *hosts, uint32_t *count)
{
	*count = fabric_hosts(t);
	for (uint32_t i = 0; i < *count; i++)
		hosts[i] = i;
}

int fabric_order(const struct fabric_pgft *t, const char *text, uint32_t *hosts, uint32_t *count,
		 char *why, size_t why_size)
{
	struct util_rand rand;
	uint64_t seed;
	int ret;

	if (!strcmp(text, "routing")) {
		ascending(t, hosts, count);
		return 0;
	}
	if (!strncmp(text, "random:", 7)) {
		ret = fabric_seed("random", text + 7, &seed, why, why_size);
		if (ret)
			return ret;
		ascending(t, hosts, count);
		util_rand_seed(&rand, seed);
		util_rand_shuffle(&rand, hosts, *count);
		return 0;
	}
	if (!strncmp(text, "file:", 5))
		return order_file(t, text + 5, hosts, count, why, why_size);
	return fabric_refuse(why, why_size,
			     "%s is no order; known are routing, random:SEED and file:F",
			     fabric_quote(text).text);
}
