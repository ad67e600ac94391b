#include "test/allocator/gang/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

/* ---- drawing ---- */

static int upto(struct rng *rng, int n)
{
    return (int)rng_below(rng, (uint64_t)n);
}

static bool once_in(struct rng *rng, int n)
{
    return upto(rng, n) == 0;
}

static struct world_ask random_ask(struct rng *rng, bool shares)
{
    struct world_ask ask = {.model = upto(rng, 3) - 1, .count = 1 + once_in(rng, 5)};

    ask.all = once_in(rng, 12);
    ask.tolerates = once_in(rng, 4);
    ask.memory = shares ? 1 + upto(rng, 3) : once_in(rng, 8) ? 2 : 0;
    return ask;
}

static struct world_claim random_claim(struct rng *rng, bool shares)
{
    struct world_claim claim = {.n_requests = 1 + once_in(rng, 4), .rule_request = -1};

    for (int r = 0; r < claim.n_requests; r++) {
        claim.requests[r].n_alts = 1 + once_in(rng, 3);
        for (int a = 0; a < claim.requests[r].n_alts; a++)
            claim.requests[r].alts[a] = random_ask(rng, shares);
    }
    if (once_in(rng, 3))
        claim.rule = (enum world_rule)(1 + upto(rng, 3));
    if (claim.n_requests > 1 && once_in(rng, 4))
        claim.rule_request = upto(rng, 2);
    return claim;
}

static void random_nodes(struct world *w, struct rng *rng)
{
    w->n_nodes = 1 + upto(rng, 3);
    for (int n = 0; n < w->n_nodes; n++)
        w->nodes[n] = (struct world_node){.cpu = 3 + upto(rng, 7),
                                          .zone = upto(rng, 2),
                                          .cordoned = once_in(rng, 12),
                                          .counters = {2 + upto(rng, 4), 2 + upto(rng, 4)}};
}

static void random_devices(struct world *w, struct rng *rng, bool shares, bool parts)
{
    for (int n = 0; n < w->n_nodes; n++)
        for (int d = 1 + upto(rng, 6); d > 0 && w->n_devices < MAX_DEVICES - 2; d--) {
            struct world_device *device = &w->devices[w->n_devices++];

            *device = (struct world_device){.node = n, .zone = -1, .model = upto(rng, 2), .numa = upto(rng, 2)};
            device->memory = 2 + upto(rng, 4);
            device->used = once_in(rng, 6);
            device->tainted = once_in(rng, 8);
            device->multi = shares && !once_in(rng, 3);
            device->used = device->used && !device->multi;
            device->set = upto(rng, N_SETS);
            device->takes = parts && !device->multi ? 1 + upto(rng, 3) : 0;
        }
    for (int d = once_in(rng, 3) ? 1 + upto(rng, 2) : 0; d > 0; d--)
        w->devices[w->n_devices++] = (struct world_device){.node = -1,
                                                           .zone = upto(rng, 3) - 1,
                                                           .model = upto(rng, 2),
                                                           .numa = upto(rng, 2),
                                                           .memory = 2 + upto(rng, 4)};
}

struct world world_random(struct rng *rng)
{
    struct world w = {0};
    bool shares = once_in(rng, 4), parts = once_in(rng, 3);
    int left = MAX_MEMBERS - 1;

