/* allocator/gang.h - does a whole gang fit, where, on which devices; and if not, why.
 *
 * The verdict is sound always: replaying the placement member by member through predict() on the steered claims gives
 * exactly the planned devices. Where the search is not exhaustive it says so (GANG_UNDECIDED).
 *
 * All members of a group are alike. What kube-scheduler's other filters do with a pod counts too: node selector and
 * required affinity, taints, unschedulable and not-ready nodes, CPU, memory, pods, extended resources, host ports. */
#ifndef QUEUED_GANG_H
#define QUEUED_GANG_H

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/predict.h"
#include "allocator/snapshot.h"

/* ---- the question ---- */

/* One entry of a pod's spec.resourceClaims, resolved. */
enum gang_claim_source {
    GANG_CLAIM_OWN,      /* from a template: every member gets its own claim; `object` is the template */
    GANG_CLAIM_SHARED,   /* index into gang_spec.shared: one claim for all members that name it */
    GANG_CLAIM_EXISTING, /* a ResourceClaim that is in the cluster already: `name` in the gang's namespace */
    GANG_CLAIM_EXTENDED, /* in placements only: the claim that kube-scheduler makes itself for extended resources */
};
struct gang_claim {
    const char *pod_claim; /* name of the entry in the pod */
    enum gang_claim_source source;
    const json_t *object; /* GANG_CLAIM_OWN */
    size_t shared;        /* GANG_CLAIM_SHARED */
    const char *name;     /* GANG_CLAIM_EXISTING; for OWN and SHARED the template's or claim's name, for messages */
};
struct gang_group {
    const char *name;
    size_t n_members;
    const json_t *pod; /* {"metadata": ..., "spec": v1 PodSpec}, with API defaults not yet applied */
    const struct gang_claim *claims;
    size_t n_claims;
};
enum gang_constraint_kind { GANG_MATCH_ATTRIBUTE, GANG_DISTINCT_ATTRIBUTE, GANG_MATCH_NODE_LABEL };
struct gang_constraint {
    enum gang_constraint_kind kind;
    const char *key;           /* "domain/attribute", or the node label */
    const char *const *groups; /* the groups it covers; none: all */
    size_t n_groups;
    const char *const *requests; /* request names it covers; none: all */
    size_t n_requests;
    bool preferred; /* node labels only: try, but do not insist */
};
enum gang_score { GANG_SCORE_FRAGMENTATION, GANG_SCORE_PACK, GANG_SCORE_SPREAD };

/* What jobs of a cluster usually look like, so that the fragmentation score knows which room is worth keeping: of a
 * node's free devices, all that a typical pod could not use there count as fragments, weighted by how common the pod
 * is; members go where they add the least. Source: the idea of fragmentation gradient descent (USENIX ATC
 * 2023), section 3. Departure: whatever a device class can express counts, not GPUs alone.
 *
 * Made once, used by many plans and threads; independent of snapshots. */
struct gang_workload;
struct gang_typical {
    double weight;       /* how common: any positive number */
    const json_t *pod;   /* {"spec": v1 PodSpec}; CPU and memory count */
    const json_t *claim; /* a ResourceClaimTemplate whose first request counts (of firstAvailable the first
                            alternative); NULL: none */
};
/* Returns NULL with ERR_INVALID when an entry cannot be read; the JSON is borrowed for the call. */
struct gang_workload *gang_workload_new(const struct gang_typical *typical, size_t n, const struct features *features,
                                        struct error *err);
void gang_workload_free(struct gang_workload *workload);

struct gang_spec {
    const char *ns; /* namespace of the members; never NULL */
    const struct gang_group *groups;
    size_t n_groups;
    const json_t *const *shared; /* ResourceClaim objects that the job brings */
    size_t n_shared;
    const struct gang_constraint *constraints;
    size_t n_constraints;
    bool same_alternative; /* all members of a group must take the same alternatives of firstAvailable */
    enum gang_score score;
    const struct gang_workload *workload; /* for the fragmentation score; NULL: members go to few nodes */
    uint64_t budget;                      /* search steps; 0 is the default */
    /* Devices that may not be used, for instance because their quota is spent. All must be usable when n is 0. */
    const struct device_matcher *const *excluded;
    size_t n_excluded;
    int64_t now_ms; /* of the planning round, for expectations in the explanation only */
    /* For planning rounds, where nobody may ever read it: the explanation does not try what would make the gang fit
     * ("blocking" and "hints" are empty), nor does it count nodes and devices ("groups" is empty). */
    bool is_brief;
};

/* ---- the answer ---- */

enum gang_verdict {
    GANG_FITS,
    GANG_WAITS,     /* does not fit now, but would on the empty cluster */
    GANG_NEVER,     /* would not fit on this cluster even if it were empty, its nodes ready and its pools complete */
    GANG_UNDECIDED, /* not found within the budget */
    GANG_REFUSED, /* an object is missing or wrong (class, template, CEL error): kube-scheduler would never start it */
};

