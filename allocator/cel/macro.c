/* Macros are recognised by name, style and number of arguments alone, before any type is known, and become folds: loops
 * with an accumulator. What they expand to is what they cost, so the shapes follow the real ones node by node. */
#include "allocator/cel/macro.h"

#include <string.h>

#include "allocator/base/banned.h"

/* ---- nodes ---- */

void cel_adopt(struct ast *node, const struct ast *child, bool counts)
{
    uint32_t visit;

    if (!child)
        return;
    visit = child->visit + (counts ? 1 : 0);
    if (visit > node->visit)
        node->visit = visit;
    if (child->depth >= node->depth)
        node->depth = child->depth + 1;
}

struct ast *cel_new_node(struct cel_builder *b, enum ast_kind kind, uint32_t pos)
{
    struct ast *node;

    if (b->n_nodes >= CEL_MAX_NODES) {
        cel_diagnose(b->diagnosis, SIZE_MAX, "the expression is too large after the expansion of its macros");
        return NULL;
    }
    node = arena_new(b->arena, struct ast);
    node->kind = kind;
    node->pos = pos;
    node->id = ++b->n_nodes;
    node->depth = 1;
    return node;
}

struct ast *cel_new_literal(struct cel_builder *b, uint32_t pos, struct cel_value v)
{
    struct ast *node = cel_new_node(b, AST_LITERAL, pos);

    if (node)
        node->as.literal = v;
    return node;
}

struct ast *cel_new_ident(struct cel_builder *b, uint32_t pos, struct str name)
{
    struct ast *node = cel_new_node(b, AST_IDENT, pos);

    if (node)
        node->name = name;
    return node;
}

struct ast *cel_new_select(struct cel_builder *b, uint32_t pos, struct ast *operand, struct str field, bool test_only)
{
    struct ast *node = operand ? cel_new_node(b, AST_SELECT, pos) : NULL;

    if (!node)
        return NULL;
    node->as.select.operand = operand;
    node->as.select.field = field;
    node->as.select.test_only = test_only;
    node->visit = 1;
    cel_adopt(node, operand, true);
    return node;
}

struct ast *cel_new_call(struct cel_builder *b, uint32_t pos, struct str name, struct ast *target, struct ast **args,
                         size_t n_args, bool counts)
{
    struct ast *node = cel_new_node(b, AST_CALL, pos);

    if (!node)
        return NULL;
    node->name = name;
    node->as.call.target = target;
    node->as.call.args = args;
    node->as.call.n_args = n_args;
    node->visit = counts ? 1 : 0;
    cel_adopt(node, target, counts);
    for (size_t i = 0; i < n_args; i++)
        cel_adopt(node, args[i], counts);
    return node;
}

static struct ast *new_call_of(struct cel_builder *b, uint32_t pos, const char *name, struct ast *const *args,
                               size_t n_args, bool counts)
{
    struct ast **copy = arena_array(b->arena, struct ast *, n_args);

    for (size_t i = 0; i < n_args; i++)
        if (!(copy[i] = args[i]))
            return NULL;
    return cel_new_call(b, pos, str_of(name), NULL, copy, n_args, counts);
}

struct ast *cel_new_call1(struct cel_builder *b, uint32_t pos, const char *name, struct ast *a)
{
    return new_call_of(b, pos, name, (struct ast *const[]){a}, 1, false);
}

struct ast *cel_new_call2(struct cel_builder *b, uint32_t pos, const char *name, struct ast *a, struct ast *c,
                          bool counts)
{
    return new_call_of(b, pos, name, (struct ast *const[]){a, c}, 2, counts);
}

struct ast *cel_new_call3(struct cel_builder *b, uint32_t pos, const char *name, struct ast *a, struct ast *c,
                          struct ast *d)
{
    return new_call_of(b, pos, name, (struct ast *const[]){a, c, d}, 3, true);
}

/* ---- the makings of macros ---- */

struct expansion {
    struct cel_builder *b;
    uint32_t pos; /* of the macro's parenthesis: every node that it makes is there */
    struct ast *target;
    struct ast **args;
    size_t n_args;
};

static struct ast *fail_at(struct expansion *x, const struct ast *node, const char *words)
{
    cel_diagnose(x->b->diagnosis, node->pos, "%s", words);
    return NULL;
}

static struct ast *accu(struct expansion *x)
{
    return cel_new_ident(x->b, x->pos, STR(CEL_ACCU));
}

static struct ast *literal(struct expansion *x, struct cel_value v)
{
    return cel_new_literal(x->b, x->pos, v);
}

