#include "allocator/base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define CHUNK_MIN 4096

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of data */
    size_t used;
    alignas(64) unsigned char data[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

static void free_chain(struct arena_chunk *chunk)
{
    while (chunk) {
        struct arena_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
}

void arena_release(struct arena *arena)
{
    free_chain(arena->chunks);
    free_chain(arena->spare);
    arena_init(arena);
}

static struct arena_chunk *chunk_new(size_t size)
{
    struct arena_chunk *chunk = aligned_alloc(64, (sizeof(*chunk) + size + 63) & ~(size_t)63);

    INVARIANT(chunk != NULL);
    chunk->next = NULL;
    chunk->size = size;
    chunk->used = 0;
    return chunk;
}

void arena_reserve(struct arena *arena, size_t bytes)
{
    INVARIANT(!arena->chunks && bytes < SIZE_MAX / 4);
    arena->chunks = chunk_new(bytes);
}

/* A chunk with room for `need` bytes: the first spare one if it is large enough, else a new one, twice the last. */
static struct arena_chunk *chunk_for(struct arena *arena, size_t need)
{
    size_t size = arena->chunks ? arena->chunks->size * 2 : CHUNK_MIN;
    struct arena_chunk *chunk = arena->spare;

    if (chunk && chunk->size >= need) {
        arena->spare = chunk->next;
        chunk->used = 0;
        return chunk;
    }
    if (size > ((size_t)1 << 22))
        size = (size_t)1 << 22;
    if (size < need)
        size = need;
    return chunk_new(size);
}

void *arena_alloc(struct arena *arena, size_t size, size_t align)
{
    struct arena_chunk *chunk = arena->chunks;
    size_t at = chunk ? (chunk->used + align - 1) & ~(align - 1) : 0;
    void *p;

    INVARIANT(size < SIZE_MAX / 4 && align <= 64);
    if (!chunk || at + size > chunk->size) {
        chunk = chunk_for(arena, size ? size : 1);
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        at = 0;
    }
    chunk->used = at + size;
    arena->bytes += size;
    p = chunk->data + at;
    memset(p, 0, size);
    return p;
}

void *arena_array_alloc(struct arena *arena, size_t n, size_t size, size_t align)
{
    size_t bytes;

    INVARIANT(checked_mul(n, size, &bytes));
    return arena_alloc(arena, bytes, align);
}

char *arena_strndup(struct arena *arena, const char *s, size_t n)
{
    char *copy = arena_alloc(arena, n + 1, 1);

    if (n)
        memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
    return arena_strndup(arena, s, strlen(s));
}

char *arena_vprintf(struct arena *arena, const char *fmt, va_list args)
{
    va_list again;
    int n;
    char *text;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    INVARIANT(n >= 0);
    text = arena_alloc(arena, (size_t)n + 1, 1);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    char *text;

    va_start(args, fmt);
    text = arena_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->chunks, arena->chunks ? arena->chunks->used : 0, arena->bytes};
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    while (arena->chunks != mark.chunk) {
        struct arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        chunk->next = arena->spare;
        arena->spare = chunk;
    }
    if (arena->chunks)
        arena->chunks->used = mark.used;
    arena->bytes = mark.bytes;
}
