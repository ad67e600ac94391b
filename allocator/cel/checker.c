/* Static types, bottom up, with unification.
 *
 * Type parameters of an overload become fresh variables for every call; `bound` says what stands for them so far, and a
 * trail undoes what a failed attempt bound. dyn, any and errors unify with everything, so a wrong operand is reported
 * once. What is still free at the end is dyn. All overloads whose parameters unify stay candidates: the first one gives
 * the result type, and a different result of a later one makes it dyn.
 *
 * The rules of unification (which of two agreeing types a variable keeps, what null unifies with) follow the checker of
 * cel-go, as told in the CEL description, section 5. */
#include "allocator/cel/env.h"

#include <string.h>

#include "allocator/base/banned.h"

#define MAX_STEPS 20000000 /* of unification and substitution in one check */

struct local {
    struct str name;
    const struct cel_type *type;
};

struct undo {
    uint32_t var;
    const struct cel_type *old;
};

struct checker {
    const struct cel_env *env;
    struct arena *arena;
    struct cel_diagnosis *d;
    const struct cel_type **bound; /* by fresh variable */
    size_t n_vars, cap_vars;
    struct undo *trail;
    size_t n_trail, cap_trail;
    struct local *locals; /* the innermost last */
    size_t n_locals, cap_locals;
    uint64_t steps;
};

static void check(struct checker *c, struct ast *node);

/* ---- small helpers ---- */

#define GROW(c, items, n, cap)                                                                                         \
    do {                                                                                                               \
        if ((n) == (cap)) {                                                                                            \
            size_t cap_ = (cap) ? (cap)*2 : 32;                                                                        \
            void *more_ = arena_array_alloc((c)->arena, cap_, sizeof(*(items)), 8);                                    \
                                                                                                                       \
            if (n)                                                                                                     \
                memcpy(more_, (items), (n) * sizeof(*(items)));                                                        \
            (items) = more_;                                                                                           \
            (cap) = cap_;                                                                                              \
        }                                                                                                              \
    } while (0)

static bool too_complex(struct checker *c)
{
    if (c->steps++ < MAX_STEPS)
        return false;
    cel_diagnose(c->d, SIZE_MAX, "the types of the expression are too complex");
    return true;
}

static const struct cel_type *fresh(struct checker *c)
{
    GROW(c, c->bound, c->n_vars, c->cap_vars);
    c->bound[c->n_vars] = NULL;
    return cel_type_param(c->arena, CEL_FRESH + (uint32_t)c->n_vars++);
}

static const struct cel_type *find(const struct checker *c, const struct cel_type *type)
{
    return type->kind == CEL_T_PARAM && type->var >= CEL_FRESH ? c->bound[type->var - CEL_FRESH] : NULL;
}

static void bind(struct checker *c, const struct cel_type *var, const struct cel_type *type)
{
    GROW(c, c->trail, c->n_trail, c->cap_trail);
    c->trail[c->n_trail++] = (struct undo){var->var - CEL_FRESH, c->bound[var->var - CEL_FRESH]};
    c->bound[var->var - CEL_FRESH] = type;
}

static void undo_to(struct checker *c, size_t n)
{
    while (c->n_trail > n) {
        c->n_trail--;
        c->bound[c->trail[c->n_trail].var] = c->trail[c->n_trail].old;
    }
}

static void mismatch(struct checker *c, const struct ast *node, const struct cel_type *want, const struct cel_type *got)
{
    BUF want_text = {0};
    BUF got_text = {0};

    cel_type_format(want, &want_text);
    cel_type_format(got, &got_text);
    cel_diagnose(c->d, node->pos, "expected type '%s' but found '%s'", buf_str(&want_text), buf_str(&got_text));
}

static void undeclared(struct checker *c, const struct ast *node, struct str name)
{
    cel_diagnose(c->d, node->pos, "undeclared reference to '%.*s' (in container '%.*s')",
                 (int)(name.len > 100 ? 100 : name.len), name.ptr, STR_FMT(c->env->container));
}

