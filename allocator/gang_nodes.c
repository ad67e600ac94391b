/* What the nodes offer, as a problem of the search.
 *
 * First every node that some kind may run on gets its candidates per ask; devices that several nodes reach are made
 * once. Then the devices of a node are gathered into cells: whatever shares a counter set, or an attribute value that a
 * constraint looks at, influences each other and lies in one cell. A cell's signature says all that matters of it with
 * its own numbering of values, so that the eight GPUs of a node are eight equal cells although each has another PCIe
 * root. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

/* Counters of a pool that are left. */
struct pool_counters {
    const struct pool *pool;
    const struct pool_view *view;
    gs_amount **left; /* per set, per counter */
    bool is_blocked;  /* one is overdrawn, so that no consumer of the pool can be taken */
};

struct device_table {
    struct gang_device **items;
    size_t n, cap;
    uint32_t *slots; /* index + 1 */
    size_t n_slots;
};

struct builder {
    struct gang *gang;
    const struct gang_choice *choice;
    struct arena *arena;
    struct gs_problem *problem;
    struct device_table devices; /* of the network */
    struct gang_device **local;  /* of the node in work */
    size_t n_local, cap_local;
    struct pool_counters *counters; /* of pools that several nodes see */
    size_t n_counters, cap_counters;
    struct pool_counters *own; /* of the node in work */
    size_t n_own, cap_own;
    struct gs_node **nodes;
    size_t n_nodes, cap_nodes;
    bool *claim_attributes;             /* per attribute: some constraint in a claim looks at it */
    bool *distinct_attributes;          /* per attribute: some gang-wide distinct constraint does */
    uint64_t *net_elements;             /* elements that devices of the network have */
    struct gang_device ***node_devices; /* per node: its local devices, NULL-terminated */
    size_t cap_node_devices;
    uint32_t next_id;
};

/* ---- small questions ---- */

enum lifted { LIFT_COUNTERS, LIFT_CAPACITY };

static bool lifts(const struct builder *b, enum lifted what)
{
    const struct gang_lift *lift = b->gang->lift;

    return lift && (what == LIFT_COUNTERS ? lift->counters : lift->capacity);
}

bool gang_device_reaches(const struct slice *slice, const struct device *device, const struct node_info *node)
{
    const char *name = slice->per_device ? device->node_name : slice->node_name;
    bool all = slice->per_device ? device->all_nodes : slice->all_nodes;
    const struct node_selector *selector = slice->per_device ? device->selector : slice->selector;

    if (name)
        return strcmp(name, node->name) == 0;
    return all || (selector && node_selector_matches(selector, node));
}

static const struct device_use *use_of(const struct gang *gang, const struct pool *pool)
{
    return gang->ledger ? ledger_pool_use(gang->ledger, pool) : pool->use;
}

static const struct node_use *node_use_of(const struct gang *gang, const struct node *node)
{
    return gang->ledger ? ledger_node_use(gang->ledger, node) : &node->use;
}

static bool is_charged(const struct device_use *use)
{
    return use->n_dedicated > 0 || use->n_shares > 0 || use->has_consumed;
}

/* ---- counters ---- */

static gs_amount *counter_left(const struct pool_counters *counters, const char *set, const char *name)
{
    for (size_t s = 0; s < counters->view->n_sets; s++) {
        const struct counter_set *one = counters->view->sets[s];

        if (strcmp(one->name, set) != 0)
            continue;
        for (size_t c = 0; c < one->n_counters; c++)
            if (strcmp(one->counters[c].name, name) == 0)
                return &counters->left[s][c];
    }
    return NULL;
}

static void counters_subtract(const struct pool_counters *counters, const struct device *device)
{
    for (size_t i = 0; i < device->n_consumes; i++)
        for (size_t c = 0; c < device->consumes[i].n_counters; c++) {
            gs_amount *left = counter_left(counters, device->consumes[i].set, device->consumes[i].counters[c].name);

            if (left)
                *left -= gang_amount(&device->consumes[i].counters[c].value);
        }
}

static struct pool_counters counters_make(struct builder *b, const struct pool_view *view)
{
    struct pool_counters out = {.pool = view->pool, .view = view};
    const struct device_use *use = use_of(b->gang, view->pool);

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

static const struct pool_counters *counters_of(struct builder *b, const struct pool_view *view)
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
    }
    out->gs.left = left;
    out->gs.n_left = out->device->n_capacities;
}

