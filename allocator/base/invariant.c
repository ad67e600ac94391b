#include "allocator/base/invariant.h"

#include <stdio.h>
#include <stdlib.h>

void invariant_failed(const char *cond, const char *file, int line, const char *func)
{
    fprintf(stderr, "%s:%d: %s: invariant broken: %s\n", file, line, func, cond);
    abort();
}
