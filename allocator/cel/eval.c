#include "allocator/cel/eval.h"

#include <stdio.h>
#include <string.h>

#include "allocator/cel/device.h"
#include "allocator/cel/env.h"
#include "allocator/cel/lib.h"

#include "allocator/base/banned.h"

/* ---- memory and limits ---- */

void cel_fatal(struct cel_eval *e, const char *words)
{
    if (!e->fatal)
        e->fatal_words = words;
    e->fatal = true;
}

bool cel_work(struct cel_eval *e, uint64_t steps)
{
    e->work += steps;
    if (e->work > CEL_MAX_WORK)
        cel_fatal(e, "operation cancelled: too much work without a cost");
    return !e->fatal;
}

void *cel_alloc(struct cel_eval *e, size_t n, size_t size)
{
    if (e->arena->bytes - e->arena_start > CEL_MAX_SCRATCH)
        cel_fatal(e, "operation cancelled: the evaluation needs too much memory");
    return arena_array_alloc(e->arena, n, size, 8);
}

char *cel_text_room(struct cel_eval *e, size_t n)
{
    if (n > CEL_MAX_STRING || e->arena->bytes - e->arena_start > CEL_MAX_SCRATCH) {
        cel_fatal(e, "operation cancelled: the evaluation makes too long a text");
        return NULL;
    }
    return arena_alloc(e->arena, n + 1, 1);
}

struct cel_value cel_text_copy(struct cel_eval *e, struct str s)
{
    char *room = cel_text_room(e, s.len);

    if (!room)
        return cel_error(e->fatal_words);
    if (s.len)
        memcpy(room, s.ptr, s.len);
    return cel_text((struct str){room, s.len});
}

struct cel_value cel_optional_of(struct cel_eval *e, struct cel_value content)
{
    struct cel_value *place = cel_alloc(e, 1, sizeof(*place));

    *place = content;
    return cel_optional(place);
}

bool cel_optional_get(struct cel_value v, struct cel_value *out)
{
    if (!v.as.content)
        return false;
    *out = *v.as.content;
    return true;
}

/* ---- lists that grow ---- */

static void growing_add(struct cel_eval *e, struct cel_growing *list, struct cel_value v)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 8;
        struct cel_value *items = cel_alloc(e, cap, sizeof(*items));

        if (list->n)
            memcpy(items, list->items, list->n * sizeof(*items));
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = v;
}

struct cel_value cel_concat_lists(struct cel_eval *e, struct cel_value a, struct cel_value b)
{
    int64_t n_a = cel_list_len(a), n_b = cel_list_len(b), n;
    struct cel_concat *concat;

    if (a.form == CEL_LIST_GROWING) {
        for (int64_t i = 0; i < n_b && cel_work(e, 1) && !e->fatal; i++)
            growing_add(e, a.as.growing, cel_list_at(b, i));
        return a;
    }
    if (!n_a)
        return b;
    if (!n_b)
        return a;
    if (__builtin_add_overflow(n_a, n_b, &n)) {
        cel_fatal(e, "internal error: a list is too long");
        return cel_error(e->fatal_words);
    }
    concat = cel_alloc(e, 1, sizeof(*concat));
    *concat = (struct cel_concat){a, b, n};
    return (struct cel_value){.kind = CEL_V_LIST, .form = CEL_LIST_CONCAT, .as.concat = concat};
}

struct cel_value cel_list_flat(struct cel_eval *e, struct cel_value list)
{
    int64_t n = cel_list_len(list);
    struct cel_value *items;

    if (list.form == CEL_LIST_FLAT)
        return list;
    if (list.form == CEL_LIST_GROWING)
        return cel_list(list.as.growing->items, list.as.growing->n);
    if (n > CEL_MAX_WORK || !cel_work(e, (uint64_t)n)) {
        cel_fatal(e, "operation cancelled: a list is too long");
        return cel_list(NULL, 0);
    }
    items = cel_alloc(e, (size_t)n, sizeof(*items));
    for (int64_t i = 0; i < n; i++)
        items[i] = cel_list_at(list, i);
    return cel_list(items, (size_t)n);
}

