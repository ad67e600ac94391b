/* The worst case by which an API server refuses a new expression.
 *
 * The cost model of the evaluation with ranges in place of sizes. A size is known for literals, for what is reached
 * from `device` by a path (the limits of the API), for elements of literals, and for what some functions make of known
 * sizes; else it is anything up to 2^64-1. This follows the estimator of cel-go and the Kubernetes library function by
 * function, with their oddities, because the sum decides what an API server accepts. */
#include "allocator/cel/env.h"

#include <math.h>
#include <string.h>

#include "allocator/cel/range.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

static const struct range unknown = {0, UINT64_MAX};

/* A size that may be unknown. */
struct size {
    bool known;
    struct range range;
};

/* Sizes of the keys (or indexes) and values of a container, where both are known. */
struct entries {
    bool known;
    bool is_list;
    struct range key, value;
};

static struct entries unite_entries(struct entries a, struct entries b)
{
    if (!a.known || !b.known)
        return (struct entries){0};
    return (struct entries){true, a.is_list, range_unite(a.key, b.key), range_unite(a.value, b.value)};
}

/* ---- what a path from `device` leads to ---- */

enum place {
    PLACE_NONE, /* no path at all; a field `device` of it is taken for the variable, as in the real estimator */
    PLACE_LOST, /* a path that does not start at the device, or left what is known */
    PLACE_DEVICE,
    PLACE_DRIVER,
    PLACE_SHARED,
    PLACE_ATTRIBUTES,
    PLACE_ATTRIBUTE_DOMAIN,
    PLACE_ATTRIBUTE,
    PLACE_CAPACITIES,
    PLACE_CAPACITY_DOMAIN,
    PLACE_QUANTITY,
    PLACE_DOMAIN_NAME,
    PLACE_ID_NAME,
};

/* The largest size, what its keys are and what its elements are. */
static const struct {
    uint64_t max;
    enum place keys, items;
} places[] = {
    [PLACE_NONE] = {0, PLACE_LOST, PLACE_LOST},
    [PLACE_LOST] = {0, PLACE_LOST, PLACE_LOST},
    [PLACE_DEVICE] = {0, PLACE_LOST, PLACE_LOST},
    [PLACE_DRIVER] = {63, PLACE_LOST, PLACE_LOST},
    [PLACE_SHARED] = {1, PLACE_LOST, PLACE_LOST},
    [PLACE_ATTRIBUTES] = {32, PLACE_DOMAIN_NAME, PLACE_ATTRIBUTE_DOMAIN},
    [PLACE_ATTRIBUTE_DOMAIN] = {32, PLACE_ID_NAME, PLACE_ATTRIBUTE},
    [PLACE_ATTRIBUTE] = {64, PLACE_LOST, PLACE_LOST},
    [PLACE_CAPACITIES] = {32, PLACE_DOMAIN_NAME, PLACE_CAPACITY_DOMAIN},
    [PLACE_CAPACITY_DOMAIN] = {32, PLACE_ID_NAME, PLACE_QUANTITY},
    [PLACE_QUANTITY] = {0, PLACE_LOST, PLACE_LOST},
    [PLACE_DOMAIN_NAME] = {63, PLACE_LOST, PLACE_LOST},
    [PLACE_ID_NAME] = {32, PLACE_LOST, PLACE_LOST},
};

static enum place field_of(enum place place, struct str field)
{
    static const enum place fields[DEVICE_FIELDS] = {
        [DEVICE_DRIVER] = PLACE_DRIVER,
        [DEVICE_ATTRIBUTES] = PLACE_ATTRIBUTES,
        [DEVICE_CAPACITY] = PLACE_CAPACITIES,
        [DEVICE_SHARED] = PLACE_SHARED,
    };
    int number = cel_device_field_find(field);

    if (place == PLACE_NONE)
        return str_is(field, "device") ? PLACE_DEVICE : PLACE_LOST;
    if (place == PLACE_DEVICE)
        return number < 0 ? PLACE_LOST : fields[number];
    /* All attributes of a domain are alike; of capacities nothing is known by name. */
    return place == PLACE_ATTRIBUTE_DOMAIN ? PLACE_ATTRIBUTE : PLACE_LOST;
}

