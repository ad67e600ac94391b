/* Lists, sets, maps and optionals. Errors of element equality count as "different". */
#include "allocator/cel/lib.h"

#include <string.h>

#include "allocator/base/banned.h"

static bool is_comparable(struct cel_value v)
{
    return (cel_value_traits(v) & CEL_CAN_COMPARE) != 0;
}

/* ---- parts and order ---- */

struct cel_value cel_fn_slice(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    long long from = args[1].as.i, to = args[2].as.i, size = cel_list_len(args[0]);
    struct cel_value *items;

    (void)n_args;
    if (from < 0 || to < 0)
        return cel_errorf(e, "cannot slice(%lld, %lld), negative indexes not supported", from, to);
    if (from > to)
        return cel_errorf(e, "cannot slice(%lld, %lld), start index must be less than or equal to end index", from, to);
    if (size < to)
        return cel_errorf(e, "cannot slice(%lld, %lld), list is length %lld", from, to, size);
    if (!cel_work(e, (uint64_t)(to - from)))
        return cel_error(e->fatal_words);
    items = cel_alloc(e, (size_t)(to - from), sizeof(*items));
    for (long long i = from; i < to; i++)
        items[i - from] = cel_list_at(args[0], i);
    return cel_list(items, (size_t)(to - from));
}

struct gatherer {
    struct cel_eval *e;
    struct cel_value *items;
    size_t n, cap;
};

static void gather(struct gatherer *g, struct cel_value v)
{
    if (g->n == g->cap) {
        struct cel_value *items;

        g->cap = g->cap ? g->cap * 2 : 8;
        items = cel_alloc(g->e, g->cap, sizeof(*items));
        if (g->n)
            memcpy(items, g->items, g->n * sizeof(*items));
        g->items = items;
    }
    g->items[g->n++] = v;
}

static void flatten(struct gatherer *g, struct cel_value list, int64_t depth)
{
    for (int64_t i = 0; i < cel_list_len(list) && cel_work(g->e, 1); i++) {
        struct cel_value v = cel_list_at(list, i);

        if (v.kind == CEL_V_LIST && depth > 0)
            flatten(g, v, depth - 1);
        else
            gather(g, v);
    }
}

struct cel_value cel_fn_flatten(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct gatherer g = {.e = e};

    if (args[0].kind != CEL_V_LIST || (n_args == 2 && args[1].kind != CEL_V_INT))
        return cel_errorf(e, "no such overload: %s.flatten()", cel_kind_name(args[0]));
    if (n_args == 2 && args[1].as.i < 0)
        return cel_error("level must be non-negative");
    flatten(&g, args[0], n_args == 2 ? args[1].as.i : 1);
    return cel_list(g.items, g.n);
}

struct sorting {
    struct cel_eval *e;
    struct cel_value keys; /* flat */
    bool is_mixed;
};

static bool is_less(struct sorting *s, uint32_t a, uint32_t b)
{
    struct cel_value first = s->keys.as.items[0], x = s->keys.as.items[a], y = s->keys.as.items[b];
    int order = 0;

    cel_work(s->e, 1);
    if (x.kind != first.kind || y.kind != first.kind) {
        s->is_mixed = true;
        return false;
    }
    return !cel_compare(x, y, &order) && order < 0;
}

static void insertion_sort(struct sorting *s, uint32_t *order, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && is_less(s, order[j], order[j - 1]); j--) {
            uint32_t swap = order[j];

            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
}

#define INSERTION_MAX 12

/* Stable: equal keys keep their order, as they do in the real implementation up to twelve elements. */
static void merge_sort(struct sorting *s, uint32_t *order, uint32_t *spare, size_t n)
{
    size_t half = n / 2, i = 0, j = half, k = 0;

    if (n <= INSERTION_MAX) {
        insertion_sort(s, order, n);
        return;
    }
    merge_sort(s, order, spare, half);
    merge_sort(s, order + half, spare, n - half);
    while (i < half && j < n)
        spare[k++] = is_less(s, order[j], order[i]) ? order[j++] : order[i++];
    while (i < half)
        spare[k++] = order[i++];
    while (j < n)
        spare[k++] = order[j++];
    memcpy(order, spare, n * sizeof(*order));
}

