/* test/fuzz/cel-libs/fuzz.h - what the targets share. */
#ifndef QUEUED_TEST_FUZZ_CEL_LIBS_H
#define QUEUED_TEST_FUZZ_CEL_LIBS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two texts from one input, cut at the first tab. */
static inline void fuzz_cut(const uint8_t *data, size_t size, struct str *first, struct str *second)
{
    const uint8_t *tab = size ? memchr(data, '\t', size) : NULL;
    size_t n = tab ? (size_t)(tab - data) : size;

    *first = (struct str){(const char *)data, n};
    *second = tab ? (struct str){(const char *)tab + 1, size - n - 1} : (struct str){0};
}

static inline struct str fuzz_str(const struct buf *buf)
{
    return (struct str){buf_str(buf), buf->len};
}

#endif