    random_nodes(&w, rng);
    random_devices(&w, rng, shares, parts);
    w.n_groups = 1 + upto(rng, MAX_GROUPS + 1) % MAX_GROUPS;
    for (int g = 0; g < w.n_groups; g++) {
        struct world_group *group = &w.groups[g];

        group->members = 1 + upto(rng, 2) + once_in(rng, 3);
        group->members = group->members < left ? group->members : left > 0 ? left : 1;
        left -= group->members;
        group->cpu = 1 + once_in(rng, 3);
        group->port = once_in(rng, 8) ? 8080 : 0;
        group->n_claims = 1 + once_in(rng, 5);
        for (int c = 0; c < group->n_claims; c++)
            group->claims[c] = random_claim(rng, shares);
    }
    w.has_shared = once_in(rng, 5);
    if (w.has_shared) {
        w.shared = random_claim(rng, shares);
        for (int r = 0; r < MAX_REQUESTS;
             r++) /* what All gives a claim that several nodes reach depends on the order */
            for (int a = 0; a < MAX_ALTS; a++)
                w.shared.requests[r].alts[a].all = false;
        for (int g = 0; g < w.n_groups; g++)
            w.groups[g].shares = g == 0 || once_in(rng, 2);
    }
    if (once_in(rng, 6))
        w.gang_rule = once_in(rng, 2) ? RULE_MATCH_MODEL : RULE_DISTINCT_NUMA;
    w.same_zone = once_in(rng, 8);
    w.same_alternative = once_in(rng, 5);
    return w;
}

/* ---- as objects: the cluster ---- */

static json_t *device_json(const struct world *w, int index)
{
    const struct world_device *d = &w->devices[index];
    char name[16], model[8];
    json_t *out;

    snprintf(name, sizeof(name), "d%d", index);
    snprintf(model, sizeof(model), "m%d", d->model);
    out = json_pack("{s:s, s:{s:{s:i}, s:{s:s}, s:{s:i}}, s:{s:{s:o}}}", "name", name, "attributes", "index", "int",
                    index, "model", "string", model, "numa", "int", d->numa, "capacity", "memory", "value",
                    json_sprintf("%dGi", d->memory));
    if (w->alike)
        json_object_del(json_object_get(out, "attributes"), "index");
    if (d->multi)
        json_object_set_new(out, "allowMultipleAllocations", json_true());
    if (d->tainted)
        json_object_set_new(out, "taints", json_pack("[{s:s, s:s}]", "key", "x.example/bad", "effect", "NoSchedule"));
    if (d->takes)
        json_object_set_new(out, "consumesCounters",
                            json_pack("[{s:o, s:{s:{s:o}}}]", "counterSet", json_sprintf("set-%d", d->set), "counters",
                                      "units", "value", json_sprintf("%d", d->takes)));
    return out;
}

static json_t *slice_json(const char *name, const char *pool, int count, json_t *more)
{
    json_t *spec = json_pack("{s:s, s:{s:s, s:i, s:i}}", "driver", "d.example", "pool", "name", pool, "generation", 1,
                             "resourceSliceCount", count);

    json_object_update(spec, more);
    json_decref(more);
    return json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceSlice",
                     "metadata", "name", name, "spec", spec);
}

static void add_object(struct snapshot_builder *builder, json_t *object)
{
    struct error err = {0};

    if (snapshot_builder_put(builder, object, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.field, err.text);
        abort();
    }
    json_decref(object);
}

void world_put_node(struct snapshot_builder *builder, const struct world *w, int n)
{
    json_t *devices = json_array(), *sets = json_array(), *node;
    char name[16], slice[32];
    bool parts = false;

    snprintf(name, sizeof(name), "n%d", n);
    node = json_pack("{s:s, s:s, s:{s:s, s:{s:o}}, s:{}, s:{s:{s:o, s:s, s:s}, s:[{s:s, s:s}]}}", "apiVersion", "v1",
                     "kind", "Node", "metadata", "name", name, "labels", "zone", json_sprintf("z%d", w->nodes[n].zone),
                     "spec", "status", "allocatable", "cpu", json_sprintf("%d", w->nodes[n].cpu), "memory", "64Gi",
                     "pods", "20", "conditions", "type", "Ready", "status", "True");
    if (w->nodes[n].cordoned)
        json_object_set_new(json_object_get(node, "spec"), "unschedulable", json_true());
    add_object(builder, node);
    for (int d = 0; d < w->n_devices; d++) {
        if (w->devices[d].node != n)
            continue;
        json_array_append_new(devices, device_json(w, d));
        parts = parts || w->devices[d].takes;
    }
    snprintf(slice, sizeof(slice), "n%d-devices", n);
    add_object(builder,
               slice_json(slice, name, 1 + parts, json_pack("{s:s, s:o}", "nodeName", name, "devices", devices)));
    for (int s = 0; s < N_SETS; s++)
        json_array_append_new(sets, json_pack("{s:o, s:{s:{s:o}}}", "name", json_sprintf("set-%d", s), "counters",
                                              "units", "value", json_sprintf("%d", w->nodes[n].counters[s])));
    snprintf(slice, sizeof(slice), "n%d-counters", n);
    if (parts)
        add_object(builder,
                   slice_json(slice, name, 2, json_pack("{s:s, s:O}", "nodeName", name, "sharedCounters", sets)));
    json_decref(sets);
}

