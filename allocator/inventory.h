/* allocator/inventory.h - internal: how pools, nodes and snapshots are made and shared. The search does not need it. */
#ifndef QUEUED_ALLOCATOR_INVENTORY_H
#define QUEUED_ALLOCATOR_INVENTORY_H

#include "allocator/internal.h"

/* ---- pool.c ---- */

/* Slices that the feature set hides on every node. */
bool slice_is_hidden(const struct slice *slice, const struct features *features);
/* A node selector that cannot be parsed (text, else NULL), and where its slice stands in the input: of several the
 * scheduler meets the first. */
struct view_problem {
    const char *text;
    uint64_t order;
};
/* The pool as the node sees it, in `arena`; NULL when it sees nothing of it. */
const struct pool_view *pool_view_make(const struct pool *pool, const struct node_info *node,
                                       const struct features *features, const struct behaviour *behaviour,
                                       struct arena *arena, struct view_problem *out_problem);

/* ---- use.c: who holds what of a pool ---- */

/* Add or (sign -1) take away what one result of an allocation holds of a device with `n_capacities`; the consumed row
 * is made in the arena when there is none. */
void device_use_change(struct device_use *use, const struct device *device, const struct held_device *held, int sign,
                       bool consumable, struct arena *arena);
/* The positions of a device's name in the pool, one after the other: start with SIZE_MAX; SIZE_MAX ends. */
size_t pool_find_device(const struct pool *pool, const char *name, size_t after);

/* ---- vectors.c: persistent vectors of reference-counted pieces ---- */

/* Pieces in chunks; a copy shares the chunks, a change copies one chunk. `unref` gives a piece back. */
#define CHUNK_ITEMS 64
struct chunk;
struct vector {
    struct chunk **chunks;
    size_t n_chunks;
    void (*unref)(void *piece);
    void (*ref)(void *piece);
};
void vector_init(struct vector *vector, void (*ref)(void *piece), void (*unref)(void *piece));
void vector_release(struct vector *vector);
struct vector vector_share(const struct vector *vector);
void *vector_get(const struct vector *vector, size_t i);       /* borrowed; NULL when there is none */
void vector_set(struct vector *vector, size_t i, void *piece); /* takes the piece; NULL empties the place */
static inline size_t vector_size(const struct vector *vector)
{
    return vector->n_chunks * CHUNK_ITEMS;
}

/* A list of slots in a fixed order, shared between snapshots. */
struct order {
    atomic_uint refs;
    uint32_t *slots;
    size_t n;
};
struct order *order_new(const uint32_t *slots, size_t n);
struct order *order_ref(struct order *order);
void order_unref(struct order *order);

struct namespaces {
    atomic_uint refs;
    struct arena arena;
    const struct namespace_info *items; /* sorted by name */
    size_t n;
};
void namespaces_unref(struct namespaces *namespaces);
struct namespaces *namespaces_ref(struct namespaces *namespaces);

struct class_table *class_table_ref(struct class_table *table);
void class_table_unref(struct class_table *table);

/* Claims with the same hash, sorted by namespace and name. */
struct claim_bucket {
    atomic_uint refs;
    struct cluster_claim **claims;
    size_t n;
};
#define CLAIM_BUCKETS 1024
size_t claim_bucket_of(const char *ns, const char *name);

void pool_ref(void *pool);
void pool_unref(void *pool);
void node_ref(void *node);
void node_unref(void *node);
void node_info_unref(struct node_info *info);
void bucket_ref(void *bucket);
void bucket_unref(void *bucket);
void cluster_claim_unref(struct cluster_claim *claim);

/* ---- the snapshot ---- */

struct cache; /* cache.h */

struct snapshot {
    atomic_uint refs;
    struct features features;
    struct behaviour behaviour;
    struct symbols *symbols;
    struct cache *cache;
    struct vector nodes, pools, buckets;
    struct order *sorted_nodes, *sorted_pools, *globals;
    uint64_t globals_stamp; /* changes with every global pool */
    struct class_table *classes;
    struct namespaces *namespaces;
    size_t n_devices;
};

/* ---- rebuilding pools and nodes ---- */

struct holding { /* one result of an allocated claim in this pool */
    const struct cluster_claim *claim;
    const struct held_device *held;
};
/* A pool of these slices (a reference to each is taken) and holdings. */
struct pool *pool_make(struct slice *const *slices, size_t n_slices, const struct holding *holdings, size_t n_holdings,
                       const struct taint_rule *rules, size_t n_rules, const struct features *features,
                       const struct behaviour *behaviour, uint64_t stamp, uint32_t slot);
/* The same pool with other uses: `use` has n_devices entries, copied. */
struct pool *pool_with_use(const struct pool *pool, const struct device_use *use, const struct features *features,
                           const struct behaviour *behaviour, uint64_t stamp);
struct node *node_make(struct node_info *info, const uint32_t *pools, size_t n_pools, bool shares_pools,
                       const struct node_use *use, uint64_t stamp, uint32_t slot);
/* Sum demands; the result lives in the arena. */
void node_use_add(struct node_use *use, const struct pod_demand *demand, struct arena *arena);

#endif
