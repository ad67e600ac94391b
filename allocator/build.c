/* From the builder to a snapshot: pools and nodes that a change touched are made anew, all else is shared. */
#include "allocator/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/cache.h"

#include "allocator/base/banned.h"

static uint32_t slot_take(struct slots *slots)
{
    return slots->n_free ? slots->free[--slots->n_free] : slots->next++;
}

static void slot_give(struct slots *slots, uint32_t slot)
{
    mem_grow(slots->free, slots->n_free, slots->cap_free);
    slots->free[slots->n_free++] = slot;
}

/* Nodes whose stamp or whose sharing follows from this pool. */
static void touch_nodes(struct snapshot_builder *b, const struct pool *pool, bool was_shared)
{
    struct node_entry *node;

    if (!pool->only_node && was_shared)
        return;
    for (size_t i = 0; i < pool->n_slices; i++) {
        if (!pool->slices[i]->node_name)
            continue;
        HASH_FIND_STR(b->nodes, pool->slices[i]->node_name, node);
        if (node)
            node_dirty(b, node);
    }
}

static void rebuild_pool(struct snapshot_builder *b, struct pool_entry *entry)
{
    const struct pool *old = entry->slot == UINT32_MAX ? NULL : vector_get(&b->v_pools, entry->slot);
    bool was_global = old && old->is_global, was_shared = old && !old->only_node;
    struct pool *pool;

    if (!entry->n_slices) {
        if (old) {
            vector_set(&b->v_pools, entry->slot, NULL);
            slot_give(&b->pool_slots, entry->slot);
            entry->slot = UINT32_MAX;
            b->pool_set_changed = true;
        }
        b->globals_stamp = was_global ? cache_stamp(b->cache) : b->globals_stamp;
        return;
    }
    if (entry->slot == UINT32_MAX) {
        entry->slot = slot_take(&b->pool_slots);
        b->pool_set_changed = true;
    }
    pool = pool_make(entry->slices, entry->n_slices, entry->holdings, entry->n_holdings, b->parsed_rules, b->n_rules,
                     &b->features, &b->behaviour, cache_stamp(b->cache), entry->slot);
    if (pool->is_global || was_global)
        b->globals_stamp = cache_stamp(b->cache);
    if (pool->is_global != was_global)
        b->pool_set_changed = true;
    touch_nodes(b, pool, was_shared);
    vector_set(&b->v_pools, entry->slot, pool);
}

struct named_slot {
    const char *a, *b;
    uint32_t slot;
};

static int by_names(const void *x, const void *y)
{
    const struct named_slot *a = x, *b = y;
    int order = strcmp(a->a, b->a);

    return order ? order : strcmp(a->b, b->b);
}

static struct order *sorted(struct named_slot *named, size_t n)
{
    uint32_t *slots = mem_array(uint32_t, n + 1);
    struct order *order;

    if (n)
        qsort(named, n, sizeof(*named), by_names);
    for (size_t i = 0; i < n; i++)
        slots[i] = named[i].slot;
    order = order_new(slots, n);
    free(slots);
    return order;
}

static void sort_pools(struct snapshot_builder *b)
{
    struct named_slot *named = mem_array(struct named_slot, vector_size(&b->v_pools) + 1);
    size_t n = 0;

    order_unref(b->sorted_pools);
    order_unref(b->globals);
    for (size_t i = 0; i < vector_size(&b->v_pools); i++) {
        const struct pool *pool = vector_get(&b->v_pools, i);

        if (pool)
            named[n++] = (struct named_slot){pool->driver, pool->name, pool->slot};
    }
    b->sorted_pools = sorted(named, n);
    n = 0;
    for (size_t i = 0; i < b->sorted_pools->n; i++) {
        const struct pool *pool = vector_get(&b->v_pools, b->sorted_pools->slots[i]);

        if (pool->is_global)
            named[n++] = (struct named_slot){pool->driver, pool->name, pool->slot};
    }
    b->globals = sorted(named, n);
    free(named);
}

static void sort_nodes(struct snapshot_builder *b)
{
    struct named_slot *named = mem_array(struct named_slot, vector_size(&b->v_nodes) + 1);
    size_t n = 0;

    order_unref(b->sorted_nodes);
    for (size_t i = 0; i < vector_size(&b->v_nodes); i++) {
        const struct node *node = vector_get(&b->v_nodes, i);

        if (node)
            named[n++] = (struct named_slot){node->info->name, "", node->slot};
    }
    b->sorted_nodes = sorted(named, n);
    free(named);
}

