/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * What classes look at in a packet's headers (narrows-frame: parse.rs), and the conditions on it (narrows-core: classify/condition.rs).
 * Only the first NARROWS_HEAD bytes of a frame are looked at; what would be behind them counts as zero.
 */
#ifndef NARROWS_HEADERS_H
#define NARROWS_HEADERS_H

#include "state.h"

/* The includer has the memory. */
NARROWS_INLINE const struct narrows_rule *narrows_rule(narrows_u32 direction, narrows_u32 index);

NARROWS_INLINE narrows_u8 narrows_byte(const narrows_u8 *head, narrows_u32 at)
{
	return at < NARROWS_HEAD ? head[at] : 0;
}

NARROWS_INLINE narrows_u16 narrows_word(const narrows_u8 *head, narrows_u32 at)
{
	return (narrows_u16)(narrows_byte(head, at) << 8 | narrows_byte(head, at + 1));
}

NARROWS_INLINE narrows_u64 narrows_half_address(const narrows_u8 *head, narrows_u32 at)
{
	narrows_u64 half = 0;

	for (narrows_u32 byte = 0; byte < 8; byte++)
		half = half << 8 | head[at + byte];
	return half;
}

NARROWS_INLINE int narrows_has_ports(narrows_u8 protocol)
{
	return protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 || protocol == 136;
}

NARROWS_INLINE int narrows_is_extension(narrows_u8 protocol)
{
	return protocol == 0 || protocol == 43 || protocol == 44 || protocol == 51 || protocol == 60 || protocol == 135 ||
	       protocol == 139 || protocol == 140;
}

/* Reads the ports and flags of a transport header that begins at `at`; the packet ends before `end`. */
NARROWS_INLINE void narrows_read_transport(struct narrows_headers *h, const narrows_u8 *head, narrows_u32 at, narrows_u32 end)
{
	if (!narrows_has_ports(h->protocol) || at + 4 > end)
		return;
	h->source_port = narrows_word(head, at);
	h->destination_port = narrows_word(head, at + 2);
	if (h->protocol == 6 && at + 14 <= end)
		h->tcp_flags = narrows_byte(head, at + 13);
}

NARROWS_INLINE void narrows_read_ipv6(struct narrows_headers *h, const narrows_u8 *head, narrows_u32 room, int whole)
{
	narrows_u32 length = narrows_word(head, NARROWS_ETHERNET + 4), at = 40;
	narrows_u8 protocol = head[NARROWS_ETHERNET + 6];
	int readable = 1;

	length = length || protocol != 0 ? length + 40 : room;
	if (head[NARROWS_ETHERNET] >> 4 != 6 || room < 40 || length > room)
		return;
	h->family = NARROWS_IPV6;
	h->length = length;
	h->traffic_class = (narrows_u8)(head[NARROWS_ETHERNET] << 4 | head[NARROWS_ETHERNET + 1] >> 4);
	if (!whole)
		return;
	h->source[0] = narrows_half_address(head, NARROWS_ETHERNET + 8);
	h->source[1] = narrows_half_address(head, NARROWS_ETHERNET + 16);
	h->destination[0] = narrows_half_address(head, NARROWS_ETHERNET + 24);
	h->destination[1] = narrows_half_address(head, NARROWS_ETHERNET + 32);
	for (int number = 0; number < 16 && narrows_is_extension(protocol) && NARROWS_MAY_LOOP; number++) {
		narrows_u8 kind = protocol;
		narrows_u32 size;

		if (at + 4 > length) {
			readable = 0;
			break;
		}
		protocol = narrows_byte(head, NARROWS_ETHERNET + at);
		size = narrows_byte(head, NARROWS_ETHERNET + at + 1);
		if (kind == 44 && narrows_word(head, NARROWS_ETHERNET + at + 2) >> 3) {
			readable = 0;
			break;
		}
		at += kind == 44 ? 8 : kind == 51 ? (size + 2) * 4 : (size + 1) * 8;
	}
	h->protocol = protocol;
	if (readable && !narrows_is_extension(protocol) && at <= length)
		narrows_read_transport(h, head, NARROWS_ETHERNET + at, NARROWS_ETHERNET + length);
}

