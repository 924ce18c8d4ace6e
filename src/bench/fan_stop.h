/* When a run ends before all is measured: its time is over, or a signal has said so. What there is
 * is printed and kept then. One run in a process. */
#ifndef WEFT_BENCH_FAN_STOP_H
#define WEFT_BENCH_FAN_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* From now on SIGINT, SIGTERM and SIGHUP are taken note of; the second of a kind ends us at once.
 */
void fan_stop_catch(void);
/* The signal, or 0. */
int fan_stop_told(void);
bool fan_stop_now(uint64_t deadline);

#endif