struct placed_claim {
    const char *pod_claim;
    enum gang_claim_source source;
    size_t shared; /* index into placement.shared when source is SHARED */
    /* For OWN and EXTENDED, and for an EXISTING claim that has no devices yet (every member that uses it shows the
     * same); without results for SHARED and for an EXISTING claim that is allocated. */
    struct allocation allocation;
};
struct placed_member {
    size_t group, index; /* index within the group, from 0 */
    const char *node;
    const struct placed_claim *claims;
    size_t n_claims;
    /* kube-scheduler must not be shown the member before those with lower turns are bound: it could take a device that
     * they share for fuller than it is (gang_turns.c), or, where the placement needs_turns, give it what was planned
     * for them. 0: at once. Without meaning for what is bound by ourselves, and where it places the pods of a group
     * together. */
    size_t turn;
};
struct placement {
    const struct placed_member *members; /* in the order of groups, then index */
    size_t n_members;
    const struct allocation *shared; /* one per gang_spec.shared */
    size_t n_shared;
    bool needs_turns; /* steering holds it only when members start in their turns, not all of them together */
    bool bind_only;   /* steering cannot hold it: only writing allocations (bind mode) can */
    const char *bind_reason;
    /* What the members ask of a node beside devices, one per group of the spec, for snapshot_with(). Opaque here. */
    const struct pod_demand *const *demands;
    size_t n_demands;
};

struct gang_result {
    enum gang_verdict verdict;
    const struct placement *placement; /* when it fits */
    json_t *explanation;               /* new reference, see below; never NULL after gang_fit */
    uint64_t steps;
};

/* Decide. Everything in `out` lives in `arena`, but for `explanation` and the JSON of the placement, which
 * gang_result_release() gives back. Returns 0 with a verdict, or -1 with ERR_INVALID when the question itself cannot be
 * read (a pod spec or claim that breaks a rule; the field says where). Pure; any thread.
 *
 * The explanation is a JSON object:
 *   {"verdict": "fits" | "waits" | "never" | "undecided" | "refused",
 *    "summary": "one sentence for people, naming the attribute, class, label, taint or resource that blocks, with the
 *                number that matters",
 *    "groups": [{"name", "members", "fit": how many fit by themselves, "nodes": {"total", "eligible"},
 *                "nodeReasons": [{"reason": "node selector does not match", "nodes": 3, "example": "n1"}],
 *                "requests": [{"claim", "request", "class", "count", "needed": by all members (not for mode All),
 *                              "exist", "match", "free", "inUse", "tainted",
 *                              "problem": "needs 3 devices on one node, and ..." when the numbers alone tell why,
 *                              "excluded": [{"selector" | "constraint" | "capacity" | "counter" | "taint" | "quota":
 *                                            text, "devices": n,
 *                                            of amounts also "asked", "left", "device": where the most is left,
 *                                            "counterSet"}],
 *                              "holders": [{"devices", "job", "jobName": if its claims tell it, "claims": how many}
 *                                          | {"devices", "claim": "namespace/name" of somebody else}],
 *                              "moreHolders": {"holders", "devices"} that are not listed}],
 *                "unusablePools": [{"driver", "pool", "problem"}] that matter to the requests}],
 *    "blocking": [{"kind": "constraint" | "selector" | "class" | "capacity" | "counters" | "taint" | "devices" |
 *                  "node", "name", "detail": needed and available in numbers, "nodes": [...],
 *                  of "devices" also "jobs": [ids of those that would have to end]}]: each alone is enough,
 *    "hints": ["what would make it fit", "what is missing"],
 *    "wouldFitWithNodes": [{"like": a node, "count": how many empty ones like it, added to those there are, are the
 *                           fewest that make the gang fit now, "devices": [{"name": model or driver, "count"}], "cpu",
 *                           "memory": of each}], the fewest first; only where some would}
 * Of a gang that never fits, "fit" and the nodes are those of the empty cluster; "free" and "inUse" are of now. */
MUST_CHECK int gang_fit(const struct snapshot *snapshot, const struct gang_spec *spec, struct arena *arena,
                        struct gang_result *out, struct error *err);
void gang_result_release(struct gang_result *result);

/* ---- steering: what to create so that kube-scheduler has no other choice ---- */

/* The spec of the ResourceClaim to create for a planned allocation, new reference: the chosen alternative as `exactly`
 * under the request's name, narrowed to the planned devices where an attribute identifies them, constraints trimmed to
 * what is left. `object` is the template or claim it came from. */
json_t *steered_claim_spec(const struct snapshot *snapshot, const json_t *object, const struct allocation *allocation);
/* The same, and whether it admits the planned devices only: otherwise first fit decides among those that look like
 * them. */
json_t *steered_claim_spec_of(const struct snapshot *snapshot, const json_t *object,
                              const struct allocation *allocation, bool *out_exact);

/* A placement as JSON for storing and showing, and back. The text is the same for equal placements.
 *   {"members": [{"group", "index", "node", "claims": [{"podClaim", "source", "allocation": status.allocation}],
 *                "turn" if not 0}],
 *    "shared": [status.allocation], "bindOnly": bool, "needsTurns": true if so} */
json_t *placement_to_json(const struct placement *placement, const struct gang_spec *spec);

#endif
