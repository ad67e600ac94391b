/* allocator/base/arena.h - the memory of one pass: allocated piecemeal, freed whole.
 *
 * A compiled expression, a planning round or a reply owns one arena. Nothing in it outlives it, and objects with a life
 * of their own are never in one. A mark rewinds it, so that a loop reuses the same memory without touching the heap.
 * Not for use from several threads at once. */
#ifndef QUEUED_BASE_ARENA_H
#define QUEUED_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdalign.h>

#include "allocator/base/compiler.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    struct arena_chunk *spare;  /* kept by a rewind for the next growth */
    size_t bytes;               /* handed out since init */
};

struct arena_mark {
    struct arena_chunk *chunk;
    size_t used;
    size_t bytes;
};

/* Start empty; allocates nothing yet. A zeroed struct arena is a valid empty one too. */
void arena_init(struct arena *arena);
/* Free everything; the arena is empty and usable again. */
void arena_release(struct arena *arena);

/* Make the first chunk of an empty arena hold `bytes` and no more: for many small arenas, or one whose size is known.
 * Later chunks double as ever. */
void arena_reserve(struct arena *arena, size_t bytes);

/* `size` zeroed bytes aligned to `align` (a power of two, at most 64). Never NULL. */
void *arena_alloc(struct arena *arena, size_t size, size_t align);
#define arena_new(arena, type)      ((type *)arena_alloc((arena), sizeof(type), alignof(type)))
#define arena_array(arena, type, n) ((type *)arena_array_alloc((arena), (n), sizeof(type), alignof(type)))
void *arena_array_alloc(struct arena *arena, size_t n, size_t size, size_t align);

char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *arena, const char *fmt, va_list args);

/* Remember a position; everything allocated later is given back by the rewind, whose chunks stay for reuse. */
struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

#endif