static struct size size_of_place(enum place place)
{
    if (place == PLACE_NONE || place == PLACE_LOST)
        return (struct size){0};
    return (struct size){true, {0, places[place].max}};
}

/* ---- state ---- */

struct local {
    struct str name;
    enum place place;
    struct size size;
    struct entries entries;
};

struct estimator {
    struct arena *arena;
    enum place *places; /* by node id, as the next two */
    struct size *sizes;
    struct entries *entries;
    struct local *locals;
    size_t n_locals, cap_locals;
};

/* An operand as the rules see it. */
struct operand {
    const struct ast *ast; /* NULL for the element of a list */
    const struct cel_type *type;
    enum place place;
    struct size size;
};

/* What a call costs beside its operands, and the size of its result. */
struct call_cost {
    struct range cost;
    struct size size;
};

static struct range cost_of(struct estimator *s, const struct ast *e);

static const struct local *find_local(const struct estimator *s, struct str name)
{
    for (size_t i = s->n_locals; i-- > 0;)
        if (str_eq(s->locals[i].name, name))
            return &s->locals[i];
    return NULL;
}

static void push_local(struct estimator *s, struct local local)
{
    if (s->n_locals == s->cap_locals) {
        size_t cap = s->cap_locals ? s->cap_locals * 2 : 16;
        struct local *locals = arena_array(s->arena, struct local, cap);

        if (s->n_locals)
            memcpy(locals, s->locals, s->n_locals * sizeof(*locals));
        s->locals = locals;
        s->cap_locals = cap;
    }
    s->locals[s->n_locals++] = local;
}

static const struct local *local_of(const struct estimator *s, const struct ast *e)
{
    return e->kind == AST_IDENT && !e->is_shadowed ? find_local(s, e->name) : NULL;
}

static enum place place_of(const struct estimator *s, const struct ast *e)
{
    const struct local *local = local_of(s, e);

    return local ? local->place : s->places[e->id];
}

static bool is_scalar(const struct cel_type *type)
{
    if (cel_type_is_optional(type))
        return is_scalar(type->params[0]);
    return type->kind == CEL_T_BOOL || type->kind == CEL_T_DOUBLE || type->kind == CEL_T_DURATION ||
           type->kind == CEL_T_INT || type->kind == CEL_T_TIMESTAMP || type->kind == CEL_T_UINT;
}

static struct size size_of_literal(const struct ast *e)
{
    if (e->kind == AST_LIST || e->kind == AST_MAP)
        return (struct size){true, range_fixed(e->as.list.n)};
    if (e->kind != AST_LITERAL)
        return (struct size){0};
    if (e->as.literal.kind == CEL_V_STRING)
        return (struct size){true, range_fixed(utf8_count(cel_str(e->as.literal)))};
    return (struct size){true, range_fixed(e->as.literal.kind == CEL_V_BYTES ? e->as.literal.n : 1)};
}

static struct size size_of(struct estimator *s, const struct ast *e)
{
    struct size size = s->sizes[e->id];
    const struct local *local;

    if (size.known || (size = size_of_literal(e)).known)
        return size;
    size = size_of_place(place_of(s, e));
    if (size.known) {
        s->sizes[e->id] = size;
        return size;
    }
    if (is_scalar(e->type))
        return (struct size){true, range_fixed(1)};
    local = local_of(s, e);
    return local ? local->size : size;
}

static struct range range_of(struct size size)
{
    return size.known ? size.range : unknown;
}

static struct entries entries_of(struct estimator *s, const struct ast *e)
{
    const struct local *local;

    if (s->entries[e->id].known)
        return s->entries[e->id];
    local = local_of(s, e);
    return local ? local->entries : (struct entries){0};
}

static void set_size(struct estimator *s, const struct ast *e, struct size size)
{
    if (size.known)
        s->sizes[e->id] = size;
}

static void set_entries(struct estimator *s, const struct ast *e, struct entries entries)
{
    if (entries.known)
        s->entries[e->id] = entries;
}

static struct operand operand_of(struct estimator *s, const struct ast *e)
{
    enum place place = place_of(s, e);

    return (struct operand){e, e->type, place, size_of(s, e)};
}

/* The size of an operand for the rules of the libraries. */
static struct range operand_range(const struct operand *o)
{
    return o->size.known ? o->size.range : range_of(size_of_place(o->place));
}

/* ---- the list and set libraries ---- */