static void fill_counters(struct builder *b, struct gang_device *out, const struct pool_view *view)
{
    const struct pool_counters *counters = counters_of(b, view);
    struct gs_use *uses;
    size_t n = 0;

    for (size_t i = 0; i < out->device->n_consumes; i++)
        n += out->device->consumes[i].n_counters;
    uses = arena_array(b->arena, struct gs_use, n);
    for (size_t i = 0; i < out->device->n_consumes; i++)
        for (size_t c = 0; c < out->device->consumes[i].n_counters; c++) {
            const struct counter *counter = &out->device->consumes[i].counters[c];
            gs_amount *left = counter_left(counters, out->device->consumes[i].set, counter->name);

            if (left)
                uses[out->gs.n_counters++] = (struct gs_use){left, gang_amount(&counter->value)};
        }
    out->gs.counters = uses;
}

/* The name of the i-th counter that the device consumes, over all of its sets. */
static const char *counter_name(const struct device *device, size_t i)
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

static struct gang_device *device_make(struct builder *b, const struct offer *offer, bool is_net)
{
    const struct pool_device *source = &offer->view->pool->devices[offer->index];
    const struct device_use *use = &use_of(b->gang, offer->view->pool)[offer->index];
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
    if (source->device->n_consumes && !lifts(b, LIFT_COUNTERS))
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
    table->items[table->n++] = device_make(b, offer, true);
    table->slots[at] = (uint32_t)table->n;
    return table->items[table->n - 1];
}

static struct gang_device *device_of(struct builder *b, const struct offer *offer)
{
    if (is_of_network(offer))
        return net_device(b, offer);
    for (size_t i = 0; i < b->n_local; i++)
        if (b->local[i]->pool == offer->view->pool && b->local[i]->index == offer->index)
            return b->local[i];
    mem_grow(b->local, b->n_local, b->cap_local);
    b->local[b->n_local] = device_make(b, offer, false);
    return b->local[b->n_local++];
}

/* ---- candidates ---- */

enum capacity_verdict { CAPACITY_FITS, CAPACITY_NEVER, CAPACITY_FAILS };

/* The capacity test with nothing taken yet (semantics 10.2); what a share would take goes to *out. */
static enum capacity_verdict capacity_test(struct builder *b, const struct gang_ask *ask, struct gang_device *device,
                                           struct gs_candidate *out)
{
    size_t n = device->device->n_capacities;
    const struct quantity *amounts = NULL;
    const char *message = NULL;
    struct gs_use *uses;

    *out = (struct gs_candidate){.device = &device->gs};
    if (!feature_on(snapshot_features(b->gang->snapshot), FEATURE_CONSUMABLE_CAPACITY) || lifts(b, LIFT_CAPACITY))
        return CAPACITY_FITS;
    switch (capacity_consumption(ask->unit->shape, ask->ask, device->device, b->arena, &amounts, &message)) {
    case CAPACITY_OK:
        break;
    case CAPACITY_MISSING:
        return CAPACITY_NEVER;
    case CAPACITY_ERROR:
        return b->gang->behaviour->capacity_errors_skip ? CAPACITY_NEVER : CAPACITY_FAILS;
    }
    uses = arena_array(b->arena, struct gs_use, n);
    for (size_t i = 0; i < n; i++) {
        uses[i].amount = gang_amount(&amounts[i]);
        uses[i].left = device->gs.multi ? &device->gs.left[i] : NULL;
        if (uses[i].amount > gang_amount(&device->device->capacities[i].value))
            return CAPACITY_NEVER;
    }
    if (device->gs.multi) {
        out->uses = uses;
        out->n_uses = n;
    }
    return CAPACITY_FITS;
}

/* Whether the settled values of gang constraints admit the device. */
static bool choice_admits(const struct builder *b, const struct gang_ask *ask, const struct gang_device *device)
{
    for (size_t i = 0; i < b->gang->spec->n_constraints; i++) {
        const struct gs_value *value;
        bool has = false;

        if (!(ask->covered >> i & 1) || !b->choice->elements || b->choice->elements[i] == UINT32_MAX)
            continue;
        value = device->gs.values[b->gang->constraint_attribute[i]];
        for (uint32_t e = 0; value && e < value->n; e++)
            has = has || value->elements[e] == b->choice->elements[i];
        if (!has)
            return false;
    }
    return true;
}

static bool is_excluded(const struct builder *b, const struct gang_device *device)
{
    for (size_t i = 0; i < b->gang->spec->n_excluded; i++)
        if (device_matches(b->gang->snapshot, b->gang->spec->excluded[i], device->slice->driver, device->device))
            return true;
    return false;
}

