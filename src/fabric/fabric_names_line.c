/* Lines of hostfiles and rankfiles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_names_in.h"

#define BLANKS " \t\r\v\f"

static int append(struct fabric_line *line, int c)
{
	if (line->len + 1 >= line->room) {
		size_t room = line->room ? 2 * line->room : 128;
		char *text = realloc(line->text, room);

		if (!text)
			return -ENOMEM;
		line->text = text;
		line->room = room;
	}
	line->text[line->len++] = (char)c;
	return 0;
}

int fabric_line_read(FILE *f, struct fabric_line *line)
{
	bool comment = false;
	int c = getc(f);

	line->len = 0;
	line->zero = false;
	if (c == EOF)
		return 0;
	for (; c != EOF && c != '\n' && !line->zero; c = getc(f)) {
		line->zero = c == 0;
		comment |= c == '#';
		if (!comment && append(line, c))
			return -ENOMEM;
	}
	if (append(line, '\0'))
		return -ENOMEM;
	line->len--;
	return 1;
}

/* ---- words ---- */

static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, BLANKS), *end = word + strcspn(word, BLANKS);

	if (!*word)
		return NULL;
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static bool refuse(struct fabric_line *line, const char *word, const char *expected)
{
	line->bad = word;
	line->expected = expected;
	return false;
}

/* How many ranks, how many at most, and what else launchers may be told of a host. */
enum meaning { RANKS, MOST, OTHER };

static const struct {
	const char *key;
	enum meaning meaning;
} keys[] = {
	{"slots", RANKS},     {"count", RANKS},     {"cpu", RANKS},      {"cpus", RANKS},
	{"max_slots", MOST},  {"max-slots", MOST},  {"slots_max", MOST}, {"slots-max", MOST},
	{"cpu_max", MOST},    {"cpu-max", MOST},    {"cpus_max", MOST},  {"cpus-max", MOST},
	{"count_max", MOST},  {"count-max", MOST},  {"user", OTHER},     {"username", OTHER},
	{"user_name", OTHER}, {"user-name", OTHER}, {"port", OTHER},     {"binding", OTHER},
	{"ifhn", OTHER},      {"map", OTHER},       {"boards", OTHER},   {"sockets", OTHER},
	{"cores", OTHER},
};

/* KEY=VALUE, behind the name of a host. */
static bool take_key(struct fabric_line *line, const char *word)
{
	size_t len = strcspn(word, "="), i = 0, n = sizeof(keys) / sizeof(keys[0]);
	uint64_t v = 0;

	while (i < n && (strncmp(keys[i].key, word, len) != 0 || keys[i].key[len]))
		i++;
	if (!word[len] || !word[len + 1] || i == n)
		return refuse(line, word,
			      "one host per line, and behind it what hostfiles say of it, such as "
			      "slots=1, or a comment, # ...");
	if (keys[i].meaning == OTHER)
		return true;
	if (fabric_decimal(word + len + 1, &v) || v == 0 || v > UINT32_MAX)
		return refuse(line, word, "a number of ranks that is at least 1");
	if (keys[i].meaning == RANKS)
		line->ranks = (uint32_t)v;
	return true;
}

/* ---- rankfiles ---- */

#define RANKED "rank N=HOST slot=S, as in rankfiles of Open MPI"

/* 0=host; the number ends there. */
static bool take_rank(struct fabric_line *line, char *word)
{
	char *equals = strchr(word, '=');
	uint64_t rank;

	if (!equals || !equals[1])
		return refuse(line, word, RANKED);
	*equals = '\0';
	if (fabric_decimal(word, &rank) || rank >= FABRIC_NONE)
		return refuse(line, word, "the number of a rank, and " RANKED);
	line->rank = (uint32_t)rank;
	line->name = equals + 1;
	return true;
}

static bool take_slot(struct fabric_line *line, const char *word)
{
	uint64_t slot;

	if (strncmp(word, "slot=", 5) != 0 || !word[5])
		return refuse(line, word, RANKED);
	if (!fabric_decimal(word + 5, &slot) && slot < FABRIC_NONE)
		line->slot = (uint32_t)slot;
	return true;
}

bool fabric_line_parse(struct fabric_line *line)
{
	char *rest = line->text, *word = next_word(&rest);
	const char *second = rest + strspn(rest, BLANKS);
	bool good = true;

	line->name = word;
	line->ranks = 0;
	line->slot = FABRIC_NONE;
	/* A host may be called so, too, but no number follows it then. */
	line->ranked = word && !strcmp(word, "rank") && *second >= '0' && *second <= '9';
	if (line->ranked)
		good = take_rank(line, next_word(&rest));
	while (good && word && (word = next_word(&rest)))
		good = line->ranked ? take_slot(line, word) : take_key(line, word);
	return good;
}