/* An accumulator that starts empty is changed in place from then on. */
static struct cel_value make_growing(struct cel_eval *e, struct cel_value v)
{
    if (v.kind == CEL_V_MAP) {
        struct cel_map *map = cel_map_new(e->arena, 0);

        map->is_growing = true;
        return cel_map(map);
    }
    return (struct cel_value){
        .kind = CEL_V_LIST, .form = CEL_LIST_GROWING, .as.growing = cel_alloc(e, 1, sizeof(struct cel_growing))};
}

static struct cel_value stop_growing(struct cel_value v)
{
    if (v.kind == CEL_V_LIST && v.form == CEL_LIST_GROWING)
        return cel_list(v.as.growing->items, v.as.growing->n);
    if (v.kind == CEL_V_MAP && v.as.map->is_growing)
        v.as.growing_map->is_growing = false;
    return v;
}

/* ---- paths ---- */

static struct cel_value fatal_error(const struct cel_eval *e)
{
    return cel_error(e->fatal_words ? e->fatal_words : "");
}

/* The value of a variable; an accumulator is computed when it is first read. */
static struct cel_value read_slot(struct cel_eval *e, uint32_t number)
{
    struct cel_slot *slot = &e->slots[number];
    const struct cel_node *pending = slot->pending;

    if (pending) {
        struct cel_value v = cel_eval_node(e, pending);

        slot->pending = NULL;
        if ((v.kind == CEL_V_LIST && cel_list_len(v) == 0) || (v.kind == CEL_V_MAP && v.as.map->n == 0)) {
            v = make_growing(e, v);
            slot->is_growing = true;
        }
        slot->v = v;
    }
    return slot->v;
}

enum found { FOUND, ABSENT, FAILED };

static enum found fail(struct cel_eval *e, struct cel_value *out, const char *fmt, struct cel_value key)
{
    BUF text = {0};

    cel_value_show(key, &text, 300);
    *out = cel_errorf(e, "%s%s", fmt, buf_str(&text));
    return FAILED;
}

static enum found lookup_element(struct cel_eval *e, struct cel_value list, struct cel_value key, struct cel_value *out)
{
    int64_t i;

    if (key.kind == CEL_V_INT) {
        i = key.as.i;
    } else if (key.kind == CEL_V_UINT && key.as.u <= INT64_MAX) {
        i = (int64_t)key.as.u;
    } else if (key.kind == CEL_V_DOUBLE && cel_double_to_int(key.as.d, &i)) {
    } else if (key.kind == CEL_V_UINT || key.kind == CEL_V_DOUBLE) {
        return fail(e, out, "unsupported index value in list: ", key);
    } else {
        *out = cel_errorf(e, "unsupported index type '%s' in list", cel_kind_name(key));
        return FAILED;
    }
    if (i < 0 || i >= cel_list_len(list))
        return ABSENT;
    *out = cel_list_at(list, i);
    return FOUND;
}

/* obj[key]. ABSENT becomes an error here unless presence is asked for. */
static enum found lookup(struct cel_eval *e, struct cel_value obj, struct cel_value key, bool presence,
                         struct cel_value *out)
{
    enum found found = ABSENT;

    if (key.kind > CEL_V_STRING || key.kind < CEL_V_BOOL) {
        *out = cel_errorf(e, "invalid qualifier type: %s", cel_kind_name(key));
        return FAILED;
    }
    if (obj.kind == CEL_V_MAP) {
        found = cel_map_lookup(e, obj.as.map, key, out) ? FOUND : ABSENT;
    } else if (obj.kind == CEL_V_LIST) {
        found = lookup_element(e, obj, key, out);
        if (found == ABSENT && !presence)
            return fail(e, out, "index out of bounds: ", key);
    }
    if (found == ABSENT && !presence)
        return fail(e, out, "no such key: ", key);
    return found;
}

