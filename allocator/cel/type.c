#include "allocator/cel/type.h"

#include <string.h>

#include "allocator/base/arena.h"

#include "allocator/base/banned.h"

#define SIMPLE(id, k, text) const struct cel_type cel_t_##id = {.kind = (k), .name = (text)}

SIMPLE(dyn, CEL_T_DYN, "dyn");
SIMPLE(any, CEL_T_ANY, "google.protobuf.Any");
SIMPLE(error, CEL_T_ERROR, "error");
SIMPLE(null, CEL_T_NULL, "null_type");
SIMPLE(bool, CEL_T_BOOL, "bool");
SIMPLE(int, CEL_T_INT, "int");
SIMPLE(uint, CEL_T_UINT, "uint");
SIMPLE(double, CEL_T_DOUBLE, "double");
SIMPLE(string, CEL_T_STRING, "string");
SIMPLE(bytes, CEL_T_BYTES, "bytes");
SIMPLE(timestamp, CEL_T_TIMESTAMP, "google.protobuf.Timestamp");
SIMPLE(duration, CEL_T_DURATION, "google.protobuf.Duration");
SIMPLE(type, CEL_T_TYPE, "type");
SIMPLE(quantity, CEL_T_STRUCT, "kubernetes.Quantity");
SIMPLE(semver, CEL_T_STRUCT, "kubernetes.Semver");
SIMPLE(url, CEL_T_STRUCT, "kubernetes.URL");
SIMPLE(format, CEL_T_STRUCT, "kubernetes.NamedFormat");
SIMPLE(device, CEL_T_STRUCT, "kubernetes.DRADevice");
SIMPLE(authorizer, CEL_T_STRUCT, "kubernetes.authorization.Authorizer");
SIMPLE(path_check, CEL_T_STRUCT, "kubernetes.authorization.PathCheck");
SIMPLE(group_check, CEL_T_STRUCT, "kubernetes.authorization.GroupCheck");
SIMPLE(resource_check, CEL_T_STRUCT, "kubernetes.authorization.ResourceCheck");
SIMPLE(decision, CEL_T_STRUCT, "kubernetes.authorization.Decision");
SIMPLE(ip, CEL_T_OPAQUE, "net.IP");
SIMPLE(cidr, CEL_T_OPAQUE, "net.CIDR");
const struct cel_type cel_t_a = {.kind = CEL_T_PARAM, .var = 0, .name = "A"};
const struct cel_type cel_t_b = {.kind = CEL_T_PARAM, .var = 1, .name = "B"};

#define COMPOSED(id, k, text, count, ...)                                                                              \
    static const struct cel_type *const id##_params[] = {__VA_ARGS__};                                                 \
    const struct cel_type cel_t_##id = {                                                                               \
        .kind = (k), .name = (text), .n_params = (count), .weight = (count)*3 + 1, .params = id##_params}
#define LIST(id, element)     COMPOSED(id, CEL_T_LIST, "list", 1, &(element))
#define MAP(id, key, value)   COMPOSED(id, CEL_T_MAP, "map", 2, &(key), &(value))
#define OPTIONAL(id, content) COMPOSED(id, CEL_T_OPAQUE, "optional_type", 1, &(content))

LIST(list_a, cel_t_a);
LIST(list_dyn, cel_t_dyn);
LIST(list_list_a, cel_t_list_a);
LIST(list_int, cel_t_int);
LIST(list_uint, cel_t_uint);
LIST(list_double, cel_t_double);
LIST(list_bool, cel_t_bool);
LIST(list_duration, cel_t_duration);
LIST(list_timestamp, cel_t_timestamp);
LIST(list_string, cel_t_string);
LIST(list_bytes, cel_t_bytes);
MAP(map_ab, cel_t_a, cel_t_b);
MAP(map_dyn, cel_t_dyn, cel_t_dyn);
MAP(map_string_list, cel_t_string, cel_t_list_string);
MAP(map_string_dyn, cel_t_string, cel_t_dyn);
OPTIONAL(optional_a, cel_t_a);
OPTIONAL(optional_b, cel_t_b);
OPTIONAL(optional_dyn, cel_t_dyn);
OPTIONAL(optional_list_a, cel_t_list_a);
OPTIONAL(optional_map_ab, cel_t_map_ab);
OPTIONAL(optional_list_string, cel_t_list_string);
OPTIONAL(optional_format, cel_t_format);
LIST(list_optional_a, cel_t_optional_a);
COMPOSED(type_a, CEL_T_TYPE, "type", 1, &cel_t_a);

