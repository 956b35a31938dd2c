/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Queue management of a class: CoDel, PIE and RED (narrows-core: aqm/codel.rs, pie.rs, periodic.rs and red.rs, where
 * the equations are). PIE and RED compute with doubles, in the order of the engine's operations, so that they decide the same.
 */
#ifndef NARROWS_MANAGEMENT_H
#define NARROWS_MANAGEMENT_H

#include "classes.h"
#include "float.h"

enum narrows_judgement {
	NARROWS_PASS = 0,
	NARROWS_MARK_IT = 1,
	NARROWS_DROP_IT = 2,
};

/* Congestion is signalled by a mark, if packets are marked and this one can be. */
NARROWS_INLINE int narrows_congestion(int marks, narrows_u32 traffic_class)
{
	return marks && (traffic_class & NARROWS_ECN) ? NARROWS_MARK_IT : NARROWS_DROP_IT;
}

/* What CoDel did to the packet before this one, at the same instant. */
enum narrows_after {
	NARROWS_DEPARTURE = 0,
	NARROWS_FIRST_DROP = 1, /* dropping began: this packet passes in any case */
	NARROWS_DUE_DROP = 2,
};

/* CoDel: interval / sqrt(count) nanoseconds, rounded down. */
NARROWS_PART narrows_u64 narrows_codel_gap(narrows_u64 interval, narrows_u32 count)
{
	struct narrows_wide square = narrows_product(interval, interval);
	narrows_u64 gap = 0;

	/* Intervals are below 2^37 nanoseconds, so upper halves are far below 2^63. */
	for (int bit = 36; bit >= 0; bit--) {
		narrows_u64 larger = gap | 1ULL << bit, fits;
		struct narrows_wide product = narrows_times(narrows_product(larger, larger), count);

		fits = ~(square.high - product.high - narrows_borrow(square.low, product.low)) >> 63;
		NARROWS_OPAQUE(fits);
		gap |= fits << bit;
	}
	return gap;
}

/* CoDel: by its control law, about the first packet, which has waited for so long. */
NARROWS_PART int narrows_codel_judges(narrows_u32 direction, narrows_u32 class, narrows_u64 now, narrows_u64 waited, narrows_u32 traffic_class)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_codel *p;
	struct narrows_codel_state *s;
	int may_drop = 0, congestion;
	narrows_u32 after, drops;

	if (!d)
		return 0;
	p = &d->parameters.queue.class[class & 31].policy.codel;
	s = &d->state.queue.class[class & 31].policy.codel;
	congestion = narrows_congestion(d->parameters.queue.class[class & 31].policy.marks, traffic_class);
	/* What waits behind it. */
	if (waited < p->target ||
	    d->state.queue.class[class & 31].bytes - narrows_first_length(d, direction, class) <= p->longest)
		s->first_above = 0;
	else if (!s->first_above)
		s->first_above = now + p->interval;
	else
		may_drop = now >= s->first_above;

	after = s->after;
	s->after = NARROWS_DEPARTURE;
	if (after == NARROWS_FIRST_DROP)
		return 0;
	if (after == NARROWS_DUE_DROP && may_drop) {
		s->drop_next += narrows_codel_gap(p->interval, s->count);
	} else if (after == NARROWS_DEPARTURE && !s->dropping && may_drop) {
		drops = s->count - s->last_count;
		s->count = drops > 1 && now < s->drop_next + 16 * p->interval ? drops : 1;
		s->last_count = s->count;
		s->drop_next = now + narrows_codel_gap(p->interval, s->count);
		s->dropping = 1;
		if (congestion == NARROWS_DROP_IT)
			s->after = NARROWS_FIRST_DROP;
		return congestion;
	} else {
		s->dropping = s->dropping && may_drop;
	}
	if (!s->dropping || now < s->drop_next)
		return 0;
	if (s->count != ~0U)
		s->count++;
	if (congestion == NARROWS_DROP_IT)
		s->after = NARROWS_DUE_DROP;
	else
		s->drop_next += narrows_codel_gap(p->interval, s->count);
	return congestion;
}

