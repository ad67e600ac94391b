/* allocator/gang_internal.h - what the files of gang fit share.
 *
 *   gang_question.c  the spec, read once: kinds of members, shapes, asks, variants
 *   gang_nodes.c     what the nodes of a choice offer, as a gs_problem
 *   gang_survey.c    which nodes have to be looked at, with what is remembered of them
 *   gang_search.c    exact search over a gs_problem
 *   gang_classes.c   the same answer through classes of equal nodes, where nothing couples nodes
 *   gang_plan.c      the choices around the search: values of gang constraints, same alternatives
 *   gang_place.c     a solution as a placement
 *   gang_check.c     whether steering holds the placement
 *   gang_turns.c     which members may be shown to kube-scheduler together
 *   gang_replay.c    the steered claims, replayed through predict
 *   gang.c           verdicts
 *   explain*.c       the explanation: counts per node reason and request, and sentences (explain.h)
 *   whatif.c         which single rule, lifted, would make it fit
 *   steer.c, score.c */
#ifndef QUEUED_GANG_INTERNAL_H
#define QUEUED_GANG_INTERNAL_H

#include "allocator/gang.h"
#include "allocator/gang_search.h"
#include "allocator/model.h"
#include "allocator/nodefit.h"
#include "allocator/shape.h"

#define GANG_MAX_KINDS    64  /* of members, after like groups are taken together; also shared claims */
#define GANG_MAX_FORMS    16  /* ways in which extended resources can be split between plugin and devices */
#define GANG_MAX_VARIANTS 256 /* combinations of alternatives of one member */
#define GANG_MAX_DISTINCT 32  /* gang-wide constraints */
#define GANG_BUDGET       UINT64_C(3000000)

/* Claims that are allocated together by one member on one node, and what follows from them. */
struct gang_unit {
    struct shape *shape;
    const struct claim *const *claims;
    size_t n_claims;
    const size_t *entries; /* per claim: index into the group's claims; SIZE_MAX: the implicit claim */
    uint32_t *asks;        /* per ask of the shape: the gang's number */
    struct gs_variant *variants;
    const uint8_t *const *alternatives; /* per variant, per request of all claims in order: the alternative */
    size_t n_variants;
    bool is_cut; /* there are more variants than are tried */
};

/* A distinct way to want a device. */
struct gang_ask {
    const struct gang_unit *unit;
    size_t index; /* in the unit's shape */
    const struct claim_ask *ask;
    const struct device_class *device_class;
    uint64_t covered; /* bits of the gang constraints (on attributes) that cover it */
    struct digest digest;
    bool all, admin;
};

/* Groups whose members are alike are one kind. */
struct gang_kind {
    size_t first_group; /* the first of the spec's groups */
    uint32_t n_members;
    struct pod_rules rules;
    struct gang_unit *forms[GANG_MAX_FORMS]; /* NULL: no node has this form */
    uint64_t shared;                         /* bits of gang.shared */
    const struct cluster_claim **allocated;  /* claims of the cluster that have their devices already */
    size_t n_allocated;
    const int64_t *demand[GANG_MAX_FORMS]; /* per resource */
    uint64_t label_constraints;            /* bits of the spec's constraints that cover it */
    const char *text;                      /* what makes members alike */
};

struct gang_shared_claim {
    struct gang_unit *unit;
    size_t spec_index;    /* in gang_spec.shared; SIZE_MAX: a claim of the cluster that waits for devices */
    const char *existing; /* its name then */
};

/* Elements of attribute values, numbered. */
struct gang_elements {
    struct gang_element {
        enum cel_attribute_kind kind;
        struct str text; /* of strings and versions */
        int64_t number;
        uint64_t hash;
    } * items;
    size_t n, cap;
    uint32_t *slots; /* hash table of index + 1 */
    size_t n_slots;
};

/* What if a rule of the job, or one scarcity, were not there? */
struct gang_lift {
    const char *attribute; /* constraints in claims on it */
    size_t constraint;     /* of the spec; SIZE_MAX: none */
    bool all_selectors;    /* of all requests */
    const char *selector;  /* this one */
    bool node_states;      /* that nodes are cordoned, not ready, or tainted because of what is told of their state */
    bool device_taints, node_taints, node_selector, node_affinity, node_name, ports, counters, capacity;
    const char *resource; /* asked by pods */
};
#define GANG_LIFT_NONE ((struct gang_lift){.constraint = SIZE_MAX})

