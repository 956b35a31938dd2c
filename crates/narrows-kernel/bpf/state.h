/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* The structures: parameters, which user space writes, the state of a direction, and what user space reads. */
#ifndef NARROWS_STATE_H
#define NARROWS_STATE_H

#include "base.h"

enum narrows_loss_model {
	NARROWS_NO_LOSS = 0,
	NARROWS_INDEPENDENT = 1,
	NARROWS_GILBERT_ELLIOTT = 2,
	NARROWS_PATTERN = 3,
};

struct narrows_loss {
	/* Probabilities, of which 2^63 is certain: of loss in the good and in the bad state, and of leaving the state. */
	narrows_u64 loses[2];
	narrows_u64 leaves[2];
	narrows_u64 starts_bad; /* NARROWS_NEVER: it starts in the good state, without a draw */
	narrows_u64 length;     /* packets of a pattern */
	narrows_u32 ranges;     /* of a pattern */
	narrows_u32 model;
	narrows_u32 key[2];
};

struct narrows_loss_state {
	narrows_u64 seen;  /* packets, from the pattern's last start on */
	narrows_u32 range; /* the first one of a pattern that ends later */
	narrows_u16 bad, started;
};

/* Places of a pattern: from the first one up to, but without, the last one. */
struct narrows_range {
	narrows_u64 from, to;
};

enum narrows_estimator {
	NARROWS_EWMA = 0,
	NARROWS_EWMA_R = 1,
	NARROWS_EWMA_PE = 2,
};

#define NARROWS_CLASSES 32

enum narrows_discipline {
	NARROWS_IN_ORDER = 0, /* one class */
	NARROWS_PRIO = 1,     /* the lowest number first */
	NARROWS_DRR = 2,
	NARROWS_DBHPD = 3,
	NARROWS_WF2Q = 4,
};

/* Queue management, see management.h. Doubles are passed as their bits. */
enum narrows_management {
	NARROWS_UNMANAGED = 0,
	NARROWS_CODEL = 1,
	NARROWS_PIE = 2,
	NARROWS_RED = 3,
};

struct narrows_codel {
	narrows_u64 target, interval; /* nanoseconds */
	narrows_u64 longest;          /* bytes */
	narrows_u64 ce_threshold;     /* nanoseconds, or NARROWS_NEVER */
	narrows_u32 ce_value, ce_mask; /* of the traffic class */
};

struct narrows_pie {
	narrows_u64 target, period, high_delay; /* nanoseconds; there may be no high delay: NARROWS_NEVER */
	narrows_u64 target_seconds, alpha, beta, max_ecn; /* doubles */
	narrows_u64 grants;                      /* updates before the burst allowance is used up */
	narrows_u64 mean;                        /* bytes */
	narrows_u32 derandomize, cap_drop, byte_mode, reserved;
};

struct narrows_red {
	narrows_u64 min, max, probability, weight, halvings, longest; /* doubles */
	narrows_u64 typical_bits;
	narrows_u32 gentle, in_bytes, restart, harddrop, nodrop, reserved;
};

struct narrows_policy {
	narrows_u32 kind;
	narrows_u32 marks; /* whether packets are marked that can be */
	union {
		struct narrows_codel codel;
		struct narrows_pie pie;
		struct narrows_red red;
	};
};

struct narrows_codel_state {
	narrows_u64 first_above, drop_next; /* no time above the target: 0 */
	narrows_u32 count, last_count;
	narrows_u32 dropping, after;
};

struct narrows_pie_state {
	narrows_u64 probability, old_seconds; /* doubles */
	narrows_u64 old_delay;                /* nanoseconds */
	narrows_u64 updates;
	narrows_u32 since_grant, accumulated;
};

struct narrows_red_state {
	narrows_u64 average; /* a double */
	narrows_u64 count;
	narrows_u64 idle_since;
	narrows_u64 is_idle;
};

