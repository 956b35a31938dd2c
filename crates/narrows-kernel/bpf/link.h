/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * One direction of a link: what happens to a packet, and when.
 *
 *     arrive -> loss at ingress -> classes, each a bounded FIFO -> scheduler -> transmitter -> loss on the wire -> delay line -> leave
 *
 * Queue management may drop packets that enter a class or are about to leave it.
 *
 * These files compute what narrows-core computes (link.rs, link/transmitter.rs, link/line.rs, service.rs): a test compiles them for
 * the host and compares. Times are nanoseconds of CLOCK_MONOTONIC. Everything happens at the instant at which it should:
 * narrows_catch_up() does, one by one and each at its own instant, what should have happened up to now, so being called late changes
 * no verdict.
 *
 * Pure: no helper, no map. The includer defines NARROWS_MAY_LOOP, which bounds loops for the verifier, and has the memory: what it
 * must define is declared where it is used.
 */
#ifndef NARROWS_LINK_H
#define NARROWS_LINK_H

#include "classes.h"
#include "dbhpd.h"
#include "feed.h"
#include "headers.h"
#include "loss.h"
#include "management.h"
#include "state.h"
#include "wf2q.h"

NARROWS_INLINE struct narrows_overtaking *narrows_overtaking(narrows_u32 direction, narrows_u32 index);
/* A packet's verdict, and its instant; and whether it has one. */
NARROWS_INLINE int narrows_is_decided(narrows_u32 direction, narrows_u64 number);
NARROWS_INLINE void narrows_decided(narrows_u32 direction, narrows_u64 number, narrows_u64 verdict, narrows_u64 at);
/* The packet in this slot was dropped inside the link. Returns the bytes of its frame. */
NARROWS_INLINE narrows_u32 narrows_discard(narrows_u32 direction, narrows_u32 slot);

/* The bits that a packet occupies on the wire. User space rejects overheads with which they would exceed 34 bits. */
NARROWS_INLINE narrows_u64 narrows_wire_bits(const struct narrows_parameters *p, narrows_u32 length)
{
	long long sum = (long long)length + p->overhead_extra;
	narrows_u64 bytes;

	if (p->counts_link_header)
		sum += NARROWS_ETHERNET;
	if (sum < (long long)p->overhead_minimum)
		sum = p->overhead_minimum;
	bytes = sum < 0 ? 0 : (narrows_u64)sum;
	if (p->cell_payload)
		bytes = (bytes + p->cell_payload - 1) / p->cell_payload * p->cell_size;
	return 8 * bytes;
}

/* When the packet of `length` bytes would be gone whose transmission began at `now`. */
NARROWS_INLINE narrows_u64 narrows_gone(const struct narrows_parameters *p, narrows_u64 now, narrows_u32 length)
{
	narrows_u64 work = narrows_wire_bits(p, length) * 1000000000ULL;

	if (p->rate == 0)
		return NARROWS_NEVER;
	if (p->rate == NARROWS_UNLIMITED)
		return now;
	return narrows_later(now, work / p->rate + (work % p->rate != 0));
}

/* The class that sends next; some class has a packet. */
NARROWS_PART narrows_u32 narrows_select(narrows_u32 direction, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u32 class, violator;
	narrows_u64 instant = now;

	if (!d)
		return 0;
	switch (d->parameters.queue.discipline) {
	case NARROWS_PRIO:
		return narrows_lowest(d->state.queue.waiting) & 31;
	case NARROWS_DRR:
		return narrows_drr_select(direction);
	case NARROWS_WF2Q:
		return narrows_wf2q_select(direction);
	case NARROWS_DBHPD:
		class = narrows_largest(direction, now);
		if (!(d->state.queue.waiting & d->parameters.queue.bounded))
			return class;
		if (!d->parameters.queue.has_violated)
			instant = narrows_gone(&d->parameters, now, narrows_first_length(d, direction, class));
		violator = narrows_violator(direction, instant);
		return violator == NARROWS_NONE ? class : violator;
	default:
		return 0;
	}
}

