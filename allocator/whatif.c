/* What single change would make the gang fit: every rule of the job is lifted in turn, then every scarcity, then every
 * holder is thought away, and the gang is planned again. Whatever makes it fit is a reason why it does not. */
#include <stdlib.h>
#include <string.h>

#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

#define MAX_TRIALS   48
#define MAX_HOLDERS  16
#define MAX_NODES    8
#define TRIAL_BUDGET UINT64_C(200000)
#define MAX_NAMED    3 /* in the summary */

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
    if (lift->ports)
        rules->demand.n_ports = 0;
}

/* ---- trials ---- */

struct trial {
    struct gang *gang;
    json_t *blocking, *hints;
    struct buf names; /* for the summary */
    size_t n_named, n_trials;
};

static json_t *nodes_of(const struct placement *placement)
{
    json_t *out = json_array();

    for (size_t i = 0; placement && i < placement->n_members && json_array_size(out) < MAX_NODES; i++) {
        bool known = false;
        json_t *one;
        size_t k;

        json_array_foreach(out, k, one)
        {
            known = known || strcmp(json_string_value(one), placement->members[i].node) == 0;
        }
        if (!known)
            json_array_append_new(out, json_string(placement->members[i].node));
    }
    return out;
}

/* Plan again with something lifted; the nodes that would be used, or NULL when it still does not fit. */
static json_t *fits_with(struct trial *t, const struct gang_lift *lift, const struct ledger *ledger)
{
    struct gang_spec spec = *t->gang->spec;
    struct placement *placement = NULL;
    json_t *nodes = NULL;
    struct arena arena;
    struct gang gang;
    struct error err;

    if (t->n_trials++ >= MAX_TRIALS)
        return NULL;
    spec.budget = TRIAL_BUDGET;
    arena_init(&arena);
    if (gang_read(&gang, t->gang->snapshot, &spec, lift, &arena, &err) == 0 && !gang.refusal) {
        gang.ledger = ledger;
        if (gang_plan(&gang, true, &placement) == GS_FOUND)
            nodes = nodes_of(placement);
    }
    gang_release(&gang);
    arena_release(&arena);
    return nodes;
}

static void report(struct trial *t, const char *kind, const char *name, const char *detail, json_t *nodes,
                   const char *hint)
{
    json_array_append_new(
        t->blocking, json_pack("{s:s, s:s, s:s, s:o}", "kind", kind, "name", name, "detail", detail, "nodes", nodes));
    json_array_append_new(t->hints, json_string(hint));
    if (t->n_named++ < MAX_NAMED)
        buf_addf(&t->names, "%s%s", t->names.len ? ", or " : "it would fit ", hint);
}

/* ---- rules of the claims ---- */

static void try_attribute(struct trial *t, const char *attribute)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    json_t *nodes;

    lift.attribute = attribute;
    nodes = fits_with(t, &lift, NULL);
    if (nodes)
        report(t, "constraint", attribute, "devices of one claim cannot meet the constraint on this attribute", nodes,
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
        nodes = fits_with(t, &lift, NULL);
        if (nodes)
            report(t, "constraint", constraint->key, "the members cannot meet the gang's constraint together", nodes,
                   arena_printf(t->gang->arena, "without the gang constraint on %s", constraint->key));
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

static void try_selectors(struct trial *t)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    size_t n, n_alone = 0;
    const char **texts = selectors_of(t->gang, &n);
    json_t *nodes;

    lift.all_selectors = true;
    nodes = n ? fits_with(t, &lift, NULL) : NULL;
    if (!nodes)
        return;
    lift.all_selectors = false;
    for (size_t i = 0; i < n && n <= MAX_HOLDERS; i++) {
        json_t *alone;

        lift.selector = texts[i];
        alone = fits_with(t, &lift, NULL);
        if (!alone)
            continue;
        n_alone++;
        report(t, "selector", texts[i], "too few devices meet this selector", alone,
               arena_printf(t->gang->arena, "without the selector %s", texts[i]));
    }
    if (n_alone == 0)
        for (size_t i = 0; i < n && i < MAX_NAMED; i++)
            report(t, "selector", texts[i], "too few devices meet these selectors together", json_incref(nodes),
                   i ? arena_printf(t->gang->arena, "and without %s", texts[i])
                     : arena_printf(t->gang->arena, "without the selector %s", texts[i]));
    json_decref(nodes);
}

