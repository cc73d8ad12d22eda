/* Open MPI's ranks poll without end and, told to (mpi_yield_when_idle), call sched_yield when nothing has come.
 * On one machine that stands for many, polling takes the cores from the fabric: preloaded, this makes each such
 * call a short sleep. The time is in FABRIC_POLL_US, microseconds. */
#include <stdlib.h>
#include <time.h>

int sched_yield(void)
{
	static long nanoseconds = -1;

	if (nanoseconds < 0) {
		const char *text = getenv("FABRIC_POLL_US");

		nanoseconds = 1000 * (text ? atol(text) : 500);
	}
	struct timespec rest = {0, nanoseconds % 1000000000L};

	nanosleep(&rest, NULL);
	return 0;
}