static struct cel_value sort_by(struct cel_eval *e, struct cel_value list, struct cel_value keys)
{
    struct sorting s = {.e = e, .keys = cel_list_flat(e, keys)};
    struct cel_value flat = cel_list_flat(e, list), *items;
    size_t n = flat.n;
    uint32_t *order;

    if (e->fatal || !n)
        return list;
    if (!is_comparable(s.keys.as.items[0]))
        return cel_error("list elements must be comparable");
    order = cel_alloc(e, n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    merge_sort(&s, order, cel_alloc(e, n, sizeof(*order)), n);
    if (s.is_mixed)
        return cel_error("list elements must have the same type");
    items = cel_alloc(e, n, sizeof(*items));
    for (size_t i = 0; i < n; i++)
        items[i] = flat.as.items[order[i]];
    return cel_list(items, n);
}

struct cel_value cel_fn_sort(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return sort_by(e, args[0], args[0]);
}

struct cel_value cel_fn_sort_by(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    if (args[1].kind != CEL_V_LIST) {
        cel_fatal(e, "internal error: interface conversion: the keys are not traits.Lister");
        return cel_error(e->fatal_words);
    }
    if (cel_list_len(args[0]) != cel_list_len(args[1]))
        return cel_errorf(e,
                          "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but "
                          "got %lld and %lld elements respectively",
                          (long long)cel_list_len(args[0]), (long long)cel_list_len(args[1]));
    return sort_by(e, args[0], args[1]);
}

#define RANGE_MAX 1000000

struct cel_value cel_fn_range(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    long long n = args[0].as.i;
    struct cel_value *items;

    (void)n_args;
    if (n < 0)
        return cel_errorf(e, "lists.range: size must be non-negative, got %lld", n);
    if (n > RANGE_MAX)
        return cel_errorf(e, "lists.range: size %lld exceeds maximum allowed (%d)", n, RANGE_MAX);
    items = cel_alloc(e, (size_t)n, sizeof(*items));
    for (long long i = 0; i < n; i++)
        items[i] = cel_int(i);
    return cel_list(items, (size_t)n);
}

struct cel_value cel_fn_reverse(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value flat = cel_list_flat(e, args[0]), *items;

    (void)n_args;
    if (e->fatal)
        return cel_error(e->fatal_words);
    items = cel_alloc(e, flat.n, sizeof(*items));
    for (size_t i = 0; i < flat.n; i++)
        items[i] = flat.as.items[flat.n - 1 - i];
    return cel_list(items, flat.n);
}

struct cel_value cel_fn_distinct(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct gatherer g = {.e = e};

    (void)n_args;
    if (!cel_list_len(args[0]))
        return args[0];
    for (int64_t i = 0; i < cel_list_len(args[0]) && !e->fatal; i++) {
        struct cel_value v = cel_list_at(args[0], i);
        bool seen = false;

        for (size_t j = 0; j < g.n && !seen && !e->fatal; j++)
            seen = cel_equal_method(e, v, g.items[j]) == CEL_EQUAL;
        if (!seen)
            gather(&g, v);
    }
    return cel_list(g.items, g.n);
}

/* ---- the Kubernetes list library ---- */

struct cel_value cel_fn_is_sorted(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value previous = CEL_NULL;

    (void)n_args;
    for (int64_t i = 0; i < cel_list_len(args[0]) && cel_work(e, 1); i++) {
        struct cel_value v = cel_list_at(args[0], i);
        int order = 0;

        if (!is_comparable(v))
            return cel_no_overload();
        if (i && !cel_compare(previous, v, &order) && order > 0)
            return cel_bool(false);
        previous = v;
    }
    return cel_bool(true);
}

/* The element that no other beats; what cannot be compared with the best so far is passed over. */
static struct cel_value best(struct cel_eval *e, struct cel_value list, int beaten, const char *name)
{
    struct cel_value result = CEL_NULL;