union narrows_policy_state {
	struct narrows_codel_state codel;
	struct narrows_pie_state pie;
	struct narrows_red_state red;
};

struct narrows_class {
	narrows_u64 limit_packets; /* waiting packets; one of the two limits is NARROWS_UNLIMITED */
	narrows_u64 limit_bytes;   /* waiting bytes, from the network header on */
	narrows_u64 quantum;       /* DRR: bytes a turn, below 2^62; WF2Q+: the weight, at least 1 */
	struct narrows_policy policy;
	/* DBHPD, see dbhpd.h */
	narrows_u64 slope;
	narrows_u64 factor;
	narrows_u64 bound; /* nanoseconds, or NARROWS_NEVER */
	narrows_u64 gamma; /* of 2^32, or NARROWS_NEVER: by the backlog */
	narrows_u64 cycle; /* nanoseconds */
	narrows_u32 threshold;
	narrows_u32 ddp;
	narrows_u32 estimator;
	narrows_u32 steps;
	narrows_u32 parts;
	narrows_u32 reserved;
};

struct narrows_class_state {
	narrows_u64 packets, bytes;
	narrows_u32 first, last; /* packets, if there are any */
	narrows_s64 deficit;     /* DRR */
	narrows_u64 start, remainder; /* WF2Q+ */
	union narrows_policy_state policy;
	/* DBHPD */
	narrows_u64 head;    /* when the first packet arrived */
	narrows_u64 average; /* nanoseconds, with 16 fraction bits */
	struct narrows_wide term;
	struct narrows_wide sum;
	narrows_u64 idle_since;
	narrows_u32 count;
	narrows_u32 is_mean;
};

/* The queue of a direction. */
struct narrows_queue {
	narrows_u64 limit_packets; /* of all classes together */
	narrows_u64 limit_bytes;
	narrows_u64 weights;   /* WF2Q+: their sum */
	narrows_u32 key[2];    /* of draws on arrival */
	narrows_u32 discipline;
	/* DBHPD */
	narrows_u32 common;            /* whether hybrid delays have a common denominator */
	narrows_u32 bounded;           /* the set of classes with a bound */
	narrows_u32 has_violated;      /* a bound is at stake when it has been missed, and not before */
	narrows_u32 earliest_deadline; /* which class is first if the bounds of several are at stake */
	narrows_u32 reserved;
	struct narrows_class class[NARROWS_CLASSES];
};

struct narrows_queue_state {
	narrows_u64 packets, bytes;
	narrows_u32 waiting; /* the set of classes with packets */
	/* DRR: classes with packets in the order of their turns, as a ring. */
	narrows_u32 turn, turns;
	narrows_u32 granted;
	narrows_u8 order[NARROWS_CLASSES];
	narrows_u64 virtual_time, virtual_remainder; /* WF2Q+; 0 before the first packet */
	struct narrows_class_state class[NARROWS_CLASSES];
};

/* A packet inside the link. */
struct narrows_packet {
	narrows_u64 number;
	narrows_u64 arrival;
	narrows_u64 delay; /* of the delay line */
	narrows_u64 due;
	narrows_u32 length; /* from the network header on */
	narrows_u32 next;
	narrows_u32 traffic_class; /* with the mark, if it has got one */
	narrows_u32 flip;          /* the number of the bit that is flipped, from the network header on, plus 1; 0: none */
};

#define NARROWS_HEAD 136
#define NARROWS_ETHERNET 14

enum narrows_family {
	NARROWS_IPV4 = 1,
	NARROWS_IPV6 = 2,
	NARROWS_OTHER = 4,
};

struct narrows_headers {
	narrows_u64 source[2], destination[2]; /* IPv4 as ::ffff:a.b.c.d, the upper half first */
	narrows_u32 length;                    /* from the network header on */
	narrows_u16 source_port, destination_port;
	narrows_u8 family;
	narrows_u8 protocol;
	narrows_u8 traffic_class;
	narrows_u8 tcp_flags;
};

