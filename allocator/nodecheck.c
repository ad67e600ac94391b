#include "allocator/nodecheck.h"

#include <string.h>

#include "allocator/internal.h"
#include "allocator/nodefit.h"

#include "allocator/base/banned.h"

struct pod_check {
    const struct snapshot *snapshot;
    const json_t *spec;
    struct pod_rules rules;
    bool *is_mapped; /* per resource of the demand: a device class can serve it */
    bool any_mapped;
};

static void find_mapped(struct pod_check *check, struct arena *arena)
{
    const struct pod_demand *demand = &check->rules.demand;

    check->is_mapped = arena_array(arena, bool, demand->n_resources + 1);
    if (!feature_on(snapshot_features(check->snapshot), FEATURE_EXTENDED_RESOURCES))
        return;
    for (size_t i = 0; i < demand->n_resources; i++) {
        check->is_mapped[i] = quantity_sign(&demand->resources[i].amount) > 0 &&
                              extended_class(check->snapshot, demand->resources[i].name) != NULL;
        check->any_mapped |= check->is_mapped[i];
    }
}

int pod_check_new(const struct snapshot *snapshot, const json_t *pod, struct arena *arena, struct pod_check **out,
                  struct error *err)
{
    struct pod_check *check = arena_new(arena, struct pod_check);

    check->snapshot = snapshot;
    check->spec = json_object_get(pod, "spec");
    if (pod_rules_parse(pod, snapshot_symbols(snapshot), arena, &check->rules, err) < 0)
        return -1;
    find_mapped(check, arena);
    *out = check;
    return 0;
}

/* ---- the filters ---- */

static const char *finding_text(const struct node_finding *finding, struct arena *arena)
{
    static const char *const texts[] = {
        [NODE_OTHER_NAME] = "node(s) didn't match the requested node name",
        [NODE_UNSCHEDULABLE] = "node(s) were unschedulable",
        [NODE_NOT_READY] = "node(s) were not ready",
        [NODE_SELECTOR] = "node(s) didn't match Pod's node affinity/selector",
        [NODE_AFFINITY] = "node(s) didn't match Pod's node affinity/selector",
    };

    if (finding->obstacle == NODE_TAINTED)
        return arena_printf(arena, "node(s) had untolerated taint {%s: %s}", finding->taint->key,
                            finding->taint->value);
    return texts[finding->obstacle];
}

/* Devices serve what a class stands behind, but only where no device plugin does: not even when the plugin is full. */
static bool is_served(const struct pod_check *check, const struct node *node, size_t resource)
{
    return check->is_mapped[resource] &&
           node_allocatable(node->info, check->rules.demand.resources[resource].name) <= 0;
}

static const char *resource_refusal(const struct pod_check *check, const struct node *node, struct arena *arena)
{
    const struct pod_demand *demand = &check->rules.demand;

    for (size_t i = 0; i < demand->n_resources; i++) {
        const char *name = demand->resources[i].name;
        int64_t ask = scheduler_units(name, &demand->resources[i].amount);

        if (is_served(check, node, i) || ask <= 0 ||
            ask <= node_allocatable(node->info, name) - node_used(&node->use, name))
            continue;
        return strcmp(name, "pods") == 0 ? "Too many pods" : arena_printf(arena, "Insufficient %s", name);
    }
    for (size_t i = 0; i < demand->n_ports; i++)
        for (size_t k = 0; k < node->use.n_ports; k++)
            if (host_ports_clash(&demand->ports[i], &node->use.ports[k]))
                return "node(s) didn't have free ports for the requested pod ports";
    return NULL;
}

const char *pod_check_refusal(const struct pod_check *check, const char *name, struct arena *arena)
{
    const struct node *node = snapshot_find_node(check->snapshot, name);
    struct node_finding finding;

    if (!node)
        return "node(s) were not known";
    finding = node_admits(&check->rules, node->info);
    if (finding.obstacle != NODE_ADMITS)
        return finding_text(&finding, arena);
    return resource_refusal(check, node, arena);
}

/* ---- amounts ---- */

int pod_amounts_read(const json_t *pod, struct pod_amounts *out, struct error *err)
{
    struct arena arena = {0};
    struct pod_demand demand;
    int failed = pod_demand_parse(json_object_get(pod, "spec"), NULL, &arena, &demand, err);

    *out = (struct pod_amounts){0};
    for (size_t i = 0; failed == 0 && i < demand.n_resources; i++) {
        int64_t amount = scheduler_units(demand.resources[i].name, &demand.resources[i].amount);

        if (strcmp(demand.resources[i].name, "cpu") == 0)
            out->cpu_milli = amount;
        else if (strcmp(demand.resources[i].name, "memory") == 0)
            out->memory_bytes = amount;
    }
    arena_release(&arena);
    return failed;
}

/* ---- claims ---- */

bool allocation_reaches(const struct snapshot *snapshot, const char *name, const json_t *allocation,
                        struct arena *arena)
{
    const json_t *selector = json_object_get(allocation, "nodeSelector");
    const struct node *node = snapshot_find_node(snapshot, name);

    if (!selector || json_is_null(selector))
        return true;
    return node && node_selector_matches(node_selector_parse(selector, arena), node->info);
}

/* ---- extended resources ---- */

static struct claim *extended_of(const struct pod_check *check, const char *name, struct arena *arena,
                                 const struct extended_mapping **out_mappings, size_t *out_n)
{
    const struct node *node = check->any_mapped ? snapshot_find_node(check->snapshot, name) : NULL;
    struct claim *claim = NULL;

    if (node)
        extended_claim(check->snapshot, node, check->spec, arena, &claim, out_mappings, out_n);
    return claim;
}

struct claim *pod_check_extended(const struct pod_check *check, const char *node, struct arena *arena)
{
    const struct extended_mapping *mappings;
    size_t n;

    return extended_of(check, node, arena, &mappings, &n);
}

static json_t *spec_json(const struct claim *claim)
{
    json_t *requests = json_array();

    for (size_t i = 0; i < claim->n_requests; i++) {
        const struct claim_ask *ask = &claim->requests[i].asks[0];

        json_array_append_new(requests, json_pack("{s:s, s:{s:s, s:s, s:I}}", "name", ask->name, "exactly",
                                                  "deviceClassName", ask->class_name, "allocationMode", ask->mode_text,
                                                  "count", (json_int_t)ask->count));
    }
    return json_pack("{s:{s:o}}", "devices", "requests", requests);
}

static const json_t *container_at(const json_t *spec, size_t index)
{
    const json_t *first = json_object_get(spec, "initContainers");

    if (index < json_array_size(first))
        return json_array_get(first, index);
    return json_array_get(json_object_get(spec, "containers"), index - json_array_size(first));
}

static json_t *mappings_json(const json_t *spec, const struct extended_mapping *mappings, size_t n)
{
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(out, json_pack("{s:O*, s:s, s:s}", "containerName",
                                             json_object_get(container_at(spec, mappings[i].container), "name"),
                                             "resourceName", mappings[i].resource, "requestName", mappings[i].request));
    return out;
}

bool pod_check_extended_json(const struct pod_check *check, const char *node, json_t **out_spec, json_t **out_mappings)
{
    struct arena arena = {0};
    const struct extended_mapping *mappings;
    size_t n;
    const struct claim *claim = extended_of(check, node, &arena, &mappings, &n);

    if (claim) {
        *out_spec = spec_json(claim);
        *out_mappings = mappings_json(check->spec, mappings, n);
    }
    arena_release(&arena);
    return claim != NULL;
}