static void add_net_device(struct snapshot_builder *builder, const struct world *w, int d)
{
    json_t *where = json_object();
    char name[16];

    snprintf(name, sizeof(name), "net%d", d);
    if (w->devices[d].zone < 0)
        json_object_set_new(where, "allNodes", json_true());
    else
        json_object_set_new(where, "nodeSelector",
                            json_pack("{s:[{s:[{s:s, s:s, s:[o]}]}]}", "nodeSelectorTerms", "matchExpressions", "key",
                                      "zone", "operator", "In", "values", json_sprintf("z%d", w->devices[d].zone)));
    json_object_set_new(where, "devices", json_pack("[o]", device_json(w, d)));
    add_object(builder, slice_json(name, name, 1, where));
}

static void add_holder(struct snapshot_builder *builder, const struct world *w, int d)
{
    char name[16], device[16], pool[16];

    snprintf(name, sizeof(name), "held%d", d);
    snprintf(device, sizeof(device), "d%d", d);
    snprintf(pool, sizeof(pool), w->devices[d].node < 0 ? "net%d" : "n%d",
             w->devices[d].node < 0 ? d : w->devices[d].node);
    add_object(builder,
               json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:[{s:s, s:{s:s}}]}}, s:{s:{s:{s:[{s:s, s:s, s:s, s:s}]}}}}",
                         "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata", "name", name,
                         "namespace", "other", "spec", "devices", "requests", "name", "r", "exactly", "deviceClassName",
                         "any", "status", "allocation", "devices", "results", "request", "r", "driver", "d.example",
                         "pool", pool, "device", device));
}

struct snapshot_builder *world_builder(const struct world *w)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, false);

    add_object(builder, json_pack("{s:s, s:s, s:{s:s}, s:{s:[{s:{s:s}}]}}", "apiVersion", "resource.k8s.io/v1", "kind",
                                  "DeviceClass", "metadata", "name", "any", "spec", "selectors", "cel", "expression",
                                  "device.driver == \"d.example\""));
    for (int n = 0; n < w->n_nodes; n++)
        world_put_node(builder, w, n);
    for (int d = 0; d < w->n_devices; d++) {
        if (w->devices[d].node < 0)
            add_net_device(builder, w, d);
        if (w->devices[d].used)
            add_holder(builder, w, d);
    }
    return builder;
}

struct snapshot *world_snapshot(const struct world *w)
{
    struct snapshot_builder *builder = world_builder(w);
    struct snapshot *snapshot = snapshot_builder_build(builder);

    snapshot_builder_free(builder);
    return snapshot;
}

/* ---- as objects: the gang ---- */

static json_t *ask_json(const struct world_ask *ask, const char *name)
{
    json_t *out = json_pack("{s:s}", "deviceClassName", "any");

    if (name)
        json_object_set_new(out, "name", json_string(name));
    if (ask->model >= 0)
        json_object_set_new(out, "selectors",
                            json_pack("[{s:{s:o}}]", "cel", "expression",
                                      json_sprintf("device.attributes[\"d.example\"].model == \"m%d\"", ask->model)));
    json_object_set_new(out, "allocationMode", json_string(ask->all ? "All" : "ExactCount"));
    if (!ask->all)
        json_object_set_new(out, "count", json_integer(ask->count));
    if (ask->tolerates)
        json_object_set_new(out, "tolerations",
                            json_pack("[{s:s, s:s}]", "key", "x.example/bad", "operator", "Exists"));
    if (ask->memory)
        json_object_set_new(out, "capacity",
                            json_pack("{s:{s:o}}", "requests", "memory", json_sprintf("%dGi", ask->memory)));
    return out;
}