/* PIE: what the probability's steps are multiplied by, less for a small one. */
NARROWS_INLINE narrows_u64 narrows_pie_scale(narrows_u64 probability)
{
	if (probability < 0x3eb0c6f7a0b5ed8dULL) /* 10^-6 */
		return 0x3f40000000000000ULL; /* 1/2048 */
	if (probability < 0x3ee4f8b588e368f1ULL)
		return 0x3f60000000000000ULL; /* 1/512 */
	if (probability < 0x3f1a36e2eb1c432dULL)
		return 0x3f80000000000000ULL; /* 1/128 */
	if (probability < 0x3f50624dd2f1a9fcULL)
		return 0x3fa0000000000000ULL; /* 1/32 */
	if (probability < 0x3f847ae147ae147bULL)
		return 0x3fc0000000000000ULL; /* 1/8 */
	if (probability < 0x3fb999999999999aULL) /* 0.1 */
		return NARROWS_HALF;
	return NARROWS_ONE;
}

#define NARROWS_PIE_STEP 0x3f947ae147ae147bULL /* 0.02 */
#define NARROWS_PIE_BEGINS 0x3fb999999999999aULL /* 0.1 */
#define NARROWS_PIE_SMALL 0x3fc999999999999aULL /* 0.2 */
#define NARROWS_PIE_DECAY 0x3fef5c28f5c28f5cULL /* 0.98 */
/* Of probabilities that are summed: one, and from where to where a packet is dropped by chance. */
#define NARROWS_PIE_UNITS 0x41b0000000000000ULL
#define NARROWS_PIE_EVEN_FROM 228170137U
#define NARROWS_PIE_EVEN_TO 2281701376U

/* PIE: an update with this delay in nanoseconds. Returns whether more of them would only record their delay. */
NARROWS_PART int narrows_pie_update(narrows_u32 direction, narrows_u32 class, narrows_u64 delay)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_pie *p;
	struct narrows_pie_state *s;
	narrows_u64 seconds, step, probability, before, old;

	if (!d)
		return 1;
	p = &d->parameters.queue.class[class & 31].policy.pie;
	s = &d->state.queue.class[class & 31].policy.pie;
	before = s->probability;
	old = s->old_delay;
	seconds = narrows_seconds(delay);
	step = narrows_multiply(p->alpha, narrows_subtract(seconds, p->target_seconds));
	step = narrows_add(step, narrows_multiply(p->beta, narrows_subtract(seconds, s->old_seconds)));
	step = narrows_multiply(step, narrows_pie_scale(before));
	if (p->cap_drop && before >= NARROWS_PIE_BEGINS && narrows_is_below(NARROWS_PIE_STEP, step))
		step = NARROWS_PIE_STEP;
	if (delay > p->high_delay)
		step = narrows_add(step, NARROWS_PIE_STEP);
	probability = narrows_add(before, step);
	if (!delay && !old)
		probability = narrows_multiply(probability, NARROWS_PIE_DECAY);
	if (probability & NARROWS_SIGN)
		probability = 0;
	if (probability > NARROWS_ONE)
		probability = NARROWS_ONE;
	s->probability = probability;
	s->old_delay = delay;
	s->old_seconds = seconds;
	if (s->since_grant != ~0U)
		s->since_grant++;
	if (!delay)
		return probability == before && !old;
	return probability >= NARROWS_ONE && delay >= p->target;
}

