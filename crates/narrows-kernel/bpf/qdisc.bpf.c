/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * A direction of a link as a queueing discipline at the sending interface's root. link.h decides; this file moves packets.
 *
 * `enqueue` and `dequeue` run under the qdisc's lock, so nothing here needs one. Lists, rings and a heap in arrays instead of the
 * kernel's lists and trees: they need no allocation, and no lock. A direction's place in the maps is its qdisc's major handle minus
 * one: a BPF qdisc has no memory of its own.
 *
 * Every packet that enters the link leaves a record in memory that user space maps and reads at its leisure. A packet for which
 * there is no room, there or in the link, does not enter and gets no number, so all others keep their draws.
 *
 * No header of the kernel is included. The loader resolves these undefined symbols: kfuncs by their names, `offset_S__F` to the
 * place of field F in structure S of the running kernel, and `room_R` to the length of a ring for one direction. The `maps` section
 * only gives maps names: the loader knows their sizes.
 */
/* Lets the verifier accept a loop without knowing its bound: an instruction that ends it after some millions of rounds. */
#define NARROWS_MAY_LOOP \
	({ __label__ over, next; int may = 1; \
	   asm volatile goto("may_goto %l[over]" :::: over); goto next; \
	over: may = 0; next: may; })

/* Weak: or clang would rely on what it sees of their results, which the verifier does not. */
#define NARROWS_PART __attribute__((noinline, weak))
#include "link.h"

typedef narrows_u8 u8;
typedef narrows_u16 u16;
typedef narrows_u32 u32;
typedef narrows_u64 u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
struct sk_buff;
struct Qdisc;
struct dynptr { u64 opaque[2]; } __attribute__((aligned(8)));

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static void *(*const kptr_xchg)(void *to, void *pointer) = (void *)194;
static long (*const dynptr_read)(void *to, u64 length, const struct dynptr *from, u64 offset, u64 flags) = (void *)201;

extern int bpf_dynptr_from_skb(struct sk_buff *skb, u64 flags, struct dynptr *to) SEC(".ksyms");
extern void bpf_kfree_skb(struct sk_buff *skb) SEC(".ksyms");
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, void *to_free) SEC(".ksyms");
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 slack) SEC(".ksyms");
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) SEC(".ksyms");

extern const char offset_sk_buff__len, offset_sk_buff__vlan_all, offset_Qdisc__handle, offset_Qdisc__limit;
extern const char offset_sk_buff__cb, offset_qdisc_skb_cb__data, offset_Qdisc__q__qlen, offset_Qdisc__qstats__backlog, offset_Qdisc__qstats__drops;
/* A field of a structure of the kernel. */
#define FIELD(type, pointer, name) (*(type *)((char *)(pointer) + (u64)&offset_##name))

extern const char room_slots, room_records, room_decisions, room_weights, room_ranges, room_rules, room_values, room_messages;
/*
 * What a qdisc may write into a packet that arrives (since 7.3 into no other) and a classifier may read, as the first words of `cb`:
 * it stays until the packet has crossed to the other end of a veth pair. The first word says that it is ours and has the direction, the
 * second has the packet's number: there the classifier finds the message for it.
 */
#define LABEL(skb) ((u32 *)((char *)(skb) + (u64)&offset_sk_buff__cb + (u64)&offset_qdisc_skb_cb__data))
#define OURS 0x4e520000
/* A message: what is to be done, above it which bit, and in the upper half the packet's number: the place may be another's by now. */
#define MARK_IT 1
#define FLIP_A_BIT 2

/* The number of an entry of a direction among those of all. */
#define ENTRY(direction, length, index) ((direction) * (u32)(u64)&room_##length + (index))

#define SUCCESS 0 /* NET_XMIT_SUCCESS: a sender must not learn of losses that happen further on */
#define DROPPED 1 /* NET_XMIT_DROP */

/* A packet inside the link. */
struct held {
	struct narrows_packet packet;
	struct sk_buff *skb;
};

