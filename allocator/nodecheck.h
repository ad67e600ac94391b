/* allocator/nodecheck.h - may this pod run on this node, and what would devices serve there beside its claims?
 *
 * For whoever places single pods as kube-scheduler does: the filters of nodefit.h with what runs on the node counted,
 * the reason in kube-scheduler's words, and the claim that the scheduler makes itself for extended resources that a
 * device class stands behind. Devices are predict()'s part.
 *
 * Source: kube-scheduler's filters (nodefit.h); the DRA allocation semantics, section 11.3. Pure; any thread, each with
 * its own arena. */
#ifndef QUEUED_NODECHECK_H
#define QUEUED_NODECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"

struct claim;
struct quantity;
struct snapshot;

/* What one pod demands of a node, read once for many nodes. */
struct pod_check;

/* Read a pod (the whole object) into the arena. Borrows the pod and the snapshot for as long as the check is used.
 * Returns 0, or -1 with ERR_INVALID and the field of what is wrong or not simulated. */
MUST_CHECK int pod_check_new(const struct snapshot *snapshot, const json_t *pod, struct arena *arena,
                             struct pod_check **out, struct error *err);

/* NULL when the node takes the pod, devices aside; else the reason in kube-scheduler's words, in the arena or static.
 * An extended resource that the node does not advertise and a class serves is not counted: see below. */
const char *pod_check_refusal(const struct pod_check *check, const char *node, struct arena *arena);

/* The claim for extended resources that kube-scheduler would allocate on this node, behind the pod's own claims: for
 * predict(). NULL when the node needs none. In the arena. */
struct claim *pod_check_extended(const struct pod_check *check, const char *node, struct arena *arena);
/* The same claim for the API, when there is one: *out_spec is the spec of the ResourceClaim, *out_mappings the
 * requestMappings of pod.status.extendedResourceClaimStatus. New references. False, and nothing written, when the node
 * needs none. */
bool pod_check_extended_json(const struct pod_check *check, const char *node, json_t **out_spec, json_t **out_mappings);

/* What one pod asks of a node's two oldest resources, as kube-scheduler counts it: the larger of its containers
 * together and its init containers, with overhead. */
struct pod_amounts {
    int64_t cpu_milli, memory_bytes;
};

/* Read {"spec": v1 PodSpec}. Returns 0, or -1 with ERR_INVALID and the field of what cannot be read. */
MUST_CHECK int pod_amounts_read(const json_t *pod, struct pod_amounts *out, struct error *err);

/* Call `each` for every resource that {"spec": v1 PodSpec} requests, in the order of their names: as above, and with
 * what only has a limit requested by it, as the API server writes it; or (only_limits) for every limit. Names and
 * amounts live in `arena`. Returns 0, or -1 with ERR_INVALID and the field of what cannot be read. */
MUST_CHECK int pod_resources_each(const json_t *pod, bool only_limits, struct arena *arena,
                                  void (*each)(void *ctx, const char *resource, const struct quantity *amount),
                                  void *ctx, struct error *err);

/* An amount in the scheduler's unit: thousandths of "cpu", whole units rounded up of everything else; saturates. */
int64_t scheduler_units(const char *resource, const struct quantity *amount);

/* Whether a claim's allocation (its status.allocation, borrowed) may be used on the node. */
bool allocation_reaches(const struct snapshot *snapshot, const char *node, const json_t *allocation,
                        struct arena *arena);

#endif