/* ---- substitution ---- */

/* What a type means now. `to_dyn`: free variables become dyn. */
static const struct cel_type *substitute(struct checker *c, const struct cel_type *type, bool to_dyn)
{
    const struct cel_type *bound, **params;
    bool changed = false;

    if (too_complex(c))
        return &cel_t_error;
    while ((bound = find(c, type)))
        type = bound;
    if (type->kind == CEL_T_PARAM)
        return to_dyn ? &cel_t_dyn : type;
    if (!type->n_params)
        return type;
    params = arena_array(c->arena, const struct cel_type *, type->n_params);
    for (size_t i = 0; i < type->n_params; i++) {
        params[i] = substitute(c, type->params[i], to_dyn);
        changed = changed || params[i] != type->params[i];
    }
    if (!changed)
        return type;
    type = cel_type_with(c->arena, type, params, type->n_params);
    if (type->weight > CEL_MAX_TYPE_WEIGHT)
        cel_diagnose(c->d, SIZE_MAX, "the types of the expression are too complex");
    return type;
}

/* A declared type with its parameters replaced by the fresh variables from `base` on. */
static const struct cel_type *instantiate(struct checker *c, const struct cel_type *type, uint32_t base)
{
    const struct cel_type **params;
    bool changed = false;

    if (type->kind == CEL_T_PARAM)
        return type->var >= CEL_FRESH ? type : cel_type_param(c->arena, base + type->var);
    if (!type->n_params)
        return type;
    params = arena_array(c->arena, const struct cel_type *, type->n_params);
    for (size_t i = 0; i < type->n_params; i++) {
        params[i] = instantiate(c, type->params[i], base);
        changed = changed || params[i] != type->params[i];
    }
    return changed ? cel_type_with(c->arena, type, params, type->n_params) : type;
}

/* How many parameters a declared type uses: one more than the largest number in it. */
static uint32_t count_params(const struct cel_type *type)
{
    uint32_t n = type->kind == CEL_T_PARAM && type->var < CEL_FRESH ? type->var + 1 : 0;

    for (size_t i = 0; i < type->n_params; i++) {
        uint32_t inner = count_params(type->params[i]);

        n = inner > n ? inner : n;
    }
    return n;
}

/* ---- unification ---- */

static bool assignable(struct checker *c, const struct cel_type *a, const struct cel_type *b);

static bool less_specific(const struct cel_type *a, const struct cel_type *b)
{
    if (cel_type_is_dyn(a) || a->kind == CEL_T_PARAM)
        return true;
    if (cel_type_is_dyn(b) || b->kind == CEL_T_PARAM)
        return false;
    if (a->kind != b->kind)
        return false;
    if (a->kind == CEL_T_TYPE)
        return true;
    if (a->kind != CEL_T_OPAQUE && a->kind != CEL_T_LIST && a->kind != CEL_T_MAP)
        return cel_type_equal(a, b, false);
    if (strcmp(a->name, b->name) != 0 || a->n_params != b->n_params)
        return false;
    for (size_t i = 0; i < a->n_params; i++)
        if (!less_specific(a->params[i], b->params[i]))
            return false;
    return true;
}

static const struct cel_type *most_general(const struct cel_type *a, const struct cel_type *b)
{
    return less_specific(a, b) ? a : b;
}

/* Whether `var` does not occur in `type`: otherwise the type would be endless. */
static bool absent_from(struct checker *c, const struct cel_type *var, const struct cel_type *type)
{
    const struct cel_type *bound;

    if (too_complex(c) || cel_type_equal(var, type, false))
        return false;
    if (type->kind == CEL_T_PARAM) {
        bound = find(c, type);
        return !bound || absent_from(c, var, bound);
    }
    for (size_t i = 0; i < type->n_params; i++)
        if (!absent_from(c, var, type->params[i]))
            return false;
    return true;
}

