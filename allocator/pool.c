/* Pools: which slices a node sees, whether they are complete, and what their devices share (semantics, section 3). */
#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

/* ---- 3.2: relevance of a slice for a node ---- */

/* The parameters of one view, and the list being collected. */
struct viewing {
    const struct pool *pool;
    const struct node_info *node;
    const struct features *features;
    const struct behaviour *behaviour;
    struct arena *arena;
    const char *problem; /* of a node selector: FATAL; the first in input order */
    uint64_t problem_order;
    uint32_t *list; /* L: indexes into pool->slices */
    size_t n_list;
    uint32_t *first_device; /* per slice: where its devices begin in pool->devices */
};

static bool node_match(struct viewing *v, const char *kind, const char *name, const char *node_name, bool all_nodes,
                       const struct node_selector *selector)
{
    if (node_name)
        return text_is(v->node->name, node_name);
    if (all_nodes || !selector)
        return all_nodes;
    if (selector->problem && !v->problem)
        v->problem = arena_printf(v->arena, "node selector of %s %s: %s", kind, name, selector->problem);
    return node_selector_matches(selector, v->node);
}

bool slice_is_hidden(const struct slice *slice, const struct features *features)
{
    if (!feature_on(features, FEATURE_PARTITIONABLE_DEVICES) && (slice->has_per_device || slice->has_counter_sets))
        return true;
    return features->release >= 37 && slice->has_groups && !feature_on(features, FEATURE_COMPATIBILITY_GROUPS);
}

static bool is_relevant(struct viewing *v, const struct slice *slice)
{
    if (slice_is_hidden(slice, v->features))
        return false;
    if (v->behaviour->counter_slices_everywhere && slice->has_counter_sets && !v->behaviour->counters_in_slice)
        return true;
    if (slice->node_name || slice->all_nodes || slice->selector)
        return node_match(v, "slice", slice->name, slice->node_name, slice->all_nodes, slice->selector);
    if (!slice->per_device)
        return false;
    for (size_t i = 0; i < slice->n_devices; i++) {
        const struct device *device = &slice->devices[i];

        if (node_match(v, "device", device->name, device->node_name, device->all_nodes, device->selector))
            return true;
        if (v->problem)
            return false;
    }
    return false;
}

/* ---- 3.3: collecting ---- */

static void collect(struct viewing *v, uint32_t index)
{
    const struct slice *slice = v->pool->slices[index];
    bool had_problem = v->problem != NULL, relevant = is_relevant(v, slice);

    if (v->problem && !had_problem)
        v->problem_order = slice->order;
    if (!relevant)
        return;
    if (v->n_list) {
        int64_t generation = v->pool->slices[v->list[0]]->generation;

        if (slice->generation < generation)
            return;
        if (slice->generation > generation)
            v->n_list = 0;
    }
    v->list[v->n_list++] = index;
}

/* Since 1.36 the slices of the node come first, then those without a node name; before, and in the stable variant, all
 * in input order. */
static void collect_all(struct viewing *v)
{
    const struct pool *pool = v->pool;
    bool grouped = v->behaviour->variant != VARIANT_STABLE && v->features->release >= 36;

    for (int pass = 0; pass < (grouped ? 2 : 1); pass++) {
        for (uint32_t i = 0; i < pool->n_slices; i++) {
            const struct slice *slice = pool->slices[i];
            bool of_node = slice->node_name && (v->features->release != 36 || !slice->has_counter_sets);

            if (!grouped || (pass == 0) == of_node)
                collect(v, i);
        }
    }
}

/* ---- 3.4 and 3.5: classification and build ---- */

struct building {
    struct viewing *v;
    struct pool_view *view;
    uint32_t *rest; /* slices of A that are not in L */
    size_t n_rest;
    struct scoped_set {
        const struct slice *slice;
        const struct counter_set *set;
        uint32_t first; /* counter */
    } * sets;
    size_t n_sets;
};

