/* allocator/cel/range.h - sizes and costs as ranges; sums and products saturate. */
#ifndef QUEUED_CEL_RANGE_H
#define QUEUED_CEL_RANGE_H

#include <math.h>
#include <stdint.h>

struct range {
    uint64_t min, max;
};

static inline struct range range_fixed(uint64_t n)
{
    return (struct range){n, n};
}

static inline uint64_t range_sum64(uint64_t a, uint64_t b)
{
    uint64_t c;

    return __builtin_add_overflow(a, b, &c) ? UINT64_MAX : c;
}

static inline uint64_t range_product64(uint64_t a, uint64_t b)
{
    uint64_t c;

    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

static inline struct range range_add(struct range a, struct range b)
{
    return (struct range){range_sum64(a.min, b.min), range_sum64(a.max, b.max)};
}

static inline struct range range_multiply(struct range a, struct range b)
{
    return (struct range){range_product64(a.min, b.min), range_product64(a.max, b.max)};
}

static inline uint64_t range_scale64(uint64_t n, double factor)
{
    double d = (double)n;

    if (d > 0 && factor > 0 && d > 0x1p64 / factor)
        return UINT64_MAX;
    d = ceil(d * factor);
    return d >= 0x1p64 ? UINT64_MAX : (uint64_t)d;
}

static inline struct range range_scale(struct range a, double factor)
{
    return (struct range){range_scale64(a.min, factor), range_scale64(a.max, factor)};
}

static inline struct range range_unite(struct range a, struct range b)
{
    return (struct range){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}

#endif
