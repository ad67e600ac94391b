/* From a checked tree to a program: variables become slots, rows of selections become paths, constants are folded.
 *
 * Folded are, as in the real implementation: literal lists and maps of constants, conversions of a constant (an error
 * there refuses the expression), and `in` a constant list of simple values, which becomes a set. Constant patterns are
 * compiled once. Nothing else is computed early. */
#include "allocator/cel/env.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/base/mem.h"
#include "allocator/cel/device.h"
#include "allocator/cel/regex.h"

#include "allocator/base/banned.h"

struct scope {
    struct str name;
    uint32_t slot;
};

struct planner {
    const struct cel_env *env;
    struct arena *arena;
    struct cel_diagnosis *d;
    struct cel_program *program;
    struct cel_eval *eval; /* for constants, or NULL */
    struct scope *scopes;  /* the innermost last */
    size_t n_scopes, cap_scopes;
    size_t hidden; /* scopes that the qualifiers of an outer path do not see */
    size_t cap_regexes;
};

static struct cel_node *plan(struct planner *p, const struct ast *ast);

/* ---- nodes ---- */

static struct cel_node *new_node(struct planner *p, enum cel_op op, const struct ast *ast)
{
    struct cel_node *node = arena_new(p->arena, struct cel_node);

    node->op = (uint8_t)op;
    node->id = ast->id;
    node->pos = ast->pos;
    return node;
}

static struct cel_node *new_const(struct planner *p, const struct ast *ast, struct cel_value v)
{
    struct cel_node *node = new_node(p, OP_CONST, ast);

    node->as.value = v;
    return node;
}

static struct cel_path *new_path(struct planner *p, enum cel_root root, uint32_t id)
{
    struct cel_path *path = arena_new(p->arena, struct cel_path);

    path->root = root;
    path->id = id;
    return path;
}

static struct cel_node *new_path_node(struct planner *p, const struct ast *ast, struct cel_path *path)
{
    struct cel_node *node = new_node(p, OP_PATH, ast);

    node->as.path = path;
    return node;
}

static bool is_path(const struct cel_node *node)
{
    return node->op == OP_PATH || node->op == OP_HAS;
}

static struct cel_node *fail(struct planner *p, const struct ast *ast, const char *words)
{
    cel_diagnose(p->d, ast->pos, "program instantiation failed: %s", words);
    return NULL;
}

/* ---- variables ---- */

static void push_scope(struct planner *p, struct str name, uint32_t slot)
{
    if (p->n_scopes == p->cap_scopes) {
        size_t cap = p->cap_scopes ? p->cap_scopes * 2 : 16;
        struct scope *scopes = arena_array(p->arena, struct scope, cap);

        if (p->n_scopes)
            memcpy(scopes, p->scopes, p->n_scopes * sizeof(*scopes));
        p->scopes = scopes;
        p->cap_scopes = cap;
    }
    p->scopes[p->n_scopes++] = (struct scope){name, slot};
}

static const struct scope *find_scope(const struct planner *p, struct str name)
{
    for (size_t i = p->n_scopes; i-- > 0;)
        if (str_eq(p->scopes[i].name, name))
            return &p->scopes[i];
    return NULL;
}

static bool is_hidden(const struct planner *p, const struct scope *scope)
{
    return scope < p->scopes + p->hidden;
}

static struct cel_node *plan_global(struct planner *p, const struct ast *ast, size_t variable)
{
    bool is_device = !p->env->is_specification;
    struct cel_path *path = new_path(p, is_device ? ROOT_DEVICE : ROOT_GLOBAL, ast->id);

    path->slot = (uint32_t)variable;
    path->is_outer = ast->is_shadowed;
    return new_path_node(p, ast, path);
}

/* A name of an unchecked expression: what it means is decided here. NULL when nothing is bound to it. */
static struct cel_node *plan_unchecked_name(struct planner *p, const struct ast *ast, struct str name, bool is_root)
{
    struct str candidate = name;

