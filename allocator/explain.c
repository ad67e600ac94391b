/* Why a gang does not run, in numbers first: per group which nodes admit a member and why the others do not; per
 * request how many devices there are, match, are free, in use and by whom. Then, unless a brief answer was asked for,
 * in consequences: which single rule, lifted, would make it fit (whatif.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

#define BRIEF_NODES      256 /* more are not counted in a brief explanation */
#define MAX_HOLDERS      5
#define PROBES_PER_CLAIM 32

static const char *const verdict_names[] = {
    [GANG_FITS] = "fits",           [GANG_WAITS] = "waits",     [GANG_NEVER] = "never",
    [GANG_UNDECIDED] = "undecided", [GANG_REFUSED] = "refused",
};

/* ---- nodes ---- */

static const char *taint_text(struct gang *gang, const struct taint *taint)
{
    return arena_printf(&gang->work, "taint %s%s%s:%s is not tolerated", taint->key, *taint->value ? "=" : "",
                        taint->value, taint->effect_text);
}

static const char *finding_text(struct gang *gang, const struct node_finding *finding)
{
    switch (finding->obstacle) {
    case NODE_ADMITS:
        return "admits a member";
    case NODE_OTHER_NAME:
        return arena_printf(&gang->work, "the pod names node %s", finding->detail);
    case NODE_UNSCHEDULABLE:
        return "unschedulable (cordoned)";
    case NODE_NOT_READY:
        return "not ready (node.kubernetes.io/not-ready)";
    case NODE_TAINTED:
        return taint_text(gang, finding->taint);
    case NODE_SELECTOR:
        return arena_printf(&gang->work, "label %s does not match the node selector", finding->detail);
    case NODE_AFFINITY:
        return arena_printf(&gang->work, "required node affinity%s%s does not match", finding->detail ? " on " : "",
                            finding->detail ? finding->detail : "");
    case NODE_PORT:
        return arena_printf(&gang->work, "host port %lld is taken", (long long)finding->port);
    case NODE_RESOURCE:
        return arena_printf(&gang->work, "not enough %s", finding->detail);
    }
    return "";
}

static void count_reason(json_t *reasons, const char *text, const char *node)
{
    json_t *one;
    size_t i;

    json_array_foreach (reasons, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "reason")), text) == 0) {
            json_object_set_new(one, "nodes", json_integer(json_integer_value(json_object_get(one, "nodes")) + 1));
            return;
        }
    }
    json_array_append_new(reasons, json_pack("{s:s, s:i, s:s}", "reason", text, "nodes", 1, "example", node));
}

static void explain_nodes(struct gang *gang, const struct gang_kind *kind, json_t *out)
{
    json_t *reasons = json_array();
    const uint32_t *slots;
    size_t n_slots, n_eligible = 0;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        struct node_finding finding = gang_node_finding(gang, kind, node);

        if (finding.obstacle == NODE_ADMITS)
            n_eligible++;
        else
            count_reason(reasons, finding_text(gang, &finding), node->info->name);
    }
    json_object_set_new(out, "nodes",
                        json_pack("{s:I, s:I}", "total", (json_int_t)n_slots, "eligible", (json_int_t)n_eligible));
    json_object_set_new(out, "nodeReasons", reasons);
}

/* ---- requests: probes ---- */

/* A class with none or one of a request's selectors, to see what each of them excludes. */
struct probe {
    const char *class_name, *selector; /* selector NULL: the class alone */
};

struct tally {
    const struct gang_ask *ask;
    const char *claim, *request;
    size_t first_probe; /* the class alone; then one per selector */
    size_t exist, match, free, in_use, tainted, counters, capacity, excluded;
    size_t failed[32];   /* per selector: devices of the class that it excludes */
    const char *counter; /* one that is short */
    bool is_implicit;    /* of the claim for extended resources */
    uint64_t **matched;  /* per pool slot: bitset of devices that match */
};

struct counting {
    struct gang *gang;
    struct tally *tallies;
    size_t n_tallies;
    struct probe *probes;
    size_t n_probes, cap_probes;
    struct shape *shape; /* of all probes */
    uint64_t **seen;     /* per pool slot: devices that have been counted */
    json_t *pools;       /* those that cannot be used, for the answer */
};

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