char control SEC("maps"), records SEC("maps"), decisions SEC("maps"), departures SEC("maps"), delays SEC("maps"), packets SEC("maps"),
	heap SEC("maps"), weights SEC("maps"), ranges SEC("maps"), rules SEC("maps"), values SEC("maps"), bypass SEC("maps"),
	messages SEC("maps");

INLINE struct narrows_direction *narrows_direction(u32 direction)
{
	return map_lookup(&control, &direction);
}

INLINE struct held *held(u32 direction, u32 slot)
{
	u32 key = ENTRY(direction, slots, slot);

	return map_lookup(&packets, &key);
}

INLINE struct narrows_packet *narrows_packet(u32 direction, u32 slot)
{
	struct held *found = held(direction, slot);

	return found ? &found->packet : 0;
}

INLINE struct narrows_overtaking *narrows_overtaking(u32 direction, u32 index)
{
	u32 key = ENTRY(direction, slots, index);

	return map_lookup(&heap, &key);
}

INLINE u64 narrows_gamma(u32 direction, u64 count)
{
	u32 key = ENTRY(direction, weights, (u32)count);
	u64 *weight = map_lookup(&weights, &key);

	return weight ? *weight : 0;
}

INLINE struct narrows_range *narrows_range(u32 direction, u32 which, u32 index)
{
	u32 key = ENTRY(2 * direction + which, ranges, index);

	return map_lookup(&ranges, &key);
}

INLINE const struct narrows_rule *narrows_rule(u32 direction, u32 index)
{
	u32 key = ENTRY(direction, rules, index);

	return map_lookup(&rules, &key);
}

INLINE const struct narrows_fed_value *narrows_fed_value(u32 direction, u64 number)
{
	u32 key = ENTRY(direction, values, (u32)number & ((u32)(u64)&room_values - 1));

	return map_lookup(&values, &key);
}

INLINE u64 *message_to(u32 direction, u32 number)
{
	u32 key = ENTRY(direction, messages, number & ((u32)(u64)&room_messages - 1));

	return map_lookup(&messages, &key);
}

INLINE void narrows_decided(u32 direction, u64 number, u64 verdict, u64 at)
{
	u32 key = ENTRY(direction, decisions, (u32)number & ((u32)(u64)&room_decisions - 1));
	struct narrows_decision *decision = map_lookup(&decisions, &key);

	if (!decision)
		return;
	decision->at = at;
	/* Atomic: a barrier before user space may read it. */
	__sync_lock_test_and_set(&decision->verdict, number << 8 | verdict);
}

INLINE int narrows_is_decided(u32 direction, u64 number)
{
	u32 key = ENTRY(direction, decisions, (u32)number & ((u32)(u64)&room_decisions - 1));
	struct narrows_decision *decision = map_lookup(&decisions, &key);

	return decision && decision->verdict && decision->verdict >> 8 == number;
}

INLINE u32 narrows_discard(u32 direction, u32 slot)
{
	struct held *found = held(direction, slot);
	struct sk_buff *skb = found ? kptr_xchg(&found->skb, 0) : 0;
	u32 length;

	if (!skb)
		return 0;
	length = FIELD(u32, skb, sk_buff__len);
	bpf_kfree_skb(skb);
	return length;
}

INLINE struct narrows_direction *direction_of(struct Qdisc *sch, u32 *which)
{
	*which = (FIELD(u32, sch, Qdisc__handle) >> 16) - 1;
	return narrows_direction(*which);
}

/* Takes off the backlog what was lost on the wire. */
INLINE void settle(struct Qdisc *sch, struct narrows_state *s)
{
	if (!s->discarded)
		return;
	FIELD(u32, sch, Qdisc__q__qlen) -= s->discarded;
	FIELD(u32, sch, Qdisc__qstats__backlog) -= s->discarded_bytes;
	FIELD(u32, sch, Qdisc__qstats__drops) += s->discarded;
	s->discarded = s->discarded_bytes = 0;
}

