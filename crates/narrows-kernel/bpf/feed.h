/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Delays that another process feeds (narrows-core: model/feed.rs): values in a ring that user space writes, each used once and in
 * order, by the next packet that enters the delay line. A value counts from its stamp on, which lies in the future when it is written:
 * so whether a packet finds it does not depend on when the packet is looked at.
 */
#ifndef NARROWS_FEED_H
#define NARROWS_FEED_H

#include "state.h"

/* The includer has the memory: the place of the value with this number. */
NARROWS_INLINE const struct narrows_fed_value *narrows_fed_value(narrows_u32 direction, narrows_u64 number);

/* The delay of a packet that enters the delay line at `now`, or NARROWS_NEVER: it is lost. */
NARROWS_PART narrows_u64 narrows_fed_delay(narrows_u32 direction, narrows_u64 now)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_fed_value *value;
	struct narrows_feed_state *s;
	narrows_u64 known, count;

	if (!d)
		return 0;
	s = &d->state.feed;
	known = *(volatile narrows_u64 *)&d->fed;
	value = s->used < known ? narrows_fed_value(direction, s->used) : 0;
	if (value && value->from < now) {
		s->used++;
		s->repeated = 0;
		if (value->delay < 0)
			return NARROWS_NEVER;
		s->last = (narrows_u64)value->delay;
		return s->last;
	}
	switch (d->parameters.on_empty) {
	case NARROWS_LAST:
		return s->last;
	case NARROWS_DROP:
		return NARROWS_NEVER;
	case NARROWS_REPEAT:
		count = s->used < d->parameters.lead ? s->used : d->parameters.lead;
		if (!count)
			return 0;
		value = narrows_fed_value(direction, s->used - count + s->repeated);
		s->repeated = s->repeated + 1 < count ? s->repeated + 1 : 0;
		return value ? (value->delay < 0 ? NARROWS_NEVER : (narrows_u64)value->delay) : 0;
	default:
		return 0;
	}
}

#endif