/* A condition: everything holds. User space makes several of one with lists. */
struct narrows_rule {
	narrows_u64 dscps; /* sets, a bit each */
	narrows_u64 source[2], source_mask[2];
	narrows_u64 destination[2], destination_mask[2];
	narrows_u32 length_from, length_to;
	narrows_u16 source_from, source_to;
	narrows_u16 destination_from, destination_to;
	narrows_u16 either_from, either_to; /* one of both ports */
	narrows_u16 protocol;               /* 256: any */
	narrows_u8 ecns;
	narrows_u8 families;
	narrows_u8 tcp_set, tcp_clear;
	narrows_u8 about_ip, about_ports, about_tcp;
	narrows_u8 reserved[7];
	narrows_u32 class; /* or NARROWS_NONE */
};

/* What happened to a packet, as in the records. */
enum narrows_verdict {
	NARROWS_UNDECIDED = 0,
	NARROWS_DELIVERED = 1,
	NARROWS_INGRESS_LOSS = 2,
	NARROWS_QUEUE_FULL = 3,
	NARROWS_WIRE_LOSS = 4,
	NARROWS_NO_CLASS = 5,
	NARROWS_DELAY_LOSS = 6, /* by a value that was fed, or for lack of one */
	NARROWS_FORGOTTEN = 7,  /* none: it was inside when the interface went down */
	NARROWS_MANAGED = 8,    /* dropped by queue management */
};

/* Added to "delivered" where packets are marked: it has the mark "congestion experienced" (RFC 3168), from here or before. */
#define NARROWS_HAS_MARK 0x80
#define NARROWS_ECN 3

/* Where delays come from. */
enum narrows_delays {
	NARROWS_CONSTANT = 0,
	NARROWS_DRAWN = 1, /* user space draws the delay of each packet, ahead */
	NARROWS_FED = 2,   /* by another process */
	NARROWS_CORRELATED = 3, /* computed from what user space draws ahead, and from the packet before */
};

/* The delay of a packet for which no value was fed. */
enum narrows_on_empty {
	NARROWS_ZERO = 0,
	NARROWS_LAST = 1,
	NARROWS_REPEAT = 2,
	NARROWS_DROP = 3,
};

/* Written by user space before the qdisc is added, and constant from then on. */
struct narrows_parameters {
	narrows_u64 rate;  /* bits per second; NARROWS_UNLIMITED, or 0 for a wire that is down */
	narrows_u64 delay; /* nanoseconds, if it is constant; otherwise the least */
	narrows_u32 delays;
	narrows_u32 keeps_order;
	narrows_u32 origin; /* hash of the port's name */
	int overhead_extra; /* bytes */
	narrows_u32 overhead_minimum;
	narrows_u32 counts_link_header;
	narrows_u32 cell_payload; /* 0: no cells */
	narrows_u32 cell_size;
	narrows_u32 mtu;       /* longer packets are trains of segments; user space may change it */
	narrows_u32 slots;     /* packets that fit into the link */
	narrows_u32 rules;     /* of the classifier */
	narrows_u32 on_empty;
	narrows_u32 lead; /* the most values that repeat */
	narrows_u32 marks; /* whether some class marks packets */
	/* Of a flipped bit, with the key of its draws. */
	narrows_u64 corrupts;
	narrows_u32 corruption_key[2];
	/* Correlated delays: doubles, the last two in nanoseconds. */
	narrows_u64 correlation, innovation, mean, sd;
	struct narrows_loss loss[2]; /* at ingress, on the wire */
	struct narrows_queue queue;
};

/* A value that was fed: a delay, or below zero a loss, for packets that enter the delay line after `from`. */
struct narrows_fed_value {
	narrows_u64 from;
	narrows_s64 delay;
};

struct narrows_feed_state {
	narrows_u64 used; /* values */
	narrows_u64 last; /* delay */
	narrows_u64 repeated; /* place in the cycle of values that repeat */
};