static json_t *request_json(const struct world_request *request, int index)
{
    static const char *const subs[] = {"first", "second"};
    json_t *out = json_pack("{s:o}", "name", json_sprintf("r%d", index)), *list;

    if (request->n_alts == 1) {
        json_object_set_new(out, "exactly", ask_json(&request->alts[0], NULL));
        return out;
    }
    list = json_array();
    for (int a = 0; a < request->n_alts; a++)
        json_array_append_new(list, ask_json(&request->alts[a], subs[a]));
    json_object_set_new(out, "firstAvailable", list);
    return out;
}

static json_t *claim_spec_json(const struct world_claim *claim)
{
    static const char *const keys[] = {NULL, "matchAttribute", "distinctAttribute", "matchAttribute"};
    static const char *const names[] = {NULL, "d.example/numa", "d.example/numa", "d.example/model"};
    json_t *requests = json_array(), *out;

    for (int r = 0; r < claim->n_requests; r++)
        json_array_append_new(requests, request_json(&claim->requests[r], r));
    out = json_pack("{s:o}", "requests", requests);
    if (claim->rule != RULE_NONE) {
        json_t *constraint = json_pack("{s:s}", keys[claim->rule], names[claim->rule]);

        if (claim->rule_request >= 0)
            json_object_set_new(constraint, "requests", json_pack("[o]", json_sprintf("r%d", claim->rule_request)));
        json_object_set_new(out, "constraints", json_pack("[o]", constraint));
    }
    return json_pack("{s:o}", "devices", out);
}

static json_t *pod_json(const struct world_group *group)
{
    json_t *container = json_pack("{s:s, s:s, s:{s:{s:o}}}", "name", "main", "image", "i", "resources", "requests",
                                  "cpu", json_sprintf("%d", group->cpu));

    if (group->port)
        json_object_set_new(container, "ports", json_pack("[{s:i, s:i}]", "containerPort", 1, "hostPort", group->port));
    return json_pack("{s:{}, s:{s:[o]}}", "metadata", "spec", "containers", container);
}

static void fill_group(struct world_question *q, const struct world *w, int g, struct gang_group *out)
{
    const struct world_group *group = &w->groups[g];
    struct gang_claim *claims = arena_array(&q->arena, struct gang_claim, MAX_CLAIMS + 1);
    json_t *pod = pod_json(group);

    json_array_append_new(q->objects, pod);
    *out = (struct gang_group){
        .name = arena_printf(&q->arena, "g%d", g), .n_members = (size_t)group->members, .pod = pod, .claims = claims};
    for (int c = 0; c < group->n_claims; c++) {
        json_t *object = json_pack("{s:s, s:s, s:{s:o}, s:{s:o}}", "apiVersion", "resource.k8s.io/v1", "kind",
                                   "ResourceClaimTemplate", "metadata", "name", json_sprintf("t%d-%d", g, c), "spec",
                                   "spec", claim_spec_json(&group->claims[c]));

        json_array_append_new(q->objects, object);
        claims[out->n_claims++] = (struct gang_claim){.pod_claim = arena_printf(&q->arena, "c%d", c),
                                                      .source = GANG_CLAIM_OWN,
                                                      .object = object,
                                                      .name = arena_printf(&q->arena, "t%d-%d", g, c)};
    }
    if (group->shares)
        claims[out->n_claims++] =
            (struct gang_claim){.pod_claim = "shared", .source = GANG_CLAIM_SHARED, .shared = 0, .name = "shared"};
}

