/* The tunables of every layer, and their manual page. */
#include "cli_facts.h"

#include <stdlib.h>
#include <string.h>

#include "util_tune.h"
#include "coll_env.h"
#include "ofi_tune.h"
#include "rnic.h"
#include "verbs_tune.h"

static const struct util_tunable *const tables[] = {rnic_tunables, verbs_tunables, util_tunables,
						    ofi_tunables, coll_tunables};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static json_t *string_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *describe(const struct util_tunable *t)
{
	const char *text = getenv(t->name);
	struct util_tune_value v;
	char type[256], why[512];
	bool set = text && *text;
	bool bad = set && util_tune_parse(t, text, &v, why, sizeof(why));

	util_tune_type_str(t, type, sizeof(type));
	return json_pack("{s:s, s:o, s:o, s:b, s:o, s:s, s:s}", "name", t->name, "value",
			 string_or_null(set && !bad ? text : t->def), "default",
			 string_or_null(t->def), "set", set, "error",
			 string_or_null(bad ? why : NULL), "type", type, "help", t->help);
}

json_t *cli_facts_tunables(void)
{
	const struct util_tunable *t;
	json_t *all = json_array();

	for (size_t i = 0; i < TABLES; i++)
		util_tune_for_each (t, tables[i])
			json_array_append_new(all, describe(t));
	return all;
}

/* Troff takes a leading dot or quote as a request, and a backslash as an escape. */
static void print_troff(const char *s, FILE *to)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", to);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", to);
		else if (*s == '-')
			fputs("\\-", to);
		else
			fputc(*s, to);
	}
}

void cli_tunables_man(const char *prefix, FILE *to)
{
	const struct util_tunable *t;
	char type[256];

	for (size_t i = 0; i < TABLES; i++) {
		util_tune_for_each (t, tables[i]) {
			if (strncmp(t->name, prefix, strlen(prefix)) != 0)
				continue;
			util_tune_type_str(t, type, sizeof(type));
			fprintf(to, ".TP\n.B ");
			print_troff(t->name, to);
			fprintf(to, "\n");
			print_troff(t->help, to);
			fprintf(to, "\n.br\nValue: ");
			print_troff(type, to);
			fprintf(to, ". Default: ");
			print_troff(t->def ? t->def : "not set", to);
			fprintf(to, ".\n");
		}
	}
}