    for (size_t i = 0; is_root ? i == 0 : cel_env_candidate(p->env, p->arena, name, i, &candidate); i++) {
        size_t variable = cel_env_variable(p->env, candidate);
        const struct cel_type *type;

        if (variable != SIZE_MAX)
            return plan_global(p, ast, variable);
        type = cel_type_named(candidate);
        if (type)
            return new_const(p, ast, cel_type_value(type));
    }
    return NULL;
}

/* A variable that holds a type is taken for the type of that name: an accident of the real planner, which so refuses
 * cel.bind(t, type(1), ...). */
static struct cel_node *plan_type_variable(struct planner *p, const struct ast *ast)
{
    const struct cel_type *type = cel_type_named(ast->name);

    if (type)
        return new_const(p, ast, cel_type_value(type));
    cel_diagnose(p->d, ast->pos, "program instantiation failed: reference to undefined type: %.*s", STR_FMT(ast->name));
    return NULL;
}

static struct cel_node *plan_ident(struct planner *p, const struct ast *ast)
{
    const struct scope *scope = ast->is_root_name ? NULL : find_scope(p, ast->name);
    struct cel_path *path;
    struct cel_node *node;

    if (ast->is_named_type)
        return new_const(p, ast, ast->as.literal);
    if (ast->type && ast->type->kind == CEL_T_TYPE)
        return plan_type_variable(p, ast);
    if (scope && !is_hidden(p, scope)) {
        path = new_path(p, ROOT_SLOT, ast->id);
        path->slot = scope->slot;
        return new_path_node(p, ast, path);
    }
    if (!p->env->is_unchecked && !scope)
        return plan_global(p, ast, cel_env_variable(p->env, ast->name));
    node = p->env->is_unchecked ? plan_unchecked_name(p, ast, ast->name, ast->is_root_name) : NULL;
    if (node)
        return node;
    path = new_path(p, ROOT_MISSING, ast->id);
    path->name = ast->name;
    return new_path_node(p, ast, path);
}

/* ---- paths ---- */

/* Three constant steps from the device are one lookup. */
static void note_shortcut(struct cel_path *path)
{
    const struct cel_qualifier *q = path->qualifiers;

    if (path->root != ROOT_DEVICE || path->n != 3 || path->is_outer ||
        (q[0].device_field != DEVICE_ATTRIBUTES && q[0].device_field != DEVICE_CAPACITY))
        return;
    for (size_t i = 0; i < 3; i++)
        if (q[i].kind != QUAL_CONST || q[i].key.kind != CEL_V_STRING || q[i].is_optional || q[i].tests_presence)
            return;
    path->has_shortcut = true;
    path->fingerprint = cel_shortcut_fingerprint(q[0].device_field, cel_str(q[1].key), cel_str(q[2].key));
}

static void add_qualifier(struct planner *p, struct cel_path *path, struct cel_qualifier q)
{
    if (path->root == ROOT_CHOICE) {
        path->n++; /* only counted: both branches have it */
        add_qualifier(p, path->truthy, q);
        add_qualifier(p, path->falsy, q);
        return;
    }
    q.device_field = -1;
    if (q.kind == QUAL_CONST && q.key.kind == CEL_V_STRING)
        q.fingerprint = cel_fingerprint(cel_str(q.key));
    if (path->root == ROOT_DEVICE && path->n == 0 && q.kind == QUAL_CONST && q.key.kind == CEL_V_STRING)
        q.device_field = (int8_t)cel_device_field_find(cel_str(q.key));
    if (path->n == path->cap) {
        size_t cap = path->cap ? path->cap * 2 : 4;
        struct cel_qualifier *more = arena_array(p->arena, struct cel_qualifier, cap);

        if (path->n)
            memcpy(more, path->qualifiers, path->n * sizeof(*more));
        path->qualifiers = more;
        path->cap = cap;
    }
    path->qualifiers[path->n++] = q;
    note_shortcut(path);
}