/* A packet joins its class. */
NARROWS_INLINE void narrows_join(struct narrows_direction *d, narrows_u32 direction, narrows_u64 now, narrows_u32 slot,
				 narrows_u32 class, narrows_u32 length)
{
	struct narrows_queue_state *q = &d->state.queue;
	struct narrows_class_state *c = &q->class[class & 31];
	struct narrows_packet *last = c->packets ? narrows_packet(direction, c->last) : 0;

	if (last)
		last->next = slot;
	else
		c->first = slot;
	c->last = slot;
	c->packets++;
	c->bytes += length;
	q->packets++;
	q->bytes += length;
	if (c->packets == 1) {
		q->waiting |= 1U << (class & 31);
		if (d->parameters.queue.discipline == NARROWS_DRR) {
			q->order[(q->turn + q->turns) & 31] = (narrows_u8)class;
			q->turns++;
		}
	}
	if (d->parameters.queue.discipline == NARROWS_WF2Q && c->packets == 1)
		narrows_wf2q_joined(direction, class);
	if (d->parameters.queue.discipline == NARROWS_DBHPD)
		narrows_dbhpd_joined(direction, class, now);
}

NARROWS_INLINE void narrows_free_slot(struct narrows_state *s, narrows_u32 slot, struct narrows_packet *packet)
{
	packet->next = s->free;
	/* One more than the slot, so that zero is none. */
	s->free = slot + 1;
}

/* The packet in this slot, which is in no list, is dropped at `at`. */
NARROWS_INLINE void narrows_drop(struct narrows_direction *d, narrows_u32 direction, narrows_u32 slot, struct narrows_packet *packet,
				 enum narrows_verdict why, narrows_u64 at)
{
	narrows_decided(direction, packet->number, why, at);
	d->state.discarded++;
	d->state.discarded_bytes += narrows_discard(direction, slot);
	narrows_free_slot(&d->state, slot, packet);
}

/* Takes the first packet of a class that has one. */
NARROWS_INLINE void narrows_take_first(struct narrows_queue_state *q, narrows_u32 class, const struct narrows_packet *first)
{
	struct narrows_class_state *c = &q->class[class & 31];

	c->first = first->next;
	c->packets--;
	c->bytes -= first->length;
	q->packets--;
	q->bytes -= first->length;
	if (!c->packets)
		q->waiting &= ~(1U << (class & 31));
}

/* Queue management drops the first packet of a class. */
NARROWS_PART int narrows_drop_first(narrows_u32 direction, narrows_u32 class, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	struct narrows_queue_state *q;
	struct narrows_packet *packet;
	narrows_u32 slot;

	if (!d)
		return 0;
	q = &d->state.queue;
	slot = q->class[class & 31].first;
	packet = narrows_packet(direction, slot);
	if (!packet)
		return 0;
	narrows_take_first(q, class, packet);
	narrows_drop(d, direction, slot, packet, NARROWS_MANAGED, now);
	if (q->class[class & 31].packets)
		return 0;
	/* The scheduler learns of it only now: what was dropped has received no service. */
	if (d->parameters.queue.discipline == NARROWS_DRR)
		narrows_drr_emptied(q, class);
	if (d->parameters.queue.discipline == NARROWS_WF2Q)
		narrows_wf2q_catch_up(direction);
	return 0;
}

/* The class that sends next, or NARROWS_NONE: then nothing is left. Its queue management has let its first packet pass. */
NARROWS_PART narrows_u32 narrows_choose(narrows_u32 direction, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	narrows_u32 class = NARROWS_NONE;

	if (!d)
		return NARROWS_NONE;
	while (d->state.queue.waiting && NARROWS_MAY_LOOP) {
		/* The class keeps its turn while its packets are dropped. */
		if (class >= NARROWS_CLASSES || !d->state.queue.class[class & 31].packets)
			class = d->parameters.queue.discipline == NARROWS_IN_ORDER ? 0 : narrows_select(direction, now) & 31;
		if (!d->parameters.queue.class[class & 31].policy.kind || !narrows_drops_departure(direction, class, now))
			return class;
		narrows_drop_first(direction, class, now);
	}
	return NARROWS_NONE;
}

