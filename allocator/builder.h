/* allocator/builder.h - internal: what a snapshot builder keeps, for the files that fill it and build from it. */
#ifndef QUEUED_ALLOCATOR_BUILDER_H
#define QUEUED_ALLOCATOR_BUILDER_H

#include <uthash.h>

#include "allocator/inventory.h"

struct pool_entry {
    UT_hash_handle hh;
    char *key; /* driver, 0x1f, pool */
    struct slice **slices;
    size_t n_slices, cap_slices;
    struct holding *holdings;
    size_t n_holdings, cap_holdings;
    uint32_t slot; /* UINT32_MAX: not in the snapshot */
    bool is_dirty;
};

struct pod_entry {
    UT_hash_handle hh;
    char *key; /* namespace/name */
    struct arena arena;
    struct pod_demand demand;
    struct node_entry *node;
    struct pod_entry *next, *prev; /* on the node */
};

struct node_entry { /* of a Node object, or of a name that slices or pods mention */
    UT_hash_handle hh;
    char *name;
    struct node_info *info; /* NULL: no such object */
    struct pod_entry *pods;
    struct pool_entry **pools; /* with slices for this node */
    size_t n_pools, cap_pools;
    uint32_t slot;
    bool is_dirty;
};

struct slice_entry {
    UT_hash_handle hh;
    char *name;
    uint64_t order;
    struct slice *slice;
};

struct claim_entry {
    UT_hash_handle hh;
    char *key; /* namespace/name */
    struct cluster_claim *claim;
};

struct doc_entry { /* classes, taint rules and namespaces: few, kept as JSON, parsed again when one changes */
    UT_hash_handle hh;
    char *name;
    json_t *object;
};

struct slots { /* numbers given out and taken back */
    uint32_t *free;
    size_t n_free, cap_free;
    uint32_t next;
};

struct snapshot_builder {
    struct features features;
    struct behaviour behaviour;
    bool validate;
    struct cache *cache;
    struct slice_entry *slices;
    struct pool_entry *pools;
    struct node_entry *nodes;
    struct pod_entry *pods;
    struct claim_entry *claims;
    struct doc_entry *classes, *rules, *namespaces;
    uint64_t next_order;
    struct pool_entry **dirty_pools;
    size_t n_dirty_pools, cap_dirty_pools;
    struct node_entry **dirty_nodes;
    size_t n_dirty_nodes, cap_dirty_nodes;
    struct slots node_slots, pool_slots;
    /* what the next snapshot shares */
    struct vector v_nodes, v_pools, v_buckets;
    struct order *sorted_nodes, *sorted_pools, *globals;
    bool node_set_changed, pool_set_changed;
    uint64_t globals_stamp;
    struct class_table *class_table;
    struct namespaces *namespace_table;
    struct arena rule_arena;
    struct taint_rule *parsed_rules;
    size_t n_rules;
};

/* ---- builder.c ---- */

struct load load_of(struct snapshot_builder *b, struct arena *arena);
void node_dirty(struct snapshot_builder *b, struct node_entry *node);
/* Entries that nothing mentions any more go away, so that a long-lived builder does not collect names. */
void node_entry_settle(struct snapshot_builder *b, struct node_entry *node);
void pool_entry_settle(struct snapshot_builder *b, struct pool_entry *pool);
/* The order of documents: by name. */
int doc_order(struct doc_entry *a, struct doc_entry *b);

#endif
