/* A set of digests: open addressing, never more than half full, and bounded. When it is full it forgets to learn, which
 * costs time, not truth. */
#include <stdlib.h>

#include "allocator/base/mem.h"
#include "allocator/gang_search.h"

#include "allocator/base/banned.h"

#define MEMO_FIRST 1024
#define MEMO_MOST  ((size_t)1 << 21)

struct gs_memo {
    struct gs_hash *slots; /* {0, 0}: empty */
    size_t n, cap;
};

struct gs_memo *gs_memo_new(void)
{
    return mem_new(struct gs_memo);
}

void gs_memo_free(struct gs_memo *memo)
{
    if (!memo)
        return;
    free(memo->slots);
    free(memo);
}

/* The slot of the key, or the empty one where it belongs. */
static size_t slot_of(const struct gs_hash *slots, size_t cap, struct gs_hash key)
{
    size_t at = key.a & (cap - 1);

    while ((slots[at].a || slots[at].b) && !gs_hash_eq(slots[at], key))
        at = (at + 1) & (cap - 1);
    return at;
}

bool gs_memo_has(const struct gs_memo *memo, struct gs_hash key)
{
    return memo->n && gs_hash_eq(memo->slots[slot_of(memo->slots, memo->cap, key)], key);
}

static void memo_grow(struct gs_memo *memo)
{
    size_t cap = memo->cap ? memo->cap * 2 : MEMO_FIRST;
    struct gs_hash *slots = mem_array(struct gs_hash, cap);

    for (size_t i = 0; i < memo->cap; i++)
        if (memo->slots[i].a || memo->slots[i].b)
            slots[slot_of(slots, cap, memo->slots[i])] = memo->slots[i];
    free(memo->slots);
    memo->slots = slots;
    memo->cap = cap;
}

void gs_memo_put(struct gs_memo *memo, struct gs_hash key)
{
    size_t at;

    if ((memo->n + 1) * 2 > memo->cap) {
        if (memo->cap >= MEMO_MOST)
            return;
        memo_grow(memo);
    }
    at = slot_of(memo->slots, memo->cap, key);
    memo->n += !gs_hash_eq(memo->slots[at], key);
    memo->slots[at] = key;
}

static uint64_t scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct gs_hash gs_hash_mix(struct gs_hash h, uint64_t value)
{
    return (struct gs_hash){scramble(h.a + value + UINT64_C(0x9e3779b97f4a7c15)),
                            scramble((h.b ^ value) * UINT64_C(0xd6e8feb86659fd93) + UINT64_C(0xa0761d6478bd642f))};
}

struct gs_hash gs_hash_of(const void *bytes, size_t n, uint64_t seed)
{
    struct gs_hash h = gs_hash_mix((struct gs_hash){seed, n}, n);
    const unsigned char *at = bytes;

    for (size_t i = 0; i < n; i++)
        h = gs_hash_mix(h, at[i]);
    return h;
}
