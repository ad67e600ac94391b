/* What a node offers to the asks: candidates in kube-scheduler's order, and the kinds that its filters admit. */
#include "allocator/gang_builder.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

static const struct node_use *node_use_of(const struct gang *gang, const struct node *node)
{
    return gang->ledger ? ledger_node_use(gang->ledger, node) : &node->use;
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
    if (!feature_on(snapshot_features(b->gang->snapshot), FEATURE_CONSUMABLE_CAPACITY) ||
        builder_lifts(b, LIFT_CAPACITY))
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
    const struct device_use *use = &builder_use(b->gang, device->pool)[device->index];
    bool partitions = feature_on(snapshot_features(b->gang->snapshot), FEATURE_PARTITIONABLE_DEVICES);

    if (!ask->admin && use->n_dedicated > 0)
        return true;
    if (device->device->n_consumes && !builder_lifts(b, LIFT_COUNTERS) &&
        (!partitions || builder_counters(b, view)->is_blocked))
        return true;
    return ask_is_blocked(ask->unit->shape, ask->ask, &device->pool->devices[device->index]) ||
           !choice_admits(b, ask, device) || is_excluded(b, device);
}

/* Devices that another free one of the node looks like get the hash of their looks; those that a selector can name by
 * themselves are free to be mixed. */
static void set_likeness(struct builder *b, const struct bench *bench, size_t offer, struct gang_device *device)
{
    const struct offer *own = &bench->offers[offer];
    uint64_t looks = steer_likeness(own->device);

    device->is_compared = true;
    for (size_t i = 0; i < bench->n_offers && !device->gs.likeness; i++) {
        const struct offer *other = &bench->offers[i];

        if (i != offer && other->slice->driver == own->slice->driver &&
            builder_use(b->gang, other->view->pool)[other->index].n_dedicated == 0 &&
            steer_likeness(other->device) == looks)
            device->gs.likeness = looks;
    }
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
    const struct device_use *use = &builder_use(b->gang, offered->view->pool)[offered->index];
    struct gang_device *device;
    const char *message = NULL;
    enum selectable selects;
    enum capacity_verdict amount;

    if (!ask->all && !ask->admin && use->n_dedicated > 0)
        return true;
    selects = bench_selects(ask->unit->shape, bench, offer, ask->index, &message);
    if (selects == SELECT_NO)
        return true;
    device = builder_device_of(b, offered);
    if (b->gang->divides_alike && !device->is_compared)
        set_likeness(b, bench, offer, device);
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

bool gang_label_admits(const struct gang *gang, const struct gang_choice *choice, const struct gang_kind *kind,
                       const struct node_info *node)
{
    for (size_t i = 0; i < gang->spec->n_constraints; i++) {
        const char *value;

        if (!(kind->label_constraints >> i & 1) || !choice->labels || !choice->labels[i])
            continue;
        value = node_label(node, gang->spec->constraints[i].key);
        if (!value || strcmp(value, choice->labels[i]) != 0)
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

uint64_t gang_kind_ports(const struct gang *gang, const struct gang_kind *kind, bool clashing)
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
    return (node->ports & gang_kind_ports(gang, kind, false)) == 0;
}

/* The kinds that the node's filters and its room admit. */
static uint64_t kinds_on(const struct builder *b, const struct gang_node *node)
{
    uint64_t kinds = 0;

    for (size_t k = 0; k < b->gang->n_kinds; k++) {
        const struct gang_kind *kind = &b->gang->kinds[k];

        if (kind->forms[node->gs.form] && has_room(b->gang, kind, &node->gs) &&
            node_admits(&kind->rules, node->node->info).obstacle == NODE_ADMITS &&
            claims_admit(kind, node->node->info) && gang_label_admits(b->gang, b->choice, kind, node->node->info))
            kinds |= (uint64_t)1 << k;
    }
    return kinds;
}

static void fill_left(const struct builder *b, struct gang_node *out)
{
    const struct node_use *use = node_use_of(b->gang, out->node);

    out->gs.left = arena_array(b->arena, int64_t, b->gang->n_resources);
    for (size_t i = 0; i < b->gang->n_resources; i++) {
        int64_t left = node_allocatable(out->node->info, b->gang->resources[i]) - node_used(use, b->gang->resources[i]);

        /* Less than nothing (pods whose extended resource came from devices are counted too) does not keep away a
         * member that asks for nothing. */
        out->gs.left[i] = left > 0 ? left : 0;
    }
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

bool builder_add_node(struct builder *b, const struct node *node, uint32_t rank)
{
    struct gang_node *out = arena_new(b->arena, struct gang_node);
    struct gs_list *lists;

    out->node = node;
    out->gs.id = node->slot;
    out->gs.rank = rank;
    out->gs.form = gang_form_of(b->gang, node->info);
    fill_left(b, out);
    out->gs.groups = kinds_on(b, out);
    if (!out->gs.groups)
        return false;
    lists = arena_array(b->arena, struct gs_list, b->gang->n_asks);
    out->gs.lists = lists;
    b->n_local = 0;
    b->n_own = 0;
    if (!list_units(b, out, lists))
        return false;
    out->gs.signature = gs_hash_mix(gs_hash_mix(out->gs.signature, out->gs.form), out->gs.groups);
    keep_node(b, out);
    return true;
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
    struct gang_device *device;
    struct gs_candidate candidate;

    *out_detail = NULL;
    if (!ask->admin && builder_use(b->gang, offer->view->pool)[offer->index].n_dedicated > 0)
        return DEVICE_IN_USE;
    device = builder_device(b, offer, false);
    if (capacity_test(b, ask, device, &candidate) != CAPACITY_FITS)
        return DEVICE_CAPACITY;
    if (is_used_up(&candidate))
        return DEVICE_IN_USE;
    if (ask_is_blocked(ask->unit->shape, ask->ask, &device->pool->devices[device->index]))
        return DEVICE_TAINTED;
    for (size_t i = 0; i < device->gs.n_counters && !(device->gs.multi && device->gs.charged); i++)
        if (device->gs.counters[i].amount > *device->gs.counters[i].left) {
            *out_detail = builder_counter_name(device->device, i);
            return DEVICE_COUNTERS;
        }
    if (device->device->n_consumes && builder_counters(b, offer->view)->is_blocked)
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
    uint64_t clash = node->ports & gang_kind_ports(gang, kind, false);

    if (!demand) /* the question was refused before this group was read: only its rules are known */
        return (struct node_finding){.obstacle = NODE_ADMITS};
    for (size_t i = 0; i < gang->n_resources; i++)
        if (demand[i] > node->left[i])
            return (struct node_finding){
                .obstacle = NODE_RESOURCE, .detail = gang->resources[i], .asked = demand[i], .left = node->left[i]};
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