NARROWS_INLINE void narrows_read_ipv4(struct narrows_headers *h, const narrows_u8 *head, narrows_u32 room, int whole)
{
	narrows_u32 header = (head[NARROWS_ETHERNET] & 15) * 4, length = narrows_word(head, NARROWS_ETHERNET + 2);

	if (head[NARROWS_ETHERNET] >> 4 != 4 || header < 20 || room < header || length < header || length > room)
		return;
	h->family = NARROWS_IPV4;
	h->length = length;
	h->traffic_class = head[NARROWS_ETHERNET + 1];
	if (!whole)
		return;
	h->protocol = head[NARROWS_ETHERNET + 9];
	h->source[1] = 0xffffULL << 32 | narrows_half_address(head, NARROWS_ETHERNET + 8) << 32 >> 32;
	h->destination[1] = 0xffffULL << 32 | narrows_half_address(head, NARROWS_ETHERNET + 12) << 32 >> 32;
	if (!(narrows_word(head, NARROWS_ETHERNET + 6) & 0x1fff))
		narrows_read_transport(h, head, NARROWS_ETHERNET + header, NARROWS_ETHERNET + length);
}

/* Reads the head of an untagged Ethernet frame of `frame_length` bytes, at least 34: the length, the traffic class and, if `whole`, all the rest. */
NARROWS_INLINE void narrows_read_headers(struct narrows_headers *h, const narrows_u8 *head, narrows_u32 frame_length, int whole)
{
	struct narrows_headers none = {};
	narrows_u16 ether_type = narrows_word(head, 12);

	*h = none;
	h->length = frame_length - NARROWS_ETHERNET;
	h->family = NARROWS_OTHER;
	if (ether_type == 0x0800)
		narrows_read_ipv4(h, head, h->length, whole);
	else if (ether_type == 0x86dd)
		narrows_read_ipv6(h, head, h->length, whole);
}

NARROWS_INLINE int narrows_is_within(narrows_u16 value, narrows_u16 from, narrows_u16 to)
{
	return from <= value && value <= to;
}

NARROWS_INLINE int narrows_holds(const struct narrows_rule *r, const struct narrows_headers *h)
{
	if (!(r->dscps >> (h->traffic_class >> 2) & 1) || !(r->ecns >> (h->traffic_class & 3) & 1) || !(r->families & h->family))
		return 0;
	if (h->length < r->length_from || h->length > r->length_to || (r->protocol != 256 && r->protocol != h->protocol))
		return 0;
	if ((r->about_ip && h->family == NARROWS_OTHER) || (r->about_ports && !narrows_has_ports(h->protocol)))
		return 0;
	if (r->about_tcp && (h->protocol != 6 || (h->tcp_flags & r->tcp_set) != r->tcp_set || (h->tcp_flags & r->tcp_clear)))
		return 0;
	if (!narrows_is_within(h->source_port, r->source_from, r->source_to) ||
	    !narrows_is_within(h->destination_port, r->destination_from, r->destination_to))
		return 0;
	if (!narrows_is_within(h->source_port, r->either_from, r->either_to) &&
	    !narrows_is_within(h->destination_port, r->either_from, r->either_to))
		return 0;
	return (h->source[0] & r->source_mask[0]) == r->source[0] && (h->source[1] & r->source_mask[1]) == r->source[1] &&
	       (h->destination[0] & r->destination_mask[0]) == r->destination[0] &&
	       (h->destination[1] & r->destination_mask[1]) == r->destination[1];
}

/* The class of the packet that arrives: that of the first rule that holds, or NARROWS_NONE. */
NARROWS_PART narrows_u32 narrows_classify(narrows_u32 direction)
{
	struct narrows_direction *d = narrows_direction(direction);

	if (!d)
		return NARROWS_NONE;
	for (narrows_u32 index = 0; index < d->parameters.rules && NARROWS_MAY_LOOP; index++) {
		const struct narrows_rule *rule = narrows_rule(direction, index);

		if (!rule)
			break;
		if (narrows_holds(rule, &d->headers))
			return rule->class;
	}
	return NARROWS_NONE;
}

#endif
