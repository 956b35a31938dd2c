/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* Which packets are lost (narrows-core: model/selector). A model sees only packets that reach it, and its state advances with each. */
#ifndef NARROWS_LOSS_H
#define NARROWS_LOSS_H

#include "state.h"

/* The includer has the memory: `which` is 0 for the loss at ingress, 1 for the loss on the wire. */
NARROWS_INLINE struct narrows_range *narrows_range(narrows_u32 direction, narrows_u32 which, narrows_u32 index);

/* Whether the packet is lost that reaches the model next; `which` is as above. */
NARROWS_PART int narrows_is_lost(narrows_u32 direction, narrows_u32 which, narrows_u64 number)
{
	struct narrows_direction *d = narrows_direction(direction);
	const struct narrows_loss *loss;
	struct narrows_loss_state *state;
	const struct narrows_range *range;
	narrows_u64 bits[2], more[2], place;
	narrows_u32 bad, origin;

	if (!d)
		return 0;
	loss = &d->parameters.loss[which & 1];
	state = &d->state.loss[which & 1];
	origin = d->parameters.origin;
	switch (loss->model) {
	case NARROWS_INDEPENDENT:
		narrows_draw(loss->key, number, origin, 0, bits);
		return narrows_happens(loss->loses[0], bits[0]);
	case NARROWS_GILBERT_ELLIOTT:
		narrows_draw(loss->key, number, origin, 0, bits);
		if (!state->started) {
			state->started = 1;
			if (loss->starts_bad != NARROWS_NEVER) {
				narrows_draw(loss->key, number, origin, 1, more);
				state->bad = narrows_happens(loss->starts_bad, more[0]);
			}
		}
		bad = state->bad & 1;
		if (narrows_happens(loss->leaves[bad], bits[1]))
			state->bad = !bad;
		return narrows_happens(loss->loses[bad], bits[0]);
	case NARROWS_PATTERN:
		place = state->seen;
		state->seen = place + 1 < loss->length ? place + 1 : 0;
		if (place == 0)
			state->range = 0;
		if (state->range >= loss->ranges)
			return 0;
		range = narrows_range(direction, which, state->range);
		/* Each range has a place, so at most one ends here. */
		if (range && range->to <= place && ++state->range < loss->ranges)
			range = narrows_range(direction, which, state->range);
		return range && range->from <= place && place < range->to;
	default:
		return 0;
	}
}

#endif
