/* Requests in numbers. A probe shape asks for the class alone and for the class with each selector, so that it can be
 * told what each of them excludes. Then every device of every node is looked at once, and what keeps the request from
 * it is counted; and per node, how many of them one member could have there. */
#include "allocator/explain_tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"
#include "allocator/gang_builder.h"

#include "allocator/base/banned.h"

#define PROBES_PER_CLAIM 32
#define HOLDERS_LISTED   16

/* A class with none or one of a request's selectors. */
struct probe {
    const char *class_name, *selector; /* selector NULL: the class alone */
};

struct counting {
    struct gang *gang;
    enum gang_verdict verdict;
    const uint64_t *nodes; /* that admit a member */
    struct tally *tallies;
    size_t n_tallies;
    struct probe *probes;
    size_t n_probes, cap_probes;
    struct shape *shape; /* of all probes */
    uint64_t **seen;     /* per pool slot: devices that have been counted */
    const struct pool_view **bad;
    size_t n_bad, cap_bad;
};

/* ---- probes ---- */

static json_t *probe_claim(const struct counting *c, size_t first, size_t n)
{
    json_t *requests = json_array();

    for (size_t i = first; i < first + n; i++) {
        char name[32];
        json_t *exactly = json_pack("{s:s}", "deviceClassName", c->probes[i].class_name);

        snprintf(name, sizeof(name), "p%zu", i);
        if (c->probes[i].selector)
            json_object_set_new(exactly, "selectors",
                                json_pack("[{s:{s:s}}]", "cel", "expression", c->probes[i].selector));
        json_array_append_new(requests, json_pack("{s:s, s:o}", "name", name, "exactly", exactly));
    }
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:o}}}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                     "metadata", "name", "probe", "spec", "devices", "requests", requests);
}

static void make_probe_shape(struct counting *c)
{
    size_t n_claims = (c->n_probes + PROBES_PER_CLAIM - 1) / PROBES_PER_CLAIM;
    const struct claim **claims = arena_array(&c->gang->work, const struct claim *, n_claims);

    for (size_t i = 0; i < n_claims; i++) {
        size_t first = i * PROBES_PER_CLAIM;
        size_t n = c->n_probes - first < PROBES_PER_CLAIM ? c->n_probes - first : PROBES_PER_CLAIM;
        json_t *object = probe_claim(c, first, n);
        struct claim *claim = NULL;
        struct error err;

        if (claim_parse(object, snapshot_features(c->gang->snapshot), false, &c->gang->work, &claim, &err) == 0)
            claims[i] = claim;
        json_decref(object);
        if (!claim)
            return;
    }
    c->shape = shape_new(c->gang->snapshot, claims, n_claims);
}

static void add_probe(struct counting *c, const char *class_name, const char *selector)
{
    mem_grow(c->probes, c->n_probes, c->cap_probes);
    c->probes[c->n_probes++] = (struct probe){class_name, selector};
}

static void add_tallies(struct counting *c, const struct gang_unit *unit, const struct gang_group *group,
                        size_t n_members)
{
    size_t n_slots = snapshot_pool_slots(c->gang->snapshot);

    for (size_t i = 0; i < shape_n_asks(unit->shape); i++) {
        const struct shape_ask *asked = shape_ask(unit->shape, i);
        size_t entry = unit->entries ? unit->entries[asked->claim] : SIZE_MAX;
        const struct claim_request *request = &unit->claims[asked->claim]->requests[asked->request];
        struct tally *tally = &c->tallies[c->n_tallies++];

        *tally =
            (struct tally){.ask = &c->gang->asks[unit->asks[i]], .first_probe = c->n_probes, .n_members = n_members};
        tally->is_implicit = unit->entries && entry == SIZE_MAX;
        tally->claim = !unit->entries      ? "shared"
                       : entry == SIZE_MAX ? "<extended-resources>"
                                           : group->claims[entry].pod_claim;
        tally->request =
            request->is_list ? arena_printf(&c->gang->work, "%s/%s", request->name, asked->ask->name) : request->name;
        tally->matched = arena_array(&c->gang->work, uint64_t *, n_slots);
        tally->usable = arena_array(&c->gang->work, uint64_t *, n_slots);
        tally->concerned = arena_array(&c->gang->work, uint64_t *, n_slots);
        add_probe(c, asked->ask->class_name, NULL);
        for (size_t s = 0; s < n_selectors(tally); s++)
            add_probe(c, asked->ask->class_name, asked->ask->selectors[s]);
    }
}

