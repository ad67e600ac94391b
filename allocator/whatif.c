/* What single change would make the gang fit: every rule of the job is lifted in turn, then every scarcity, then every
 * holder is thought away, and the gang is planned again. Whatever makes it fit is a reason why it does not. */
#include "allocator/whatif.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"

#include "allocator/base/banned.h"

#define MAX_TRIALS   48 /* for rules and scarcities */
#define MAX_ALONE    16 /* selectors that are tried one by one */
#define MAX_NODES    8
#define TRIAL_BUDGET UINT64_C(200000)
#define MAX_NAMED    3 /* hints in the summary, counters in a hint */
#define MAX_COUNTERS 32

/* ---- lifting ---- */

static void lift_constraints(const struct gang_lift *lift, struct claim *claim, struct arena *arena)
{
    struct claim_constraint *kept = arena_array(arena, struct claim_constraint, claim->n_constraints);
    size_t n = 0;

    for (size_t i = 0; i < claim->n_constraints; i++)
        if (!claim->constraints[i].attribute || strcmp(claim->constraints[i].attribute, lift->attribute) != 0)
            kept[n++] = claim->constraints[i];
    claim->constraints = kept;
    claim->n_constraints = n;
}

static void lift_selectors(const struct gang_lift *lift, struct claim_ask *ask, struct arena *arena)
{
    const char **kept = arena_array(arena, const char *, ask->n_selectors);
    size_t n = 0;

    for (size_t i = 0; i < ask->n_selectors && !lift->all_selectors; i++)
        if (!ask->selectors[i] || strcmp(ask->selectors[i], lift->selector) != 0)
            kept[n++] = ask->selectors[i];
    ask->selectors = kept;
    ask->n_selectors = n;
}

static const struct toleration *tolerate_everything(struct arena *arena)
{
    struct toleration *all = arena_new(arena, struct toleration);

    *all = (struct toleration){.key = "", .value = "", .op = TOLERATE_EXISTS, .op_text = "Exists", .effect_text = ""};
    return all;
}

/* The taints that its controllers set, and take away when the state is over. */
static const char *const state_taints[] = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/uninitialized",
};

bool gang_is_state_taint(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(state_taints); i++)
        if (strcmp(state_taints[i], key) == 0)
            return true;
    return false;
}

static void tolerate_states(struct pod_rules *rules, struct arena *arena)
{
    struct toleration *all = arena_array(arena, struct toleration, rules->n_tolerations + ARRAY_SIZE(state_taints));

    for (size_t i = 0; i < rules->n_tolerations; i++)
        all[i] = rules->tolerations[i];
    for (size_t i = 0; i < ARRAY_SIZE(state_taints); i++)
        all[rules->n_tolerations + i] = (struct toleration){
            .key = state_taints[i], .value = "", .op = TOLERATE_EXISTS, .op_text = "Exists", .effect_text = ""};
    rules->tolerations = all;
    rules->n_tolerations += ARRAY_SIZE(state_taints);
}

void gang_lift_claim(const struct gang_lift *lift, struct claim *claim, struct arena *arena)
{
    struct claim_request *requests = arena_array(arena, struct claim_request, claim->n_requests);

    if (lift->attribute)
        lift_constraints(lift, claim, arena);
    for (size_t r = 0; r < claim->n_requests; r++) {
        struct claim_ask *asks = arena_array(arena, struct claim_ask, claim->requests[r].n_asks);

        requests[r] = claim->requests[r];
        for (size_t a = 0; a < requests[r].n_asks; a++) {
            asks[a] = requests[r].asks[a];
            if (lift->all_selectors || lift->selector)
                lift_selectors(lift, &asks[a], arena);
            if (lift->device_taints) {
                asks[a].tolerations = tolerate_everything(arena);
                asks[a].n_tolerations = 1;
            }
        }
        requests[r].asks = asks;
    }
    claim->requests = requests;
    digest_add(&claim->digest, UINT64_C(0x6c696674)); /* asks for something else now */
}

