/* allocator/base/rng.h - a small seeded generator for property tests, simulations and benches. Not for secrets.
 *
 * Source: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). Equal seeds give equal sequences on every machine. */
#ifndef QUEUED_BASE_RNG_H
#define QUEUED_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number in 0 .. n-1; n > 0. The slight bias for huge n does not matter here. */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
    return rng_next(rng) % n;
}

#endif