/* PIE: the updates up to `now`, before a packet of this instant moves. The first packet arrived at `oldest`, if there is one. */
NARROWS_PART int narrows_pie_catch_up(narrows_u32 direction, narrows_u32 class, narrows_u64 now, narrows_u64 oldest)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u64 epoch, period, due, idle, next, until, delay;
	struct narrows_pie_state *s;

	if (!d)
		return 0;
	s = &d->state.queue.class[class & 31].policy.pie;
	period = d->parameters.queue.class[class & 31].policy.pie.period;
	epoch = *(volatile narrows_u64 *)&d->epoch;
	/* Updates are counted from the start of the run. */
	if (!epoch || !period || now < epoch)
		return 0;
	due = (now - epoch) / period;
	/* Up to this update the queue was empty, or its delay zero. */
	idle = oldest == NARROWS_NEVER ? due : oldest > epoch ? (oldest - epoch) / period : 0;
	while (s->updates < due && NARROWS_MAY_LOOP) {
		next = s->updates + 1;
		until = next <= idle ? idle : due;
		if (until > due)
			until = due;
		s->updates = next;
		delay = epoch + next * period > oldest ? epoch + next * period - oldest : 0;
		if (!narrows_pie_update(direction, class, delay))
			continue;
		s->updates = until;
		delay = epoch + until * period > oldest ? epoch + until * period - oldest : 0;
		s->old_delay = delay;
		s->old_seconds = narrows_seconds(delay);
		next = s->since_grant + (until - next);
		s->since_grant = next > ~0U ? ~0U : (narrows_u32)next;
	}
	return 0;
}

/* PIE: about a packet that arrives, after all updates. The first one arrived at `oldest`, if there is one. */
NARROWS_PART int narrows_pie_judges(narrows_u32 direction, narrows_u32 class, narrows_u64 now, narrows_u64 oldest, narrows_u64 bits)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u64 delay = oldest < now ? now - oldest : 0, probability, drawn, sum;
	const struct narrows_pie *p;
	struct narrows_pie_state *s;
	narrows_u32 own, is_let_in, marks;

	if (!d)
		return 0;
	p = &d->parameters.queue.class[class & 31].policy.pie;
	s = &d->state.queue.class[class & 31].policy.pie;
	if (!s->probability && 2 * delay < p->target && 2 * s->old_delay < p->target)
		s->since_grant = 0;
	probability = s->probability;
	if (p->byte_mode && d->headers.length < p->mean) {
		probability = narrows_multiply(probability, narrows_of_whole(d->headers.length));
		probability = narrows_divide(probability, narrows_of_whole(p->mean));
	}
	if (s->since_grant < p->grants || (2 * s->old_delay < p->target && s->probability < NARROWS_PIE_SMALL) ||
	    d->state.queue.class[class & 31].bytes <= 2 * p->mean)
		return 0;
	drawn = narrows_uniform(bits);
	is_let_in = drawn >= probability;
	if (p->derandomize) {
		own = (narrows_u32)narrows_whole(narrows_add(narrows_multiply(probability, NARROWS_PIE_UNITS), NARROWS_HALF));
		sum = probability ? s->accumulated + own : 0;
		is_let_in = sum < NARROWS_PIE_EVEN_FROM || (sum < NARROWS_PIE_EVEN_TO && is_let_in);
		s->accumulated = is_let_in ? (narrows_u32)sum : 0;
	}
	marks = d->parameters.queue.class[class & 31].policy.marks && s->probability < p->max_ecn;
	return is_let_in ? NARROWS_PASS : narrows_congestion(marks, d->headers.traffic_class);
}

/* A step of Horner's scheme. */
#define NARROWS_AND_THEN(sum, at, term) narrows_add(narrows_multiply(sum, at), term)