/* ---- taints ---- */

static void collect_taint_keys(struct gang *gang, struct buf *out)
{
    for (uint32_t slot = 0; slot < snapshot_pool_slots(gang->snapshot) && out->len < 200; slot++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, slot);

        for (size_t d = 0; pool && d < pool->n_devices; d++) {
            const struct pool_device *device = &pool->devices[d];
            const struct taint *lists[2] = {device->device->taints, device->rule_taints};
            size_t counts[2] = {device->device->n_taints, device->n_rule_taints};

            for (size_t l = 0; l < 2; l++)
                for (size_t i = 0; i < counts[l]; i++)
                    if (!strstr(buf_str(out), lists[l][i].key) && out->len < 200)
                        buf_addf(out, "%s%s", out->len ? ", " : "", lists[l][i].key);
        }
    }
}

static void try_taints(struct trial *t)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    json_t *nodes;
    BUF keys = {0};

    collect_taint_keys(t->gang, &keys);
    if (keys.len == 0)
        return;
    lift.device_taints = true;
    nodes = fits_with(t, &lift, NULL);
    if (nodes)
        report(t, "taint", buf_str(&keys), "devices with a taint that the requests do not tolerate", nodes,
               arena_printf(t->gang->arena, "if its requests tolerated the device taint %s", buf_str(&keys)));
}

/* ---- rules of the pods ---- */

/* The nodes whose first obstacle is one of these, and its detail. */
static json_t *nodes_with(struct gang *gang, const enum node_obstacle *obstacles, size_t n, const char **out_detail)
{
    const uint32_t *slots;
    size_t n_slots;
    json_t *out = json_array();

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t k = 0; k < gang->n_kinds; k++)
        for (size_t i = 0; i < n_slots && json_array_size(out) < MAX_NODES; i++) {
            const struct node *node = snapshot_node(gang->snapshot, slots[i]);
            struct node_finding finding = node_admits(&gang->kinds[k].rules, node->info);

            for (size_t o = 0; o < n; o++)
                if (finding.obstacle == obstacles[o]) {
                    json_array_append_new(out, json_string(node->info->name));
                    *out_detail = finding.detail ? finding.detail : *out_detail;
                }
        }
    return out;
}

