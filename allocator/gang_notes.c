#include "allocator/gang_notes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct gang_notes {
    atomic_uint refs;
    pthread_mutex_t lock;
    struct gang_note *notes; /* by node slot; a state of zeros is no note */
    size_t n;
};

static void *notes_make(void)
{
    struct gang_notes *notes = mem_new(struct gang_notes);

    atomic_init(&notes->refs, 1);
    INVARIANT(pthread_mutex_init(&notes->lock, NULL) == 0);
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
    free(notes->notes);
    free(notes);
}

struct gang_notes *gang_notes_open(struct cache *cache, struct digest question)
{
    return cache_extra(cache, question, notes_make, notes_ref, notes_unref);
}

void gang_notes_unref(struct gang_notes *notes)
{
    if (notes)
        notes_unref(notes);
}

bool gang_notes_find(struct gang_notes *notes, uint32_t slot, struct digest state, struct gang_note *out)
{
    bool found;

    pthread_mutex_lock(&notes->lock);
    found = slot < notes->n && digest_eq(notes->notes[slot].state, state);
    if (found)
        *out = notes->notes[slot];
    pthread_mutex_unlock(&notes->lock);
    return found;
}

void gang_notes_put(struct gang_notes *notes, uint32_t slot, const struct gang_note *note)
{
    pthread_mutex_lock(&notes->lock);
    if (slot >= notes->n) {
        size_t n = notes->n ? notes->n : 64;

        while (n <= slot)
            n *= 2;
        notes->notes = mem_resize(notes->notes, n, sizeof(*notes->notes));
        memset(notes->notes + notes->n, 0, (n - notes->n) * sizeof(*notes->notes));
        notes->n = n;
    }
    notes->notes[slot] = *note;
    pthread_mutex_unlock(&notes->lock);
}
