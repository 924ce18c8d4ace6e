/* weft bench mpi: its runs, by weft run, and what is taken from each. */
#include "cli_bench_mpi.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static void command_line(const struct bench_mpi *b, const struct bench_mpi_kind *k,
			 const struct bench_stack *s, struct cli_words *w)
{
	cli_words_add(w, b->weft);
	cli_words_add(w, "run");
	cli_words_add(w, "-n");
	cli_words_addf(w, "%d", b->ranks ? b->ranks : k->ranks);
	if (b->lab) {
		cli_words_add(w, "--lab");
		cli_words_add(w, b->lab);
	}
	cli_words_add_all(w, s->options.word ? s->options.word : (char *[]){NULL});
	if (b->print)
		cli_words_add(w, "--print");
	cli_words_add_all(
		w, (char *[]){"--", (char *)b->program, (char *)k->name, "--json", "-T", NULL});
	cli_words_addf(w, "%d", b->seconds);
	cli_words_add_all(w, b->more);
}

static void add_row(struct bench_mpi *b, const struct bench_mpi_kind *k, const char *stack,
		    int round, const json_t *row)
{
	const json_t *v = json_object_get(row, k->value);
	const char *only = k->only[0] ? json_string_value(json_object_get(row, k->only[0])) : NULL;
	json_t *params;

	if (k->only[0] && (!only || strcmp(only, k->only[1]) != 0))
		return;
	params = json_pack("{s:s}", "stack", stack);
	for (int i = 0; k->keys[i]; i++) {
		json_t *key = json_object_get(row, k->keys[i]);

		if (json_is_string(key) || json_is_number(key))
			json_object_set(params, k->keys[i], key);
	}
	bench_result_put(bench_result_series(b->result, k->name, k->unit, k->higher, params),
			 (size_t)round, json_is_number(v) ? json_number_value(v) : NAN);
}

static void one_run(struct bench_mpi *b, const struct bench_mpi_kind *k,
		    const struct bench_stack *s, int round)
{
	struct cli_words line = {0};
	char what[96];
	json_t *doc, *row;
	const char *mpi;
	size_t i;

	command_line(b, k, s, &line);
	snprintf(what, sizeof(what), "%s on %s, round %d", k->name, s->name, round + 1);
	/* The program gives up by itself after twice its time and a minute. */
	doc = bench_run_json(&line, &s->env, 2 * (unsigned int)b->seconds + 90, what);
	cli_words_free(&line);
	b->failed = b->failed || !doc;
	json_array_foreach (json_object_get(doc, "rows"), i, row)
		add_row(b, k, s->name, round, row);
	mpi = json_string_value(json_object_get(doc, "mpi"));
	if (mpi)
		bench_result_env(b->result, "mpi", mpi);
	json_decref(doc);
}

static int keep(struct bench_mpi *b)
{
	int ret = b->json ? bench_result_write(b->result, b->json) : 0;

	if (ret)
		return cli_failed(ret, "cannot write %s: %s", b->json, strerror(-ret));
	ret = b->csv ? bench_result_write_csv(b->result, b->csv) : 0;
	return ret ? cli_failed(ret, "cannot write %s: %s", b->csv, strerror(-ret)) : 0;
}

/* Every other round runs backwards, so that nobody is always the first. */
int bench_mpi_measure(struct bench_mpi *b)
{
	bench_run_catch();
	for (int round = 0; round < b->rounds; round++) {
		fprintf(stderr, "weft bench mpi: round %d of %d\n", round + 1, b->rounds);
		for (int k = 0; k < b->kinds; k++)
			for (int i = 0; i < b->stacks && !bench_run_told(); i++)
				one_run(b, b->kind[k], &b->stack[round % 2 ? b->stacks - 1 - i : i],
					round);
		if (keep(b))
			return CLI_FAILED;
		if (bench_run_told())
			return 128 + bench_run_told();
	}
	return b->failed ? CLI_FAILED : CLI_OK;
}

/* ---- instead of running ---- */

/* What weft run would become, by its own --print; a cluster's hosts are for the user to add. */
static int print_line(const struct bench_stack *s, const struct cli_words *line)
{
	int status = 0;
	pid_t child;

	cli_words_print(&s->env, stdout);
	fputs(s->env.n ? " " : "", stdout);
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(cli_become(line->word));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return cli_error("cannot start %s", line->word[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

int bench_mpi_print_lines(const struct bench_mpi *b)
{
	int code = 0;

	for (int k = 0; k < b->kinds; k++)
		for (int i = 0; !code && i < b->stacks; i++) {
			struct cli_words line = {0};

			command_line(b, b->kind[k], &b->stack[i], &line);
			code = print_line(&b->stack[i], &line);
			cli_words_free(&line);
		}
	return cli_finish(code);
}
