/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * One direction of a link: what happens to a packet, decided when it arrives.
 *
 *     arrive -> loss at ingress -> bounded FIFO -> transmitter -> loss on the wire -> constant delay -> leave
 *
 * With a FIFO, a constant rate and a constant delay everything about a packet is known at its arrival: whether it is dropped,
 * when its transmission begins, and when it leaves. This file computes exactly what narrows-core computes
 * (link/transmitter.rs, service.rs, random.rs, queue/fifo.rs); a test compiles it for the host and compares. Times are
 * nanoseconds of CLOCK_MONOTONIC.
 *
 * Pure: no helper, no map. The includer defines NARROWS_MAY_LOOP, which bounds loops for the verifier, and the memory of waiting
 * packets.
 */
#ifndef NARROWS_LINK_H
#define NARROWS_LINK_H

typedef unsigned char narrows_u8;
typedef unsigned short narrows_u16;
typedef unsigned int narrows_u32;
typedef unsigned long long narrows_u64;

#define NARROWS_NEVER (~0ULL)
#define NARROWS_UNLIMITED (~0ULL)

/* What happened to a packet, as in the records. */
enum narrows_verdict {
	NARROWS_DELIVERED = 0,
	NARROWS_INGRESS_LOSS = 1,
	NARROWS_QUEUE_FULL = 2,
	NARROWS_WIRE_LOSS = 3,
};

/* Written by user space before the qdisc is added, and constant from then on. */
struct narrows_parameters {
	narrows_u64 rate;          /* bits per second; NARROWS_UNLIMITED, or 0 for a wire that is down */
	narrows_u64 delay;         /* nanoseconds */
	narrows_u64 limit_packets; /* waiting packets; one of the two limits is NARROWS_UNLIMITED */
	narrows_u64 limit_bytes;   /* waiting bytes, from the network header on */
	narrows_u64 ingress_loss;  /* 2^63 is certain */
	narrows_u64 wire_loss;
	narrows_u32 ingress_key[2]; /* keys of Philox: (seed, link, purpose) */
	narrows_u32 wire_key[2];
	narrows_u32 origin; /* hash of the port's name */
	int overhead_extra; /* bytes */
	narrows_u32 overhead_minimum;
	narrows_u32 counts_link_header;
	narrows_u32 cell_payload; /* 0: no cells */
	narrows_u32 cell_size;
	narrows_u32 mtu;       /* longer packets are trains of segments */
	narrows_u32 slots;     /* packets that fit into the queue, and into the delay line; a power of two */
	narrows_u32 records;   /* length of the ring of records; a power of two */
	narrows_u32 reserved;
};

struct narrows_state {
	narrows_u64 number;  /* of the next packet */
	narrows_u64 freed;   /* when the last transmission ends */
	narrows_u64 surplus; /* service left over then, in billionths of a bit */
	/* Packets that wait for the transmitter, as a ring: counts of all that entered and all that left. */
	narrows_u64 waiting_in;
	narrows_u64 waiting_out;
	narrows_u64 waiting_bytes;
};

/* A packet that waits for the transmitter. */
struct narrows_waiting {
	narrows_u64 begins;
	narrows_u64 length;
};

/* The fate of a packet. */
struct narrows_fate {
	narrows_u64 begins; /* of its transmission */
	narrows_u64 at;     /* when it leaves or is dropped */
	enum narrows_verdict verdict;
};

