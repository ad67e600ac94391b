/* allocator/base/str.h - borrowed text in flight, and text being built. */
#ifndef QUEUED_BASE_STR_H
#define QUEUED_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include "allocator/base/compiler.h"

/* Borrowed bytes, not NUL-terminated; ptr may be NULL when len is 0. */
struct str {
    const char *ptr;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
/* For printf: "%.*s", STR_FMT(s). Text longer than INT_MAX never gets this far (limits at the edge). */
#define STR_FMT(s) (int)(s).len, (s).ptr

struct str str_of(const char *s); /* NULL is the empty text */
bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *b);
/* Byte order, as strcmp of the two: negative, 0 or positive. */
int str_cmp(struct str a, struct str b);
bool str_starts(struct str s, const char *prefix);

/* Text being built on the heap. A zeroed struct is a valid empty buffer. Invariant: data is NUL-terminated when not
 * NULL, and data[len] is that NUL. */
struct buf {
    char *data;
    size_t len, cap;
};

void buf_release(struct buf *buf);
void buf_clear(struct buf *buf); /* keeps the memory */
void buf_add(struct buf *buf, const char *bytes, size_t n);
void buf_adds(struct buf *buf, const char *s);
void buf_addc(struct buf *buf, char c);
void buf_addf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *buf_str(const struct buf *buf); /* never NULL */
char *buf_take(struct buf *buf);            /* the text, to free(); the buffer is empty again */

#define BUF __attribute__((cleanup(buf_release))) struct buf

#endif
