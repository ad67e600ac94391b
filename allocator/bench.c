/* Benches: the devices that a node offers, in the order in which the scheduler tries them (semantics, 3.6 and 4.5). */
#include "allocator/shape.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

/* ---- the pools of a node, in order ---- */

struct lineup {
    const struct pool_view **views;
    size_t n;
};

static int pool_order(const struct pool *a, const struct pool *b)
{
    int order = strcmp(a->driver, b->driver);

    return order ? order : strcmp(a->name, b->name);
}

static void add_view(struct bench_table *table, struct lineup *lineup, const struct pool *pool)
{
    const struct snapshot *s = table->bench.snapshot;
    const struct pool_view *view = pool->view;
    struct view_problem problem = {0};

    if (!pool->only_node)
        view = pool_view_make(pool, table->bench.node->info, &s->features, &s->behaviour, table->arena, &problem);
    if (problem.text && (!table->bench.problem || problem.order < table->problem_order)) {
        table->bench.problem = problem.text;
        table->problem_order = problem.order;
    }
    if (view)
        lineup->views[lineup->n++] = view;
}

/* Both lists come sorted by driver and name; a pool of both kinds is in both. */
static void merge_pools(struct bench_table *table, struct lineup *lineup)
{
    const struct snapshot *s = table->bench.snapshot;
    const struct node *node = table->bench.node;
    size_t n_global, i = 0, k = 0;
    const uint32_t *global = snapshot_global_pools(s, &n_global);

    lineup->views = arena_array(table->arena, const struct pool_view *, node->n_pools + n_global + 1);
    while (i < node->n_pools || k < n_global) {
        const struct pool *a = i < node->n_pools ? snapshot_pool(s, node->pools[i]) : NULL;
        const struct pool *b = k < n_global ? snapshot_pool(s, global[k]) : NULL;
        int order = !a ? 1 : !b ? -1 : pool_order(a, b);

        add_view(table, lineup, order <= 0 ? a : b);
        i += order <= 0;
        k += order >= 0;
    }
}

/* Pools with binding conditions go last, otherwise the order stays. */
static const struct pool_view *const *back_last(const struct lineup *lineup, struct arena *arena)
{
    const struct pool_view **views;
    size_t n = 0, n_back = 0;

    for (size_t i = 0; i < lineup->n; i++)
        n_back += lineup->views[i]->is_back;
    if (!n_back)
        return lineup->views;
    views = arena_array(arena, const struct pool_view *, lineup->n);
    for (int back = 0; back < 2; back++)
        for (size_t i = 0; i < lineup->n; i++)
            if (lineup->views[i]->is_back == back)
                views[n++] = lineup->views[i];
    return views;
}

static bool offers(const struct bench_table *table, const struct pool_view *view)
{
    return view->status == POOL_USABLE ||
           (view->status == POOL_INCOMPLETE && table->bench.snapshot->behaviour.uses_incomplete);
}

static void list_offers(struct bench_table *table)
{
    struct bench *bench = &table->bench;
    struct offer *list;
    size_t n = 0;

    for (size_t i = 0; i < bench->n_views; i++)
        n += offers(table, bench->views[i]) ? bench->views[i]->n_devices : 0;
    list = arena_array(table->arena, struct offer, n + 1);
    table->use = arena_array(table->arena, const struct device_use *, n + 1);
    n = 0;
    for (size_t i = 0; i < bench->n_views; i++) {
        const struct pool_view *view = bench->views[i];
        const struct device_use *use;

        if (!offers(table, view))
            continue;
        use = table->ledger ? ledger_pool_use(table->ledger, view->pool) : view->pool->use;
        table->has_counters = table->has_counters || view->n_counters;
        for (size_t k = 0; k < view->n_devices; k++) {
            uint32_t index = view->devices[k];
            const struct pool_device *pd = &view->pool->devices[index];

            table->use[n] = &use[index];
            list[n++] = (struct offer){.view = view, .slice = pd->slice, .device = pd->device, .index = index};
        }
    }
    bench->offers = list;
    bench->n_offers = n;
}

const struct bench *bench_make(struct shape *shape, const struct ledger *ledger, const struct node *node,
                               struct arena *arena)
{
    struct bench_table *table = arena_new(arena, struct bench_table);
    struct lineup lineup = {0};

    table->bench.snapshot = shape->snapshot;
    table->bench.node = node;
    table->ledger = ledger;
    table->arena = arena;
    merge_pools(table, &lineup);
    table->bench.views = back_last(&lineup, arena);
    table->bench.n_views = lineup.n;
    list_offers(table);
    table->selects = arena_array(arena, uint8_t, table->bench.n_offers * shape->n_asks + 1);
    return &table->bench;
}

/* ---- 4.5: which devices an ask selects ---- */

