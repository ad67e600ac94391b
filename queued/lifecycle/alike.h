/* queued/lifecycle/alike.h - whether an attempt got what was planned, but for names.
 *
 * Where no attribute tells devices apart, first fit decides among them, in whatever order the members come: alike
 * members then have each other's devices. That is what was planned if the plan becomes the real allocation under a
 * renaming of devices and an exchange between members.
 *
 * The renaming
 *   - is one to one over the whole attempt: two claims that share a device share one afterwards, two that have one each
 *     have one each;
 *   - goes from each device to one with equal traits (snapshot_device_traits()): driver, pool, nodes, attributes,
 *     capacities, taints, and what it draws from counters;
 *   - comes with one of counter sets, one to one as well, among sets of a pool that hold the same. A device that draws
 *     from several sets keeps all sets of the attempt where they are;
 *   - leaves each claim its requests, and what it consumes of each device.
 * The exchange is between members of a `kind`, and of all that they have by themselves: their devices may differ
 * (one is tainted, and both tolerate that). Neither is enough without the other: members of different groups have each
 * other's devices, as far as these are alike. */
#ifndef QUEUED_LIFECYCLE_ALIKE_H
#define QUEUED_LIFECYCLE_ALIKE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* Results of the allocations of one claim, as Kubernetes writes them (status.allocation.devices.results). Of a planned
 * one the part of a request behind the slash does not count: steered claims ask for the alternative by itself. */
struct claim_devices {
    const json_t *planned, *real;
    size_t member;    /* whose claim it is; a member's claims stand in the order of its kind */
    const char *kind; /* the same for this claim of all members that may stand for each other; NULL: the claim stays */
};

/* See snapshot_device_traits(); a new reference, or NULL: like no other. */
typedef json_t *device_traits_fn(void *ctx, const char *driver, const char *pool, const char *device);

/* Pure but for `traits`. Time: n log n in the number of devices. Never true without a witness; where members share
 * devices or counters with members of their kind, an exchange that exists may not be found. */
bool claims_are_alike(const struct claim_devices *claims, size_t n, device_traits_fn *traits, void *ctx);

#endif
