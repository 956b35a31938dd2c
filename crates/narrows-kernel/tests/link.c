/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * link.h on the host, for tests: reads parameters as they lie in memory, then arrivals (time, length), and writes for each what
 * was decided (verdict, time). With an argument it prints the places and sizes of the shared structures instead.
 */
#include <stddef.h>
#include <stdio.h>

#define NARROWS_MAY_LOOP 1
#include "../bpf/link.h"

#define SLOTS 65536
static struct narrows_waiting waiting[SLOTS];

static inline struct narrows_waiting *narrows_waiting_slot(const struct narrows_parameters *p, narrows_u32 direction, narrows_u64 number)
{
	return p->slots == SLOTS && direction == 0 ? &waiting[number % SLOTS] : 0;
}

#define DIRECTION(field) offsetof(struct narrows_direction, field)
#define RECORD(field) offsetof(struct narrows_record, field)

static int print_layout(void)
{
	size_t all[] = {
		sizeof(struct narrows_parameters), sizeof(struct narrows_direction), DIRECTION(state.number), DIRECTION(line_in),
		DIRECTION(line_out), DIRECTION(begun), DIRECTION(done), DIRECTION(read), DIRECTION(no_room), DIRECTION(unsupported),
		DIRECTION(trains), DIRECTION(bypassed), sizeof(struct narrows_record), RECORD(arrival), RECORD(at), RECORD(length),
		RECORD(frame_length), RECORD(verdict), RECORD(head_length), RECORD(head), NARROWS_HEAD,
		sizeof(struct narrows_departure), sizeof(struct narrows_waiting), NARROWS_BYPASS_SLOTS,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		printf("%zu\n", all[i]);
	return 0;
}

int main(int count, char **arguments)
{
	struct narrows_parameters p;
	struct narrows_state s = {0};
	narrows_u64 arrival[2];

	(void)arguments;
	if (count > 1)
		return print_layout();
	if (fread(&p, sizeof(p), 1, stdin) != 1)
		return 1;
	while (fread(arrival, sizeof(arrival), 1, stdin) == 1) {
		struct narrows_fate fate = {0};
		narrows_u64 out[2];

		narrows_catch_up(&p, &s, 0, arrival[0]);
		narrows_decide(&p, &s, 0, arrival[0], (narrows_u32)arrival[1], 14, &fate);
		out[0] = fate.verdict;
		out[1] = fate.at;
		fwrite(out, sizeof(out), 1, stdout);
	}
	return 0;
}
