/* Lines of hostfiles. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_order_in.h"

static bool ends_word(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || c == '#';
}

static int append(struct fabric_line *line, int c)
{
	if (line->len + 1 >= line->room) {
		size_t room = line->room ? 2 * line->room : 128;
		char *word = realloc(line->word, room);

		if (!word)
			return -ENOMEM;
		line->word = word;
		line->room = room;
	}
	line->word[line->len++] = (char)c;
	line->word[line->len] = '\0';
	return 0;
}

static void end_other(struct fabric_line *line)
{
	line->other[line->other_len] = '\0';
	line->slots |= !strncmp(line->other, "slots=", 6) && strcmp(line->other, "slots=1") != 0;
	line->other_len = 0;
}

static void append_other(struct fabric_line *line, int c)
{
	if (ends_word(c))
		end_other(line);
	else if (line->other_len < sizeof(line->other) - 1)
		line->other[line->other_len++] = (char)c;
}

int fabric_line_read(FILE *f, struct fabric_line *line)
{
	enum { BEFORE, WORD, AFTER, COMMENT } state = BEFORE;
	int c = getc(f);

	line->len = line->other_len = 0;
	line->zero = line->slots = false;
	if (c == EOF)
		return 0;
	for (; c != EOF && c != '\n' && !line->zero; c = getc(f)) {
		line->zero = c == 0;
		if (c == '#')
			state = COMMENT;
		else if (ends_word(c))
			state = state == WORD ? AFTER : state;
		else if (state == BEFORE)
			state = WORD;
		if (state == WORD && append(line, c))
			return -ENOMEM;
		if (state == AFTER)
			append_other(line, c);
	}
	end_other(line);
	return 1;
}
