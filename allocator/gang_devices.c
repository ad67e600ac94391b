/* Devices and counters of a problem. A device that several nodes reach is made once and is of the network, and so is
 * one whose counters are shared with devices of other nodes: nothing of it can be decided by one node alone. */
#include "allocator/gang_builder.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

/* ---- small questions ---- */

bool gang_device_reaches(const struct slice *slice, const struct device *device, const struct node_info *node)
{
    const char *name = slice->per_device ? device->node_name : slice->node_name;
    bool all = slice->per_device ? device->all_nodes : slice->all_nodes;
    const struct node_selector *selector = slice->per_device ? device->selector : slice->selector;

    if (name)
        return strcmp(name, node->name) == 0;
    return all || (selector && node_selector_matches(selector, node));
}

const struct device_use *builder_use(const struct gang *gang, const struct pool *pool)
{
    return gang->ledger ? ledger_pool_use(gang->ledger, pool) : pool->use;
}

static bool is_charged(const struct device_use *use)
{
    return use->n_dedicated > 0 || use->n_shares > 0 || use->has_consumed;
}

/* ---- counters ---- */

static gs_amount *counter_left(const struct pool_counters *counters, const char *set, const char *name,
                               const struct counter **out_counter)
{
    for (size_t s = 0; s < counters->view->n_sets; s++) {
        const struct counter_set *one = counters->view->sets[s];

        if (strcmp(one->name, set) != 0)
            continue;
        for (size_t c = 0; c < one->n_counters; c++)
            if (strcmp(one->counters[c].name, name) == 0) {
                *out_counter = &one->counters[c];
                return &counters->left[s][c];
            }
    }
    return NULL;
}

static void counters_subtract(const struct pool_counters *counters, const struct device *device)
{
    for (size_t i = 0; i < device->n_consumes; i++)
        for (size_t c = 0; c < device->consumes[i].n_counters; c++) {
            const struct counter *whole;
            gs_amount *left =
                counter_left(counters, device->consumes[i].set, device->consumes[i].counters[c].name, &whole);

            if (left)
                *left -= gang_amount(&device->consumes[i].counters[c].value);
        }
}

static struct pool_counters counters_make(struct builder *b, const struct pool_view *view)
{
    struct pool_counters out = {.pool = view->pool, .view = view};
    const struct device_use *use = builder_use(b->gang, view->pool);

    out.left = arena_array(b->arena, gs_amount *, view->n_sets);
    for (size_t s = 0; s < view->n_sets; s++) {
        out.left[s] = arena_array(b->arena, gs_amount, view->sets[s]->n_counters);
        for (size_t c = 0; c < view->sets[s]->n_counters; c++)
            out.left[s][c] = gang_amount(&view->sets[s]->counters[c].value);
    }
    for (size_t i = 0; i < view->n_devices; i++)
        if (is_charged(&use[view->devices[i]]))
            counters_subtract(&out, view->pool->devices[view->devices[i]].device);
    for (size_t i = 0; i < view->n_counted; i++)
        if (is_charged(&use[view->counted[i]]))
            counters_subtract(&out, view->pool->devices[view->counted[i]].device);
    for (size_t s = 0; s < view->n_sets; s++)
        for (size_t c = 0; c < view->sets[s]->n_counters; c++)
            out.is_blocked = out.is_blocked || out.left[s][c] < 0;
    return out;
}

const struct pool_counters *builder_counters(struct builder *b, const struct pool_view *view)
{
    if (view->pool->only_node) {
        for (size_t i = 0; i < b->n_own; i++)
            if (b->own[i].pool == view->pool)
                return &b->own[i];
        mem_grow(b->own, b->n_own, b->cap_own);
        b->own[b->n_own] = counters_make(b, view);
        return &b->own[b->n_own++];
    }
    for (size_t i = 0; i < b->n_counters; i++)
        if (b->counters[i].pool == view->pool)
            return &b->counters[i];
    mem_grow(b->counters, b->n_counters, b->cap_counters);
    b->counters[b->n_counters] = counters_make(b, view);
    return &b->counters[b->n_counters++];
}

/* ---- devices ---- */

static bool is_of_network(const struct offer *offer)
{
    const struct pool_device *device = &offer->view->pool->devices[offer->index];
    bool named = device->slice->per_device ? device->device->node_name != NULL : device->slice->node_name != NULL;

    return !named || (device->device->n_consumes > 0 && !offer->view->pool->only_node);
}

static size_t table_slot(const struct device_table *table, const struct pool *pool, uint32_t index)
{
    size_t at = gs_hash_mix((struct gs_hash){pool->slot, 3}, index).a & (table->n_slots - 1);

    while (table->slots[at] &&
           (table->items[table->slots[at] - 1]->pool != pool || table->items[table->slots[at] - 1]->index != index))
        at = (at + 1) & (table->n_slots - 1);
    return at;
}