static enum selectable evaluate(struct shape *shape, struct bench_table *table, const struct offer *offer,
                                const struct ask *ask, const char **out_message)
{
    size_t n_class = ask->device_class ? ask->device_class->n_selectors : 0;

    for (size_t i = 0; i < ask->n_expressions; i++) {
        struct expression *expression = ask->expressions[i];
        const char *message = "unsupported, it has no CEL expression";
        struct arena_mark mark = arena_mark(&shape->scratch);
        enum selectable selects = SELECT_ERROR;

        if (expression && table->plain)
            selects = expression_evaluate(expression, offer->slice->driver, offer->device, &shape->scratch, &message);
        else if (expression)
            selects = expression_selects(expression, offer->slice->driver, offer->device, &shape->scratch, &message);
        if (selects == SELECT_ERROR && out_message)
            *out_message = i < n_class ? arena_printf(table->arena, "%s: class %s: selector #%zu: device %s/%s/%s: %s",
                                                      ask->label, ask->device_class->name, i, offer->slice->driver,
                                                      offer->slice->pool, offer->device->name, message)
                                       : arena_printf(table->arena, "%s: selector #%zu: device %s/%s/%s: %s",
                                                      ask->label, i - n_class, offer->slice->driver, offer->slice->pool,
                                                      offer->device->name, message);
        arena_rewind(&shape->scratch, mark);
        if (selects != SELECT_YES)
            return selects;
    }
    return SELECT_YES;
}

/* A device of a slice that selects nodes per device must be on this node. */
static enum selectable on_this_node(struct bench_table *table, const struct offer *offer, const char **out_message)
{
    const struct device *device = offer->device;

    if (device->node_name)
        return text_is(device->node_name, table->bench.node->info->name) ? SELECT_YES : SELECT_NO;
    if (device->all_nodes || !device->selector)
        return device->all_nodes ? SELECT_YES : SELECT_NO;
    if (device->selector->problem) {
        if (out_message)
            *out_message =
                arena_printf(table->arena, "node selector of device %s: %s", device->name, device->selector->problem);
        return SELECT_ERROR;
    }
    return node_selector_matches(device->selector, table->bench.node->info) ? SELECT_YES : SELECT_NO;
}

enum selectable bench_selects(struct shape *shape, const struct bench *bench, size_t offer, size_t ask,
                              const char **out_message)
{
    struct bench_table *table = bench_table(bench);
    const struct offer *o = &bench->offers[offer];
    uint8_t *cached = &table->selects[offer * shape->n_asks + ask];
    enum selectable selects;

    if (*cached && (*cached != SELECT_ERROR + 1 || !out_message))
        return (enum selectable)(*cached - 1);
    if (o->device->binding.n && !shape->behaviour->binding_and_status) {
        selects = SELECT_NO;
    } else {
        selects = evaluate(shape, table, o, &shape->asks[ask], out_message);
        if (selects == SELECT_YES && o->slice->per_device)
            selects = on_this_node(table, o, out_message);
    }
    *cached = (uint8_t)(selects + 1);
    return selects;
}

/* ---- taints ---- */

static bool blocks(const struct shape *shape, const struct claim_ask *ask, const struct taint *taint)
{
    if (taint->effect != EFFECT_NO_SCHEDULE && taint->effect != EFFECT_NO_EXECUTE &&
        !shape->behaviour->any_taint_blocks)
        return false;
    for (size_t i = 0; i < ask->n_tolerations; i++)
        if (toleration_covers(&ask->tolerations[i], taint))
            return false;
    return true;
}

bool ask_is_blocked(const struct shape *shape, const struct claim_ask *ask, const struct pool_device *pd)
{
    if (!feature_on(shape->features, FEATURE_DEVICE_TAINTS))
        return false;
    for (size_t i = 0; i < pd->device->n_taints; i++)
        if (blocks(shape, ask, &pd->device->taints[i]))
            return true;
    for (size_t i = 0; i < pd->n_rule_taints; i++)
        if (blocks(shape, ask, &pd->rule_taints[i]))
            return true;
    return false;
}

/* ---- attributes ---- */

const struct attribute *attribute_find(const char *driver, const struct device *device, const char *name)
{
    const char *slash = strchr(name, '/');
    const char *bare = NULL;
    const struct attribute *found = NULL;

    if (slash && strlen(driver) == (size_t)(slash - name) && memcmp(driver, name, (size_t)(slash - name)) == 0)
        bare = slash + 1;
    for (size_t i = 0; i < device->n_attributes; i++) {
        if (text_is(device->attributes[i].key, name))
            return &device->attributes[i];
        if (bare && text_is(device->attributes[i].key, bare))
            found = &device->attributes[i];
    }
    return found;
}

/* ---- kinds and signatures ---- */

static void digest_use(struct digest *digest, const struct device *device, const struct device_use *use)
{
    digest_add(digest, (uint64_t)(use->n_dedicated > 0) | (uint64_t)(use->n_shares > 0) << 1 |
                           (uint64_t)use->has_consumed << 2);
    for (size_t i = 0; use->consumed && i < device->n_capacities; i++)
        digest_quantity(digest, &use->consumed[i]);
}

