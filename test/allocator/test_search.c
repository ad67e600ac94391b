/* The search: what releases do differently, hopeless counts, extended resources. */
#include "test/allocator/cluster.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/model.h"

#include "allocator/base/banned.h"

/* ---- releases (semantics, sections 16 and 17) ---- */

#define B1_POOL                                                                                                        \
    POOL("p", "n1", "2",                                                                                               \
         "devices: [{name: d1, taints: [{key: k, effect: NoSchedule}], consumesCounters: [{counterSet: g, counters: "  \
         "{m: "                                                                                                        \
         "{value: 6}}}]}, {name: d2, consumesCounters: [{counterSet: g, counters: {m: {value: 4}}}]}]")                \
    SLICE_OF("counters", "p", "nodeName: n1", "2", "sharedCounters: [{name: g, counters: {m: {value: 8}}}]")
#define FOUR                                                                                                           \
    SLICE("n1", "{name: a, attributes: {v: {int: 1}}}, {name: b, attributes: {v: {int: 2}}}, {name: c, attributes: "   \
                "{v: {int: 1}}}, {name: d, attributes: {v: {int: 3}}}")
#define DISTINCT CLAIM("requests: [" REQUEST("r", ", count: 3") "], constraints: [{distinctAttribute: d.x/v}]")

/* Two drivers whose pools have the same name; the second has more to give. */
#define TWIN(driver, total)                                                                                            \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " driver                              \
    "-a}, spec: {driver: " driver ", nodeName: n1, pool: {name: p, generation: 0, resourceSliceCount: 2}, devices: "   \
    "[{name: one, consumesCounters: [{counterSet: g, counters: {m: {value: 2}}}]}]}}\n"                                \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " driver                              \
    "-b}, spec: {driver: " driver ", nodeName: n1, pool: {name: p, generation: 0, resourceSliceCount: 2}, "            \
    "sharedCounters: [{name: g, counters: {m: {value: " total "}}}]}}\n"

static const struct release_case {
    const char *name;
    int release;
    const char *cluster, *claim, *want;
} release_cases[] = {
    {"1.37 gives counters of a refused device back", 37, B1_POOL, CLAIM("requests: [" REQUEST("r", "") "]"), "r=p/d2"},
    {"1.36 keeps them (B1)", 36, B1_POOL, CLAIM("requests: [" REQUEST("r", "") "]"), "[no fit]"},
    {"1.37 tells pools of two drivers apart", 37, TWIN("a.x", "1") TWIN("b.x", "4"),
     CLAIM("requests: [" REQUEST("r", "") "]"), "r=p/one"},
    {"1.36 takes the first pool's counters for both (B3)", 36, TWIN("a.x", "1") TWIN("b.x", "4"),
     CLAIM("requests: [" REQUEST("r", "") "]"), "[no fit]"},
    {"1.37 compares distinct values of all", 37, FOUR, DISTINCT, "r=n1/a r=n1/b r=n1/d"},
    {"1.36 compares with the latest (B4)", 36, FOUR, DISTINCT, "r=n1/a r=n1/b r=n1/c"},
};

static void test_search__release(void **state)
{
    const struct release_case *c = *state;
    BUF yaml = {0};
    struct snapshot *snapshot;
    char *text;

    buf_addf(&yaml, NODE("n1") CLASS("c") "%s", c->cluster);
    snapshot = cluster_of(buf_str(&yaml), c->release);
    text = predicted(snapshot, "n1", c->claim);
    assert_string_equal(text, c->want);
    free(text);
    snapshot_unref(snapshot);
}

/* ---- hopeless counts are answered at once ---- */

static void add_devices(struct buf *yaml, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(yaml, "%s{name: d%zu, attributes: {half: {int: %zu}, uuid: {string: u%zu}}}", i ? ", " : "", i, i % 2,
                 i);
}

#define UPPER ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].half == 1'}}]"

