/* Objects from JSON: the served shapes, and what an API server refuses, by field. */
#include "test/allocator/cluster.h"
#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/banned.h"

#define CLAIM_OF(devices) CLAIM("requests: [" REQUEST("r", "") "], " devices)
#define DEVICE(fields)    SLICE("n1", "{name: a, " fields "}")

static const struct refusal_case {
    const char *name, *yaml, *field;
} refusals[] = {
    {"unknown kind", "{apiVersion: v1, kind: Service, metadata: {name: s}}", "kind"},
    {"unknown version", "{apiVersion: resource.k8s.io/v9, kind: DeviceClass, metadata: {name: c}}", "apiVersion"},
    {"a device needs a DNS label", SLICE("n1", "{name: A_}"), "spec.devices[0].name"},
    {"device names are unique", SLICE("n1", "{name: a}, {name: a}"), "spec.devices[1].name"},
    {"one value per attribute", DEVICE("attributes: {x: {int: 1, bool: true}}"), "spec.devices[0].attributes[x]"},
    {"an attribute of another type", DEVICE("attributes: {x: {int: one}}"), "spec.devices[0].attributes[x].int"},
    {"a version is semantic", DEVICE("attributes: {x: {version: '1.0'}}"), "spec.devices[0].attributes[x]"},
    {"names of attributes", DEVICE("attributes: {a-b: {int: 1}}"), "spec.devices[0].attributes[a-b]"},
    {"quantities", DEVICE("capacity: {m: {value: 1Q}}"), "spec.devices[0].capacity[m].value"},
    {"a policy needs sharing", DEVICE("capacity: {m: {value: 1, requestPolicy: {default: 1}}}"),
     "spec.devices[0].capacity[m].requestPolicy"},
    {"a range is within the capacity",
     DEVICE("allowMultipleAllocations: true, capacity: {m: {value: 4, requestPolicy: {default: 2, validRange: {min: 1, "
            "max: "
            "8}}}}"),
     "spec.devices[0].capacity[m].requestPolicy.validRange.max"},
    {"one way to choose nodes", POOL("p", "n1, allNodes: true", "1", "devices: []"), "spec.nodeName"},
    {"slices are counted", POOL("p", "n1", "0", "devices: []"), "spec.pool.resourceSliceCount"},
    {"a selector has one term", SLICE_OF("s", "p", "nodeSelector: {nodeSelectorTerms: []}", "1", "devices: []"),
     "spec.nodeSelector.nodeSelectorTerms"},
    {"CEL of a class compiles",
     "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {selectors: [{cel: {expression: "
     "'device.'}}]}}",
     "spec.selectors[0].cel.expression"},
    {"a reference names a request", CLAIM_OF("constraints: [{matchAttribute: d.x/a, requests: [q]}]"),
     "spec.devices.constraints[0].requests[0]"},
    {"constraints name a domain", CLAIM_OF("constraints: [{matchAttribute: a}]"),
     "spec.devices.constraints[0].matchAttribute"},
    {"either match or distinct", CLAIM_OF("constraints: [{}]"), "spec.devices.constraints[0]"},
    {"All has no count", CLAIM("requests: [" REQUEST("r", ", allocationMode: All, count: 2") "]"),
     "spec.devices.requests[0].exactly.count"},
    {"counts are positive", CLAIM("requests: [" REQUEST("r", ", count: -1") "]"),
     "spec.devices.requests[0].exactly.count"},
    {"the first bad item of a list",
     "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: n1}}, "
     "{apiVersion: v1, kind: Node, metadata: {}}]}",
     "items[1].metadata.name"},
};

static void test_objects__refused(void **state)
{
    const struct refusal_case *c = *state;
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    json_t *documents = yaml_documents(c->yaml);
    struct error err = {0};

    assert_int_equal(snapshot_builder_put(builder, json_array_get(documents, 0), &err), -1);
    assert_string_equal(err.field, c->field);
    json_decref(documents);
    snapshot_builder_free(builder);
}