static void digest_counters(struct digest *digest, const struct offer *offer, size_t view, size_t position)
{
    const struct pool_view *v = offer->view;

    digest_add(digest, offer->device->n_consumes);
    if (!offer->device->n_consumes || !v->use_start)
        return;
    digest_add(digest, view);
    for (uint32_t i = v->use_start[position]; i < v->use_start[position + 1]; i++) {
        digest_add(digest, v->uses[i].counter);
        digest_quantity(digest, &v->uses[i].amount);
    }
    for (size_t i = 0; i < offer->device->n_consumes; i++) {
        const struct consumption *consumes = &offer->device->consumes[i];

        digest_add(digest, consumes->n_groups);
        for (size_t k = 0; k < consumes->n_groups; k++)
            digest_text(digest, consumes->groups[k], strlen(consumes->groups[k]));
    }
}

static void digest_asks(struct shape *shape, const struct bench *bench, size_t offer, struct digest *digest)
{
    const struct offer *o = &bench->offers[offer];
    const struct pool_device *pd = &o->view->pool->devices[o->index];

    for (size_t i = 0; i < shape->n_asks; i++)
        digest_add(digest, (uint64_t)bench_selects(shape, bench, offer, i, NULL) * 2 +
                               ask_is_blocked(shape, shape->asks[i].ask, pd));
}

static struct digest kind_of(struct shape *shape, const struct bench *bench, size_t offer, size_t view, size_t position)
{
    const struct offer *o = &bench->offers[offer];
    struct digest digest = {0};

    digest_asks(shape, bench, offer, &digest);
    for (size_t i = 0; i < shape->n_attributes; i++) {
        const struct attribute *a = attribute_find(o->slice->driver, o->device, shape->attributes[i]);

        digest_add(&digest, a ? a->hash : 1);
    }
    digest_add(&digest, o->device->multi | (uint64_t)(o->slice->skip_node_operations.n > 0) << 1);
    digest_use(&digest, o->device, bench_table(bench)->use[offer]);
    digest_add(&digest, o->device->n_capacities);
    for (size_t i = 0; i < o->device->n_capacities; i++)
        digest_add(&digest, o->device->capacities[i].hash);
    digest_counters(&digest, o, view, position);
    if (shape->has_derived) {
        digest_add(&digest, (uint64_t)(uintptr_t)o->slice->driver);
        digest_add(&digest, o->device->digest.lo);
        digest_add(&digest, o->device->digest.hi);
    }
    return digest;
}

void bench_kinds(struct shape *shape, const struct bench *bench)
{
    struct bench_table *table = bench_table(bench);
    size_t n = 0;

    if (table->has_kinds)
        return;
    table->has_kinds = true;
    for (size_t i = 0; i < bench->n_views; i++) {
        if (!offers(table, bench->views[i]))
            continue;
        for (size_t k = 0; k < bench->views[i]->n_devices; k++, n++)
            ((struct offer *)bench->offers)[n].kind = kind_of(shape, bench, n, i, k);
    }
}

/* Of a pool with counters: what is left of them depends on all its devices, those of other nodes too. */
static void digest_counter_state(const struct bench_table *table, const struct pool_view *view, struct digest *digest)
{
    const struct device_use *use = table->ledger ? ledger_pool_use(table->ledger, view->pool) : view->pool->use;

    for (size_t i = 0; i < view->n_counters; i++)
        digest_quantity(digest, &view->totals[i]);
    for (size_t i = 0; i < view->n_devices + view->n_counted; i++) {
        uint32_t index = i < view->n_devices ? view->devices[i] : view->counted[i - view->n_devices];

        digest_use(digest, view->pool->devices[index].device, &use[index]);
        for (uint32_t k = view->use_start[i]; k < view->use_start[i + 1]; k++) {
            digest_add(digest, view->uses[k].counter);
            digest_quantity(digest, &view->uses[k].amount);
        }
    }
}

struct digest bench_signature(struct shape *shape, const struct bench *bench, const struct ledger *ledger)
{
    const struct bench_table *table = bench_table(bench);
    struct digest digest = {0};

    (void)ledger; /* the bench was made with it */
    bench_kinds(shape, bench);
    for (size_t i = 0; i < bench->n_views; i++) {
        const struct pool_view *view = bench->views[i];

        digest_add(&digest, (uint64_t)view->status << 32 | (offers(table, view) ? view->n_devices : 0));
        if (offers(table, view) && view->n_counters)
            digest_counter_state(table, view, &digest);
    }
    for (size_t i = 0; i < bench->n_offers; i++) {
        digest_add(&digest, bench->offers[i].kind.lo);
        digest_add(&digest, bench->offers[i].kind.hi);
    }
    digest_add(&digest, bench->problem != NULL);
    digest_add(&digest, bench->node->info->declares_optional_operations);
    return digest;
}
