/* allocator/cel/macro.h - making nodes, and the macros that expand while parsing. */
#ifndef QUEUED_CEL_MACRO_H
#define QUEUED_CEL_MACRO_H

#include "allocator/cel/ast.h"

struct cel_builder {
    struct arena *arena;
    struct cel_diagnosis *diagnosis;
    uint32_t n_nodes; /* made so far; the last id */
};

/* All of these return NULL after a diagnosis, and when a node given to them is NULL. `counts`: the node is one of those
 * whose nesting the real parser limits. */
struct ast *cel_new_node(struct cel_builder *b, enum ast_kind kind, uint32_t pos);
struct ast *cel_new_literal(struct cel_builder *b, uint32_t pos, struct cel_value v);
struct ast *cel_new_ident(struct cel_builder *b, uint32_t pos, struct str name);
struct ast *cel_new_select(struct cel_builder *b, uint32_t pos, struct ast *operand, struct str field, bool test_only);
struct ast *cel_new_call(struct cel_builder *b, uint32_t pos, struct str name, struct ast *target, struct ast **args,
                         size_t n_args, bool counts);
struct ast *cel_new_call1(struct cel_builder *b, uint32_t pos, const char *name, struct ast *a);
struct ast *cel_new_call2(struct cel_builder *b, uint32_t pos, const char *name, struct ast *a, struct ast *c,
                          bool counts);
struct ast *cel_new_call3(struct cel_builder *b, uint32_t pos, const char *name, struct ast *a, struct ast *c,
                          struct ast *d);
/* Note that `child` (may be NULL) hangs below `node`. */
void cel_adopt(struct ast *node, const struct ast *child, bool counts);

/* A call, or what the macro of that name, style and number of arguments makes of it. */
struct ast *cel_new_call_or_macro(struct cel_builder *b, uint32_t pos, struct str name, struct ast *target,
                                  struct ast **args, size_t n_args);

#endif