static bool in_list(const struct viewing *v, uint32_t index)
{
    for (size_t i = 0; i < v->n_list; i++)
        if (text_is(v->pool->slices[v->list[i]]->name, v->pool->slices[index]->name))
            return true;
    return false;
}

enum classified { COMPLETE, COMPLETE_WITH_REST, INCOMPLETE, OBSOLETE };

static enum classified classify(struct building *b)
{
    struct viewing *v = b->v;
    const struct slice *first = v->pool->slices[v->list[0]];
    int64_t n_same = 0;

    if ((int64_t)v->n_list == first->count)
        return COMPLETE;
    if (v->behaviour->uses_incomplete)
        return INCOMPLETE;
    b->rest = arena_array(v->arena, uint32_t, v->pool->n_slices);
    for (uint32_t i = 0; i < v->pool->n_slices; i++) {
        const struct slice *slice = v->pool->slices[i];

        if (slice->generation > first->generation)
            return OBSOLETE;
        if (slice->generation < first->generation || (slice->has_groups && slice_is_hidden(slice, v->features)))
            continue;
        n_same++;
        if (!in_list(v, i))
            b->rest[b->n_rest++] = i;
    }
    return n_same == first->count ? COMPLETE_WITH_REST : INCOMPLETE;
}

/* Whether the slice's devices are offered: those of a counter slice are not since the two were split. */
static bool offers_devices(const struct viewing *v, const struct slice *slice)
{
    return v->behaviour->counters_in_slice || !slice->has_counter_sets ||
           !feature_on(v->features, FEATURE_PARTITIONABLE_DEVICES);
}

static void add_devices(const struct viewing *v, uint32_t slice, uint32_t *into, size_t *n)
{
    for (size_t i = 0; i < v->pool->slices[slice]->n_devices; i++)
        into[(*n)++] = v->first_device[slice] + (uint32_t)i;
}