/* Everything but its state during the search that keeps the ask from taking the device. */
static bool is_barred(struct builder *b, const struct gang_ask *ask, const struct gang_device *device,
                      const struct pool_view *view)
{
    const struct device_use *use = &use_of(b->gang, device->pool)[device->index];
    bool partitions = feature_on(snapshot_features(b->gang->snapshot), FEATURE_PARTITIONABLE_DEVICES);

    if (!ask->admin && use->n_dedicated > 0)
        return true;
    if (device->device->n_consumes && !lifts(b, LIFT_COUNTERS) && (!partitions || counters_of(b, view)->is_blocked))
        return true;
    return ask_is_blocked(ask->unit->shape, ask->ask, &device->pool->devices[device->index]) ||
           !choice_admits(b, ask, device) || is_excluded(b, device);
}

struct listing {
    struct gs_candidate *items;
    size_t n;
    bool all_fails;
};

/* One offer for one ask; false ends the list, because an expression or amount that fails ends the scheduling of the
 * pod. */
static bool list_offer(struct builder *b, const struct gang_ask *ask, const struct bench *bench, size_t offer,
                       struct listing *list)
{
    const struct offer *offered = &bench->offers[offer];
    const struct device_use *use = &use_of(b->gang, offered->view->pool)[offered->index];
    struct gang_device *device;
    const char *message = NULL;
    enum selectable selects;
    enum capacity_verdict amount;

    if (!ask->all && !ask->admin && use->n_dedicated > 0)
        return true;
    selects = bench_selects(ask->unit->shape, bench, offer, ask->index, &message);
    if (selects == SELECT_NO)
        return true;
    device = device_of(b, offered);
    amount = selects == SELECT_ERROR ? CAPACITY_FAILS : capacity_test(b, ask, device, &list->items[list->n]);
    if (amount == CAPACITY_FAILS) {
        if (!b->gang->evaluation_error)
            b->gang->evaluation_error = arena_strdup(
                b->gang->arena, message ? message : "an amount of capacity that cannot be computed for a device");
        list->all_fails = true;
        return false;
    }
    if (amount == CAPACITY_NEVER)
        return true;
    if (is_barred(b, ask, device, offered->view)) {
        list->all_fails = true;
        return true;
    }
    list->n++;
    return true;
}

static void sign_listing(const struct listing *list, uint32_t ask, struct gs_hash *node_signature)
{
    *node_signature = gs_hash_add(*node_signature, gs_hash_mix((struct gs_hash){ask, list->all_fails}, list->n));
    for (size_t i = 0; i < list->n; i++) {
        struct gang_device *device = (struct gang_device *)(void *)list->items[i].device;
        struct gs_hash h = {ask, 5};

        for (size_t u = 0; u < list->items[i].n_uses; u++)
            h = gs_hash_mix(gs_hash_mix(h, (uint64_t)list->items[i].uses[u].amount),
                            (uint64_t)(list->items[i].uses[u].amount >> 64));
        if (device->is_net)
            *node_signature = gs_hash_add(*node_signature, gs_hash_mix(h, device->gs.id));
        else
            device->signature = gs_hash_add(device->signature, gs_hash_mix(h, 1));
    }
}

static void list_ask(struct builder *b, uint32_t number, const struct bench *bench, struct gs_list *out,
                     struct gs_hash *signature)
{
    const struct gang_ask *ask = &b->gang->asks[number];
    struct listing list = {.items = arena_array(b->arena, struct gs_candidate, bench->n_offers + 1)};

    for (size_t v = 0; ask->all && v < bench->n_views; v++)
        list.all_fails = list.all_fails || bench->views[v]->status != POOL_USABLE;
    for (size_t i = 0; i < bench->n_offers; i++)
        if (!list_offer(b, ask, bench, i, &list))
            break;
    if (!ask->all)
        list.all_fails = false;
    sign_listing(&list, number, signature);
    *out = (struct gs_list){.items = list.items, .n = list.n, .all_fails = list.all_fails};
}

/* ---- nodes ---- */

static bool label_admits(const struct builder *b, const struct gang_kind *kind, const struct node_info *node)
{
    for (size_t i = 0; i < b->gang->spec->n_constraints; i++) {
        const char *value;

        if (!(kind->label_constraints >> i & 1) || !b->choice->labels || !b->choice->labels[i])
            continue;
        value = node_label(node, b->gang->spec->constraints[i].key);
        if (!value || strcmp(value, b->choice->labels[i]) != 0)
            return false;
    }
    return true;
}

static bool claims_admit(const struct gang_kind *kind, const struct node_info *node)
{
    for (size_t i = 0; i < kind->n_allocated; i++)
        if (kind->allocated[i]->selector && !node_selector_matches(kind->allocated[i]->selector, node))
            return false;
    return true;
}

