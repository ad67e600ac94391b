/* Any bytes as an expression: the checker, the validators, the planner and the estimate, for every release. */
#include "test/fuzz/cel/fuzz.h"

#include "allocator/base/invariant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cel_options options = {.release = 34 + (size ? data[0] % 4 : 0), .list_attributes = size > 1 && data[1] % 2};
    struct cel_problem problem = {0};
    struct cel_expr *expr = NULL;
    BUF text = {0};

    fuzz_expand(data, size, &text);
    if (cel_compile((struct str){text.data, text.len}, &options, &expr, &problem) < 0) {
        INVARIANT(problem.text[0] && problem.excerpt[0] && !expr);
        INVARIANT((problem.line == 0) == (problem.column == 0));
        return 0;
    }
    INVARIANT(str_eq(cel_expr_text(expr), (struct str){text.data, text.len}));
    cel_expr_free(expr);
    return 0;
}