/* Whether the variable `var` may stand for `type`; binds it. *out_bound: it stood for something already. */
static bool substitutes(struct checker *c, const struct cel_type *type, const struct cel_type *var, bool *out_bound)
{
    const struct cel_type *bound;

    *out_bound = true;
    if (type->kind == var->kind && cel_type_equal(type, var, false))
        return true;
    bound = find(c, var);
    if (bound) {
        const struct cel_type *general;

        if (type->kind == bound->kind && cel_type_equal(type, bound, false))
            return true;
        if (!assignable(c, type, bound))
            return false;
        general = most_general(type, bound);
        if (absent_from(c, var, general))
            bind(c, var, general);
        return true;
    }
    *out_bound = false;
    if (var->var < CEL_FRESH || !absent_from(c, var, type))
        return false;
    bind(c, var, type);
    return true;
}

static bool takes_null(const struct cel_type *type)
{
    switch (type->kind) {
    case CEL_T_OPAQUE:
    case CEL_T_STRUCT:
    case CEL_T_ANY:
    case CEL_T_DURATION:
    case CEL_T_TIMESTAMP:
    case CEL_T_NULL:
        return true;
    default:
        return type->nullable;
    }
}

static bool assignable(struct checker *c, const struct cel_type *a, const struct cel_type *b)
{
    bool has_bound;

    if (too_complex(c))
        return false;
    if (b->kind == CEL_T_PARAM) {
        if (substitutes(c, a, b, &has_bound))
            return true;
        if (has_bound)
            return false;
    }
    if (a->kind == CEL_T_PARAM)
        return substitutes(c, b, a, &has_bound);
    if (cel_type_is_dyn_or_error(a) || cel_type_is_dyn_or_error(b))
        return true;
    if (a->kind == CEL_T_NULL)
        return takes_null(b);
    if (b->kind == CEL_T_NULL)
        return takes_null(a);
    if (a->kind == CEL_T_TYPE)
        return b->kind == CEL_T_TYPE;
    if (a->kind != CEL_T_OPAQUE && a->kind != CEL_T_LIST && a->kind != CEL_T_MAP)
        return cel_type_assignable(b, a);
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0 || a->n_params != b->n_params)
        return false;
    for (size_t i = 0; i < a->n_params; i++)
        if (!assignable(c, a->params[i], b->params[i]))
            return false;
    return true;
}

/* The same, leaving no trace when it fails. */
static bool unify(struct checker *c, const struct cel_type *a, const struct cel_type *b)
{
    size_t mark = c->n_trail;

    if (assignable(c, a, b))
        return true;
    undo_to(c, mark);
    return false;
}

static bool unify_all(struct checker *c, const struct cel_type *const *a, const struct cel_type *const *b, size_t n)
{
    size_t mark = c->n_trail;

    for (size_t i = 0; i < n; i++)
        if (!assignable(c, a[i], b[i])) {
            undo_to(c, mark);
            return false;
        }
    return true;
}

/* ---- names ---- */

static const struct local *find_local(const struct checker *c, struct str name)
{
    for (size_t i = c->n_locals; i-- > 0;)
        if (str_eq(c->locals[i].name, name))
            return &c->locals[i];
    return NULL;
}

static void push_local(struct checker *c, struct str name, const struct cel_type *type)
{
    GROW(c, c->locals, c->n_locals, c->cap_locals);
    c->locals[c->n_locals++] = (struct local){name, type};
}

