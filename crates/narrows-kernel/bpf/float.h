/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Arithmetic on doubles (IEEE 754, binary64), which BPF does not have: they are passed as their bits. Results are those of a processor,
 * rounded to the nearest, and of two that are as near to the even one. There are no NaNs here, so what would be one is anything.
 */
#ifndef NARROWS_FLOAT_H
#define NARROWS_FLOAT_H

#include "base.h"

#define NARROWS_SIGN (1ULL << 63)
#define NARROWS_INFINITY 0x7ff0000000000000ULL
#define NARROWS_ONE 0x3ff0000000000000ULL
#define NARROWS_HALF 0x3fe0000000000000ULL

/* A number that is not zero: mantissa * 2^exponent, with the mantissa's highest bit set. */
struct narrows_taken_apart {
	narrows_u64 mantissa;
	narrows_s64 exponent;
};

NARROWS_INLINE struct narrows_taken_apart narrows_normal(narrows_u64 mantissa, narrows_s64 exponent)
{
	struct narrows_taken_apart number;
	narrows_u64 ones = mantissa | mantissa >> 1;
	narrows_u64 zeros;

	ones |= ones >> 2;
	ones |= ones >> 4;
	ones |= ones >> 8;
	ones |= ones >> 16;
	ones |= ones >> 32;
	NARROWS_OPAQUE(ones);
	/* Before the highest bit that is set. */
	zeros = 64 - (narrows_u64)__builtin_popcountll(ones);
	number.mantissa = mantissa << (zeros & 63);
	number.exponent = exponent - (narrows_s64)zeros;
	return number;
}

/* Of a number that is neither zero nor infinite. */
NARROWS_INLINE struct narrows_taken_apart narrows_take_apart(narrows_u64 number)
{
	narrows_u64 exponent = number >> 52 & 0x7ff, fraction = number & ((1ULL << 52) - 1);

	if (!exponent)
		return narrows_normal(fraction, -1074);
	return narrows_normal(fraction | 1ULL << 52, (narrows_s64)exponent - 1075);
}

/* The nearest double. The lowest bit of the mantissa stands for all that are lower still. */
NARROWS_INLINE narrows_u64 narrows_rounded(narrows_u64 sign, struct narrows_taken_apart number)
{
	narrows_s64 exponent = number.exponent + 1086;
	narrows_u64 drop = 11, kept, rest;

	if (exponent >= 2047)
		return sign | NARROWS_INFINITY;
	if (exponent < 1) {
		/* With fewer digits. */
		drop += (narrows_u64)(1 - exponent);
		exponent = 1;
		if (drop > 64)
			return sign;
	}
	if (drop == 64) {
		kept = 0;
		rest = number.mantissa;
	} else {
		kept = number.mantissa >> drop;
		rest = number.mantissa << (64 - drop);
	}
	kept += rest > NARROWS_SIGN || (rest == NARROWS_SIGN && (kept & 1));
	/* The highest bit of what is kept adds one to the exponent. */
	return sign | (((narrows_u64)(exponent - 1) << 52) + kept);
}

NARROWS_INLINE int narrows_is_zero(narrows_u64 number)
{
	return !(number << 1);
}

NARROWS_INLINE int narrows_is_below(narrows_u64 a, narrows_u64 b)
{
	if (narrows_is_zero(a) && narrows_is_zero(b))
		return 0;
	if ((a ^ b) & NARROWS_SIGN)
		return (a & NARROWS_SIGN) != 0;
	return a & NARROWS_SIGN ? a > b : a < b;
}

NARROWS_PART narrows_u64 narrows_add(narrows_u64 a, narrows_u64 b)
{
	narrows_u64 sign, apart, lost, swapped;
	struct narrows_taken_apart more, less;

	/* The larger one first. */
	if ((a << 1) < (b << 1)) {
		swapped = a;
		a = b;
		b = swapped;
	}
	if (narrows_is_zero(b))
		return narrows_is_zero(a) ? a & b : a;
	if ((a << 1) == NARROWS_INFINITY << 1)
		return a;
	sign = a & NARROWS_SIGN;
	more = narrows_take_apart(a);
	less = narrows_take_apart(b);
	apart = (narrows_u64)(more.exponent - less.exponent);
	/* Room for a carry; and of what is shifted out one bit remains, which says that there was something. */
	more.mantissa >>= 1;
	more.exponent++;
	less.mantissa >>= 1;
	lost = apart >= 63 ? less.mantissa : less.mantissa & ((1ULL << apart) - 1);
	less.mantissa = apart >= 63 ? 0 : less.mantissa >> apart;
	less.mantissa |= lost != 0;
	if ((a ^ b) & NARROWS_SIGN) {
		more.mantissa -= less.mantissa;
		if (!more.mantissa)
			return 0;
	} else {
		more.mantissa += less.mantissa;
	}
	return narrows_rounded(sign, narrows_normal(more.mantissa, more.exponent));
}

