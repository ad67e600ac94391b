/* What an evaluation costs, to the unit of the real implementation.
 *
 * Its tracker pushes the value of every node on a stack, with the node's id, and after a call looks for the operands by
 * their ids from the top down, dropping all above. A call whose operands are not all found costs nothing. Operands get
 * lost where an evaluation was cut short by an error; these accidents are part of the costs, so the stack is real. */
#include <math.h>
#include <string.h>

#include "allocator/cel/eval.h"
#include "allocator/cel/namedformat.h"
#include "allocator/cel/net.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

void cel_track(struct cel_eval *e, uint32_t id, struct cel_value v)
{
    if (e->is_unwatched)
        return;
    if (e->n_stack == e->cap_stack) {
        struct cel_tracked *stack = cel_alloc(e, e->cap_stack * 2, sizeof(*stack));

        memcpy(stack, e->stack, e->n_stack * sizeof(*stack));
        e->stack = stack;
        e->cap_stack *= 2;
    }
    e->live[id]++;
    e->stack[e->n_stack++] = (struct cel_tracked){id, v};
}

/* Drop the topmost entry of an id, which is there, and all above it. */
static struct cel_value pop_to(struct cel_eval *e, uint32_t id)
{
    const struct cel_tracked *top;

    do {
        top = &e->stack[--e->n_stack];
        e->live[top->id]--;
    } while (top->id != id);
    return top->v;
}

void cel_track_drop(struct cel_eval *e, uint32_t id)
{
    if (e->live[id] && !e->is_unwatched)
        pop_to(e, id);
}

bool cel_track_drop_args(struct cel_eval *e, struct cel_node *const *args, size_t n, struct cel_value *out)
{
    if (e->is_unwatched)
        return false;
    while (n) {
        uint32_t id = cel_node_id(args[--n]);
        struct cel_value v;

        if (!e->live[id])
            return false;
        v = pop_to(e, id);
        if (out)
            out[n] = v;
    }
    return true;
}

void cel_charge(struct cel_eval *e, uint64_t cost)
{
    if (e->is_unwatched)
        return;
    if (__builtin_add_overflow(e->cost, cost, &e->cost))
        e->cost = UINT64_MAX;
    if (e->cost > e->limit)
        cel_fatal(e, "operation cancelled: actual cost limit exceeded");
}

void cel_uncharge(struct cel_eval *e)
{
    if (e->is_unwatched)
        return;
    e->cost--;
    cel_charge(e, 0);
}

/* ---- sizes ---- */

/* The size of a value as the libraries measure it. */
static uint64_t size_of(struct cel_value v)
{
    switch ((enum cel_kind)v.kind) {
    case CEL_V_STRING:
        return utf8_count(cel_str(v));
    case CEL_V_BYTES:
        return v.n;
    case CEL_V_LIST:
        return (uint64_t)cel_list_len(v);
    case CEL_V_MAP:
        return v.as.map->n;
    case CEL_V_IP:
        return v.as.ip->family == 4 ? 4 : 16;
    case CEL_V_CIDR:
        return (v.as.cidr->prefix_length + 7u) / 8;
    default:
        return 1;
    }
}

uint64_t cel_size(struct cel_value v)
{
    while (v.kind == CEL_V_OPTIONAL && v.as.content)
        v = *v.as.content;
    return size_of(v);
}

static uint64_t ceil_of(double d)
{
    return (uint64_t)ceil(d);
}

static uint64_t tenth(uint64_t size)
{
    return ceil_of((double)size * 0.1);
}

/* Walk a value: 1 per scalar, a tenth of the octets per text. */
static uint64_t traversal(struct cel_eval *e, struct cel_value v)
{
    uint64_t cost = 0;

    if (!cel_work(e, 1))
        return 0;
    switch ((enum cel_kind)v.kind) {
    case CEL_V_STRING:
    case CEL_V_BYTES:
        return (uint64_t)((double)v.n * 0.1);
    case CEL_V_LIST:
        for (int64_t i = 0; i < cel_list_len(v) && !e->fatal; i++)
            cost += traversal(e, cel_list_at(v, i));
        return cost;
    case CEL_V_MAP:
        for (size_t i = 0; i < v.as.map->n && !e->fatal; i++)
            cost += traversal(e, v.as.map->entries[i].key) + traversal(e, v.as.map->entries[i].value);
        return cost;
    default:
        return 1;
    }
}

