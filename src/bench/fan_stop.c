#include "fan_stop.h"

#include <signal.h>
#include <stddef.h>

#include "bench_time.h"

static volatile sig_atomic_t told;

static void take(int number)
{
	told = number;
}

void fan_stop_catch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	/* Who says it twice does not want to wait for the end of the step. */
	struct sigaction sa = {.sa_handler = take, .sa_flags = SA_RESTART | SA_RESETHAND};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &sa, NULL);
}

int fan_stop_told(void)
{
	return told;
}

bool fan_stop_now(uint64_t deadline)
{
	return told || bench_now() >= deadline;
}
