#include "allocator/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct str str_of(const char *s)
{
    return (struct str){s, s ? strlen(s) : 0};
}

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool str_is(struct str a, const char *b)
{
    return str_eq(a, str_of(b));
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

    return c ? c : (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}

void buf_release(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

static void reserve(struct buf *buf, size_t extra)
{
    size_t need = buf->len + extra + 1;

    if (need <= buf->cap)
        return;
    buf->cap = need < buf->cap * 2 ? buf->cap * 2 : need < 64 ? 64 : need;
    buf->data = mem_resize(buf->data, buf->cap, 1);
}

void buf_add(struct buf *buf, const char *bytes, size_t n)
{
    reserve(buf, n);
    if (n)
        memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
}

void buf_adds(struct buf *buf, const char *s)
{
    buf_add(buf, s, strlen(s));
}

void buf_addc(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_addf(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    INVARIANT(n >= 0);
    reserve(buf, (size_t)n);
    va_start(args, fmt);
    vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)n;
}

const char *buf_str(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

char *buf_take(struct buf *buf)
{
    char *text = buf->data ? buf->data : mem_strdup("");

    *buf = (struct buf){0};
    return text;
}