/* A list of one element, or of none for NULL. */
static struct ast *list_of(struct expansion *x, struct ast *element)
{
    struct ast *node = cel_new_node(x->b, AST_LIST, x->pos);

    if (node && element) {
        node->as.list.items = arena_new(x->b->arena, struct ast_item);
        node->as.list.items[0].value = element;
        node->as.list.n = 1;
        cel_adopt(node, element, false);
    }
    return node;
}

static struct ast *call1(struct expansion *x, const char *name, struct ast *a)
{
    return cel_new_call1(x->b, x->pos, name, a);
}

static struct ast *call2(struct expansion *x, const char *name, struct ast *a, struct ast *b)
{
    return cel_new_call2(x->b, x->pos, name, a, b, false);
}

static struct ast *call3(struct expansion *x, const char *name, struct ast *a, struct ast *b, struct ast *c)
{
    return cel_new_call3(x->b, x->pos, name, a, b, c);
}

static struct ast *method(struct expansion *x, const char *name, struct ast *target, struct ast *arg)
{
    struct ast **args = arena_array(x->b->arena, struct ast *, 1);

    args[0] = arg;
    return target ? cel_new_call(x->b, x->pos, str_of(name), target, args, arg ? 1 : 0, false) : NULL;
}

struct fold_parts {
    struct str iter, iter2, accu;
    struct ast *range, *init, *condition, *step, *result;
};

static struct ast *fold(struct expansion *x, const struct fold_parts *f)
{
    struct ast *node;

    if (!f->range || !f->init || !f->condition || !f->step || !f->result)
        return NULL;
    node = cel_new_node(x->b, AST_FOLD, x->pos);
    if (!node)
        return NULL;
    node->as.fold.iter = f->iter;
    node->as.fold.iter2 = f->iter2;
    node->as.fold.accu = f->accu;
    node->as.fold.range = f->range;
    node->as.fold.init = f->init;
    node->as.fold.condition = f->condition;
    node->as.fold.step = f->step;
    node->as.fold.result = f->result;
    cel_adopt(node, f->range, false);
    cel_adopt(node, f->init, false);
    cel_adopt(node, f->condition, false);
    cel_adopt(node, f->step, false);
    cel_adopt(node, f->result, false);
    return node;
}

/* A tree like `node` with ids of its own. */
static struct ast *copy_tree(struct expansion *x, const struct ast *node)
{
    struct ast *copy;

    if (!node)
        return NULL;
    copy = cel_new_node(x->b, node->kind, node->pos);
    if (!copy)
        return NULL;
    {
        uint32_t id = copy->id;

        *copy = *node;
        copy->id = id;
    }
    switch (node->kind) {
    case AST_LITERAL:
    case AST_IDENT:
        break;
    case AST_SELECT:
        if (!(copy->as.select.operand = copy_tree(x, node->as.select.operand)))
            return NULL;
        break;
    case AST_CALL:
        if (node->as.call.target && !(copy->as.call.target = copy_tree(x, node->as.call.target)))
            return NULL;
        copy->as.call.args = arena_array(x->b->arena, struct ast *, node->as.call.n_args);
        for (size_t i = 0; i < node->as.call.n_args; i++)
            if (!(copy->as.call.args[i] = copy_tree(x, node->as.call.args[i])))
                return NULL;
        break;
    case AST_LIST:
    case AST_MAP:
    case AST_MESSAGE:
        copy->as.list.items = arena_array(x->b->arena, struct ast_item, node->as.list.n);
        for (size_t i = 0; i < node->as.list.n; i++) {
            struct ast_item *item = &copy->as.list.items[i];

            *item = node->as.list.items[i];
            if (item->key && !(item->key = copy_tree(x, item->key)))
                return NULL;
            if (!(item->value = copy_tree(x, item->value)))
                return NULL;
        }
        break;
    case AST_FOLD:
        if (!(copy->as.fold.range = copy_tree(x, node->as.fold.range)) ||
            !(copy->as.fold.init = copy_tree(x, node->as.fold.init)) ||
            !(copy->as.fold.condition = copy_tree(x, node->as.fold.condition)) ||
            !(copy->as.fold.step = copy_tree(x, node->as.fold.step)) ||
            !(copy->as.fold.result = copy_tree(x, node->as.fold.result)))
            return NULL;
        break;
    }
    return copy;
}

static bool is_accu_name(struct str name)
{
    return str_is(name, CEL_ACCU) || str_is(name, "__result__");
}