NARROWS_PART narrows_u64 narrows_multiply(narrows_u64 a, narrows_u64 b)
{
	narrows_u64 sign = (a ^ b) & NARROWS_SIGN;
	struct narrows_taken_apart one, other;
	struct narrows_wide product;

	if (narrows_is_zero(a) || narrows_is_zero(b))
		return sign;
	if ((a << 1) == NARROWS_INFINITY << 1 || (b << 1) == NARROWS_INFINITY << 1)
		return sign | NARROWS_INFINITY;
	one = narrows_take_apart(a);
	other = narrows_take_apart(b);
	product = narrows_product(one.mantissa, other.mantissa);
	return narrows_rounded(sign, narrows_normal(product.high | (product.low != 0), one.exponent + other.exponent + 64));
}

NARROWS_PART narrows_u64 narrows_divide(narrows_u64 a, narrows_u64 b)
{
	narrows_u64 sign = (a ^ b) & NARROWS_SIGN, quotient = 0, rest, fits;
	struct narrows_taken_apart one, other;

	if (narrows_is_zero(a) || (b << 1) == NARROWS_INFINITY << 1)
		return sign;
	if (narrows_is_zero(b) || (a << 1) == NARROWS_INFINITY << 1)
		return sign | NARROWS_INFINITY;
	one = narrows_take_apart(a);
	other = narrows_take_apart(b);
	/* As whole numbers of 53 digits, of which the quotient has 62 binary ones behind the point. */
	rest = one.mantissa >> 11;
	other.mantissa >>= 11;
	for (int digit = 0; digit < 63; digit++) {
		fits = ~(rest - other.mantissa) >> 63;
		NARROWS_OPAQUE(fits);
		rest = (rest - (other.mantissa & -fits)) << 1;
		quotient = quotient << 1 | fits;
	}
	return narrows_rounded(sign, narrows_normal(quotient | (rest != 0), one.exponent - other.exponent - 62));
}

NARROWS_PART narrows_u64 narrows_of_whole(narrows_u64 number)
{
	return number ? narrows_rounded(0, narrows_normal(number, 0)) : 0;
}

/* The whole part, of a number that is not below zero; or the largest whole number. */
NARROWS_PART narrows_u64 narrows_whole(narrows_u64 number)
{
	narrows_s64 exponent = (narrows_s64)(number >> 52 & 0x7ff) - 1075;
	narrows_u64 mantissa = (number & ((1ULL << 52) - 1)) | 1ULL << 52;

	if (number & NARROWS_SIGN || exponent < -52)
		return 0;
	if (exponent > 11)
		return ~0ULL;
	return exponent < 0 ? mantissa >> (narrows_u64)-exponent : mantissa << (narrows_u64)exponent;
}

NARROWS_INLINE narrows_u64 narrows_subtract(narrows_u64 a, narrows_u64 b)
{
	return narrows_add(a, b ^ NARROWS_SIGN);
}

/* Nanoseconds in seconds. */
NARROWS_INLINE narrows_u64 narrows_seconds(narrows_u64 nanos)
{
	return narrows_divide(narrows_of_whole(nanos), 0x41cdcd6500000000ULL);
}

/* Uniform between 0 and 1, as in the engine's draws. */
NARROWS_INLINE narrows_u64 narrows_uniform(narrows_u64 bits)
{
	narrows_u64 number = narrows_add(narrows_of_whole(bits >> 11), NARROWS_HALF), last = NARROWS_ONE - 1;

	/* By 2^-53. */
	number -= 53ULL << 52;
	return narrows_is_below(number, last) ? number : last;
}

#endif