static void try_node_rule(struct trial *t, const struct gang_lift *lift, const enum node_obstacle *obstacles, size_t n,
                          const char *kind, const char *fallback, const char *detail, const char *hint)
{
    const char *name = fallback;
    json_t *nodes = nodes_with(t->gang, obstacles, n, &name), *used = NULL;

    if (json_array_size(nodes) > 0)
        used = fits_with(t, lift, NULL);
    if (used) {
        report(t, kind, name, detail, nodes,
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
    try_node_rule(t, &taints, closed, ARRAY_SIZE(closed), "taint", "unschedulable or not-ready",
                  "nodes that are unschedulable, not ready or tainted", "if its pods tolerated the state");
    try_node_rule(t, &selector, label, 1, "node", "nodeSelector", "the node selector leaves too few nodes",
                  "without the node selector");
    try_node_rule(t, &terms, affinity, 1, "node", "nodeAffinity", "the required node affinity leaves too few nodes",
                  "without the required node affinity");
    try_node_rule(t, &name, named, 1, "node", "nodeName", "the pods name one node", "without spec.nodeName");
}

/* ---- scarcities ---- */

static void try_resources(struct trial *t)
{
    for (size_t i = 0; i < t->gang->n_resources; i++) {
        struct gang_lift lift = GANG_LIFT_NONE;
        json_t *nodes;

        lift.resource = t->gang->resources[i];
        nodes = fits_with(t, &lift, NULL);
        if (nodes)
            report(t, "capacity", lift.resource, "the nodes have too little of this resource left", nodes,
                   arena_printf(t->gang->arena, "with more %s on node %s", lift.resource,
                                json_string_value(json_array_get(nodes, 0))));
    }
}

static void try_ports(struct trial *t)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    const char *port;
    json_t *nodes;

    if (t->gang->n_ports == 0)
        return;
    lift.ports = true;
    nodes = fits_with(t, &lift, NULL);
    port = arena_printf(t->gang->arena, "host port %lld", (long long)t->gang->ports[0]->port);
    if (nodes)
        report(t, "node", port, "only one pod per node can have a host port", nodes,
               arena_printf(t->gang->arena, "without %s", port));
}

/* Names of counters that devices consume, the overdrawn and empty ones before all. */
static void collect_counters(struct gang *gang, struct buf *out)
{
    for (uint32_t slot = 0; slot < snapshot_pool_slots(gang->snapshot) && out->len < 200; slot++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, slot);

        for (size_t d = 0; pool && d < pool->n_devices; d++)
            for (size_t s = 0; s < pool->devices[d].device->n_consumes; s++)
                for (size_t c = 0; c < pool->devices[d].device->consumes[s].n_counters; c++) {
                    const char *name = pool->devices[d].device->consumes[s].counters[c].name;

                    if (!strstr(buf_str(out), name) && out->len < 200)
                        buf_addf(out, "%s%s", out->len ? ", " : "", name);
                }
    }
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
    nodes = names.len ? fits_with(t, &counters, NULL) : NULL;
    if (nodes)
        report(t, "counters", buf_str(&names), "partitions share counters, and what is left of them is too little",
               nodes, arena_printf(t->gang->arena, "with more left of the shared counters (%s)", buf_str(&names)));
    for (size_t a = 0; a < t->gang->n_asks; a++)
        for (size_t i = 0; i < t->gang->asks[a].ask->n_capacity; i++)
            if (!strstr(buf_str(&asked), t->gang->asks[a].ask->capacity[i].key))
                buf_addf(&asked, "%s%s", asked.len ? ", " : "", t->gang->asks[a].ask->capacity[i].key);
    nodes = asked.len ? fits_with(t, &capacity, NULL) : NULL;
    if (nodes)
        report(t, "capacity", buf_str(&asked), "what is left of this capacity on each device is too little", nodes,
               arena_printf(t->gang->arena, "with more %s left on the devices", buf_str(&asked)));
}

/* ---- holders ---- */

struct holders {
    const struct cluster_claim *items[MAX_HOLDERS];
    size_t n;
};

static void add_holder(void *ctx, const struct cluster_claim *claim)
{
    struct holders *holders = ctx;

    if (holders->n < MAX_HOLDERS && claim->n_held > 0)
        holders->items[holders->n++] = claim;
}

static void try_holders(struct trial *t)
{
    struct holders holders = {.n = 0};

    snapshot_each_claim(t->gang->snapshot, add_holder, &holders);
    for (size_t i = 0; i < holders.n; i++) {
        const struct cluster_claim *claim = holders.items[i];
        struct ledger *ledger = ledger_new(t->gang->snapshot);
        const char *name = arena_printf(t->gang->arena, "%s/%s", claim->ns ? claim->ns : "", claim->name);
        json_t *nodes;

        ledger_give_back(ledger, claim);
        nodes = fits_with(t, NULL, ledger);
        if (nodes)
            report(t, "devices", name, claim->job ? claim->job : "holds devices that the gang could use", nodes,
                   arena_printf(t->gang->arena, "when claim %s ends", name));
        ledger_free(ledger);
    }
}

/* ---- the whole ---- */

const char *gang_what_if(struct gang *gang, json_t *blocking, json_t *hints)
{
    struct trial t = {.gang = gang, .blocking = blocking, .hints = hints};
    struct arena_mark mark = arena_mark(&gang->work);
    const char *phrase = NULL;

    try_constraints(&t);
    try_nodes(&t);
    try_taints(&t);
    try_ports(&t);
    try_resources(&t);
    try_amounts(&t);
    try_selectors(&t);
    try_holders(&t);
    if (t.names.len)
        phrase = arena_strdup(gang->arena, buf_str(&t.names));
    buf_release(&t.names);
    arena_rewind(&gang->work, mark);
    return phrase;
}
