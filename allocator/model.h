/* allocator/model.h - the data model of the allocator: what its own files may know. No other room includes it.
 *
 * Four layers, from the slowest to the fastest changing:
 *
 *   objects    struct slice, class, node_info, claim: parsed Kubernetes objects; immutable, reference-counted
 *   inventory  struct pool: the slices of one (driver, pool) and the state of their devices (who holds what);
 *              struct node: a node object, its pools, what its pods use; both immutable and reference-counted, replaced
 *              whole when something of theirs changes. Each carries a `stamp`: equal stamps mean the same value
 *   snapshot   persistent vectors of nodes and pools; sharing all that did not change with the snapshot before
 *   ledger     a private overlay on a snapshot for planning: cheap apply and undo of allocations on a trail
 *
 * A question ("these claims") is compiled once into a `struct shape`; per node it is answered by filling a `struct
 * bench` (the devices the node offers, in search order, with their state) and running `search_run` over it.
 *
 * Texts that repeat over the cluster (drivers, attribute and capacity names, resource names) are *symbols*: interned,
 * so that equal text is an equal pointer within one snapshot and its builder. All other texts live in their object. */
#ifndef QUEUED_MODEL_H
#define QUEUED_MODEL_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/quantity.h"
#include "allocator/cel/cel.h"
#include "allocator/predict.h"
#include "allocator/snapshot.h"

#define CLAIM_MAX_RESULTS 32 /* devices in one claim's allocation */

/* ---- symbols and hashes ---- */

struct symbols;
/* The one pointer for this text; thread-safe, lives as long as the snapshot. NULL for NULL. */
const char *symbol(struct symbols *symbols, const char *text);

