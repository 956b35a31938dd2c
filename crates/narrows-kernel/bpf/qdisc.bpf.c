/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * A direction of a link as a queueing discipline at the sending interface's root. link.h decides; this file moves packets.
 *
 * Arrays instead of lists and trees: with a constant delay packets leave in the order in which they came, so the delay line is a
 * ring of (due time, packet). Both `enqueue` and `dequeue` run under the qdisc's lock, so nothing here needs one. A direction's
 * place in the maps is its qdisc's major handle minus one: a BPF qdisc has no memory of its own.
 *
 * Every packet that enters the link leaves a record in memory that user space maps and reads at its leisure. A packet for which
 * there is no room, there or in the delay line, does not enter the link and gets no number, so all others keep their draws.
 *
 * No header of the kernel is included. The loader resolves these undefined symbols: kfuncs by their names, and `offset_S__F` to the
 * place of field F in structure S of the running kernel. The `maps` section only gives maps names: the loader knows their sizes.
 */
/* Lets the verifier accept a loop without knowing its bound: an instruction that ends it after some millions of rounds. */
#define NARROWS_MAY_LOOP \
	({ __label__ over, next; int may = 1; \
	   asm volatile goto("may_goto %l[over]" :::: over); goto next; \
	over: may = 0; next: may; })

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
extern const char offset_Qdisc__q__qlen, offset_Qdisc__qstats__backlog, offset_Qdisc__qstats__drops;
/* A field of a structure of the kernel. */
#define FIELD(type, pointer, name) (*(type *)((char *)(pointer) + (u64)&offset_##name))

#define SUCCESS 0 /* NET_XMIT_SUCCESS: a sender must not learn of losses that happen further on */
#define DROPPED 1 /* NET_XMIT_DROP */
#define DIRECTIONS 2
struct in_line {
	u64 due;
	struct sk_buff *skb;
};

char control SEC("maps"), records SEC("maps"), departures SEC("maps"), waiting SEC("maps"), line SEC("maps"), bypass SEC("maps");

INLINE struct narrows_waiting *narrows_waiting_slot(const struct narrows_parameters *p, u32 direction, u64 number)
{
	u32 key = direction * p->slots + ((u32)number & (p->slots - 1));

	return map_lookup(&waiting, &key);
}

