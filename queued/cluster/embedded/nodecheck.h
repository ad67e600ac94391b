/* queued/cluster/embedded/nodecheck.h - kube-scheduler's filters for one pod and one node, devices aside.
 *
 * The rules are the allocator's, so that the embedded scheduler and the planner never disagree. */
#ifndef QUEUED_EMBEDDED_NODECHECK_H
#define QUEUED_EMBEDDED_NODECHECK_H

#include <stdbool.h>

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"

struct pod_rules;
struct snapshot;

/* Read what a pod demands of a node into the arena; -1 with the field of what is not simulated. */
MUST_CHECK int pod_rules_read(const json_t *pod, const struct snapshot *snapshot, struct arena *arena,
                              struct pod_rules **out, struct error *err);
/* NULL when the node takes the pod, else the reason in kube-scheduler's words, in the arena. */
const char *node_refusal(const struct snapshot *snapshot, const char *node, const struct pod_rules *rules,
                         struct arena *arena);
/* Whether a claim's allocation (status.allocation) may be used on the node. */
bool allocation_reaches(const struct snapshot *snapshot, const char *node, const json_t *allocation,
                        struct arena *arena);

#endif