struct gang {
    const struct gang_lift *lift; /* NULL: nothing is lifted */
    const struct snapshot *snapshot;
    const struct behaviour *behaviour;
    const struct gang_spec *spec;
    const struct ledger *ledger; /* the state to plan on; NULL: the snapshot's */
    bool is_empty;               /* that ledger is the empty cluster */
    bool divides_alike;          /* look for a placement whose requests do not mix devices that others look like */
    bool spreads;                /* whatever the spec's score */
    size_t first_node;           /* where the search of coupled nodes begins */
    bool is_coupled;             /* they were when a survey was searched last */
    struct arena *arena;         /* results */
    struct arena work;           /* all else */
    struct gang_kind *kinds;
    size_t n_kinds;
    size_t *kind_of; /* per group of the spec */
    struct gang_shared_claim *shared;
    size_t n_shared;
    struct gang_unit **units; /* all of them */
    size_t n_units, cap_units;
    struct gang_ask *asks;
    size_t n_asks, cap_asks;
    const char **resources; /* names; [0] is "pods" */
    size_t n_resources;
    const char **mapped; /* extended resources that a class can serve */
    size_t n_mapped;
    const struct host_port **ports; /* distinct ones of all kinds */
    size_t n_ports;
    const char **attributes; /* of constraints in claims and of the gang, distinct */
    size_t n_attributes;
    uint32_t *constraint_attribute; /* per constraint of the spec: index into attributes */
    struct gang_elements elements;
    uint64_t steps; /* left of the budget */
    uint64_t budget;
    const char *refusal;          /* why kube-scheduler would never start it */
    const char *waits_for;        /* what is in the way of it and passes, "nodes a and b to become ready"; or NULL */
    const char *evaluation_error; /* the first expression that failed on a device */
};

/* One way to settle what couples the whole gang. */
struct gang_choice {
    const char *const *labels;  /* per constraint of the spec: the label's value; NULL: free */
    const uint32_t *elements;   /* per constraint of the spec: element that all devices must have; UINT32_MAX: free */
    const size_t *alternatives; /* per kind: the only variant; SIZE_MAX: all; the array may be NULL */
};

/* ---- gang_question.c ---- */

/* Returns 0 (with gang->refusal set when an object is missing or wrong), or -1 when the question cannot be read. */
MUST_CHECK int gang_read(struct gang *gang, const struct snapshot *snapshot, const struct gang_spec *spec,
                         const struct gang_lift *lift, struct arena *arena, struct error *err);
void gang_release(struct gang *gang);
bool gang_constraint_covers_group(const struct gang_constraint *constraint, const char *group);
bool gang_constraint_covers_request(const struct gang_constraint *constraint, const char *request, const char *sub);

/* ---- gang_elements.c ---- */

uint32_t gang_element(struct gang *gang, enum cel_attribute_kind kind, const union cel_attribute_value *value);
/* The attribute's value as elements; NULL when missing. */
const struct gs_value *gang_value(struct gang *gang, const struct attribute *attribute, struct arena *arena);

/* ---- gang_amounts.c ---- */

gs_amount gang_amount(const struct quantity *quantity);
/* ---- gang_nodes.c ---- */

/* A device of the problem, where it comes from. */
struct gang_device {
    struct gs_device gs; /* first: the search's device is this one */
    const struct pool *pool;
    const struct slice *slice;
    const struct device *device;
    uint32_t index; /* in the pool */
    bool is_net;
    bool is_compared;         /* its likeness has been looked for */
    struct gs_hash signature; /* grows while asks are evaluated */
};

struct gang_node {
    struct gs_node gs; /* first */
    const struct node *node;
    const struct bench *const *benches; /* per unit of the gang; NULL: not used on this node */
};

/* A node that is known to look like one of the problem's, so that nobody needs to look at it yet. */
struct gang_spot {
    struct gs_hash class;
    uint32_t slot, rank; /* in the snapshot; in the order of names */
};

/* What the nodes offer to a choice. The problem has at least one node of every class; where something couples nodes, as
 * many of each as there are members, in the order of names. */
struct gang_survey {
    struct gs_problem *problem;
    const struct gang_choice *choice;
    const struct gang_spot *spots;
    size_t n_spots;
    size_t kind_nodes[GANG_MAX_KINDS]; /* nodes that admit the kind, spots included */
};

/* Lives in gang->work until the caller rewinds it. */
struct gang_survey *gang_survey(struct gang *gang, const struct gang_choice *choice);
/* Whether a shared claim, a device of the network or a gang-wide constraint couples nodes. */
static inline bool gang_is_coupled(const struct gs_problem *problem)
{
    return problem->n_shared > 0 || problem->n_net_cells > 0 || problem->n_distinct > 0;
}
/* The node of a spot, ready for a search by itself. */
struct gs_node *gang_visit(struct gang *gang, const struct gang_choice *choice, const struct gang_spot *spot);
static inline const struct gang_node *gang_node_of(const struct gs_node *node)
{
    return (const struct gang_node *)(const void *)node;
}
static inline const struct gang_device *gang_device_of(const struct gs_device *device)
{
    return (const struct gang_device *)(const void *)device;
}
/* Whether the node-selection of the device (or its slice) admits the node. */
bool gang_device_reaches(const struct slice *slice, const struct device *device, const struct node_info *node);
uint32_t gang_form_of(const struct gang *gang, const struct node_info *node);

/* What keeps an ask from taking a device that it selects, on the state of gang->ledger. */
enum gang_device_state {
    DEVICE_FREE,
    DEVICE_IN_USE,
    DEVICE_TAINTED,
    DEVICE_COUNTERS,
    DEVICE_CAPACITY,
    DEVICE_EXCLUDED
};
enum gang_device_state gang_device_state(struct gang *gang, const struct gang_ask *ask, const struct offer *offer,
                                         const char **out_detail);