/* RED: 2^-all, what remains of an average that has halved so often. */
NARROWS_PART narrows_u64 narrows_red_remains(narrows_u64 all)
{
	narrows_u64 whole, rest, sum = 0xbd7816193166d0f9ULL;

	if (all >= 0x408f400000000000ULL) /* 1000 */
		return 0;
	whole = narrows_whole(narrows_add(all, NARROWS_HALF));
	rest = narrows_subtract(all, narrows_of_whole(whole));
	sum = NARROWS_AND_THEN(sum, rest, 0x3dbc3bd650fc2986ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0xbdfe8cac7351bb25ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0x3e3e4cf5158b8ecaULL);
	sum = NARROWS_AND_THEN(sum, rest, 0xbe7b5253d395e7c4ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0x3eb62c0223a5c824ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0xbeeffcbfc588b0c7ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0x3f2430912f86c787ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0xbf55d87fe78a6731ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0x3f83b2ab6fba4e77ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0xbfac6b08d704a0c0ULL);
	sum = NARROWS_AND_THEN(sum, rest, 0x3fcebfbdff82c58fULL);
	sum = NARROWS_AND_THEN(sum, rest, 0xbfe62e42fefa39efULL);
	sum = NARROWS_AND_THEN(sum, rest, NARROWS_ONE);
	return narrows_multiply(sum, (1023 - whole) << 52);
}

/* RED: a packet that arrives counts in the average. */
NARROWS_PART int narrows_red_observes(narrows_u32 direction, narrows_u32 class, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_class_state *c;
	const struct narrows_red *p;
	struct narrows_red_state *s;
	narrows_u64 packets, length, passed;

	if (!d)
		return 0;
	p = &d->parameters.queue.class[class & 31].policy.red;
	c = &d->state.queue.class[class & 31];
	s = &d->state.queue.class[class & 31].policy.red;
	packets = c->packets;
	if (!packets && p->restart) {
		s->average = 0;
		s->count = 0;
	} else if (!packets && s->is_idle) {
		passed = now - s->idle_since;
		if (passed && d->parameters.rate == NARROWS_UNLIMITED) {
			s->average = 0;
		} else if (passed && d->parameters.rate) {
			/* How many typical packets could have been sent. */
			passed = narrows_multiply(narrows_seconds(passed), narrows_of_whole(d->parameters.rate));
			passed = narrows_divide(passed, narrows_of_whole(p->typical_bits));
			s->average = narrows_multiply(s->average, narrows_red_remains(narrows_multiply(p->halvings, passed)));
		}
	} else {
		length = narrows_of_whole(p->in_bytes ? c->bytes : packets);
		length = narrows_multiply(p->weight, narrows_subtract(length, s->average));
		s->average = narrows_add(s->average, length);
	}
	s->is_idle = 0;
	return 0;
}

/* RED: the probability at the present average. */
NARROWS_PART narrows_u64 narrows_red_probability(narrows_u32 direction, narrows_u32 class)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_red *p;
	narrows_u64 average, above;

	if (!d)
		return 0;
	p = &d->parameters.queue.class[class & 31].policy.red;
	average = d->state.queue.class[class & 31].policy.red.average;
	if (average < p->min)
		return 0;
	if (average < p->max) {
		above = narrows_multiply(p->probability, narrows_subtract(average, p->min));
		return narrows_divide(above, narrows_subtract(p->max, p->min));
	}
	if (!p->gentle || average >= p->max + (1ULL << 52))
		return NARROWS_ONE;
	above = narrows_multiply(narrows_subtract(NARROWS_ONE, p->probability), narrows_subtract(average, p->max));
	return narrows_add(p->probability, narrows_divide(above, p->max));
}