static uint64_t literal_uint(const struct operand *o, uint64_t otherwise)
{
    if (!o->ast || o->ast->kind != AST_LITERAL || o->ast->as.literal.kind != CEL_V_INT)
        return otherwise;
    return o->ast->as.literal.as.i < 0 ? 0 : (uint64_t)o->ast->as.literal.as.i;
}

static struct call_cost allocating(double factor, struct range size)
{
    return (struct call_cost){range_add(range_scale(size, factor), range_fixed(11)), {true, size}};
}

static bool list_cost(enum cel_overload_id id, const struct operand *target, const struct operand *args, size_t n_args,
                      struct call_cost *out)
{
    struct range a, b;

    switch (id) {
    case OVL_LIST_SLICE:
        a = operand_range(target);
        *out = allocating(1, range_fixed(literal_uint(&args[1], a.max) - literal_uint(&args[0], 0)));
        return true;
    case OVL_LIST_FLATTEN:
    case OVL_LIST_FLATTEN_INT:
        *out = allocating(n_args ? (double)literal_uint(&args[0], UINT64_MAX) : 1, operand_range(target));
        return true;
    case OVL_LIST_RANGE:
        *out = allocating(1, range_fixed(literal_uint(&args[0], UINT64_MAX)));
        return true;
    case OVL_LIST_REVERSE:
        *out = allocating(1, operand_range(target));
        return true;
    case OVL_LIST_DISTINCT:
    case OVL_LIST_SORT:
    case OVL_LIST_SORT_TEXTS:
        a = operand_range(target);
        *out = allocating(id == OVL_LIST_SORT_TEXTS ? 2.1 : 2.0, range_multiply(a, a));
        return true;
    case OVL_LIST_SORT_BY:
    case OVL_LIST_SORT_BY_TEXTS:
        a = operand_range(&args[0]);
        *out = allocating(id == OVL_LIST_SORT_BY_TEXTS ? 2.1 : 2.0, range_multiply(a, a));
        return true;
    case OVL_SETS_CONTAINS:
    case OVL_SETS_INTERSECTS:
    case OVL_SETS_EQUIVALENT:
        a = operand_range(&args[0]);
        b = operand_range(&args[1]);
        out->cost = range_add(range_scale(range_multiply(a, b), id == OVL_SETS_EQUIVALENT ? 2 : 1), range_fixed(1));
        out->size = (struct size){0};
        return true;
    default:
        return false;
    }
}

/* ---- the Kubernetes library ---- */

static struct operand element_of(const struct operand *list)
{
    struct operand element = {.type = list->type->params[0]};

    element.place = places[list->place].items;
    return element;
}

static struct range traverse_cost(enum cel_function_id function, const struct operand *target)
{
    struct range size = operand_range(target), each = range_fixed(1);
    struct operand element;

    if (!target->type->n_params)
        return function == FN_INCLUDES ? range_multiply(size, each) : range_scale(size, 0.1);
    element = element_of(target);
    if (element.type->kind == CEL_T_STRING || element.type->kind == CEL_T_BYTES)
        each = range_add(each, range_scale(operand_range(&element), 0.1));
    return range_multiply(size, each);
}

/* A quotient beyond 64 bits becomes 2^63, as it does in the real estimator on the machines that run it. */
static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    double d = ceil((double)a / (double)b);

    return d >= 0x1p64 ? (uint64_t)1 << 63 : (uint64_t)d;
}

/* How long a text may become when something in it is replaced. */
static struct range replaced_size(struct range text, struct range old, struct range with)
{
    struct range count = {0, 0}, kept = {0, 0};

    if (old.min == 0) {
        count.max = text.max < UINT64_MAX ? text.max + 1 : text.max;
        kept.max = text.max;
    } else if (with.max <= old.min) {
        kept.max = text.max;
    } else {
        count.max = ceil_div(text.max, old.min);
    }
    if (old.max == 0) {
        count.min = text.min < UINT64_MAX ? text.min + 1 : text.min;
        kept.min = text.min;
    } else if (old.max <= with.min) {
        kept.min = text.min;
    } else {
        count.min = ceil_div(text.min, old.max);
    }
    return range_add(range_multiply(count, with), kept);
}

static struct range joined_size(const struct operand *target, const struct operand *args, size_t n_args)
{
    struct range list = operand_range(target), size = {0, 0};