static uint64_t taken_ports(const struct gang *gang, const struct node_use *use)
{
    uint64_t taken = 0;

    for (size_t i = 0; i < gang->n_ports; i++)
        for (size_t p = 0; p < use->n_ports; p++)
            if (host_ports_clash(gang->ports[i], &use->ports[p]))
                taken |= (uint64_t)1 << i;
    return taken;
}

static uint64_t ports_of(const struct gang *gang, const struct gang_kind *kind, bool clashing)
{
    uint64_t ports = 0;

    for (size_t i = 0; i < gang->n_ports; i++)
        for (size_t p = 0; p < kind->rules.demand.n_ports; p++) {
            const struct host_port *own = &kind->rules.demand.ports[p];

            if (clashing ? host_ports_clash(gang->ports[i], own)
                         : host_ports_clash(gang->ports[i], own) &&
                               strcmp(gang->ports[i]->ip ? gang->ports[i]->ip : "", own->ip ? own->ip : "") == 0)
                ports |= (uint64_t)1 << i;
        }
    return ports;
}

static bool has_room(const struct gang *gang, const struct gang_kind *kind, const struct gs_node *node)
{
    const int64_t *demand = kind->demand[node->form];

    for (size_t i = 0; i < gang->n_resources; i++)
        if (demand[i] > node->left[i])
            return false;
    return (node->ports & ports_of(gang, kind, false)) == 0;
}

/* The kinds that the node's filters and its room admit. */
static uint64_t kinds_on(const struct builder *b, const struct gang_node *node)
{
    uint64_t kinds = 0;

    for (size_t k = 0; k < b->gang->n_kinds; k++) {
        const struct gang_kind *kind = &b->gang->kinds[k];

        if (kind->forms[node->gs.form] && has_room(b->gang, kind, &node->gs) &&
            node_admits(&kind->rules, node->node->info).obstacle == NODE_ADMITS &&
            claims_admit(kind, node->node->info) && label_admits(b, kind, node->node->info))
            kinds |= (uint64_t)1 << k;
    }
    return kinds;
}

static void fill_left(const struct builder *b, struct gang_node *out)
{
    const struct node_use *use = node_use_of(b->gang, out->node);

    out->gs.left = arena_array(b->arena, int64_t, b->gang->n_resources);
    for (size_t i = 0; i < b->gang->n_resources; i++)
        out->gs.left[i] =
            node_allocatable(out->node->info, b->gang->resources[i]) - node_used(use, b->gang->resources[i]);
    out->gs.ports = taken_ports(b->gang, use);
}

static bool variant_has_candidates(const struct gs_variant *variant, const struct gs_list *lists)
{
    for (size_t c = 0; c < variant->n_claims; c++)
        for (size_t r = 0; r < variant->claims[c].n_requests; r++) {
            const struct gs_request *request = &variant->claims[c].requests[r];
            const struct gs_list *list = &lists[request->ask];

            if (request->all ? list->n == 0 || list->all_fails : list->n < request->count)
                return false;
        }
    return true;
}

static bool unit_has_candidates(const struct gang_unit *unit, const struct gs_list *lists)
{
    for (size_t v = 0; v < unit->n_variants; v++)
        if (variant_has_candidates(&unit->variants[v], lists))
            return true;
    return false;
}

static const struct bench *bench_of(struct builder *b, const struct gang_node *node, const struct bench **benches,
                                    const struct gang_unit *unit)
{
    size_t u = 0;

    while (b->gang->units[u] != unit)
        u++;
    if (!benches[u])
        benches[u] = bench_make(unit->shape, b->gang->ledger, node->node, b->arena);
    return benches[u];
}

/* Fill the lists of a unit's asks; false when the node cannot be used at all. */
static bool list_unit(struct builder *b, struct gang_node *node, const struct bench **benches, struct gs_list *lists,
                      const struct gang_unit *unit)
{
    if (bench_of(b, node, benches, unit)->problem)
        return false;
    for (size_t i = 0; i < shape_n_asks(unit->shape); i++) {
        uint32_t ask = unit->asks[i];
        const struct bench *bench;

        if (lists[ask].items)
            continue;
        bench = bench_of(b, node, benches, b->gang->asks[ask].unit);
        if (bench->problem)
            return false;
        list_ask(b, ask, bench, &lists[ask], &node->gs.signature);
    }
    return true;
}

