#include "allocator/base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/invariant.h"

#include "allocator/base/banned.h"

void *mem_zalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    INVARIANT(p != NULL);
    return p;
}

void *mem_resize(void *old, size_t n, size_t size)
{
    size_t bytes;
    void *p;

    INVARIANT(checked_mul(n, size, &bytes));
    p = realloc(old, bytes ? bytes : 1);
    INVARIANT(p != NULL);
    return p;
}

char *mem_strdup(const char *s)
{
    return s ? mem_strndup(s, strlen(s)) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
    char *copy = mem_zalloc(n + 1, 1);

    if (n)
        memcpy(copy, s, n);
    return copy;
}
