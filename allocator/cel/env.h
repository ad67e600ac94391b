/* allocator/cel/env.h - what the checker, validators, planner and estimator of one compilation share. */
#ifndef QUEUED_CEL_ENV_H
#define QUEUED_CEL_ENV_H

#include "allocator/cel/ast.h"
#include "allocator/cel/eval.h"

/* A variable that is declared for the whole expression. */
struct cel_variable {
    struct str name;
    const struct cel_type *type;
};

struct cel_env {
    int release;                      /* 34 .. 37 */
    const struct cel_type *attribute; /* of an attribute's value: any, or dyn */
    struct cel_parse_options parse;
    const struct cel_variable *variables;
    size_t n_variables;
    bool is_specification;                /* the language alone: no validators, no device (tests only) */
    bool is_unchecked;                    /* evaluate as parsed (tests only) */
    struct str container;                 /* a name's prefix (tests only) */
    const struct cel_function *functions; /* declared besides the table (tests only) */
    size_t n_functions;
};

/* One field of the device, in the order of its entries. */
enum cel_device_field { DEVICE_DRIVER, DEVICE_ATTRIBUTES, DEVICE_CAPACITY, DEVICE_SHARED, DEVICE_FIELDS };
/* The number of a field by name, or -1. */
int cel_device_field_find(struct str name);
/* The static type of a field, or NULL. */
const struct cel_type *cel_device_field_type(const struct cel_env *env, struct arena *arena, int field);
extern const char *const cel_device_field_names[DEVICE_FIELDS];

/* The function of a name, those of the environment first. */
const struct cel_function *cel_env_function(const struct cel_env *env, struct str name);
/* Candidate number i of a name within the container, the longest first; false behind the last. `*out` may be in the
 * arena. */
bool cel_env_candidate(const struct cel_env *env, struct arena *arena, struct str name, size_t i, struct str *out);
/* The number of a declared variable, or SIZE_MAX. */
size_t cel_env_variable(const struct cel_env *env, struct str name);
/* The dotted name of a select over a name (a.b.c), or false. *out_is_root: it has a leading dot. */
bool cel_qualified_name(const struct ast *node, struct arena *arena, struct str *out, struct str *out_first,
                        bool *out_is_root);

/* Check: annotate the tree with types, candidates and resolved names. 0, or -1 with the diagnosis. */
int cel_check(const struct cel_env *env, struct ast *root, struct arena *arena, struct cel_diagnosis *d);
/* The validators of DRA, after the check. */
int cel_validate(const struct cel_env *env, struct ast *root, struct arena *arena, struct cel_diagnosis *d);

/* A program, in an arena of its own. */
struct cel_program {
    struct cel_node *root;
    size_t n_slots, n_ids;
    struct regex **regexes; /* to free */
    size_t n_regexes;
};
/* Plan: fold constants, resolve variables, compile constant patterns. 0, or -1 with the diagnosis. Regexes that were
 * compiled until then are in the program either way. */
int cel_plan(const struct cel_env *env, const struct ast *root, uint32_t n_ids, struct arena *arena,
             struct cel_program *out, struct cel_diagnosis *d);

/* The worst-case cost of a checked tree; `n_ids` as the parser gave it. */
uint64_t cel_estimate(const struct cel_env *env, const struct ast *root, uint32_t n_ids, struct arena *arena);

/* A protobuf message literal of a well-known type (message.c). */
struct cel_value cel_build_message(struct cel_eval *e, const struct cel_node *node);
/* The type of a field of a well-known message, or NULL. */
const struct cel_type *cel_message_field(struct str message, struct str field);
bool cel_message_exists(struct str message);

#endif
