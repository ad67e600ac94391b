#include "allocator/cel/env.h"

#include <string.h>

#include "allocator/base/banned.h"

const char *const cel_device_field_names[DEVICE_FIELDS] = {
    [DEVICE_DRIVER] = "driver",
    [DEVICE_ATTRIBUTES] = "attributes",
    [DEVICE_CAPACITY] = "capacity",
    [DEVICE_SHARED] = "allowMultipleAllocations",
};

int cel_device_field_find(struct str name)
{
    for (int i = 0; i < DEVICE_FIELDS; i++)
        if (str_is(name, cel_device_field_names[i]))
            return i;
    return -1;
}

const struct cel_type *cel_device_field_type(const struct cel_env *env, struct arena *arena, int field)
{
    switch ((enum cel_device_field)field) {
    case DEVICE_DRIVER:
        return &cel_t_string;
    case DEVICE_ATTRIBUTES:
        return cel_type_map(arena, &cel_t_string, cel_type_map(arena, &cel_t_string, env->attribute));
    case DEVICE_CAPACITY:
        return cel_type_map(arena, &cel_t_string, cel_type_map(arena, &cel_t_string, &cel_t_quantity));
    case DEVICE_SHARED:
        return &cel_t_bool;
    case DEVICE_FIELDS:
        break;
    }
    return NULL;
}

const struct cel_function *cel_env_function(const struct cel_env *env, struct str name)
{
    for (size_t i = 0; i < env->n_functions; i++)
        if (str_is(name, env->functions[i].name))
            return &env->functions[i];
    return cel_function_find(name, env->release);
}

bool cel_env_candidate(const struct cel_env *env, struct arena *arena, struct str name, size_t i, struct str *out)
{
    struct str prefix = env->container;
    char *text;

    /* Number 0 has the whole container before it, the last one nothing. */
    for (; i && prefix.len; i--) {
        while (prefix.len && prefix.ptr[prefix.len - 1] != '.')
            prefix.len--;
        if (prefix.len)
            prefix.len--;
        else if (i > 1)
            return false;
    }
    if (i)
        return false;
    if (!prefix.len) {
        *out = name;
        return true;
    }
    text = arena_printf(arena, "%.*s.%.*s", STR_FMT(prefix), STR_FMT(name));
    *out = str_of(text);
    return true;
}

size_t cel_env_variable(const struct cel_env *env, struct str name)
{
    for (size_t i = 0; i < env->n_variables; i++)
        if (str_eq(env->variables[i].name, name))
            return i;
    return SIZE_MAX;
}

bool cel_qualified_name(const struct ast *node, struct arena *arena, struct str *out, struct str *out_first,
                        bool *out_is_root)
{
    const struct ast *at = node;
    size_t n = 0;
    char *text;

    for (; at->kind == AST_SELECT && !at->as.select.test_only; at = at->as.select.operand)
        n += at->as.select.field.len + 1;
    if (at->kind != AST_IDENT)
        return false;
    n += at->name.len;
    *out_first = at->name;
    *out_is_root = at->is_root_name;
    text = arena_alloc(arena, n + 1, 1);
    *out = (struct str){text, n};
    for (at = node; at->kind == AST_SELECT; at = at->as.select.operand) {
        n -= at->as.select.field.len;
        memcpy(text + n, at->as.select.field.ptr, at->as.select.field.len);
        text[--n] = '.';
    }
    memcpy(text, at->name.ptr, at->name.len);
    return true;
}