static void add_tallies(struct counting *c, const struct gang_unit *unit, const struct gang_group *group)
{
    for (size_t i = 0; i < shape_n_asks(unit->shape); i++) {
        const struct shape_ask *asked = shape_ask(unit->shape, i);
        size_t entry = unit->entries ? unit->entries[asked->claim] : SIZE_MAX;
        const struct claim_request *request = &unit->claims[asked->claim]->requests[asked->request];
        struct tally *tally = &c->tallies[c->n_tallies++];

        *tally = (struct tally){.ask = &c->gang->asks[unit->asks[i]], .first_probe = c->n_probes};
        tally->is_implicit = unit->entries && entry == SIZE_MAX;
        tally->claim = !unit->entries      ? "shared"
                       : entry == SIZE_MAX ? "<extended-resources>"
                                           : group->claims[entry].pod_claim;
        tally->request =
            request->is_list ? arena_printf(&c->gang->work, "%s/%s", request->name, asked->ask->name) : request->name;
        tally->matched = arena_array(&c->gang->work, uint64_t *, snapshot_pool_slots(c->gang->snapshot));
        add_probe(c, asked->ask->class_name, NULL);
        for (size_t s = 0; s < asked->ask->n_selectors && s < 32; s++)
            add_probe(c, asked->ask->class_name, asked->ask->selectors[s]);
    }
}

/* ---- requests: counting ---- */

static bool mark_once(struct gang *gang, uint64_t **sets, const struct pool *pool, uint32_t index)
{
    if (!sets[pool->slot])
        sets[pool->slot] = arena_array(&gang->work, uint64_t, bitset_words(pool->n_devices));
    if (bitset_has(sets[pool->slot], index))
        return false;
    bitset_put(sets[pool->slot], index);
    return true;
}

static void count_state(struct counting *c, struct tally *tally, const struct offer *offer)
{
    const char *detail = NULL;

    switch (gang_device_state(c->gang, tally->ask, offer, &detail)) {
    case DEVICE_FREE:
        tally->free++;
        break;
    case DEVICE_IN_USE:
        tally->in_use++;
        break;
    case DEVICE_TAINTED:
        tally->tainted++;
        break;
    case DEVICE_COUNTERS:
        tally->counters++;
        tally->counter = detail ? detail : tally->counter;
        break;
    case DEVICE_CAPACITY:
        tally->capacity++;
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
        size_t n_selectors = tally->ask->ask->n_selectors < 32 ? tally->ask->ask->n_selectors : 32;
        bool matches = true;

        if (bench_selects(c->shape, bench, offer, tally->first_probe, NULL) != SELECT_YES)
            continue;
        tally->exist++;
        for (size_t s = 0; s < n_selectors; s++)
            if (bench_selects(c->shape, bench, offer, tally->first_probe + 1 + s, NULL) != SELECT_YES) {
                tally->failed[s]++;
                matches = false;
            }
        if (!matches)
            continue;
        tally->match++;
        mark_once(c->gang, tally->matched, offered->view->pool, offered->index);
        count_state(c, tally, offered);
    }
}

static void note_pools(struct counting *c, const struct bench *bench)
{
    for (size_t v = 0; v < bench->n_views; v++) {
        const struct pool_view *view = bench->views[v];
        json_t *one;
        bool known = false;
        size_t i;

        if (view->status == POOL_USABLE)
            continue;
        json_array_foreach (c->pools, i, one) {
            known = known || strcmp(json_string_value(json_object_get(one, "pool")), view->pool->name) == 0;
        }
        if (!known)
            json_array_append_new(c->pools, json_pack("{s:s, s:s, s:s}", "driver", view->pool->driver, "pool",
                                                      view->pool->name, "problem",
                                                      view->status == POOL_INCOMPLETE ? "incomplete: not all of its "
                                                                                        "slices are published"
                                                      : view->problem                 ? view->problem
                                                                                      : "invalid"));
    }
}

