/* The search: what releases do differently, hopeless counts, extended resources, and fast equals plain on random
 * clusters. */
#include "test/allocator/cluster.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/rng.h"
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

static const struct hopeless_case {
    const char *name, *claim;
} hopeless_cases[] = {
    {"20 of 16", CLAIM("requests: [" REQUEST("r", ", count: 20") "]")},
    {"10 and 10 of 16", CLAIM("requests: [" REQUEST("r", ", count: 10") ", " REQUEST("s", ", count: 10") "]")},
    {"9 of one half", CLAIM("requests: [" REQUEST("r", ", count: 9") "], constraints: [{matchAttribute: d.x/half}]")},
    {"8 and 9 of 16 that all differ",
     CLAIM("requests: [" REQUEST("r", ", count: 8") ", " REQUEST("s", ", count: 9") "], constraints: "
                                                                                    "[{distinctAttribute: d.x/uuid}]")},
    {"17 or 18", CLAIM("requests: [{name: r, firstAvailable: [{name: a, deviceClassName: c, count: 17}, {name: b, "
                       "deviceClassName: c, count: 18}]}]")},
};

static void test_search__hopeless(void **state)
{
    const struct hopeless_case *c = *state;
    BUF yaml = {0};
    struct snapshot *snapshot;
    json_t *documents = yaml_documents(c->claim);
    struct prediction prediction;
    struct arena arena = {0};
    const struct claim *claims[1];
    struct claim *claim;

    buf_adds(&yaml,
             NODE("n1")
                 CLASS("c") "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: "
                            "{driver: d.x, nodeName: n1, pool: {name: n1, generation: 0, resourceSliceCount: "
                            "1}, devices: [");
    add_devices(&yaml, 16);
    buf_adds(&yaml, "]}}\n");
    snapshot = cluster_of(buf_str(&yaml), 37);
    assert_int_equal(claim_parse(json_array_get(documents, 0), snapshot_features(snapshot), true, &arena, &claim, NULL),
                     0);
    claims[0] = claim;
    predict(snapshot, "n1", claims, 1, 0, &arena, &prediction);
    assert_int_equal(prediction.verdict, PREDICT_NO_FIT);
    assert_in_range(prediction.steps, 0, 2000);
    arena_release(&arena);
    json_decref(documents);
    snapshot_unref(snapshot);
}

/* ---- fast equals plain ---- */

static void random_device(struct buf *b, struct rng *rng, size_t i)
{
    buf_addf(b, "%s{name: d%zu, attributes: {k: {int: %d}, m: {string: m%d}}, capacity: {mem: {value: %dGi}}",
             i ? ", " : "", i, (int)rng_below(rng, 3), (int)rng_below(rng, 2), (int)(1 + rng_below(rng, 4)));
    if (rng_below(rng, 4) == 0)
        buf_adds(b, ", allowMultipleAllocations: true");
    if (rng_below(rng, 6) == 0)
        buf_adds(b, ", taints: [{key: t, effect: NoSchedule}]");
    if (rng_below(rng, 2) == 0)
        buf_addf(b, ", consumesCounters: [{counterSet: s%d, counters: {c: {value: %d}}}]", (int)rng_below(rng, 2),
                 (int)(1 + rng_below(rng, 3)));
    buf_adds(b, "}");
}

static void random_cluster(struct buf *b, struct rng *rng)
{
    size_t n = 3 + rng_below(rng, 8);

    buf_adds(b, NODE("n1") CLASS("c"));
    buf_adds(b, "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: a}, spec: {driver: d.x, "
                "nodeName: n1, "
                "pool: {name: p, generation: 0, resourceSliceCount: 2}, devices: [");
    for (size_t i = 0; i < n; i++)
        random_device(b, rng, i);
    buf_addf(b,
             "]}}\n" SLICE_OF("b", "p", "nodeName: n1", "2",
                              "sharedCounters: [{name: s0, counters: {c: {value: %d}}}, {name: "
                              "s1, counters: {c: {value: %d}}}]"),
             (int)(2 + rng_below(rng, 6)), (int)(2 + rng_below(rng, 6)));
    buf_addf(b, HELD("h", "p", "d%d"), (int)rng_below(rng, n));
}

