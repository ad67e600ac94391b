/* allocator/snapshot.h - the cluster as the simulation sees it: an immutable value made of Kubernetes objects.
 *
 * A builder takes objects one by one as JSON (v1 Node, Pod, Namespace; resource.k8s.io DeviceClass, ResourceSlice, ResourceClaim,
 * DeviceTaintRule in their v1, v1beta2 and v1beta1 shapes; `kind: List` of them) and makes snapshots, sharing all that did
 * not change with the snapshot before, so that one changed device costs microseconds, not a rebuild.
 *
 * A snapshot never changes. It is reference-counted atomically: the event loop and the planner may hold the same one. */
#ifndef QUEUED_SNAPSHOT_H
#define QUEUED_SNAPSHOT_H

#include <stdbool.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "allocator/features.h"

struct placement;
struct snapshot;
struct snapshot_builder;

/* validate: refuse what the API server would refuse (names, limits, exclusive fields, CEL that does not compile).
 * Without it objects load as they are, as the conformance cases need. */
struct snapshot_builder *snapshot_builder_new(const struct features *features, bool validate);
void snapshot_builder_free(struct snapshot_builder *builder);
static inline void snapshot_builder_freep(struct snapshot_builder **builder)
{
    snapshot_builder_free(*builder);
}

/* Add an object, or replace the one of the same kind, namespace and name. For a List all good items are taken and the
 * first bad one is reported. The JSON is borrowed. Returns 0, or -1 with the field at fault ("spec.devices[3].name");
 * a refused object leaves its predecessor in place, everything else stays usable. */
MUST_CHECK int snapshot_builder_put(struct snapshot_builder *builder, const json_t *object, struct error *err);
/* Forget an object; `ns` is NULL for cluster-scoped kinds. Nothing happens if it is not there. */
void snapshot_builder_remove(struct snapshot_builder *builder, const char *kind, const char *ns, const char *name);
/* The snapshot of all objects now in the builder, with one reference for the caller. */
struct snapshot *snapshot_builder_build(struct snapshot_builder *builder);

struct snapshot *snapshot_ref(const struct snapshot *snapshot);
void snapshot_unref(const struct snapshot *snapshot);

/* The same cluster with a placement's pods and devices taken as well: what the next job of a planning round sees.
 * Returns a new snapshot with one reference. */
struct snapshot *snapshot_with(const struct snapshot *snapshot, const struct placement *placement);

const struct features *snapshot_features(const struct snapshot *snapshot);
size_t snapshot_n_nodes(const struct snapshot *snapshot);
size_t snapshot_n_devices(const struct snapshot *snapshot);
/* Whether objects can be created in this namespace. A snapshot without a single Namespace (nobody listed them) has all. */
bool snapshot_has_namespace(const struct snapshot *snapshot, const char *name);

/* How often the simulation could remember instead of computing, since the builder was made: compiled expressions by their
 * text, their results by the attributes they read, answers for a pod by the state of the node. Any thread. */
struct snapshot_hits {
    uint64_t expressions_asked, expressions_found;
    uint64_t results_asked, results_found;
    uint64_t answers_asked, answers_found;
};
struct snapshot_hits snapshot_hits(const struct snapshot *snapshot);

/* ---- reading it, for people and for quotas ---- */

struct device_view {
    const char *node; /* NULL when the device is not bound to one node */
    const char *driver, *pool, *name;
    const char *state; /* "free" "in-use" "shared" "blocked" (counters) "tainted" "unavailable" (pool incomplete or invalid) */
    const char *claim; /* "namespace/name" of a holder, or NULL */
    const char *pod_job; /* label queue.dra/job of the holding claim, or NULL */
};

/* Call `each` for every device in a fixed order (driver, pool, slice, position). Strings live as long as the snapshot. */
void snapshot_each_device(const struct snapshot *snapshot, void (*each)(void *ctx, const struct device_view *device),
                          void *ctx);
/* Attributes and capacities of a device as a new JSON object {"attributes": {...}, "capacity": {...}, "taints": [...]}. */
json_t *snapshot_device_json(const struct snapshot *snapshot, const char *driver, const char *pool, const char *name);
/* All that tells a device from others but its name, so that two devices with equal traits can stand for each other:
 * {"driver", "pool", "self": {attributes, capacities, taints, nodes, ...}, "draws": [{"from": counter set, "holds": what
 * is in the set, "takes": what the device draws from it, "groups"}]}. The name of a counter set is one more name. A new
 * reference; NULL when there is no such device. */
json_t *snapshot_device_traits(const struct snapshot *snapshot, const char *driver, const char *pool, const char *name);
/* Nodes as a new JSON array: [{"name", "labels", "ready", "schedulable", "taints", "allocatable": {...}, "used": {...}}]. */
json_t *snapshot_nodes_json(const struct snapshot *snapshot);

/* ---- what quota counts ---- */

struct device_matcher;

/* A set of devices that an administrator counts: those of a class (may be NULL) for which the CEL expression (may be
 * NULL) is true. An evaluation error counts as no match here. Returns 0, or -1 when the expression does not compile. */
MUST_CHECK int device_matcher_new(const char *device_class, const char *expression, struct device_matcher **out,
                                  struct error *err);
void device_matcher_free(struct device_matcher *matcher);
/* How many devices (or, with `capacity` not NULL, how much of that capacity, in whole units rounded up) the cluster has
 * that match, healthy or not. */
int64_t snapshot_capacity(const struct snapshot *snapshot, const struct device_matcher *matcher, const char *capacity);
/* How much of it a placement takes; a share of a device counts as its consumed capacity, and as one device. */
int64_t placement_charge(const struct snapshot *snapshot, const struct placement *placement,
                         const struct device_matcher *matcher, const char *capacity);

#endif