/* Puts the next packet on the wire, which is free at `now`, if one waits. */
NARROWS_PART int narrows_start(narrows_u32 direction, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_parameters *p;
	struct narrows_state *s;
	struct narrows_queue_state *q;
	struct narrows_class_state *c;
	struct narrows_packet *packet;
	narrows_u64 bits, work, carried = 0, left_over = 0, nanos;
	narrows_u32 class, length;

	if (!d || !d->state.queue.waiting)
		return 0;
	p = &d->parameters;
	s = &d->state;
	q = &s->queue;
	class = narrows_choose(direction, now);
	if (class >= NARROWS_CLASSES)
		return 0;
	c = &q->class[class];
	packet = narrows_packet(direction, c->first);
	if (!packet || !c->packets)
		return 0;
	s->on_wire = c->first;
	s->wire_busy = 1;
	length = packet->length;
	narrows_take_first(q, class, packet);
	if (p->queue.discipline == NARROWS_DRR)
		narrows_drr_sent(q, class, length);
	if (p->queue.discipline == NARROWS_WF2Q)
		narrows_wf2q_sent(direction, class, length);
	if (p->queue.discipline == NARROWS_DBHPD)
		narrows_dbhpd_sent(direction, class, packet->arrival, now);

	bits = narrows_wire_bits(p, length);
	/* Below 2^34 bits times 10^9: 64 bits suffice. */
	work = bits * 1000000000ULL;
	if (now == s->freed)
		carried = s->surplus;
	if (carried > work) {
		left_over = carried - work;
		work = 0;
	} else {
		work -= carried;
	}
	s->surplus = left_over;
	if (work == 0 && (bits || left_over)) {
		s->freed = now;
	} else if (p->rate == 0) {
		s->freed = NARROWS_NEVER;
	} else if (p->rate == NARROWS_UNLIMITED || work == 0) {
		s->freed = now;
	} else {
		nanos = work / p->rate + (work % p->rate != 0);
		/* Below the rate, so what the product loses beyond 64 bits cancels in the difference. */
		s->surplus = nanos * p->rate - work + left_over;
		s->freed = now + nanos;
	}
	return 0;
}

NARROWS_INLINE int narrows_is_before(narrows_u64 due, narrows_u32 sequence, const struct narrows_overtaking *other)
{
	return due != other->due ? due < other->due : sequence < other->sequence;
}

/* Into the heap, a binary one. */
NARROWS_PART int narrows_overtake(narrows_u32 direction, narrows_u32 slot, narrows_u64 due)
{
	struct narrows_direction *d = narrows_direction(direction);
	struct narrows_overtaking *entry, *above;
	narrows_u32 at, sequence;

	if (!d)
		return 0;
	at = d->state.heap;
	if (!at)
		d->state.sequence = 0;
	sequence = d->state.sequence++;
	d->state.heap = at + 1;
	while (at && NARROWS_MAY_LOOP) {
		above = narrows_overtaking(direction, (at - 1) / 2);
		entry = narrows_overtaking(direction, at);
		if (!above || !entry || !narrows_is_before(due, sequence, above))
			break;
		*entry = *above;
		at = (at - 1) / 2;
	}
	entry = narrows_overtaking(direction, at);
	if (entry) {
		entry->due = due;
		entry->sequence = sequence;
		entry->slot = slot;
	}
	return 0;
}

/* Takes the first one from the heap, which is not empty; returns its slot. */
NARROWS_PART narrows_u32 narrows_pop_overtaking(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	struct narrows_overtaking *top = narrows_overtaking(direction, 0), *last, *below, *other, *entry;
	narrows_u32 at = 0, child, slot, count;

	if (!d || !top)
		return 0;
	slot = top->slot;
	count = --d->state.heap;
	last = narrows_overtaking(direction, count);
	if (!last)
		return slot;
	while (NARROWS_MAY_LOOP) {
		child = 2 * at + 1;
		if (child >= count)
			break;
		below = narrows_overtaking(direction, child);
		other = child + 1 < count ? narrows_overtaking(direction, child + 1) : 0;
		if (!below)
			break;
		if (other && narrows_is_before(other->due, other->sequence, below)) {
			below = other;
			child++;
		}
		entry = narrows_overtaking(direction, at);
		if (!entry || !narrows_is_before(below->due, below->sequence, last))
			break;
		*entry = *below;
		at = child;
	}
	entry = narrows_overtaking(direction, at);
	if (entry)
		*entry = *last;
	return slot;
}

/* Into the delay line at `now`, for this long. */
NARROWS_INLINE void narrows_propagate(struct narrows_direction *d, narrows_u32 direction, narrows_u64 now, narrows_u32 slot,
				      struct narrows_packet *packet, narrows_u64 delay)
{
	struct narrows_state *s = &d->state;
	narrows_u64 due = narrows_later(now, delay);
	struct narrows_packet *last;
	int has_mark;

	if (d->parameters.keeps_order && due < s->latest)
		due = s->latest;
	if (due > s->latest)
		s->latest = due;
	packet->due = due;
	has_mark = d->parameters.marks && (packet->traffic_class & NARROWS_ECN) == NARROWS_ECN;
	narrows_decided(direction, packet->number, has_mark ? NARROWS_DELIVERED | NARROWS_HAS_MARK : NARROWS_DELIVERED, due);
	if (s->row && due < s->last_due) {
		narrows_overtake(direction, slot, due);
		return;
	}
	last = s->row ? narrows_packet(direction, s->row_last) : 0;
	if (last) {
		last->next = slot;
	} else {
		s->row_first = slot;
		s->first_due = due;
	}
	s->row_last = slot;
	s->last_due = due;
	s->row++;
}