INLINE struct narrows_direction *direction_of(struct Qdisc *sch, u32 *which)
{
	*which = (FIELD(u32, sch, Qdisc__handle) >> 16) - 1;
	if (*which >= DIRECTIONS)
		return 0;
	return map_lookup(&control, which);
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
	struct narrows_fate fate = {};
	struct in_line *in_line;
	struct narrows_direction *d;
	struct narrows_record *record;
	struct dynptr bytes;
	u32 which, key, length, frame_length, head_length;
	u16 ether_type;
	u64 now, number;

	d = direction_of(sch, &which);
	if (!d)
		goto drop;
	frame_length = FIELD(u32, skb, sk_buff__len);
	number = d->state.number;
	/* The record serves as room for the head of a packet that may turn out not to enter. */
	key = which * d->parameters.records + ((u32)number & (d->parameters.records - 1));
	record = map_lookup(&records, &key);
	if (!record)
		goto drop;
	if (number - *(volatile u64 *)&d->read >= d->parameters.records) {
		d->no_room++;
		goto drop;
	}
	head_length = frame_length < NARROWS_HEAD ? frame_length : NARROWS_HEAD;
	if (head_length < 34)
		goto unsupported;
	if (bpf_dynptr_from_skb(skb, 0, &bytes) || dynptr_read(record->head, head_length, &bytes, 0, 0))
		goto unsupported;
	ether_type = record->head[12] << 8 | record->head[13];
	if (concerns_the_link(record->head, ether_type)) {
		if (d->bypass_in - d->bypass_out >= NARROWS_BYPASS_SLOTS)
			goto drop;
		key = which * NARROWS_BYPASS_SLOTS + ((u32)d->bypass_in & (NARROWS_BYPASS_SLOTS - 1));
		void *place = map_lookup(&bypass, &key);

		if (!place)
			goto drop;
		d->bypass_in++;
		d->bypassed++;
		FIELD(u32, sch, Qdisc__q__qlen)++;
		FIELD(u32, sch, Qdisc__qstats__backlog) += frame_length;
		skb = kptr_xchg(place, skb);
		if (skb)
			bpf_qdisc_skb_drop(skb, to_free);
		return SUCCESS;
	}
	length = frame_length - 14;
	if (FIELD(u32, skb, sk_buff__vlan_all))
		goto unsupported;
	if (ether_type == 0x0800) {
		u32 said = record->head[16] << 8 | record->head[17];

		/* A short packet may be padded. */
		if (said >= 20 && said < length)
			length = said;
	} else if (ether_type == 0x86dd) {
		u32 said = (record->head[18] << 8 | record->head[19]) + 40;

		if (said < length)
			length = said;
	} else if (ether_type == 0x8100 || ether_type == 0x88a8) {
		goto unsupported;
	}

	/* User space takes all packets up to an instant as read once no arrival is under way. Atomic: it is a barrier, too. */
	__sync_fetch_and_add(&d->begun, 1);
	now = ktime_get_ns();
	narrows_catch_up(&d->parameters, &d->state, which, now);
	if (d->line_in - d->line_out >= d->parameters.slots || d->state.waiting_in - d->state.waiting_out >= d->parameters.slots) {
		d->no_room++;
		__sync_fetch_and_add(&d->done, 1);
		goto drop;
	}
	if (frame_length > d->parameters.mtu + 14)
		d->trains++;
	narrows_decide(&d->parameters, &d->state, which, now, length, 14, &fate);
	record->number = number;
	record->arrival = now;
	record->at = fate.at;
	record->length = length;
	record->frame_length = frame_length;
	record->verdict = fate.verdict;
	record->head_length = head_length;
	__sync_fetch_and_add(&d->done, 1);
	if (fate.verdict != NARROWS_DELIVERED) {
		FIELD(u32, sch, Qdisc__qstats__drops)++;
		bpf_qdisc_skb_drop(skb, to_free);
		return SUCCESS;
	}
	key = which * d->parameters.slots + ((u32)d->line_in & (d->parameters.slots - 1));
	in_line = map_lookup(&line, &key);
	if (!in_line)
		goto drop;
	in_line->due = fate.at;
	d->line_in++;
	FIELD(u32, sch, Qdisc__q__qlen)++;
	FIELD(u32, sch, Qdisc__qstats__backlog) += frame_length;
	skb = kptr_xchg(&in_line->skb, skb);
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
	struct in_line *in_line;
	struct narrows_departure *departure;
	struct narrows_direction *d;
	u32 which, key;
	u64 now;

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
	if (d->line_out == d->line_in)
		return 0;
	key = which * d->parameters.slots + ((u32)d->line_out & (d->parameters.slots - 1));
	in_line = map_lookup(&line, &key);
	if (!in_line)
		return 0;
	now = ktime_get_ns();
	if (in_line->due > now) {
		if (in_line->due != NARROWS_NEVER)
			bpf_qdisc_watchdog_schedule(sch, in_line->due, 0);
		return 0;
	}
	key = which * d->parameters.records + ((u32)d->line_out & (d->parameters.records - 1));
	departure = map_lookup(&departures, &key);
	if (departure) {
		departure->due = in_line->due;
		departure->left = now;
	}
	/* Atomic: a barrier before user space may read it. */
	__sync_fetch_and_add(&d->line_out, 1);
	skb = kptr_xchg(&in_line->skb, 0);
out:
	if (!skb)
		return 0;
	FIELD(u32, sch, Qdisc__q__qlen)--;
	FIELD(u32, sch, Qdisc__qstats__backlog) -= FIELD(u32, skb, sk_buff__len);
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/init")
int init(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];

	FIELD(u32, sch, Qdisc__limit) = 0;
	return 0;
}

/* Frees what is inside: the interface is going away, or goes down. */
SEC("struct_ops/reset")
void reset(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];
	struct in_line *in_line;
	struct narrows_direction *d;
	struct sk_buff *skb;
	u32 which, key;

	d = direction_of(sch, &which);
	if (!d)
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
	while (d->line_out != d->line_in && NARROWS_MAY_LOOP) {
		key = which * d->parameters.slots + ((u32)d->line_out & (d->parameters.slots - 1));
		in_line = map_lookup(&line, &key);
		if (!in_line)
			break;
		d->line_out++;
		skb = kptr_xchg(&in_line->skb, 0);
		if (skb)
			bpf_kfree_skb(skb);
	}
	FIELD(u32, sch, Qdisc__q__qlen) = 0;
	FIELD(u32, sch, Qdisc__qstats__backlog) = 0;
}

SEC("struct_ops/destroy")
void destroy(u64 *context)
{
	(void)context; /* the kernel has called reset */
}

/* struct __sk_buff, of which the kernel promises the places. */
struct context {
	u32 before_interface[10];
	u32 interface;
	u32 before_socket[31];
	void *socket;
};

static long (*const clone_redirect)(struct context *skb, u32 interface, u64 flags) = (void *)13;

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