    if (target->type->n_params) {
        struct operand element = element_of(target);

        size = range_multiply(list, operand_range(&element));
    }
    if (n_args) {
        struct range gaps = {list.min ? list.min - 1 : 0, list.max ? list.max - 1 : 0};

        size = range_add(size, range_multiply(operand_range(&args[0]), gaps));
    }
    return size;
}

static struct range contains_cost(enum cel_function_id function, enum cel_overload_id id, const struct operand *arg)
{
    static const struct range address = {4, 16};
    struct range cost = range_scale(range_add(address, address), 0.1);

    if (function == FN_CONTAINS_CIDR)
        cost = range_add(range_add(cost, range_scale(address, 0.1)), range_fixed(1));
    if (id == OVL_CIDR_CONTAINS_IP_STRING || id == OVL_CIDR_CONTAINS_CIDR_STRING)
        cost = range_add(cost, range_scale(operand_range(arg), 0.1));
    return cost;
}

/* == of two values of the same library type. */
static bool equality_cost(const struct operand *args, struct range *out)
{
    const struct cel_type *type = args[0].type;

    if (strcmp(cel_type_name(type), cel_type_name(args[1].type)) != 0)
        return false;
    if (type == &cel_t_ip || type == &cel_t_cidr || type == &cel_t_quantity || type == &cel_t_semver)
        *out = range_fixed(1);
    else if (type == &cel_t_format)
        *out = range_scale((struct range){1, 64}, 0.1);
    else if (type == &cel_t_url)
        *out = range_scale((struct range){1, args[1].size.known ? args[1].size.range.max : 1}, 0.1);
    else
        return false;
    return true;
}

static struct call_cost sized(struct range cost, struct range size)
{
    return (struct call_cost){cost, {true, size}};
}

static struct call_cost unsized(struct range cost)
{
    return (struct call_cost){cost, {0}};
}

static struct call_cost split_cost(struct range text, const struct operand *args, size_t n_args)
{
    uint64_t max = text.max;

    if (n_args > 1 && args[1].ast->kind == AST_LITERAL && args[1].ast->as.literal.kind == CEL_V_INT)
        max = args[1].ast->as.literal.as.u;
    return sized(range_scale(text, 2 * 0.1), (struct range){0, max});
}

/* Functions whose rule looks at the receiver; all of them have one. */
static bool receiver_cost(enum cel_function_id function, const struct operand *target, const struct operand *args,
                          size_t n_args, struct call_cost *out)
{
    struct range text = operand_range(target), size;

    switch (function) {
    case FN_TRAVERSE:
    case FN_INCLUDES:
        *out = unsized(traverse_cost(function, target));
        return true;
    case FN_SCAN_TARGET:
        *out = sized(range_scale(text, 0.1), text);
        return true;
    case FN_REPLACE:
        *out = sized(range_scale(text, 2 * 0.1), replaced_size(text, operand_range(&args[0]), operand_range(&args[1])));
        return true;
    case FN_SPLIT:
        *out = split_cost(text, args, n_args);
        return true;
    case FN_JOIN:
        size = joined_size(target, args, n_args);
        *out = sized(range_scale(size, 0.1), size);
        return true;
    case FN_FIND:
        *out = sized(range_multiply(range_scale(range_add(text, range_fixed(1)), 0.1),
                                    range_scale(operand_range(&args[0]), 0.25)),
                     (struct range){0, text.max});
        return true;
    default:
        return false;
    }
}

