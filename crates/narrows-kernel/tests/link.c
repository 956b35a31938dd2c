/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * link.h on the host, for tests.
 *
 *   (none)    reads parameters, weights, ranges, rules, values that are fed, and then arrivals; writes (verdict, time, flipped bit plus 1) of each packet
 *   floats    reads pairs of doubles and writes sum, product, quotient, the first one's whole part, whether it is less, its bits as a number
 *   headers   reads frames and writes what is read of their headers
 *   layout    writes the places and sizes of the shared structures
 *
 * A timer wakes it as the kernel's would, and a packet that leaves late ends it with status 3.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NARROWS_MAY_LOOP 1
#include "../bpf/link.h"

#define SLOTS 65536
#define RULES 1024
#define RANGES 4096
#define VALUES (1 << 18)
static struct narrows_direction the_direction;
static struct narrows_packet packets[SLOTS];
static struct narrows_overtaking heap[SLOTS];
static narrows_u64 gammas[SLOTS + 1];
static struct narrows_range ranges[2][RANGES];
static struct narrows_rule rules[RULES];
static struct narrows_fed_value values[VALUES];
static struct narrows_decision *decisions;
static narrows_u64 *flips;
static narrows_u64 decided;

NARROWS_INLINE struct narrows_direction *narrows_direction(narrows_u32 direction)
{
	return direction == 0 ? &the_direction : 0;
}

NARROWS_INLINE struct narrows_packet *narrows_packet(narrows_u32 direction, narrows_u32 slot)
{
	return direction == 0 && slot < SLOTS ? &packets[slot] : 0;
}

NARROWS_INLINE struct narrows_overtaking *narrows_overtaking(narrows_u32 direction, narrows_u32 index)
{
	return direction == 0 && index < SLOTS ? &heap[index] : 0;
}

NARROWS_INLINE narrows_u64 narrows_gamma(narrows_u32 direction, narrows_u64 count)
{
	return direction == 0 && count <= SLOTS ? gammas[count] : 0;
}

NARROWS_INLINE struct narrows_range *narrows_range(narrows_u32 direction, narrows_u32 which, narrows_u32 index)
{
	return direction == 0 && index < RANGES ? &ranges[which][index] : 0;
}

NARROWS_INLINE const struct narrows_rule *narrows_rule(narrows_u32 direction, narrows_u32 index)
{
	return direction == 0 && index < RULES ? &rules[index] : 0;
}

NARROWS_INLINE const struct narrows_fed_value *narrows_fed_value(narrows_u32 direction, narrows_u64 number)
{
	return direction == 0 ? &values[number % VALUES] : 0;
}

NARROWS_INLINE void narrows_decided(narrows_u32 direction, narrows_u64 number, narrows_u64 verdict, narrows_u64 at)
{
	if (direction || decisions[number].verdict)
		exit(4); /* decided twice */
	decisions[number].verdict = verdict;
	decisions[number].at = at;
	decided++;
}

NARROWS_INLINE int narrows_is_decided(narrows_u32 direction, narrows_u64 number)
{
	return direction == 0 && decisions[number].verdict != 0;
}

NARROWS_INLINE narrows_u32 narrows_discard(narrows_u32 direction, narrows_u32 slot)
{
	return direction + slot ? 1 : 0;
}

/* Lets the timer go off until `now`, and packets leave. */
static void run_until(narrows_u64 now)
{
	const struct narrows_direction *d = &the_direction;
	narrows_u64 at;

	while ((at = narrows_wake(d, 0)) <= now) {
		narrows_catch_up(0, at);
		while (narrows_next_due(d, 0) <= at) {
			const struct narrows_packet *packet;

			if (narrows_next_due(d, 0) != at)
				exit(3);
			packet = &packets[narrows_leave(0)];
			flips[packet->number] = packet->flip;
		}
	}
}

static void get(void *into, size_t size, size_t count)
{
	if (fread(into, size, count, stdin) != count)
		exit(1);
}