/* The same device in three shapes of the API; the claim too. */
#define V1_DEVICE    "{name: a, attributes: {x: {int: 1}}, capacity: {m: {value: 1Gi}}}"
#define BASIC_DEVICE "{name: a, basic: {attributes: {x: {int: 1}}, capacity: {m: {value: 1Gi}}}}"
#define SELECTOR     "selectors: [{cel: {expression: 'device.attributes[\"d.x\"].x == 1'}}]"
#define OLD_CLAIM                                                                                                      \
    "{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {requests: "      \
    "[{name: r, "                                                                                                      \
    "deviceClassName: c, " SELECTOR "}]}}}"
#define NEW_CLAIM CLAIM("requests: [" REQUEST("r", ", " SELECTOR) "]")

static const struct shape_case {
    const char *name, *device, *claim;
} shapes[] = {
    {"v1", V1_DEVICE, NEW_CLAIM},
    {"v1beta1 device under basic", BASIC_DEVICE, NEW_CLAIM},
    {"v1beta1 request without exactly", V1_DEVICE, OLD_CLAIM},
    {"a template's spec", V1_DEVICE,
     "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t}, spec: {spec: {devices: "
     "{requests: "
     "[" REQUEST("r", ", " SELECTOR) "]}}}}"},
};

static void test_objects__shape(void **state)
{
    const struct shape_case *c = *state;
    BUF yaml = {0};
    struct snapshot *snapshot;
    char *text;

    buf_addf(&yaml,
             NODE("n1")
                 CLASS("c") "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: "
                            "{driver: d.x, nodeName: n1, pool: {name: n1, generation: 0, resourceSliceCount: 1}, "
                            "devices: [%s]}}\n",
             c->device);
    snapshot = cluster_of(buf_str(&yaml), 37);
    text = predicted(snapshot, "n1", c->claim);
    assert_string_equal(text, "r=n1/a");
    free(text);
    snapshot_unref(snapshot);
}

/* Small cousins of what drivers publish. */
static const struct small_case {
    const char *name, *cluster, *claim, *want;
} small_cases[] = {
    {"partitions: the whole device competes with its parts",
     POOL("p", "n1", "2",
          "devices: [{name: whole, consumesCounters: [{counterSet: g, counters: {m: {value: 80Gi}}}]}, {name: half, "
          "consumesCounters: [{counterSet: g, counters: {m: {value: 40Gi}}}]}]")
         SLICE_OF("counters", "p", "nodeName: n1", "2", "sharedCounters: [{name: g, counters: {m: {value: 80Gi}}}]")
             HELD("h", "p", "half"),
     CLAIM("requests: [" REQUEST("r", "") "]"), "[no fit]"},
    {"shares add up to the capacity",
     SLICE("n1", "{name: a, allowMultipleAllocations: true, capacity: {m: {value: 10Gi}}}"),
     CLAIM("requests: [" REQUEST("r", ", capacity: {requests: {m: 6Gi}}") ", " REQUEST("s",
                                                                                       ", capacity: {requests: {m: "
                                                                                       "4Gi}}") "]"),
     "r=n1/a s=n1/a"},
    {"a tainted device waits for a toleration",
     SLICE("n1", "{name: a, taints: [{key: k, effect: NoSchedule}]}, {name: b}"),
     CLAIM("requests: [" REQUEST("r", "") "]"), "r=n1/b"},
    {"two devices of one board",
     SLICE("n1", "{name: a, attributes: {b: {int: 0}}}, {name: b, attributes: {b: {int: 1}}}, "
                 "{name: c, attributes: {b: {int: 1}}}"),
     CLAIM("requests: [" REQUEST("r", ", count: 2") "], constraints: [{matchAttribute: d.x/b}]"), "r=n1/b r=n1/c"},
};

static void test_objects__small(void **state)
{
    const struct small_case *c = *state;
    BUF yaml = {0};
    struct snapshot *snapshot;
    char *text;

    buf_addf(&yaml, NODE("n1") CLASS("c") "%s", c->cluster);
    snapshot = cluster_of(buf_str(&yaml), 37);
    text = predicted(snapshot, "n1", c->claim);
    assert_string_equal(text, c->want);
    free(text);
    snapshot_unref(snapshot);
}

int main(void)
{
    int failed = RUN_TABLE(test_objects__refused, refusals);

    failed += RUN_TABLE(test_objects__shape, shapes);
    return failed + RUN_TABLE(test_objects__small, small_cases);
}
