/* allocator/cel/cel.h - the Common Expression Language as Kubernetes evaluates device selectors.
 *
 * Compile an expression once, evaluate it against many devices. Everything follows what the released kube-scheduler
 * packages do, including their costs. A compiled expression is immutable: any number of threads may evaluate it at the
 * same time, each with its own scratch memory. Nothing here reads clocks, files or globals.
 *
 * Source: the CEL specification and its DRA environment in Kubernetes 1.34 to 1.37. */
#ifndef QUEUED_CEL_H
#define QUEUED_CEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/arena.h"
#include "allocator/base/quantity.h"
#include "allocator/base/str.h"

#define CEL_MAX_COST        1000000 /* of one evaluation, and of the estimate at admission */
#define CEL_MAX_TEXT        10240   /* bytes that an API server accepts */
#define CEL_DEFAULT_RELEASE 37      /* the minor version of Kubernetes 1.x */

/* ---- compile ---- */

struct cel_options {
    int release;          /* 34 .. 37: functions and typing of that Kubernetes minor version; 0 is the default */
    bool list_attributes; /* the gate DRAListTypeAttributes, which matters to 1.36 only */
    uint64_t max_cost;    /* run-time limit; 0 is CEL_MAX_COST */
};

/* Why an expression was refused: position and words, and a rendering with the source line and a caret. */
struct cel_problem {
    int line, column;  /* from 1; 0 when the problem has no place */
    char text[256];    /* "undeclared reference to 'x'" */
    char excerpt[512]; /* "ERROR: <input>:1:8: ...\n | source line\n | .......^" */
};

struct cel_expr;

/* Compile `text` for the environment of DRA as kube-scheduler does (stored expressions).
 * Returns 0 and an expression to cel_expr_free(), or -1 with `problem` filled (may be NULL). Any bytes are safe input.
 */
MUST_CHECK int cel_compile(struct str text, const struct cel_options *options, struct cel_expr **out,
                           struct cel_problem *problem);
void cel_expr_free(struct cel_expr *expr);
static inline void cel_expr_freep(struct cel_expr **expr)
{
    cel_expr_free(*expr);
}

/* The worst-case cost by which an API server refuses a new expression above CEL_MAX_COST; saturates at UINT64_MAX. */
uint64_t cel_estimated_cost(const struct cel_expr *expr);

/* The source text, as given. */
struct str cel_expr_text(const struct cel_expr *expr);

/* ---- devices ---- */

enum cel_attribute_kind {
    CEL_ATTR_NONE, /* an attribute without a supported value: every evaluation on the device fails */
    CEL_ATTR_INT,
    CEL_ATTR_BOOL,
    CEL_ATTR_STRING,
    CEL_ATTR_VERSION,
};

/* One attribute as a ResourceSlice has it. A scalar has is_list false and n_values 1. */
struct cel_attribute {
    struct str name; /* "model" or "gpu.example.com/model" */
    enum cel_attribute_kind kind;
    bool is_list;
    size_t n_values;
    union cel_attribute_value {
        int64_t i;
        bool b;
        struct str s; /* string and version */
    } const *values;
};

struct cel_capacity {
    struct str name;
    struct quantity value;
};

struct cel_device_spec {
    struct str driver;
    const struct cel_attribute *attributes;
    size_t n_attributes;
    const struct cel_capacity *capacities;
    size_t n_capacities;
    bool allow_multiple_allocations;
};

struct cel_device;

/* Prepare a device for evaluation; everything lives in `arena`, which must outlive it. Texts are borrowed from the
 * spec, whose arrays may go. A device with an unusable attribute is prepared too: each evaluation on it then gives
 * CEL_ERROR with the reason. Immutable afterwards; any thread. */
const struct cel_device *cel_device_prepare(const struct cel_device_spec *spec, const struct cel_options *options,
                                            struct arena *arena);

/* ---- evaluate ---- */

enum cel_outcome { CEL_FALSE, CEL_TRUE, CEL_ERROR };

struct cel_result {
    enum cel_outcome outcome;
    uint64_t cost;        /* spent, also by a failed evaluation */
    bool cost_is_certain; /* false where the real cost depends on the order of a map */
    const char *message;  /* for CEL_ERROR, in the scratch arena; else NULL */
};

/* Evaluate on one device. `scratch` is rewound to where it stood, but for the message of an error; in the steady state
 * nothing is taken from the heap. The deepest legal expression needs 1 MiB of stack. */
struct cel_result cel_evaluate(const struct cel_expr *expr, const struct cel_device *device, struct arena *scratch);

/* ---- explain ---- */

/* Why an expression does not hold on a device: which part was false, missing or failed; which attribute names come
 * close; the real type and value. One sentence per finding, for people. Allocated in `arena`; n_findings may be 0 when
 * the expression holds. */
struct cel_finding {
    struct str part;  /* of the expression's text */
    const char *text; /* "device.attributes["gpu.example.com"].model is "A100", not "H100"" */
};
struct cel_explanation {
    const struct cel_finding *findings;
    size_t n_findings;
};
struct cel_explanation cel_explain(const struct cel_expr *expr, const struct cel_device *device, struct arena *arena);

#endif