static bool kubernetes_cost(enum cel_function_id function, enum cel_overload_id id, const struct operand *target,
                            const struct operand *args, size_t n_args, struct call_cost *out)
{
    struct range cost;

    if (target && receiver_cost(function, target, args, n_args, out))
        return true;
    switch (function) {
    case FN_SCAN:
        *out = sized(range_scale(operand_range(&args[0]), 0.1), operand_range(&args[0]));
        return true;
    case FN_PARSE:
        *out = unsized(range_scale(operand_range(&args[0]), 0.1));
        return true;
    case FN_IP:
        *out = unsized(id == OVL_CIDR_IP ? range_fixed(1) : range_scale(operand_range(&args[0]), 0.1));
        return true;
    case FN_CANONICAL:
        *out = unsized(range_scale(operand_range(&args[0]), 2 * 0.1));
        return true;
    case FN_ONE:
        *out = unsized(range_fixed(1));
        return true;
    case FN_CONTAINS_IP:
    case FN_CONTAINS_CIDR:
        *out = unsized(contains_cost(function, id, &args[0]));
        return true;
    case FN_AUTHORIZE:
        *out = unsized(range_fixed(350000));
        return true;
    case FN_SELECTOR:
        cost = operand_range(&args[0]);
        *out = unsized(
            range_add(range_add(range_fixed(10), range_scale(cost, 0.1)), range_scale(range_scale(cost, 0.5), 50)));
        return true;
    case FN_VALIDATE:
        *out = unsized(range_scale(range_scale(operand_range(&args[0]), 0.1), 128 * 0.25));
        return true;
    case FN_EQUALS:
        if (!equality_cost(args, &cost))
            return false;
        *out = unsized(cost);
        return true;
    default:
        return false;
    }
}

/* ---- the language ---- */

static struct call_cost concatenation_cost(struct estimator *s, const struct ast *e, enum cel_overload_id id,
                                           const struct operand *args)
{
    struct range size = range_add(range_of(args[0].size), range_of(args[1].size));

    set_entries(s, e, unite_entries(entries_of(s, args[0].ast), entries_of(s, args[1].ast)));
    return sized(id == OVL_ADD_LIST ? range_fixed(1) : range_scale(size, 0.1), size);
}

static struct range smaller_cost(const struct operand *args)
{
    struct range a = range_of(args[0].size), b = range_of(args[1].size);
    uint64_t max = a.max < b.max ? a.max : b.max;

    return range_scale((struct range){max ? 1 : 0, max}, 0.1);
}

static struct call_cost language_cost(struct estimator *s, const struct ast *e, enum cel_overload_id id,
                                      const struct operand *target, const struct operand *args)
{
    const struct operand *first = target ? target : &args[0], *second = target ? &args[0] : &args[1];
    struct range a = range_of(first->size);

    switch (id) {
    case OVL_FORMAT:
        return unsized(range_scale(a, 0.1));
    case OVL_STRING_TO_BYTES:
        return sized(range_scale(a, 0.1), (struct range){a.min, a.max * 4});
    case OVL_BYTES_TO_STRING:
        return sized(range_scale(a, 0.1), (struct range){a.min / 4, a.max});
    case OVL_QUOTE:
        return sized(range_scale(a, 0.1), (struct range){a.min + 2, a.max * 2 + 2});
    case OVL_STARTS_WITH:
    case OVL_ENDS_WITH:
        return unsized(range_scale(range_of(args[0].size), 0.1));
    case OVL_IN_LIST:
        return unsized(range_of(args[1].size));
    case OVL_MATCHES:
    case OVL_MATCHES_STRING:
        return unsized(
            range_multiply(range_scale(range_add(a, range_fixed(1)), 0.1), range_scale(range_of(second->size), 0.25)));
    case OVL_CONTAINS_STRING:
        return unsized(range_multiply(range_scale(a, 0.1), range_scale(range_of(second->size), 0.1)));
    case OVL_ADD_STRING:
    case OVL_ADD_BYTES:
    case OVL_ADD_LIST:
        return concatenation_cost(s, e, id, args);
    case OVL_ORDER_TEXTS:
    case OVL_EQUALS:
    case OVL_NOT_EQUALS:
        return unsized(smaller_cost(args));
    default:
        return unsized(range_fixed(1));
    }
}

#define MAX_ARGS 8

/* A call as its operands and their costs. */
struct call {
    const struct ast *ast;
    struct operand args[MAX_ARGS], target;
    struct range costs[MAX_ARGS];
    size_t n_args;
    bool has_target;
};

static struct call_cost overload_cost(struct estimator *s, const struct call *call, const struct cel_overload *overload)
{
    enum cel_function_id function = call->ast->as.call.function->id;
    const struct operand *target = call->has_target ? &call->target : NULL;
    struct range sum = {0, 0};
    struct call_cost out;

