/* A small random cluster. All that queued can be asked for is somewhere in it: models and domains of GPUs, a GPU that
 * can be cut in parts, cards that are shared, devices that belong to no node, taints, few pods, little cpu. */
#include "test/simulation/story.h"

#include <stdio.h>
#include <stdlib.h>

static const char classes[] = "{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n"
#define CLASS(name, type)                                                                                              \
    "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: " name                                  \
    "}, spec: {selectors: [{cel: {expression: 'device.driver == \"" type ".sim\" && device.attributes[\"" type         \
    ".sim\"].type == \"" name "\"'}}]}}\n"
    CLASS("gpu", "gpu") CLASS("mig", "gpu") CLASS("nic", "nic") CLASS("link", "link");

static void add_node(struct story_node *node, struct rng *rng)
{
    BUF text = {0};

    buf_addf(&text,
             "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"%s\", \"labels\": {\"zone\": "
             "\"z%zu\", \"kubernetes.io/hostname\": \"%s\"}}, \"spec\": {%s}, \"status\": {\"allocatable\": {\"cpu\": "
             "\"%zu\", \"memory\": \"64Gi\", \"pods\": \"%zu\"}, \"conditions\": [{\"type\": \"Ready\", \"status\": "
             "\"True\"}]}}",
             node->name, pick(rng, 2), node->name,
             one_in(rng, 6) ? "\"taints\": [{\"key\": \"dedicated\", \"value\": \"x\", \"effect\": \"NoSchedule\"}]"
                            : "",
             4 + pick(rng, 12), 3 + pick(rng, 15));
    node->node = buf_take(&text);
}

static void add_gpu(struct buf *text, const struct story_cluster *cluster, const struct story_node *node, size_t i,
                    bool is_a, struct rng *rng)
{
    buf_addf(text,
             "%s{\"name\": \"gpu-%zu\", \"attributes\": {\"type\": {\"string\": \"gpu\"}, \"model\": {\"string\": "
             "\"%s\"}, \"domain\": {\"string\": \"d%zu\"}",
             i ? ", " : "", i, is_a ? "A" : "B", pick(rng, 3));
    if (cluster->has_uuids)
        buf_addf(text, ", \"uuid\": {\"string\": \"%s-%zu\"}, \"index\": {\"int\": %zu}", node->name, i, i);
    buf_addf(text, "}, \"capacity\": {\"memory\": {\"value\": \"%s\"}}%s}", is_a ? "80Gi" : "40Gi",
             one_in(rng, 12) ? ", \"taints\": [{\"key\": \"sick\", \"effect\": \"NoSchedule\"}]" : "");
}

static void add_gpus(const struct story_cluster *cluster, struct story_node *node, struct rng *rng)
{
    bool is_mixed = one_in(rng, 3), is_a = one_in(rng, 2);
    BUF text = {0};

    node->n_gpus = 1 + pick(rng, 5);
    buf_addf(&text,
             "{\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceSlice\", \"metadata\": {\"name\": "
             "\"%s-gpus\"}, \"spec\": {\"driver\": \"gpu.sim\", \"nodeName\": \"%s\", \"pool\": {\"name\": \"%s\", "
             "\"generation\": 1, \"resourceSliceCount\": 1}, \"devices\": [",
             node->name, node->name, node->name);
    for (size_t i = 0; i < node->n_gpus; i++)
        add_gpu(&text, cluster, node, i, is_mixed ? one_in(rng, 2) : is_a, rng);
    buf_adds(&text, "]}}");
    node->slice = buf_take(&text);
}

/* One GPU of four slices: whole, in halves, in quarters. */
static void add_migs(struct buf *yaml, struct story_node *node)
{
    static const struct {
        const char *name, *type;
        int first, n;
    } parts[] = {{"gpu-0", "gpu", 0, 4},     {"half-0", "mig", 0, 2},    {"half-1", "mig", 2, 2},
                 {"quarter-0", "mig", 0, 1}, {"quarter-1", "mig", 1, 1}, {"quarter-2", "mig", 2, 1},
                 {"quarter-3", "mig", 3, 1}};

    node->n_migs = sizeof(parts) / sizeof(parts[0]);
    buf_addf(yaml,
             "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s-0-counters}, spec: "
             "{driver: gpu.sim, nodeName: %s, pool: {name: %s-cut, generation: 1, resourceSliceCount: 2}, "
             "sharedCounters: [{name: c, counters: {s0: {value: '1'}, s1: {value: '1'}, s2: {value: '1'}, s3: {value: "
             "'1'}}}]}}\n"
             "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s-1-parts}, spec: {driver: "
             "gpu.sim, nodeName: %s, pool: {name: %s-cut, generation: 1, resourceSliceCount: 2}, devices: [",
             node->name, node->name, node->name, node->name, node->name, node->name);
    for (size_t i = 0; i < node->n_migs; i++) {
        buf_addf(yaml,
                 "%s{name: %s, attributes: {type: {string: %s}, model: {string: P}, domain: {string: d0}, uuid: "
                 "{string: %s-%s}}, capacity: {memory: {value: %dGi}}, consumesCounters: [{counterSet: c, counters: {",
                 i ? ", " : "", parts[i].name, parts[i].type, node->name, parts[i].name, parts[i].n * 20);
        for (int s = parts[i].first; s < parts[i].first + parts[i].n; s++)
            buf_addf(yaml, "%ss%d: {value: '1'}", s > parts[i].first ? ", " : "", s);
        buf_adds(yaml, "}}]}");
    }
    buf_adds(yaml, "]}}\n");
}

