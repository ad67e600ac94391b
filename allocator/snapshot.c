#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/cache.h"

#include "allocator/base/banned.h"

struct snapshot *snapshot_ref(const struct snapshot *snapshot)
{
    struct snapshot *s = (struct snapshot *)snapshot;

    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void snapshot_unref(const struct snapshot *snapshot)
{
    struct snapshot *s = (struct snapshot *)snapshot;

    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    vector_release(&s->nodes);
    vector_release(&s->pools);
    vector_release(&s->buckets);
    order_unref(s->sorted_nodes);
    order_unref(s->sorted_pools);
    order_unref(s->globals);
    class_table_unref(s->classes);
    namespaces_unref(s->namespaces);
    cache_unref(s->cache);
    free(s);
}

const struct features *snapshot_features(const struct snapshot *snapshot)
{
    return &snapshot->features;
}

const struct behaviour *snapshot_behaviour(const struct snapshot *snapshot)
{
    return &snapshot->behaviour;
}

struct symbols *snapshot_symbols(const struct snapshot *snapshot)
{
    return snapshot->symbols;
}

const struct class_table *snapshot_classes(const struct snapshot *snapshot)
{
    return snapshot->classes;
}

/* ---- nodes and pools ---- */

size_t snapshot_n_nodes(const struct snapshot *snapshot)
{
    return snapshot->sorted_nodes->n;
}

size_t snapshot_n_devices(const struct snapshot *snapshot)
{
    size_t n = 0;

    for (size_t i = 0; i < snapshot->sorted_pools->n; i++)
        n += snapshot_pool(snapshot, snapshot->sorted_pools->slots[i])->n_devices;
    return n;
}

uint32_t snapshot_node_slots(const struct snapshot *snapshot)
{
    return (uint32_t)vector_size(&snapshot->nodes);
}

uint32_t snapshot_pool_slots(const struct snapshot *snapshot)
{
    return (uint32_t)vector_size(&snapshot->pools);
}

const struct node *snapshot_node(const struct snapshot *snapshot, uint32_t slot)
{
    return vector_get(&snapshot->nodes, slot);
}

const struct pool *snapshot_pool(const struct snapshot *snapshot, uint32_t slot)
{
    return vector_get(&snapshot->pools, slot);
}

const uint32_t *snapshot_sorted_nodes(const struct snapshot *snapshot, size_t *out_n)
{
    *out_n = snapshot->sorted_nodes->n;
    return snapshot->sorted_nodes->slots;
}

const uint32_t *snapshot_sorted_pools(const struct snapshot *snapshot, size_t *out_n)
{
    *out_n = snapshot->sorted_pools->n;
    return snapshot->sorted_pools->slots;
}

const uint32_t *snapshot_global_pools(const struct snapshot *snapshot, size_t *out_n)
{
    *out_n = snapshot->globals->n;
    return snapshot->globals->slots;
}

const struct node *snapshot_find_node(const struct snapshot *snapshot, const char *name)
{
    const struct order *order = snapshot->sorted_nodes;
    size_t low = 0, high = order->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct node *node = snapshot_node(snapshot, order->slots[mid]);
        int cmp = strcmp(node->info->name, name);

        if (cmp == 0)
            return node;
        if (cmp < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const struct pool *snapshot_find_pool(const struct snapshot *snapshot, const char *driver, const char *name)
{
    const struct order *order = snapshot->sorted_pools;
    size_t low = 0, high = order->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct pool *pool = snapshot_pool(snapshot, order->slots[mid]);
        int cmp = strcmp(pool->driver, driver);

        cmp = cmp ? cmp : strcmp(pool->name, name);
        if (cmp == 0)
            return pool;
        if (cmp < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- claims and namespaces ---- */

const struct cluster_claim *snapshot_find_claim(const struct snapshot *snapshot, const char *ns, const char *name)
{
    const struct claim_bucket *bucket = vector_get(&snapshot->buckets, claim_bucket_of(ns, name));

    for (size_t i = 0; bucket && i < bucket->n; i++)
        if (text_is(bucket->claims[i]->ns, ns) && text_is(bucket->claims[i]->name, name))
            return bucket->claims[i];
    return NULL;
}

static int claim_order(const void *x, const void *y)
{
    const struct cluster_claim *a = *(const struct cluster_claim *const *)x;
    const struct cluster_claim *b = *(const struct cluster_claim *const *)y;
    int order = strcmp(a->ns, b->ns);

    return order ? order : strcmp(a->name, b->name);
}

void snapshot_each_claim(const struct snapshot *snapshot, void (*each)(void *ctx, const struct cluster_claim *claim),
                         void *ctx)
{
    const struct cluster_claim **claims = NULL;
    size_t n = 0, cap = 0;

    for (size_t i = 0; i < vector_size(&snapshot->buckets); i++) {
        const struct claim_bucket *bucket = vector_get(&snapshot->buckets, i);

        for (size_t k = 0; bucket && k < bucket->n; k++) {
            if (!bucket->claims[k]->n_held)
                continue;
            mem_grow(claims, n, cap);
            claims[n++] = bucket->claims[k];
        }
    }
    if (n)
        qsort(claims, n, sizeof(struct cluster_claim *), claim_order);
    for (size_t i = 0; i < n; i++)
        each(ctx, claims[i]);
    free(claims);
}

const struct namespace_info *snapshot_find_namespace(const struct snapshot *snapshot, const char *name)
{
    for (size_t i = 0; i < snapshot->namespaces->n; i++)
        if (text_is(snapshot->namespaces->items[i].name, name))
            return &snapshot->namespaces->items[i];
    return NULL;
}

bool snapshot_has_namespace(const struct snapshot *snapshot, const char *name)
{
    return snapshot->namespaces->n == 0 || snapshot_find_namespace(snapshot, name);
}

struct snapshot_hits snapshot_hits(const struct snapshot *snapshot)
{
    struct snapshot_hits hits;

    cache_count(snapshot->cache, CACHE_EXPRESSIONS, &hits.expressions_asked, &hits.expressions_found);
    cache_count(snapshot->cache, CACHE_RESULTS, &hits.results_asked, &hits.results_found);
    cache_count(snapshot->cache, CACHE_ANSWERS, &hits.answers_asked, &hits.answers_found);
    return hits;
}