static bool list_units(struct builder *b, struct gang_node *node, struct gs_list *lists)
{
    const struct bench **benches = arena_array(b->arena, const struct bench *, b->gang->n_units);
    uint64_t shared = 0, kinds = node->gs.groups;

    node->benches = benches;
    for (size_t k = 0; k < b->gang->n_kinds; k++) {
        if (!(kinds >> k & 1))
            continue;
        if (!list_unit(b, node, benches, lists, b->gang->kinds[k].forms[node->gs.form]))
            return false;
        shared |= b->gang->kinds[k].shared;
        if (!unit_has_candidates(b->gang->kinds[k].forms[node->gs.form], lists))
            node->gs.groups &= ~((uint64_t)1 << k);
    }
    for (size_t s = 0; s < b->gang->n_shared; s++)
        if ((shared >> s & 1) && !list_unit(b, node, benches, lists, b->gang->shared[s].unit))
            return false;
    return node->gs.groups != 0;
}

static void keep_node(struct builder *b, struct gang_node *node)
{
    struct gang_device **local = arena_array(b->arena, struct gang_device *, b->n_local + 1);

    if (b->n_local)
        memcpy(local, b->local, b->n_local * sizeof(*local));
    mem_grow(b->node_devices, b->n_nodes, b->cap_node_devices);
    b->node_devices[b->n_nodes] = local;
    mem_grow(b->nodes, b->n_nodes, b->cap_nodes);
    node->gs.index = (uint32_t)b->n_nodes;
    b->nodes[b->n_nodes++] = &node->gs;
}

static void add_node(struct builder *b, const struct node *node)
{
    struct gang_node *out = arena_new(b->arena, struct gang_node);
    struct gs_list *lists;

    out->node = node;
    out->gs.id = node->slot;
    out->gs.form = gang_form_of(b->gang, node->info);
    fill_left(b, out);
    out->gs.groups = kinds_on(b, out);
    if (!out->gs.groups)
        return;
    lists = arena_array(b->arena, struct gs_list, b->gang->n_asks);
    out->gs.lists = lists;
    b->n_local = 0;
    b->n_own = 0;
    if (!list_units(b, out, lists))
        return;
    out->gs.signature = gs_hash_mix(gs_hash_mix(out->gs.signature, out->gs.form), out->gs.groups);
    keep_node(b, out);
}

/* ---- cells ---- */