/* The path that a node is, or one that starts with its value. */
static struct cel_path *path_of(struct planner *p, struct cel_node *node)
{
    struct cel_path *path;

    if (is_path(node))
        return node->as.path;
    path = new_path(p, ROOT_EXPR, node->id);
    path->node = node;
    return path;
}

static struct cel_node *plan_select(struct planner *p, const struct ast *ast)
{
    struct cel_qualifier q = {.kind = QUAL_CONST, .id = ast->id, .tests_presence = ast->as.select.test_only};
    struct cel_node *node, *operand;
    struct str name, first;
    struct cel_path *path;
    bool is_root;

    if (p->env->is_unchecked && !ast->as.select.test_only &&
        cel_qualified_name(ast, p->arena, &name, &first, &is_root) && (is_root || !find_scope(p, first)) &&
        (node = plan_unchecked_name(p, ast, name, is_root)))
        return node;
    operand = plan(p, ast->as.select.operand);
    if (!operand)
        return NULL;
    path = path_of(p, operand);
    q.key = cel_text(ast->as.select.field);
    add_qualifier(p, path, q);
    node = new_path_node(p, ast, path);
    if (q.tests_presence)
        node->op = OP_HAS;
    return node;
}

static struct cel_node *plan_index(struct planner *p, const struct ast *ast, struct cel_node *const *args,
                                   bool is_optional)
{
    struct cel_qualifier q = {.id = ast->id, .is_optional = is_optional};
    struct cel_path *path = path_of(p, args[0]);
    struct cel_node *index = args[1];

    if (index->op == OP_CONST) {
        q.kind = QUAL_CONST;
        q.key = index->as.value;
        if (q.key.kind < CEL_V_BOOL || q.key.kind > CEL_V_STRING)
            return fail(p, ast, "invalid qualifier type");
    } else if (is_path(index)) {
        q.kind = QUAL_PATH;
        q.path = index->as.path;
    } else {
        q.kind = QUAL_EXPR;
        q.node = index;
    }
    add_qualifier(p, path, q);
    return new_path_node(p, ast, path);
}

static struct cel_node *plan_choice(struct planner *p, const struct ast *ast, struct cel_node *const *args)
{
    struct cel_path *path = new_path(p, ROOT_CHOICE, ast->id);

    path->node = args[0];
    path->truthy = path_of(p, args[1]);
    path->falsy = path_of(p, args[2]);
    return new_path_node(p, ast, path);
}

/* ---- constants ---- */

/* The value of a node that needs no variables. */
static struct cel_value compute(struct planner *p, const struct cel_node *node)
{
    if (p->eval) {
        cel_eval_again(p->eval);
    } else {
        p->eval = arena_new(p->arena, struct cel_eval);
        cel_eval_begin(p->eval, p->arena, 0, p->program->n_ids, UINT64_MAX);
    }
    return cel_eval_node(p->eval, node);
}

static bool are_const(struct cel_node *const *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (args[i]->op != OP_CONST)
            return false;
    return true;
}

static struct cel_node *fold_call(struct planner *p, const struct ast *ast, struct cel_node *node)
{
    struct cel_value v = compute(p, node);

    return cel_is_error(v) ? fail(p, ast, v.as.s) : new_const(p, ast, v);
}

static bool is_simple(struct cel_value v)
{
    return v.kind >= CEL_V_BOOL && v.kind <= CEL_V_STRING;
}

