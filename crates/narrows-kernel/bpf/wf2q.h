/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * WF2Q+ (narrows-core: sched/wf2q.rs, where the equations and the bounds of all numbers are). With at most 32 classes, the one with the
 * least finish tag is found by looking at all.
 */
#ifndef NARROWS_WF2Q_H
#define NARROWS_WF2Q_H

#include "classes.h"

#define NARROWS_WF2Q_FRACTION 24
#define NARROWS_WF2Q_BACK (1ULL << 61)
#define NARROWS_WF2Q_LATE (1ULL << 62)

/* The finish tag of the first packet of a class. */
NARROWS_INLINE narrows_u64 narrows_finish(const struct narrows_direction *d, narrows_u32 direction, narrows_u32 class)
{
	const struct narrows_class_state *c = &d->state.queue.class[class & 31];
	narrows_u64 work = ((narrows_u64)narrows_first_length(d, direction, class) << NARROWS_WF2Q_FRACTION) + c->remainder;

	return c->start + work / d->parameters.queue.class[class & 31].quantum;
}

/* No class with packets is before its time: virtual time is not before the least start tag. */
NARROWS_PART int narrows_wf2q_catch_up(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u64 least = NARROWS_NEVER;
	struct narrows_queue_state *q;
	narrows_u32 rest;

	if (!d)
		return 0;
	q = &d->state.queue;
	for (rest = q->waiting; rest && NARROWS_MAY_LOOP; rest &= rest - 1) {
		narrows_u64 start = q->class[narrows_lowest(rest) & 31].start;

		if (start < least)
			least = start;
	}
	if (q->waiting && least > q->virtual_time) {
		q->virtual_time = least;
		q->virtual_remainder = 0;
	}
	return 0;
}

/* The class that sends next, of those with packets: there is one. */
NARROWS_PART narrows_u32 narrows_wf2q_select(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u64 least = NARROWS_NEVER, finish;
	struct narrows_queue_state *q;
	narrows_u32 rest, class, found = 0;

	if (!d)
		return 0;
	q = &d->state.queue;
	for (rest = q->waiting; rest && NARROWS_MAY_LOOP; rest &= rest - 1) {
		class = narrows_lowest(rest) & 31;
		if (q->class[class].start > q->virtual_time)
			continue;
		finish = narrows_finish(d, direction, class);
		if (finish < least) {
			least = finish;
			found = class;
		}
	}
	return found;
}

/* A packet has joined a class that had none. */
NARROWS_PART int narrows_wf2q_joined(narrows_u32 direction, narrows_u32 class)
{
	struct narrows_direction *d = narrows_direction(direction);
	struct narrows_class_state *c;
	struct narrows_queue_state *q;

	if (!d)
		return 0;
	q = &d->state.queue;
	if (!q->virtual_time)
		q->virtual_time = NARROWS_WF2Q_BACK;
	c = &q->class[class & 31];
	if (c->start < q->virtual_time) {
		c->start = q->virtual_time;
		c->remainder = 0;
	}
	return narrows_wf2q_catch_up(direction);
}

/* A class has sent so many bytes. */
NARROWS_PART int narrows_wf2q_sent(narrows_u32 direction, narrows_u32 class, narrows_u32 length)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u64 work = (narrows_u64)length << NARROWS_WF2Q_FRACTION, sum, weight;
	struct narrows_class_state *c;
	struct narrows_queue_state *q;
	narrows_u32 other;

	if (!d)
		return 0;
	q = &d->state.queue;
	c = &q->class[class & 31];
	sum = d->parameters.queue.weights;
	weight = d->parameters.queue.class[class & 31].quantum;
	if (!sum || !weight)
		return 0;
	q->virtual_time += (work + q->virtual_remainder) / sum;
	q->virtual_remainder = (work + q->virtual_remainder) % sum;
	c->start += (work + c->remainder) / weight;
	c->remainder = (work + c->remainder) % weight;
	narrows_wf2q_catch_up(direction);
	if (q->virtual_time < NARROWS_WF2Q_LATE)
		return 0;
	q->virtual_time -= NARROWS_WF2Q_BACK;
	for (other = 0; other < NARROWS_CLASSES && NARROWS_MAY_LOOP; other = (narrows_u32)narrows_hide(d, other + 1)) {
		c = &q->class[other & 31];
		c->start = c->start > NARROWS_WF2Q_BACK ? c->start - NARROWS_WF2Q_BACK : 0;
	}
	return 0;
}

#endif