/* ARP, multicast listener reports and neighbour discovery: the hosts are neighbours, whatever the link does. */
INLINE int concerns_the_link(const u8 *head, u16 ether_type)
{
	u8 kind;

	if (ether_type == 0x0806)
		return 1;
	if (ether_type == 0x0800)
		return (head[0] & 1) && head[23] == 2;
	if (ether_type != 0x86dd)
		return 0;
	if (head[20] == 58) {
		kind = head[54];
		return (kind >= 133 && kind <= 137) || ((head[0] & 1) && ((kind >= 130 && kind <= 132) || kind == 143));
	}
	/* A report has a hop-by-hop option of eight bytes before it. */
	if (head[20] == 0 && (head[0] & 1) && head[54] == 58) {
		kind = head[62];
		return (kind >= 130 && kind <= 132) || kind == 143;
	}
	return 0;
}

SEC("struct_ops/enqueue")
int enqueue(u64 *context)
{
	struct sk_buff *skb = (void *)context[0];
	struct Qdisc *sch = (void *)context[1];
	void *to_free = (void *)context[2];
	struct narrows_direction *d;
	struct narrows_record *record;
	struct held *found;
	struct dynptr bytes;
	u32 which, key, slot, frame_length, head_length;
	u16 ether_type;
	u32 is_tagged;
	u64 now, number, delay;
	u64 *drawn;

	d = direction_of(sch, &which);
	if (!d)
		goto drop;
	frame_length = FIELD(u32, skb, sk_buff__len);
	number = d->state.number;
	/* The record serves as room for the head of a packet that may turn out not to enter. */
	key = ENTRY(which, records, (u32)number & ((u32)(u64)&room_records - 1));
	record = map_lookup(&records, &key);
	drawn = map_lookup(&delays, &key);
	if (!record || !drawn)
		goto drop;
	if (!d->unwatched &&
	    (number - *(volatile u64 *)&d->read >= (u64)&room_records || number - *(volatile u64 *)&d->settled >= (u64)&room_decisions)) {
		d->no_room++;
		goto drop;
	}
	head_length = frame_length < NARROWS_HEAD ? frame_length : NARROWS_HEAD;
	if (head_length < 34)
		goto unsupported;
	__builtin_memset(record->head, 0, sizeof(record->head));
	if (bpf_dynptr_from_skb(skb, 0, &bytes) || dynptr_read(record->head, head_length, &bytes, 0, 0))
		goto unsupported;
	ether_type = record->head[12] << 8 | record->head[13];
	is_tagged = FIELD(u32, skb, sk_buff__vlan_all) || ether_type == 0x8100 || ether_type == 0x88a8 || ether_type == 0x9100;
	if (is_tagged || concerns_the_link(record->head, ether_type)) {
		if (d->bypass_in - d->bypass_out >= NARROWS_BYPASS_SLOTS) {
			d->no_room++;
			goto drop;
		}
		key = which * NARROWS_BYPASS_SLOTS + ((u32)d->bypass_in & (NARROWS_BYPASS_SLOTS - 1));
		void *place = map_lookup(&bypass, &key);

		if (!place)
			goto drop;
		d->bypass_in++;
		d->bypassed++;
		d->tagged += is_tagged;
		FIELD(u32, sch, Qdisc__q__qlen)++;
		FIELD(u32, sch, Qdisc__qstats__backlog) += frame_length;
		LABEL(skb)[0] = 0;
		skb = kptr_xchg(place, skb);
		if (skb)
			bpf_qdisc_skb_drop(skb, to_free);
		return SUCCESS;
	}
	LABEL(skb)[0] = OURS | which;
	LABEL(skb)[1] = (u32)number;
	narrows_read_headers(&d->headers, record->head, frame_length, d->parameters.rules != 0);
	delay = d->parameters.delays == NARROWS_DRAWN || d->parameters.delays == NARROWS_CORRELATED ? *drawn : d->parameters.delay;

	/* User space takes all packets up to an instant as read once no arrival is under way. Atomic: it is a barrier, too. */
	__sync_fetch_and_add(&d->begun, 1);
	now = ktime_get_ns();
	narrows_catch_up(which, now);
	settle(sch, &d->state);
	if (!narrows_has_room(d)) {
		d->no_room++;
		__sync_fetch_and_add(&d->done, 1);
		goto drop;
	}
	if (frame_length > d->parameters.mtu + 14)
		d->trains++;
	record->arrival = now;
	record->frame_length = frame_length;
	record->head_length = head_length;
	slot = narrows_arrive(which, now, delay);
	__sync_fetch_and_add(&d->done, 1);
	found = slot == NARROWS_NONE ? 0 : held(which, slot);
	if (!found) {
		FIELD(u32, sch, Qdisc__qstats__drops)++;
		bpf_qdisc_skb_drop(skb, to_free);
		return SUCCESS;
	}
	FIELD(u32, sch, Qdisc__q__qlen)++;
	FIELD(u32, sch, Qdisc__qstats__backlog) += frame_length;
	skb = kptr_xchg(&found->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	return SUCCESS;

unsupported:
	d->unsupported++;
drop:
	FIELD(u32, sch, Qdisc__qstats__drops)++;
	bpf_qdisc_skb_drop(skb, to_free);
	return DROPPED;
}

SEC("struct_ops/dequeue")
struct sk_buff *dequeue(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];
	struct sk_buff *skb = 0;
	struct held *found;
	struct narrows_departure *departure;
	struct narrows_direction *d;
	u32 which, key;
	u64 now, due, *message;

	d = direction_of(sch, &which);
	if (!d)
		return 0;
	if (d->bypass_out != d->bypass_in) {
		key = which * NARROWS_BYPASS_SLOTS + ((u32)d->bypass_out & (NARROWS_BYPASS_SLOTS - 1));
		void *place = map_lookup(&bypass, &key);

		if (!place)
			return 0;
		d->bypass_out++;
		skb = kptr_xchg(place, 0);
		goto out;
	}
	now = ktime_get_ns();
	narrows_catch_up(which, now);
	settle(sch, &d->state);
	due = narrows_next_due(d, which);
	if (due > now) {
		due = narrows_wake(d, which);
		if (due != NARROWS_NEVER)
			bpf_qdisc_watchdog_schedule(sch, due, 0);
		return 0;
	}
	found = held(which, narrows_leave(which));
	key = ENTRY(which, records, (u32)d->left & ((u32)(u64)&room_records - 1));
	departure = map_lookup(&departures, &key);
	if (departure) {
		departure->due = due;
		departure->left = now;
	}
	/* Atomic: a barrier before user space may read it. */
	__sync_fetch_and_add(&d->left, 1);
	if (!found)
		return 0;
	if (d->parameters.marks || d->parameters.corrupts) {
		message = message_to(which, (u32)found->packet.number);
		if (message) {
			u64 what = found->packet.number << 32;

			if (d->parameters.marks && (found->packet.traffic_class & NARROWS_ECN) == NARROWS_ECN)
				what |= MARK_IT;
			if (found->packet.flip)
				what |= FLIP_A_BIT | (u64)(found->packet.flip - 1) << 8;
			*message = what;
		}
	}
	skb = kptr_xchg(&found->skb, 0);
out:
	if (!skb)
		return 0;
	FIELD(u32, sch, Qdisc__q__qlen)--;
	FIELD(u32, sch, Qdisc__qstats__backlog) -= FIELD(u32, skb, sk_buff__len);
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

/* Takes its direction, if no other qdisc has it. The limit, which nothing else uses, says so. */
SEC("struct_ops/init")
int init(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];
	struct narrows_direction *d;
	u32 which;

	FIELD(u32, sch, Qdisc__limit) = 0;
	d = direction_of(sch, &which);
	if (!d)
		return -22; /* EINVAL */
	if (__sync_lock_test_and_set(&d->taken, 1))
		return -16; /* EBUSY */
	FIELD(u32, sch, Qdisc__limit) = 1;
	return 0;
}

