/* allocator/cel/type.h - static types of CEL: what the checker knows before an evaluation.
 *
 * A type is an immutable tree; equal types need not be the same pointer. The built-in ones are constants, all others
 * live in the arena of one compilation. Type parameters are numbers: those of a function's declaration count from 0,
 * the checker's fresh ones get CEL_FRESH added. */
#ifndef QUEUED_CEL_TYPE_H
#define QUEUED_CEL_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/str.h"

struct arena;

enum cel_type_kind {
    CEL_T_DYN,
    CEL_T_ANY, /* unifies like dyn, but is no comprehension range */
    CEL_T_ERROR,
    CEL_T_NULL,
    CEL_T_BOOL,
    CEL_T_INT,
    CEL_T_UINT,
    CEL_T_DOUBLE,
    CEL_T_STRING,
    CEL_T_BYTES,
    CEL_T_TIMESTAMP,
    CEL_T_DURATION,
    CEL_T_LIST,
    CEL_T_MAP,
    CEL_T_OPAQUE, /* by name, with parameters: optional_type, net.IP, net.CIDR */
    CEL_T_STRUCT, /* by name, without: kubernetes.Quantity, kubernetes.DRADevice */
    CEL_T_TYPE,   /* the type of a type */
    CEL_T_PARAM,
};

#define CEL_FRESH           1000    /* the number of the checker's first fresh type parameter */
#define CEL_MAX_TYPE_WEIGHT 100000u /* nodes of one type as a tree; larger ones are refused */

struct cel_type {
    enum cel_type_kind kind;
    bool nullable; /* a protobuf wrapper: null is assignable too */
    uint16_t n_params;
    uint32_t var;    /* of CEL_T_PARAM */
    uint32_t weight; /* nodes of the tree, saturating; 0 counts as 1 */
    const char *name;
    const struct cel_type *const *params;
};

/* The built-in types. */
extern const struct cel_type cel_t_dyn, cel_t_any, cel_t_error, cel_t_null, cel_t_bool, cel_t_int, cel_t_uint,
    cel_t_double, cel_t_string, cel_t_bytes, cel_t_timestamp, cel_t_duration, cel_t_type, cel_t_quantity, cel_t_semver,
    cel_t_url, cel_t_format, cel_t_ip, cel_t_cidr, cel_t_device, cel_t_authorizer, cel_t_path_check, cel_t_group_check,
    cel_t_resource_check, cel_t_decision;
/* Parameters of declarations and what is built of them. */
extern const struct cel_type cel_t_a, cel_t_b, cel_t_list_a, cel_t_list_dyn, cel_t_list_list_a, cel_t_map_ab,
    cel_t_type_a, cel_t_optional_a, cel_t_optional_dyn, cel_t_optional_list_a, cel_t_optional_map_ab,
    cel_t_list_optional_a, cel_t_list_int, cel_t_list_uint, cel_t_list_double, cel_t_list_bool, cel_t_list_duration,
    cel_t_list_timestamp, cel_t_list_string, cel_t_list_bytes, cel_t_map_dyn, cel_t_map_string_list,
    cel_t_map_string_dyn, cel_t_optional_list_string, cel_t_optional_format, cel_t_optional_b;

const struct cel_type *cel_type_list(struct arena *arena, const struct cel_type *element);
const struct cel_type *cel_type_map(struct arena *arena, const struct cel_type *key, const struct cel_type *value);
const struct cel_type *cel_type_optional(struct arena *arena, const struct cel_type *content);
const struct cel_type *cel_type_param(struct arena *arena, uint32_t var);
const struct cel_type *cel_type_of(struct arena *arena, const struct cel_type *type); /* type(T) */
/* Like `shape`, with other parameters (kept). */
const struct cel_type *cel_type_with(struct arena *arena, const struct cel_type *shape,
                                     const struct cel_type *const *params, size_t n_params);

static inline bool cel_type_is_dyn(const struct cel_type *type)
{
    return type->kind == CEL_T_DYN || type->kind == CEL_T_ANY;
}
static inline bool cel_type_is_dyn_or_error(const struct cel_type *type)
{
    return cel_type_is_dyn(type) || type->kind == CEL_T_ERROR;
}
bool cel_type_is_optional(const struct cel_type *type);

/* Equal in every part. With `params_alike`, any two type parameters count as equal. */
bool cel_type_equal(const struct cel_type *a, const struct cel_type *b, bool params_alike);
/* Whether a value of type `from` may stand where `to` is wanted; no type parameters are bound. */
bool cel_type_assignable(const struct cel_type *to, const struct cel_type *from);
/* The erased name: "list", "google.protobuf.Timestamp", "optional_type". Never NULL. */
const char *cel_type_name(const struct cel_type *type);
/* As messages show it: "list(int)", "timestamp", "any"; appended to `out`, cut at a few hundred bytes. */
void cel_type_format(const struct cel_type *type, struct buf *out);
/* The type of a name that an expression can write ("int", "google.protobuf.Duration", "net.IP"), or NULL. */
const struct cel_type *cel_type_named(struct str name);

#endif