static size_t root_of(size_t *parent, size_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static bool share_counters(const struct gang_device *a, const struct gang_device *b)
{
    if (a->pool != b->pool)
        return false;
    for (size_t i = 0; i < a->device->n_consumes; i++)
        for (size_t j = 0; j < b->device->n_consumes; j++)
            if (strcmp(a->device->consumes[i].set, b->device->consumes[j].set) == 0)
                return true;
    return false;
}

static bool share_value(const struct builder *b, const struct gang_device *x, const struct gang_device *y)
{
    for (size_t a = 0; a < b->gang->n_attributes; a++) {
        const struct gs_value *v = x->gs.values[a], *w = y->gs.values[a];

        if (!b->claim_attributes[a] || !v || !w)
            continue;
        for (uint32_t i = 0; i < v->n; i++)
            for (uint32_t j = 0; j < w->n; j++)
                if (v->elements[i] == w->elements[j])
                    return true;
    }
    return false;
}

/* A cell's own numbers for the elements of its devices, in the order of their appearance. */
struct numbering {
    uint32_t *elements;
    size_t n, cap;
};

static uint64_t number_of(struct numbering *numbering, uint32_t element)
{
    for (size_t i = 0; i < numbering->n; i++)
        if (numbering->elements[i] == element)
            return i;
    mem_grow(numbering->elements, numbering->n, numbering->cap);
    numbering->elements[numbering->n] = element;
    return numbering->n++;
}

static struct gs_hash sign_values(const struct builder *b, const struct gang_device *device,
                                  struct numbering *numbering, struct gs_hash h)
{
    for (size_t a = 0; a < b->gang->n_attributes; a++) {
        const struct gs_value *value = device->gs.values[a];
        struct gs_hash sum = {0, 0};

        if (!b->claim_attributes[a] && !b->distinct_attributes[a])
            continue;
        h = gs_hash_mix(h, value ? value->n + 2 + value->odd : 1);
        for (uint32_t i = 0; value && i < value->n; i++) {
            uint32_t element = value->elements[i];
            bool raw = device->is_net || b->distinct_attributes[a] || bitset_has(b->net_elements, element);

            sum = gs_hash_add(sum, raw ? gs_hash_mix((struct gs_hash){7, 7}, element)
                                       : gs_hash_mix((struct gs_hash){8, 8}, number_of(numbering, element)));
        }
        h = gs_hash_mix(gs_hash_mix(h, sum.a), sum.b);
    }
    return h;
}

/* The cell's counters in one array of its own, so that its state is in one place; returns where a pointer went. */
static gs_amount *adopt_counter(struct gs_cell *cell, gs_amount **known, gs_amount *left, size_t *out_position)
{
    for (size_t i = 0; i < cell->n_counters; i++)
        if (known[i] == left) {
            *out_position = i;
            return &cell->counters[i];
        }
    known[cell->n_counters] = left;
    cell->counters[cell->n_counters] = *left;
    *out_position = cell->n_counters;
    return &cell->counters[cell->n_counters++];
}

static struct gs_hash sign_device(struct builder *b, struct gs_cell *cell, gs_amount **known,
                                  struct gang_device *device, struct numbering *numbering)
{
    struct gs_use *uses = arena_array(b->arena, struct gs_use, device->gs.n_counters);
    struct gs_hash h = device->signature;

    h = gs_hash_mix(gs_hash_mix(h, device->gs.multi), device->gs.charged * 2u + device->gs.pins);
    for (size_t i = 0; i < device->gs.n_counters; i++) {
        size_t position;

        uses[i].amount = device->gs.counters[i].amount;
        uses[i].left = adopt_counter(cell, known, device->gs.counters[i].left, &position);
        h = gs_hash_mix(gs_hash_mix(gs_hash_mix(h, position), (uint64_t)uses[i].amount),
                        (uint64_t)(uses[i].amount >> 64));
    }
    device->gs.counters = uses;
    return sign_values(b, device, numbering, h);
}

static size_t n_uses_of(struct gang_device *const *devices, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += devices[i]->gs.n_counters;
    return total;
}

/* One cell of the given devices. Twins are devices with equal signatures. */
static void fill_cell(struct builder *b, struct gs_cell *cell, struct gang_device **devices, size_t n,
                      struct gs_node *node)
{
    struct numbering numbering = {0};
    struct gs_hash *signatures = arena_array(b->arena, struct gs_hash, n);
    gs_amount **known = arena_array(b->arena, gs_amount *, n_uses_of(devices, n));

    *cell = (struct gs_cell){.node = node, .n_devices = n, .signature = {n, 11}};
    cell->counters = arena_array(b->arena, gs_amount, n_uses_of(devices, n));
    cell->devices = arena_array(b->arena, struct gs_device *, n);
    for (size_t i = 0; i < n; i++) {
        size_t twin = 0;

        cell->devices[i] = &devices[i]->gs;
        devices[i]->gs.cell = cell;
        signatures[i] = sign_device(b, cell, known, devices[i], &numbering);
        while (!gs_hash_eq(signatures[twin], signatures[i]))
            twin++;
        devices[i]->gs.twin = (uint32_t)twin;
        cell->signature = gs_hash_mix(gs_hash_mix(cell->signature, signatures[i].a), signatures[i].b);
        if (devices[i]->is_net)
            cell->signature = gs_hash_mix(
                cell->signature, gs_hash_of(devices[i]->gs.reach, bitset_words(b->n_nodes) * sizeof(uint64_t), 1).a);
    }
    free(numbering.elements);
}

/* Split devices into cells. */
static struct gs_cell *make_cells(struct builder *b, struct gang_device **devices, size_t n, struct gs_node *node,
                                  size_t *out_n)
{
    size_t *parent = arena_array(b->arena, size_t, n);
    struct gang_device **group = arena_array(b->arena, struct gang_device *, n);
    struct gs_cell *cells;
    size_t n_cells = 0;

    for (size_t i = 0; i < n; i++) {
        parent[i] = i;
        for (size_t j = 0; j < i; j++)
            if (share_counters(devices[i], devices[j]) || share_value(b, devices[i], devices[j]))
                parent[root_of(parent, i)] = root_of(parent, j);
    }
    for (size_t i = 0; i < n; i++)
        n_cells += root_of(parent, i) == i;
    cells = arena_array(b->arena, struct gs_cell, n_cells);
    n_cells = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size = 0;

        if (root_of(parent, i) != i)
            continue;
        for (size_t j = 0; j < n; j++)
            if (root_of(parent, j) == i)
                group[size++] = devices[j];
        fill_cell(b, &cells[n_cells++], group, size, node);
    }
    *out_n = n_cells;
    return cells;
}

/* ---- the network ---- */

static void fill_reach(struct builder *b)
{
    for (size_t d = 0; d < b->devices.n; d++) {
        struct gang_device *device = b->devices.items[d];
        uint64_t *reach = arena_array(b->arena, uint64_t, bitset_words(b->n_nodes));

        for (size_t n = 0; n < b->n_nodes; n++)
            if (gang_device_reaches(device->slice, device->device, gang_node_of(b->nodes[n])->node->info))
                bitset_put(reach, n);
        device->gs.reach = reach;
        device->signature = gs_hash_mix((struct gs_hash){13, 13}, device->gs.id);
    }
}