/* A declared variable or the name of a type, within the container. Fills the node. */
static bool resolve_global(struct checker *c, struct ast *node, struct str name, bool is_root, bool shadowed)
{
    struct str candidate = name;

    for (size_t i = 0; is_root ? i == 0 : cel_env_candidate(c->env, c->arena, name, i, &candidate); i++) {
        size_t variable = cel_env_variable(c->env, candidate);
        const struct cel_type *type;

        if (variable != SIZE_MAX) {
            node->kind = AST_IDENT;
            node->name = candidate;
            node->is_root_name = is_root || shadowed;
            node->is_shadowed = shadowed;
            node->type = c->env->variables[variable].type;
            return true;
        }
        type = cel_type_named(candidate);
        if (type) {
            node->kind = AST_IDENT;
            node->name = candidate;
            node->is_named_type = true;
            node->as.literal = cel_type_value(type);
            node->type = cel_type_of(c->arena, type);
            return true;
        }
    }
    return false;
}

static void check_ident(struct checker *c, struct ast *node)
{
    const struct local *local = find_local(c, node->name);

    if (local && !node->is_root_name) {
        node->type = local->type;
        return;
    }
    if (resolve_global(c, node, node->name, node->is_root_name, local != NULL))
        return;
    undeclared(c, node, node->name);
    node->type = &cel_t_error;
}

/* ---- selection ---- */

static const struct cel_type *field_type(struct checker *c, const struct ast *node, const struct cel_type *target,
                                         struct str field)
{
    const struct cel_type *type = NULL;

    if (strcmp(target->name, cel_t_device.name) == 0)
        type = cel_device_field_type(c->env, c->arena, cel_device_field_find(field));
    if (!type) {
        cel_diagnose(c->d, node->pos, "undefined field '%.*s'", (int)(field.len > 100 ? 100 : field.len), field.ptr);
        return &cel_t_error;
    }
    return type;
}

static const struct cel_type *check_field(struct checker *c, struct ast *node, struct ast *operand, struct str field,
                                          bool is_optional)
{
    const struct cel_type *target, *result;
    BUF text = {0};

    check(c, operand);
    target = substitute(c, operand->type, false);
    if (cel_type_is_optional(target)) {
        is_optional = true;
        target = target->params[0];
    }
    if (target->kind == CEL_T_MAP) {
        result = target->params[1];
    } else if (target->kind == CEL_T_STRUCT) {
        result = field_type(c, node, target, field);
    } else if (target->kind == CEL_T_PARAM) {
        unify(c, &cel_t_dyn, target);
        result = &cel_t_dyn;
    } else {
        if (!cel_type_is_dyn_or_error(target)) {
            cel_type_format(target, &text);
            cel_diagnose(c->d, node->pos, "type '%s' does not support field selection", buf_str(&text));
        }
        result = &cel_t_dyn;
    }
    return is_optional ? cel_type_optional(c->arena, result) : result;
}

static void check_select(struct checker *c, struct ast *node)
{
    const struct cel_type *type;
    struct str name, first;
    bool is_root;

    if (!node->as.select.test_only && cel_qualified_name(node, c->arena, &name, &first, &is_root)) {
        bool shadowed = find_local(c, first) != NULL;

        if ((is_root || !shadowed) && resolve_global(c, node, name, is_root, shadowed))
            return;
    }
    type = check_field(c, node, node->as.select.operand, node->as.select.field, false);
    node->type = node->as.select.test_only ? &cel_t_bool : substitute(c, type, false);
}

/* ---- calls ---- */

#define MAX_OPERANDS 64

static void no_match(struct checker *c, const struct ast *node, const struct cel_type *const *types, size_t n)
{
    size_t first = node->as.call.target ? 1 : 0;
    BUF text = {0};

    if (first) {
        cel_type_format(substitute(c, types[0], true), &text);
        buf_addc(&text, '.');
    }
    buf_addc(&text, '(');
    for (size_t i = first; i < n; i++) {
        if (i > first)
            buf_adds(&text, ", ");
        cel_type_format(substitute(c, types[i], true), &text);
    }
    buf_addc(&text, ')');
    cel_diagnose(c->d, node->pos, "found no matching overload for '%.*s' applied to '%s'", STR_FMT(node->name),
                 buf_str(&text));
}