static const struct hopeless_case {
    const char *name;
    uint64_t most_steps;
    const char *claims;
} hopeless_cases[] = {
    {"20 of 16", 2000, CLAIM("requests: [" REQUEST("r", ", count: 20") "]")},
    {"10 and 10 of 16", 2000, CLAIM("requests: [" REQUEST("r", ", count: 10") ", " REQUEST("s", ", count: 10") "]")},
    {"9 of one half", 2000,
     CLAIM("requests: [" REQUEST("r", ", count: 9") "], constraints: [{matchAttribute: d.x/half}]")},
    {"8 and 9 of 16 that all differ", 2000,
     CLAIM("requests: [" REQUEST("r", ", count: 8") ", " REQUEST("s", ", count: 9") "], constraints: "
                                                                                    "[{distinctAttribute: d.x/uuid}]")},
    {"17 or 18", 2000,
     CLAIM("requests: [{name: r, firstAvailable: [{name: a, deviceClassName: c, count: 17}, {name: b, "
           "deviceClassName: c, count: 18}]}]")},
    {"8 and 8 of 16, then all under a constraint", 20000,
     CLAIM("requests: [" REQUEST("r", ", count: 8") ", " REQUEST("s", ", count: 8") ", " REQUEST(
         "t", ", allocationMode: All") "], constraints: [{matchAttribute: d.x/half, requests: [t]}]")},
    {"9 of 16, then 8, then all that differ", 2000,
     CLAIM("requests: [" REQUEST("r", ", count: 9") ", " REQUEST("s", ", count: 8") ", " REQUEST(
         "t", ", allocationMode: All" UPPER) "], constraints: [{distinctAttribute: d.x/half, requests: [t]}]")},
    {"another claim takes 9, then all of one half", 20000,
     CLAIM("requests: [" REQUEST("r", ", count: 9") "]") "\n---\n" CLAIM(
         "requests: [" REQUEST("t", ", allocationMode: All" UPPER) "], constraints: [{matchAttribute: d.x/half}]")},
};

static void test_search__hopeless(void **state)
{
    const struct hopeless_case *c = *state;
    BUF yaml = {0};
    struct snapshot *snapshot;
    json_t *documents = yaml_documents(c->claims);
    size_t n = json_array_size(documents);
    struct prediction prediction;
    struct arena arena = {0};
    const struct claim *claims[2];

    buf_adds(&yaml,
             NODE("n1")
                 CLASS("c") "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: "
                            "{driver: d.x, nodeName: n1, pool: {name: n1, generation: 0, resourceSliceCount: "
                            "1}, devices: [");
    add_devices(&yaml, 16);
    buf_adds(&yaml, "]}}\n");
    snapshot = cluster_of(buf_str(&yaml), 37);
    for (size_t i = 0; i < n; i++) {
        struct claim *claim;

        assert_int_equal(
            claim_parse(json_array_get(documents, i), snapshot_features(snapshot), true, &arena, &claim, NULL), 0);
        claims[i] = claim;
    }
    predict(snapshot, "n1", claims, n, 0, &arena, &prediction);
    assert_int_equal(prediction.verdict, PREDICT_NO_FIT);
    assert_in_range(prediction.steps, 0, c->most_steps);
    arena_release(&arena);
    json_decref(documents);
    snapshot_unref(snapshot);
}

/* ---- extended resources (semantics, 11.3 and example 20) ---- */

static void test_search__extended_resources_become_a_claim(void **state)
{
    struct snapshot *snapshot =
        cluster_of(NODE("n1") "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: "
                              "{extendedResourceName: "
                              "example.com/x}}\n" SLICE("n1", "{name: a}, {name: b}, {name: e}"),
                   37);
    json_t *spec = yaml_documents("{initContainers: [{name: i, resources: {requests: {example.com/x: 3}}}], "
                                  "containers: [{name: m, resources: {requests: "
                                  "{cpu: 1, example.com/x: 2}}}]}");
    const struct extended_mapping *mappings;
    struct arena arena = {0};
    struct claim *claim;
    size_t n;

    (void)state;
    extended_claim(snapshot, snapshot_find_node(snapshot, "n1"), json_array_get(spec, 0), &arena, &claim, &mappings,
                   &n);
    assert_non_null(claim);
    assert_int_equal(claim->n_requests, 2);
    assert_string_equal(claim->requests[0].name, "container-0-request-0");
    assert_int_equal(claim->requests[0].asks[0].count, 1);
    assert_string_equal(claim->requests[1].name, "container-1-request-1");
    assert_int_equal(claim->requests[1].asks[0].count, 2);
    assert_int_equal(n, 3);
    arena_release(&arena);
    json_decref(spec);
    snapshot_unref(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search__extended_resources_become_a_claim),
    };
    int failed = RUN_TABLE(test_search__release, release_cases);

    failed += RUN_TABLE(test_search__hopeless, hopeless_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