/* 128 bits: wide enough that equal digests are taken for equal values. */
struct digest {
    uint64_t lo, hi;
};
void digest_add(struct digest *digest, uint64_t word);
void digest_text(struct digest *digest, const char *text, size_t len);
static inline bool digest_eq(struct digest a, struct digest b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* ---- small parts of objects ---- */

/* Attributes of devices and their values; a scalar is a list of one with is_list false. */
struct attribute {
    const char *key; /* symbol, as published: "model" or "gpu.example.com/model" */
    enum cel_attribute_kind kind : 8;
    bool is_list;
    uint32_t n_values;
    uint64_t hash; /* of kind, is_list and values */
    union {
        int64_t i;
        bool b;
        struct str s;                          /* string and version */
        const union cel_attribute_value *list; /* n_values of them */
    };
};

enum taint_effect { EFFECT_NONE, EFFECT_NO_SCHEDULE, EFFECT_NO_EXECUTE, EFFECT_PREFER_NO_SCHEDULE, EFFECT_OTHER };
struct taint {
    const char *key, *value; /* never NULL */
    enum taint_effect effect;
    const char *effect_text;
};
enum toleration_operator { TOLERATE_EQUAL, TOLERATE_EXISTS, TOLERATE_LT, TOLERATE_GT, TOLERATE_OTHER };
struct toleration {
    const char *key, *value; /* "" when absent */
    enum toleration_operator op;
    const char *op_text;     /* as given */
    const char *effect_text; /* "" is every effect */
    bool has_seconds;
    int64_t seconds;
};
/* Whether the toleration tolerates the taint (section 8; the same rule as for nodes, but for Lt and Gt). */
bool toleration_covers(const struct toleration *toleration, const struct taint *taint);

struct label {
    const char *key, *value;
};

enum requirement_operator { REQ_IN, REQ_NOT_IN, REQ_EXISTS, REQ_DOES_NOT_EXIST, REQ_GT, REQ_LT };
struct requirement {
    const char *key;
    enum requirement_operator op;
    const char *const *values;
    size_t n_values;
};
struct selector_term {
    const struct requirement *expressions;
    size_t n_expressions;
    const struct requirement *fields; /* on metadata.name */
    size_t n_fields;
};
/* v1 NodeSelector. `problem` says why it cannot be parsed, else NULL. Also used for a pod's required affinity. */
struct node_selector {
    const struct selector_term *terms;
    size_t n_terms;
    const char *problem;
};
struct node_info;
/* Parse into the arena; never fails: the problem is part of the value. */
const struct node_selector *node_selector_parse(const json_t *json, struct arena *arena);
/* Terms are ORed; a term without requirements matches nothing. problem != NULL matches nothing. */
bool node_selector_matches(const struct node_selector *selector, const struct node_info *node);
bool requirement_matches(const struct requirement *requirement, const char *value /* NULL: no such label */);

struct resource_amount {
    const char *name; /* symbol */
    struct quantity amount;
};

/* ---- slices ---- */

struct request_policy {
    bool has_default, has_range, has_min, has_max, has_step;
    struct quantity fallback; /* the default */
    const struct quantity *valid;
    size_t n_valid;
    struct quantity min, max, step;
};
struct capacity {
    const char *key; /* symbol */
    struct quantity value;
    const struct request_policy *policy; /* NULL: none */
    uint64_t hash;                       /* of all of it */
};

struct counter {
    const char *name;
    struct quantity value;
};
struct counter_set {
    const char *name;
    const struct counter *counters;
    size_t n_counters;
};
struct consumption {
    const char *set;
    const struct counter *counters;
    size_t n_counters;
    const char *const *groups; /* compatibilityGroups */
    size_t n_groups;
};

struct device {
    const char *name;
    const struct attribute *attributes; /* in the order of their keys */
    const struct capacity *capacities;  /* in the order of their keys */
    const struct consumption *consumes;
    const struct taint *taints;
    uint16_t n_attributes, n_capacities, n_consumes, n_taints;
    bool all_nodes, binds_to_node, multi; /* multi: allowMultipleAllocations is true */
    const char *node_name;                /* NULL when absent or empty */
    const struct node_selector *selector; /* NULL when absent */
    struct string_list binding, binding_failure;
    struct digest digest; /* of what CEL sees of it, apart from the driver */
};

struct slice {
    atomic_uint refs;
    struct arena arena;
    uint64_t order; /* in the input: the builder's first sight of the name */
    const char *name, *pool;
    const char *driver; /* symbol */
    int64_t generation, count;
    const char *node_name; /* NULL when absent or empty */
    bool all_nodes, has_per_device, per_device;
    const struct node_selector *selector;
    bool has_binding; /* some device has a bindingConditions list, even an empty one */
    bool has_groups;  /* some device names compatibilityGroups */
    bool has_counter_sets;
    const struct device *devices;
    size_t n_devices;
    const struct counter_set *sets;
    size_t n_sets;
    struct string_list skip_node_operations;
};
struct slice *slice_ref(struct slice *slice);
void slice_unref(struct slice *slice);

/* ---- pools: inventory and who holds it ---- */

/* What allocated claims hold of one device. */
struct device_use {
    uint32_t n_dedicated;            /* allocations without share id (section 10.6) */
    uint32_t n_shares;               /* shared device ids */
    bool has_consumed;               /* some share recorded consumedCapacity, even an empty one */
    const struct quantity *consumed; /* one per capacity of the device, or NULL: nothing */
};

/* A device of the pool, whatever its slice or generation; `index` is its place in pool->devices and pool->use. */
struct pool_device {
    const struct slice *slice;
    const struct device *device;
    const struct taint *rule_taints; /* of DeviceTaintRules */
    size_t n_rule_taints;
};

struct counter_use {
    uint32_t counter; /* index into the view's totals */
    struct quantity amount;
};

struct pool_view;
struct pool {
    atomic_uint refs;
    struct arena arena; /* of everything below but the slices */
    uint64_t stamp;
    uint32_t slot; /* in the snapshot */
    const char *driver, *name;
    struct slice **slices; /* in input order, all generations and nodes */
    size_t n_slices;
    const struct pool_device *devices; /* slice by slice, in that order */
    const struct device_use *use;      /* one per device */
    size_t n_devices;
    const char *only_node;        /* every slice has this nodeName; NULL: the pool may serve several nodes */
    const struct pool_view *view; /* of that only node; NULL otherwise */
    bool is_global;               /* some slice has no nodeName */
};

/* A pool as one node sees it (sections 3.2 to 3.5). */
enum pool_status { POOL_USABLE, POOL_INCOMPLETE, POOL_INVALID };
struct pool_view {
    const struct pool *pool;
    enum pool_status status;
    const char *problem;     /* for INVALID */
    bool is_back;            /* goes behind the pools without binding conditions */
    const uint32_t *devices; /* candidates in search order: indexes into pool->devices */
    size_t n_devices;
    const uint32_t *counted; /* those on other nodes that consume this pool's counters too */
    size_t n_counted;
    const struct counter_set *const *sets;
    size_t n_sets;
    /* The counters of all sets in one row, and what each device takes of them. */
    const struct quantity *totals;
    size_t n_counters;
    const uint32_t *use_start; /* n_devices + n_counted + 1: where the uses of devices, then of counted ones begin */
    const struct counter_use *uses;
};

/* ---- nodes ---- */

struct node_info { /* a v1 Node, parsed */
    atomic_uint refs;
    struct arena arena;
    const char *name;
    const struct label *labels; /* sorted by key */
    size_t n_labels;
    const struct taint *taints;
    size_t n_taints;
    bool unschedulable, ready; /* ready: condition Ready is True, or there are no conditions at all */
    const struct resource_amount *allocatable;
    size_t n_allocatable;
    bool declares_optional_operations; /* status.declaredFeatures has DRAOptionalNodeOperations */
};
const char *node_label(const struct node_info *node, const char *key); /* NULL when absent */

struct host_port {
    const char *ip, *protocol; /* ip "" or "0.0.0.0": every address */
    int32_t port;
};

/* What a pod takes of a node beside devices. Computed by pod_demand_parse (demand.c): requests of containers and
 * sidecars, init containers as kube-scheduler counts them, overhead, pod-level resources; one of the resource "pods";
 * host ports. */
struct pod_demand {
    const struct resource_amount *resources; /* sorted by name */
    size_t n_resources;
    const struct host_port *ports;
    size_t n_ports;
};
/* `spec` is a PodSpec. Names become symbols when `symbols` is not NULL, else they live in the arena.
 * Returns 0, or -1 with the field ("containers[0].resources.requests.cpu"). */
MUST_CHECK int pod_demand_parse(const json_t *spec, struct symbols *symbols, struct arena *arena,
                                struct pod_demand *out, struct error *err);

/* Sum of the demands on a node. */
struct node_use {
    const struct resource_amount *resources; /* sorted by name */
    size_t n_resources;
    const struct host_port *ports;
    size_t n_ports;
};

struct node {
    atomic_uint refs;
    struct arena arena;
    uint64_t stamp; /* changes with its only_node pools as well */
    uint32_t slot;  /* in the snapshot; stable while the node exists */
    const struct node_info *info;
    const uint32_t *pools; /* slots of the pools with a slice whose nodeName is this node */
    size_t n_pools;
    bool shares_pools; /* some of these serve other nodes too, and have to be asked for their own stamp */
    struct node_use use;
};

/* ---- classes and claims ---- */

struct device_class {
    const char *name;
    const char *const *selectors; /* CEL texts; an entry is NULL when the selector has no cel */
    size_t n_selectors;
    const char *const *config; /* JSON texts of the opaque parts; an entry may be NULL */
    size_t n_config;
    const char *extended_resource; /* NULL when absent */
    const char *created;           /* metadata.creationTimestamp, "" when absent */
};
struct class_table {
    atomic_uint refs;
    struct arena arena;
    uint64_t stamp;
    const struct device_class *classes; /* sorted by name */
    size_t n_classes;
};
const struct device_class *class_find(const struct class_table *table, const char *name);

enum allocation_mode { MODE_EXACT_COUNT, MODE_ALL, MODE_UNKNOWN };
struct capacity_request {
    const char *key;
    struct quantity amount;
};
struct derived_attribute {
    const char *name, *expression;
};
struct claim_ask { /* an exact request, or a sub-request */
    const char *name;
    const char *class_name;       /* "" when absent */
    const char *const *selectors; /* an entry is NULL when the selector has no cel */
    size_t n_selectors;
    enum allocation_mode mode;
    const char *mode_text;
    int64_t count;
    bool has_admin_access, admin_access;
    const struct toleration *tolerations;
    size_t n_tolerations;
    bool has_capacity;
    const struct capacity_request *capacity;
    size_t n_capacity;
    const struct derived_attribute *derived;
    size_t n_derived;
};
struct claim_request {
    const char *name;
    const struct claim_ask *asks; /* one for `exactly`; one per alternative of firstAvailable */
    size_t n_asks;
    bool is_list; /* firstAvailable */
};
enum constraint_kind { CONSTRAINT_MATCH, CONSTRAINT_DISTINCT, CONSTRAINT_UNKNOWN };
struct claim_constraint {
    enum constraint_kind kind;
    const char *attribute;
    const char *const *requests;
    size_t n_requests;
};
struct claim_config {
    const char *const *requests;
    size_t n_requests;
    const char *opaque; /* JSON text, or NULL */
};
struct claim { /* spec of a ResourceClaim; lives in the arena it was parsed into */
    const char *ns, *name;
    const struct claim_request *requests;
    size_t n_requests;
    const struct claim_constraint *constraints;
    size_t n_constraints;
    const struct claim_config *config;
    size_t n_config;
    struct digest digest; /* of the spec; equal digests ask for the same */
};

/* A ResourceClaim of the cluster: its spec and, when allocated, what it holds. */
struct held_device {
    const char *request, *driver, *pool, *device;
    const char *share_id; /* NULL: dedicated */
    bool admin_access, has_consumed;
    const struct counter *consumed; /* name and amount of each capacity */
    size_t n_consumed;
};
struct cluster_claim {
    atomic_uint refs;
    struct arena arena;
    const char *ns, *name;
    const char *job; /* label queue.dra/job, or NULL */
    bool is_allocated;
    const struct held_device *held;
    size_t n_held;
    const struct node_selector *selector; /* of the allocation; NULL: usable everywhere */
    const struct claim *spec;
    size_t n_reserved; /* entries of status.reservedFor */
};
struct namespace_info {
    const char *name;
    const struct label *labels;
    size_t n_labels;
};

/* ---- which release behaves how (sections 0.2, 16, 17) ---- */

enum variant { VARIANT_STABLE, VARIANT_INCUBATING, VARIANT_EXPERIMENTAL, VARIANT_NONE };
struct behaviour {
    enum variant variant;
    bool binding_and_status; /* DRADeviceBindingConditions and DRAResourceClaimDeviceStatus */
    bool permutations;       /* each slot of a request starts from the first device again */
    bool uses_incomplete;   /* ExactCount takes devices of incomplete pools, counted per node; invalid ones are FATAL */
    bool counters_in_slice; /* counter sets belong to the slice that has them */
    bool counter_slices_everywhere; /* whatever node a counter slice names */
    bool leaks_counters;            /* B1, B2, B6 */
    bool mixes_pool_names;          /* B3 */
    bool distinct_per_request;      /* B4 */
    bool distinct_by_identity;      /* B14 */
    bool alternatives_mixed_up;     /* B7 */
    bool shares_count;              /* shares count as allocated for counters */
    bool bare_shares_count;         /* also those known by id only (B8) */
    bool shares_skip_counters;
    bool all_skips_used_up;    /* All leaves out devices with too little remaining capacity */
    bool capacity_errors_skip; /* an unrepresentable amount skips the device */
    bool steps_overflow;       /* B11 */
    bool rule_without_selector_taints;
    bool any_taint_blocks;
    bool copies_tolerations;
    bool config_per_request, config_clears;
    bool binds_to_node;
    bool knows_distinct;
};
struct behaviour behaviour_of(const struct features *features);

/* ---- snapshots ---- */

uint32_t snapshot_node_slots(const struct snapshot *snapshot);                    /* one more than the largest slot */
const struct node *snapshot_node(const struct snapshot *snapshot, uint32_t slot); /* NULL: no such node any more */
const struct node *snapshot_find_node(const struct snapshot *snapshot, const char *name);
/* Slots of all nodes in the byte order of their names; this is the order in which planning looks at them. */
const uint32_t *snapshot_sorted_nodes(const struct snapshot *snapshot, size_t *out_n);
const struct pool *snapshot_pool(const struct snapshot *snapshot, uint32_t slot); /* NULL when gone */
uint32_t snapshot_pool_slots(const struct snapshot *snapshot);
/* Slots of all pools in the order of driver and name. */
const uint32_t *snapshot_sorted_pools(const struct snapshot *snapshot, size_t *out_n);
const struct pool *snapshot_find_pool(const struct snapshot *snapshot, const char *driver, const char *name);
/* Slots of the pools that have slices without nodeName: candidates on every node. */
const uint32_t *snapshot_global_pools(const struct snapshot *snapshot, size_t *out_n);
const struct class_table *snapshot_classes(const struct snapshot *snapshot);
const struct behaviour *snapshot_behaviour(const struct snapshot *snapshot);
struct symbols *snapshot_symbols(const struct snapshot *snapshot);
const struct cluster_claim *snapshot_find_claim(const struct snapshot *snapshot, const char *ns, const char *name);
/* Every claim that holds devices, in the order of namespace and name. */
void snapshot_each_claim(const struct snapshot *snapshot, void (*each)(void *ctx, const struct cluster_claim *claim),
                         void *ctx);
const struct namespace_info *snapshot_find_namespace(const struct snapshot *snapshot, const char *name);

/* Whether a device belongs to what the matcher counts; an evaluation error is no match. */
bool device_matches(const struct snapshot *snapshot, const struct device_matcher *matcher, const char *driver,
                    const struct device *device);

/* ---- ledgers: what if these were taken too ---- */

/* A private, mutable overlay on a snapshot. Allocations are applied and rolled back in stack order; both cost what the
 * allocation touches. Not for several threads. */
struct ledger;
struct ledger *ledger_new(const struct snapshot *snapshot);
void ledger_free(struct ledger *ledger);
const struct snapshot *ledger_snapshot(const struct ledger *ledger);
size_t ledger_mark(const struct ledger *ledger);
void ledger_rollback(struct ledger *ledger, size_t mark);
/* Everything as if no claim held anything and no pod ran: "would it fit on the empty cluster?" Not undone by rollback.
 */
void ledger_empty(struct ledger *ledger);
/* Take the devices of an allocation (admin access takes nothing). */
void ledger_take(struct ledger *ledger, const struct allocation *allocation);
/* What one claim of a member takes: NULL for a shared claim (that is in placement->shared), and for an existing one
 * that another member shows as well and came first. */
const struct allocation *placed_claim_takes(const struct placement *placement, size_t member, size_t claim);
/* Take all devices and pods of a placement. */
void ledger_place(struct ledger *ledger, const struct placement *placement);
/* The snapshot with what the ledger says; one reference for the caller. */
struct snapshot *ledger_to_snapshot(const struct ledger *ledger);
/* Give back what a claim of the cluster holds: "what if it ended?" */
void ledger_give_back(struct ledger *ledger, const struct cluster_claim *claim);
/* Let a node carry one more pod (without its devices). */
void ledger_add_pod(struct ledger *ledger, const struct node *node, const struct pod_demand *demand);
/* What the node's pods use now, the snapshot's and those added. Valid until the next change of this node. */
const struct node_use *ledger_node_use(const struct ledger *ledger, const struct node *node);
/* The use of the pool's devices now: pool->n_devices entries. Valid until the next change of this pool. */
const struct device_use *ledger_pool_use(const struct ledger *ledger, const struct pool *pool);
/* Whether the ledger may say something else of the node, its pools or those of the network than its snapshot does. */
bool ledger_touches(const struct ledger *ledger, const struct node *node);
/* A number that changes with every change of what the ledger says about this node or its pools; never repeats but for a
 * state that a rollback restored exactly. */
uint64_t ledger_node_stamp(const struct ledger *ledger, const struct node *node);

/* ---- shapes: a question, compiled ---- */

struct shape_ask { /* one (claim, request, alternative) */
    const struct claim_ask *ask;
    const struct device_class *device_class;
    size_t claim, request, alternative;
};
/* Claims resolved against the classes of a snapshot. Borrows the claims and the snapshot. One thread at a time, but
 * several shapes may share a snapshot over threads: the results of expressions are kept in a cache that all snapshots
 * of a builder share under a lock. */
struct shape;
struct shape *shape_new(const struct snapshot *snapshot, const struct claim *const *claims, size_t n_claims);
void shape_free(struct shape *shape);
/* Why no node can ever take it (PREDICT_FATAL): missing class, gate off, limits; NULL when there is no such reason. */
const char *shape_problem(const struct shape *shape);
size_t shape_n_asks(const struct shape *shape);
const struct shape_ask *shape_ask(const struct shape *shape, size_t i);

/* ---- benches: what a node offers ---- */

enum selectable { SELECT_NO, SELECT_YES, SELECT_ERROR };
struct offer { /* a candidate device, in search order */
    const struct pool_view *view;
    const struct slice *slice;
    const struct device *device;
    uint32_t index;     /* in view->pool->devices */
    struct digest kind; /* equal kinds are interchangeable for this shape (apart from where they lie and are counted) */
};
struct bench {
    const struct snapshot *snapshot;
    const struct node *node;
    const struct pool_view *const *views; /* in search order, incomplete and invalid ones included */
    size_t n_views;
    const struct offer *offers;
    size_t n_offers;
    const char *problem; /* a node selector that cannot be parsed: PREDICT_FATAL; else NULL */
};
/* The bench of a node for a shape, in `arena`. `ledger` may be NULL. */
const struct bench *bench_make(struct shape *shape, const struct ledger *ledger, const struct node *node,
                               struct arena *arena);
/* Whether the selectors of class and request choose the offer; SELECT_ERROR leaves the reason in *out_message (may be
 * NULL). */
enum selectable bench_selects(struct shape *shape, const struct bench *bench, size_t offer, size_t ask,
                              const char **out_message);
/* Equal signatures (for the same shape) have equal answers in terms of offer positions. */
struct digest bench_signature(struct shape *shape, const struct bench *bench, const struct ledger *ledger);

/* ---- the search ---- */

struct pick { /* a device chosen for a slot */
    uint32_t offer;
    uint16_t claim, request, alternative; /* alternative 0 for an exact request */
};
struct solution {
    const struct pick *picks; /* claim by claim, in the order of the search */
    size_t n_picks;
};
struct search_options {
    uint64_t max_steps; /* 0: the default */
    bool plain;         /* mirror the specification step by step: no tables, no pruning; the baseline */
    /* Further distinctions between devices that look alike to this shape, one per offer; NULL: none. */
    const uint64_t *distinct;
    /* Offers that may not be taken, a bitset over offers; NULL: none. */
    const uint64_t *forbidden;
    /* The order in which ExactCount requests try offers (a permutation of 0 .. n_offers-1); NULL: as kube-scheduler. */
    const uint32_t *order;
    /* Called for each complete solution; false makes the search go on as if the last choice had failed. NULL: the first
     * one is taken. Symmetric solutions (exchanging devices of one kind) are offered once. */
    bool (*accept)(void *ctx, const struct solution *solution);
    void *ctx;
};
struct search_answer {
    enum predict_verdict verdict;
    struct solution solution; /* when allocated */
    const char *message;      /* when not */
    uint64_t steps;
};
#define SEARCH_DEFAULT_STEPS 2000000

/* Everything in `out` lives in `arena`. */
void search_run(struct shape *shape, const struct bench *bench, const struct ledger *ledger,
                const struct search_options *options, struct arena *arena, struct search_answer *out);
/* The allocations of a solution, one per claim, as predict() gives them; consumed amounts, config and node selector
 * included. Returns 0, or -1 with words in *out_message (a node selector with two terms). */
int solution_allocations(struct shape *shape, const struct bench *bench, const struct solution *solution,
                         struct arena *arena, struct allocation **out, const char **out_message);

/* Shape, bench, search and allocations in one: predict() on a compiled shape and a ledger (may be NULL). Answers for
 * the same question and an unchanged node come from the snapshot's cache. */
void predict_shape(struct shape *shape, const struct ledger *ledger, const struct node *node,
                   const struct search_options *options, struct arena *arena, struct prediction *out);

/* ---- extended resources through classes (section 11.3) ---- */

/* The class that stands behind an extended resource name, or NULL. */
const struct device_class *extended_class(const struct snapshot *snapshot, const char *resource);
struct extended_mapping {
    size_t container; /* index over init containers, then containers */
    const char *resource, *request;
};
/* The implicit claim of a pod on a node; *out is NULL when the pod needs none there. Lives in the arena. */
void extended_claim(const struct snapshot *snapshot, const struct node *node, const json_t *pod_spec,
                    struct arena *arena, struct claim **out, const struct extended_mapping **out_mappings,
                    size_t *out_n_mappings);

#endif