/* Slots of the node's pools in the order of driver and pool name. */
static size_t node_pools(struct snapshot_builder *b, const struct node_entry *node, uint32_t **out, bool *out_shares)
{
    struct named_slot *named = mem_array(struct named_slot, node->n_pools + 1);
    size_t n = 0;

    for (size_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = vector_get(&b->v_pools, node->pools[i]->slot);

        named[n++] = (struct named_slot){pool->driver, pool->name, pool->slot};
        *out_shares = *out_shares || !pool->only_node;
    }
    qsort(named, n, sizeof(*named), by_names);
    *out = mem_array(uint32_t, n + 1);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = named[i].slot;
    free(named);
    return n;
}

static void rebuild_node(struct snapshot_builder *b, struct node_entry *entry)
{
    struct arena arena = {0};
    struct node_use use = {0};
    uint32_t *pools;
    bool shares = false;
    size_t n_pools;

    if (!entry->info) {
        if (entry->slot != UINT32_MAX) {
            vector_set(&b->v_nodes, entry->slot, NULL);
            slot_give(&b->node_slots, entry->slot);
            entry->slot = UINT32_MAX;
            b->node_set_changed = true;
        }
        return;
    }
    if (entry->slot == UINT32_MAX) {
        entry->slot = slot_take(&b->node_slots);
        b->node_set_changed = true;
    }
    for (const struct pod_entry *pod = entry->pods; pod; pod = pod->next)
        node_use_add(&use, &pod->demand, &arena);
    n_pools = node_pools(b, entry, &pools, &shares);
    vector_set(&b->v_nodes, entry->slot,
               node_make(entry->info, pools, n_pools, shares, &use, cache_stamp(b->cache), entry->slot));
    free(pools);
    arena_release(&arena);
}

static void rebuild_dirty(struct snapshot_builder *b)
{
    for (size_t i = 0; i < b->n_dirty_pools; i++) {
        rebuild_pool(b, b->dirty_pools[i]);
        b->dirty_pools[i]->is_dirty = false;
        pool_entry_settle(b, b->dirty_pools[i]);
    }
    for (size_t i = 0; i < b->n_dirty_nodes; i++) {
        rebuild_node(b, b->dirty_nodes[i]);
        b->dirty_nodes[i]->is_dirty = false;
        node_entry_settle(b, b->dirty_nodes[i]);
    }
    b->n_dirty_pools = b->n_dirty_nodes = 0;
    if (b->pool_set_changed)
        sort_pools(b);
    if (b->node_set_changed)
        sort_nodes(b);
    b->pool_set_changed = b->node_set_changed = false;
}

static struct class_table *class_table_make(struct snapshot_builder *b)
{
    struct class_table *table = mem_new(struct class_table);
    struct load load = load_of(b, &table->arena);
    struct device_class *classes = arena_array(&table->arena, struct device_class, HASH_COUNT(b->classes) + 1);
    struct doc_entry *entry;

    load.validate = false; /* they were checked when they came */
    atomic_init(&table->refs, 1);
    HASH_SORT(b->classes, doc_order);
    for (entry = b->classes; entry; entry = entry->hh.next)
        if (class_parse(entry->object, &load, &classes[table->n_classes], NULL) == 0)
            table->n_classes++;
    table->classes = classes;
    table->stamp = cache_stamp(b->cache);
    return table;
}

static struct namespaces *namespaces_make(struct snapshot_builder *b)
{
    struct namespaces *table = mem_new(struct namespaces);
    struct namespace_info *items = arena_array(&table->arena, struct namespace_info, HASH_COUNT(b->namespaces) + 1);
    struct doc_entry *entry;

    atomic_init(&table->refs, 1);
    HASH_SORT(b->namespaces, doc_order);
    for (entry = b->namespaces; entry; entry = entry->hh.next) {
        struct namespace_info *item = &items[table->n];

        item->name = arena_strdup(&table->arena, entry->name);
        if (read_labels(member(entry->object, "metadata"), "labels", &table->arena, &item->labels, &item->n_labels,
                        NULL) == 0)
            table->n++;
    }
    table->items = items;
    return table;
}

struct snapshot *snapshot_builder_build(struct snapshot_builder *b)
{
    struct snapshot *s = mem_new(struct snapshot);

    rebuild_dirty(b);
    if (!b->class_table)
        b->class_table = class_table_make(b);
    if (!b->namespace_table)
        b->namespace_table = namespaces_make(b);
    atomic_init(&s->refs, 1);
    s->features = b->features;
    s->behaviour = b->behaviour;
    s->cache = cache_ref(b->cache);
    s->symbols = cache_symbols(b->cache);
    s->nodes = vector_share(&b->v_nodes);
    s->pools = vector_share(&b->v_pools);
    s->buckets = vector_share(&b->v_buckets);
    s->sorted_nodes = order_ref(b->sorted_nodes);
    s->sorted_pools = order_ref(b->sorted_pools);
    s->globals = order_ref(b->globals);
    s->globals_stamp = b->globals_stamp;
    s->classes = class_table_ref(b->class_table);
    s->namespaces = namespaces_ref(b->namespace_table);
    return s;
}
