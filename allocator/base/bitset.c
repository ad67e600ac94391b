#include "allocator/base/bitset.h"

size_t bitset_count(const uint64_t *set, size_t n_words)
{
    size_t n = 0;

    for (size_t w = 0; w < n_words; w++)
        n += (size_t)__builtin_popcountll(set[w]);
    return n;
}

size_t bitset_next(const uint64_t *set, size_t n_words, size_t from)
{
    size_t w = from / 64;
    uint64_t word;

    if (w >= n_words)
        return SIZE_MAX;
    word = set[w] & (~(uint64_t)0 << (from % 64));
    while (word == 0) {
        if (++w == n_words)
            return SIZE_MAX;
        word = set[w];
    }
    return w * 64 + (size_t)__builtin_ctzll(word);
}

void bitset_and(uint64_t *into, const uint64_t *with, size_t n_words)
{
    for (size_t w = 0; w < n_words; w++)
        into[w] &= with[w];
}

void bitset_or(uint64_t *into, const uint64_t *with, size_t n_words)
{
    for (size_t w = 0; w < n_words; w++)
        into[w] |= with[w];
}

void bitset_andnot(uint64_t *into, const uint64_t *with, size_t n_words)
{
    for (size_t w = 0; w < n_words; w++)
        into[w] &= ~with[w];
}