static enum found resolve_key(struct cel_eval *e, const struct cel_qualifier *q, struct cel_value *out)
{
    switch ((enum cel_qualifier_kind)q->kind) {
    case QUAL_CONST:
        *out = q->key;
        return FOUND;
    case QUAL_PATH:
        return cel_eval_path(e, q->path, out) ? FOUND : FAILED;
    case QUAL_EXPR:
        *out = cel_eval_node(e, q->node);
        return cel_is_error(*out) ? FAILED : FOUND;
    }
    return FAILED;
}

/* One step of a path: *obj becomes the result. `is_optional`: this step or an earlier one is. */
static enum found qualify(struct cel_eval *e, const struct cel_qualifier *q, bool is_optional, bool is_last,
                          struct cel_value *obj)
{
    struct cel_value key, value = CEL_NULL;
    enum found found;

    if (q->device_field >= 0) {
        value = e->device->fields[q->device_field];
        found = FOUND;
        if (q->tests_presence && !is_optional)
            value = cel_bool(true);
    } else if (q->kind == QUAL_CONST && q->key.kind == CEL_V_STRING && obj->kind == CEL_V_MAP &&
               obj->as.map->texts_only && !q->tests_presence &&
               cel_map_lookup_text(obj->as.map, cel_str(q->key), q->fingerprint, &value)) {
        found = FOUND;
    } else if ((found = resolve_key(e, q, &key)) != FOUND) {
        value = key;
    } else {
        found = lookup(e, *obj, key, is_optional || q->tests_presence, &value);
        if (q->tests_presence && !is_optional && found != FAILED) {
            value = cel_bool(found == FOUND);
            found = FOUND;
        }
    }
    if (e->fatal) {
        *obj = fatal_error(e);
        return FAILED;
    }
    *obj = value;
    if (is_optional && found != FOUND)
        return found; /* an optional step that finds nothing is free */
    if (q->kind == QUAL_EXPR)
        cel_track_drop(e, q->id);
    if (q->kind == QUAL_EXPR || is_last)
        cel_track(e, q->id, value);
    cel_charge(e, 1);
    return found;
}

/* device.attributes["domain"].id in one step. False when there is no such value, or when the limit falls into it: then
 * the steps are taken one by one. */
static bool take_shortcut(struct cel_eval *e, const struct cel_path *path, struct cel_value *out)
{
    const struct cel_device *device = e->device;

    if (e->limit < e->cost + 3)
        return false;
    for (size_t i = 0; i < device->n_shortcuts; i++) {
        const struct cel_shortcut *shortcut = &device->shortcuts[i];

        if (device->fingerprints[i] != path->fingerprint ||
            (shortcut->value.kind == CEL_V_QUANTITY) != (path->qualifiers[0].device_field == DEVICE_CAPACITY) ||
            !str_eq(shortcut->domain, cel_str(path->qualifiers[1].key)) ||
            !str_eq(shortcut->id, cel_str(path->qualifiers[2].key)))
            continue;
        *out = shortcut->value;
        e->cost += 3;
        if (path->n == 3)
            cel_track(e, path->qualifiers[2].id, *out);
        return true;
    }
    return false;
}

static bool qualify_all(struct cel_eval *e, const struct cel_path *path, struct cel_value obj, struct cel_value *out)
{
    bool is_optional = false;
    size_t i = 0;

    if (obj.kind == CEL_V_OPTIONAL) {
        if (!obj.as.content) {
            *out = obj;
            return true;
        }
        obj = *obj.as.content;
        is_optional = true;
    }
    if (path->has_shortcut && !e->is_unwatched && take_shortcut(e, path, &obj))
        i = 3;
    for (; i < path->n; i++) {
        const struct cel_qualifier *q = &path->qualifiers[i];

        is_optional = is_optional || q->is_optional;
        switch (qualify(e, q, is_optional, i + 1 == path->n, &obj)) {
        case FOUND:
            break;
        case ABSENT:
            *out = cel_optional(NULL);
            return true;
        case FAILED:
            *out = obj;
            return false;
        }
        if (e->fatal) {
            *out = fatal_error(e);
            return false;
        }
    }
    *out = is_optional ? cel_optional_of(e, obj) : obj;
    return true;
}