void gang_lift_pod(const struct gang_lift *lift, struct pod_rules *rules, struct arena *arena)
{
    if (lift->node_selector)
        rules->n_selector = 0;
    if (lift->node_affinity)
        rules->affinity = NULL;
    if (lift->node_name)
        rules->node_name = NULL;
    if (lift->node_taints) {
        rules->tolerations = tolerate_everything(arena);
        rules->n_tolerations = 1;
    }
    if (lift->node_states)
        tolerate_states(rules, arena);
    if (lift->ports)
        rules->demand.n_ports = 0;
}

/* ---- trials ---- */

static json_t *nodes_of(const struct placement *placement)
{
    json_t *out = json_array();

    for (size_t i = 0; placement && i < placement->n_members && json_array_size(out) < MAX_NODES; i++) {
        bool known = false;
        json_t *one;
        size_t k;

        json_array_foreach (out, k, one) {
            known = known || strcmp(json_string_value(one), placement->members[i].node) == 0;
        }
        if (!known)
            json_array_append_new(out, json_string(placement->members[i].node));
    }
    return out;
}

/* Plan again with something lifted; the nodes that would be used, or NULL when it still does not fit. */
json_t *whatif_fits(struct trial *t, const struct gang_lift *lift, const struct ledger *ledger)
{
    struct gang_spec spec = *t->gang->spec;
    struct placement *placement = NULL;
    json_t *nodes = NULL;
    struct arena arena;
    struct gang gang;
    struct error err;

    if (t->n_trials++ >= t->max_trials)
        return NULL;
    spec.budget = TRIAL_BUDGET;
    arena_init(&arena);
    if (gang_read(&gang, t->gang->snapshot, &spec, lift, &arena, &err) == 0 && !gang.refusal) {
        gang.ledger = ledger ? ledger : t->empty;
        gang.is_empty = !ledger && t->empty;
        if (gang_plan(&gang, true, &placement) == GS_FOUND)
            nodes = nodes_of(placement);
    }
    gang_release(&gang);
    arena_release(&arena);
    return nodes;
}

json_t *whatif_report(struct trial *t, const char *kind, const char *name, const char *detail, json_t *nodes,
                      const char *hint)
{
    json_t *block = json_pack("{s:s, s:s, s:s, s:o}", "kind", kind, "name", name, "detail", detail, "nodes", nodes);

    json_array_append_new(t->blocking, block);
    json_array_append_new(strcmp(kind, "devices") == 0 ? t->ends : t->hints, json_string(hint));
    return block;
}

/* ---- what has been counted ---- */

/* Call `each` for every request of every group, until it returns false. */
static void each_request(const struct trial *t, bool (*each)(void *ctx, const json_t *request), void *ctx)
{
    const json_t *group, *request;
    size_t g, r;

    json_array_foreach (t->groups, g, group)
        json_array_foreach (json_object_get(group, "requests"), r, request)
            if (!each(ctx, request))
                return;
}

/* The entry of a request's "excluded" with most devices that has the key (and, unless NULL, this text). */
static const json_t *excluded_by(const json_t *request, const char *key, const char *text)
{
    const json_t *one, *best = NULL;
    size_t i;

    json_array_foreach (json_object_get(request, "excluded"), i, one)
        if (json_object_get(one, key) && (!text || strcmp(explain_text(one, key), text) == 0) &&
            (!best || explain_number(one, "devices") > explain_number(best, "devices")))
            best = one;
    return best;
}

struct phrase {
    struct trial *t;
    const char *text;   /* the selector, ... */
    const char *result; /* NULL: nothing known */
    struct buf list;
};

/* ---- rules of the claims ---- */

static void try_attribute(struct trial *t, const char *attribute)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    const char *words;
    json_t *nodes;

    lift.attribute = attribute;
    nodes = whatif_fits(t, &lift, NULL);
    if (!nodes)
        return;
    words = explain_claim_constraint(t->gang, t->verdict, attribute);
    whatif_report(t, "constraint", attribute,
                  words ? words : "devices of one claim cannot meet the constraint on this attribute", nodes,
                  arena_printf(t->gang->arena, "without the constraint on %s", attribute));
}