/* ---- rules of overloads in the list and set libraries ---- */

static uint64_t saturating_mul(uint64_t a, uint64_t b)
{
    uint64_t c;

    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

/* A call that makes a list. */
static uint64_t allocating(double factor, uint64_t size)
{
    double d = (double)size * (factor < 0 ? 1 : factor);

    return (d >= 0x1p64 ? UINT64_MAX - 11 : (uint64_t)d) + 11;
}

static uint64_t comparing(struct cel_eval *e, struct cel_value list)
{
    struct cel_value first;
    uint64_t n;

    if (list.kind != CEL_V_LIST) {
        cel_fatal(e, "internal error: interface conversion: the value is not traits.Lister");
        return 0;
    }
    n = (uint64_t)cel_list_len(list);
    if (!n)
        return allocating(2, 0);
    first = cel_list_at(list, 0);
    return allocating(first.kind == CEL_V_STRING || first.kind == CEL_V_BYTES ? 2.1 : 2.0, saturating_mul(n, n));
}

static bool cost_of_list(struct cel_eval *e, enum cel_overload_id id, const struct cel_value *args, size_t n_args,
                         struct cel_value result, uint64_t *out)
{
    switch (id) {
    case OVL_LIST_SLICE:
    case OVL_LIST_RANGE:
    case OVL_LIST_REVERSE:
        *out = allocating(1, size_of(result));
        return true;
    case OVL_LIST_FLATTEN:
    case OVL_LIST_FLATTEN_INT:
        if (n_args == 2 && args[1].kind != CEL_V_INT) {
            cel_fatal(e, "internal error: interface conversion: the value is not types.Int");
            return true;
        }
        *out = allocating(n_args == 2 ? (double)args[1].as.i : 1.0, size_of(args[0]));
        return true;
    case OVL_LIST_DISTINCT:
    case OVL_LIST_SORT:
    case OVL_LIST_SORT_TEXTS:
        *out = comparing(e, args[0]);
        return true;
    case OVL_LIST_SORT_BY:
    case OVL_LIST_SORT_BY_TEXTS:
        *out = comparing(e, args[1]);
        return true;
    case OVL_SETS_CONTAINS:
    case OVL_SETS_INTERSECTS:
        *out = 1 + (uint64_t)((double)(size_of(args[0]) * size_of(args[1])));
        return true;
    case OVL_SETS_EQUIVALENT:
        *out = 1 + (uint64_t)((double)(size_of(args[0]) * size_of(args[1])) * 2);
        return true;
    default:
        return false;
    }
}

/* ---- rules of the Kubernetes libraries, by function name ---- */

static uint64_t contains_cost(enum cel_function_id function, enum cel_overload_id id, const struct cel_value *args)
{
    uint64_t size = size_of(args[0]), cost = tenth(size * 2);

    if (function == FN_CONTAINS_CIDR)
        cost += tenth(size) + 1;
    if (id == OVL_CIDR_CONTAINS_IP_STRING || id == OVL_CIDR_CONTAINS_CIDR_STRING)
        cost += tenth(size_of(args[1]));
    return cost;
}

static bool cost_of_kubernetes(struct cel_eval *e, enum cel_function_id function, enum cel_overload_id id,
                               const struct cel_value *args, size_t n_args, struct cel_value result, uint64_t *out)
{
    switch (function) {
    case FN_TRAVERSE:
    case FN_INCLUDES:
        *out = n_args ? traversal(e, args[0]) : 0;
        return true;
    case FN_SCAN:
    case FN_SCAN_TARGET:
    case FN_PARSE:
        *out = tenth(size_of(args[0]));
        return true;
    case FN_IP:
        *out = id == OVL_CIDR_IP ? 1 : tenth(size_of(args[0]));
        return true;
    case FN_REPLACE:
    case FN_SPLIT:
    case FN_CANONICAL:
        *out = ceil_of((double)size_of(args[0]) * 2 * 0.1);
        return true;
    case FN_JOIN:
        *out = ceil_of((double)size_of(result) * 2 * 0.1);
        return true;
    case FN_FIND:
        *out = ceil_of((1.0 + (double)size_of(args[0])) * 0.1) * ceil_of((double)size_of(args[1]) * 0.25);
        return true;
    case FN_CONTAINS_IP:
    case FN_CONTAINS_CIDR:
        *out = contains_cost(function, id, args);
        return true;
    case FN_VALIDATE:
        if (args[0].kind != CEL_V_FORMAT)
            return false;
        *out = ceil_of((1.0 + (double)size_of(args[1])) * 0.1) * ceil_of(args[0].as.format->regex_size * 0.25);
        return true;
    case FN_ONE:
        *out = 1;
        return true;
    case FN_AUTHORIZE:
        *out = 350000;
        return true;
    case FN_SELECTOR:
        *out = 10 + tenth(size_of(args[1])) + ceil_of((double)size_of(args[1]) * 0.5) * 50;
        return true;
    case FN_EQUALS:
        if (args[0].kind < CEL_V_QUANTITY)
            return false;
        *out = 1;
        return true;
    default:
        return false;
    }
}

/* ---- rules of the language ---- */

static uint64_t cost_of_language(enum cel_overload_id id, const struct cel_value *args)
{
    uint64_t a, b;

    switch (id) {
    case OVL_STARTS_WITH:
    case OVL_ENDS_WITH:
        return tenth(cel_size(args[1]));
    case OVL_STRING_TO_BYTES:
    case OVL_BYTES_TO_STRING:
    case OVL_QUOTE:
    case OVL_FORMAT:
        return tenth(cel_size(args[0]));
    case OVL_IN_LIST:
        return cel_size(args[1]);
    case OVL_ORDER_TEXTS:
    case OVL_EQUALS:
    case OVL_NOT_EQUALS:
        a = cel_size(args[0]);
        b = cel_size(args[1]);
        return tenth(a < b ? a : b);
    case OVL_ADD_STRING:
    case OVL_ADD_BYTES:
        return tenth(cel_size(args[0]) + cel_size(args[1]));
    case OVL_MATCHES:
    case OVL_MATCHES_STRING:
        return ceil_of((1.0 + (double)cel_size(args[0])) * 0.1) * ceil_of((double)cel_size(args[1]) * 0.25);
    case OVL_CONTAINS_STRING:
        return tenth(cel_size(args[0])) * tenth(cel_size(args[1]));
    default:
        return 1;
    }
}

/* Which overload and function a node is, for the rules. */
static enum cel_overload_id overload_of(const struct cel_node *node)
{
    if (node->op == OP_EQUAL)
        return OVL_EQUALS;
    if (node->op == OP_NOT_EQUAL)
        return OVL_NOT_EQUALS;
    return node->as.call.overload ? node->as.call.overload->id : OVL_NONE;
}

static enum cel_function_id function_of(const struct cel_node *node)
{
    if (node->op == OP_EQUAL)
        return FN_EQUALS;
    return node->op == OP_CALL && node->as.call.function ? node->as.call.function->id : FN_OTHER;
}

#define MAX_ARGS 8

void cel_charge_call(struct cel_eval *e, const struct cel_node *node, struct cel_value result)
{
    enum cel_overload_id id = overload_of(node);
    struct cel_value args[MAX_ARGS] = {{0}};
    uint64_t cost = 1;

    if (e->is_unwatched)
        return;
    if (node->n <= MAX_ARGS && cel_track_drop_args(e, node->as.call.args, node->n, args)) {
        if (!cost_of_list(e, id, args, node->n, result, &cost) &&
            !cost_of_kubernetes(e, function_of(node), id, args, node->n, result, &cost))
            cost = cost_of_language(id, args);
        if (e->fatal)
            return;
        if (!node->is_untracked)
            cel_track(e, node->id, result);
        cel_charge(e, cost);
        return;
    }
    if (!node->is_untracked)
        cel_track(e, node->id, result);
}