/* The variable of a macro, which must be a plain name. A name with a leading dot can be declared but never read. */
static bool variable(struct expansion *x, const struct ast *arg, const char *words, struct str *out)
{
    if (arg->kind != AST_IDENT) {
        fail_at(x, arg, words);
        return false;
    }
    if (is_accu_name(arg->name)) {
        fail_at(x, arg, "iteration variable overwrites accumulator variable");
        return false;
    }
    *out = arg->is_root_name ? STR(".") : arg->name;
    return true;
}

/* A macro reads its own variable. */
static struct ast *read_variable(struct expansion *x, struct str name)
{
    struct ast *node = cel_new_ident(x->b, x->pos, name);

    if (node)
        node->is_root_name = str_is(name, "."); /* then it is undeclared */
    return node;
}

static bool two_variables(struct expansion *x, struct fold_parts *f)
{
    if (x->args[0]->kind != AST_IDENT || x->args[1]->kind != AST_IDENT) {
        fail_at(x, x->args[0]->kind != AST_IDENT ? x->args[0] : x->args[1], "argument must be a simple name");
        return false;
    }
    if (str_eq(x->args[0]->name, x->args[1]->name)) {
        cel_diagnose(x->b->diagnosis, x->args[1]->pos, "duplicate variable name: %.*s", STR_FMT(x->args[0]->name));
        return false;
    }
    return variable(x, x->args[0], "", &f->iter) && variable(x, x->args[1], "", &f->iter2);
}

/* ---- quantifiers: the shapes are shared by the forms with one and with two variables ---- */

static struct ast *finish_all(struct expansion *x, struct fold_parts *f, struct ast *predicate)
{
    f->accu = STR(CEL_ACCU);
    f->range = x->target;
    f->init = literal(x, cel_bool(true));
    f->condition = call1(x, "@not_strictly_false", accu(x));
    f->step = call2(x, "_&&_", accu(x), predicate);
    f->result = accu(x);
    return fold(x, f);
}

static struct ast *finish_exists(struct expansion *x, struct fold_parts *f, struct ast *predicate)
{
    f->accu = STR(CEL_ACCU);
    f->range = x->target;
    f->init = literal(x, cel_bool(false));
    f->condition = call1(x, "@not_strictly_false", call1(x, "!_", accu(x)));
    f->step = call2(x, "_||_", accu(x), predicate);
    f->result = accu(x);
    return fold(x, f);
}

static struct ast *finish_exists_one(struct expansion *x, struct fold_parts *f, struct ast *predicate)
{
    f->accu = STR(CEL_ACCU);
    f->range = x->target;
    f->init = literal(x, cel_int(0));
    f->condition = literal(x, cel_bool(true));
    f->step = call3(x, "_?_:_", predicate, call2(x, "_+_", accu(x), literal(x, cel_int(1))), accu(x));
    f->result = call2(x, "_==_", accu(x), literal(x, cel_int(1)));
    return fold(x, f);
}

/* The step of map, filter and transformList: accu + [element], where the filter (may be NULL) holds. */
static struct ast *finish_list(struct expansion *x, struct fold_parts *f, struct ast *filter, struct ast *element)
{
    f->accu = STR(CEL_ACCU);
    f->range = x->target;
    f->init = list_of(x, NULL);
    f->condition = literal(x, cel_bool(true));
    f->step = call2(x, "_+_", accu(x), list_of(x, element));
    if (filter)
        f->step = call3(x, "_?_:_", filter, f->step, accu(x));
    f->result = accu(x);
    return fold(x, f);
}

static struct ast *finish_map(struct expansion *x, struct fold_parts *f, struct ast *filter, struct ast *step)
{
    f->accu = STR(CEL_ACCU);
    f->range = x->target;
    f->init = cel_new_node(x->b, AST_MAP, x->pos);
    f->condition = literal(x, cel_bool(true));
    f->step = filter ? call3(x, "_?_:_", filter, step, accu(x)) : step;
    f->result = accu(x);
    return fold(x, f);
}

#define NOT_A_NAME "argument must be a simple name"

static struct ast *expand_all(struct expansion *x)
{
    struct fold_parts f = {0};

    return variable(x, x->args[0], NOT_A_NAME, &f.iter) ? finish_all(x, &f, x->args[1]) : NULL;
}

static struct ast *expand_exists(struct expansion *x)
{
    struct fold_parts f = {0};

    return variable(x, x->args[0], NOT_A_NAME, &f.iter) ? finish_exists(x, &f, x->args[1]) : NULL;
}

static struct ast *expand_exists_one(struct expansion *x)
{
    struct fold_parts f = {0};