/* The real implementation leaves its bookkeeping behind when it steps out of the loops to a shadowed variable. */
static bool qualify_outer(struct cel_eval *e, const struct cel_path *path, struct cel_value obj, struct cel_value *out)
{
    bool before = e->is_unwatched, found;

    e->is_unwatched = true;
    found = qualify_all(e, path, obj, out);
    e->is_unwatched = before;
    return found;
}

static bool choose(struct cel_eval *e, const struct cel_path *path, struct cel_value *out)
{
    struct cel_value condition = cel_eval_node(e, path->node);

    if (e->fatal) {
        *out = fatal_error(e);
        return false;
    }
    if (condition.kind != CEL_V_BOOL) {
        *out = cel_is_error(condition) ? condition : cel_error(CEL_NO_OVERLOAD);
        return false;
    }
    return cel_eval_path(e, condition.as.b ? path->truthy : path->falsy, out);
}

bool cel_eval_path(struct cel_eval *e, const struct cel_path *path, struct cel_value *out)
{
    struct cel_value obj = CEL_NULL;

    switch (path->root) {
    case ROOT_DEVICE:
        if (!path->n || path->qualifiers[0].device_field < 0)
            obj = e->device->value;
        break;
    case ROOT_SLOT:
        obj = read_slot(e, path->slot);
        break;
    case ROOT_GLOBAL:
        obj = e->globals[path->slot];
        break;
    case ROOT_EXPR:
        obj = cel_eval_node(e, path->node);
        break;
    case ROOT_CHOICE:
        return choose(e, path, out);
    case ROOT_MISSING:
        obj = cel_errorf(e, "no such attribute(s): %.*s", STR_FMT(path->name));
        break;
    }
    if (e->fatal || cel_is_error(obj)) {
        *out = e->fatal ? fatal_error(e) : obj;
        return false;
    }
    return path->is_outer ? qualify_outer(e, path, obj, out) : qualify_all(e, path, obj, out);
}

static void finish_path(struct cel_eval *e, const struct cel_node *node, struct cel_value v)
{
    const struct cel_path *path = node->as.path;

    if (path->root == ROOT_CHOICE) {
        cel_track_drop(e, cel_path_id(path->falsy));
        cel_track_drop(e, cel_path_id(path->truthy));
        cel_track_drop(e, cel_node_id(path->node));
    } else {
        cel_track_drop(e, cel_path_id(path));
    }
    if (!node->is_untracked)
        cel_track(e, cel_path_id(path), v);
    if (path->root != ROOT_CHOICE && node->op != OP_HAS)
        cel_charge(e, 1);
    if (path->root == ROOT_CHOICE && node->op == OP_HAS)
        cel_uncharge(e);
}

static struct cel_value eval_path_node(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value v;

    cel_eval_path(e, node->as.path, &v);
    if (e->fatal)
        return v;
    if (node->op == OP_HAS && v.kind == CEL_V_OPTIONAL)
        v = cel_bool(v.as.content != NULL);
    finish_path(e, node, v);
    return v;
}

/* ---- logic ---- */

/* && and ||: `decisive` ends the row; what is no bool is remembered and matters only if nothing decides. */
static struct cel_value eval_logic(struct cel_eval *e, const struct cel_node *node, bool decisive)
{
    struct cel_value result = cel_bool(!decisive);