    if (overload->id == OVL_LOGICAL_AND || overload->id == OVL_LOGICAL_OR)
        return unsized((struct range){call->costs[0].min, range_add(call->costs[0], call->costs[1]).max});
    if (overload->id == OVL_CONDITIONAL) {
        set_entries(s, call->ast, unite_entries(entries_of(s, call->args[1].ast), entries_of(s, call->args[2].ast)));
        return sized(range_add(call->costs[0], range_unite(call->costs[1], call->costs[2])),
                     range_unite(range_of(call->args[1].size), range_of(call->args[2].size)));
    }
    for (size_t i = 0; i < call->n_args; i++)
        sum = range_add(sum, call->costs[i]);
    if (!list_cost(overload->id, target, call->args, call->n_args, &out) &&
        !kubernetes_cost(function, overload->id, target, call->args, call->n_args, &out))
        out = language_cost(s, call->ast, overload->id, target, call->args);
    out.cost = range_add(out.cost, sum);
    return out;
}

/* m[i] leads on to the element. */
static void index_result(struct estimator *s, const struct call *call, enum cel_overload_id id, struct size *size)
{
    struct entries entries;

    if (id != OVL_INDEX_LIST && id != OVL_INDEX_MAP)
        return;
    entries = entries_of(s, call->args[0].ast);
    *size = (struct size){entries.known, entries.value};
    s->places[call->ast->id] = places[place_of(s, call->args[0].ast)].items;
}

static struct range call_cost(struct estimator *s, const struct ast *e)
{
    struct call call = {.ast = e, .n_args = e->as.call.n_args, .has_target = e->as.call.target != NULL};
    struct range sum = {0, 0}, cost = {UINT64_MAX, 0};
    struct size size = {0};

    if (call.n_args > MAX_ARGS || !e->as.call.n_overloads)
        return unknown;
    for (size_t i = 0; i < call.n_args; i++) {
        call.costs[i] = cost_of(s, e->as.call.args[i]);
        call.args[i] = operand_of(s, e->as.call.args[i]);
    }
    if (e->as.call.function->id == FN_DYN) {
        set_size(s, e, size_of(s, e->as.call.args[0]));
        set_entries(s, e, entries_of(s, e->as.call.args[0]));
        return range_add(range_fixed(1), call.costs[0]);
    }
    if (call.has_target) {
        sum = cost_of(s, e->as.call.target);
        call.target = operand_of(s, e->as.call.target);
    }
    for (size_t i = 0; i < e->as.call.n_overloads; i++) {
        struct call_cost one = overload_cost(s, &call, e->as.call.overloads[i]);

        cost = range_unite(cost, one.cost);
        if (one.size.known)
            size = size.known ? (struct size){true, range_unite(size.range, one.size.range)} : one.size;
        index_result(s, &call, e->as.call.overloads[i]->id, &size);
        if (!size.known)
            size = size_of(s, e);
    }
    set_size(s, e, size);
    return range_add(sum, cost);
}

static struct range select_cost(struct estimator *s, const struct ast *e)
{
    const struct ast *operand = e->as.select.operand;
    struct range sum = cost_of(s, operand);

    if (e->as.select.test_only)
        return sum;
    if (operand->type->kind == CEL_T_MAP || operand->type->kind == CEL_T_STRUCT)
        sum = range_add(sum, range_fixed(1));
    s->places[e->id] = field_of(place_of(s, operand), e->as.select.field);
    return sum;
}

static struct range literal_cost(struct estimator *s, const struct ast *e)
{
    struct entries entries = {true, e->kind == AST_LIST, {UINT64_MAX, 0}, {UINT64_MAX, 0}};
    struct range sum = {0, 0};

    if (!e->as.list.n)
        entries.key.min = entries.value.min = 0;
    if (entries.is_list)
        entries.key = range_fixed(1);
    for (size_t i = 0; i < e->as.list.n; i++) {
        const struct ast_item *item = &e->as.list.items[i];

        if (item->key)
            sum = range_add(sum, cost_of(s, item->key));
        sum = range_add(sum, cost_of(s, item->value));
        if (item->key)
            entries.key = range_unite(entries.key, range_of(size_of(s, item->key)));
        entries.value = range_unite(entries.value, range_of(size_of(s, item->value)));
    }
    if (e->kind != AST_MESSAGE)
        set_entries(s, e, entries);
    return range_add(sum, range_fixed(e->kind == AST_LIST ? 10 : e->kind == AST_MAP ? 30 : 40));
}

/* ---- loops ---- */

