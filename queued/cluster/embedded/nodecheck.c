#include "queued/cluster/embedded/nodecheck.h"

#include <string.h>

#include "allocator/model.h"
#include "allocator/nodefit.h"
#include "allocator/pod.h"

#include "allocator/base/banned.h"

int pod_rules_read(const json_t *pod, const struct snapshot *snapshot, struct arena *arena, struct pod_rules **out,
                   struct error *err)
{
    *out = arena_new(arena, struct pod_rules);
    return pod_rules_parse(pod, snapshot_symbols(snapshot), arena, *out, err);
}

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

static const char *resource_refusal(const struct node *node, const struct pod_demand *demand, struct arena *arena)
{
    for (size_t i = 0; i < demand->n_resources; i++) {
        const char *name = demand->resources[i].name;
        int64_t ask = scheduler_units(name, &demand->resources[i].amount);

        if (ask <= 0 || ask <= node_allocatable(node->info, name) - node_used(&node->use, name))
            continue;
        return strcmp(name, "pods") == 0 ? "Too many pods" : arena_printf(arena, "Insufficient %s", name);
    }
    for (size_t i = 0; i < demand->n_ports; i++)
        for (size_t k = 0; k < node->use.n_ports; k++)
            if (host_ports_clash(&demand->ports[i], &node->use.ports[k]))
                return "node(s) didn't have free ports for the requested pod ports";
    return NULL;
}

const char *node_refusal(const struct snapshot *snapshot, const char *name, const struct pod_rules *rules,
                         struct arena *arena)
{
    const struct node *node = snapshot_find_node(snapshot, name);
    struct node_finding finding;

    if (!node)
        return "node(s) were not known";
    finding = node_admits(rules, node->info);
    if (finding.obstacle != NODE_ADMITS)
        return finding_text(&finding, arena);
    return resource_refusal(node, &rules->demand, arena);
}

bool allocation_reaches(const struct snapshot *snapshot, const char *name, const json_t *allocation,
                        struct arena *arena)
{
    const json_t *selector = json_object_get(allocation, "nodeSelector");
    const struct node *node = snapshot_find_node(snapshot, name);

    if (!selector || json_is_null(selector))
        return true;
    return node && node_selector_matches(node_selector_parse(selector, arena), node->info);
}
