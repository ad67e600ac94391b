/* What DRA checks after the types: literals that must convert, patterns that must compile, literals of one type, and
 * arguments of literal format strings. */
#include "allocator/cel/env.h"

#include "allocator/base/error.h"
#include "allocator/cel/regex.h"
#include "allocator/cel/strformat.h"
#include "allocator/cel/timefmt.h"

#include "allocator/base/banned.h"

struct validator {
    const struct cel_env *env;
    struct arena *arena;
    struct cel_diagnosis *d;
};

/* ---- literals that must convert ---- */

static bool converts(enum cel_function_id function, struct cel_value v)
{
    struct timestamp t;
    int64_t nanos;

    if (function == FN_DURATION)
        return v.kind != CEL_V_STRING || cel_duration_parse(cel_str(v), &nanos, NULL) == 0;
    if (v.kind == CEL_V_INT)
        return timestamp_of_unix(v.as.i, &t, NULL) == 0;
    return v.kind != CEL_V_STRING || timestamp_parse(cel_str(v), &t, NULL) == 0;
}

/* The first argument is checked, also in the global form of matches, where it is the subject. */
static bool compiles(struct cel_value v)
{
    CLEANUP(regex) *regex = NULL;

    return v.kind != CEL_V_STRING || regex_compile(cel_str(v), &regex, NULL) == 0;
}

static void check_literal(struct validator *v, const struct ast *call)
{
    const struct ast *arg = call->as.call.n_args ? call->as.call.args[0] : NULL;
    enum cel_function_id function = call->as.call.function->id;

    if (!arg || arg->kind != AST_LITERAL)
        return;
    if ((function == FN_DURATION || function == FN_TIMESTAMP) && !converts(function, arg->as.literal))
        cel_diagnose(v->d, arg->pos, "invalid %s argument", call->as.call.function->name);
    if (function == FN_MATCHES && !compiles(arg->as.literal))
        cel_diagnose(v->d, arg->pos, "invalid matches argument");
}

/* ---- literals of one type ---- */

static void mismatch(struct validator *v, const struct ast *node, const struct cel_type *want,
                     const struct cel_type *got)
{
    BUF want_text = {0};
    BUF got_text = {0};

    cel_type_format(want, &want_text);
    cel_type_format(got, &got_text);
    cel_diagnose(v->d, node->pos, "expected type '%s' but found '%s'", buf_str(&want_text), buf_str(&got_text));
}

/* The type that counts for an item; NULL where the real compiler crashes. */
static const struct cel_type *item_type(struct validator *v, const struct ast_item *item)
{
    const struct cel_type *type = item->value->type;

    if (!item->is_optional)
        return type;
    if (type->n_params)
        return type->params[0];
    cel_diagnose(v->d, item->value->pos, "internal error: an optional element of type '%s'", cel_type_name(type));
    return NULL;
}

static void check_list(struct validator *v, const struct ast *list)
{
    const struct cel_type *first = NULL;

    for (size_t i = 0; i < list->as.list.n; i++) {
        const struct cel_type *type = item_type(v, &list->as.list.items[i]);

        if (!type)
            return;
        if (first && !cel_type_equal(first, type, true)) {
            mismatch(v, list->as.list.items[i].value, first, type);
            return;
        }
        first = first ? first : type;
    }
}

static void check_map(struct validator *v, const struct ast *map)
{
    const struct cel_type *key = NULL, *value = NULL;

    for (size_t i = 0; i < map->as.list.n; i++) {
        const struct ast_item *item = &map->as.list.items[i];
        const struct cel_type *type = item_type(v, item);

        if (!type)
            return;
        if (key && !cel_type_equal(key, item->key->type, true))
            mismatch(v, item->key, key, item->key->type);
        if (value && !cel_type_equal(value, type, true))
            mismatch(v, item->value, value, type);
        key = key ? key : item->key->type;
        value = value ? value : type;
    }
}

/* ---- formats ---- */