/* The variables of a loop: what they are reached by and how large they are. */
static void push_iteration(struct estimator *s, const struct ast *e)
{
    const struct ast *range = e->as.fold.range;
    struct entries entries = entries_of(s, range);
    bool is_list = entries.known ? entries.is_list : range->type->kind == CEL_T_LIST;
    enum place place = place_of(s, range);
    struct local key = {.size = {entries.known, entries.key}}, value = {.size = {entries.known, entries.value}};

    key.place = is_list ? (place == PLACE_ATTRIBUTE_DOMAIN ? PLACE_ATTRIBUTE : PLACE_LOST) : places[place].keys;
    value.place = places[place].items;
    if (!e->as.fold.iter2.len) {
        struct local one = is_list ? value : key;

        one.name = e->as.fold.iter;
        push_local(s, one);
        return;
    }
    key.name = e->as.fold.iter;
    value.name = e->as.fold.iter2;
    push_local(s, key);
    push_local(s, value);
}

static struct range bind_cost(struct estimator *s, const struct ast *e)
{
    const struct ast *init = e->as.fold.init, *result = e->as.fold.result;
    struct range sum = range_add(cost_of(s, e->as.fold.range), cost_of(s, init));
    size_t mark = s->n_locals;

    push_local(s, (struct local){e->as.fold.accu, place_of(s, init), size_of(s, init), entries_of(s, init)});
    sum = range_add(sum, cost_of(s, result));
    s->n_locals = mark;
    set_size(s, e, size_of(s, result));
    set_entries(s, e, entries_of(s, result));
    return sum;
}

static bool is_bind(const struct ast *e)
{
    const struct ast *range = e->as.fold.range, *condition = e->as.fold.condition;

    return range->kind == AST_LIST && !range->as.list.n && condition->kind == AST_LITERAL &&
           condition->as.literal.kind == CEL_V_BOOL && !condition->as.literal.as.b;
}

static struct range fold_cost(struct estimator *s, const struct ast *e)
{
    const struct ast *init = e->as.fold.init;
    struct range sum, turn, count;
    size_t mark = s->n_locals;

    if (is_bind(e))
        return bind_cost(s, e);
    sum = range_add(cost_of(s, e->as.fold.range), cost_of(s, init));
    push_local(s, (struct local){e->as.fold.accu, place_of(s, init), size_of(s, init), entries_of(s, init)});
    push_iteration(s, e);
    turn = cost_of(s, e->as.fold.condition);
    turn = range_add(cost_of(s, e->as.fold.step), turn);
    s->n_locals = mark + 1;
    sum = range_add(sum, cost_of(s, e->as.fold.result));
    s->n_locals = mark;
    count = range_of(size_of(s, e->as.fold.range));
    sum = range_add(sum, range_multiply(count, turn));
    if (init->kind == AST_LITERAL) {
        set_size(s, e, size_of(s, init));
    } else if (init->kind == AST_LIST || init->kind == AST_MAP) {
        set_size(s, e, (struct size){true, count});
        set_entries(s, e, entries_of(s, e->as.fold.step));
    }
    return sum;
}

static struct range cost_of(struct estimator *s, const struct ast *e)
{
    const struct local *local;

    switch (e->kind) {
    case AST_LITERAL:
        return range_fixed(0);
    case AST_IDENT:
        local = local_of(s, e);
        s->places[e->id] = local                                          ? local->place
                           : str_is(e->name, "device") && !e->is_shadowed ? PLACE_DEVICE
                                                                          : PLACE_LOST;
        return range_fixed(1);
    case AST_SELECT:
        return select_cost(s, e);
    case AST_CALL:
        return call_cost(s, e);
    case AST_LIST:
    case AST_MAP:
    case AST_MESSAGE:
        return literal_cost(s, e);
    case AST_FOLD:
        return fold_cost(s, e);
    }
    return unknown;
}

uint64_t cel_estimate(const struct cel_env *env, const struct ast *root, uint32_t n_ids, struct arena *arena)
{
    struct estimator s = {.arena = arena};

    (void)env;
    s.places = arena_array(arena, enum place, n_ids);
    s.sizes = arena_array(arena, struct size, n_ids);
    s.entries = arena_array(arena, struct entries, n_ids);
    return cost_of(&s, root).max;
}