/* A number is in the set under each kind of number that it is exactly. */
static void add_to_set(struct planner *p, struct cel_map *set, struct cel_value v)
{
    int64_t i;
    uint64_t u;

    cel_map_put(set, p->arena, v, cel_bool(true));
    if (v.kind == CEL_V_DOUBLE) {
        if (cel_double_to_int(v.as.d, &i))
            cel_map_put(set, p->arena, cel_int(i), cel_bool(true));
        if (cel_double_to_uint(v.as.d, &u))
            cel_map_put(set, p->arena, cel_uint(u), cel_bool(true));
    } else if (v.kind == CEL_V_INT) {
        cel_map_put(set, p->arena, cel_double((double)v.as.i), cel_bool(true));
        if (v.as.i >= 0)
            cel_map_put(set, p->arena, cel_uint((uint64_t)v.as.i), cel_bool(true));
    } else if (v.kind == CEL_V_UINT) {
        cel_map_put(set, p->arena, cel_double((double)v.as.u), cel_bool(true));
        if (v.as.u <= INT64_MAX)
            cel_map_put(set, p->arena, cel_int((int64_t)v.as.u), cel_bool(true));
    }
}

/* `x in [constants]`; NULL when it stays a call. */
static struct cel_node *plan_set(struct planner *p, const struct ast *ast, struct cel_node *call)
{
    struct cel_value list = call->as.call.args[1]->as.value;
    struct cel_map *set;

    if (call->as.call.args[1]->op != OP_CONST || list.kind != CEL_V_LIST)
        return NULL;
    if (!list.n)
        return new_const(p, ast, cel_bool(false));
    for (size_t i = 0; i < list.n; i++)
        if (!is_simple(list.as.items[i]))
            return NULL;
    set = cel_map_new(p->arena, list.n);
    for (size_t i = 0; i < list.n; i++)
        add_to_set(p, set, list.as.items[i]);
    call->op = OP_IN_SET;
    call->as.call.set = set;
    return call;
}

/* ---- calls ---- */

/* How operands are evaluated: that of the only candidate, of the only overload there is, or one by one. */
static enum cel_binding binding_of(const struct cel_function *function, const struct cel_overload *overload)
{
    if (function->singleton)
        return function->binding;
    if (overload)
        return overload->binding;
    return function->n_overloads == 1 ? function->overloads[0].binding : CEL_BIND_VARIADIC;
}

static bool compile_pattern(struct planner *p, const struct ast *ast, struct cel_node *node)
{
    const struct cel_node *pattern = node->n >= 2 ? node->as.call.args[1] : NULL;
    struct cel_program *program = p->program;
    struct error err = {0};
    struct regex *regex;

    if (!pattern || pattern->op != OP_CONST || pattern->as.value.kind != CEL_V_STRING)
        return true;
    if (regex_compile(cel_str(pattern->as.value), &regex, &err) < 0) {
        fail(p, ast, err.text);
        return false;
    }
    mem_grow(program->regexes, program->n_regexes, p->cap_regexes);
    program->regexes[program->n_regexes++] = regex;
    node->as.call.regex = regex;
    node->binding = CEL_BIND_VARIADIC;
    return true;
}

static struct cel_node *plan_function(struct planner *p, const struct ast *ast, const struct cel_function *function,
                                      struct cel_node **args, size_t n_args)
{
    struct cel_node *node = new_node(p, OP_CALL, ast), *set;
    enum cel_function_id id = function ? function->id : FN_OTHER;

    node->n = (uint32_t)n_args;
    node->as.call.args = args;
    node->as.call.function = function;
    node->as.call.overload = ast->as.call.n_overloads == 1 ? ast->as.call.overloads[0] : NULL;
    node->binding = (uint8_t)(function ? binding_of(function, node->as.call.overload) : CEL_BIND_VARIADIC);
    if (!function)
        return node;
    if (id == FN_OR_OPTIONAL || id == FN_OR_VALUE) {
        node->op = id == FN_OR_OPTIONAL ? OP_OR_OPTIONAL : OP_OR_VALUE;
        return node;
    }
    if (p->env->is_specification)
        return node;
    if (node->as.call.overload && node->as.call.overload->id == OVL_IN_LIST && (set = plan_set(p, ast, node)))
        return set;
    if ((id == FN_CONVERT || id == FN_DYN || id == FN_DURATION || id == FN_TIMESTAMP) && n_args == 1 &&
        args[0]->op == OP_CONST)
        return fold_call(p, ast, node);
    if ((id == FN_MATCHES || id == FN_FIND) && !compile_pattern(p, ast, node))
        return NULL;
    return node;
}