static bool in_claims(const struct gang *gang, const char *attribute)
{
    for (size_t u = 0; u < gang->n_units; u++)
        for (size_t c = 0; c < gang->units[u]->n_claims; c++)
            for (size_t i = 0; i < gang->units[u]->claims[c]->n_constraints; i++) {
                const char *name = gang->units[u]->claims[c]->constraints[i].attribute;

                if (name && strcmp(name, attribute) == 0)
                    return true;
            }
    return false;
}

static void try_constraints(struct trial *t)
{
    for (size_t i = 0; i < t->gang->n_attributes; i++)
        if (in_claims(t->gang, t->gang->attributes[i]))
            try_attribute(t, t->gang->attributes[i]);
    for (size_t i = 0; i < t->gang->spec->n_constraints; i++) {
        const struct gang_constraint *constraint = &t->gang->spec->constraints[i];
        struct gang_lift lift = GANG_LIFT_NONE;
        json_t *nodes;

        lift.constraint = i;
        nodes = whatif_fits(t, &lift, NULL);
        if (nodes) {
            const char *words = explain_gang_constraint(t->gang, t->verdict, i);

            whatif_report(t, "constraint", constraint->key,
                          words ? words : "the members cannot meet the gang's constraint together", nodes,
                          arena_printf(t->gang->arena, "without the gang constraint on %s", constraint->key));
        }
    }
}

/* The distinct selectors of requests. */
static const char **selectors_of(struct gang *gang, size_t *out_n)
{
    const char **texts;
    size_t cap = 0, n = 0;

    for (size_t a = 0; a < gang->n_asks; a++)
        cap += gang->asks[a].ask->n_selectors;
    texts = arena_array(&gang->work, const char *, cap);
    for (size_t a = 0; a < gang->n_asks; a++)
        for (size_t s = 0; s < gang->asks[a].ask->n_selectors; s++) {
            const char *text = gang->asks[a].ask->selectors[s];
            bool known = !text;

            for (size_t i = 0; i < n && !known; i++)
                known = strcmp(texts[i], text) == 0;
            if (!known)
                texts[n++] = text;
        }
    *out_n = n;
    return texts;
}

static bool count_selector(void *ctx, const json_t *request)
{
    struct phrase *p = ctx;
    const json_t *excluded = excluded_by(request, "selector", p->text);
    long long meet = explain_number(request, "exist") - explain_number(excluded, "devices");

    if (!excluded)
        return true;
    p->result =
        arena_printf(p->t->gang->arena, "%lld of %lld devices of class %s meet this selector and %lld %s", meet,
                     explain_number(request, "exist"), explain_text(request, "class"), explain_number(request, "free"),
                     explain_number(request, "free") == 1 ? "is free" : "are free");
    if (json_object_get(request, "needed"))
        p->result = arena_printf(p->t->gang->arena, "%s, %lld %s needed", p->result, explain_number(request, "needed"),
                                 explain_number(request, "needed") == 1 ? "is" : "are");
    return false;
}

static const char *selector_words(struct trial *t, const char *selector, const char *fallback)
{
    struct phrase p = {.t = t, .text = selector};

    each_request(t, count_selector, &p);
    return p.result ? p.result : fallback;
}

static void try_selectors(struct trial *t)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    size_t n, n_alone = 0;
    const char **texts = selectors_of(t->gang, &n);
    json_t *nodes;

    lift.all_selectors = true;
    nodes = n ? whatif_fits(t, &lift, NULL) : NULL;
    if (!nodes)
        return;
    lift.all_selectors = false;
    for (size_t i = 0; i < n && n <= MAX_ALONE; i++) {
        json_t *alone;

        lift.selector = texts[i];
        alone = whatif_fits(t, &lift, NULL);
        if (!alone)
            continue;
        n_alone++;
        whatif_report(t, "selector", texts[i], selector_words(t, texts[i], "too few devices meet this selector"), alone,
                      arena_printf(t->gang->arena, "without the selector %s", texts[i]));
    }
    if (n_alone == 0)
        for (size_t i = 0; i < n && i < MAX_NAMED; i++)
            whatif_report(t, "selector", texts[i],
                          selector_words(t, texts[i], "too few devices meet these selectors together"),
                          json_incref(nodes),
                          i ? arena_printf(t->gang->arena, "and without %s", texts[i])
                            : arena_printf(t->gang->arena, "without the selector %s", texts[i]));
    json_decref(nodes);
}

