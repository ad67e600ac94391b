/* allocator/predict.h - what would kube-scheduler give this pod's claims on this node?
 *
 * The answer equals that of the structured allocator of the release that the feature set names: same fit, same devices,
 * same alternatives, same class of error. Source: the DRA allocation semantics, sections 3 to 11. */
#ifndef QUEUED_PREDICT_H
#define QUEUED_PREDICT_H

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/quantity.h"
#include "allocator/base/quantity.h"
#include "allocator/snapshot.h"

struct claim; /* a parsed ResourceClaim spec; lives in the arena it was parsed into */

/* Parse the spec of a ResourceClaim or of a ResourceClaimTemplate (given as the whole object, any served shape), with
 * defaults applied. validate: as for snapshot_builder_new. Everything is copied into the arena. */
MUST_CHECK int claim_parse(const json_t *object, const struct features *features, bool validate, struct arena *arena,
                           struct claim **out, struct error *err);

enum predict_verdict {
    PREDICT_ALLOCATED,  /* every claim has its devices (also with no claims at all) */
    PREDICT_NO_FIT,     /* nothing fits here now */
    PREDICT_NODE_ERROR, /* this node only cannot be used: a pool is invalid */
    PREDICT_FATAL,      /* kube-scheduler would give up on the pod: CEL error, missing class, ... */
    PREDICT_TIMEOUT,    /* the search took more than its steps (kube-scheduler: 10 s, treated as no fit) */
};

struct consumed_capacity {
    const char *name;
    struct quantity amount;
};

/* Texts of a list field; items is NULL when the field is absent. */
struct string_list {
    const char *const *items;
    size_t n;
};

struct gang_constraint;
struct toleration;
struct node_selector;

/* One entry of status.allocation.devices.results. Strings live in the snapshot, the claim or the arena. */
struct device_result {
    const char *request; /* "req" or "req/sub" */
    const char *driver, *pool, *device;
    bool admin_access;
    bool is_share;                            /* gets a share id */
    const struct consumed_capacity *consumed; /* every capacity of the device, when it is a share */
    size_t n_consumed;
    const struct toleration *tolerations; /* of the request; see allocation_to_json */
    size_t n_tolerations;
    struct string_list binding_conditions, binding_failure_conditions, skip_node_operations;
};

/* One entry of status.allocation.devices.config. */
struct config_entry {
    bool from_class;
    const char *const *requests; /* none: all */
    size_t n_requests;
    const char *opaque; /* JSON text of the opaque part; NULL when the entry has none */
};

struct allocation {
    const struct device_result *results;
    size_t n_results;
    const struct config_entry *config;
    size_t n_config;
    const char *only_node;                /* usable on this node only (metadata.name In [only_node]); else NULL */
    const struct node_selector *selector; /* usable on the nodes of its one term; both NULL: usable everywhere */
    /* In placements of a gang only: devices of other members that its steered claim admits too, because no attribute
     * tells them apart and first fit deals them out well in any order of the members. */
    const struct device_result *also;
    size_t n_also;
    /* Likewise: constraints of the gang that its steered claim keeps, because its selectors cannot. */
    const struct gang_constraint *const *kept;
    size_t n_kept;
};

struct prediction {
    enum predict_verdict verdict;
    struct allocation *allocations; /* one per claim, when allocated */
    size_t n_allocations;
    const char *message; /* for the failures; names object and reason; in the arena */
    uint64_t steps;      /* of the search */
};

/* Run the allocator for `claims` (in the order of the pod's spec.resourceClaims, allocated ones left out) on one node.
 * max_steps bounds the search; 0 is the default. Everything in `out` lives in `arena`. Pure; any thread, each with its
 * own arena. */
void predict(const struct snapshot *snapshot, const char *node, const struct claim *const *claims, size_t n_claims,
             uint64_t max_steps, struct arena *arena, struct prediction *out);

/* status.allocation as the scheduler would write it (without timestamp); new reference. Share ids come from `share_id`,
 * which writes a lower-case UUID; NULL makes them "00000000-0000-4000-8000-<counter>". */
json_t *allocation_to_json(const struct allocation *allocation, void (*share_id)(void *ctx, char out[37]), void *ctx);
/* Its parts: the config array and the v1 NodeSelector, new references; NULL when there is none. */
json_t *allocation_config_json(const struct allocation *allocation);
json_t *allocation_selector_json(const struct allocation *allocation);

#endif