static void fill_constraints(struct world_question *q, const struct world *w)
{
    struct gang_constraint *constraints = arena_array(&q->arena, struct gang_constraint, 2);

    if (w->gang_rule == RULE_MATCH_MODEL)
        constraints[q->spec.n_constraints++] =
            (struct gang_constraint){.kind = GANG_MATCH_ATTRIBUTE, .key = "d.example/model"};
    if (w->gang_rule == RULE_DISTINCT_NUMA)
        constraints[q->spec.n_constraints++] =
            (struct gang_constraint){.kind = GANG_DISTINCT_ATTRIBUTE, .key = "d.example/numa"};
    if (w->same_zone)
        constraints[q->spec.n_constraints++] = (struct gang_constraint){.kind = GANG_MATCH_NODE_LABEL, .key = "zone"};
    q->spec.constraints = constraints;
}

void world_question_init(struct world_question *q, const struct world *w)
{
    struct gang_group *groups;

    *q = (struct world_question){.objects = json_array()};
    arena_init(&q->arena);
    groups = arena_array(&q->arena, struct gang_group, (size_t)w->n_groups);
    for (int g = 0; g < w->n_groups; g++)
        fill_group(q, w, g, &groups[g]);
    q->spec = (struct gang_spec){.ns = "lab",
                                 .groups = groups,
                                 .n_groups = (size_t)w->n_groups,
                                 .same_alternative = w->same_alternative,
                                 .is_brief = true};
    if (w->has_shared) {
        const json_t **shared = arena_new(&q->arena, const json_t *);
        json_t *object =
            json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                      "metadata", "name", "shared", "namespace", "lab", "spec", claim_spec_json(&w->shared));

        json_array_append_new(q->objects, object);
        *shared = object;
        q->spec.shared = shared;
        q->spec.n_shared = 1;
    }
    fill_constraints(q, w);
}

void world_question_release(struct world_question *q)
{
    json_decref(q->objects);
    arena_release(&q->arena);
}

/* ---- for people ---- */

static void print_claim(const struct world_claim *c)
{
    static const char *const rules[] = {"", " match numa", " distinct numa", " match model"};

    for (int r = 0; r < c->n_requests; r++) {
        printf(" r%d:", r);
        for (int a = 0; a < c->requests[r].n_alts; a++) {
            const struct world_ask *ask = &c->requests[r].alts[a];

            printf("%s[model %d %s%d%s mem %d]", a ? " else " : "", ask->model, ask->all ? "all " : "count ",
                   ask->count, ask->tolerates ? " tolerates" : "", ask->memory);
        }
    }
    printf("%s on %d\n", rules[c->rule], c->rule_request);
}

void world_print(const struct world *w)
{
    for (int n = 0; n < w->n_nodes; n++)
        printf("node n%d cpu %d zone %d%s counters %d %d\n", n, w->nodes[n].cpu, w->nodes[n].zone,
               w->nodes[n].cordoned ? " cordoned" : "", w->nodes[n].counters[0], w->nodes[n].counters[1]);
    for (int d = 0; d < w->n_devices; d++) {
        const struct world_device *dev = &w->devices[d];

        printf("device d%d node %d zone %d model %d numa %d mem %d%s%s%s", d, dev->node, dev->zone, dev->model,
               dev->numa, dev->memory, dev->used ? " used" : "", dev->tainted ? " tainted" : "",
               dev->multi ? " multi" : "");
        printf(dev->takes ? " takes %d of set %d\n" : "\n", dev->takes, dev->set);
    }
    for (int g = 0; g < w->n_groups; g++) {
        printf("group g%d members %d cpu %d port %d%s\n", g, w->groups[g].members, w->groups[g].cpu, w->groups[g].port,
               w->groups[g].shares ? " shares" : "");
        for (int c = 0; c < w->groups[g].n_claims; c++)
            print_claim(&w->groups[g].claims[c]);
    }
    if (w->has_shared)
        print_claim(&w->shared);
    printf("gang rule %d same zone %d same alternative %d\n", (int)w->gang_rule, w->same_zone, w->same_alternative);
}