struct narrows_state {
	narrows_u64 number;  /* of the next packet */
	narrows_u64 freed;   /* when the present or last transmission ends */
	narrows_u64 surplus; /* service left over then, in billionths of a bit */
	/* The delay line: packets in the order in which they leave, and in a heap those that overtake others. */
	narrows_u64 first_due, last_due; /* of the row, if it is not empty */
	narrows_u64 latest;              /* due time of all so far */
	narrows_u64 row;                 /* packets in the row */
	narrows_u32 row_first, row_last;
	narrows_u32 heap;     /* packets in the heap */
	narrows_u32 sequence; /* of the next one in it */
	/* Packets have slots: the list of those that are free again, and how many were ever used. */
	narrows_u32 free, used;
	narrows_u32 on_wire;
	narrows_u32 wire_busy;
	/* Lost on the wire, and not yet taken off the qdisc's backlog. */
	narrows_u32 discarded, discarded_bytes;
	struct narrows_loss_state loss[2];
	struct narrows_feed_state feed;
	/* The last number of correlated delays, a double, if there was one. */
	narrows_u64 last_number, has_number;
	struct narrows_queue_state queue;
};

/* A packet that overtakes. */
struct narrows_overtaking {
	narrows_u64 due;
	narrows_u32 sequence;
	narrows_u32 slot;
};

/* The state of a direction, mapped by user space. */
struct narrows_direction {
	struct narrows_parameters parameters;
	struct narrows_state state;
	/* Packets that have left the delay line. */
	narrows_u64 left;
	narrows_u64 bypass_in, bypass_out;
	/* Arrivals begun and done. While they differ, a record is being written. */
	narrows_u64 begun, done;
	/* Written by user space: records and decisions before these have been read, and values that have been fed. */
	narrows_u64 read, settled, fed;
	/* The same, once: when the run started. */
	narrows_u64 epoch;
	/* Packets that did not enter the link: no room; too short. */
	narrows_u64 no_room, unsupported;
	/* Packets longer than the MTU: the segments of one message, crossing as one packet. */
	narrows_u64 trains;
	/* ARP, neighbour discovery and the like, and frames with a VLAN tag: they pass beside the link. Those with a tag. */
	narrows_u64 bypassed, tagged;
	/* Written by user space: nobody reads records any more, and delays that were drawn ahead are taken again and again. */
	narrows_u64 unwatched;
	/* Whether a qdisc has this direction: another one, of anybody who knows its name, may not. */
	narrows_u64 taken;
	/* Of the packet that arrives. */
	struct narrows_headers headers;
	narrows_u64 hidden;
};

/*
 * A number whose value the verifier forgets. It follows each turn of a loop until two are alike, and a number that it knows in each
 * never is.
 */
NARROWS_INLINE narrows_u64 narrows_hide(struct narrows_direction *d, narrows_u64 number)
{
	volatile narrows_u64 *hidden = &d->hidden;

	*hidden = number;
	return *hidden;
}

#define NARROWS_BYPASS_SLOTS 256

/* A packet that entered the link. */
struct narrows_record {
	narrows_u64 arrival;
	narrows_u32 frame_length; /* from the Ethernet header on */
	narrows_u32 head_length;
	narrows_u8 head[NARROWS_HEAD]; /* the first bytes of the frame */
};

/* What was decided about a packet; the ring's place is its number's. */
struct narrows_decision {
	narrows_u64 at;      /* when it is due, or dropped */
	narrows_u64 verdict; /* in the lower eight bits, and above them the packet's number; written last */
};

/* A packet that left it. */
struct narrows_departure {
	narrows_u64 due;
	narrows_u64 left;
};

/* The includer has the memory. */
NARROWS_INLINE struct narrows_direction *narrows_direction(narrows_u32 direction);
NARROWS_INLINE struct narrows_packet *narrows_packet(narrows_u32 direction, narrows_u32 slot);

#endif