/* ---- why not this device ---- */

/* Thousandths of what is asked that are left. */
static gs_amount share_left(const struct quantity *asked, const struct quantity *left)
{
    gs_amount whole = gang_amount(asked);

    return whole > 0 ? gang_amount(left) * 1000 / whole : 0;
}

/* Keeps the device that comes closest to what is asked. */
static void keep_scarce(struct scarce *best, const char *key, const char *set, const struct offer *offer,
                        const struct quantity *asked, const struct quantity *left)
{
    if (best->key && share_left(asked, left) <= share_left(&best->asked, &best->left))
        return;
    *best = (struct scarce){.key = key,
                            .set = set,
                            .device = offer->device->name,
                            .pool = offer->view->pool->name,
                            .asked = *asked,
                            .left = *left};
}

static gs_amount left_of(const struct pool_counters *counters, const char *set, const char *name)
{
    for (size_t s = 0; s < counters->view->n_sets; s++)
        for (size_t i = 0; strcmp(counters->view->sets[s]->name, set) == 0 && i < counters->view->sets[s]->n_counters;
             i++)
            if (strcmp(counters->view->sets[s]->counters[i].name, name) == 0)
                return counters->left[s][i];
    return 0;
}

/* Everybody who takes from the set keeps the device from being used. */
static void concern_set(struct counting *c, struct tally *tally, const struct pool *pool, const char *set)
{
    for (uint32_t d = 0; d < pool->n_devices; d++)
        for (size_t s = 0; s < pool->devices[d].device->n_consumes; s++)
            if (strcmp(pool->devices[d].device->consumes[s].set, set) == 0)
                explain_mark(c->gang, tally->concerned, pool, d);
}

static void note_counters(struct counting *c, struct tally *tally, const struct offer *offer)
{
    struct gang_choice free_choice = {0};
    struct builder b = {.gang = c->gang, .choice = &free_choice, .arena = &c->gang->work};
    const struct pool_counters *counters = builder_counters(&b, offer->view);

    for (size_t s = 0; s < offer->device->n_consumes; s++)
        for (size_t i = 0; i < offer->device->consumes[s].n_counters; i++) {
            const char *set = offer->device->consumes[s].set;
            const struct counter *counter = &offer->device->consumes[s].counters[i];
            struct quantity left = explain_quantity_of(left_of(counters, set, counter->name), counter->value.format);

            if (quantity_cmp(&counter->value, &left) <= 0)
                continue;
            keep_scarce(&tally->counter, counter->name, set, offer, &counter->value, &left);
            concern_set(c, tally, offer->view->pool, set);
        }
    free(b.own);
    free(b.counters);
}

/* The capacities of which a share would take more than is left. */
static void note_amounts(struct counting *c, struct tally *tally, const struct offer *offer)
{
    const struct device_use *use = &builder_use(c->gang, offer->view->pool)[offer->index];
    const struct quantity *amounts = NULL;
    const char *message = NULL;

    if (capacity_consumption(tally->ask->unit->shape, tally->ask->ask, offer->device, &c->gang->work, &amounts,
                             &message) != CAPACITY_OK)
        return;
    for (size_t i = 0; i < offer->device->n_capacities; i++) {
        const struct capacity *capacity = &offer->device->capacities[i];
        struct quantity left = capacity->value;

        if (use->consumed && offer->device->multi)
            left = quantity_sub(&left, &use->consumed[i], &c->gang->work);
        if (quantity_cmp(&amounts[i], &left) > 0)
            keep_scarce(&tally->amount, capacity->key, NULL, offer, &amounts[i], &left);
    }
}

