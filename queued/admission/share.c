#include "queued/admission/share.h"

#include "allocator/base/invariant.h"

#include "allocator/base/banned.h"

__extension__ typedef unsigned __int128 wide;

/* used / capacity in units of 2^-32; what is beyond 2^32 times the capacity saturates. */
static uint64_t fraction(int64_t used, int64_t capacity)
{
    wide value = ((wide)(uint64_t)used << 32) / (uint64_t)capacity;

    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

struct share share_of(const int64_t *used, const int64_t *capacity, size_t n_resources, int64_t weight)
{
    struct share share = {0, weight, SIZE_MAX};

    INVARIANT(weight >= 1 && weight <= SHARE_MAX_WEIGHT);
    for (size_t r = 0; r < n_resources; r++) {
        uint64_t value = used[r] > 0 && capacity[r] > 0 ? fraction(used[r], capacity[r]) : 0;

        if (value > share.value)
            share = (struct share){value, weight, r};
    }
    return share;
}

int share_cmp(const struct share *a, const struct share *b)
{
    wide left = (wide)a->value * (uint64_t)b->weight, right = (wide)b->value * (uint64_t)a->weight;

    return (left > right) - (left < right);
}

double share_value(const struct share *share)
{
    return (double)share->value / 4294967296.0 / (double)share->weight;
}