static struct cel_node *plan_operator(struct planner *p, const struct ast *ast, enum cel_function_id id,
                                      struct cel_node **args)
{
    static const struct {
        enum cel_function_id id;
        enum cel_op op;
    } ops[] = {{FN_AND, OP_AND}, {FN_OR, OP_OR}, {FN_EQUALS, OP_EQUAL}, {FN_NOT_EQUALS, OP_NOT_EQUAL}};
    struct cel_node *node;

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (ops[i].id == id) {
            node = new_node(p, ops[i].op, ast);
            node->n = 2;
            node->as.call.args = args;
            return node;
        }
    return NULL;
}

/* The function of an unchecked call; a dotted target may be part of its name. */
static const struct cel_function *unchecked_function(struct planner *p, const struct ast *ast, bool *out_has_target)
{
    const struct ast *target = ast->as.call.target;
    struct str name, first, candidate;
    bool is_root;

    *out_has_target = target != NULL;
    if (target && cel_qualified_name(target, p->arena, &name, &first, &is_root)) {
        char *text = arena_printf(p->arena, "%.*s.%.*s", STR_FMT(name), STR_FMT(ast->name));

        for (size_t i = 0; cel_env_candidate(p->env, p->arena, str_of(text), i, &candidate); i++) {
            const struct cel_function *function = cel_env_function(p->env, candidate);

            if (function) {
                *out_has_target = false;
                return function;
            }
        }
    }
    if (ast->name.len && ast->name.ptr[0] == '.')
        return cel_env_function(p->env, (struct str){ast->name.ptr + 1, ast->name.len - 1});
    return cel_env_function(p->env, ast->name);
}

static bool is_index(const struct cel_function *function)
{
    return function && (function->id == FN_INDEX || function->id == FN_OPT_INDEX || function->id == FN_OPT_SELECT);
}

static bool plan_arguments(struct planner *p, const struct ast *ast, const struct cel_function *function,
                           struct cel_node **args)
{
    size_t hidden = p->hidden;

    for (size_t i = 0; i < ast->as.call.n_args; i++) {
        if (i == 1 && is_index(function) && is_path(args[0]) && args[0]->as.path->is_outer)
            p->hidden = p->n_scopes;
        args[i] = plan(p, ast->as.call.args[i]);
        p->hidden = hidden;
        if (!args[i])
            return false;
    }
    return true;
}

static struct cel_node *plan_call(struct planner *p, const struct ast *ast)
{
    const struct cel_function *function = ast->as.call.function;
    bool has_target = ast->as.call.target != NULL;
    size_t n = 0;
    struct cel_node **args, *node;

    if (p->env->is_unchecked)
        function = unchecked_function(p, ast, &has_target);
    args = arena_array(p->arena, struct cel_node *, ast->as.call.n_args + 1);
    if (has_target && !(args[n++] = plan(p, ast->as.call.target)))
        return NULL;
    if (!plan_arguments(p, ast, function, args + n))
        return NULL;
    n += ast->as.call.n_args;
    if (function && function->id == FN_CONDITIONAL)
        return plan_choice(p, ast, args);
    if (is_index(function))
        return plan_index(p, ast, args, function->id != FN_INDEX);
    node = function ? plan_operator(p, ast, function->id, args) : NULL;
    return node ? node : plan_function(p, ast, function, args, n);
}

/* ---- literals ---- */

static struct cel_node *plan_literal(struct planner *p, const struct ast *ast)
{
    enum cel_op op = ast->kind == AST_LIST ? OP_LIST : ast->kind == AST_MAP ? OP_MAP : OP_MESSAGE;
    struct cel_node *node = new_node(p, op, ast);
    size_t n_items = ast->as.list.n;
    bool *optionals = NULL;
    struct str *fields = NULL;
    struct ast *child;

