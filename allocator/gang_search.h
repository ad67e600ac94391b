/* allocator/gang_search.h - internal to gang fit: the exact search for nodes and devices of a set of members.
 *
 * The problem here knows no Kubernetes: nodes with amounts left, devices in cells, asks with their candidates, groups
 * of like members. gang_build.c makes it from a snapshot; gang_classes.c asks it about one node at a time; gang.c about
 * all.
 *
 * The words:
 *   ask      one distinct way to want a device (class, selectors, tolerations, capacity): it has candidates per node
 *   variant  a group's claims with one alternative chosen for each firstAvailable
 *   cell     devices that influence each other, through counters or equal attribute values, and nothing else; equal
 *            cells in equal state are interchangeable, so only one of them is tried
 *   twin     devices of one cell that cannot be told apart */
#ifndef QUEUED_GANG_SEARCH_H
#define QUEUED_GANG_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/arena.h"

__extension__ typedef __int128 gs_amount; /* exact amounts in billionths; saturates far above what hardware has */

/* A sum of these identifies a state up to interchangeable parts; 128 bits, so that a false match does not happen. */
struct gs_hash {
    uint64_t a, b;
};
struct gs_hash gs_hash_of(const void *bytes, size_t n, uint64_t seed);
struct gs_hash gs_hash_mix(struct gs_hash h, uint64_t value);
static inline struct gs_hash gs_hash_add(struct gs_hash x, struct gs_hash y)
{
    return (struct gs_hash){x.a + y.a, x.b + y.b};
}
static inline struct gs_hash gs_hash_sub(struct gs_hash x, struct gs_hash y)
{
    return (struct gs_hash){x.a - y.a, x.b - y.b};
}
static inline bool gs_hash_eq(struct gs_hash x, struct gs_hash y)
{
    return x.a == y.a && x.b == y.b;
}

/* An attribute's value as a set of element numbers (a scalar has one). Equal element numbers are equal values of equal
 * kind. */
struct gs_value {
    bool odd; /* of no comparable kind: accepted by a constraint as its first device only */
    uint32_t n;
    const uint32_t *elements; /* ascending */
};

struct gs_use {
    gs_amount *left;
    gs_amount amount;
};

struct gs_cell;
struct gs_node;

struct gs_device {
    uint32_t id;   /* the caller's number for it */
    uint32_t twin; /* within the cell */
    bool multi;    /* any number of takers while its amounts last */
    bool pins;     /* who takes it can run on the node it was taken on only */
    bool charged;  /* its counters are taken by a share that exists already */
    bool parted;   /* some of its amounts, or of the counters that it needs, were taken when the search began */
    /* A request (not of mode All) takes devices of equal likeness only. 0 for all unless a steerable plan is wanted. */
    uint64_t likeness;
    struct gs_cell *cell;
    const struct gs_use *counters;
    size_t n_counters;
    gs_amount *left; /* of its capacities, when multi */
    size_t n_left;
    const struct gs_value *const *values; /* per attribute of the problem; NULL entries are missing */
    const uint64_t *reach;                /* bitset over the problem's nodes, for a device of the network; else NULL */
    /* state of the search */
    uint32_t n_takers;
    uint32_t admin_claim, admin_member; /* the last claim and member that watch it */
};

struct gs_cell {
    struct gs_hash signature; /* of all that does not change */
    struct gs_device **devices;
    size_t n_devices;
    gs_amount *counters;
    size_t n_counters;
    struct gs_node *node; /* NULL: of the network */
    /* state */
    struct gs_hash hash;
    uint32_t touched; /* the member that is being placed and took something here */
};

/* A device that an ask may take, with what it takes of its capacities. */
struct gs_candidate {
    struct gs_device *device;
    const struct gs_use *uses;
    size_t n_uses;
};

struct gs_list {
    const struct gs_candidate *items; /* in kube-scheduler's order */
    size_t n;
    bool all_fails; /* mode All cannot be served: a device of the list is in use, or nothing matches */
};

