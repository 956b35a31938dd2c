/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* What all of these files need: types, numbers of 128 bits, random draws. Pure: no helper, no map. */
#ifndef NARROWS_BASE_H
#define NARROWS_BASE_H

typedef unsigned char narrows_u8;
typedef unsigned short narrows_u16;
typedef unsigned int narrows_u32;
typedef unsigned long long narrows_u64;
typedef long long narrows_s64;

#define NARROWS_NEVER (~0ULL)
#define NARROWS_UNLIMITED (~0ULL)
#define NARROWS_NONE (~0U)
#define NARROWS_INLINE static inline __attribute__((always_inline))
/*
 * A function that the verifier checks by itself, so that the states of its caller and its own do not multiply. It has the direction's
 * number and other numbers for arguments, and returns a number: the includer has the memory.
 */
#ifndef NARROWS_PART
#define NARROWS_PART static __attribute__((unused))
#endif

/*
 * Clang forgets what it knows of this number, and so cannot make a condition of arithmetic. The verifier follows both ways of a
 * condition, which in a loop is too much for it.
 */
#define NARROWS_OPAQUE(number) asm volatile("" : "+r"(number))

/* A number of 128 bits; BPF has none. */
struct narrows_wide {
	narrows_u64 high, low;
};

NARROWS_INLINE struct narrows_wide narrows_product(narrows_u64 a, narrows_u64 b)
{
	narrows_u64 a0 = (narrows_u32)a, a1 = a >> 32, b0 = (narrows_u32)b, b1 = b >> 32;
	narrows_u64 low = a0 * b0, one = a1 * b0, other = a0 * b1;
	/* At most three times 2^32 - 1. */
	narrows_u64 middle = (low >> 32) + (narrows_u32)one + (narrows_u32)other;
	struct narrows_wide product;

	product.high = a1 * b1 + (one >> 32) + (other >> 32) + (middle >> 32);
	product.low = middle << 32 | (narrows_u32)low;
	return product;
}

NARROWS_INLINE struct narrows_wide narrows_sum(struct narrows_wide a, struct narrows_wide b)
{
	struct narrows_wide sum;

	sum.low = a.low + b.low;
	sum.high = a.high + b.high + (sum.low < a.low);
	return sum;
}

NARROWS_INLINE int narrows_is_more(struct narrows_wide a, struct narrows_wide b)
{
	return a.high != b.high ? a.high > b.high : a.low > b.low;
}

/* Whether a is less than b: 1 or 0, without a condition. */
NARROWS_INLINE narrows_u64 narrows_borrow(narrows_u64 a, narrows_u64 b)
{
	narrows_u64 difference = a - b;

	NARROWS_OPAQUE(difference);
	return ((~a & b) | (~(a ^ b) & difference)) >> 63;
}

/* The lower 128 bits. */
NARROWS_INLINE struct narrows_wide narrows_times(struct narrows_wide a, narrows_u32 b)
{
	struct narrows_wide product = narrows_product(a.low, b);

	product.high += a.high * b;
	return product;
}

/* The lower 64 bits of a / b. */
NARROWS_INLINE narrows_u64 narrows_quotient(struct narrows_wide a, narrows_u32 b)
{
	narrows_u64 rest, digits;

	if (!b)
		return 0;
	rest = a.high % b;
	rest = rest << 32 | a.low >> 32;
	digits = rest / b << 32;
	rest = rest % b << 32 | (narrows_u32)a.low;
	return digits + rest / b;
}

/* A block of Philox4x32-10 (Salmon et al., SC 2011) for a packet at its first visit: 128 random bits. */
NARROWS_INLINE void narrows_draw(const narrows_u32 key[2], narrows_u64 number, narrows_u32 origin, narrows_u32 block, narrows_u64 bits[2])
{
	narrows_u32 k0 = key[0], k1 = key[1];
	narrows_u32 c0 = (narrows_u32)number, c1 = (narrows_u32)(number >> 32), c2 = origin, c3 = block;

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
	bits[0] = (narrows_u64)c1 << 32 | c0;
	bits[1] = (narrows_u64)c3 << 32 | c2;
}

/* Whether something of this probability happens; 2^63 is certain. */
NARROWS_INLINE int narrows_happens(narrows_u64 probability, narrows_u64 bits)
{
	return bits >> 1 < probability;
}

#endif