/* Why one member of the kind cannot run on the node, devices aside. */
struct node_finding gang_node_finding(struct gang *gang, const struct gang_kind *kind, const struct node *node);

/* ---- gang_classes.c ---- */

/* How many members of one kind fit by themselves, at most as many as it has; gang-wide constraints aside. Where the
 * budget ends before the answer is known, as many as surely do. */
uint32_t gang_most_alone(struct gang *gang, const struct gang_survey *survey, size_t kind);
uint32_t gang_most_by_classes(struct gang *gang, const struct gang_survey *survey, size_t kind);

/* Decide a problem in which nothing couples nodes. */
enum gs_outcome gang_by_classes(struct gang *gang, const struct gang_survey *survey, struct gs_solution *out);

/* ---- score.c ---- */

/* Members by the fragmentation score: placed, proven to fit nowhere, or not a matter for the score. */
enum gang_scored { GANG_NOT_SCORED, GANG_SCORED, GANG_SCORED_NONE };
enum gang_scored gang_score_members(struct gang *gang, const struct gang_choice *choice, struct gs_solution *out);

/* ---- gang_plan.c ---- */

/* The order in which kinds are placed: those with the most devices and the fewest nodes first. */
void gang_order_kinds(const struct gang *gang, const struct gang_survey *survey, uint32_t *out_order);

/* Decide the gang on the state of gang->ledger. A wanted placement on the snapshot's own state is one that steering can
 * hold, if any is found; else *out is bind_only, or NULL when a replay proves it wrong. */
enum gs_outcome gang_plan(struct gang *gang, bool wants_placement, struct placement **out);

/* ---- gang_place.c ---- */

struct placement *gang_place(struct gang *gang, const struct gs_solution *solution);
/* The allocations of a unit on a node with the devices that `got` names, one per claim: what gang_place() would have
 * made of that choice. The alternatives are those of `planned`. NULL when the node does not offer such a device. */
const struct allocation *gang_allocations(struct gang *gang, const struct gang_unit *unit, const struct node *node,
                                          const struct allocation *const *planned, const struct allocation *const *got);

/* ---- steer.c ---- */

/* steered_claim_spec() on a known node (NULL: wherever the allocation can be used), and whether the claim then admits
 * the planned devices only. NULL when `object` is no claim. */
json_t *steer_claim(const struct snapshot *snapshot, const struct node *node, const json_t *object,
                    const struct allocation *allocation, bool *out_exact);
/* Whether one attribute tells the offer's device from all others of its driver on the bench. One attribute must serve
 * all devices of a request: it is the first by preference that is there. */
bool steer_identifies(const struct bench *bench, const struct offer *offer);
/* Equal for devices that a selector on their attributes cannot tell apart; never 0. */
uint64_t steer_likeness(const struct device *device);

/* ---- gang_check.c ---- */

enum gang_steering {
    GANG_STEERED,   /* whatever the order of the members, kube-scheduler places all */
    GANG_BIND_ONLY, /* only while the allocations are written for it */
    GANG_WRONG      /* all is told apart and yet the plain order ends otherwise: a defect */
};
/* Replay the placement through predict on the steered claims. Where devices cannot be told apart the plan becomes what
 * first fit makes of it with the members in their plain order; *placement is replaced then. */
enum gang_steering gang_check(struct gang *gang, struct placement **placement);
/* Whether steering holds the placement when the members start in turns; then they have them, and *placement may be
 * replaced by what it becomes. For placements that gang_check() found to be GANG_BIND_ONLY. */
bool gang_hold_in_turns(struct gang *gang, struct placement **placement);
/* Mark what only binding can hold. */
void gang_bind_only(struct placement *placement);

/* ---- gang_turns.c ---- */

/* Give the members their turns; is_exact: the steered claims leave kube-scheduler no choice of devices. */
void gang_turns(struct gang *gang, bool is_exact, struct placement *placement);
/* The placement holds only when members start in these turns; where any has shares, each goes alone. */
void gang_set_turns(struct gang *gang, const size_t *turns, struct placement *placement);

/* ---- explain_passing.c ---- */

/* GANG_NEVER, for a gang that does not fit on the empty cluster; or GANG_WAITS, when only a state that passes is in the
 * way: then gang->waits_for says which. */
enum gang_verdict gang_passing(struct gang *gang);

/* ---- explain.c ---- */

json_t *gang_explain(struct gang *gang, enum gang_verdict verdict);

/* ---- whatif.c ---- */

/* whatif.c: a taint that Kubernetes itself sets for as long as a node is in some state. */
bool gang_is_state_taint(const char *key);
/* Apply what is lifted to a claim or a pod that has just been read. */
void gang_lift_claim(const struct gang_lift *lift, struct claim *claim, struct arena *arena);
void gang_lift_pod(const struct gang_lift *lift, struct pod_rules *rules, struct arena *arena);

#endif