static bool is_tolerated(const struct claim_ask *ask, const struct taint *taint)
{
    if (taint->effect != EFFECT_NO_SCHEDULE && taint->effect != EFFECT_NO_EXECUTE)
        return true;
    for (size_t i = 0; i < ask->n_tolerations; i++)
        if (toleration_covers(&ask->tolerations[i], taint))
            return true;
    return false;
}

static void add_taint(struct counting *c, struct tally *tally, const struct taint *taint)
{
    const char *text = arena_printf(&c->gang->work, "%s%s%s:%s", taint->key, *taint->value ? "=" : "", taint->value,
                                    taint->effect_text);
    size_t i = 0;

    while (i < tally->n_taints && strcmp(tally->taints[i].text, text) != 0)
        i++;
    if (i == MAX_TAINTS)
        return;
    tally->taints[i].text = text;
    tally->taints[i].n++;
    tally->n_taints += i == tally->n_taints;
}

static void note_taints(struct counting *c, struct tally *tally, const struct offer *offer)
{
    const struct pool_device *device = &offer->view->pool->devices[offer->index];

    for (size_t i = 0; i < device->device->n_taints; i++)
        if (!is_tolerated(tally->ask->ask, &device->device->taints[i])) {
            add_taint(c, tally, &device->device->taints[i]);
            return;
        }
    for (size_t i = 0; i < device->n_rule_taints; i++)
        if (!is_tolerated(tally->ask->ask, &device->rule_taints[i])) {
            add_taint(c, tally, &device->rule_taints[i]);
            return;
        }
}

/* ---- counting ---- */

static void count_state(struct counting *c, struct tally *tally, const struct offer *offer)
{
    const char *detail = NULL;

    switch (gang_device_state(c->gang, tally->ask, offer, &detail)) {
    case DEVICE_FREE:
        tally->free++;
        explain_mark(c->gang, tally->usable, offer->view->pool, offer->index);
        break;
    case DEVICE_IN_USE:
        tally->in_use++;
        if (offer->device->multi)
            note_amounts(c, tally, offer);
        break;
    case DEVICE_TAINTED:
        tally->tainted++;
        note_taints(c, tally, offer);
        break;
    case DEVICE_COUNTERS:
        tally->counters++;
        note_counters(c, tally, offer);
        break;
    case DEVICE_CAPACITY:
        tally->capacity++;
        note_amounts(c, tally, offer);
        break;
    case DEVICE_EXCLUDED:
        tally->excluded++;
        break;
    }
}

static void count_offer(struct counting *c, const struct bench *bench, size_t offer)
{
    const struct offer *offered = &bench->offers[offer];

    for (size_t t = 0; t < c->n_tallies; t++) {
        struct tally *tally = &c->tallies[t];
        bool matches = true;

        if (bench_selects(c->shape, bench, offer, tally->first_probe, NULL) != SELECT_YES)
            continue;
        tally->exist++;
        for (size_t s = 0; s < n_selectors(tally); s++)
            if (bench_selects(c->shape, bench, offer, tally->first_probe + 1 + s, NULL) != SELECT_YES) {
                tally->failed[s]++;
                matches = false;
            }
        if (!matches)
            continue;
        tally->match++;
        tally->is_shareable = tally->is_shareable || offered->device->multi;
        explain_mark(c->gang, tally->matched, offered->view->pool, offered->index);
        explain_mark(c->gang, tally->concerned, offered->view->pool, offered->index);
        count_state(c, tally, offered);
    }
}

static void note_pools(struct counting *c, const struct bench *bench)
{
    for (size_t v = 0; v < bench->n_views; v++) {
        bool known = bench->views[v]->status == POOL_USABLE;

        for (size_t i = 0; i < c->n_bad && !known; i++)
            known = c->bad[i]->pool == bench->views[v]->pool;
        if (known)
            continue;
        mem_grow(c->bad, c->n_bad, c->cap_bad);
        c->bad[c->n_bad++] = bench->views[v];
    }
}