static size_t n_devices_of(const struct viewing *v, const uint32_t *slices, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v->pool->slices[slices[i]]->n_devices;
    return sum;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *duplicate(const char **names, size_t n)
{
    qsort(names, n, sizeof(*names), by_text);
    for (size_t i = 1; i < n; i++)
        if (text_is(names[i - 1], names[i]))
            return names[i];
    return NULL;
}

static void check_device_names(struct building *b)
{
    struct pool_view *view = b->view;
    const char **names = mem_array(const char *, view->n_devices + 1);
    const char *twice;

    for (size_t i = 0; i < view->n_devices; i++)
        names[i] = b->v->pool->devices[view->devices[i]].device->name;
    twice = duplicate(names, view->n_devices);
    if (twice)
        view->problem = arena_printf(b->v->arena, "device name %s is used twice", twice);
    free(names);
}

static void add_sets(struct building *b, uint32_t index)
{
    const struct slice *slice = b->v->pool->slices[index];

    for (size_t i = 0; i < slice->n_sets; i++)
        b->sets[b->n_sets++] = (struct scoped_set){.slice = slice, .set = &slice->sets[i]};
}

/* Old releases put counter slices of other nodes to the devices, so that their sets stay unknown. */
static void collect_sets(struct building *b)
{
    struct viewing *v = b->v;
    bool old = v->behaviour->counter_slices_everywhere;
    size_t n = 0;

    if (!feature_on(v->features, FEATURE_PARTITIONABLE_DEVICES))
        return;
    for (size_t i = 0; i < v->pool->n_slices; i++)
        n += v->pool->slices[i]->n_sets;
    b->sets = arena_array(v->arena, struct scoped_set, n + 1);
    for (size_t i = 0; i < v->n_list; i++)
        add_sets(b, v->list[i]);
    for (size_t i = 0; i < b->n_rest && !old; i++)
        add_sets(b, b->rest[i]);
}

static void check_set_names(struct building *b)
{
    const char **names;
    const char *twice;

    if (b->v->behaviour->counters_in_slice || b->view->problem || !b->n_sets)
        return;
    names = mem_array(const char *, b->n_sets);
    for (size_t i = 0; i < b->n_sets; i++)
        names[i] = b->sets[i].set->name;
    twice = duplicate(names, b->n_sets);
    if (twice)
        b->view->problem = arena_printf(b->v->arena, "counter set %s is defined twice", twice);
    free(names);
}

static void flatten_totals(struct building *b)
{
    struct pool_view *view = b->view;
    const struct counter_set **sets = arena_array(b->v->arena, const struct counter_set *, b->n_sets + 1);
    struct quantity *totals;
    size_t n = 0;

    for (size_t i = 0; i < b->n_sets; i++) {
        b->sets[i].first = (uint32_t)n;
        sets[i] = b->sets[i].set;
        n += sets[i]->n_counters;
    }
    totals = arena_array(b->v->arena, struct quantity, n + 1);
    for (size_t i = 0; i < b->n_sets; i++)
        for (size_t k = 0; k < sets[i]->n_counters; k++)
            totals[b->sets[i].first + k] = sets[i]->counters[k].value;
    view->sets = sets;
    view->n_sets = b->n_sets;
    view->totals = totals;
    view->n_counters = n;
}

static const struct scoped_set *find_set(const struct building *b, const struct slice *slice, const char *name)
{
    for (size_t i = 0; i < b->n_sets; i++)
        if (text_is(b->sets[i].set->name, name) && (!b->v->behaviour->counters_in_slice || b->sets[i].slice == slice))
            return &b->sets[i];
    return NULL;
}

static bool find_counter(const struct scoped_set *set, const char *name, uint32_t *out)
{
    for (size_t i = 0; i < set->set->n_counters; i++) {
        if (text_is(set->set->counters[i].name, name)) {
            *out = set->first + (uint32_t)i;
            return true;
        }
    }
    return false;
}

/* What one device takes, appended to uses; the view becomes invalid when a set or counter is unknown. */
static void flatten_device(struct building *b, uint32_t index, struct counter_use *uses, size_t *n)
{
    const struct pool_device *pd = &b->v->pool->devices[index];

    for (size_t i = 0; i < pd->device->n_consumes; i++) {
        const struct consumption *consumes = &pd->device->consumes[i];
        const struct scoped_set *set = find_set(b, pd->slice, consumes->set);

        for (size_t k = 0; k < consumes->n_counters; k++) {
            if (set && find_counter(set, consumes->counters[k].name, &uses[*n].counter))
                uses[(*n)++].amount = consumes->counters[k].value;
            else if (!b->view->problem)
                b->view->problem = arena_printf(b->v->arena, "device %s consumes from unknown counter %s of set %s",
                                                pd->device->name, consumes->counters[k].name, consumes->set);
        }
        if (!set && !b->view->problem)
            b->view->problem = arena_printf(b->v->arena, "device %s consumes from unknown counter set %s",
                                            pd->device->name, consumes->set);
    }
}

/* Room enough, and 0 only when no device consumes from any set. */
static size_t n_uses(const struct viewing *v, const uint32_t *devices, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        const struct device *device = v->pool->devices[devices[i]].device;

        for (size_t k = 0; k < device->n_consumes; k++)
            sum += device->consumes[k].n_counters + 1;
    }
    return sum;
}

static void flatten_uses(struct building *b)
{
    struct pool_view *view = b->view;
    size_t n_rows = view->n_devices + view->n_counted;
    size_t n_max = n_uses(b->v, view->devices, view->n_devices) + n_uses(b->v, view->counted, view->n_counted);
    uint32_t *start = arena_array(b->v->arena, uint32_t, n_rows + 1);
    struct counter_use *uses = n_max ? arena_array(b->v->arena, struct counter_use, n_max) : NULL;
    size_t n = 0;

    for (size_t i = 0; i < n_rows && n_max; i++) {
        uint32_t index = i < view->n_devices ? view->devices[i] : view->counted[i - view->n_devices];

        start[i] = (uint32_t)n;
        flatten_device(b, index, uses, &n);
    }
    start[n_rows] = (uint32_t)n;
    view->use_start = start;
    view->uses = uses;
}

