/* Any bytes as an expression, evaluated on a device: the same twice, within the limit, and explained. */
#include "test/fuzz/cel/fuzz.h"

#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/invariant.h"

#define LIMIT 20000 /* of cost: slow inputs find little */

static void check_result(const struct cel_expr *expr, const struct cel_device *device)
{
    struct arena scratch = {0}, words = {0};
    struct cel_result first = cel_evaluate(expr, device, &scratch), second;
    struct cel_explanation why;

    INVARIANT((first.outcome == CEL_ERROR) == (first.message != NULL));
    INVARIANT(first.outcome == CEL_ERROR || first.cost <= LIMIT);
    second = cel_evaluate(expr, device, &scratch);
    INVARIANT(first.outcome == second.outcome && first.cost == second.cost);
    INVARIANT(!first.message || strcmp(first.message, second.message) == 0);
    why = cel_explain(expr, device, &words);
    INVARIANT(first.outcome != CEL_TRUE || why.n_findings == 0);
    arena_release(&words);
    arena_release(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cel_options options = {.max_cost = LIMIT};
    struct cel_expr *expr = NULL;
    struct arena arena = {0};
    BUF text = {0};

    fuzz_expand(data, size, &text);
    if (cel_compile((struct str){text.data, text.len}, &options, &expr, NULL) < 0)
        return 0;
    check_result(expr, fuzz_device(&arena));
    cel_expr_free(expr);
    arena_release(&arena);
    return 0;
}
