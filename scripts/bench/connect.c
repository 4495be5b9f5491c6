// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Makes connections one after the other, each closed before the next. Measures how many there are
 * in a second, their cost, and how many fail, although none has a reason to.
 */
#include "flow.h"

/**
 * connect_rate() - measure connections per second
 * @o: what is to be measured
 *
 * Context: user space.
 */
void connect_rate(const struct options *o)
{
	struct set set = { .depth = 16 };
	struct queues queues[2];
	struct stamp from, to;
	__u64 begin, n, failed = 0;
	struct end ends[2];

	set_sides(&set, o);
	for (int i = 0; i < 2; i++) {
		queues[i] = queues_of(&set.sides[i], set.depth);
		queues[i].sge = 1;
	}
	stamp_take(&from);
	begin = ticks_now();
	for (n = 0; o->count ? n < o->count : seconds_of(ticks_now() - begin) < o->seconds; n++) {
		failed += !conn_open(ends, &set.sides[0], set.passive, queues);
		end_close(&ends[0]);
		end_close(&ends[1]);
	}
	stamp_take(&to);
	stamp_print(&from, &to, n, 0);
	printf("\"failed\": %llu, ", failed);
}