    node->as.call.args = arena_array(p->arena, struct cel_node *, n_items * 2);
    for (size_t i = 0; (child = ast_child(ast, i)); i++)
        if (!(node->as.call.args[node->n++] = plan(p, child)))
            return NULL;
    for (size_t i = 0; i < n_items; i++)
        if (ast->as.list.items[i].is_optional) {
            optionals = optionals ? optionals : arena_array(p->arena, bool, n_items);
            optionals[i] = true;
        }
    node->as.call.optionals = optionals;
    if (op == OP_MESSAGE) {
        fields = arena_array(p->arena, struct str, n_items);
        for (size_t i = 0; i < n_items; i++)
            fields[i] = ast->as.list.items[i].field;
        node->as.call.fields = fields;
        node->as.call.message = ast->type ? ast->type : cel_type_named(ast->name);
        node->as.call.name = ast->name;
        return node;
    }
    if (p->env->is_specification || !are_const(node->as.call.args, node->n))
        return node;
    for (size_t i = 0; op == OP_MAP && i < node->n; i += 2)
        if (!cel_is_hashable(node->as.call.args[i]->as.value))
            return fail(p, ast, "internal error: hash of unhashable type");
    return new_const(p, ast, compute(p, node));
}

/* ---- loops ---- */

static struct cel_node *untracked(struct cel_node *node)
{
    if (node)
        node->is_untracked = true;
    return node;
}

static struct cel_node *plan_fold(struct planner *p, const struct ast *ast)
{
    struct cel_node *node = new_node(p, OP_FOLD, ast);
    struct cel_fold *fold = arena_new(p->arena, struct cel_fold);
    size_t mark = p->n_scopes;

    node->as.fold = fold;
    fold->accu = (uint32_t)p->program->n_slots;
    fold->iter = fold->accu + 1;
    fold->iter2 = fold->accu + 2;
    fold->has_iter2 = ast->as.fold.iter2.len != 0;
    p->program->n_slots += 3;
    if (!(fold->init = plan(p, ast->as.fold.init)) || !(fold->range = plan(p, ast->as.fold.range)))
        return NULL;
    push_scope(p, ast->as.fold.accu, fold->accu);
    push_scope(p, ast->as.fold.iter, fold->iter);
    if (fold->has_iter2)
        push_scope(p, ast->as.fold.iter2, fold->iter2);
    if (!(fold->condition = untracked(plan(p, ast->as.fold.condition))) ||
        !(fold->step = untracked(plan(p, ast->as.fold.step))))
        return NULL;
    p->n_scopes = mark + 1;
    fold->result = untracked(plan(p, ast->as.fold.result));
    p->n_scopes = mark;
    return fold->result ? node : NULL;
}

static struct cel_node *plan(struct planner *p, const struct ast *ast)
{
    switch (ast->kind) {
    case AST_LITERAL:
        return new_const(p, ast, ast->as.literal);
    case AST_IDENT:
        return plan_ident(p, ast);
    case AST_SELECT:
        return plan_select(p, ast);
    case AST_CALL:
        return plan_call(p, ast);
    case AST_LIST:
    case AST_MAP:
    case AST_MESSAGE:
        return plan_literal(p, ast);
    case AST_FOLD:
        return plan_fold(p, ast);
    }
    return NULL;
}

int cel_plan(const struct cel_env *env, const struct ast *root, uint32_t n_ids, struct arena *arena,
             struct cel_program *out, struct cel_diagnosis *d)
{
    struct planner p = {.env = env, .arena = arena, .d = d, .program = out};

    *out = (struct cel_program){.n_ids = n_ids};
    out->root = untracked(plan(&p, root));
    return out->root ? 0 : -1;
}