/* The delay of the packet that enters the delay line next, of those that are correlated; `drawn` is what was drawn for it. */
NARROWS_PART narrows_u64 narrows_correlated_delay(narrows_u32 direction, narrows_u64 drawn)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_parameters *p;
	struct narrows_state *s;
	narrows_u64 number = drawn, most = 0x4340000000000000ULL; /* 2^53 */

	if (!d)
		return 0;
	p = &d->parameters;
	s = &d->state;
	if (s->has_number)
		number = narrows_add(narrows_multiply(p->correlation, s->last_number), narrows_multiply(p->innovation, drawn));
	s->has_number = 1;
	s->last_number = number;
	number = narrows_add(p->mean, narrows_multiply(p->sd, number));
	if (narrows_is_below(most, number))
		number = most;
	return narrows_whole(narrows_add(number, NARROWS_HALF));
}

/* Flips a bit of a packet that has crossed the wire, if it is hit. */
NARROWS_INLINE void narrows_corrupt(const struct narrows_parameters *p, struct narrows_packet *packet)
{
	narrows_u64 bits[2];

	narrows_draw(p->corruption_key, packet->number, p->origin, 0, bits);
	if (narrows_happens(p->corrupts, bits[0]))
		packet->flip = (narrows_u32)narrows_product(bits[1], 8ULL * packet->length).high + 1;
}

/* The transmission on the wire ends, which is due. */
NARROWS_PART int narrows_sent(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	struct narrows_packet *packet;
	enum narrows_verdict lost = NARROWS_UNDECIDED;
	narrows_u64 delay;
	narrows_u32 slot;

	if (!d)
		return 0;
	slot = d->state.on_wire;
	packet = narrows_packet(direction, slot);
	d->state.wire_busy = 0;
	if (!packet)
		return 0;
	delay = packet->delay;
	if (d->parameters.loss[1].model && narrows_is_lost(direction, 1, packet->number)) {
		lost = NARROWS_WIRE_LOSS;
	} else if (d->parameters.delays == NARROWS_FED) {
		delay = narrows_fed_delay(direction, d->state.freed);
		if (delay == NARROWS_NEVER)
			lost = NARROWS_DELAY_LOSS;
	} else if (d->parameters.delays == NARROWS_CORRELATED) {
		delay = narrows_correlated_delay(direction, delay);
	}
	if (!lost && d->parameters.corrupts)
		narrows_corrupt(&d->parameters, packet);
	if (lost)
		narrows_drop(d, direction, slot, packet, lost, d->state.freed);
	else
		narrows_propagate(d, direction, d->state.freed, slot, packet, delay);
	return 0;
}

/* Does what should have happened at the transmitter up to `now`, at its instants. */
NARROWS_PART int narrows_catch_up(narrows_u32 direction, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);

	if (!d)
		return 0;
	while (d->state.wire_busy && d->state.freed <= now && NARROWS_MAY_LOOP) {
		narrows_sent(direction);
		narrows_start(direction, d->state.freed);
	}
	return 0;
}

NARROWS_INLINE int narrows_has_room(const struct narrows_direction *d)
{
	return d->state.free || d->state.used < d->parameters.slots;
}

/*
 * The next packet, whose headers are in the direction, arrives at `now`. narrows_catch_up() was called, and there is room. Returns its
 * slot, or NARROWS_NONE if it is dropped; then narrows_decided() was called.
 */
