/* queued/cluster/kube/backoff.h - how long to wait after failures. Pure. */
#ifndef QUEUED_KUBE_BACKOFF_H
#define QUEUED_KUBE_BACKOFF_H

#include <stdint.h>

#include "allocator/base/rng.h"

/* Milliseconds to wait after the n-th failure in a row (1 ..): doubles from base_ms to max_ms, and of that between a
 * half and the whole, so that many clients do not come back at once. */
int64_t kube_backoff_ms(struct rng *rng, int n, int64_t base_ms, int64_t max_ms);

#endif