    for (int64_t i = 0; i < cel_list_len(list) && cel_work(e, 1); i++) {
        struct cel_value v = cel_list_at(list, i);
        int order = 0;

        if (!is_comparable(v))
            return cel_no_overload();
        if (!i || (!cel_compare(result, v, &order) && order == beaten))
            result = v;
    }
    return result.kind == CEL_V_NULL ? cel_errorf(e, "%s called on empty list", name) : result;
}

struct cel_value cel_fn_min(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return best(e, args[0], 1, "min");
}

struct cel_value cel_fn_max(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return best(e, args[0], -1, "max");
}

static struct cel_value sum(struct cel_eval *e, struct cel_value list, struct cel_value total)
{
    for (int64_t i = 0; i < cel_list_len(list) && cel_work(e, 1) && !cel_is_error(total); i++)
        total = cel_fn_add(e, (const struct cel_value[]){total, cel_list_at(list, i)}, 2);
    return total;
}

struct cel_value cel_fn_sum_int(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return sum(e, args[0], cel_int(0));
}

struct cel_value cel_fn_sum_uint(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return sum(e, args[0], cel_uint(0));
}

struct cel_value cel_fn_sum_double(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return sum(e, args[0], cel_double(0));
}

struct cel_value cel_fn_sum_duration(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return sum(e, args[0], cel_duration(0));
}

struct cel_value cel_fn_list_index_of(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    for (int64_t i = 0; i < cel_list_len(args[0]) && !e->fatal; i++)
        if (cel_equal_method(e, cel_list_at(args[0], i), args[1]) == CEL_EQUAL)
            return cel_int(i);
    return cel_int(-1);
}

struct cel_value cel_fn_list_last_index_of(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    for (int64_t i = cel_list_len(args[0]) - 1; i >= 0 && !e->fatal; i--)
        if (cel_equal_method(e, cel_list_at(args[0], i), args[1]) == CEL_EQUAL)
            return cel_int(i);
    return cel_int(-1);
}

static struct cel_value includes(struct cel_eval *e, const struct cel_value *args, int64_t limit)
{
    if (args[0].kind != CEL_V_LIST)
        return cel_bool(cel_equal_method(e, args[0], args[1]) == CEL_EQUAL);
    for (int64_t i = 0; i < cel_list_len(args[0]) && !e->fatal; i++) {
        if (i == limit)
            return cel_errorf(e, "'includes' function cannot be applied to lists longer than %lld values",
                              (long long)limit);
        if (cel_equal_method(e, cel_list_at(args[0], i), args[1]) == CEL_EQUAL)
            return cel_bool(true);
    }
    return cel_bool(false);
}

struct cel_value cel_fn_includes(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return includes(e, args, -1);
}

/* As Kubernetes 1.36 had it. */
struct cel_value cel_fn_includes_48(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return includes(e, args, 48);
}

/* ---- sets ---- */

static bool contains(struct cel_eval *e, struct cel_value list, struct cel_value v)
{
    for (int64_t i = 0; i < cel_list_len(list) && !e->fatal; i++)
        if (cel_equal_method(e, v, cel_list_at(list, i)) == CEL_EQUAL)
            return true;
    return false;
}

static bool contains_all(struct cel_eval *e, struct cel_value list, struct cel_value part)
{
    for (int64_t i = 0; i < cel_list_len(part) && !e->fatal; i++)
        if (!contains(e, list, cel_list_at(part, i)))
            return false;
    return true;
}

struct cel_value cel_fn_sets_contains(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return cel_bool(contains_all(e, args[0], args[1]));
}

struct cel_value cel_fn_sets_equivalent(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return cel_bool(contains_all(e, args[0], args[1]) && contains_all(e, args[1], args[0]));
}

struct cel_value cel_fn_sets_intersects(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    for (int64_t i = 0; i < cel_list_len(args[0]) && !e->fatal; i++)
        if (contains(e, args[1], cel_list_at(args[0], i)))
            return cel_bool(true);
    return cel_bool(false);
}

/* ---- maps ---- */

/* Put an entry into *map, copying it first when it is no accumulator. Returns an error, or null. */
static struct cel_value insert(struct cel_eval *e, struct cel_value *map, struct cel_value key, struct cel_value value)
{
    struct cel_value found;
    BUF text = {0};

