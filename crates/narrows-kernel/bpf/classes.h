/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Packets that wait, in classes, and which class sends next (narrows-core: sched/scheduled.rs, prio.rs, drr.rs; dbhpd.h has its own
 * file). A FIFO is a single class.
 */
#ifndef NARROWS_CLASSES_H
#define NARROWS_CLASSES_H

#include "state.h"

/* The length of the first packet of a class that has one. */
NARROWS_INLINE narrows_u32 narrows_first_length(const struct narrows_direction *d, narrows_u32 direction, narrows_u32 class)
{
	const struct narrows_packet *first = narrows_packet(direction, d->state.queue.class[class & 31].first);

	return first ? first->length : 0;
}

/* The lowest number in a set that is not empty. */
NARROWS_INLINE narrows_u32 narrows_lowest(narrows_u32 set)
{
	narrows_u32 below = (set & -set) - 1;

	/* Clang would otherwise make one operation of both, for which it needs a table in memory. */
	NARROWS_OPAQUE(below);
	return (narrows_u32)__builtin_popcount(below);
}

/* DRR: no class could send in a whole round. Grants at once what all rounds but the last one before some class can would grant. */
NARROWS_PART int narrows_skip_rounds(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u64 rounds = NARROWS_NEVER >> 1, missing, quantum;
	struct narrows_queue_state *s;
	narrows_u32 at, class;

	if (!d)
		return 0;
	s = &d->state.queue;
	for (at = 0; at < s->turns && NARROWS_MAY_LOOP; at = (narrows_u32)narrows_hide(d, at + 1)) {
		class = s->order[(s->turn + at) & 31] & 31;
		quantum = d->parameters.queue.class[class].quantum;
		missing = (narrows_u64)((narrows_s64)narrows_first_length(d, direction, class) - s->class[class].deficit);
		missing = quantum ? (missing + quantum - 1) / quantum : 0;
		if (missing < rounds)
			rounds = missing;
		rounds = narrows_hide(d, rounds);
	}
	rounds = narrows_hide(d, rounds);
	for (at = 0; at < s->turns && NARROWS_MAY_LOOP; at = (narrows_u32)narrows_hide(d, at + 1)) {
		class = s->order[(s->turn + at) & 31] & 31;
		s->class[class].deficit += (narrows_s64)((rounds - 1) * d->parameters.queue.class[class].quantum);
	}
	return 0;
}

NARROWS_PART narrows_u32 narrows_drr_select(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u32 passed = 0, class = 0;
	struct narrows_queue_state *s;

	if (!d)
		return 0;
	s = &d->state.queue;
	while (NARROWS_MAY_LOOP) {
		class = s->order[s->turn & 31] & 31;
		if (!s->granted) {
			s->class[class].deficit += (narrows_s64)d->parameters.queue.class[class].quantum;
			s->granted = 1;
		}
		if ((narrows_s64)narrows_first_length(d, direction, class) <= s->class[class].deficit)
			break;
		/* To the end of the row. */
		s->order[(s->turn + s->turns) & 31] = (narrows_u8)class;
		s->turn++;
		s->granted = 0;
		if (++passed == s->turns)
			narrows_skip_rounds(direction);
	}
	return class;
}

/* The class whose turn it is has no packets left. */
NARROWS_INLINE void narrows_drr_emptied(struct narrows_queue_state *s, narrows_u32 class)
{
	s->class[class & 31].deficit = 0;
	s->granted = 0;
	s->turn++;
	s->turns--;
}

NARROWS_INLINE void narrows_drr_sent(struct narrows_queue_state *s, narrows_u32 class, narrows_u32 length)
{
	s->class[class & 31].deficit -= length;
	if (s->class[class & 31].packets == 0)
		narrows_drr_emptied(s, class);
}

#endif
