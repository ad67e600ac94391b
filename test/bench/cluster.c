#include "test/bench/cluster.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/compiler.h"
#include "allocator/base/invariant.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define DRIVER          "gpu.example.com"
#define ATTRIBUTES      "device.attributes[\\\"" DRIVER "\\\"]"
#define DEVICES_PER_GPU 4

const char *const cluster_kinds[] = {"plain", "selector", "match", "firstAvailable", "counters", "capacity"};
const size_t n_cluster_kinds = ARRAY_SIZE(cluster_kinds);

static const struct {
    const char *profile, *memory, *slices;
} partitions[DEVICES_PER_GPU] = {
    {"7g.80gb", "80Gi", "7"}, {"3g.40gb", "40Gi", "3"}, {"3g.40gb", "40Gi", "3"}, {"1g.10gb", "10Gi", "1"}};

static bool is(const char *kind, const char *name)
{
    return strcmp(kind, name) == 0;
}

static json_t *parse(struct buf *text)
{
    json_error_t error;
    json_t *json = json_loads(buf_str(text), 0, &error);

    INVARIANT(json != NULL);
    buf_release(text);
    return json;
}

static void emit(struct buf *text, void (*put)(void *ctx, const json_t *object), void *ctx)
{
    json_t *json = parse(text);

    put(ctx, json);
    json_decref(json);
}