static inline __attribute__((always_inline)) narrows_u64 narrows_bits(const narrows_u32 key[2], narrows_u64 number, narrows_u32 origin)
{
	/* The first 64 bits of Philox4x32-10 (Salmon et al., SC 2011). */
	narrows_u32 k0 = key[0], k1 = key[1];
	narrows_u32 c0 = (narrows_u32)number, c1 = (narrows_u32)(number >> 32), c2 = origin, c3 = 0;

#ifdef __clang__
#pragma unroll
#endif
	for (int round = 0; round < 10; round++) {
		narrows_u64 p0 = (narrows_u64)0xD2511F53u * c0, p1 = (narrows_u64)0xCD9E8D57u * c2;

		c0 = (narrows_u32)(p1 >> 32) ^ c1 ^ k0;
		c2 = (narrows_u32)(p0 >> 32) ^ c3 ^ k1;
		c1 = (narrows_u32)p1;
		c3 = (narrows_u32)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return (narrows_u64)c1 << 32 | c0;
}

static inline __attribute__((always_inline)) int narrows_is_lost(narrows_u64 chance, const narrows_u32 key[2], narrows_u64 number,
							 narrows_u32 origin)
{
	return chance && narrows_bits(key, number, origin) >> 1 < chance;
}

/* The bits that a packet occupies on the wire. User space rejects overheads with which they would exceed 34 bits. */
static inline __attribute__((always_inline)) narrows_u64 narrows_wire_bits(const struct narrows_parameters *p, narrows_u32 length,
							   narrows_u32 link_header)
{
	long long sum = (long long)length + p->overhead_extra;
	narrows_u64 bytes;

	if (p->counts_link_header)
		sum += link_header;
	if (sum < (long long)p->overhead_minimum)
		sum = p->overhead_minimum;
	bytes = sum < 0 ? 0 : (narrows_u64)sum;
	if (p->cell_payload)
		bytes = (bytes + p->cell_payload - 1) / p->cell_payload * p->cell_size;
	return 8 * bytes;
}

/*
 * Whether the packet is dropped before it may wait. Transmissions that have begun by `now` must have left `waiting_*`.
 */
static inline __attribute__((always_inline)) int narrows_is_full(const struct narrows_parameters *p, const struct narrows_state *s,
							 narrows_u32 length)
{
	return s->waiting_in - s->waiting_out >= p->limit_packets || s->waiting_bytes + length > p->limit_bytes;
}

/* A packet that the queue accepts at `now`: its transmission, and when it leaves. */
static inline __attribute__((always_inline)) void narrows_transmit(const struct narrows_parameters *p, struct narrows_state *s,
							   narrows_u64 now, narrows_u32 length,
							   narrows_u32 link_header, struct narrows_fate *fate)
{
	narrows_u64 bits = narrows_wire_bits(p, length, link_header);
	/* Below 2^34 bits times 10^9: 64 bits suffice. */
	narrows_u64 work = bits * 1000000000ULL, carried = 0, left_over = 0, nanos, end;
	narrows_u64 begins = s->freed > now ? s->freed : now;

	if (begins == s->freed)
		carried = s->surplus;
	if (carried > work) {
		left_over = carried - work;
		work = 0;
	} else {
		work -= carried;
	}
	if (work == 0 && (bits || left_over)) {
		end = begins;
		s->surplus = left_over;
	} else if (p->rate == 0 || begins == NARROWS_NEVER) {
		end = NARROWS_NEVER;
		s->surplus = left_over;
	} else if (p->rate == NARROWS_UNLIMITED || work == 0) {
		end = begins;
		s->surplus = left_over;
	} else {
		nanos = work / p->rate + (work % p->rate != 0);
		/* Below the rate, so what the product loses beyond 64 bits cancels in the difference. */
		s->surplus = nanos * p->rate - work + left_over;
		end = begins + nanos;
	}
	s->freed = end;
	fate->begins = begins;
	fate->at = end > NARROWS_NEVER - p->delay ? NARROWS_NEVER : end + p->delay;
}

/* The includer has the memory: the slot of the waiting packet with this number, or 0. */
static inline __attribute__((always_inline)) struct narrows_waiting *
narrows_waiting_slot(const struct narrows_parameters *p, narrows_u32 direction, narrows_u64 number);

/* Packets whose transmission has begun by `now` wait no more. */
static inline __attribute__((always_inline)) void narrows_catch_up(const struct narrows_parameters *p, struct narrows_state *s,
							   narrows_u32 direction, narrows_u64 now)
{
	while (s->waiting_out != s->waiting_in && NARROWS_MAY_LOOP) {
		struct narrows_waiting *slot = narrows_waiting_slot(p, direction, s->waiting_out);

		if (!slot || slot->begins > now)
			break;
		s->waiting_bytes -= slot->length;
		s->waiting_out++;
	}
}

/* The fate of the next packet, which arrives at `now`; narrows_catch_up() was called, and left room for it. */
static inline __attribute__((always_inline)) void narrows_decide(const struct narrows_parameters *p, struct narrows_state *s,
							 narrows_u32 direction, narrows_u64 now, narrows_u32 length,
							 narrows_u32 link_header, struct narrows_fate *fate)
{
	narrows_u64 number = s->number++;

	fate->at = fate->begins = now;
	if (narrows_is_lost(p->ingress_loss, p->ingress_key, number, p->origin)) {
		fate->verdict = NARROWS_INGRESS_LOSS;
		return;
	}
	if (narrows_is_full(p, s, length)) {
		fate->verdict = NARROWS_QUEUE_FULL;
		return;
	}
	narrows_transmit(p, s, now, length, link_header, fate);
	if (fate->begins > now) {
		struct narrows_waiting *slot = narrows_waiting_slot(p, direction, s->waiting_in);

		if (slot) {
			slot->begins = fate->begins;
			slot->length = length;
		}
		s->waiting_bytes += length;
		s->waiting_in++;
	}
	fate->verdict = NARROWS_DELIVERED;
	if (narrows_is_lost(p->wire_loss, p->wire_key, number, p->origin)) {
		fate->verdict = NARROWS_WIRE_LOSS;
		fate->at = s->freed; /* dropped when its transmission ends */
	}
}

/* The state of a direction, mapped by user space. */
struct narrows_direction {
	struct narrows_parameters parameters;
	struct narrows_state state;
	/* Packets given to the delay line, and packets that have left it. */
	narrows_u64 line_in, line_out;
	narrows_u64 bypass_in, bypass_out;
	/* Arrivals begun and done. While they differ, a record is being written. */
	narrows_u64 begun, done;
	/* Written by user space: records before this one have been read. */
	narrows_u64 read;
	/* Packets that did not enter the link: no room; with a VLAN tag, or too short. */
	narrows_u64 no_room, unsupported;
	/* Packets longer than the MTU: the segments of one message, crossing as one packet. */
	narrows_u64 trains;
	/* ARP, neighbour discovery and the like, which do not cross the link. */
	narrows_u64 bypassed;
};

#define NARROWS_BYPASS_SLOTS 256
#define NARROWS_HEAD 136

/* A packet that entered the link. */
struct narrows_record {
	narrows_u64 number;
	narrows_u64 arrival;
	narrows_u64 at;           /* when it is due, or dropped */
	narrows_u32 length;       /* from the network header on */
	narrows_u32 frame_length; /* from the Ethernet header on */
	narrows_u32 verdict;
	narrows_u32 head_length;
	narrows_u8 head[NARROWS_HEAD]; /* the first bytes of the frame */
};

/* A packet that left it. */
struct narrows_departure {
	narrows_u64 due;
	narrows_u64 left;
};

#endif
