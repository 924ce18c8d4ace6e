/* Papers and figures by name; commands as they are run. */
#include "repro.h"

#include <stdlib.h>
#include <string.h>

const struct repro_paper repro_papers[] = {
	{"hsal", "Vishnu, Koop, Moody, Mamidala, Narravula, Panda",
	 "Topology agnostic hot-spot avoidance with InfiniBand", repro_hsal},
	{"fattree", "Zahavi",
	 "Fat-Trees Routing and Node Ordering Providing Contention Free Traffic for MPI Global "
	 "Collectives",
	 repro_fattree},
	{"thesis", "Rashti",
	 "Improving message-passing performance and scalability in high-performance clusters",
	 repro_thesis},
	{"arrival", "Qian, Afsahi",
	 "Process Arrival Pattern and Shared Memory Aware Alltoall on InfiniBand", repro_arrival},
	{"onetomany", "Hoefler, Viertel, Mehlan, Mietke, Rehm",
	 "Assessing Single-Message and Multi-Node Communication Performance of InfiniBand",
	 repro_onetomany},
	{0},
};

size_t repro_each(const char *word, void (*fn)(const struct repro_figure *f, void *arg), void *arg)
{
	size_t n = 0;

	for (const struct repro_paper *p = repro_papers; p->name; p++) {
		bool all = !strcmp(word, "all") || !strcmp(word, p->name);

		for (const struct repro_figure *f = p->figures; f->name; f++) {
			if (!all && strcmp(word, f->name) != 0)
				continue;
			n++;
			if (fn)
				fn(f, arg);
		}
	}
	return n;
}

const struct repro_paper *repro_paper_of(const struct repro_figure *f)
{
	const struct repro_paper *p = repro_papers;

	while (p->name && strncmp(p->name, f->name, strcspn(f->name, "/")) != 0)
		p++;
	return p->name ? p : NULL;
}

/* How many letters they begin with alike. */
static size_t alike(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

const char *repro_nearest(const char *word)
{
	size_t best = 2;
	const char *name = NULL;

	for (const struct repro_paper *p = repro_papers; p->name; p++) {
		if (alike(word, p->name) > best) {
			best = alike(word, p->name);
			name = p->name;
		}
		for (const struct repro_figure *f = p->figures; f->name; f++)
			if (alike(word, f->name) > best) {
				best = alike(word, f->name);
				name = f->name;
			}
	}
	return name;
}

char *repro_command(const char *text, enum repro_mode mode)
{
	char *out = malloc(strlen(text) + 1), *to = out;

	while (out && *text) {
		size_t open = strcspn(text, "{"), bar, close;

		memcpy(to, text, open);
		to += open;
		text += open;
		if (!*text)
			break;
		bar = strcspn(text, "|}");
		close = strcspn(text, "}");
		if (text[bar] != '|' || !text[close]) { /* some other brace */
			*to++ = *text++;
			continue;
		}
		if (mode == REPRO_QUICK) {
			memcpy(to, text + 1, bar - 1);
			to += bar - 1;
		} else {
			memcpy(to, text + bar + 1, close - bar - 1);
			to += close - bar - 1;
		}
		text += close + 1;
	}
	if (out)
		*to = '\0';
	return out;
}

/* FNV-1a: not against anybody, only to tell one text from another. */
static unsigned long long hash(unsigned long long h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return (h ^ 0xff) * 0x100000001b3u;
}

unsigned long long repro_recipe(const struct repro_experiment *x, enum repro_mode mode)
{
	unsigned long long h = hash(0xcbf29ce484222325u, x->setup);

	for (const struct repro_step *s = x->steps; s->command; s++) {
		char *command = repro_command(s->command, mode);

		h = hash(hash(h, s->label), command);
		for (const struct repro_take *t = s->takes; t->y; t++)
			h = hash(hash(hash(hash(h, t->series), t->where), t->x), t->y);
		free(command);
	}
	return h;
}
