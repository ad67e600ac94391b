/* Persistent vectors and the other shared parts of snapshots: reference counts and what ends with them. */
#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct chunk {
    atomic_uint refs;
    void *pieces[CHUNK_ITEMS];
};

static void take_ref(atomic_uint *refs)
{
    atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static bool drop_ref(atomic_uint *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

void vector_init(struct vector *vector, void (*ref)(void *piece), void (*unref)(void *piece))
{
    *vector = (struct vector){.ref = ref, .unref = unref};
}

static void chunk_unref(const struct vector *vector, struct chunk *chunk)
{
    if (!drop_ref(&chunk->refs))
        return;
    for (size_t i = 0; i < CHUNK_ITEMS; i++)
        if (chunk->pieces[i])
            vector->unref(chunk->pieces[i]);
    free(chunk);
}

void vector_release(struct vector *vector)
{
    for (size_t i = 0; i < vector->n_chunks; i++)
        chunk_unref(vector, vector->chunks[i]);
    free(vector->chunks);
    vector->chunks = NULL;
    vector->n_chunks = 0;
}

struct vector vector_share(const struct vector *vector)
{
    struct vector copy = *vector;

    copy.chunks = mem_array(struct chunk *, vector->n_chunks + 1);
    for (size_t i = 0; i < vector->n_chunks; i++) {
        copy.chunks[i] = vector->chunks[i];
        take_ref(&copy.chunks[i]->refs);
    }
    return copy;
}

void *vector_get(const struct vector *vector, size_t i)
{
    return i < vector_size(vector) ? vector->chunks[i / CHUNK_ITEMS]->pieces[i % CHUNK_ITEMS] : NULL;
}

static struct chunk *chunk_copy(const struct vector *vector, const struct chunk *old)
{
    struct chunk *chunk = mem_new(struct chunk);

    atomic_init(&chunk->refs, 1);
    for (size_t i = 0; old && i < CHUNK_ITEMS; i++) {
        chunk->pieces[i] = old->pieces[i];
        if (chunk->pieces[i])
            vector->ref(chunk->pieces[i]);
    }
    return chunk;
}

void vector_set(struct vector *vector, size_t i, void *piece)
{
    struct chunk **place;

    while (i >= vector_size(vector)) {
        vector->chunks = mem_resize(vector->chunks, vector->n_chunks + 1, sizeof(*vector->chunks));
        vector->chunks[vector->n_chunks++] = chunk_copy(vector, NULL);
    }
    place = &vector->chunks[i / CHUNK_ITEMS];
    if (atomic_load_explicit(&(*place)->refs, memory_order_acquire) > 1) {
        struct chunk *own = chunk_copy(vector, *place);

        chunk_unref(vector, *place);
        *place = own;
    }
    if ((*place)->pieces[i % CHUNK_ITEMS])
        vector->unref((*place)->pieces[i % CHUNK_ITEMS]);
    (*place)->pieces[i % CHUNK_ITEMS] = piece;
}

/* ---- orders ---- */

struct order *order_new(const uint32_t *slots, size_t n)
{
    struct order *order = mem_new(struct order);

    atomic_init(&order->refs, 1);
    order->slots = mem_array(uint32_t, n + 1);
    if (n)
        memcpy(order->slots, slots, n * sizeof(*slots));
    order->n = n;
    return order;
}

struct order *order_ref(struct order *order)
{
    take_ref(&order->refs);
    return order;
}

void order_unref(struct order *order)
{
    if (!order || !drop_ref(&order->refs))
        return;
    free(order->slots);
    free(order);
}

/* ---- tables ---- */

struct namespaces *namespaces_ref(struct namespaces *namespaces)
{
    take_ref(&namespaces->refs);
    return namespaces;
}

void namespaces_unref(struct namespaces *namespaces)
{
    if (!namespaces || !drop_ref(&namespaces->refs))
        return;
    arena_release(&namespaces->arena);
    free(namespaces);
}

struct class_table *class_table_ref(struct class_table *table)
{
    take_ref(&table->refs);
    return table;
}

void class_table_unref(struct class_table *table)
{
    if (!table || !drop_ref(&table->refs))
        return;
    arena_release(&table->arena);
    free(table);
}

/* ---- pieces ---- */

void pool_ref(void *pool)
{
    take_ref(&((struct pool *)pool)->refs);
}

void pool_unref(void *piece)
{
    struct pool *pool = piece;

    if (!pool || !drop_ref(&pool->refs))
        return;
    for (size_t i = 0; i < pool->n_slices; i++)
        slice_unref(pool->slices[i]);
    arena_release(&pool->arena);
    free(pool);
}

void node_ref(void *node)
{
    take_ref(&((struct node *)node)->refs);
}

void node_unref(void *piece)
{
    struct node *node = piece;

    if (!node || !drop_ref(&node->refs))
        return;
    node_info_unref((struct node_info *)node->info);
    arena_release(&node->arena);
    free(node);
}

void node_info_unref(struct node_info *info)
{
    if (!info || !drop_ref(&info->refs))
        return;
    arena_release(&info->arena);
    free(info);
}

void cluster_claim_unref(struct cluster_claim *claim)
{
    if (!claim || !drop_ref(&claim->refs))
        return;
    arena_release(&claim->arena);
    free(claim);
}

void bucket_ref(void *bucket)
{
    take_ref(&((struct claim_bucket *)bucket)->refs);
}

void bucket_unref(void *piece)
{
    struct claim_bucket *bucket = piece;

    if (!bucket || !drop_ref(&bucket->refs))
        return;
    for (size_t i = 0; i < bucket->n; i++)
        cluster_claim_unref(bucket->claims[i]);
    free(bucket->claims);
    free(bucket);
}