static void table_grow(struct device_table *table)
{
    table->n_slots = table->n_slots ? table->n_slots * 2 : 64;
    free(table->slots);
    table->slots = mem_array(uint32_t, table->n_slots);
    for (size_t i = 0; i < table->n; i++)
        table->slots[table_slot(table, table->items[i]->pool, table->items[i]->index)] = (uint32_t)(i + 1);
}

static void fill_capacities(struct builder *b, struct gang_device *out, const struct device_use *use)
{
    gs_amount *left = arena_array(b->arena, gs_amount, out->device->n_capacities);

    for (size_t i = 0; i < out->device->n_capacities; i++) {
        left[i] = gang_amount(&out->device->capacities[i].value);
        if (use->consumed)
            left[i] -= gang_amount(&use->consumed[i]);
        out->gs.parted = out->gs.parted || left[i] < gang_amount(&out->device->capacities[i].value);
    }
    out->gs.left = left;
    out->gs.n_left = out->device->n_capacities;
}

static void fill_counters(struct builder *b, struct gang_device *out, const struct pool_view *view)
{
    const struct pool_counters *counters = builder_counters(b, view);
    struct gs_use *uses;
    size_t n = 0;

    for (size_t i = 0; i < out->device->n_consumes; i++)
        n += out->device->consumes[i].n_counters;
    uses = arena_array(b->arena, struct gs_use, n);
    for (size_t i = 0; i < out->device->n_consumes; i++)
        for (size_t c = 0; c < out->device->consumes[i].n_counters; c++) {
            const struct counter *counter = &out->device->consumes[i].counters[c];
            const struct counter *whole;
            gs_amount *left = counter_left(counters, out->device->consumes[i].set, counter->name, &whole);

            if (!left)
                continue;
            uses[out->gs.n_counters++] = (struct gs_use){left, gang_amount(&counter->value)};
            out->gs.parted = out->gs.parted || *left < gang_amount(&whole->value);
        }
    out->gs.counters = uses;
}

/* The name of the i-th counter that the device consumes, over all of its sets. */
const char *builder_counter_name(const struct device *device, size_t i)
{
    for (size_t s = 0; s < device->n_consumes; s++) {
        if (i < device->consumes[s].n_counters)
            return device->consumes[s].counters[i].name;
        i -= device->consumes[s].n_counters;
    }
    return NULL;
}

static void fill_values(struct builder *b, struct gang_device *out)
{
    const struct gs_value **values = arena_array(b->arena, const struct gs_value *, b->gang->n_attributes);

    for (size_t i = 0; i < b->gang->n_attributes; i++)
        values[i] =
            gang_value(b->gang, attribute_find(out->slice->driver, out->device, b->gang->attributes[i]), b->arena);
    out->gs.values = values;
}

struct gang_device *builder_device(struct builder *b, const struct offer *offer, bool is_net)
{
    const struct pool_device *source = &offer->view->pool->devices[offer->index];
    const struct device_use *use = &builder_use(b->gang, offer->view->pool)[offer->index];
    struct gang_device *out = arena_new(b->arena, struct gang_device);
    bool sharing = feature_on(snapshot_features(b->gang->snapshot), FEATURE_CONSUMABLE_CAPACITY);

    out->pool = offer->view->pool;
    out->index = offer->index;
    out->slice = source->slice;
    out->device = source->device;
    out->is_net = is_net;
    out->gs.id = b->next_id++;
    out->gs.multi = source->device->multi && sharing;
    out->gs.charged = is_charged(use);
    out->gs.pins = source->slice->per_device ? source->device->node_name != NULL : source->slice->node_name != NULL;
    out->gs.pins = out->gs.pins || (source->device->binds_to_node && b->gang->behaviour->binds_to_node);
    if (out->gs.multi)
        fill_capacities(b, out, use);
    if (source->device->n_consumes && !builder_lifts(b, LIFT_COUNTERS))
        fill_counters(b, out, offer->view);
    fill_values(b, out);
    return out;
}

static struct gang_device *net_device(struct builder *b, const struct offer *offer)
{
    struct device_table *table = &b->devices;
    size_t at;

    if ((table->n + 1) * 2 > table->n_slots)
        table_grow(table);
    at = table_slot(table, offer->view->pool, offer->index);
    if (table->slots[at])
        return table->items[table->slots[at] - 1];
    mem_grow(table->items, table->n, table->cap);
    table->items[table->n++] = builder_device(b, offer, true);
    table->slots[at] = (uint32_t)table->n;
    return table->items[table->n - 1];
}

struct gang_device *builder_device_of(struct builder *b, const struct offer *offer)
{
    if (is_of_network(offer))
        return net_device(b, offer);
    for (size_t i = 0; i < b->n_local; i++)
        if (b->local[i]->pool == offer->view->pool && b->local[i]->index == offer->index)
            return b->local[i];
    mem_grow(b->local, b->n_local, b->cap_local);
    b->local[b->n_local] = builder_device(b, offer, false);
    return b->local[b->n_local++];
}