static void random_claim(struct buf *b, struct rng *rng)
{
    static const char *const selectors[] = {
        "", ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].k > 0'}}]",
        ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].m == \"m1\"'}}]",
        ", capacity: {requests: {mem: 1Gi}}", ", tolerations: [{operator: Exists}]"};
    static const char *const constraints[] = {"", ", constraints: [{matchAttribute: d.x/k}]",
                                              ", constraints: [{distinctAttribute: d.x/k}]",
                                              ", constraints: [{matchAttribute: d.x/m}, {distinctAttribute: d.x/k}]"};
    size_t n = 1 + rng_below(rng, 3);

    buf_adds(
        b, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c, namespace: ns}, spec: {devices: "
           "{requests: [");
    for (size_t i = 0; i < n; i++) {
        const char *selector = selectors[rng_below(rng, ARRAY_SIZE(selectors))];
        int count = (int)(1 + rng_below(rng, 4));

        if (rng_below(rng, 3) == 0)
            buf_addf(b,
                     "%s{name: r%zu, firstAvailable: [{name: big, deviceClassName: c, count: %d%s}, {name: small, "
                     "deviceClassName: "
                     "c, count: 1}]}",
                     i ? ", " : "", i, count + 1, selector);
        else
            buf_addf(b, "%s{name: r%zu, exactly: {deviceClassName: c, count: %d%s}}", i ? ", " : "", i, count,
                     selector);
    }
    buf_addf(b, "]%s}}}", constraints[rng_below(rng, ARRAY_SIZE(constraints))]);
}

static void compare(const struct snapshot *snapshot, const json_t *object, uint64_t seed)
{
    struct arena arena = {0};
    struct claim *claim;
    struct prediction fast, plain;
    struct search_options options = {.plain = true};
    struct shape *shape;

    assert_int_equal(claim_parse(object, snapshot_features(snapshot), true, &arena, &claim, NULL), 0);
    shape = shape_new(snapshot, (const struct claim *const[]){claim}, 1);
    predict(snapshot, "n1", (const struct claim *const[]){claim}, 1, 0, &arena, &fast);
    predict_shape(shape, NULL, snapshot_find_node(snapshot, "n1"), &options, &arena, &plain);
    if (fast.verdict != plain.verdict)
        fail_msg("seed %llu: verdict %d, plain %d", (unsigned long long)seed, fast.verdict, plain.verdict);
    if (fast.verdict == PREDICT_ALLOCATED) {
        json_t *a = allocation_to_json(&fast.allocations[0], NULL, NULL);
        json_t *b = allocation_to_json(&plain.allocations[0], NULL, NULL);

        if (!json_equal(a, b))
            fail_msg("seed %llu: different devices", (unsigned long long)seed);
        json_decref(a);
        json_decref(b);
    }
    shape_free(shape);
    arena_release(&arena);
}

static void test_search__fast_equals_plain(void **state)
{
    const char *wish = getenv("QUEUED_SEED");
    uint64_t first = wish ? strtoull(wish, NULL, 10) : 1;

    (void)state;
    print_message("seeds from %llu\n", (unsigned long long)first);
    for (uint64_t seed = first; seed < first + 400; seed++) {
        struct rng rng = {seed};
        BUF yaml = {0};
        BUF claim = {0};
        struct snapshot *snapshot;
        json_t *documents;

        random_cluster(&yaml, &rng);
        random_claim(&claim, &rng);
        snapshot = cluster_of(buf_str(&yaml), 37);
        documents = yaml_documents(buf_str(&claim));
        compare(snapshot, json_array_get(documents, 0), seed);
        json_decref(documents);
        snapshot_unref(snapshot);
    }
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
        cmocka_unit_test(test_search__fast_equals_plain),
        cmocka_unit_test(test_search__extended_resources_become_a_claim),
    };
    int failed = RUN_TABLE(test_search__release, release_cases);

    failed += RUN_TABLE(test_search__hopeless, hopeless_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
