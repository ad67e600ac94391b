/* allocator/base/mem.h - memory that is always there: running out ends the process (see invariant.h).
 *
 * Sizes that come from foreign input are limited before they get here. */
#ifndef QUEUED_BASE_MEM_H
#define QUEUED_BASE_MEM_H

#include <stddef.h>

/* Zeroed memory for n objects of `size` bytes; never NULL, free() it. */
void *mem_zalloc(size_t n, size_t size);
/* Like realloc for n objects of `size` bytes; new bytes are not zeroed; never NULL. */
void *mem_resize(void *old, size_t n, size_t size);
/* A copy of a string; NULL stays NULL. */
char *mem_strdup(const char *s);
/* A copy of n bytes with a NUL behind them. */
char *mem_strndup(const char *s, size_t n);

#define mem_new(type)      ((type *)mem_zalloc(1, sizeof(type)))
#define mem_array(type, n) ((type *)mem_zalloc((n), sizeof(type)))

/* Make room for one more element in a growing array: `items` pointer, `n` used, `cap` allocated. */
#define mem_grow(items, n, cap)                                                                                        \
    do {                                                                                                               \
        if ((n) == (cap)) {                                                                                            \
            (cap) = (cap) ? (cap) * 2 : 8;                                                                             \
            (items) = mem_resize((items), (cap), sizeof(*(items)));                                                    \
        }                                                                                                              \
    } while (0)

#endif