/* Frees what is inside: the interface is going away, or goes down. */
SEC("struct_ops/reset")
void reset(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];
	struct held *found;
	struct narrows_direction *d;
	struct sk_buff *skb;
	u32 which, key, slot;
	u64 now = ktime_get_ns();

	d = direction_of(sch, &which);
	if (!d || !FIELD(u32, sch, Qdisc__limit))
		return;
	while (d->bypass_out != d->bypass_in && NARROWS_MAY_LOOP) {
		key = which * NARROWS_BYPASS_SLOTS + ((u32)d->bypass_out & (NARROWS_BYPASS_SLOTS - 1));
		void *place = map_lookup(&bypass, &key);

		if (!place)
			break;
		d->bypass_out++;
		skb = kptr_xchg(place, 0);
		if (skb)
			bpf_kfree_skb(skb);
	}
	for (slot = 0; slot < d->state.used && NARROWS_MAY_LOOP; slot++) {
		found = held(which, slot);
		if (!found)
			break;
		skb = kptr_xchg(&found->skb, 0);
		if (skb) {
			bpf_kfree_skb(skb);
			narrows_vanish(which, slot, now);
		}
	}
	narrows_forget(which);
	FIELD(u32, sch, Qdisc__q__qlen) = 0;
	FIELD(u32, sch, Qdisc__qstats__backlog) = 0;
}

