/* queued/admission/share.h - which child of a queue is served next.
 *
 * The share of a child is the largest, over all resources, of used / what the cluster has, divided by its weight. The
 * child with the lowest share goes first, so that what is free flows to whoever had least for its weight.
 *
 * Source: weighted dominant resource fairness (Ghodsi et al., NSDI 2011, section 4.3). Departure: `used` is what the
 * caller says; today it is what runs, later it may mix in history that decays. */
#ifndef QUEUED_ADMISSION_SHARE_H
#define QUEUED_ADMISSION_SHARE_H

#include <stddef.h>
#include <stdint.h>

#define SHARE_MAX_WEIGHT 1000000

/* Weighted share as a fraction: value / (weight * 2^32). Exact to 2^-32 of the capacity, so that equal inputs compare
 * equal on every machine. */
struct share {
    uint64_t value;
    int64_t weight;
    size_t dominant; /* the resource that decides; SIZE_MAX while nothing is used */
};

/* used, capacity: n_resources amounts, each at least 0; a resource with capacity 0 is not compared (a cluster without
 * it cannot be shared by it). weight: 1 .. SHARE_MAX_WEIGHT. Pure; any thread. */
struct share share_of(const int64_t *used, const int64_t *capacity, size_t n_resources, int64_t weight);

/* Negative, 0 or positive as a's share is below, equal to or above b's. */
int share_cmp(const struct share *a, const struct share *b);

/* For showing only: 1.0 is the whole cluster at weight 1. */
double share_value(const struct share *share);

#endif