    for (size_t i = 0; i < node->n; i++) {
        struct cel_value v = cel_eval_node(e, node->as.call.args[i]);

        if (e->fatal)
            return fatal_error(e);
        if (v.kind == CEL_V_BOOL) {
            if (v.as.b == decisive) {
                result = v;
                break;
            }
        } else if (!cel_is_error(result)) {
            result = cel_is_error(v) ? v : cel_error(CEL_NO_OVERLOAD);
        }
    }
    for (size_t i = 0; i < node->n; i++)
        cel_track_drop(e, cel_node_id(node->as.call.args[i]));
    if (!node->is_untracked)
        cel_track(e, node->id, result);
    return result;
}

static struct cel_value eval_equal(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value a = cel_eval_node(e, node->as.call.args[0]), b, result;

    if (e->fatal)
        return a;
    b = cel_eval_node(e, node->as.call.args[1]);
    if (e->fatal)
        return b;
    if (cel_is_error(a) || cel_is_error(b)) {
        result = cel_is_error(a) ? a : b;
    } else {
        enum cel_equality equal = cel_equal(e, a, b);

        if (node->op == OP_NOT_EQUAL)
            result = cel_bool(equal != CEL_EQUAL);
        else
            result = equal == CEL_INCOMPARABLE ? cel_error(CEL_NO_OVERLOAD) : cel_bool(equal == CEL_EQUAL);
    }
    if (e->fatal)
        return fatal_error(e);
    cel_charge_call(e, node, result);
    return result;
}

/* or, orValue: the other operand is evaluated only when the first has no value. Both are free. */
static struct cel_value eval_or(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value v = cel_eval_node(e, node->as.call.args[0]);

    if (e->fatal)
        return v;
    if (!cel_is_error(v)) {
        if (v.kind != CEL_V_OPTIONAL)
            v = cel_error(CEL_NO_OVERLOAD);
        else if (!v.as.content)
            v = cel_eval_node(e, node->as.call.args[1]);
        else if (node->op == OP_OR_VALUE)
            v = *v.as.content;
    }
    if (!e->fatal && !node->is_untracked)
        cel_track(e, node->id, v);
    return v;
}

static struct cel_value eval_in_set(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value v = cel_eval_node(e, node->as.call.args[0]);

    if (e->fatal)
        return v;
    if (!cel_is_error(v)) {
        if (!cel_is_hashable(v)) {
            cel_fatal(e, "internal error: runtime error: hash of unhashable type");
            return fatal_error(e);
        }
        v = cel_bool(cel_map_slot(node->as.call.set, v) != SIZE_MAX);
    }
    if (!node->is_untracked)
        cel_track(e, node->id, v);
    return v;
}

/* ---- calls ---- */

#define INLINE_ARGS 4

static struct cel_value invoke(struct cel_eval *e, const struct cel_node *node, const struct cel_value *args)
{
    const struct cel_function *function = node->as.call.function;

    if (!function)
        return cel_error(CEL_NO_OVERLOAD);
    if (node->as.call.regex)
        return cel_call_regex(e, node, args);
    if (function->singleton) {
        if (function->traits && !(cel_value_traits(args[0]) & function->traits))
            return cel_errorf(e, "no such overload: %s", function->name);
        return function->singleton(e, args, node->n);
    }
    if (node->as.call.overload)
        return cel_call_overload(e, function, node->as.call.overload, args, node->n);
    return cel_dispatch(e, function, args, node->n);
}

static struct cel_value eval_call(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value inline_args[INLINE_ARGS], *args = inline_args, result = CEL_NULL;
    bool strict = !node->as.call.function || !node->as.call.function->is_non_strict;
    bool failed = false;

    if (node->n > INLINE_ARGS)
        args = cel_alloc(e, node->n, sizeof(*args));
    for (size_t i = 0; i < node->n; i++) {
        args[i] = cel_eval_node(e, node->as.call.args[i]);
        if (e->fatal)
            return fatal_error(e);
        if (strict && !failed && cel_is_error(args[i])) {
            result = args[i];
            failed = true;
        }
        if (failed && node->binding == CEL_BIND_VARIADIC)
            break;
    }
    if (!failed)
        result = invoke(e, node, args);
    if (e->fatal)
        return fatal_error(e);
    cel_charge_call(e, node, result);
    return result;
}

