/* Any bytes as an expression: the lexer and the parser. */
#include "test/fuzz/cel/fuzz.h"

#include "allocator/base/invariant.h"
#include "allocator/cel/ast.h"

/* Ids are unique and small, depths are those of the tree, positions lie in the text. */
static uint32_t check_tree(const struct ast *node, uint32_t n_ids, size_t len)
{
    struct ast *child;
    uint32_t depth = 0;

    INVARIANT(node->id > 0 && node->id < n_ids && node->pos <= len);
    for (size_t i = 0; (child = ast_child(node, i)); i++) {
        uint32_t below = check_tree(child, n_ids, len);

        depth = below > depth ? below : depth;
    }
    INVARIANT(depth < node->depth && node->depth <= CEL_MAX_DEPTH);
    return depth + 1;
}

static void parse(struct str text, bool quoted)
{
    struct cel_parse_options options = {.quoted_fields = quoted};
    struct cel_problem problem = {0};
    struct cel_diagnosis d = {.text = text, .problem = &problem};
    struct arena arena = {0};
    uint32_t n_ids = 0;
    struct ast *root = cel_parse(text, &options, &arena, &d, &n_ids);

    INVARIANT(!root == d.failed && (root || problem.text[0]));
    if (root)
        check_tree(root, n_ids, text.len);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF text = {0};

    parse((struct str){(const char *)data, size}, size & 1);
    fuzz_expand(data, size, &text);
    parse((struct str){text.data, text.len}, true);
    return 0;
}
