/* How long an experiment may take, so that all of them together are through in time. */
#include "repro.h"

#include <math.h>

/* To start programs takes its time, too: ten seconds, on a machine that is busy. */
double repro_weight(double seconds)
{
	return seconds + 10;
}

double repro_budget(double left, double seconds, double weights)
{
	double most = 20 + 3 * seconds;

	if (!(left > 0))
		return 0;
	return fmin(most, left * repro_weight(seconds) / weights);
}