/* ---- literals that are not constant ---- */

static struct cel_value bad_optional(struct cel_eval *e, const char *what, struct cel_value v)
{
    BUF text = {0};

    cel_value_show(v, &text, 200);
    return cel_errorf(e, "cannot initialize optional %s from non-optional value %s", what, buf_str(&text));
}

static struct cel_value build_list(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value *items = cel_alloc(e, node->n, sizeof(*items));
    size_t n = 0;

    for (size_t i = 0; i < node->n; i++) {
        struct cel_value v = cel_eval_node(e, node->as.call.args[i]);

        if (e->fatal || cel_is_error(v))
            return v;
        if (node->as.call.optionals && node->as.call.optionals[i]) {
            if (v.kind != CEL_V_OPTIONAL)
                return bad_optional(e, "list element", v);
            if (!cel_optional_get(v, &v))
                continue;
        }
        items[n++] = v;
    }
    return cel_list(items, n);
}

static struct cel_value build_map(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_map *map = cel_map_new(e->arena, node->n / 2);

    for (size_t i = 0; i < node->n; i += 2) {
        struct cel_value key = cel_eval_node(e, node->as.call.args[i]), v;

        if (e->fatal || cel_is_error(key))
            return key;
        v = cel_eval_node(e, node->as.call.args[i + 1]);
        if (e->fatal || cel_is_error(v))
            return v;
        if (node->as.call.optionals && node->as.call.optionals[i / 2]) {
            if (v.kind != CEL_V_OPTIONAL)
                return bad_optional(e, "entry", v);
            if (!cel_optional_get(v, &v)) {
                cel_map_remove(map, key);
                continue;
            }
        }
        if (!cel_is_hashable(key)) {
            cel_fatal(e, "internal error: runtime error: hash of unhashable type");
            return fatal_error(e);
        }
        cel_map_put(map, e->arena, key, v);
    }
    return cel_map(map);
}

static struct cel_value eval_literal(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value v = node->op == OP_MAP    ? build_map(e, node)
                         : node->op == OP_LIST ? build_list(e, node)
                                               : cel_build_message(e, node);

    if (e->fatal)
        return fatal_error(e);
    cel_track_drop_args(e, node->as.call.args, node->n, NULL);
    if (!node->is_untracked)
        cel_track(e, node->id, v);
    cel_charge(e, node->op == OP_MAP ? 30 : node->op == OP_LIST ? 10 : 40);
    return v;
}

/* ---- loops ---- */

/* One turn; false ends the loop. */
static bool fold_turn(struct cel_eval *e, const struct cel_fold *fold)
{
    struct cel_value v = cel_eval_node(e, fold->condition);

    if (e->fatal || (v.kind == CEL_V_BOOL && !v.as.b))
        return false;
    v = cel_eval_node(e, fold->step);
    e->slots[fold->accu].v = v;
    e->slots[fold->accu].pending = NULL;
    return !e->fatal;
}

static void set_slot(struct cel_eval *e, uint32_t slot, struct cel_value v)
{
    e->slots[slot].v = v;
    e->slots[slot].pending = NULL;
}

static void fold_list(struct cel_eval *e, const struct cel_fold *fold, struct cel_value range)
{
    int64_t n = cel_list_len(range);

    for (int64_t i = 0; i < n; i++) {
        if (fold->has_iter2) {
            set_slot(e, fold->iter, cel_int(i));
            set_slot(e, fold->iter2, cel_list_at(range, i));
        } else {
            set_slot(e, fold->iter, cel_list_at(range, i));
        }
        if (!fold_turn(e, fold))
            return;
    }
}