static void add_nics(struct buf *yaml, struct story_node *node, struct rng *rng)
{
    node->n_nics = 1 + pick(rng, 2);
    buf_addf(yaml,
             "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s-nics}, spec: {driver: "
             "nic.sim, nodeName: %s, pool: {name: %s, generation: 1, resourceSliceCount: 1}, devices: [",
             node->name, node->name, node->name);
    for (size_t i = 0; i < node->n_nics; i++)
        buf_addf(yaml,
                 "%s{name: nic-%zu, allowMultipleAllocations: true, attributes: {type: {string: nic}, uuid: {string: "
                 "%s-nic-%zu}}, capacity: {bandwidth: {value: '100'}}}",
                 i ? ", " : "", i, node->name, i);
    buf_adds(yaml, "]}}\n");
}

static void add_links(struct buf *yaml, struct story_cluster *cluster, struct rng *rng)
{
    cluster->n_links = 1 + pick(rng, 3);
    buf_adds(yaml, "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: links}, spec: {driver: "
                   "link.sim, allNodes: true, pool: {name: fabric, generation: 1, resourceSliceCount: 1}, devices: [");
    for (size_t i = 0; i < cluster->n_links; i++)
        buf_addf(yaml, "%s{name: link-%zu, attributes: {type: {string: link}, uuid: {string: link-%zu}}}",
                 i ? ", " : "", i, i);
    buf_adds(yaml, "]}}\n");
}

void cluster_make(struct story_cluster *cluster, struct rng *rng)
{
    BUF yaml = {0};

    *cluster = (struct story_cluster){.has_uuids = !one_in(rng, 4)};
    buf_adds(&yaml, classes);
    cluster->n_nodes = 2 + pick(rng, STORY_MAX_NODES - 1);
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        struct story_node *node = &cluster->nodes[i];

        snprintf(node->name, sizeof(node->name), "n%zu", i);
        add_node(node, rng);
        buf_addf(&yaml, "---\n%s\n", node->node);
        if (i == 0 || !one_in(rng, 5)) {
            add_gpus(cluster, node, rng);
            buf_addf(&yaml, "---\n%s\n", node->slice);
        }
        if (one_in(rng, 4)) {
            add_migs(&yaml, node);
            cluster->has_migs = true;
        }
        if (one_in(rng, 3)) {
            add_nics(&yaml, node, rng);
            cluster->has_nics = true;
        }
    }
    if (one_in(rng, 3))
        add_links(&yaml, cluster, rng);
    cluster->yaml = buf_take(&yaml);
}

void cluster_release(struct story_cluster *cluster)
{
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        free(cluster->nodes[i].node);
        free(cluster->nodes[i].slice);
    }
    free(cluster->yaml);
}

char *cluster_pick_device(const struct story_cluster *cluster, struct rng *rng)
{
    const struct story_node *node = &cluster->nodes[pick(rng, cluster->n_nodes)];
    BUF text = {0};

    if (node->n_nics && one_in(rng, 4))
        buf_addf(&text, "\"driver\": \"nic.sim\", \"pool\": \"%s\", \"device\": \"nic-%zu\"", node->name,
                 pick(rng, node->n_nics));
    else if (node->n_migs && one_in(rng, 3))
        buf_addf(&text, "\"driver\": \"gpu.sim\", \"pool\": \"%s-cut\", \"device\": \"half-%zu\"", node->name,
                 pick(rng, 2));
    else
        buf_addf(&text, "\"driver\": \"gpu.sim\", \"pool\": \"%s\", \"device\": \"gpu-%zu\"", node->name,
                 pick(rng, node->n_gpus ? node->n_gpus : 1));
    return buf_take(&text);
}