static uint32_t weight_of(const struct cel_type *type)
{
    return type->weight ? type->weight : 1;
}

const struct cel_type *cel_type_with(struct arena *arena, const struct cel_type *shape,
                                     const struct cel_type *const *params, size_t n_params)
{
    struct cel_type *type = arena_new(arena, struct cel_type);
    uint64_t weight = 1;

    *type = *shape;
    type->params = params;
    type->n_params = (uint16_t)n_params;
    for (size_t i = 0; i < n_params; i++)
        weight += weight_of(params[i]);
    type->weight = weight > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)weight;
    return type;
}

static const struct cel_type *with_one(struct arena *arena, const struct cel_type *shape, const struct cel_type *param)
{
    const struct cel_type **params = arena_array(arena, const struct cel_type *, 1);

    params[0] = param;
    return cel_type_with(arena, shape, params, 1);
}

const struct cel_type *cel_type_list(struct arena *arena, const struct cel_type *element)
{
    return with_one(arena, &cel_t_list_a, element);
}

const struct cel_type *cel_type_optional(struct arena *arena, const struct cel_type *content)
{
    return with_one(arena, &cel_t_optional_a, content);
}

const struct cel_type *cel_type_of(struct arena *arena, const struct cel_type *type)
{
    return with_one(arena, &cel_t_type_a, type);
}

const struct cel_type *cel_type_map(struct arena *arena, const struct cel_type *key, const struct cel_type *value)
{
    const struct cel_type **params = arena_array(arena, const struct cel_type *, 2);

    params[0] = key;
    params[1] = value;
    return cel_type_with(arena, &cel_t_map_ab, params, 2);
}

const struct cel_type *cel_type_param(struct arena *arena, uint32_t var)
{
    struct cel_type *type = arena_new(arena, struct cel_type);

    type->kind = CEL_T_PARAM;
    type->var = var;
    type->name = "";
    return type;
}

bool cel_type_is_optional(const struct cel_type *type)
{
    return type->kind == CEL_T_OPAQUE && type->n_params == 1 && strcmp(type->name, "optional_type") == 0;
}

bool cel_type_equal(const struct cel_type *a, const struct cel_type *b, bool params_alike)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || a->n_params != b->n_params)
        return false;
    if (a->kind == CEL_T_PARAM)
        return params_alike || a->var == b->var;
    if (strcmp(a->name, b->name) != 0)
        return false;
    for (size_t i = 0; i < a->n_params; i++)
        if (!cel_type_equal(a->params[i], b->params[i], params_alike))
            return false;
    return true;
}

bool cel_type_assignable(const struct cel_type *to, const struct cel_type *from)
{
    if (to == from || cel_type_is_dyn(to) || to->kind == CEL_T_PARAM)
        return true;
    if (to->nullable && from->kind == CEL_T_NULL)
        return true;
    if (to->kind != from->kind || strcmp(to->name, from->name) != 0 || to->n_params != from->n_params)
        return false;
    for (size_t i = 0; i < to->n_params; i++)
        if (!cel_type_assignable(to->params[i], from->params[i]))
            return false;
    return true;
}

const char *cel_type_name(const struct cel_type *type)
{
    return type->name ? type->name : "";
}

