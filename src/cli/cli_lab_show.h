/* Parts of weft lab show. */
#ifndef WEFT_CLI_LAB_SHOW_H
#define WEFT_CLI_LAB_SHOW_H

#include "cli_lab.h"

/* Everything about the lab that was measured, routes included, or NULL and a sentence. */
json_t *cli_lab_all(const struct cli_lab_measure *m, struct lab_error *e);

/* Routes for people: one line per node and port. 0, or -errno and a sentence. */
int cli_lab_print_routes(const struct lab *lab, struct lab_error *e);

#endif