static void add_local(struct local *local, bool admits, size_t count, const char *node)
{
    if (admits && (!local->node || local->here > local->most)) {
        local->most = local->here;
        local->node = node;
    }
    if (admits && count > 0)
        local->places += local->here / count;
    local->here = 0;
}

static bool has(uint64_t *const *sets, const struct offer *offer)
{
    const uint64_t *set = sets[offer->view->pool->slot];

    return set && bitset_has(set, offer->index);
}

static void count_node(struct counting *c, const struct node *node)
{
    const struct bench *bench = bench_make(c->shape, c->gang->ledger, node, &c->gang->work);
    bool admits = bitset_has(c->nodes, node->slot);

    note_pools(c, bench);
    for (size_t o = 0; o < bench->n_offers; o++) {
        const struct offer *offer = &bench->offers[o];

        if (!gang_device_reaches(offer->slice, offer->device, node->info))
            continue;
        if (explain_mark(c->gang, c->seen, offer->view->pool, offer->index))
            count_offer(c, bench, o);
        for (size_t t = 0; t < c->n_tallies; t++) {
            c->tallies[t].free_here.here += has(c->tallies[t].usable, offer);
            c->tallies[t].match_here.here += has(c->tallies[t].matched, offer);
        }
    }
    for (size_t t = 0; t < c->n_tallies; t++) {
        size_t count = count_of(&c->tallies[t]);

        add_local(&c->tallies[t].free_here, admits, count, node->info->name);
        add_local(&c->tallies[t].match_here, admits, count, node->info->name);
    }
}

static void count_devices(struct counting *c)
{
    const uint32_t *slots;
    size_t n_slots;

    c->seen = arena_array(&c->gang->work, uint64_t *, snapshot_pool_slots(c->gang->snapshot));
    slots = snapshot_sorted_nodes(c->gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots && c->shape && !shape_problem(c->shape); i++)
        count_node(c, snapshot_node(c->gang->snapshot, slots[i]));
}

/* ---- pools that cannot be used ---- */

static bool mentions(const struct device_class *class, const struct claim_ask *ask, const char *driver)
{
    bool any = class && class->n_selectors > 0;

    for (size_t i = 0; class && i < class->n_selectors; i++)
        if (class->selectors[i] && strstr(class->selectors[i], driver))
            return true;
    for (size_t i = 0; i < ask->n_selectors; i++) {
        any = true;
        if (ask->selectors[i] && strstr(ask->selectors[i], driver))
            return true;
    }
    return !any;
}

static bool has_driver(const struct counting *c, const struct tally *tally, const char *driver)
{
    for (uint32_t slot = 0; slot < snapshot_pool_slots(c->gang->snapshot); slot++) {
        const struct pool *pool = tally->matched[slot] ? snapshot_pool(c->gang->snapshot, slot) : NULL;

        if (pool && strcmp(pool->driver, driver) == 0)
            return true;
    }
    return false;
}

/* Mode All fails on every node that sees such a pool, whoever's it is; else only devices that could match are missed:
 * those of a driver of which some match, or, when none does, of one that the selectors name. */
static bool pool_matters(const struct counting *c, const struct pool *pool)
{
    for (size_t t = 0; t < c->n_tallies; t++) {
        const struct tally *tally = &c->tallies[t];

        if (tally->ask->all || has_driver(c, tally, pool->driver) ||
            (tally->match == 0 && mentions(tally->ask->device_class, tally->ask->ask, pool->driver)))
            return true;
    }
    return false;
}

static void tell_pools(const struct counting *c, json_t *pools)
{
    for (size_t i = 0; i < c->n_bad; i++) {
        const struct pool_view *view = c->bad[i];
        const char *problem = view->status == POOL_INCOMPLETE ? "incomplete: not all of its slices are published"
                              : view->problem                 ? view->problem
                                                              : "invalid";

        if (pool_matters(c, view->pool))
            json_array_append_new(pools, json_pack("{s:s, s:s, s:s}", "driver", view->pool->driver, "pool",
                                                   view->pool->name, "problem", problem));
    }
}

