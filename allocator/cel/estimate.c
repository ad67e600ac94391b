#include "allocator/cel/env.h"

#include "allocator/base/banned.h"

uint64_t cel_estimate(const struct cel_env *env, const struct ast *root, uint32_t n_ids, struct arena *arena)
{
    (void)env, (void)root, (void)n_ids, (void)arena;
    return 0;
}