static void count_devices(struct counting *c)
{
    const uint32_t *slots;
    size_t n_slots;

    c->seen = arena_array(&c->gang->work, uint64_t *, snapshot_pool_slots(c->gang->snapshot));
    slots = snapshot_sorted_nodes(c->gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots && c->shape && !shape_problem(c->shape); i++) {
        const struct bench *bench =
            bench_make(c->shape, c->gang->ledger, snapshot_node(c->gang->snapshot, slots[i]), &c->gang->work);

        note_pools(c, bench);
        for (size_t o = 0; o < bench->n_offers; o++) {
            const struct offer *offer = &bench->offers[o];

            if (gang_device_reaches(offer->slice, offer->device, bench->node->info) &&
                mark_once(c->gang, c->seen, offer->view->pool, offer->index))
                count_offer(c, bench, o);
        }
    }
}

/* ---- requests: holders ---- */

struct holder_list {
    const struct gang *gang;
    const struct tally *tally;
    json_t *out;
};

static bool holds_match(const struct holder_list *h, const struct held_device *held)
{
    const struct pool *pool = snapshot_find_pool(h->gang->snapshot, held->driver, held->pool);

    if (!pool || !h->tally->matched[pool->slot] || held->admin_access)
        return false;
    for (size_t d = 0; d < pool->n_devices; d++)
        if (strcmp(pool->devices[d].device->name, held->device) == 0)
            return bitset_has(h->tally->matched[pool->slot], d);
    return false;
}

static void add_holder(void *ctx, const struct cluster_claim *claim)
{
    struct holder_list *h = ctx;
    json_t *one;
    size_t n = 0;

    if (json_array_size(h->out) >= MAX_HOLDERS)
        return;
    for (size_t i = 0; i < claim->n_held; i++)
        n += holds_match(h, &claim->held[i]);
    if (n == 0)
        return;
    one = json_pack("{s:I}", "devices", (json_int_t)n);
    json_object_set_new(one, "claim", json_sprintf("%s/%s", claim->ns ? claim->ns : "", claim->name));
    if (claim->job)
        json_object_set_new(one, "job", json_string(claim->job));
    json_array_append_new(h->out, one);
}

static json_t *holders_json(const struct gang *gang, const struct tally *tally)
{
    struct holder_list h = {gang, tally, json_array()};

    if (tally->in_use || tally->counters)
        snapshot_each_claim(gang->snapshot, add_holder, &h);
    return h.out;
}

/* ---- requests: output ---- */

static void add_excluded(json_t *list, const char *key, const char *text, size_t n)
{
    if (n)
        json_array_append_new(list, json_pack("{s:s, s:I}", key, text, "devices", (json_int_t)n));
}

static json_t *tally_json(const struct gang *gang, const struct tally *tally)
{
    const struct claim_ask *ask = tally->ask->ask;
    json_t *excluded = json_array(), *out;

    for (size_t s = 0; s < ask->n_selectors && s < 32; s++)
        add_excluded(excluded, "selector", ask->selectors[s] ? ask->selectors[s] : "", tally->failed[s]);
    for (size_t i = 0; i < ask->n_capacity; i++)
        add_excluded(excluded, "capacity", ask->capacity[i].key, tally->capacity);
    add_excluded(excluded, "counter", tally->counter ? tally->counter : "shared counters", tally->counters);
    add_excluded(excluded, "quota", "excluded by quota", tally->excluded);
    out = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "claim", tally->claim, "request",
                    tally->request, "class", ask->class_name, "count", (json_int_t)ask->count, "exist",
                    (json_int_t)tally->exist, "match", (json_int_t)tally->match, "free", (json_int_t)tally->free,
                    "inUse", (json_int_t)tally->in_use, "tainted", (json_int_t)tally->tainted, "excluded", excluded,
                    "holders", holders_json(gang, tally));
    if (ask->mode == MODE_ALL)
        json_object_set_new(out, "count", json_string("All"));
    if (tally->is_implicit && tally->ask->device_class->extended_resource)
        json_object_set_new(out, "resource", json_string(tally->ask->device_class->extended_resource));
    return out;
}

