/* Literals of the protobuf messages that are values of the language: durations, timestamps, wrappers, structs, lists.
 * Nobody writes them in selectors; they cost 40. Other messages (Any, Empty, Value) are unknown types here. */
#include "allocator/cel/env.h"

#include "allocator/cel/timefmt.h"

#include "allocator/base/banned.h"

#define CEL_DEVICE_NAME "kubernetes.DRADevice" /* passes the checker, but nothing can make one */

static const struct message_field {
    const char *message, *field;
    const struct cel_type *type;
} message_fields[] = {
    {"google.protobuf.Duration", "seconds", &cel_t_int},
    {"google.protobuf.Duration", "nanos", &cel_t_int},
    {"google.protobuf.Timestamp", "seconds", &cel_t_int},
    {"google.protobuf.Timestamp", "nanos", &cel_t_int},
    {"google.protobuf.BoolValue", "value", &cel_t_bool},
    {"google.protobuf.BytesValue", "value", &cel_t_bytes},
    {"google.protobuf.DoubleValue", "value", &cel_t_double},
    {"google.protobuf.FloatValue", "value", &cel_t_double},
    {"google.protobuf.Int32Value", "value", &cel_t_int},
    {"google.protobuf.Int64Value", "value", &cel_t_int},
    {"google.protobuf.UInt32Value", "value", &cel_t_uint},
    {"google.protobuf.UInt64Value", "value", &cel_t_uint},
    {"google.protobuf.StringValue", "value", &cel_t_string},
    {"google.protobuf.ListValue", "values", &cel_t_list_dyn},
    {"google.protobuf.Struct", "fields", &cel_t_map_string_dyn},
    {CEL_DEVICE_NAME, "driver", &cel_t_string},
    {CEL_DEVICE_NAME, "allowMultipleAllocations", &cel_t_bool},
    {CEL_DEVICE_NAME, "attributes", &cel_t_map_dyn},
    {CEL_DEVICE_NAME, "capacity", &cel_t_map_dyn},
};

bool cel_message_exists(struct str message)
{
    for (size_t i = 0; i < ARRAY_SIZE(message_fields); i++)
        if (str_is(message, message_fields[i].message))
            return true;
    return false;
}

const struct cel_type *cel_message_field(struct str message, struct str field)
{
    for (size_t i = 0; i < ARRAY_SIZE(message_fields); i++)
        if (str_is(message, message_fields[i].message) && str_is(field, message_fields[i].field))
            return message_fields[i].type;
    return NULL;
}

/* What a message without fields is. */
static struct cel_value empty_message(const struct cel_type *type)
{
    static const struct cel_map no_entries;

    switch (type->kind) {
    case CEL_T_BOOL:
        return cel_bool(false);
    case CEL_T_INT:
        return cel_int(0);
    case CEL_T_UINT:
        return cel_uint(0);
    case CEL_T_DOUBLE:
        return cel_double(0);
    case CEL_T_STRING:
        return cel_text(STR(""));
    case CEL_T_BYTES:
        return cel_octets(STR(""));
    case CEL_T_LIST:
        return cel_list(NULL, 0);
    case CEL_T_MAP:
        return cel_map(&no_entries);
    default:
        return CEL_NULL;
    }
}

static struct cel_value time_message(struct cel_eval *e, const struct cel_type *type, int64_t seconds, int64_t nanos)
{
    int64_t total;

    if (nanos < INT32_MIN || nanos > INT32_MAX)
        return cel_error("integer overflow");
    if (type->kind == CEL_T_DURATION) {
        if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &total) ||
            __builtin_add_overflow(total, nanos, &total))
            return cel_error("integer overflow");
        return cel_duration(total);
    }
    if (seconds < TIMESTAMP_MIN_SECONDS || seconds > TIMESTAMP_MAX_SECONDS || nanos < 0 || nanos > 999999999)
        return cel_errorf(e, "timestamp overflow");
    return cel_timestamp(seconds, (uint32_t)nanos, 0);
}

struct cel_value cel_build_message(struct cel_eval *e, const struct cel_node *node)
{
    const struct cel_type *type = node->as.call.message;
    struct cel_value result = empty_message(type);
    int64_t seconds = 0, nanos = 0;

    for (size_t i = 0; i < node->n; i++) {
        struct cel_value v = cel_eval_node(e, node->as.call.args[i]);

        if (e->fatal || cel_is_error(v))
            return v;
        if (node->as.call.optionals && node->as.call.optionals[i]) {
            if (v.kind != CEL_V_OPTIONAL)
                return cel_error("cannot initialize optional entry from non-optional value");
            if (!cel_optional_get(v, &v))
                continue;
        }
        if (str_is(node->as.call.fields[i], "seconds") || str_is(node->as.call.fields[i], "nanos")) {
            if (v.kind != CEL_V_INT)
                return cel_error("unsupported field type");
            *(str_is(node->as.call.fields[i], "nanos") ? &nanos : &seconds) = v.as.i;
        } else if (cel_value_fits(cel_message_field(node->as.call.name, node->as.call.fields[i]), v)) {
            result = v;
        } else {
            return cel_error("unsupported field type");
        }
    }
    if (type->kind == CEL_T_STRUCT)
        return cel_errorf(e, "unknown type: %s", type->name);
    if (type->kind == CEL_T_DURATION || type->kind == CEL_T_TIMESTAMP)
        return time_message(e, type, seconds, nanos);
    return result;
}