/* ---- taints ---- */

/* "2 with a=b:NoSchedule" over all requests. */
static bool list_taints(void *ctx, const json_t *request)
{
    struct phrase *p = ctx;
    const json_t *one;
    size_t i;

    json_array_foreach (json_object_get(request, "excluded"), i, one) {
        const char *taint = explain_text(one, "taint");

        if (*taint && !strstr(buf_str(&p->list), taint) && p->list.len < 200)
            buf_addf(&p->list, "%s%lld with %s", p->list.len ? ", " : "", explain_number(one, "devices"), taint);
    }
    return true;
}

static bool name_taints(void *ctx, const json_t *request)
{
    struct phrase *p = ctx;
    const json_t *one;
    size_t i;

    json_array_foreach (json_object_get(request, "excluded"), i, one) {
        const char *taint = explain_text(one, "taint");

        if (*taint && !strstr(buf_str(&p->list), taint) && p->list.len < 200)
            buf_addf(&p->list, "%s%s", p->list.len ? ", " : "", taint);
    }
    return true;
}

static void try_taints(struct trial *t)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    struct phrase names = {.t = t}, counts = {.t = t};
    json_t *nodes = NULL;

    each_request(t, name_taints, &names);
    each_request(t, list_taints, &counts);
    lift.device_taints = true;
    if (names.list.len)
        nodes = whatif_fits(t, &lift, NULL);
    if (nodes)
        whatif_report(
            t, "taint", buf_str(&names.list),
            arena_printf(t->gang->arena, "devices have taints that the requests do not tolerate: %s",
                         buf_str(&counts.list)),
            nodes, arena_printf(t->gang->arena, "if its requests tolerated the device taint %s", buf_str(&names.list)));
    buf_release(&names.list);
    buf_release(&counts.list);
}

/* ---- rules of the pods ---- */

/* The nodes whose first obstacle is one of these, its detail, and a list of reasons. */
static json_t *nodes_with(struct gang *gang, const enum node_obstacle *obstacles, size_t n, const char **out_detail,
                          size_t *out_count, struct buf *reasons)
{
    const uint32_t *slots;
    size_t n_slots;
    json_t *out = json_array();

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t k = 0; k < gang->n_kinds; k++)
        for (size_t i = 0; i < n_slots; i++) {
            const struct node *node = snapshot_node(gang->snapshot, slots[i]);
            struct node_finding finding = node_admits(&gang->kinds[k].rules, node->info);
            bool is_one = false;

            for (size_t o = 0; o < n; o++)
                is_one = is_one || finding.obstacle == obstacles[o];
            if (!is_one)
                continue;
            if (*out_count == 0 && json_array_size(out) == 0 && finding.detail)
                *out_detail = finding.detail; /* it stands for the node that is named */
            *out_count += k == 0;
            if (json_array_size(out) < MAX_NODES)
                json_array_append_new(out, json_string(node->info->name));
            if (reasons->len < 160 && !strstr(buf_str(reasons), explain_finding(gang, &finding)))
                buf_addf(reasons, "%s%s", reasons->len ? ", " : "", explain_finding(gang, &finding));
        }
    return out;
}

/* Which first obstacles there are at all, as bits: a pass over all nodes for each rule that is none is spared. */
static unsigned obstacles_of(const struct gang *gang)
{
    const uint32_t *slots;
    size_t n_slots;
    unsigned seen = 0;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t k = 0; k < gang->n_kinds; k++)
        for (size_t i = 0; i < n_slots; i++)
            seen |= 1u << node_admits(&gang->kinds[k].rules, snapshot_node(gang->snapshot, slots[i])->info).obstacle;
    return seen;
}

