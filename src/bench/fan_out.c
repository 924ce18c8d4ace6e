#include <stdio.h>
#include <string.h>

#include "bench_time.h"
#include "fan_out.h"

#define KEEP_NS (2 * BENCH_S) /* a large file takes its time */

void fan_out_begin(struct fan_out *out, const struct fan_opts *o, unsigned int cores,
		   const struct fan_root *root, const char *link)
{
	const struct bench_dev *dev = root->env.dev;
	char text[32];

	*out = (struct fan_out){
		.o = o,
		.result = bench_result_new(o->command),
		.table = !o->json || strcmp(o->json, "-") != 0,
	};
	bench_result_env(out->result, "link", link);
	snprintf(text, sizeof(text), "%u", cores);
	bench_result_env(out->result, "cores_allowed", text);
	snprintf(text, sizeof(text), "%u", root->procs);
	bench_result_env(out->result, "peer_processes", text);
	bench_result_env(out->result, "pinned", o->pin ? "yes" : "no");
	if (dev) {
		bench_result_env(out->result, "device", ibv_get_device_name(dev->ctx->device));
		bench_result_env(out->result, "firmware", dev->attr.fw_ver);
	}
	if (!out->table)
		return;
	printf("# %s\n# device %s, %s; %u cores", o->command,
	       dev ? ibv_get_device_name(dev->ctx->device) : "none", link, cores);
	if (root->procs)
		printf(", the peers are played by %u process%s%s", root->procs,
		       root->procs == 1 ? "" : "es", root->sleepy ? ", which sleep to wait" : "");
	putchar('\n');
}

int fan_out_keep(struct fan_out *out, bool now)
{
	const struct fan_opts *o = out->o;
	int ret = 0;

	fflush(stdout);
	/* Standard output gets one document, at the end. */
	if (!now && (bench_now() - out->written < KEEP_NS || !out->table))
		return 0;
	out->written = bench_now();
	if (o->json)
		ret = bench_result_write(out->result, o->json);
	if (o->csv && !ret)
		ret = bench_result_write_csv(out->result, o->csv);
	if (ret)
		fprintf(stderr, "weft bench verbs: cannot write %s: %s\n",
			o->json ? o->json : o->csv, strerror(-ret));
	return ret;
}

void fan_out_end(struct fan_out *out)
{
	bench_result_free(out->result);
	out->result = NULL;
}