    return variable(x, x->args[0], NOT_A_NAME, &f.iter) ? finish_exists_one(x, &f, x->args[1]) : NULL;
}

static struct ast *expand_all2(struct expansion *x)
{
    struct fold_parts f = {0};

    return two_variables(x, &f) ? finish_all(x, &f, x->args[2]) : NULL;
}

static struct ast *expand_exists2(struct expansion *x)
{
    struct fold_parts f = {0};

    return two_variables(x, &f) ? finish_exists(x, &f, x->args[2]) : NULL;
}

static struct ast *expand_exists_one2(struct expansion *x)
{
    struct fold_parts f = {0};

    return two_variables(x, &f) ? finish_exists_one(x, &f, x->args[2]) : NULL;
}

static struct ast *expand_map(struct expansion *x)
{
    struct fold_parts f = {0};

    if (!variable(x, x->args[0], "argument is not an identifier", &f.iter))
        return NULL;
    return finish_list(x, &f, x->n_args == 3 ? x->args[1] : NULL, x->args[x->n_args - 1]);
}

static struct ast *expand_filter(struct expansion *x)
{
    struct fold_parts f = {0};

    if (!variable(x, x->args[0], "argument is not an identifier", &f.iter))
        return NULL;
    return finish_list(x, &f, x->args[1], x->args[0]);
}

static struct ast *expand_transform_list(struct expansion *x)
{
    struct fold_parts f = {0};

    if (!two_variables(x, &f))
        return NULL;
    return finish_list(x, &f, x->n_args == 4 ? x->args[2] : NULL, x->args[x->n_args - 1]);
}

static struct ast *expand_transform_map(struct expansion *x)
{
    struct fold_parts f = {0};
    struct ast *step;

    if (!two_variables(x, &f))
        return NULL;
    step = call3(x, "cel.@mapInsert", accu(x), read_variable(x, f.iter), x->args[x->n_args - 1]);
    return finish_map(x, &f, x->n_args == 4 ? x->args[2] : NULL, step);
}

static struct ast *expand_transform_entry(struct expansion *x)
{
    struct fold_parts f = {0};
    struct ast *step;

    if (!two_variables(x, &f))
        return NULL;
    step = call2(x, "cel.@mapInsert", accu(x), x->args[x->n_args - 1]);
    return finish_map(x, &f, x->n_args == 4 ? x->args[2] : NULL, step);
}

/* ---- the others ---- */

static struct ast *expand_has(struct expansion *x)
{
    const struct ast *arg = x->args[0];

    if (arg->kind != AST_SELECT)
        return fail_at(x, arg, "invalid argument to has() macro");
    return cel_new_select(x->b, x->pos, arg->as.select.operand, arg->as.select.field, true);
}

/* A variable that is computed when it is first read: a fold over nothing whose accumulator it is. */
static struct ast *bind(struct expansion *x, struct str name, struct ast *init, struct ast *body)
{
    struct fold_parts f = {.iter = STR(CEL_UNUSED), .accu = name, .init = init, .result = body};

    f.range = list_of(x, NULL);
    f.condition = literal(x, cel_bool(false));
    f.step = read_variable(x, name);
    return fold(x, &f);
}

static struct ast *expand_bind(struct expansion *x)
{
    if (x->args[0]->kind != AST_IDENT)
        return fail_at(x, x->args[0], "cel.bind() variable names must be simple identifiers");
    return bind(x, x->args[0]->is_root_name ? STR(".") : x->args[0]->name, x->args[1], x->args[2]);
}

static struct ast *expand_optional(struct expansion *x, bool is_flat)
{
    const struct ast *name = x->args[0];
    struct ast *has, *value, *body, *none;

    if (name->kind != AST_IDENT)
        return fail_at(x, name,
                       is_flat ? "optFlatMap() variable name must be a simple identifier"
                               : "optMap() variable name must be a simple identifier");
    has = method(x, "hasValue", x->target, NULL);
    value = method(x, "value", copy_tree(x, x->target), NULL);
    body = bind(x, name->is_root_name ? STR(".") : name->name, value, x->args[1]);
    if (!is_flat)
        body = call1(x, "optional.of", body);
    none = cel_new_call(x->b, x->pos, STR("optional.none"), NULL, NULL, 0, false);
    return call3(x, "_?_:_", has, body, none);
}

static struct ast *expand_opt_map(struct expansion *x)
{
    return expand_optional(x, false);
}

static struct ast *expand_opt_flat_map(struct expansion *x)
{
    return expand_optional(x, true);
}