static void try_node_rule(struct trial *t, const struct gang_lift *lift, const enum node_obstacle *obstacles, size_t n,
                          const char *kind, const char *fallback, const char *detail, const char *hint)
{
    const char *name = fallback;
    size_t count = 0;
    unsigned wanted = 0;
    BUF reasons = {0};
    json_t *nodes, *used = NULL;

    for (size_t o = 0; o < n; o++)
        wanted |= 1u << obstacles[o];
    if (!(wanted & t->obstacles))
        return;
    nodes = nodes_with(t->gang, obstacles, n, &name, &count, &reasons);
    if (json_array_size(nodes) > 0)
        used = whatif_fits(t, lift, NULL);
    if (used) {
        whatif_report(t, kind, name,
                      count ? arena_printf(t->gang->arena, "%s: %zu of %zu %s out (%s)", detail, count,
                                           snapshot_n_nodes(t->gang->snapshot), count == 1 ? "is" : "are",
                                           buf_str(&reasons))
                            : detail,
                      nodes,
                      arena_printf(t->gang->arena, "%s%s%s%s%s", hint, *name ? " (" : "", name,
                                   *name ? ") on node " : " on node ", json_string_value(json_array_get(nodes, 0))));
        json_decref(used);
    } else {
        json_decref(nodes);
    }
}

static void try_nodes(struct trial *t)
{
    static const enum node_obstacle closed[] = {NODE_UNSCHEDULABLE, NODE_NOT_READY, NODE_TAINTED};
    static const enum node_obstacle label[] = {NODE_SELECTOR}, affinity[] = {NODE_AFFINITY},
                                    named[] = {NODE_OTHER_NAME};
    struct gang_lift taints = GANG_LIFT_NONE, selector = GANG_LIFT_NONE, terms = GANG_LIFT_NONE, name = GANG_LIFT_NONE;

    taints.node_taints = true;
    selector.node_selector = true;
    terms.node_affinity = true;
    name.node_name = true;
    t->obstacles = obstacles_of(t->gang);
    try_node_rule(t, &taints, closed, ARRAY_SIZE(closed), "taint", "unschedulable or not-ready",
                  "nodes that are unschedulable, not ready or tainted", "if its pods tolerated the state");
    try_node_rule(t, &selector, label, 1, "node", "nodeSelector", "the node selector leaves too few nodes",
                  "without the node selector");
    try_node_rule(t, &terms, affinity, 1, "node", "nodeAffinity", "the required node affinity leaves too few nodes",
                  "without the required node affinity");
    try_node_rule(t, &name, named, 1, "node", "nodeName", "the pods name one node", "without spec.nodeName");
}

/* ---- scarcities ---- */

/* Whether every node has as much of the resource left as all members ask together, so that it is no obstacle. */
static bool is_plentiful(const struct trial *t, size_t resource)
{
    const struct gang *gang = t->gang;
    const char *name = gang->resources[resource];
    const uint32_t *slots;
    size_t n_slots;

    for (size_t i = 0; i < gang->n_mapped; i++)
        if (strcmp(gang->mapped[i], name) == 0)
            return false; /* what serves it is not told by amounts alone */
    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        const struct node_use *use = t->empty ? ledger_node_use(t->empty, node) : &node->use;
        int64_t left = node_allocatable(node->info, name) - node_used(use, name);
        uint32_t form = gang_form_of(gang, node->info);

        for (size_t k = 0; k < gang->n_kinds; k++) {
            const int64_t *demand = gang->kinds[k].demand[form];
            int64_t asked = 0;

            if (!demand || demand[resource] <= 0)
                continue;
            if (!checked_mul(demand[resource], (int64_t)gang->kinds[k].n_members, &asked) || asked > left)
                return false;
            left -= asked;
        }
    }
    return true;
}