    if (cel_map_find(e, map->as.map, key, &found)) {
        cel_value_show(key, &text, 200);
        return cel_errorf(e, "insert failed: key %s already exists", buf_str(&text));
    }
    if (!e->fatal && !cel_is_hashable(key))
        cel_fatal(e, "internal error: runtime error: hash of unhashable type");
    if (e->fatal)
        return cel_error(e->fatal_words);
    if (!map->as.map->is_growing) {
        struct cel_map *copy = cel_map_new(e->arena, map->as.map->n + 1);

        for (size_t i = 0; i < map->as.map->n && cel_work(e, 1); i++)
            cel_map_put(copy, e->arena, map->as.map->entries[i].key, map->as.map->entries[i].value);
        map->as.map = copy;
    }
    cel_alloc(e, 0, 1); /* keeps the limit of the scratch memory */
    cel_map_put(map->as.growing_map, e->arena, key, value);
    return CEL_NULL;
}

struct cel_value cel_fn_map_insert(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value map = args[0], problem = CEL_NULL;

    if (n_args == 3) {
        problem = insert(e, &map, args[1], args[2]);
        return cel_is_error(problem) ? problem : map;
    }
    for (size_t i = 0; i < args[1].as.map->n && !cel_is_error(problem); i++)
        problem = insert(e, &map, args[1].as.map->entries[i].key, args[1].as.map->entries[i].value);
    return cel_is_error(problem) ? problem : map;
}

/* ---- optionals ---- */

struct cel_value cel_fn_optional_of(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return cel_optional_of(e, args[0]);
}

struct cel_value cel_fn_optional_none(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)args, (void)n_args;
    return cel_optional(NULL);
}

static bool is_zero(struct cel_value v)
{
    switch ((enum cel_kind)v.kind) {
    case CEL_V_NULL:
        return true;
    case CEL_V_BOOL:
        return !v.as.b;
    case CEL_V_INT:
    case CEL_V_UINT:
    case CEL_V_DURATION:
        return v.as.u == 0;
    case CEL_V_DOUBLE:
        return v.as.d == 0;
    case CEL_V_STRING:
    case CEL_V_BYTES:
        return v.n == 0;
    case CEL_V_TIMESTAMP:
        return v.as.i == -62135596800 && v.n == 0;
    case CEL_V_LIST:
        return cel_list_len(v) == 0;
    case CEL_V_MAP:
        return v.as.map->n == 0;
    default:
        return false;
    }
}

struct cel_value cel_fn_optional_non_zero(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return is_zero(args[0]) ? cel_optional(NULL) : cel_optional_of(e, args[0]);
}

struct cel_value cel_fn_has_value(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_bool(args[0].as.content != NULL);
}

struct cel_value cel_fn_value(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cel_value v;

    (void)e, (void)n_args;
    return cel_optional_get(args[0], &v) ? v : cel_error("optional.none() dereference");
}

struct cel_value cel_fn_first(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return cel_list_len(args[0]) ? cel_optional_of(e, cel_list_at(args[0], 0)) : cel_optional(NULL);
}

struct cel_value cel_fn_last(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    int64_t n = cel_list_len(args[0]);

    (void)n_args;
    return n ? cel_optional_of(e, cel_list_at(args[0], n - 1)) : cel_optional(NULL);
}

struct cel_value cel_fn_unwrap(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct gatherer g = {.e = e};
    BUF text = {0};

    (void)n_args;
    for (int64_t i = 0; i < cel_list_len(args[0]) && cel_work(e, 1); i++) {
        struct cel_value v = cel_list_at(args[0], i);

        if (v.kind != CEL_V_OPTIONAL) {
            cel_value_show(v, &text, 200);
            return cel_errorf(e, "value %s is not optional", buf_str(&text));
        }
        if (cel_optional_get(v, &v))
            gather(&g, v);
    }
    return cel_list(g.items, g.n);
}
