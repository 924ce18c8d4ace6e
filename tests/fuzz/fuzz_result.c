/* Results of weft bench, as files. What is accepted keeps to the limits, has nothing in it that a
 * terminal would obey, and reads the same again after it was written. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "bench_result.h"
#include "fuzz.h"

static void check_text(const char *text, size_t most)
{
	HOLDS(text && strlen(text) <= most);
	for (; *text; text++)
		HOLDS((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_series(const struct bench_result_series *s)
{
	struct bench_comparison c;
	struct bench_summary sum;
	char number[32];
	const char *key;
	json_t *v;

	check_text(s->name, BENCH_RESULT_NAME);
	check_text(s->unit, BENCH_RESULT_NAME);
	HOLDS(*s->name && json_object_size(s->params) <= BENCH_RESULT_PARAMS);
	json_object_foreach(s->params, key, v)
	{
		check_text(key, BENCH_RESULT_NAME);
		check_text(bench_result_param(s, key, number), BENCH_RESULT_TEXT);
	}
	bench_result_summary(s, &sum);
	HOLDS(sum.n <= s->n && sum.outliers <= sum.n);
	bench_result_compare(s, s, &c);
	HOLDS(c.verdict == BENCH_NO_DIFFERENCE || c.verdict == BENCH_TOO_FEW);
}

static void write_to(struct bench_result *r, char **text, size_t *size)
{
	char path[] = "/tmp/fuzz-result-XXXXXX";
	int fd = mkstemp(path);
	FILE *f;

	HOLDS(fd >= 0);
	HOLDS(!bench_result_write_csv(r, path));
	HOLDS(!bench_result_write(r, path));
	f = fopen(path, "r");
	HOLDS(f && !fseek(f, 0, SEEK_END));
	*size = (size_t)ftell(f);
	rewind(f);
	*text = malloc(*size + 1);
	HOLDS(*text && fread(*text, 1, *size, f) == *size);
	fclose(f);
	remove(path);
	close(fd);
}

static void check_again(struct bench_result *r)
{
	struct bench_result *again;
	char *text, why[256] = "";
	size_t size;

	write_to(r, &text, &size);
	HOLDS(!bench_result_parse(&again, text, size, why, sizeof(why)));
	HOLDS(again->n == r->n && !strcmp(again->command, r->command));
	for (size_t i = 0; i < r->n; i++) {
		const struct bench_result_series *a = r->series[i], *b = again->series[i];

		HOLDS(!strcmp(a->name, b->name) && a->higher == b->higher && a->n == b->n);
		for (size_t k = 0; k < a->n; k++)
			HOLDS(isnan(a->samples[k]) == isnan(b->samples[k]));
	}
	bench_result_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *text = exact_copy(data, size);
	struct bench_result *r;
	char why[256] = "";
	int ret = bench_result_parse(&r, (const char *)text, size, why, sizeof(why));

	HOLDS(ret == 0 || ret == -EINVAL || ret == -EFBIG);
	if (ret) {
		HOLDS(!r);
		HOLDS(strlen(why) > 10);
		check_text(why, sizeof(why) - 2);
	} else {
		for (size_t i = 0; i < r->n; i++)
			check_series(r->series[i]);
		check_again(r);
	}
	bench_result_free(r);
	free(text);
	return 0;
}