static void find_net_elements(struct builder *b)
{
    b->net_elements = arena_array(b->arena, uint64_t, bitset_words(b->gang->elements.n + 1));
    for (size_t d = 0; d < b->devices.n; d++)
        for (size_t a = 0; a < b->gang->n_attributes; a++) {
            const struct gs_value *value = b->devices.items[d]->gs.values[a];

            for (uint32_t e = 0; value && e < value->n; e++)
                bitset_put(b->net_elements, value->elements[e]);
        }
}

/* ---- groups ---- */

static void mark_attributes(struct builder *b)
{
    const struct gang *gang = b->gang;

    b->claim_attributes = arena_array(b->arena, bool, gang->n_attributes);
    b->distinct_attributes = arena_array(b->arena, bool, gang->n_attributes);
    for (size_t u = 0; u < gang->n_units; u++)
        for (size_t v = 0; v < gang->units[u]->n_variants; v++)
            for (size_t c = 0; c < gang->units[u]->variants[v].n_claims; c++) {
                const struct gs_claim *claim = &gang->units[u]->variants[v].claims[c];

                for (size_t i = 0; i < claim->n_constraints; i++)
                    b->claim_attributes[claim->constraints[i].attribute] = true;
            }
}

static void fill_distinct(struct builder *b)
{
    const struct gang_spec *spec = b->gang->spec;
    uint32_t *attributes = arena_array(b->arena, uint32_t, spec->n_constraints);

    for (size_t i = 0; i < spec->n_constraints; i++)
        if (spec->constraints[i].kind == GANG_DISTINCT_ATTRIBUTE) {
            attributes[b->problem->n_distinct++] = b->gang->constraint_attribute[i];
            b->distinct_attributes[b->gang->constraint_attribute[i]] = true;
        }
    b->problem->distinct_attributes = attributes;
}

static void fill_groups(struct builder *b)
{
    struct gs_group *groups = arena_array(b->arena, struct gs_group, b->gang->n_kinds);

    for (size_t k = 0; k < b->gang->n_kinds; k++) {
        const struct gang_kind *kind = &b->gang->kinds[k];
        struct gs_form *forms = arena_array(b->arena, struct gs_form, GANG_MAX_FORMS);

        for (size_t f = 0; f < GANG_MAX_FORMS; f++) {
            const struct gang_unit *unit = kind->forms[f];
            size_t only = b->choice->alternatives ? b->choice->alternatives[k] : SIZE_MAX;

            if (!unit)
                continue;
            forms[f].demand = kind->demand[f];
            forms[f].variants = only == SIZE_MAX ? unit->variants : unit->variants + only;
            forms[f].n_variants = only == SIZE_MAX ? unit->n_variants : only < unit->n_variants;
        }
        groups[k] = (struct gs_group){.forms = forms,
                                      .ports = ports_of(b->gang, kind, false),
                                      .port_clashes = ports_of(b->gang, kind, true),
                                      .shared = kind->shared};
    }
    b->problem->groups = groups;
    b->problem->n_groups = b->gang->n_kinds;
}

static void fill_shared(struct builder *b)
{
    struct gs_shared *shared = arena_array(b->arena, struct gs_shared, b->gang->n_shared);

    for (size_t s = 0; s < b->gang->n_shared; s++)
        shared[s] = (struct gs_shared){b->gang->shared[s].unit->variants, b->gang->shared[s].unit->n_variants};
    b->problem->shared = shared;
    b->problem->n_shared = b->gang->n_shared;
}

/* ---- for the explanation ---- */

static bool is_used_up(const struct gs_candidate *candidate)
{
    for (size_t i = 0; i < candidate->n_uses; i++)
        if (candidate->uses[i].amount > *candidate->uses[i].left)
            return true;
    return false;
}

