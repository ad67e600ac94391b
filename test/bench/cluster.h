/* test/bench/cluster.h - the clusters that benches measure on, made object by object.
 *
 * N nodes with D devices each, in six kinds: plain, selector, match, firstAvailable, counters, capacity. About two
 * fifths of the devices are in use; every second node has another model. */
#ifndef QUEUED_BENCH_CLUSTER_H
#define QUEUED_BENCH_CLUSTER_H

#include <jansson.h>
#include <stddef.h>

extern const char *const cluster_kinds[];
extern const size_t n_cluster_kinds;

/* Call `put` with every object of the cluster: nodes, slices, the class, claims that hold devices. */
void cluster_each(const char *kind, size_t n_nodes, size_t n_devices, void (*put)(void *ctx, const json_t *object),
                  void *ctx);
/* The claim of the pod to predict for. New reference. */
json_t *cluster_claim(const char *kind);
/* The slice of one node once more, with `mark` in an attribute of its first device: a change that a driver may publish.
 */
json_t *cluster_changed_slice(const char *kind, size_t node, size_t n_devices, unsigned mark);

#endif
