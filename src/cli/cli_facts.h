/* What `weft info` knows, gathered as JSON values: one source for the text and the
 * --json form. Each call returns a new reference; none of them fails: what can not
 * be found out is reported as such inside the value.
 */
#ifndef WEFT_CLI_FACTS_H
#define WEFT_CLI_FACTS_H

#include <jansson.h>

/* [{name, kind: "software"|"hardware", state, guid, lid?, gids?, error?, costs}] */
json_t *cli_facts_devices(void);

/* {needed, kept, sizes: [{bytes, register_ns, copy_ns, overhead_ns, uses or null}]} or {error} */
json_t *cli_facts_costs(const char *device);

/* [{name, role, path or null, get}] */
json_t *cli_facts_libraries(void);

/* [{name, present, why}], {cores, open_files, crc32c} */
json_t *cli_facts_kernel(void);
json_t *cli_facts_machine(void);

/* [{name, path or null, package, use}] */
json_t *cli_facts_programs(void);

/* [{name, version, reaches, how}] */
json_t *cli_facts_mpis(void);
/* Texts by name: what was measured on, and when. */
json_t *cli_facts_place(const char *weft);

/* [{name, value, default, set, error or null, type, help}] */
json_t *cli_facts_tunables(void);

/* [{what, why, get}], from the others */
json_t *cli_facts_missing(const json_t *info);

/* Path of rdma-core's own libibverbs.so.1, or NULL. Allocated. */
char *cli_real_verbs(void);

/* The tunables whose names begin so as a troff list, for weft-tunables(7) and fi_weft(7). */
void cli_tunables_man(const char *prefix, FILE *to);

#endif
