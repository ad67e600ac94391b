/* allocator/explain_tally.h - internal to the explanation of requests: what has been counted for one of them. */
#ifndef QUEUED_ALLOCATOR_EXPLAIN_TALLY_H
#define QUEUED_ALLOCATOR_EXPLAIN_TALLY_H

#include "allocator/explain.h"

#define MAX_SELECTORS 32
#define MAX_TAINTS    8

/* What is short on the device that comes closest. */
struct scarce {
    const char *key, *set; /* set: of counters only */
    const char *device, *pool;
    struct quantity asked, left;
};

/* What one member could have on the nodes that admit it. */
struct local {
    size_t here, most, places; /* on the node in work; on the best node; members over all nodes */
    const char *node;          /* the best */
};

struct tally {
    const struct gang_ask *ask;
    const char *claim, *request;
    size_t n_members;
    size_t first_probe; /* the class alone; then one per selector */
    size_t exist, match, free, in_use, tainted, counters, capacity, excluded;
    size_t failed[MAX_SELECTORS]; /* per selector: devices of the class that it excludes */
    struct scarce counter, amount;
    struct {
        const char *text;
        size_t n;
    } taints[MAX_TAINTS];
    size_t n_taints;
    bool is_implicit;     /* of the claim for extended resources */
    bool is_shareable;    /* some device that matches can have several takers */
    uint64_t **matched;   /* per pool slot: bitset of devices that match */
    uint64_t **usable;    /* of those, the free ones */
    uint64_t **concerned; /* matched, and those that use up their counters: whoever has them is a holder */
    struct local free_here, match_here;
};

static inline size_t n_selectors(const struct tally *tally)
{
    return tally->ask->ask->n_selectors < MAX_SELECTORS ? tally->ask->ask->n_selectors : MAX_SELECTORS;
}

/* A foreign number, kept where sums of it stay in range; 0 for mode All. */
static inline size_t count_of(const struct tally *tally)
{
    int64_t count = tally->ask->all ? 0 : tally->ask->ask->count;

    return count < 0 ? 0 : count > 1000000 ? 1000000 : (size_t)count;
}

/* explain_problem.c: what the counts alone say is in the way, as "needs 4 devices, and ..."; NULL: nothing. In
 * gang->work. */
const char *explain_problem(struct gang *gang, enum gang_verdict verdict, const struct tally *tally);

#endif