static int decide(void)
{
	struct arrival {
		narrows_u64 at, delay;
		narrows_u32 frame_length;
		narrows_u8 head[NARROWS_HEAD];
		narrows_u32 pad;
	} arrival;
	narrows_u64 count;

	get(&the_direction.parameters, sizeof(the_direction.parameters), 1);
	get(&the_direction.epoch, sizeof(the_direction.epoch), 1);
	get(gammas, sizeof(gammas), 1);
	get(ranges, sizeof(ranges), 1);
	get(rules, sizeof(rules), 1);
	/* All at once: each counts from its stamp on. */
	get(&the_direction.fed, sizeof(the_direction.fed), 1);
	get(values, sizeof(*values), the_direction.fed);
	get(&count, sizeof(count), 1);
	decisions = calloc(count, sizeof(*decisions));
	flips = calloc(count, sizeof(*flips));
	for (narrows_u64 number = 0; number < count; number++) {
		get(&arrival, sizeof(arrival), 1);
		narrows_read_headers(&the_direction.headers, arrival.head, arrival.frame_length, the_direction.parameters.rules != 0);
		run_until(arrival.at);
		/* The timer goes off for what leaves, not for each transmission. */
		narrows_catch_up(0, arrival.at);
		if (!narrows_has_room(&the_direction))
			exit(5);
		narrows_arrive(0, arrival.at, arrival.delay);
	}
	run_until(NARROWS_NEVER - 1);
	for (narrows_u64 number = 0; number < count; number++) {
		narrows_u64 out[3] = { decisions[number].verdict, decisions[number].at, flips[number] };

		fwrite(out, sizeof(out), 1, stdout);
	}
	return 0;
}

static int compute(void)
{
	narrows_u64 two[2], out[6];

	while (fread(two, sizeof(two), 1, stdin) == 1) {
		out[0] = narrows_add(two[0], two[1]);
		out[1] = narrows_multiply(two[0], two[1]);
		out[2] = narrows_divide(two[0], two[1]);
		out[3] = narrows_whole(two[0]);
		out[4] = narrows_is_below(two[0], two[1]);
		out[5] = narrows_of_whole(two[0]);
		fwrite(out, sizeof(out), 1, stdout);
	}
	return 0;
}

static int read_headers(void)
{
	struct frame {
		narrows_u32 length;
		narrows_u8 head[NARROWS_HEAD];
	} frame;

	while (fread(&frame, sizeof(frame), 1, stdin) == 1) {
		struct narrows_headers headers = {0};

		narrows_read_headers(&headers, frame.head, frame.length, 1);
		fwrite(&headers, sizeof(headers), 1, stdout);
	}
	return 0;
}

#define DIRECTION(field) offsetof(struct narrows_direction, field)
#define RECORD(field) offsetof(struct narrows_record, field)
#define PARAMETERS(field) offsetof(struct narrows_parameters, field)
#define CLASS(field) offsetof(struct narrows_class, field)
#define RULE(field) offsetof(struct narrows_rule, field)
#define HEADERS(field) offsetof(struct narrows_headers, field)
#define PRINT(value) printf(#value " %zu\n", (size_t)(value))

static int print_layout(void)
{
	PRINT(sizeof(struct narrows_parameters));
	PRINT(sizeof(struct narrows_loss));
	PRINT(sizeof(struct narrows_class));
	PRINT(sizeof(struct narrows_rule));
	PRINT(sizeof(struct narrows_range));
	PRINT(sizeof(struct narrows_packet));
	PRINT(sizeof(struct narrows_overtaking));
	PRINT(PARAMETERS(loss));
	PRINT(PARAMETERS(queue));
	PRINT(PARAMETERS(queue.class));
	PRINT(RULE(class));
	PRINT(sizeof(struct narrows_headers));
	PRINT(sizeof(struct narrows_direction));
	PRINT(DIRECTION(state.number));
	PRINT(DIRECTION(left));
	PRINT(DIRECTION(begun));
	PRINT(DIRECTION(done));
	PRINT(DIRECTION(read));
	PRINT(DIRECTION(settled));
	PRINT(DIRECTION(fed));
	PRINT(DIRECTION(epoch));
	PRINT(sizeof(struct narrows_fed_value));
	PRINT(DIRECTION(no_room));
	PRINT(DIRECTION(unsupported));
	PRINT(DIRECTION(trains));
	PRINT(DIRECTION(bypassed));
	PRINT(DIRECTION(tagged));
	PRINT(DIRECTION(unwatched));
	PRINT(PARAMETERS(mtu));
	PRINT(sizeof(struct narrows_record));
	PRINT(RECORD(arrival));
	PRINT(RECORD(frame_length));
	PRINT(RECORD(head_length));
	PRINT(RECORD(head));
	PRINT(NARROWS_HEAD);
	PRINT(sizeof(struct narrows_decision));
	PRINT(sizeof(struct narrows_departure));
	PRINT(NARROWS_BYPASS_SLOTS);
	return 0;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";

	if (!strcmp(what, "layout"))
		return print_layout();
	if (!strcmp(what, "headers"))
		return read_headers();
	if (!strcmp(what, "floats"))
		return compute();
	return decide();
}
