#include "allocator/grow.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/cache.h"

#include "allocator/base/banned.h"

/* Copies are made once, so that snapshots of different sizes share them with all that is remembered of them. */
struct growth {
    const struct snapshot *base;
    const struct node *like;
    struct node **nodes; /* each with a reference */
    size_t n, cap;
    struct pool **pools; /* n_own_pools per node */
    size_t n_own_pools;
};

/* ---- one copy ---- */

static const struct label *copy_labels(const struct node_info *like, const char *name, struct arena *arena)
{
    struct label *labels = arena_array(arena, struct label, like->n_labels);

    for (size_t i = 0; i < like->n_labels; i++) {
        labels[i] = like->labels[i];
        if (strcmp(labels[i].key, "kubernetes.io/hostname") == 0)
            labels[i].value = name;
    }
    return labels;
}

/* A "+" is in no node's name. */
static struct node_info *copy_info(const struct node_info *like, size_t i)
{
    struct node_info *info = mem_new(struct node_info);
    struct arena arena = {0};

    *info = *like;
    info->name = arena_printf(&arena, "%s+%zu", like->name, i + 1);
    info->labels = copy_labels(like, info->name, &arena);
    info->arena = arena;
    atomic_init(&info->refs, 1);
    return info;
}

/* Devices are shared with the original. */
static struct slice *copy_slice(const struct slice *like, const char *node)
{
    struct slice *slice = mem_new(struct slice);
    struct arena arena = {0};

    *slice = *like;
    slice->name = arena_printf(&arena, "%s of %s", like->name, node);
    slice->pool = arena_printf(&arena, "%s of %s", like->pool, node);
    slice->node_name = arena_strdup(&arena, node);
    slice->arena = arena;
    atomic_init(&slice->refs, 1);
    return slice;
}

static struct pool *copy_pool(const struct growth *growth, const struct pool *like, const char *node, uint32_t slot)
{
    const struct snapshot *base = growth->base;
    struct slice **slices = mem_array(struct slice *, like->n_slices);
    struct pool *pool;

    for (size_t i = 0; i < like->n_slices; i++)
        slices[i] = copy_slice(like->slices[i], node);
    pool = pool_make(slices, like->n_slices, NULL, 0, NULL, 0, &base->features, &base->behaviour,
                     cache_stamp(base->cache), slot);
    for (size_t i = 0; i < like->n_slices; i++)
        slice_unref(slices[i]);
    free(slices);
    return pool;
}

static bool is_own(const struct growth *growth, const struct pool *pool)
{
    return pool && pool->only_node && strcmp(pool->only_node, growth->like->info->name) == 0;
}

static void add_copy(struct growth *growth)
{
    static const struct node_use nothing;
    struct node_info *info = copy_info(growth->like->info, growth->n);
    size_t first = growth->n * growth->n_own_pools, n = 0;
    uint32_t *slots = mem_array(uint32_t, growth->n_own_pools + 1);

    growth->pools = mem_resize(growth->pools, first + growth->n_own_pools + 1, sizeof(struct pool *));
    for (size_t i = 0; i < growth->like->n_pools; i++) {
        const struct pool *pool = snapshot_pool(growth->base, growth->like->pools[i]);

        if (!is_own(growth, pool))
            continue;
        slots[n] = snapshot_pool_slots(growth->base) + (uint32_t)(first + n);
        growth->pools[first + n] = copy_pool(growth, pool, info->name, slots[n]);
        n++;
    }
    mem_grow(growth->nodes, growth->n, growth->cap);
    growth->nodes[growth->n] = node_make(info, slots, n, false, &nothing, cache_stamp(growth->base->cache),
                                         snapshot_node_slots(growth->base) + (uint32_t)growth->n);
    growth->n++;
    node_info_unref(info);
    free(slots);
}

/* ---- the whole ---- */

struct growth *growth_new(const struct snapshot *snapshot, const struct node *like)
{
    struct growth *growth = mem_new(struct growth);

    growth->base = snapshot;
    growth->like = like;
    for (size_t i = 0; i < like->n_pools; i++)
        growth->n_own_pools += is_own(growth, snapshot_pool(snapshot, like->pools[i]));
    return growth;
}

void growth_free(struct growth *growth)
{
    if (!growth)
        return;
    for (size_t i = 0; i < growth->n; i++)
        node_unref(growth->nodes[i]);
    for (size_t i = 0; i < growth->n * growth->n_own_pools; i++)
        pool_unref(growth->pools[i]);
    free(growth->nodes);
    free(growth->pools);
    free(growth);
}

/* Two sorted lists become one: what there is, and (sorted here) what is new. */
static struct order *merged(const struct order *old, uint32_t *more, size_t n, const struct snapshot *snapshot,
                            int (*cmp)(const void *a, const void *b, void *snapshot))
{
    uint32_t *slots = mem_array(uint32_t, old->n + n + 1);
    struct order *order;
    size_t at = 0, next = 0;

    if (n)
        qsort_r(more, n, sizeof(*more), cmp, (void *)(uintptr_t)snapshot);
    for (size_t i = 0; i < old->n; i++) {
        while (next < n && cmp(&more[next], &old->slots[i], (void *)(uintptr_t)snapshot) < 0)
            slots[at++] = more[next++];
        slots[at++] = old->slots[i];
    }
    while (next < n)
        slots[at++] = more[next++];
    order = order_new(slots, at);
    free(slots);
    return order;
}

static int by_node(const void *a, const void *b, void *snapshot)
{
    return strcmp(snapshot_node(snapshot, *(const uint32_t *)a)->info->name,
                  snapshot_node(snapshot, *(const uint32_t *)b)->info->name);
}

static int by_pool(const void *a, const void *b, void *snapshot)
{
    const struct pool *x = snapshot_pool(snapshot, *(const uint32_t *)a);
    const struct pool *y = snapshot_pool(snapshot, *(const uint32_t *)b);
    int order = strcmp(x->driver, y->driver);

    return order ? order : strcmp(x->name, y->name);
}

/* All that does not change, with a reference each. */
static struct snapshot *copy_base(const struct snapshot *base)
{
    struct snapshot *s = mem_new(struct snapshot);

    *s = *base;
    atomic_init(&s->refs, 1);
    s->cache = cache_ref(base->cache);
    s->nodes = vector_share(&base->nodes);
    s->pools = vector_share(&base->pools);
    s->buckets = vector_share(&base->buckets);
    s->globals = order_ref(base->globals);
    s->classes = class_table_ref(base->classes);
    s->namespaces = namespaces_ref(base->namespaces);
    return s;
}

struct snapshot *growth_snapshot(struct growth *growth, size_t n)
{
    struct snapshot *s = copy_base(growth->base);
    size_t n_pools = n * growth->n_own_pools;
    uint32_t *nodes = mem_array(uint32_t, n + 1), *pools = mem_array(uint32_t, n_pools + 1);

    while (growth->n < n)
        add_copy(growth);
    for (size_t i = 0; i < n_pools; i++) {
        pool_ref(growth->pools[i]);
        pools[i] = growth->pools[i]->slot;
        vector_set(&s->pools, pools[i], growth->pools[i]);
    }
    for (size_t i = 0; i < n; i++) {
        node_ref(growth->nodes[i]);
        nodes[i] = growth->nodes[i]->slot;
        vector_set(&s->nodes, nodes[i], growth->nodes[i]);
    }
    s->sorted_nodes = merged(growth->base->sorted_nodes, nodes, n, s, by_node);
    s->sorted_pools = merged(growth->base->sorted_pools, pools, n_pools, s, by_pool);
    free(nodes);
    free(pools);
    return s;
}
