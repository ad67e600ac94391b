/* allocator/cel/functions.h - the table of functions: what the checker may call and how it is evaluated.
 *
 * A function has overloads: call style, parameter types, result type, and either an implementation of its own, guarded
 * by the run-time types of its parameters, or one implementation for all, guarded by a trait of the first operand
 * (`singleton`). Cost rules hang on functions (`cost`) or on single overloads (`id`); see cost.c and estimate.c.
 * To add a function: one row in functions.c and its implementation in the lib_*.c of its library. */
#ifndef QUEUED_CEL_FUNCTIONS_H
#define QUEUED_CEL_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/cel/type.h"
#include "allocator/cel/value.h"

typedef struct cel_value cel_fn(struct cel_eval *e, const struct cel_value *args, size_t n_args);

/* Overloads that a rule of cost, folding or planning knows by name; all others are OVL_NONE. */
enum cel_overload_id {
    OVL_NONE,
    OVL_ADD_BYTES,
    OVL_ADD_LIST,
    OVL_ADD_STRING,
    OVL_BYTES_TO_STRING,
    OVL_CIDR_CONTAINS_CIDR_STRING,
    OVL_CIDR_CONTAINS_IP_STRING,
    OVL_CIDR_IP,
    OVL_CONDITIONAL,
    OVL_CONTAINS_STRING,
    OVL_ENDS_WITH,
    OVL_EQUALS,
    OVL_FORMAT,
    OVL_INDEX_LIST,
    OVL_INDEX_MAP,
    OVL_IN_LIST,
    OVL_LIST_DISTINCT,
    OVL_LIST_FLATTEN,
    OVL_LIST_FLATTEN_INT,
    OVL_LIST_RANGE,
    OVL_LIST_REVERSE,
    OVL_LIST_SLICE,
    OVL_LIST_SORT,
    OVL_LIST_SORT_TEXTS, /* strings and bytes */
    OVL_LIST_SORT_BY,
    OVL_LIST_SORT_BY_TEXTS,
    OVL_LOGICAL_AND,
    OVL_LOGICAL_OR,
    OVL_MATCHES,
    OVL_MATCHES_STRING,
    OVL_NOT_EQUALS,
    OVL_ORDER_TEXTS, /* < <= > >= of strings or bytes */
    OVL_QUOTE,
    OVL_SETS_CONTAINS,
    OVL_SETS_EQUIVALENT,
    OVL_SETS_INTERSECTS,
    OVL_STARTS_WITH,
    OVL_STRING_TO_BYTES,
};

/* Functions that have a rule by name. */
enum cel_function_id {
    FN_OTHER,
    FN_AND,
    FN_OR,
    FN_CONDITIONAL,
    FN_EQUALS,
    FN_NOT_EQUALS,
    FN_INDEX,
    FN_OPT_INDEX,
    FN_OPT_SELECT,
    FN_OR_OPTIONAL,
    FN_OR_VALUE,
    FN_DYN,
    FN_CONVERT, /* folded when its argument is constant; dyn too */
    FN_MATCHES,
    FN_FIND,
    FN_FORMAT,
    FN_DURATION,
    FN_TIMESTAMP,
    FN_TRAVERSE,    /* isSorted sum max min indexOf lastIndexOf includes */
    FN_INCLUDES,    /* the same, for the estimate */
    FN_SCAN,        /* cost of the receiver or argument: url */
    FN_SCAN_TARGET, /* lowerAscii upperAscii substring trim */
    FN_REPLACE,
    FN_SPLIT,
    FN_JOIN,
    FN_PARSE, /* cidr isIP isCIDR quantity isQuantity semver isSemver */
    FN_IP,
    FN_CANONICAL,
    FN_ONE, /* accessors */
    FN_CONTAINS_IP,
    FN_CONTAINS_CIDR,
    FN_VALIDATE,
    FN_AUTHORIZE, /* check */
    FN_SELECTOR,  /* fieldSelector labelSelector */
};

enum cel_binding {
    CEL_BIND_NONE,
    CEL_BIND_UNARY,   /* evaluates its operand even when it is an error, for the cost */
    CEL_BIND_BINARY,  /* both operands likewise */
    CEL_BIND_VARIADIC /* stops at the first operand that is an error */
};

/* What a value can do, as the real implementation's traits; used as guards of singletons. */
enum cel_trait {
    CEL_CAN_ADD = 1,
    CEL_CAN_SUBTRACT = 2,
    CEL_CAN_MULTIPLY = 4,
    CEL_CAN_DIVIDE = 8,
    CEL_CAN_MODULO = 16,
    CEL_CAN_NEGATE = 32,
    CEL_CAN_COMPARE = 64,
    CEL_CAN_SIZE = 128,
    CEL_CAN_MATCH = 256,
    CEL_CAN_LIST = 512,
};

#define CEL_MAX_PARAMS 4

struct cel_overload {
    enum cel_overload_id id;
    bool is_member;
    uint8_t n_params;
    const struct cel_type *result;
    const struct cel_type *params[CEL_MAX_PARAMS]; /* the receiver first */
    enum cel_binding binding;
    cel_fn *eval;     /* NULL with a singleton */
    uint8_t releases; /* bit 0 is 1.34, bit 3 is 1.37; 0 is all */
};

struct cel_function {
    const char *name;
    enum cel_function_id id;
    const struct cel_overload *overloads;
    size_t n_overloads;
    enum cel_binding binding; /* of the singleton */
    cel_fn *singleton;
    unsigned traits;         /* that the singleton's first operand must have */
    bool is_unguarded;       /* the overloads check their operands themselves */
    bool is_non_strict;      /* takes errors as operands */
    uint8_t releases;        /* as above */
    const char *format_name; /* makes the named format */
};

/* The function of a name in a release (34 .. 37), or NULL. */
const struct cel_function *cel_function_find(struct str name, int release);
/* All functions, sorted by name; for tests and documentation. */
const struct cel_function *cel_function_all(size_t *out_n);
bool cel_overload_in_release(const struct cel_overload *overload, int release);

/* Whether a run-time value fits a parameter: containers are judged by their first element. */
bool cel_value_fits(const struct cel_type *param, struct cel_value v);
/* The traits of a value. */
unsigned cel_value_traits(struct cel_value v);
/* Choose by the run-time types and call: what happens when the checker left several candidates. */
struct cel_value cel_dispatch(struct cel_eval *e, const struct cel_function *function, const struct cel_value *args,
                              size_t n_args);
/* Call one overload behind its guard. */
struct cel_value cel_call_overload(struct cel_eval *e, const struct cel_function *function,
                                   const struct cel_overload *overload, const struct cel_value *args, size_t n_args);

#endif
