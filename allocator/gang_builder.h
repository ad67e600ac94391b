/* allocator/gang_builder.h - internal to the making of a gs_problem: gang_devices.c, gang_nodes.c, gang_cells.c and
 * gang_survey.c share this workbench. */
#ifndef QUEUED_GANG_BUILDER_H
#define QUEUED_GANG_BUILDER_H

#include "allocator/gang_internal.h"

/* Counters of a pool that are left. */
struct pool_counters {
    const struct pool *pool;
    const struct pool_view *view;
    gs_amount **left; /* per set, per counter */
    bool is_blocked;  /* one is overdrawn, so that no consumer of the pool can be taken */
};

struct device_table {
    struct gang_device **items;
    size_t n, cap;
    uint32_t *slots; /* index + 1 */
    size_t n_slots;
};

struct builder {
    struct gang *gang;
    const struct gang_choice *choice;
    struct arena *arena;
    struct gs_problem *problem;
    struct device_table devices; /* of the network */
    struct gang_device **local;  /* of the node in work */
    size_t n_local, cap_local;
    struct pool_counters *counters; /* of pools that several nodes see */
    size_t n_counters, cap_counters;
    struct pool_counters *own; /* of the node in work */
    size_t n_own, cap_own;
    struct gs_node **nodes;
    size_t n_nodes, cap_nodes;
    size_t n_settled;                   /* of them have their cells */
    struct gang_device ***node_devices; /* per node: its local devices, NULL-terminated */
    size_t cap_node_devices;
    bool *claim_attributes;    /* per attribute: some constraint in a claim looks at it */
    bool *distinct_attributes; /* per attribute: some gang-wide distinct constraint does */
    uint64_t *net_elements;    /* elements that devices of the network have */
    uint32_t next_id;
};

void builder_init(struct builder *b, struct gang *gang, const struct gang_choice *choice);
void builder_release(struct builder *b);

/* ---- gang_devices.c ---- */

const struct device_use *builder_use(const struct gang *gang, const struct pool *pool);
const struct pool_counters *builder_counters(struct builder *b, const struct pool_view *view);
/* The name of the i-th counter that the device consumes, over all of its sets. */
const char *builder_counter_name(const struct device *device, size_t i);
struct gang_device *builder_device(struct builder *b, const struct offer *offer, bool is_net);
/* The device of the offer: the one that exists already, or a new one. */
struct gang_device *builder_device_of(struct builder *b, const struct offer *offer);

/* ---- gang_nodes.c ---- */

/* Add a node with its lists and devices, unless no kind can run there. Returns whether it was added. */
bool builder_add_node(struct builder *b, const struct node *node, uint32_t rank);
/* Whether the labels that the choice settles are the node's. */
bool gang_label_admits(const struct gang *gang, const struct gang_choice *choice, const struct gang_kind *kind,
                       const struct node_info *node);
/* Bits of gang->ports that the kind has, or that clash with those it has. */
uint64_t gang_kind_ports(const struct gang *gang, const struct gang_kind *kind, bool clashing);

/* ---- gang_cells.c ---- */

/* Make the cells and the hash of the node that was added last, while there is no device of the network. */
void builder_settle(struct builder *b);
/* Turn what was added into the problem: groups, cells, hashes. */
void builder_finish(struct builder *b);

enum lifted { LIFT_COUNTERS, LIFT_CAPACITY };
static inline bool builder_lifts(const struct builder *b, enum lifted what)
{
    const struct gang_lift *lift = b->gang->lift;

    return lift && (what == LIFT_COUNTERS ? lift->counters : lift->capacity);
}

#endif
