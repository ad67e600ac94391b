/* allocator/cel/spec.h - the language without DRA, for the conformance data of its specification. Tests only.
 *
 * No validators, no device, presence tests and errors as the language defines them; declarations, bindings and a
 * container come from the test. */
#ifndef QUEUED_CEL_SPEC_H
#define QUEUED_CEL_SPEC_H

#include "allocator/cel/env.h"

struct cel_spec {
    struct cel_env env; /* is_specification is set by cel_spec_check */
    struct ast *root;
    uint32_t n_ids;
    struct cel_program program;
};

/* Parse and check (unless env.is_unchecked). 0, or -1 with `problem`. Everything is in `arena`. */
int cel_spec_check(struct cel_spec *spec, struct str text, struct arena *arena, struct cel_problem *problem);
/* Evaluate with one value per declared variable. An error is a value. */
struct cel_value cel_spec_evaluate(struct cel_spec *spec, const struct cel_value *globals, struct arena *arena);

#endif