static size_t asks_of(const struct gang_unit *unit)
{
    return unit ? shape_n_asks(unit->shape) : 0;
}

static json_t *explain_requests(struct gang *gang, const struct gang_kind *kind, const struct gang_group *group,
                                json_t *pools)
{
    struct counting c = {.gang = gang, .pools = pools};
    json_t *out = json_array();
    size_t n = 0;

    for (size_t f = 0; f < GANG_MAX_FORMS; f++)
        n += asks_of(kind->forms[f]);
    for (size_t s = 0; s < gang->n_shared; s++)
        n += asks_of(gang->shared[s].unit);
    c.tallies = arena_array(&gang->work, struct tally, n);
    for (size_t f = 0; f < GANG_MAX_FORMS; f++)
        if (kind->forms[f] && kind->forms[f]->asks)
            add_tallies(&c, kind->forms[f], group);
    for (size_t s = 0; s < gang->n_shared; s++)
        if ((kind->shared >> s & 1) && gang->shared[s].unit && gang->shared[s].unit->asks)
            add_tallies(&c, gang->shared[s].unit, group);
    if (c.n_probes)
        make_probe_shape(&c);
    count_devices(&c);
    for (size_t t = 0; t < c.n_tallies; t++)
        json_array_append_new(out, tally_json(gang, &c.tallies[t]));
    shape_free(c.shape);
    free(c.probes);
    return out;
}

/* ---- groups ---- */

static size_t fit_alone(struct gang *gang, const struct gang_kind *kind)
{
    struct gang_choice free_choice = {0};
    struct gang_survey *survey;

    if (gang->n_kinds == 1 && kind->n_members == 1 && gang->spec->n_constraints == 0)
        return 0; /* or it would not be explained */
    survey = gang_survey(gang, &free_choice);
    gang->steps = gang->budget;
    return gang_most_alone(gang, survey, (size_t)(kind - gang->kinds));
}

static bool counts(const struct gang *gang)
{
    return !gang->spec->is_brief || snapshot_n_nodes(gang->snapshot) <= BRIEF_NODES;
}

static json_t *explain_group(struct gang *gang, size_t g)
{
    const struct gang_group *group = &gang->spec->groups[g];
    const struct gang_kind *kind = &gang->kinds[gang->kind_of[g]];
    struct arena_mark mark = arena_mark(&gang->work);
    json_t *out = json_pack("{s:s, s:I}", "name", group->name, "members", (json_int_t)group->n_members);
    json_t *pools = json_array();

    if (!gang->refusal)
        json_object_set_new(out, "fit", json_integer((json_int_t)fit_alone(gang, kind)));
    if (counts(gang)) {
        explain_nodes(gang, kind, out);
        json_object_set_new(out, "requests", gang->refusal ? json_array() : explain_requests(gang, kind, group, pools));
    }
    if (json_array_size(pools) > 0)
        json_object_set(out, "unusablePools", pools);
    json_decref(pools);
    arena_rewind(&gang->work, mark);
    return out;
}

static json_t *explain_groups(struct gang *gang)
{
    json_t *out = json_array();

    for (size_t g = 0; g < gang->spec->n_groups; g++)
        json_array_append_new(out, explain_group(gang, g));
    return out;
}

/* ---- the summary ---- */

static const char *verdict_phrase(enum gang_verdict verdict)
{
    switch (verdict) {
    case GANG_FITS:
        return "The gang fits";
    case GANG_WAITS:
        return "The gang must wait";
    case GANG_NEVER:
        return "The gang will never fit on this cluster";
    case GANG_UNDECIDED:
        return "No placement was found within the search budget";
    case GANG_REFUSED:
        return "The gang cannot start";
    }
    return "";
}

/* The request of a group that has the fewest free devices for what it asks. */
static const json_t *scarcest_request(const json_t *group)
{
    const json_t *worst = NULL;
    json_t *one;
    size_t i;

    json_array_foreach (json_object_get(group, "requests"), i, one) {
        if (!worst ||
            json_integer_value(json_object_get(one, "free")) < json_integer_value(json_object_get(worst, "free")))
            worst = one;
    }
    return worst;
}

