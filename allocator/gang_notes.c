#include "allocator/gang_notes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/inventory.h"

#include "allocator/base/banned.h"

#define MOST_BYTES ((size_t)48 << 20) /* of all notes together, about */
#define MOST_NOTES 1024
#define FEW_NOTES  16

struct gang_notes {
    atomic_uint refs;
    pthread_mutex_t lock;
    size_t size;          /* of an item */
    unsigned char *items; /* by node slot; a state of zeros is no item */
    size_t n;
};

static void *notes_make(void *ctx)
{
    struct gang_notes *notes = mem_new(struct gang_notes);

    atomic_init(&notes->refs, 1);
    INVARIANT(pthread_mutex_init(&notes->lock, NULL) == 0);
    notes->size = *(const size_t *)ctx;
    return notes;
}

static void *notes_ref(void *extra)
{
    struct gang_notes *notes = extra;

    atomic_fetch_add_explicit(&notes->refs, 1, memory_order_relaxed);
    return notes;
}

static void notes_unref(void *extra)
{
    struct gang_notes *notes = extra;

    if (atomic_fetch_sub_explicit(&notes->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&notes->lock);
    free(notes->items);
    free(notes);
}

struct gang_notes *gang_notes_open(const struct snapshot *snapshot, struct digest question, size_t size)
{
    size_t most = MOST_BYTES / (size * (snapshot_node_slots(snapshot) + 1));

    most = most > MOST_NOTES ? MOST_NOTES : most < FEW_NOTES ? FEW_NOTES : most;
    return cache_extra(snapshot->cache, question, most, notes_make, &size, notes_ref, notes_unref);
}

void gang_notes_unref(struct gang_notes *notes)
{
    if (notes)
        notes_unref(notes);
}

bool gang_notes_find(struct gang_notes *notes, uint32_t slot, struct digest state, void *out)
{
    struct digest known = {0};
    bool found = false;

    pthread_mutex_lock(&notes->lock);
    if (slot < notes->n) {
        memcpy(&known, notes->items + slot * notes->size, sizeof(known));
        found = digest_eq(known, state);
    }
    if (found)
        memcpy(out, notes->items + slot * notes->size, notes->size);
    pthread_mutex_unlock(&notes->lock);
    return found;
}

void gang_notes_put(struct gang_notes *notes, uint32_t slot, const void *item)
{
    pthread_mutex_lock(&notes->lock);
    if (slot >= notes->n) {
        size_t n = notes->n ? notes->n : 64;

        while (n <= slot)
            n *= 2;
        notes->items = mem_resize(notes->items, n, notes->size);
        memset(notes->items + notes->n * notes->size, 0, (n - notes->n) * notes->size);
        notes->n = n;
    }
    memcpy(notes->items + slot * notes->size, item, notes->size);
    pthread_mutex_unlock(&notes->lock);
}

struct digest gang_node_state(const struct snapshot *snapshot, const struct node *node)
{
    struct digest d = {1, 1};

    digest_add(&d, node->stamp);
    for (size_t i = 0; i < node->n_pools && node->shares_pools; i++) /* else the node's stamp tells of them */
        digest_add(&d, snapshot_pool(snapshot, node->pools[i])->stamp);
    digest_add(&d, snapshot->globals_stamp);
    return d;
}