/* RED: about a packet that arrives, and has been observed. */
NARROWS_PART int narrows_red_judges(narrows_u32 direction, narrows_u32 class, narrows_u64 now, narrows_u64 bits)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_red *p;
	struct narrows_red_state *s;
	narrows_u64 base, left;
	int drops_all, judgement;

	if (!d)
		return 0;
	p = &d->parameters.queue.class[class & 31].policy.red;
	s = &d->state.queue.class[class & 31].policy.red;
	base = narrows_red_probability(direction, class);
	if (narrows_is_zero(base)) {
		s->count = 0;
		return 0;
	}
	if (p->in_bytes && base < NARROWS_ONE && p->longest)
		base = narrows_multiply(base, narrows_divide(narrows_of_whole(d->headers.length), p->longest));
	left = narrows_subtract(NARROWS_ONE, narrows_multiply(narrows_of_whole(s->count), base));
	if (narrows_is_below(base, left) && narrows_uniform(bits) >= narrows_divide(base, left)) {
		s->count++;
		return 0;
	}
	s->count = 0;
	/* Above all thresholds. */
	drops_all = p->harddrop && s->average >= (p->gentle ? p->max + (1ULL << 52) : p->max);
	judgement = narrows_congestion(d->parameters.queue.class[class & 31].policy.marks && !drops_all, d->headers.traffic_class);
	if (judgement == NARROWS_DROP_IT && p->nodrop && !drops_all)
		judgement = NARROWS_PASS;
	if (judgement == NARROWS_DROP_IT && !d->state.queue.class[class & 31].packets) {
		/* It stays empty. */
		s->is_idle = 1;
		s->idle_since = now;
	}
	return judgement;
}

/* Whether the policy of a class drops the next packet, whose headers are in the direction, when it arrives. It may mark it instead. */
NARROWS_PART int narrows_drops_arrival(narrows_u32 direction, narrows_u32 class, narrows_u64 now, narrows_u64 number)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_packet *first;
	struct narrows_class_state *c;
	narrows_u64 bits[2], oldest;
	int judgement = NARROWS_PASS;

	if (!d)
		return 0;
	c = &d->state.queue.class[class & 31];
	first = c->packets ? narrows_packet(direction, c->first) : 0;
	oldest = first ? first->arrival : NARROWS_NEVER;
	switch (d->parameters.queue.class[class & 31].policy.kind) {
	case NARROWS_CODEL:
		if (!c->packets)
			c->policy.codel.first_above = 0;
		break;
	case NARROWS_PIE:
		narrows_pie_catch_up(direction, class, now, oldest);
		narrows_draw(d->parameters.queue.key, number, d->parameters.origin, 0, bits);
		judgement = narrows_pie_judges(direction, class, now, oldest, bits[0]);
		break;
	case NARROWS_RED:
		narrows_red_observes(direction, class, now);
		narrows_draw(d->parameters.queue.key, number, d->parameters.origin, 0, bits);
		judgement = narrows_red_judges(direction, class, now, bits[0]);
		break;
	default:
		break;
	}
	if (judgement == NARROWS_MARK_IT)
		d->headers.traffic_class |= NARROWS_ECN;
	return judgement == NARROWS_DROP_IT;
}

/* Whether the policy of a class drops its first packet, which is to be sent. It may mark it instead. */
NARROWS_PART int narrows_drops_departure(narrows_u32 direction, narrows_u32 class, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_codel *codel;
	struct narrows_class_state *c;
	struct narrows_packet *first;
	int judgement = NARROWS_PASS;
	narrows_u64 waited;

	if (!d)
		return 0;
	c = &d->state.queue.class[class & 31];
	first = narrows_packet(direction, c->first);
	if (!first)
		return 0;
	waited = now - first->arrival;
	switch (d->parameters.queue.class[class & 31].policy.kind) {
	case NARROWS_CODEL:
		codel = &d->parameters.queue.class[class & 31].policy.codel;
		judgement = narrows_codel_judges(direction, class, now, waited, first->traffic_class);
		if (judgement == NARROWS_PASS && waited > codel->ce_threshold && (first->traffic_class & NARROWS_ECN) &&
		    (first->traffic_class & codel->ce_mask) == codel->ce_value)
			judgement = NARROWS_MARK_IT;
		break;
	case NARROWS_PIE:
		narrows_pie_catch_up(direction, class, now, first->arrival);
		break;
	case NARROWS_RED:
		if (c->packets == 1) {
			c->policy.red.is_idle = 1;
			c->policy.red.idle_since = now;
		}
		break;
	default:
		break;
	}
	if (judgement == NARROWS_MARK_IT)
		first->traffic_class |= NARROWS_ECN;
	return judgement == NARROWS_DROP_IT;
}

#endif
