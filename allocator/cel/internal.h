/* allocator/cel/internal.h - the body of a compiled expression. */
#ifndef QUEUED_CEL_INTERNAL_H
#define QUEUED_CEL_INTERNAL_H

#include "allocator/base/arena.h"
#include "allocator/cel/cel.h"
#include "allocator/cel/env.h"

struct cel_expr {
    struct arena arena; /* the tree, the program and the text */
    struct cel_options options;
    struct str text;
    struct ast *root; /* checked; for explanations */
    struct cel_program program;
    uint64_t estimate;
};

#endif
