/* allocator/base/bitset.h - sets of small numbers (devices, nodes) as words; the caller owns the memory.
 *
 * A set is an array of bitset_words(n) words for the numbers 0 .. n-1. Bits at and above n are always 0. */
#ifndef QUEUED_BASE_BITSET_H
#define QUEUED_BASE_BITSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bitset_words(size_t n)
{
    return (n + 63) / 64;
}
static inline bool bitset_has(const uint64_t *set, size_t i)
{
    return (set[i / 64] >> (i % 64)) & 1;
}
static inline void bitset_put(uint64_t *set, size_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline void bitset_drop(uint64_t *set, size_t i)
{
    set[i / 64] &= ~((uint64_t)1 << (i % 64));
}

/* How many numbers are in the set of n_words words. */
size_t bitset_count(const uint64_t *set, size_t n_words);
/* The smallest member that is at least `from`, or SIZE_MAX. */
size_t bitset_next(const uint64_t *set, size_t n_words, size_t from);
/* into &= with; into |= with; into &= ~with. */
void bitset_and(uint64_t *into, const uint64_t *with, size_t n_words);
void bitset_or(uint64_t *into, const uint64_t *with, size_t n_words);
void bitset_andnot(uint64_t *into, const uint64_t *with, size_t n_words);

#endif