static void list_devices(struct building *b)
{
    struct viewing *v = b->v;
    struct pool_view *view = b->view;
    uint32_t *devices = arena_array(v->arena, uint32_t, n_devices_of(v, v->list, v->n_list));
    uint32_t *counted = b->n_rest ? arena_array(v->arena, uint32_t, n_devices_of(v, b->rest, b->n_rest) + 1) : NULL;

    for (size_t i = 0; i < v->n_list; i++)
        if (offers_devices(v, v->pool->slices[v->list[i]]))
            add_devices(v, v->list[i], devices, &view->n_devices);
    for (size_t i = 0; i < b->n_rest; i++)
        if (offers_devices(v, v->pool->slices[b->rest[i]]) || v->behaviour->counter_slices_everywhere)
            add_devices(v, b->rest[i], counted, &view->n_counted);
    view->devices = devices;
    view->counted = counted;
}

static void sort_list(struct viewing *v)
{
    /* insertion sort by name: the lists are short, and usually sorted already */
    for (size_t i = 1; i < v->n_list; i++)
        for (size_t k = i; k && strcmp(v->pool->slices[v->list[k - 1]]->name, v->pool->slices[v->list[k]]->name) > 0;
             k--) {
            uint32_t other = v->list[k];

            v->list[k] = v->list[k - 1];
            v->list[k - 1] = other;
        }
}

static void build_view(struct building *b)
{
    struct viewing *v = b->v;
    struct pool_view *view = b->view;

    sort_list(v);
    list_devices(b);
    check_device_names(b);
    collect_sets(b);
    check_set_names(b);
    flatten_totals(b);
    if (feature_on(v->features, FEATURE_PARTITIONABLE_DEVICES))
        flatten_uses(b);
    if (view->problem && view->status == POOL_USABLE)
        view->status = POOL_INVALID;
    for (size_t i = 0; i < v->n_list && view->status == POOL_USABLE; i++)
        view->is_back = view->is_back ||
                        (offers_devices(v, v->pool->slices[v->list[i]]) && v->pool->slices[v->list[i]]->has_binding);
}

const struct pool_view *pool_view_make(const struct pool *pool, const struct node_info *node,
                                       const struct features *features, const struct behaviour *behaviour,
                                       struct arena *arena, struct view_problem *out_problem)
{
    struct viewing v = {.pool = pool, .node = node, .features = features, .behaviour = behaviour, .arena = arena};
    struct building b = {.v = &v};
    uint32_t first = 0;

    v.list = arena_array(arena, uint32_t, pool->n_slices);
    v.first_device = arena_array(arena, uint32_t, pool->n_slices);
    for (size_t i = 0; i < pool->n_slices; i++) {
        v.first_device[i] = first;
        first += (uint32_t)pool->slices[i]->n_devices;
    }
    collect_all(&v);
    *out_problem = (struct view_problem){v.problem, v.problem_order};
    if (!v.n_list || v.problem)
        return NULL;
    b.view = arena_new(arena, struct pool_view);
    b.view->pool = pool;
    switch (classify(&b)) {
    case OBSOLETE:
        return NULL;
    case INCOMPLETE:
        b.view->status = POOL_INCOMPLETE;
        if (behaviour->uses_incomplete)
            build_view(&b);
        break;
    case COMPLETE:
        b.n_rest = 0;
        build_view(&b);
        break;
    case COMPLETE_WITH_REST:
        build_view(&b);
        break;
    }
    return b.view;
}