static void add_request_words(struct buf *text, const json_t *request)
{
    buf_addf(text, "; request %s of class %s finds %lld free of %lld matching devices (%lld exist)",
             json_string_value(json_object_get(request, "request")),
             json_string_value(json_object_get(request, "class")),
             (long long)json_integer_value(json_object_get(request, "free")),
             (long long)json_integer_value(json_object_get(request, "match")),
             (long long)json_integer_value(json_object_get(request, "exist")));
}

/* The group with the largest part that finds no place. */
static const json_t *worst_group(const json_t *groups)
{
    const json_t *worst = NULL;
    json_int_t most = 0;
    json_t *one;
    size_t i;

    json_array_foreach (groups, i, one) {
        json_int_t missing =
            json_integer_value(json_object_get(one, "members")) - json_integer_value(json_object_get(one, "fit"));

        if (!worst || missing > most) {
            worst = one;
            most = missing;
        }
    }
    return worst;
}

static void add_group_words(struct buf *text, const json_t *group)
{
    const json_t *request = scarcest_request(group), *reasons = json_object_get(group, "nodeReasons");
    json_int_t members = json_integer_value(json_object_get(group, "members")),
               fit = json_integer_value(json_object_get(group, "fit"));

    if (fit < members)
        buf_addf(text, ": %lld of %lld members of group %s find a place", (long long)fit, (long long)members,
                 json_string_value(json_object_get(group, "name")));
    else
        buf_adds(text, ": every group fits by itself, but not all of them together");
    if (request)
        add_request_words(text, request);
    if (json_array_size(json_object_get(group, "unusablePools")) > 0) {
        const json_t *pool = json_array_get(json_object_get(group, "unusablePools"), 0);

        buf_addf(text, "; pool %s/%s is %s", json_string_value(json_object_get(pool, "driver")),
                 json_string_value(json_object_get(pool, "pool")), json_string_value(json_object_get(pool, "problem")));
    }
    if (json_array_size(reasons) > 0) {
        const json_t *reason = json_array_get(reasons, 0);

        buf_addf(text, "; %lld nodes (such as %s): %s", (long long)json_integer_value(json_object_get(reason, "nodes")),
                 json_string_value(json_object_get(reason, "example")),
                 json_string_value(json_object_get(reason, "reason")));
    }
}

static json_t *summary_json(struct gang *gang, enum gang_verdict verdict, const json_t *groups, const char *phrase)
{
    json_t *out;
    BUF text = {0};

    buf_adds(&text, verdict_phrase(verdict));
    if (verdict == GANG_REFUSED)
        buf_addf(&text, ": %s", gang->refusal);
    else if (verdict != GANG_FITS && worst_group(groups))
        add_group_words(&text, worst_group(groups));
    if (verdict != GANG_FITS && snapshot_n_nodes(gang->snapshot) == 0)
        buf_adds(&text, "; the cluster has no nodes");
    if (phrase)
        buf_addf(&text, "; %s", phrase);
    buf_addc(&text, '.');
    out = json_string(buf_str(&text));
    return out ? out : json_string("The explanation holds text that is not valid UTF-8.");
}

json_t *gang_explain(struct gang *gang, enum gang_verdict verdict)
{
    json_t *groups = verdict == GANG_FITS || gang->spec->is_brief ? json_array() : explain_groups(gang);
    json_t *blocking = json_array(), *hints = json_array();
    const char *phrase = NULL;

    if (verdict == GANG_REFUSED)
        json_array_append_new(
            blocking, json_pack("{s:s, s:s, s:s}", "kind", "class", "name", "refused", "detail", gang->refusal));
    if ((verdict == GANG_WAITS || verdict == GANG_NEVER) && !gang->spec->is_brief)
        phrase = gang_what_if(gang, blocking, hints);
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict", verdict_names[verdict], "summary",
                     summary_json(gang, verdict, groups, phrase), "groups", groups, "blocking", blocking, "hints",
                     hints);
}