static void try_resources(struct trial *t)
{
    for (size_t i = 0; i < t->gang->n_resources; i++) {
        struct gang_lift lift = GANG_LIFT_NONE;
        json_t *nodes;

        if (is_plentiful(t, i))
            continue;
        lift.resource = t->gang->resources[i];
        nodes = whatif_fits(t, &lift, NULL);
        if (nodes) {
            const char *words = explain_shortage(t->gang, t->verdict, lift.resource);

            whatif_report(t, "capacity", lift.resource,
                          words ? words : "the nodes have too little of this resource left", nodes,
                          arena_printf(t->gang->arena, "with more %s on node %s", lift.resource,
                                       json_string_value(json_array_get(nodes, 0))));
        }
    }
}

static size_t members_with_ports(const struct gang *gang)
{
    size_t n = 0;

    for (size_t k = 0; k < gang->n_kinds; k++)
        n += gang->kinds[k].rules.demand.n_ports > 0 ? gang->kinds[k].n_members : 0;
    return n;
}

static void try_ports(struct trial *t)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    size_t n = members_with_ports(t->gang);
    const char *port;
    json_t *nodes;

    if (t->gang->n_ports == 0)
        return;
    lift.ports = true;
    nodes = whatif_fits(t, &lift, NULL);
    port = arena_printf(t->gang->arena, "host port %lld", (long long)t->gang->ports[0]->port);
    if (nodes)
        whatif_report(
            t, "node", port,
            arena_printf(t->gang->arena,
                         "only one pod per node can have a host port, so %zu %s as many nodes with the port free", n,
                         n == 1 ? "member needs" : "members need"),
            nodes, arena_printf(t->gang->arena, "without %s", port));
}

static bool is_listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Names of counters that devices consume: "memory, slots and 7 more". */
static void collect_counters(struct gang *gang, struct buf *out)
{
    const char *names[MAX_COUNTERS];
    size_t n = 0;

    for (uint32_t slot = 0; slot < snapshot_pool_slots(gang->snapshot) && n < MAX_COUNTERS; slot++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, slot);

        for (size_t d = 0; pool && d < pool->n_devices; d++)
            for (size_t s = 0; s < pool->devices[d].device->n_consumes; s++)
                for (size_t c = 0; c < pool->devices[d].device->consumes[s].n_counters && n < MAX_COUNTERS; c++) {
                    const char *name = pool->devices[d].device->consumes[s].counters[c].name;

                    if (!is_listed(names, n, name))
                        names[n++] = name;
                }
    }
    for (size_t i = 0; i < n && i < MAX_NAMED; i++)
        buf_addf(out, "%s%s", i ? ", " : "", names[i]);
    if (n > MAX_NAMED)
        buf_addf(out, " and %zu more", n - MAX_NAMED);
}

/* "a device takes 40Gi of memory of its counter set (gpu-0), at most 10Gi are left (pool/device)" */
static bool count_amount(void *ctx, const json_t *request)
{
    struct phrase *p = ctx;
    const json_t *excluded = excluded_by(request, p->text, NULL);
    const char *set = explain_text(excluded, "counterSet");

    if (!excluded || !json_object_get(excluded, "asked"))
        return true;
    p->result = arena_printf(p->t->gang->arena, "a device for request %s takes %s of %s%s%s, at most %s is left (%s)",
                             explain_text(request, "request"), explain_text(excluded, "asked"),
                             explain_text(excluded, p->text), *set ? " of counter set " : "", set,
                             explain_text(excluded, "left"), explain_text(excluded, "device"));
    return false;
}

static const char *amount_words(struct trial *t, const char *key, const char *fallback)
{
    struct phrase p = {.t = t, .text = key};

    each_request(t, count_amount, &p);
    return p.result ? p.result : fallback;
}

