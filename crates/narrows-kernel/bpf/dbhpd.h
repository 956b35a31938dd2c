/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Delay-bounded hybrid proportional delay, with the integers of narrows-core (sched/hpd.rs, where the equations are, and largest.rs,
 * estimate.rs, gamma.rs): the same class is chosen for the same arrivals.
 */
#ifndef NARROWS_DBHPD_H
#define NARROWS_DBHPD_H

#include "classes.h"

#define NARROWS_WHOLE (1ULL << 32)
#define NARROWS_FRACTION 16
#define NARROWS_LONGEST ((1ULL << 47) - 1)

/* DBHPD's weight by the backlog, of 2^32; the includer has the memory. */
NARROWS_INLINE narrows_u64 narrows_gamma(narrows_u32 direction, narrows_u64 packets);

/* The hybrid delay, in the units that make it an integer. */
NARROWS_INLINE struct narrows_wide narrows_hybrid(const struct narrows_direction *d, narrows_u64 now, narrows_u32 class)
{
	const struct narrows_class_state *c = &d->state.queue.class[class & 31];
	narrows_u64 waited = now > c->head ? now - c->head : 0;

	return narrows_sum(c->term, narrows_product(d->parameters.queue.class[class & 31].slope, waited));
}

/* The class with the largest hybrid delay of those that wait, at least one; on a tie, the one with the lowest number. */
NARROWS_PART narrows_u32 narrows_largest(narrows_u32 direction, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_class *classes;
	narrows_u32 rest, best;
	struct narrows_wide most;

	if (!d)
		return 0;
	classes = d->parameters.queue.class;
	rest = d->state.queue.waiting;
	best = narrows_lowest(rest) & 31;
	most = narrows_hybrid(d, now, best);
	rest &= rest - 1;
	while (rest && NARROWS_MAY_LOOP) {
		narrows_u32 other = narrows_lowest(rest) & 31;
		struct narrows_wide hybrid = narrows_hybrid(d, now, other), one = hybrid, two = most;

		if (!d->parameters.queue.common) {
			one = narrows_times(one, classes[best & 31].ddp);
			two = narrows_times(two, classes[other].ddp);
		}
		if (narrows_is_more(one, two)) {
			best = other;
			most = hybrid;
		}
		rest &= rest - 1;
	}
	return best;
}

NARROWS_INLINE narrows_u64 narrows_later(narrows_u64 at, narrows_u64 by)
{
	return at > NARROWS_NEVER - by ? NARROWS_NEVER : at + by;
}

/* The class to serve because its bound is at stake, or NARROWS_NONE. `instant` is when the class that is served otherwise is done. */
NARROWS_PART narrows_u32 narrows_violator(narrows_u32 direction, narrows_u64 instant)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u32 rest, found = NARROWS_NONE;
	narrows_u64 first = NARROWS_NEVER;

	if (!d)
		return NARROWS_NONE;
	rest = d->state.queue.waiting & d->parameters.queue.bounded;
	while (rest && NARROWS_MAY_LOOP) {
		narrows_u32 class = narrows_lowest(rest) & 31;
		narrows_u64 deadline = narrows_later(d->state.queue.class[class].head, d->parameters.queue.class[class].bound);

		if (instant > deadline && (!d->parameters.queue.earliest_deadline || deadline < first)) {
			found = class;
			first = deadline;
		}
		rest &= rest - 1;
	}
	return found;
}

NARROWS_INLINE void narrows_set_average(const struct narrows_class *class, struct narrows_class_state *c, narrows_u64 average)
{
	c->average = average;
	c->term = narrows_product(class->factor, average);
}

/* d <- gamma d + (1 - gamma) d, rounded to nearest. */
NARROWS_INLINE narrows_u64 narrows_smooth(narrows_u64 average, narrows_u64 scaled, narrows_u64 gamma)
{
	struct narrows_wide half = { 0, NARROWS_WHOLE / 2 };
	struct narrows_wide sum = narrows_sum(narrows_product(scaled, gamma), narrows_product(average, NARROWS_WHOLE - gamma));

	sum = narrows_sum(sum, half);
	return sum.high << 32 | sum.low >> 32;
}

/* EWMA-pe: by how many steps the delay differs from the average, at least one and at most `steps`. */
NARROWS_INLINE narrows_u64 narrows_error_steps(const struct narrows_class *class, narrows_u64 average, narrows_u64 scaled)
{
	narrows_u64 error = scaled > average ? scaled - average : average - scaled;
	narrows_u64 low = 1, high = class->steps ? class->steps : 1;
	struct narrows_wide parts = narrows_product(error, class->parts);

	/* The least n with n * average >= error * parts. */
	while (low < high && NARROWS_MAY_LOOP) {
		narrows_u64 middle = (low + high) / 2;

		if (narrows_is_more(parts, narrows_product(average, middle)))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A packet has joined a class at `now`. */
NARROWS_PART int narrows_dbhpd_joined(narrows_u32 direction, narrows_u32 number, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_class *class;
	struct narrows_class_state *c;

	if (!d)
		return 0;
	class = &d->parameters.queue.class[number & 31];
	c = &d->state.queue.class[number & 31];
	if (c->packets > 1)
		return 0;
	c->head = now;
	/* A class that never had a packet is as it begins. */
	if (class->estimator == NARROWS_EWMA_R && (!c->idle_since || now - c->idle_since >= class->cycle)) {
		struct narrows_wide none = { 0, 0 };

		c->sum = none;
		c->count = 0;
		c->is_mean = 1;
		narrows_set_average(class, c, 0);
	}
	return 0;
}

/* The class's first packet, which arrived at `arrival`, has been sent at `now`; those behind it are still there. */
NARROWS_PART int narrows_dbhpd_sent(narrows_u32 direction, narrows_u32 number, narrows_u64 arrival, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_class *class;
	struct narrows_class_state *c;
	narrows_u64 nanos = now > arrival ? now - arrival : 0, gamma, scaled, average;
	const struct narrows_packet *first;

	if (!d)
		return 0;
	class = &d->parameters.queue.class[number & 31];
	c = &d->state.queue.class[number & 31];
	average = c->average;
	if (nanos > NARROWS_LONGEST)
		nanos = NARROWS_LONGEST;
	scaled = nanos << NARROWS_FRACTION;
	gamma = class->gamma == NARROWS_NEVER ? narrows_gamma(direction, c->packets + 1) : class->gamma;
	if (class->estimator == NARROWS_EWMA_R && c->is_mean && c->count < class->threshold) {
		struct narrows_wide add = { 0, nanos }, half = { 0, 0 }, scaled_sum;

		c->count++;
		c->sum = narrows_sum(c->sum, add);
		scaled_sum.high = c->sum.high << NARROWS_FRACTION | c->sum.low >> (64 - NARROWS_FRACTION);
		scaled_sum.low = c->sum.low << NARROWS_FRACTION;
		half.low = c->count / 2;
		average = narrows_quotient(narrows_sum(scaled_sum, half), c->count);
	} else {
		c->is_mean = 0;
		if (class->estimator == NARROWS_EWMA_PE) {
			gamma *= narrows_error_steps(class, average, scaled);
			if (gamma > NARROWS_WHOLE)
				gamma = NARROWS_WHOLE;
		}
		average = narrows_smooth(average, scaled, gamma);
	}
	narrows_set_average(class, c, average);
	first = c->packets ? narrows_packet(direction, c->first) : 0;
	if (first)
		c->head = first->arrival;
	else
		c->idle_since = now;
	return 0;
}

#endif
