/* weft bench: its commands. */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

int cli_bench_verbs(int argc, char **argv);

#endif