struct gs_request {
    uint32_t ask;
    uint32_t count; /* ExactCount */
    bool all, admin;
};
struct gs_constraint {
    bool distinct;
    uint32_t attribute;
    uint32_t requests; /* bits of the claim's requests */
};
struct gs_claim {
    const struct gs_request *requests;
    size_t n_requests;
    const struct gs_constraint *constraints;
    size_t n_constraints;
    const uint32_t *gang_distinct; /* per request: bits of the problem's gang constraints that cover it; NULL: none */
};
struct gs_variant {
    const struct gs_claim *claims; /* own claims only, in the pod's order */
    size_t n_claims;
    uint32_t id; /* the caller's number */
};
/* What a member of a group is on a node of one form (a form is the set of extended resources that devices serve). */
struct gs_form {
    const struct gs_variant *variants;
    size_t n_variants;
    const int64_t *demand; /* per resource of the problem */
};
struct gs_group {
    const struct gs_form *forms;  /* indexed by gs_node.form */
    uint64_t ports, port_clashes; /* bits of the problem's host ports: its own, and those that its own exclude */
    uint64_t shared;              /* bits of the shared claims it uses */
};

struct gs_node {
    uint32_t id;    /* the caller's number */
    uint32_t index; /* in the problem */
    uint32_t rank;  /* the caller's order, for ties */
    uint32_t form;
    struct gs_hash signature; /* of all that does not change, without cells */
    uint64_t groups;          /* bits: which groups its filters admit */
    struct gs_cell *cells;
    size_t n_cells;
    const struct gs_list *lists; /* per ask */
    /* state */
    int64_t *left;      /* per resource; resource 0 is pods */
    uint64_t ports;     /* taken or excluded */
    uint64_t shared_ok; /* bits of shared claims (that have their devices) usable here */
    struct gs_hash hash, cell_sum;
};

/* A claim that several members use: it gets its devices once, before the members. */
struct gs_shared {
    const struct gs_variant *variants; /* each with one claim */
    size_t n_variants;
};

struct gs_problem {
    struct gs_node **nodes; /* in the order of preference */
    size_t n_nodes;
    struct gs_cell *net_cells;
    size_t n_net_cells;
    size_t n_resources, n_asks, n_attributes;
    const struct gs_group *groups;
    size_t n_groups;
    const struct gs_shared *shared;
    size_t n_shared;
    /* Gang-wide distinct attributes: every device taken under the constraint has another value. */
    const uint32_t *distinct_attributes;
    size_t n_distinct;
    size_t n_elements; /* element numbers are below this */
};

struct gs_pick {
    uint32_t claim, request; /* within the variant */
    const struct gs_candidate *candidate;
};
struct gs_placed {
    uint32_t group;
    struct gs_node *node; /* of a shared claim: where it was tried */
    const struct gs_variant *variant;
    const struct gs_pick *picks;
    size_t n_picks;
};
struct gs_solution {
    struct gs_placed *shared;  /* one per shared claim */
    struct gs_placed *members; /* grouped by group, in no particular order within */
    size_t n_members;
};

enum gs_outcome { GS_FOUND, GS_NONE, GS_BUDGET };

/* States that lead nowhere, remembered. One memo serves every search over the same problem in the same initial state.
 */
struct gs_memo;
struct gs_memo *gs_memo_new(void);
void gs_memo_free(struct gs_memo *memo);
bool gs_memo_has(const struct gs_memo *memo, struct gs_hash key);
void gs_memo_put(struct gs_memo *memo, struct gs_hash key);

/* Bring the hashes of a problem whose state has been filled in up to date. Once, before the first search. */
void gs_prepare(struct gs_problem *problem);
/* The same for one node of it. */
void gs_prepare_node(const struct gs_problem *problem, struct gs_node *node);

/* Place counts[g] members of every group (and all shared claims). On GS_FOUND the solution is written into `arena`; the
 * problem's state is as before in any case. `order` lists the groups that have members, hardest first. *steps counts
 * down. */
enum gs_outcome gs_search(struct gs_problem *problem, const uint32_t *counts, const uint32_t *order, size_t n_order,
                          struct gs_memo *memo, uint64_t *steps, struct arena *arena, struct gs_solution *out);

#endif