/* ---- holders ---- */

struct holding_row {
    const struct holder *holder;
    size_t devices, order;
};

/* How many devices that the tally could use the holder has, each counted once. */
static size_t count_held(const struct gang *gang, const struct tally *tally, const struct holder *holder)
{
    struct {
        uint64_t *set;
        size_t index;
    } * taken;
    size_t n = 0, n_held = 0;

    for (size_t i = 0; i < holder->n_claims; i++)
        n_held += holder->claims[i]->n_held;
    taken = mem_zalloc(n_held + 1, sizeof(*taken));
    for (size_t i = 0; i < holder->n_claims; i++)
        for (size_t k = 0; k < holder->claims[i]->n_held; k++) {
            const struct held_device *held = &holder->claims[i]->held[k];
            const struct pool *pool = snapshot_find_pool(gang->snapshot, held->driver, held->pool);
            size_t d = pool && !held->admin_access ? pool_find_device(pool, held->device, SIZE_MAX) : SIZE_MAX;

            if (d == SIZE_MAX || !tally->concerned[pool->slot] || !bitset_has(tally->concerned[pool->slot], d))
                continue;
            taken[n].set = tally->concerned[pool->slot];
            taken[n++].index = d;
            bitset_drop(tally->concerned[pool->slot], d);
        }
    for (size_t i = 0; i < n; i++)
        bitset_put(taken[i].set, taken[i].index);
    free(taken);
    return n;
}

static int compare_rows(const void *a, const void *b)
{
    const struct holding_row *x = a, *y = b;

    if (x->devices != y->devices)
        return x->devices < y->devices ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static json_t *row_json(const struct holding_row *row)
{
    const struct holder *holder = row->holder;
    json_t *out = json_pack("{s:I}", "devices", (json_int_t)row->devices);

    if (!holder->job) {
        json_object_set_new(out, "claim", json_string(holder->name));
        return out;
    }
    json_object_set_new(out, "job", json_string(holder->job));
    if (holder->name)
        json_object_set_new(out, "jobName", json_string(holder->name));
    json_object_set_new(out, "claims", json_integer((json_int_t)holder->n_claims));
    return out;
}

static void add_holders(struct gang *gang, const struct tally *tally, json_t *out)
{
    struct holder_list list = {0};
    struct holding_row *rows;
    json_t *holders = json_array();
    size_t n = 0, more = 0;

    if (tally->in_use || tally->counters)
        list = explain_holders(gang->snapshot, &gang->work);
    rows = mem_array(struct holding_row, list.n + 1);
    for (size_t i = 0; i < list.n; i++) {
        rows[n] = (struct holding_row){&list.items[i], count_held(gang, tally, &list.items[i]), i};
        n += rows[n].devices > 0;
    }
    qsort(rows, n, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < n; i++) {
        if (i < HOLDERS_LISTED)
            json_array_append_new(holders, row_json(&rows[i]));
        else
            more += rows[i].devices;
    }
    json_object_set_new(out, "holders", holders);
    if (more)
        json_object_set_new(
            out, "moreHolders",
            json_pack("{s:I, s:I}", "holders", (json_int_t)(n - HOLDERS_LISTED), "devices", (json_int_t)more));
    free(rows);
}

/* ---- output ---- */

static json_t *add_excluded(json_t *list, const char *key, const char *text, size_t n)
{
    json_t *one = n ? json_pack("{s:s, s:I}", key, text, "devices", (json_int_t)n) : NULL;

    if (one)
        json_array_append_new(list, one);
    return one;
}

static void add_amounts(struct gang *gang, json_t *excluded, const struct scarce *scarce)
{
    if (!excluded || !scarce->key)
        return;
    json_object_set_new(excluded, "asked", json_string(explain_quantity(&scarce->asked, &gang->work)));
    json_object_set_new(excluded, "left", json_string(explain_quantity(&scarce->left, &gang->work)));
    json_object_set_new(excluded, "device", json_sprintf("%s/%s", scarce->pool, scarce->device));
    if (scarce->set)
        json_object_set_new(excluded, "counterSet", json_string(scarce->set));
}

static json_t *excluded_json(struct gang *gang, const struct tally *tally)
{
    const struct claim_ask *ask = tally->ask->ask;
    bool used_up = tally->in_use && tally->amount.key;
    json_t *out = json_array();

    for (size_t s = 0; s < n_selectors(tally); s++)
        add_excluded(out, "selector", ask->selectors[s] ? ask->selectors[s] : "", tally->failed[s]);
    for (size_t i = 0; i < ask->n_capacity && tally->capacity && !tally->amount.key; i++)
        add_excluded(out, "capacity", ask->capacity[i].key, tally->capacity);
    if (tally->amount.key)
        add_amounts(gang,
                    add_excluded(out, "capacity", tally->amount.key, tally->capacity + (used_up ? tally->in_use : 0)),
                    &tally->amount);
    add_amounts(
        gang,
        add_excluded(out, "counter", tally->counter.key ? tally->counter.key : "shared counters", tally->counters),
        &tally->counter);
    for (size_t i = 0; i < tally->n_taints; i++)
        add_excluded(out, "taint", tally->taints[i].text, tally->taints[i].n);
    add_excluded(out, "quota", "excluded by quota", tally->excluded);
    return out;
}

static json_t *tally_json(struct counting *c, const struct tally *tally)
{
    const struct claim_ask *ask = tally->ask->ask;
    const char *problem;
    json_t *out;

    out = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "claim", tally->claim, "request",
                    tally->request, "class", ask->class_name, "count", (json_int_t)ask->count, "exist",
                    (json_int_t)tally->exist, "match", (json_int_t)tally->match, "free", (json_int_t)tally->free,
                    "inUse", (json_int_t)tally->in_use, "tainted", (json_int_t)tally->tainted, "excluded",
                    excluded_json(c->gang, tally));
    if (ask->mode == MODE_ALL)
        json_object_set_new(out, "count", json_string("All"));
    if (tally->is_implicit && tally->ask->device_class->extended_resource)
        json_object_set_new(out, "resource", json_string(tally->ask->device_class->extended_resource));
    add_holders(c->gang, tally, out);
    if (!tally->ask->all)
        json_object_set_new(out, "needed", json_integer((json_int_t)(count_of(tally) * tally->n_members)));
    problem = explain_problem(c->gang, c->verdict, tally);
    if (problem)
        json_object_set_new(out, "problem", json_string(problem));
    return out;
}