static const char *plain_name(const struct cel_type *type)
{
    switch (type->kind) {
    case CEL_T_ANY:
        return "any";
    case CEL_T_ERROR:
        return "!error!";
    case CEL_T_NULL:
        return "null";
    case CEL_T_TIMESTAMP:
        return "timestamp";
    case CEL_T_DURATION:
        return "duration";
    case CEL_T_DYN:
    case CEL_T_BOOL:
    case CEL_T_INT:
    case CEL_T_UINT:
    case CEL_T_DOUBLE:
    case CEL_T_STRING:
    case CEL_T_BYTES:
    case CEL_T_LIST:
    case CEL_T_MAP:
    case CEL_T_OPAQUE:
    case CEL_T_STRUCT:
    case CEL_T_TYPE:
    case CEL_T_PARAM:
        break;
    }
    return cel_type_name(type);
}

#define FORMAT_MAX 400

void cel_type_format(const struct cel_type *type, struct buf *out)
{
    if (out->len > FORMAT_MAX)
        return;
    if (type->kind == CEL_T_PARAM) {
        if (type->var >= CEL_FRESH)
            buf_addf(out, "_var%u", type->var - CEL_FRESH);
        else
            buf_addf(out, "%c", (char)('A' + (char)(type->var % 26)));
        return;
    }
    if (type->nullable)
        buf_addf(out, "wrapper(%s)", plain_name(type));
    else
        buf_adds(out, plain_name(type));
    for (size_t i = 0; i < type->n_params; i++) {
        buf_adds(out, i ? ", " : "(");
        cel_type_format(type->params[i], out);
    }
    if (type->n_params)
        buf_addc(out, ')');
}

#define WRAPPER(id, k, text) static const struct cel_type wrapper_##id = {.kind = (k), .nullable = true, .name = (text)}
WRAPPER(bool, CEL_T_BOOL, "bool");
WRAPPER(int, CEL_T_INT, "int");
WRAPPER(uint, CEL_T_UINT, "uint");
WRAPPER(double, CEL_T_DOUBLE, "double");
WRAPPER(string, CEL_T_STRING, "string");
WRAPPER(bytes, CEL_T_BYTES, "bytes");

const struct cel_type *cel_type_named(struct str name)
{
    static const struct {
        const char *name;
        const struct cel_type *type;
    } names[] = {
        {"bool", &cel_t_bool},
        {"bytes", &cel_t_bytes},
        {"double", &cel_t_double},
        {"int", &cel_t_int},
        {"list", &cel_t_list_dyn},
        {"map", &cel_t_map_dyn},
        {"null_type", &cel_t_null},
        {"string", &cel_t_string},
        {"type", &cel_t_type},
        {"uint", &cel_t_uint},
        {"optional_type", &cel_t_optional_a},
        {"net.IP", &cel_t_ip},
        {"net.CIDR", &cel_t_cidr},
        {"google.protobuf.Any", &cel_t_any},
        {"google.protobuf.Duration", &cel_t_duration},
        {"google.protobuf.Timestamp", &cel_t_timestamp},
        {"google.protobuf.BoolValue", &wrapper_bool},
        {"google.protobuf.BytesValue", &wrapper_bytes},
        {"google.protobuf.DoubleValue", &wrapper_double},
        {"google.protobuf.FloatValue", &wrapper_double},
        {"google.protobuf.Int32Value", &wrapper_int},
        {"google.protobuf.Int64Value", &wrapper_int},
        {"google.protobuf.UInt32Value", &wrapper_uint},
        {"google.protobuf.UInt64Value", &wrapper_uint},
        {"google.protobuf.StringValue", &wrapper_string},
        {"google.protobuf.ListValue", &cel_t_list_dyn},
        {"google.protobuf.NullValue", &cel_t_null},
        {"google.protobuf.Struct", &cel_t_map_string_dyn},
        {"google.protobuf.Value", &cel_t_dyn},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_is(name, names[i].name))
            return names[i].type;
    return NULL;
}