static bool overload_fits(struct checker *c, const struct cel_overload *overload, const struct cel_type *const *types,
                          const struct cel_type **out_result)
{
    const struct cel_type *params[CEL_MAX_PARAMS];
    uint32_t n = count_params(overload->result), base = CEL_FRESH + (uint32_t)c->n_vars;

    for (size_t i = 0; i < overload->n_params; i++) {
        uint32_t used = count_params(overload->params[i]);

        n = used > n ? used : n;
    }
    for (uint32_t i = 0; i < n; i++)
        fresh(c);
    for (size_t i = 0; i < overload->n_params; i++)
        params[i] = n ? instantiate(c, overload->params[i], base) : overload->params[i];
    if (!unify_all(c, types, params, overload->n_params))
        return false;
    *out_result = substitute(c, n ? instantiate(c, overload->result, base) : overload->result, false);
    return true;
}

static void add_candidate(struct checker *c, struct ast *node, const struct cel_overload *overload)
{
    size_t n = node->as.call.n_overloads;
    const struct cel_overload **list = arena_array(c->arena, const struct cel_overload *, n + 1);

    for (size_t i = 0; i < n; i++)
        list[i] = node->as.call.overloads[i];
    list[n] = overload;
    node->as.call.overloads = list;
    node->as.call.n_overloads = n + 1;
}

static void resolve_overload(struct checker *c, struct ast *node, const struct cel_function *function)
{
    const struct cel_type *types[MAX_OPERANDS], *result = NULL, *one = NULL;
    size_t n = 0;

    node->as.call.function = function;
    if (node->as.call.n_args + 1 > MAX_OPERANDS) {
        cel_diagnose(c->d, node->pos, "found no matching overload for '%.*s': too many arguments", STR_FMT(node->name));
        node->type = &cel_t_error;
        return;
    }
    if (node->as.call.target)
        types[n++] = node->as.call.target->type;
    for (size_t i = 0; i < node->as.call.n_args; i++)
        types[n++] = node->as.call.args[i]->type;
    for (size_t i = 0; i < function->n_overloads; i++) {
        const struct cel_overload *overload = &function->overloads[i];

        if (overload->n_params != n || overload->is_member != (node->as.call.target != NULL) ||
            !cel_overload_in_release(overload, c->env->release) || !overload_fits(c, overload, types, &one))
            continue;
        add_candidate(c, node, overload);
        if (!result)
            result = one;
        else if (!cel_type_is_dyn(result) && !cel_type_equal(one, result, false))
            result = &cel_t_dyn;
    }
    if (!result)
        no_match(c, node, types, n);
    node->type = result ? result : &cel_t_error;
}

/* && and ||: each operand must be a bool. */
static void check_logic(struct checker *c, struct ast *node, const struct cel_function *function)
{
    node->as.call.function = function;
    add_candidate(c, node, &function->overloads[0]);
    node->type = &cel_t_bool;
    for (size_t i = 0; i < node->as.call.n_args; i++)
        if (!unify(c, node->as.call.args[i]->type, &cel_t_bool)) {
            mismatch(c, node->as.call.args[i], &cel_t_bool, node->as.call.args[i]->type);
            node->type = &cel_t_error;
        }
}

static const struct cel_function *find_function(struct checker *c, struct str name)
{
    struct str candidate;

    if (name.len && name.ptr[0] == '.')
        return cel_env_function(c->env, (struct str){name.ptr + 1, name.len - 1});
    for (size_t i = 0; cel_env_candidate(c->env, c->arena, name, i, &candidate); i++) {
        const struct cel_function *function = cel_env_function(c->env, candidate);

        if (function)
            return function;
    }
    return NULL;
}