static size_t asks_of(const struct gang_unit *unit)
{
    return unit ? shape_n_asks(unit->shape) : 0;
}

json_t *explain_requests(struct gang *gang, const struct gang_kind *kind, const struct gang_group *group,
                         enum gang_verdict verdict, const uint64_t *nodes, json_t *pools)
{
    struct counting c = {.gang = gang, .verdict = verdict, .nodes = nodes};
    json_t *out = json_array();
    size_t n = 0;

    for (size_t f = 0; f < GANG_MAX_FORMS; f++)
        n += asks_of(kind->forms[f]);
    for (size_t s = 0; s < gang->n_shared; s++)
        n += asks_of(gang->shared[s].unit);
    c.tallies = arena_array(&gang->work, struct tally, n);
    for (size_t f = 0; f < GANG_MAX_FORMS; f++)
        if (kind->forms[f] && kind->forms[f]->asks)
            add_tallies(&c, kind->forms[f], group, group->n_members);
    for (size_t s = 0; s < gang->n_shared; s++)
        if ((kind->shared >> s & 1) && gang->shared[s].unit && gang->shared[s].unit->asks)
            add_tallies(&c, gang->shared[s].unit, group, 1);
    if (c.n_probes)
        make_probe_shape(&c);
    count_devices(&c);
    for (size_t t = 0; t < c.n_tallies; t++)
        json_array_append_new(out, tally_json(&c, &c.tallies[t]));
    tell_pools(&c, pools);
    shape_free(c.shape);
    free(c.probes);
    free(c.bad);
    return out;
}
