/* Interned texts, and the digests that stand for values.
 *
 * The table only grows: drivers, attribute names and resource names are few in any cluster. Device names, values and
 * whatever else is unbounded never goes in. */
#include "allocator/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct symbols {
    atomic_uint refs;
    pthread_mutex_t lock;
    struct arena arena;
    const char **table; /* open addressing, a power of two */
    size_t size, n;
};

struct symbols *symbols_new(void)
{
    struct symbols *symbols = mem_new(struct symbols);

    atomic_init(&symbols->refs, 1);
    INVARIANT(pthread_mutex_init(&symbols->lock, NULL) == 0);
    arena_init(&symbols->arena);
    symbols->size = 256;
    symbols->table = mem_array(const char *, symbols->size);
    return symbols;
}

struct symbols *symbols_ref(struct symbols *symbols)
{
    atomic_fetch_add_explicit(&symbols->refs, 1, memory_order_relaxed);
    return symbols;
}

void symbols_unref(struct symbols *symbols)
{
    if (!symbols || atomic_fetch_sub_explicit(&symbols->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&symbols->lock);
    arena_release(&symbols->arena);
    free(symbols->table);
    free(symbols);
}

static size_t text_slot(const char *text)
{
    struct digest digest = {0};

    digest_text(&digest, text, strlen(text));
    return digest.lo;
}

/* Where the text is, or the free place where it belongs. */
static size_t find(const struct symbols *symbols, const char *text)
{
    size_t at = text_slot(text) & (symbols->size - 1);

    while (symbols->table[at] && strcmp(symbols->table[at], text) != 0)
        at = (at + 1) & (symbols->size - 1);
    return at;
}

static void grow(struct symbols *symbols)
{
    const char **old = symbols->table;
    size_t old_size = symbols->size;

    symbols->size *= 2;
    symbols->table = mem_array(const char *, symbols->size);
    for (size_t i = 0; i < old_size; i++)
        if (old[i])
            symbols->table[find(symbols, old[i])] = old[i];
    free(old);
}

const char *symbol(struct symbols *symbols, const char *text)
{
    const char *result;
    size_t at;

    if (!text)
        return NULL;
    pthread_mutex_lock(&symbols->lock);
    if (symbols->n * 2 >= symbols->size)
        grow(symbols);
    at = find(symbols, text);
    if (!symbols->table[at]) {
        symbols->table[at] = arena_strdup(&symbols->arena, text);
        symbols->n++;
    }
    result = symbols->table[at];
    pthread_mutex_unlock(&symbols->lock);
    return result;
}

/* ---- digests ----
 *
 * Two lanes of a multiply-and-xor-shift mix (the finalizer of splitmix64), the second one fed by the first. */

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void digest_add(struct digest *digest, uint64_t word)
{
    digest->lo = mix(digest->lo + word + UINT64_C(0x9e3779b97f4a7c15));
    digest->hi = ((digest->hi << 23) | (digest->hi >> 41)) * UINT64_C(0xd6e8feb86659fd93) + (digest->lo ^ word);
}

void digest_text(struct digest *digest, const char *text, size_t len)
{
    digest_add(digest, len);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;

        memcpy(&word, text + i, len - i < 8 ? len - i : 8);
        digest_add(digest, word);
    }
}