static void fold_map(struct cel_eval *e, const struct cel_fold *fold, struct cel_value range)
{
    const struct cel_map *map = range.as.map;
    size_t i;

    for (i = 0; i < map->n; i++) {
        set_slot(e, fold->iter, map->entries[i].key);
        if (fold->has_iter2)
            set_slot(e, fold->iter2, map->entries[i].value);
        if (!fold_turn(e, fold))
            break;
    }
    /* In the real implementation the order is random: an early end, an error or a list made here depends on it. */
    if (map->n > 1 && (i < map->n || cel_is_error(e->slots[fold->accu].v) || e->slots[fold->accu].v.kind == CEL_V_LIST))
        e->is_uncertain = true;
}

static struct cel_value run_fold(struct cel_eval *e, const struct cel_fold *fold)
{
    struct cel_value range, v;

    e->slots[fold->accu] = (struct cel_slot){.pending = fold->init};
    range = cel_eval_node(e, fold->range);
    if (e->fatal || cel_is_error(range))
        return range;
    if (range.kind == CEL_V_LIST)
        fold_list(e, fold, range);
    else if (range.kind == CEL_V_MAP)
        fold_map(e, fold, range);
    else if (fold->has_iter2)
        return cel_errorf(e, "unsupported comprehension range type: %s", cel_kind_name(range));
    else
        return cel_errorf(e, "got '%s', expected iterable type", cel_kind_name(range));
    if (e->fatal)
        return fatal_error(e);
    v = cel_eval_node(e, fold->result);
    return e->slots[fold->accu].is_growing ? stop_growing(v) : v;
}

static struct cel_value eval_fold(struct cel_eval *e, const struct cel_node *node)
{
    struct cel_value v = run_fold(e, node->as.fold);

    if (e->fatal)
        return fatal_error(e);
    cel_track_drop(e, cel_node_id(node->as.fold->range));
    if (!node->is_untracked)
        cel_track(e, node->id, v);
    return v;
}

struct cel_value cel_eval_node(struct cel_eval *e, const struct cel_node *node)
{
    switch ((enum cel_op)node->op) {
    case OP_CONST:
        if (!node->is_untracked)
            cel_track(e, node->id, node->as.value);
        return node->as.value;
    case OP_PATH:
    case OP_HAS:
        return eval_path_node(e, node);
    case OP_AND:
        return eval_logic(e, node, false);
    case OP_OR:
        return eval_logic(e, node, true);
    case OP_EQUAL:
    case OP_NOT_EQUAL:
        return eval_equal(e, node);
    case OP_CALL:
        return eval_call(e, node);
    case OP_OR_OPTIONAL:
    case OP_OR_VALUE:
        return eval_or(e, node);
    case OP_IN_SET:
        return eval_in_set(e, node);
    case OP_LIST:
    case OP_MAP:
    case OP_MESSAGE:
        return eval_literal(e, node);
    case OP_FOLD:
        return eval_fold(e, node);
    }
    return CEL_NULL;
}

void cel_eval_begin(struct cel_eval *e, struct arena *arena, size_t n_slots, size_t n_ids, uint64_t limit)
{
    /* The inline arrays are left as they are: the stack is written before it is read. */
    memset(e, 0, offsetof(struct cel_eval, inline_stack));
    e->arena = arena;
    e->arena_start = arena->bytes;
    e->limit = limit;
    e->stack = e->inline_stack;
    e->cap_stack = CEL_INLINE_STACK;
    e->slots = n_slots > CEL_INLINE_SLOTS ? arena_array(arena, struct cel_slot, n_slots) : e->inline_slots;
    if (n_ids > CEL_INLINE_IDS) {
        e->live = arena_array(arena, uint32_t, n_ids);
    } else {
        e->live = e->inline_live;
        memset(e->inline_live, 0, n_ids * sizeof(*e->live));
    }
}

void cel_eval_again(struct cel_eval *e)
{
    while (e->n_stack)
        e->live[e->stack[--e->n_stack].id] = 0;
    e->arena_start = e->arena->bytes;
    e->cost = e->work = 0;
    e->fatal = e->is_uncertain = e->is_unwatched = false;
    e->fatal_words = NULL;
}