static struct ast *expand_sort_by(struct expansion *x)
{
    static const struct str input = {"@__sortBy_input__", sizeof("@__sortBy_input__") - 1};
    struct expansion inner = *x;
    struct ast *keys, *call, *node;

    if (x->target->kind == AST_LITERAL || x->target->kind == AST_MAP || x->target->kind == AST_MESSAGE)
        return fail_at(x, x->target,
                       "sortBy can only be applied to a list, identifier, comprehension, call or select expression");
    inner.target = cel_new_ident(x->b, x->pos, input);
    keys = inner.target ? expand_map(&inner) : NULL;
    call = keys ? method(x, "@sortByAssociatedKeys", cel_new_ident(x->b, x->pos, input), keys) : NULL;
    node = call ? bind(x, input, x->target, call) : NULL;
    return node;
}

static const struct macro {
    const char *name;
    bool is_receiver;
    size_t n_args;
    struct ast *(*expand)(struct expansion *x);
} macros[] = {
    {"has", false, 1, expand_has},
    {"all", true, 2, expand_all},
    {"exists", true, 2, expand_exists},
    {"exists_one", true, 2, expand_exists_one},
    {"map", true, 2, expand_map},
    {"map", true, 3, expand_map},
    {"filter", true, 2, expand_filter},
    {"all", true, 3, expand_all2},
    {"exists", true, 3, expand_exists2},
    {"existsOne", true, 3, expand_exists_one2},
    {"exists_one", true, 3, expand_exists_one2},
    {"transformList", true, 3, expand_transform_list},
    {"transformList", true, 4, expand_transform_list},
    {"transformMap", true, 3, expand_transform_map},
    {"transformMap", true, 4, expand_transform_map},
    {"transformMapEntry", true, 3, expand_transform_entry},
    {"transformMapEntry", true, 4, expand_transform_entry},
    {"optMap", true, 2, expand_opt_map},
    {"optFlatMap", true, 2, expand_opt_flat_map},
    {"sortBy", true, 2, expand_sort_by},
};

static const struct macro *macro_find(struct str name, const struct ast *target, size_t n_args)
{
    static const struct macro bind_macro = {"bind", true, 3, expand_bind};

    /* cel.bind is the only macro that asks for the name of its target. */
    if (target && target->kind == AST_IDENT && !target->is_root_name && str_is(target->name, "cel") &&
        str_is(name, "bind") && n_args == 3)
        return &bind_macro;
    for (size_t i = 0; i < ARRAY_SIZE(macros); i++)
        if (str_is(name, macros[i].name) && macros[i].is_receiver == (target != NULL) && macros[i].n_args == n_args)
            return &macros[i];
    return NULL;
}

struct ast *cel_new_call_or_macro(struct cel_builder *b, uint32_t pos, struct str name, struct ast *target,
                                  struct ast **args, size_t n_args)
{
    const struct macro *macro = macro_find(name, target, n_args);
    struct expansion x = {b, pos, target, args, n_args};
    uint32_t visit = target ? target->visit : 0;
    struct ast *node;

    if (!macro)
        return cel_new_call(b, pos, name, target, args, n_args, target != NULL);
    for (size_t i = 0; i < n_args; i++)
        visit = args[i]->visit > visit ? args[i]->visit : visit;
    node = macro->expand(&x);
    if (node)
        node->visit = visit + (target ? 1 : 0);
    return node;
}

struct ast *ast_child(const struct ast *node, size_t i)
{
    size_t n;

    switch (node->kind) {
    case AST_LITERAL:
    case AST_IDENT:
        return NULL;
    case AST_SELECT:
        return i == 0 ? node->as.select.operand : NULL;
    case AST_CALL:
        n = node->as.call.target ? 1 : 0;
        if (i < n)
            return node->as.call.target;
        return i - n < node->as.call.n_args ? node->as.call.args[i - n] : NULL;
    case AST_LIST:
    case AST_MESSAGE:
        return i < node->as.list.n ? node->as.list.items[i].value : NULL;
    case AST_MAP:
        if (i >= node->as.list.n * 2)
            return NULL;
        return i % 2 ? node->as.list.items[i / 2].value : node->as.list.items[i / 2].key;
    case AST_FOLD: {
        struct ast *const parts[] = {node->as.fold.range, node->as.fold.init, node->as.fold.condition,
                                     node->as.fold.step, node->as.fold.result};

        return i < ARRAY_SIZE(parts) ? parts[i] : NULL;
    }
    }
    return NULL;
}