/* a.b.f(x) is the function a.b.f where there is one. */
static const struct cel_function *find_qualified(struct checker *c, const struct ast *node)
{
    struct str prefix, first;
    bool is_root;
    char *text;

    if (!cel_qualified_name(node->as.call.target, c->arena, &prefix, &first, &is_root))
        return NULL;
    text = arena_printf(c->arena, "%s%.*s.%.*s", is_root ? "." : "", STR_FMT(prefix), STR_FMT(node->name));
    return find_function(c, str_of(text));
}

static void check_call(struct checker *c, struct ast *node)
{
    const struct cel_function *function;

    if (str_is(node->name, "_?._")) {
        const struct cel_type *type =
            check_field(c, node, node->as.call.args[0], cel_str(node->as.call.args[1]->as.literal), true);

        node->as.call.args[1]->type = &cel_t_string;
        node->as.call.function = cel_env_function(c->env, node->name);
        add_candidate(c, node, &node->as.call.function->overloads[0]);
        node->type = substitute(c, type, false);
        return;
    }
    for (size_t i = 0; i < node->as.call.n_args; i++)
        check(c, node->as.call.args[i]);
    if (node->as.call.target && (function = find_qualified(c, node))) {
        node->as.call.target = NULL;
        node->name = str_of(function->name);
        resolve_overload(c, node, function);
        return;
    }
    if (node->as.call.target)
        check(c, node->as.call.target);
    function = find_function(c, node->name);
    if (!function) {
        undeclared(c, node, node->name);
        node->type = &cel_t_error;
        return;
    }
    if (!node->as.call.target)
        node->name = str_of(function->name);
    if (function->id == FN_AND || function->id == FN_OR)
        check_logic(c, node, function);
    else
        resolve_overload(c, node, function);
}

/* ---- literals ---- */

/* The type of all elements so far and one more: the more general one, or dyn. */
static const struct cel_type *join(struct checker *c, const struct cel_type *before, const struct cel_type *type)
{
    if (!before)
        return type;
    return unify(c, before, type) ? most_general(before, type) : &cel_t_dyn;
}

static const struct cel_type *item_type(struct checker *c, const struct ast_item *item)
{
    const struct cel_type *type = item->value->type;

    if (!item->is_optional)
        return type;
    type = substitute(c, type, false);
    if (cel_type_is_optional(type))
        return type->params[0];
    if (!cel_type_is_dyn(type))
        mismatch(c, item->value, cel_type_optional(c->arena, type), type);
    return type;
}

static void check_list(struct checker *c, struct ast *node)
{
    const struct cel_type *element = NULL;

    for (size_t i = 0; i < node->as.list.n; i++) {
        check(c, node->as.list.items[i].value);
        element = join(c, element, item_type(c, &node->as.list.items[i]));
    }
    node->type = cel_type_list(c->arena, element ? element : fresh(c));
}

static void check_map(struct checker *c, struct ast *node)
{
    const struct cel_type *key = NULL, *value = NULL;

    for (size_t i = 0; i < node->as.list.n; i++) {
        const struct ast_item *item = &node->as.list.items[i];

        check(c, item->key);
        key = join(c, key, item->key->type);
        check(c, item->value);
        value = join(c, value, item_type(c, item));
    }
    if (!key) {
        key = fresh(c);
        value = fresh(c);
    }
    node->type = cel_type_map(c->arena, key, value);
}

static void check_message(struct checker *c, struct ast *node)
{
    struct str candidate = node->name;
    bool found = false;

    for (size_t i = 0; !found && cel_env_candidate(c->env, c->arena, node->name, i, &candidate); i++)
        found = cel_message_exists(candidate) && (!c->env->is_specification || !str_is(candidate, cel_t_device.name));
    if (!found) {
        undeclared(c, node, node->name);
        node->type = &cel_t_error;
        return;
    }
    node->name = candidate;
    node->type = cel_type_named(candidate);
    if (!node->type)
        node->type = &cel_t_device;
    for (size_t i = 0; i < node->as.list.n; i++) {
        const struct ast_item *item = &node->as.list.items[i];
        const struct cel_type *want = cel_message_field(candidate, item->field), *got;

        check(c, item->value);
        got = item_type(c, item);
        if (!want)
            cel_diagnose(c->d, node->pos, "undefined field '%.*s'", STR_FMT(item->field));
        else if (!unify(c, want, got))
            mismatch(c, item->value, want, got);
    }
}