static enum gang_device_state state_of(struct builder *b, const struct gang_ask *ask, const struct offer *offer,
                                       const char **out_detail)
{
    struct gang_device *device = device_make(b, offer, false);
    const struct device_use *use = &use_of(b->gang, device->pool)[device->index];
    struct gs_candidate candidate;

    *out_detail = NULL;
    if (!ask->admin && use->n_dedicated > 0)
        return DEVICE_IN_USE;
    if (capacity_test(b, ask, device, &candidate) != CAPACITY_FITS)
        return DEVICE_CAPACITY;
    if (is_used_up(&candidate))
        return DEVICE_IN_USE;
    if (ask_is_blocked(ask->unit->shape, ask->ask, &device->pool->devices[device->index]))
        return DEVICE_TAINTED;
    for (size_t i = 0; i < device->gs.n_counters && !(device->gs.multi && device->gs.charged); i++)
        if (device->gs.counters[i].amount > *device->gs.counters[i].left) {
            *out_detail = counter_name(device->device, i);
            return DEVICE_COUNTERS;
        }
    if (device->device->n_consumes && counters_of(b, offer->view)->is_blocked)
        return DEVICE_COUNTERS;
    return is_excluded(b, device) ? DEVICE_EXCLUDED : DEVICE_FREE;
}

enum gang_device_state gang_device_state(struct gang *gang, const struct gang_ask *ask, const struct offer *offer,
                                         const char **out_detail)
{
    struct gang_choice free_choice = {0};
    struct arena_mark mark = arena_mark(&gang->work);
    struct builder b = {.gang = gang, .choice = &free_choice, .arena = &gang->work};
    enum gang_device_state state = state_of(&b, ask, offer, out_detail);

    free(b.own);
    free(b.counters);
    arena_rewind(&gang->work, mark);
    return state;
}

static struct node_finding room_finding(const struct gang *gang, const struct gang_kind *kind,
                                        const struct gs_node *node)
{
    const int64_t *demand = kind->demand[node->form];
    uint64_t clash = node->ports & ports_of(gang, kind, false);

    for (size_t i = 0; i < gang->n_resources; i++)
        if (demand[i] > node->left[i])
            return (struct node_finding){.obstacle = NODE_RESOURCE, .detail = gang->resources[i]};
    for (size_t i = 0; i < gang->n_ports; i++)
        if (clash >> i & 1)
            return (struct node_finding){.obstacle = NODE_PORT, .port = gang->ports[i]->port};
    return (struct node_finding){.obstacle = NODE_ADMITS};
}

struct node_finding gang_node_finding(struct gang *gang, const struct gang_kind *kind, const struct node *node)
{
    struct gang_choice free_choice = {0};
    struct arena_mark mark = arena_mark(&gang->work);
    struct builder b = {.gang = gang, .choice = &free_choice, .arena = &gang->work};
    struct gang_node one = {.node = node};
    struct node_finding finding = node_admits(&kind->rules, node->info);

    one.gs.form = gang_form_of(gang, node->info);
    fill_left(&b, &one);
    if (finding.obstacle == NODE_ADMITS)
        finding = room_finding(gang, kind, &one.gs);
    arena_rewind(&gang->work, mark);
    return finding;
}

/* ---- the whole ---- */

static void fill_cells(struct builder *b)
{
    fill_reach(b);
    find_net_elements(b);
    for (size_t n = 0; n < b->n_nodes; n++) {
        size_t n_devices = 0;

        while (b->node_devices[n][n_devices])
            n_devices++;
        b->nodes[n]->cells = make_cells(b, b->node_devices[n], n_devices, b->nodes[n], &b->nodes[n]->n_cells);
    }
    b->problem->net_cells = make_cells(b, b->devices.items, b->devices.n, NULL, &b->problem->n_net_cells);
}

static void fill_problem(struct builder *b)
{
    struct gs_problem *problem = b->problem;

    problem->nodes = arena_array(b->arena, struct gs_node *, b->n_nodes);
    if (b->n_nodes)
        memcpy(problem->nodes, b->nodes, b->n_nodes * sizeof(*problem->nodes));
    problem->n_nodes = b->n_nodes;
    problem->n_resources = b->gang->n_resources;
    problem->n_asks = b->gang->n_asks;
    problem->n_attributes = b->gang->n_attributes;
    problem->n_elements = b->gang->elements.n + 1;
    fill_groups(b);
    fill_shared(b);
    fill_distinct(b);
}

struct gs_problem *gang_problem(struct gang *gang, const struct gang_choice *choice)
{
    struct builder b = {.gang = gang, .choice = choice, .arena = &gang->work};
    const uint32_t *slots;
    size_t n_slots;

    b.problem = arena_new(b.arena, struct gs_problem);
    mark_attributes(&b);
    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++)
        add_node(&b, snapshot_node(gang->snapshot, slots[i]));
    fill_problem(&b);
    fill_cells(&b);
    gs_prepare(b.problem);
    free(b.devices.items);
    free(b.devices.slots);
    free(b.local);
    free(b.counters);
    free(b.own);
    free(b.nodes);
    free(b.node_devices);
    return b.problem;
}
