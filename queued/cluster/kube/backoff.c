#include "queued/cluster/kube/backoff.h"

#include "allocator/base/banned.h"

int64_t kube_backoff_ms(struct rng *rng, int n, int64_t base_ms, int64_t max_ms)
{
    int64_t ms = base_ms;

    for (int i = 1; i < n && ms < max_ms; i++)
        ms *= 2;
    ms = ms < max_ms ? ms : max_ms;
    return ms / 2 + (int64_t)rng_below(rng, (uint64_t)(ms - ms / 2) + 1);
}