NARROWS_PART narrows_u32 narrows_arrive(narrows_u32 direction, narrows_u64 now, narrows_u64 delay)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_parameters *p;
	struct narrows_state *s;
	const struct narrows_class *settings;
	const struct narrows_class_state *c;
	struct narrows_packet *packet;
	narrows_u32 class = 0, slot, length;
	narrows_u64 number;

	if (!d)
		return NARROWS_NONE;
	p = &d->parameters;
	s = &d->state;
	length = d->headers.length;
	number = s->number++;
	if (p->loss[0].model && narrows_is_lost(direction, 0, number)) {
		narrows_decided(direction, number, NARROWS_INGRESS_LOSS, now);
		return NARROWS_NONE;
	}
	if (p->rules)
		class = narrows_classify(direction);
	if (class >= NARROWS_CLASSES) {
		narrows_decided(direction, number, NARROWS_NO_CLASS, now);
		return NARROWS_NONE;
	}
	settings = &p->queue.class[class & 31];
	c = &s->queue.class[class & 31];
	if (s->queue.packets >= p->queue.limit_packets || s->queue.bytes + length > p->queue.limit_bytes) {
		narrows_decided(direction, number, NARROWS_QUEUE_FULL, now);
		return NARROWS_NONE;
	}
	if (settings->policy.kind && narrows_drops_arrival(direction, class, now, number)) {
		narrows_decided(direction, number, NARROWS_MANAGED, now);
		return NARROWS_NONE;
	}
	if (c->packets >= settings->limit_packets || c->bytes + length > settings->limit_bytes) {
		narrows_decided(direction, number, NARROWS_QUEUE_FULL, now);
		return NARROWS_NONE;
	}
	if (s->free) {
		slot = s->free - 1;
		packet = narrows_packet(direction, slot);
		if (packet)
			s->free = packet->next;
	} else {
		slot = s->used++;
		packet = narrows_packet(direction, slot);
	}
	if (!packet)
		return NARROWS_NONE;
	packet->number = number;
	packet->arrival = now;
	packet->delay = delay;
	packet->length = length;
	packet->traffic_class = d->headers.traffic_class;
	packet->flip = 0;
	narrows_join(d, direction, now, slot, class, length);
	if (!s->wire_busy)
		narrows_start(direction, now);
	return slot;
}

/* When the next packet leaves the delay line. */
NARROWS_INLINE narrows_u64 narrows_next_due(const struct narrows_direction *d, narrows_u32 direction)
{
	narrows_u64 due = d->state.row ? d->state.first_due : NARROWS_NEVER;
	const struct narrows_overtaking *top = d->state.heap ? narrows_overtaking(direction, 0) : 0;

	return top && top->due < due ? top->due : due;
}

/* When to look again: before a packet can be due. Nothing else depends on it. */
NARROWS_INLINE narrows_u64 narrows_wake(const struct narrows_direction *d, narrows_u32 direction)
{
	narrows_u64 due = narrows_next_due(d, direction);
	narrows_u64 wire = d->state.wire_busy ? narrows_later(d->state.freed, d->parameters.delay) : NARROWS_NEVER;

	return due < wire ? due : wire;
}

/* Takes the packet that leaves next from the delay line; there is one. Its slot is free from the next arrival on. */
NARROWS_PART narrows_u32 narrows_leave(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_overtaking *top;
	struct narrows_packet *packet, *next;
	struct narrows_state *s;
	narrows_u32 slot;

	if (!d)
		return NARROWS_NONE;
	s = &d->state;
	top = s->heap ? narrows_overtaking(direction, 0) : 0;
	if (top && (!s->row || top->due < s->first_due)) {
		slot = narrows_pop_overtaking(direction);
		packet = narrows_packet(direction, slot);
	} else {
		slot = s->row_first;
		packet = narrows_packet(direction, slot);
		if (packet) {
			s->row--;
			s->row_first = packet->next;
			next = s->row ? narrows_packet(direction, packet->next) : 0;
			if (next)
				s->first_due = next->due;
		}
	}
	if (packet)
		narrows_free_slot(s, slot, packet);
	return slot;
}

/* The packet in this slot vanishes with its interface. */
NARROWS_INLINE void narrows_vanish(narrows_u32 direction, narrows_u32 slot, narrows_u64 now)
{
	const struct narrows_packet *packet = narrows_packet(direction, slot);

	if (packet && !narrows_is_decided(direction, packet->number))
		narrows_decided(direction, packet->number, NARROWS_FORGOTTEN, now);
}

/* Nothing is inside any more. Averages, turns, and the states of losses and policies stay. */
NARROWS_PART int narrows_forget(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);
	struct narrows_state *s;

	if (!d)
		return 0;
	s = &d->state;
	s->row = 0;
	s->heap = s->used = s->free = s->wire_busy = s->discarded = s->discarded_bytes = 0;
	s->queue.packets = s->queue.bytes = 0;
	s->queue.waiting = s->queue.turns = s->queue.granted = 0;
	for (narrows_u32 class = 0; class < NARROWS_CLASSES && NARROWS_MAY_LOOP; class++) {
		s->queue.class[class & 31].packets = s->queue.class[class & 31].bytes = 0;
		s->queue.class[class & 31].deficit = 0;
	}
	return 0;
}

#endif