static void try_amounts(struct trial *t)
{
    struct gang_lift counters = GANG_LIFT_NONE, capacity = GANG_LIFT_NONE;
    json_t *nodes;
    BUF names = {0};
    BUF asked = {0};

    counters.counters = true;
    capacity.capacity = true;
    collect_counters(t->gang, &names);
    nodes = names.len ? whatif_fits(t, &counters, NULL) : NULL;
    if (nodes)
        whatif_report(t, "counters", buf_str(&names),
                      amount_words(t, "counter", "partitions share counters, and what is left of them is too little"),
                      nodes,
                      arena_printf(t->gang->arena, "with more left of the shared counters (%s)", buf_str(&names)));
    for (size_t a = 0; a < t->gang->n_asks; a++)
        for (size_t i = 0; i < t->gang->asks[a].ask->n_capacity; i++)
            if (!strstr(buf_str(&asked), t->gang->asks[a].ask->capacity[i].key))
                buf_addf(&asked, "%s%s", asked.len ? ", " : "", t->gang->asks[a].ask->capacity[i].key);
    nodes = asked.len ? whatif_fits(t, &capacity, NULL) : NULL;
    if (nodes)
        whatif_report(t, "capacity", buf_str(&asked),
                      amount_words(t, "capacity", "what is left of this capacity on each device is too little"), nodes,
                      arena_printf(t->gang->arena, "with more %s left on the devices", buf_str(&asked)));
}

/* ---- what is missing ---- */

static bool tell_missing(void *ctx, const json_t *request)
{
    struct trial *t = ctx;
    bool never = t->verdict == GANG_NEVER;
    long long missing = explain_number(request, "needed") - explain_number(request, never ? "match" : "free");

    if (json_object_get(request, "needed") && json_object_get(request, "problem") && missing > 0)
        json_array_append_new(
            t->hints,
            json_string(arena_printf(t->gang->arena, "with at least %lld more %s for request %s of class %s", missing,
                                     never ? (missing == 1 ? "device" : "devices")
                                           : (missing == 1 ? "free device" : "free devices"),
                                     explain_text(request, "request"), explain_text(request, "class"))));
    return true;
}

/* ---- the whole ---- */

/* "it would fit when job 1 (train) ends, or without the constraint on d/a"; "could" where room must be made as well. */
static const char *phrase_of(const struct trial *t, size_t n_proven)
{
    const char *start = t->empty ? "it could fit " : "it would fit ";
    size_t n = json_array_size(t->ends) < MAX_NAMED ? json_array_size(t->ends) : MAX_NAMED, shown = 0;
    BUF text = {0};

    if (n == MAX_NAMED && n_proven > 0)
        n--; /* one rule is worth more than the third holder */
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%s%s", shown++ ? ", or " : start, json_string_value(json_array_get(t->ends, i)));
    for (size_t i = 0; i < n_proven && shown < MAX_NAMED; i++)
        buf_addf(&text, "%s%s", shown++ ? ", or " : start, json_string_value(json_array_get(t->hints, i)));
    return text.len ? arena_strdup(t->gang->arena, buf_str(&text)) : NULL;
}

const char *gang_what_if(struct gang *gang, enum gang_verdict verdict, const json_t *groups, json_t *blocking,
                         json_t *hints, json_t *more_nodes)
{
    struct trial t = {.gang = gang,
                      .verdict = verdict,
                      .groups = groups,
                      .blocking = blocking,
                      .hints = json_array(),
                      .ends = json_array(),
                      .max_trials = MAX_TRIALS};
    struct arena_mark mark = arena_mark(&gang->work);
    const char *phrase;

    if (verdict == GANG_NEVER) {
        t.empty = ledger_new(gang->snapshot);
        ledger_empty(t.empty);
    }
    try_constraints(&t);
    try_nodes(&t);
    try_taints(&t);
    try_ports(&t);
    try_resources(&t);
    try_amounts(&t);
    try_selectors(&t);
    if (verdict == GANG_WAITS) {
        whatif_holders(&t);
        whatif_more_nodes(&t, more_nodes);
    }
    phrase = phrase_of(&t, json_array_size(t.hints));
    if (verdict == GANG_NEVER)
        whatif_more_nodes(&t, more_nodes); /* a hint only: no single change of what there is makes it fit */
    each_request(&t, tell_missing, &t);
    json_array_extend(hints, t.ends);
    json_array_extend(hints, t.hints);
    json_decref(t.ends);
    json_decref(t.hints);
    ledger_free(t.empty);
    arena_rewind(&gang->work, mark);
    return phrase;
}
