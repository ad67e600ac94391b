/* Calls by the types that operands have at run time. */
#include "allocator/cel/functions.h"

#include <string.h>

#include "allocator/cel/eval.h"
#include "allocator/cel/namedformat.h"

#include "allocator/base/banned.h"

bool cel_value_fits(const struct cel_type *param, struct cel_value v)
{
    const struct cel_type *type;

    if (v.kind == CEL_V_ERROR)
        return false;
    if (cel_type_is_dyn(param) || param->kind == CEL_T_PARAM)
        return true;
    type = cel_value_type(v);
    if (param->nullable && v.kind == CEL_V_NULL)
        return true;
    if (param->kind != type->kind || strcmp(cel_type_name(param), cel_type_name(type)) != 0)
        return false;
    if (param->kind == CEL_T_LIST)
        return cel_list_len(v) == 0 || cel_value_fits(param->params[0], cel_list_at(v, 0));
    if (param->kind == CEL_T_MAP)
        return v.as.map->n == 0 || (cel_value_fits(param->params[0], v.as.map->entries[0].key) &&
                                    cel_value_fits(param->params[1], v.as.map->entries[0].value));
    return true;
}

unsigned cel_value_traits(struct cel_value v)
{
    static const unsigned traits[CEL_V_KINDS] = {
        [CEL_V_BOOL] = CEL_CAN_COMPARE | CEL_CAN_NEGATE,
        [CEL_V_INT] = CEL_CAN_ADD | CEL_CAN_SUBTRACT | CEL_CAN_MULTIPLY | CEL_CAN_DIVIDE | CEL_CAN_MODULO |
                      CEL_CAN_NEGATE | CEL_CAN_COMPARE,
        [CEL_V_UINT] =
            CEL_CAN_ADD | CEL_CAN_SUBTRACT | CEL_CAN_MULTIPLY | CEL_CAN_DIVIDE | CEL_CAN_MODULO | CEL_CAN_COMPARE,
        [CEL_V_DOUBLE] =
            CEL_CAN_ADD | CEL_CAN_SUBTRACT | CEL_CAN_MULTIPLY | CEL_CAN_DIVIDE | CEL_CAN_NEGATE | CEL_CAN_COMPARE,
        [CEL_V_STRING] = CEL_CAN_ADD | CEL_CAN_COMPARE | CEL_CAN_SIZE | CEL_CAN_MATCH,
        [CEL_V_BYTES] = CEL_CAN_ADD | CEL_CAN_COMPARE | CEL_CAN_SIZE,
        [CEL_V_TIMESTAMP] = CEL_CAN_ADD | CEL_CAN_SUBTRACT | CEL_CAN_COMPARE,
        [CEL_V_DURATION] = CEL_CAN_ADD | CEL_CAN_SUBTRACT | CEL_CAN_COMPARE | CEL_CAN_NEGATE,
        [CEL_V_LIST] = CEL_CAN_ADD | CEL_CAN_SIZE | CEL_CAN_LIST,
        [CEL_V_MAP] = CEL_CAN_SIZE,
    };

    return traits[v.kind];
}

static struct cel_value no_overload_for(struct cel_eval *e, const char *name, const struct cel_value *args,
                                        size_t n_args)
{
    BUF text = {0};

    for (size_t i = 0; i < n_args; i++)
        buf_addf(&text, "%s%s", i ? ", " : "", cel_kind_name(args[i]));
    return cel_errorf(e, "no such overload: %s(%s)", name, buf_str(&text));
}

static bool args_fit(const struct cel_function *function, const struct cel_overload *overload,
                     const struct cel_value *args, size_t n_args)
{
    if (overload->n_params != n_args)
        return false;
    for (size_t i = 0; i < n_args; i++) {
        if (function->is_non_strict && args[i].kind == CEL_V_ERROR)
            continue;
        if (!function->is_unguarded && !cel_value_fits(overload->params[i], args[i]))
            return false;
    }
    return true;
}

struct cel_value cel_call_overload(struct cel_eval *e, const struct cel_function *function,
                                   const struct cel_overload *overload, const struct cel_value *args, size_t n_args)
{
    if (function->format_name)
        return (struct cel_value){.kind = CEL_V_FORMAT, .as.format = named_format_find(str_of(function->format_name))};
    if (!overload->eval || !args_fit(function, overload, args, n_args))
        return no_overload_for(e, function->name, args, n_args);
    return overload->eval(e, args, n_args);
}

struct cel_value cel_dispatch(struct cel_eval *e, const struct cel_function *function, const struct cel_value *args,
                              size_t n_args)
{
    for (size_t i = 0; i < function->n_overloads; i++) {
        const struct cel_overload *overload = &function->overloads[i];

        if (overload->eval && args_fit(function, overload, args, n_args))
            return overload->eval(e, args, n_args);
    }
    return no_overload_for(e, function->name, args, n_args);
}