SEC("struct_ops/destroy")
void destroy(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];
	struct narrows_direction *d;
	u32 which;

	/* The kernel has called reset; and this, too, after an init that failed. */
	d = direction_of(sch, &which);
	if (d && FIELD(u32, sch, Qdisc__limit))
		__sync_lock_test_and_set(&d->taken, 0);
}

/* struct __sk_buff, of which the kernel promises the places. */
struct context {
	u32 before_interface[10];
	u32 interface;
	u32 class_index;
	u32 label[5];
	u32 before_socket[25];
	void *socket;
};

static long (*const clone_redirect)(struct context *skb, u32 interface, u64 flags) = (void *)13;
static long (*const pull_data)(struct context *skb, u32 length) = (void *)39;
static long (*const set_congestion)(struct context *skb) = (void *)97;
static long (*const load_bytes)(const struct context *skb, u32 at, void *to, u32 length) = (void *)26;
static long (*const store_bytes)(struct context *skb, u32 at, const void *from, u32 length, u64 flags) = (void *)9;

/*
 * Before the qdisc, as a classifier at the interface's egress: a packet inside the link must not count as unsent at its sender, or
 * TCP would keep no more there than a millisecond's worth (TCP small queues) and a datagram's sender would block. A clone has no
 * socket. sch_netem has skb_orphan_partial() for this, which BPF cannot call.
 */
SEC("classifier")
int orphan(struct context *skb)
{
	if (!skb->socket)
		return -1; /* TC_ACT_UNSPEC: on to the qdisc */
	clone_redirect(skb, skb->interface, 0);
	return 4; /* TC_ACT_STOLEN: done, as far as the sender knows */
}

/*
 * At the other end, as a classifier of what arrives: changes packets as the qdisc says, which cannot do it itself: marks them, or flips a
 * bit. Packets are clones (see above), which are copied first if others have them, too.
 */
SEC("classifier/change")
int change(struct context *skb)
{
	u32 label = skb->label[0], bit;
	u64 *message, what;
	u8 byte;

	if ((label & 0xffff0000) != OURS)
		return -1;
	message = message_to(label & 0xffff, skb->label[1]);
	skb->label[0] = 0;
	if (!message)
		return -1;
	what = *message;
	if (what >> 32 != skb->label[1])
		return -1;
	bit = (u32)what >> 8;
	if ((what & MARK_IT) && !pull_data(skb, 0))
		set_congestion(skb);
	if ((what & FLIP_A_BIT) && !load_bytes(skb, NARROWS_ETHERNET + bit / 8, &byte, 1)) {
		byte ^= 0x80 >> (bit & 7);
		store_bytes(skb, NARROWS_ETHERNET + bit / 8, &byte, 1, 0);
	}
	return -1;
}
