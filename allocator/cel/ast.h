/* allocator/cel/ast.h - the tree that the parser makes, the checker annotates and the planner reads.
 *
 * Macros are expanded while parsing; what remains of a loop is one AST_FOLD node. Nodes live in the arena of the
 * compilation. The checker rewrites names (`a.b` that is one variable becomes an AST_IDENT). */
#ifndef QUEUED_CEL_AST_H
#define QUEUED_CEL_AST_H

#include "allocator/base/arena.h"
#include "allocator/base/str.h"
#include "allocator/cel/cel.h"
#include "allocator/cel/functions.h"
#include "allocator/cel/value.h"

enum ast_kind { AST_LITERAL, AST_IDENT, AST_SELECT, AST_CALL, AST_LIST, AST_MAP, AST_MESSAGE, AST_FOLD };

/* One element of a list, entry of a map or field of a message. */
struct ast_item {
    struct ast *key;  /* of a map entry */
    struct str field; /* of a message */
    struct ast *value;
    bool is_optional;
};

struct ast {
    enum ast_kind kind;
    uint32_t id;        /* from 1, unique within the tree */
    uint32_t pos;       /* byte offset in the text */
    uint32_t visit;     /* depth that the real parser's limit counts */
    uint32_t depth;     /* of the tree below */
    bool is_named_type; /* AST_IDENT: names a type, its value is `literal` */
    bool is_root_name;  /* AST_IDENT: written with a leading dot, skips local variables */
    bool is_shadowed;   /* AST_IDENT: skips a local variable of that name, which costs differently */
    const struct cel_type *type;
    union {
        struct cel_value literal; /* also of AST_IDENT that names a type */
        struct {
            struct ast *operand;
            struct str field;
            bool test_only; /* has(operand.field) */
        } select;
        struct {
            struct ast *target; /* of a receiver call, else NULL */
            struct ast **args;
            size_t n_args;
            const struct cel_function *function;         /* set by the checker */
            const struct cel_overload *const *overloads; /* candidates, in order of declaration */
            size_t n_overloads;
        } call;
        struct {
            struct ast_item *items;
            size_t n;
        } list; /* AST_LIST, AST_MAP, AST_MESSAGE */
        struct {
            struct str iter, iter2, accu; /* iter2 is empty for one variable */
            struct ast *range, *init, *condition, *step, *result;
        } fold;
    } as;
    struct str name; /* AST_IDENT, function of AST_CALL, type of AST_MESSAGE */
};

/* Names that no source text can spell. */
#define CEL_ACCU   "@result"
#define CEL_UNUSED "#unused"

/* Where the first problem of a compilation is noted. */
struct cel_diagnosis {
    struct str text;
    struct cel_problem *problem; /* may be NULL */
    bool failed;
    size_t pos; /* of the problem */
};
/* Note a problem at a byte offset (SIZE_MAX: none). The one that stands first in the text stays, and of two at one
 * place the first one. Always returns -1. */
int cel_diagnose(struct cel_diagnosis *d, size_t pos, const char *fmt, ...) PRINTF_LIKE(3, 4);

#define CEL_MAX_POINTS  100000 /* code points of a text */
#define CEL_MAX_NODES   200000 /* of a tree, after the macros */
#define CEL_MAX_DEPTH   4000   /* of a tree */
#define CEL_MAX_NESTING 250    /* as the real parser counts it */

struct cel_parse_options {
    bool quoted_fields; /* a.`b-c` */
};

/* Parse `text` and expand macros. Returns the tree in `arena`, or NULL with the diagnosis. */
struct ast *cel_parse(struct str text, const struct cel_parse_options *options, struct arena *arena,
                      struct cel_diagnosis *d, uint32_t *out_n_ids);

/* The children of a node, one after the other, for walks: child number i or NULL behind the last. */
struct ast *ast_child(const struct ast *node, size_t i);

#endif