static void add_device(struct buf *b, const char *kind, size_t i, size_t j, size_t n_devices)
{
    bool hopper = i % 2 == 0;

    buf_addf(b, "%s{\"name\":\"gpu-%zu\",\"attributes\":{\"type\":{\"string\":\"gpu\"}", j ? "," : "", j);
    buf_addf(b, ",\"uuid\":{\"string\":\"GPU-%08zx-%04zx-4000-8000-%012zx\"}", i, j, i * 1000 + j);
    buf_addf(b, ",\"index\":{\"int\":%zu},\"minor\":{\"int\":%zu},\"brand\":{\"string\":\"Nvidia\"}", j, j);
    buf_addf(b, ",\"productName\":{\"string\":\"%s\"}", hopper ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-80GB");
    buf_addf(b, ",\"architecture\":{\"string\":\"%s\"}", hopper ? "Hopper" : "Ampere");
    buf_addf(b, ",\"cudaComputeCapability\":{\"version\":\"%s\"}", hopper ? "9.0.0" : "8.0.0");
    buf_adds(b, ",\"driverVersion\":{\"version\":\"570.86.15\"},\"cudaDriverVersion\":{\"version\":\"12.8.0\"}");
    buf_addf(b, ",\"numa\":{\"int\":%d}", j >= n_devices / 2);
    buf_addf(b, ",\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:%02zx\"}", 16 * (j / 2));
    if (is(kind, "counters"))
        buf_addf(b, ",\"profile\":{\"string\":\"%s\"}", partitions[j % DEVICES_PER_GPU].profile);
    buf_addf(b, "},\"capacity\":{\"memory\":{\"value\":\"%s\"",
             is(kind, "counters") ? partitions[j % DEVICES_PER_GPU].memory : "80Gi");
    if (is(kind, "capacity"))
        buf_adds(b, ",\"requestPolicy\":{\"default\":\"10Gi\",\"validRange\":{\"min\":\"10Gi\",\"step\":\"5Gi\"}}");
    buf_adds(b, "}}");
    if (is(kind, "capacity"))
        buf_adds(b, ",\"allowMultipleAllocations\":true");
    if (is(kind, "counters"))
        buf_addf(b,
                 ",\"consumesCounters\":[{\"counterSet\":\"gpu-%zu\",\"counters\":{\"memory\":{\"value\":\"%s\"},"
                 "\"slices\":{\"value\":\"%s\"}}}]",
                 j / DEVICES_PER_GPU, partitions[j % DEVICES_PER_GPU].memory, partitions[j % DEVICES_PER_GPU].slices);
    buf_adds(b, "}");
}

static void open_slice(struct buf *b, const char *kind, size_t i, const char *suffix)
{
    buf_addf(
        b,
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"node-%04zu-%s\"},"
        "\"spec\":{\"driver\":\"" DRIVER "\",\"nodeName\":\"node-%04zu\",\"pool\":{\"name\":\"node-%04zu\","
        "\"generation\":1,\"resourceSliceCount\":%d}",
        i, suffix, i, i, is(kind, "counters") ? 2 : 1);
}

static void write_slice(struct buf *b, const char *kind, size_t i, size_t n_devices)
{
    open_slice(b, kind, i, "gpu");
    buf_adds(b, ",\"devices\":[");
    for (size_t j = 0; j < n_devices; j++)
        add_device(b, kind, i, j, n_devices);
    buf_adds(b, "]}}");
}

static void write_counters(struct buf *b, const char *kind, size_t i, size_t n_devices)
{
    open_slice(b, kind, i, "counters");
    buf_adds(b, ",\"sharedCounters\":[");
    for (size_t k = 0; k < (n_devices + DEVICES_PER_GPU - 1) / DEVICES_PER_GPU; k++)
        buf_addf(b,
                 "%s{\"name\":\"gpu-%zu\",\"counters\":{\"memory\":{\"value\":\"80Gi\"},\"slices\":{\"value\":\"7\"}}}",
                 k ? "," : "", k);
    buf_adds(b, "]}}");
}

static void hold(struct buf *b, size_t *n, size_t i, size_t j)
{
    buf_addf(b, "%s{\"request\":\"held\",\"driver\":\"" DRIVER "\",\"pool\":\"node-%04zu\",\"device\":\"gpu-%zu\"",
             (*n)++ ? "," : "", i, j);
}

static void write_held(struct buf *b, const char *kind, size_t i, size_t n_devices)
{
    size_t n = 0;

    buf_addf(
        b,
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"held-node-%04zu\","
        "\"namespace\":\"default\"},\"spec\":{\"devices\":{}},\"status\":{\"allocation\":{\"devices\":{\"results\":[",
        i);
    for (size_t j = 0; j < n_devices; j++) {
        if (is(kind, "capacity")) {
            for (size_t k = 0; k < (i + j) % 4; k++) {
                hold(b, &n, i, j);
                buf_addf(b, ",\"shareID\":\"%08zx-%04zx-4000-8000-%012zx\",\"consumedCapacity\":{\"memory\":\"20Gi\"}}",
                         i, j, k);
            }
            continue;
        }
        if (is(kind, "counters") ? j % DEVICES_PER_GPU == 1 && (i + j / DEVICES_PER_GPU) % 3 == 0
                                 : (i * 7 + j * 3) % 5 < 2) {
            hold(b, &n, i, j);
            buf_adds(b, "}");
        }
    }
    buf_adds(b, "]}}}}");
}

static void emit_node(const char *kind, size_t i, size_t n_devices, void (*put)(void *ctx, const json_t *object),
                      void *ctx)
{
    struct buf b = {0};

    buf_addf(&b,
             "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%04zu\",\"labels\":{"
             "\"kubernetes.io/hostname\":\"node-%04zu\",\"topology.kubernetes.io/zone\":\"zone-%zu\"}}}",
             i, i, i % 4);
    emit(&b, put, ctx);
    write_slice(&b, kind, i, n_devices);
    emit(&b, put, ctx);
    if (is(kind, "counters")) {
        write_counters(&b, kind, i, n_devices);
        emit(&b, put, ctx);
    }
    write_held(&b, kind, i, n_devices);
    emit(&b, put, ctx);
}

void cluster_each(const char *kind, size_t n_nodes, size_t n_devices, void (*put)(void *ctx, const json_t *object),
                  void *ctx)
{
    struct buf b = {0};

    buf_adds(
        &b, "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"gpu\"},\"spec\":{"
            "\"selectors\":[{\"cel\":{\"expression\":\"device.driver == \\\"" DRIVER "\\\" && " ATTRIBUTES
            ".type == \\\"gpu\\\"\"}}]}}");
    emit(&b, put, ctx);
    for (size_t i = 0; i < n_nodes; i++)
        emit_node(kind, i, n_devices, put, ctx);
}

#define EXACT(name, count, selectors)                                                                                  \
    "{\"name\":\"" name                                                                                                \
    "\",\"exactly\":{\"deviceClassName\":\"gpu\",\"allocationMode\":\"ExactCount\",\"count\":" count "" selectors "}}"
#define ALTERNATIVE(name, count, selectors)                                                                            \
    "{\"name\":\"" name "\",\"deviceClassName\":\"gpu\",\"allocationMode\":\"ExactCount\",\"count\":" count            \
    "" selectors "}"
#define SELECTOR(text) "{\"cel\":{\"expression\":\"" text "\"}}"
#define HOPPER         SELECTOR(ATTRIBUTES ".architecture == \\\"Hopper\\\"")

static const struct {
    const char *kind, *devices;
} claims[] = {
    {"plain", "\"requests\":[" EXACT("gpu", "1", "") "]"},
    {"selector",
     "\"requests\":[" EXACT("gpu", "2",
                            ",\"selectors\":[" HOPPER
                            "," SELECTOR(ATTRIBUTES ".cudaComputeCapability.compareTo(semver(\\\"9.0.0\\\")) >= 0 && "
                                                    "device.capacity[\\\"" DRIVER
                                                    "\\\"].memory.compareTo(quantity(\\\"40Gi\\\")) >= 0") "]") "]"},
    {"match", "\"requests\":[" EXACT("a", "2", "") "," EXACT(
                  "b", "1", "") "],\"constraints\":[{\"matchAttribute\":\"" DRIVER "/numa\"}]"},
    {"firstAvailable",
     "\"requests\":[{\"name\":\"gpu\",\"firstAvailable\":[" ALTERNATIVE("alt-0", "8", "") "," ALTERNATIVE(
         "alt-1", "4", ",\"selectors\":[" HOPPER "]") "," ALTERNATIVE("alt-2", "2", "") "]}]"},
    {"counters",
     "\"requests\":[" EXACT(
         "gpu", "3", ",\"selectors\":[" SELECTOR(ATTRIBUTES ".profile in [\\\"3g.40gb\\\", \\\"1g.10gb\\\"]") "]") "]"},
    {"capacity", "\"requests\":[" EXACT("gpu", "2", ",\"capacity\":{\"requests\":{\"memory\":\"33Gi\"}}") "]"},
};

json_t *cluster_claim(const char *kind)
{
    struct buf b = {0};

    for (size_t i = 0; i < ARRAY_SIZE(claims); i++)
        if (is(kind, claims[i].kind))
            buf_addf(&b,
                     "{\"apiVersion\":\"resource.k8s.io/"
                     "v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"pod-claim\","
                     "\"namespace\":\"default\"},\"spec\":{\"devices\":{%s}}}",
                     claims[i].devices);
    return parse(&b);
}

json_t *cluster_changed_slice(const char *kind, size_t node, size_t n_devices, unsigned mark)
{
    struct buf b = {0};
    json_t *slice, *device;
    char text[32];

    write_slice(&b, kind, node, n_devices);
    slice = parse(&b);
    device = json_array_get(json_object_get(json_object_get(slice, "spec"), "devices"), 0);
    snprintf(text, sizeof(text), "GPU-changed-%u", mark);
    json_object_set_new(json_object_get(json_object_get(device, "attributes"), "uuid"), "string", json_string(text));
    return slice;
}