/* ---- loops ---- */

static void check_range(struct checker *c, const struct ast *node, const struct cel_type **out_one,
                        const struct cel_type **out_two)
{
    const struct cel_type *range = substitute(c, node->as.fold.range->type, false);
    bool has_two = node->as.fold.iter2.len != 0;
    BUF text = {0};

    *out_one = *out_two = &cel_t_dyn;
    if (range->kind == CEL_T_LIST) {
        *out_one = has_two ? &cel_t_int : range->params[0];
        *out_two = range->params[0];
    } else if (range->kind == CEL_T_MAP) {
        *out_one = range->params[0];
        *out_two = range->params[1];
    } else if (range->kind == CEL_T_DYN || range->kind == CEL_T_ERROR || range->kind == CEL_T_PARAM) {
        unify(c, &cel_t_dyn, range);
    } else {
        cel_type_format(range, &text);
        cel_diagnose(c->d, node->as.fold.range->pos,
                     "expression of type '%s' cannot be range of a comprehension (must be list, map, or dynamic)",
                     buf_str(&text));
        *out_one = *out_two = &cel_t_error;
    }
}

static void assert_type(struct checker *c, const struct ast *node, const struct cel_type *want)
{
    if (!unify(c, want, node->type))
        mismatch(c, node, want, node->type);
}

static void check_fold(struct checker *c, struct ast *node)
{
    const struct cel_type *one, *two, *accu;
    size_t mark = c->n_locals;

    check(c, node->as.fold.range);
    check(c, node->as.fold.init);
    accu = node->as.fold.init->type;
    check_range(c, node, &one, &two);
    push_local(c, node->as.fold.accu, accu);
    push_local(c, node->as.fold.iter, one);
    if (node->as.fold.iter2.len)
        push_local(c, node->as.fold.iter2, two);
    check(c, node->as.fold.condition);
    assert_type(c, node->as.fold.condition, &cel_t_bool);
    check(c, node->as.fold.step);
    assert_type(c, node->as.fold.step, accu);
    c->n_locals = mark + 1;
    check(c, node->as.fold.result);
    c->n_locals = mark;
    node->type = substitute(c, node->as.fold.result->type, false);
}

static const struct cel_type *literal_type(struct cel_value v)
{
    return cel_value_type(v);
}

static void check(struct checker *c, struct ast *node)
{
    if (c->d->failed && c->steps > MAX_STEPS) {
        node->type = &cel_t_error;
        return;
    }
    switch (node->kind) {
    case AST_LITERAL:
        node->type = literal_type(node->as.literal);
        break;
    case AST_IDENT:
        check_ident(c, node);
        break;
    case AST_SELECT:
        check_select(c, node);
        break;
    case AST_CALL:
        check_call(c, node);
        break;
    case AST_LIST:
        check_list(c, node);
        break;
    case AST_MAP:
        check_map(c, node);
        break;
    case AST_MESSAGE:
        check_message(c, node);
        break;
    case AST_FOLD:
        check_fold(c, node);
        break;
    }
}

/* Replace every variable by what it came to mean. */
static void finish(struct checker *c, struct ast *node)
{
    struct ast *child;

    if (node->type)
        node->type = substitute(c, node->type, true);
    for (size_t i = 0; (child = ast_child(node, i)); i++)
        finish(c, child);
}

int cel_check(const struct cel_env *env, struct ast *root, struct arena *arena, struct cel_diagnosis *d)
{
    struct checker c = {.env = env, .arena = arena, .d = d};

    check(&c, root);
    if (!d->failed)
        finish(&c, root);
    return d->failed ? -1 : 0;
}
