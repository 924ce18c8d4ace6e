/* weft lab: what its subcommands share. Each of them is a cli_command with a file of its
 * own; cli_lab.c finds the one that was meant.
 */
#ifndef WEFT_CLI_LAB_H
#define WEFT_CLI_LAB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lab.h"

int cli_lab_up(int argc, char **argv);
int cli_lab_down(int argc, char **argv);
int cli_lab_exec(int argc, char **argv);
int cli_lab_list(int argc, char **argv);
int cli_lab_show(int argc, char **argv);
int cli_lab_top(int argc, char **argv);
int cli_lab_draw(int argc, char **argv);
int cli_lab_cross(int argc, char **argv);
int cli_lab_fail(int argc, char **argv);
int cli_lab_heal(int argc, char **argv);

/* ---- cli_lab.c ---- */

/* Opens the lab that is the only argument left; complains and returns CLI_USAGE if there
 * is none, or more than one, or no lab of that name. */
int cli_lab_open_only(struct lab *lab, int argc, char **argv);
/* Opens a lab, or complains and returns CLI_USAGE. */
int cli_lab_open(struct lab *lab, const char *name);

/* A time option, for example "--interval"; 0, or CLI_USAGE after a complaint. */
int cli_lab_time(const char *option, const char *text, uint64_t *ns);
int cli_lab_rate(const char *option, const char *text, uint64_t *rate);

/* ---- cli_lab_text.c ---- */

/* "PGFT(2;12,2;1,12;1,1)", "10.64.0.0/25", "100mbit", "dmodk", "2024-05-01 12:00:00" */
struct cli_lab_texts {
	char tree[FABRIC_TUPLE_MAX];
	char net[32];
	char rate[32];
	char routing[FABRIC_ROUTING_NAME_MAX];
	char since[32];
};

void cli_lab_texts(const struct lab *lab, struct cli_lab_texts *t);
const char *cli_lab_owner(const struct lab *lab);
void cli_lab_address(const struct lab_spec *s, struct fabric_node n, uint32_t a, char text[16]);

/* Facts about the lab as a whole; the same keys wherever --json prints a lab. */
json_t *cli_lab_head(const struct lab *lab);
/* Prints and releases it: one object on several lines, or on one (for a stream). */
void cli_lab_print_json(json_t *value, bool one_line);

/* "999", "12.3k", "1.2M" …: at most 6 characters, powers of 1000. */
void cli_lab_amount(double value, char text[16]);

static inline uint32_t cli_lab_switches(const struct lab *lab)
{
	return fabric_nodes(&lab->spec.tree) - fabric_hosts(&lab->spec.tree);
}

/* ---- cli_lab_measure.c ---- */

/* All cables, as they were at the last look. */
struct cli_lab_measure {
	const struct lab *lab;
	struct lab_watch *watch;
	uint32_t cables;
	struct lab_load *now;
	double seconds; /* since the look before */
};

/* Open takes the first look, look another. 0, or -errno and a sentence. */
int cli_lab_measure_open(struct cli_lab_measure *m, const struct lab *lab, struct lab_error *e);
int cli_lab_measure_look(struct cli_lab_measure *m, struct lab_error *e);
void cli_lab_measure_close(struct cli_lab_measure *m);
/* Open, wait, look: complains by itself; 0, CLI_USAGE or CLI_FAILED. */
int cli_lab_measure_once(struct cli_lab_measure *m, const struct lab *lab, uint64_t interval);
void cli_lab_wait(uint64_t ns);

#endif