static bool is_dyn(const struct cel_type *type)
{
    return type->kind == CEL_T_DYN || type->kind == CEL_T_PARAM || type->kind == CEL_T_ERROR;
}

static unsigned kind_bit(const struct cel_type *type)
{
    switch (type->kind) {
    case CEL_T_BOOL:
        return BIT(FORMAT_BOOL);
    case CEL_T_INT:
        return BIT(FORMAT_INT);
    case CEL_T_UINT:
        return BIT(FORMAT_UINT);
    case CEL_T_DOUBLE:
        return BIT(FORMAT_DOUBLE);
    case CEL_T_STRING:
        return BIT(FORMAT_STRING);
    case CEL_T_BYTES:
        return BIT(FORMAT_BYTES);
    case CEL_T_NULL:
        return BIT(FORMAT_NULL);
    case CEL_T_TYPE:
        return BIT(FORMAT_TYPE);
    case CEL_T_TIMESTAMP:
        return BIT(FORMAT_TIMESTAMP);
    case CEL_T_DURATION:
        return BIT(FORMAT_DURATION);
    case CEL_T_LIST:
        return BIT(FORMAT_LIST);
    case CEL_T_MAP:
        return BIT(FORMAT_MAP);
    default:
        return BIT(FORMAT_OTHER);
    }
}

static void check_type_of_argument(struct validator *v, const struct ast *arg, const struct format_clause *clause);

/* The elements of a literal list, and entries of a literal map, under %s must have a text too. */
static void check_inside(struct validator *v, const struct ast *arg, const struct format_clause *clause)
{
    struct ast *child;

    if (arg->kind != AST_LIST && arg->kind != AST_MAP)
        return;
    for (size_t i = 0; (child = ast_child(arg, i)); i++)
        check_type_of_argument(v, child, clause);
}

static void check_type_of_argument(struct validator *v, const struct ast *arg, const struct format_clause *clause)
{
    struct error err = {0};

    if (is_dyn(arg->type))
        return;
    if (kind_bit(arg->type) & clause->kinds) {
        if (clause->letter == 's')
            check_inside(v, arg, clause);
        return;
    }
    format_misfit(clause, str_of(cel_type_name(arg->type)), &err);
    cel_diagnose(v->d, arg->pos, "%s", err.text);
}

static void check_format(struct validator *v, const struct ast *call)
{
    const struct ast *target = call->as.call.target, *list = call->as.call.n_args ? call->as.call.args[0] : NULL;
    struct format_clause clause;
    struct error err = {0};
    size_t at = 0, n = 0;
    int found;

    if (!target || target->kind != AST_LITERAL || target->as.literal.kind != CEL_V_STRING || !list ||
        list->kind != AST_LIST)
        return;
    while ((found = format_next_clause(cel_str(target->as.literal), &at, n, list->as.list.n, &clause, &err)) > 0)
        check_type_of_argument(v, list->as.list.items[n++].value, &clause);
    if (found < 0)
        cel_diagnose(v->d, target->pos, "%s", err.text);
    else if (n < list->as.list.n)
        cel_diagnose(v->d, list->as.list.items[n].value->pos,
                     "too many arguments supplied to string.format (expected %zu, got %zu)", n, list->as.list.n);
}

static void walk(struct validator *v, const struct ast *node, bool in_format)
{
    struct ast *child;

    if (v->d->failed)
        return;
    if (node->kind == AST_CALL && node->as.call.function) {
        check_literal(v, node);
        if (node->as.call.function->id == FN_FORMAT) {
            check_format(v, node);
            in_format = true;
        }
    }
    if (node->kind == AST_LIST && !in_format)
        check_list(v, node);
    if (node->kind == AST_MAP && !in_format)
        check_map(v, node);
    for (size_t i = 0; (child = ast_child(node, i)); i++)
        walk(v, child, in_format);
}

int cel_validate(const struct cel_env *env, struct ast *root, struct arena *arena, struct cel_diagnosis *d)
{
    struct validator v = {env, arena, d};

    walk(&v, root, false);
    return d->failed ? -1 : 0;
}
