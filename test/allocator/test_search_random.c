/* The fast search equals the plain one, which mirrors the specification, on small random clusters: same verdict, same
 * devices. Among them are what makes the order of errors matter: mode All under constraints, expressions that fail on
 * some devices, alternatives that are too large, attributes that constraints cannot compare.
 *
 * SEARCH_SEED=s runs one case, SEARCH_SEEDS=n sets how many. */
#include "test/allocator/cluster.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>

#include "allocator/base/rng.h"
#include "allocator/internal.h"
#include "allocator/model.h"

#include "allocator/base/banned.h"

#define N_SEEDS    1500
#define MAX_CLAIMS 3

/* What a case is about, so that each is about few things. */
struct theme {
    int release;
    bool counters, shares, taints, odd_attributes, list_attributes, errors, all, lists;
    size_t n_devices;
};

static struct theme random_theme(struct rng *rng)
{
    struct theme theme = {.release = rng_below(rng, 3) ? 37 : (int)(34 + rng_below(rng, 3))};

    theme.counters = rng_below(rng, 3) == 0;
    theme.shares = rng_below(rng, 3) == 0;
    theme.taints = rng_below(rng, 3) == 0;
    theme.odd_attributes = rng_below(rng, 4) == 0;
    theme.list_attributes = theme.odd_attributes && theme.release >= 36 && rng_below(rng, 2);
    theme.errors = rng_below(rng, 4) == 0;
    theme.all = rng_below(rng, 2);
    theme.lists = rng_below(rng, 3) == 0;
    theme.n_devices = 3 + rng_below(rng, theme.release < 36 ? 4 : 8);
    return theme;
}

/* ---- devices ---- */

static void add_attribute(struct buf *b, const struct theme *theme, struct rng *rng)
{
    int value = (int)rng_below(rng, 3);

    if (!theme->odd_attributes || rng_below(rng, 3))
        buf_addf(b, "k: {int: %d}", value);
    else if (rng_below(rng, 2))
        buf_addf(b, "k: {ints: [%d]}", value);
    else
        buf_addf(b, "k: {ints: [%d, %d]}", value, (value + 1) % 3);
}

static void add_device(struct buf *b, const struct theme *theme, struct rng *rng, size_t i)
{
    buf_addf(b, "%s{name: d%zu, attributes: {", i ? ", " : "", i);
    add_attribute(b, theme, rng);
    buf_addf(b, ", m: {string: m%d}", (int)rng_below(rng, 2));
    if (!theme->errors || rng_below(rng, 5))
        buf_adds(b, ", here: {bool: true}");
    buf_addf(b, "}, capacity: {mem: {value: %dGi}}", (int)(1 + rng_below(rng, theme->shares ? 4 : 2)));
    if (theme->shares && rng_below(rng, 3) == 0)
        buf_adds(b, ", allowMultipleAllocations: true");
    if (theme->taints && rng_below(rng, 6) == 0)
        buf_adds(b, ", taints: [{key: t, effect: NoSchedule}]");
    if (theme->counters && rng_below(rng, 2))
        buf_addf(b, ", consumesCounters: [{counterSet: s%d, counters: {c: {value: %d}}}]", (int)rng_below(rng, 2),
                 (int)(1 + rng_below(rng, 3)));
    buf_adds(b, "}");
}

static void add_counters(struct buf *b, const struct theme *theme, struct rng *rng)
{
    int first = (int)(2 + rng_below(rng, 6)), second = (int)(2 + rng_below(rng, 6));

    if (theme->release > 34) /* 1.34 has them in the slice of the devices */
        buf_adds(b,
                 "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: b}, spec: {driver: d.x, "
                 "nodeName: n1, pool: {name: p, generation: 1, resourceSliceCount: 2}");
    buf_addf(b, ", sharedCounters: [{name: s0, counters: {c: {value: %d}}}, {name: s1, counters: {c: {value: %d}}}]",
             first, second);
    if (theme->release > 34)
        buf_adds(b, "}}\n");
}

static void add_cluster(struct buf *b, const struct theme *theme, struct rng *rng)
{
    buf_addf(b,
             NODE("n1")
                 CLASS("c") "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: a}, spec: "
                            "{driver: d.x, nodeName: n1, pool: {name: p, generation: 1, resourceSliceCount: %d}, "
                            "devices: [",
             theme->counters && theme->release > 34 ? 2 : 1);
    for (size_t i = 0; i < theme->n_devices; i++)
        add_device(b, theme, rng, i);
    buf_adds(b, "]");
    if (theme->counters && theme->release == 34)
        add_counters(b, theme, rng);
    buf_adds(b, "}}\n");
    if (theme->counters && theme->release > 34)
        add_counters(b, theme, rng);
    if (rng_below(rng, 2))
        buf_addf(b, HELD("h", "p", "d%d"), (int)rng_below(rng, theme->n_devices));
}

/* ---- claims ---- */

static const char *random_rules(const struct theme *theme, struct rng *rng)
{
    static const char *const rules[] = {
        "",
        "",
        ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].m == \"m1\"'}}]",
        ", selectors: [{cel: {expression: 'device.capacity[\"d.x\"].mem.compareTo(quantity(\"2Gi\")) >= 0'}}]",
        ", tolerations: [{operator: Exists}]",
        ", capacity: {requests: {mem: 1Gi}}",
    };

    if (theme->errors && rng_below(rng, 2))
        return ", selectors: [{cel: {expression: 'device.attributes[\"d.x\"].here'}}]";
    return rules[rng_below(rng, theme->release == 37 ? ARRAY_SIZE(rules) : ARRAY_SIZE(rules) - 1)];
}

static void add_ask(struct buf *b, const struct theme *theme, struct rng *rng)
{
    buf_adds(b, "deviceClassName: c");
    if (theme->all && rng_below(rng, 2))
        buf_adds(b, ", allocationMode: All");
    else
        buf_addf(b, ", count: %d", theme->lists && rng_below(rng, 4) == 0 ? 30 : (int)(1 + rng_below(rng, 4)));
    buf_addf(b, "%s}", random_rules(theme, rng));
}

static void add_request(struct buf *b, const struct theme *theme, struct rng *rng, size_t i)
{
    bool is_list = theme->lists && rng_below(rng, 2);

    buf_addf(b, "%s{name: r%zu, %s", i ? ", " : "", i, is_list ? "firstAvailable: [{name: big, " : "exactly: {");
    add_ask(b, theme, rng);
    if (is_list) {
        buf_adds(b, ", {name: small, ");
        add_ask(b, theme, rng);
        buf_adds(b, "]");
    }
    buf_adds(b, "}");
}

static void add_claim(struct buf *b, const struct theme *theme, struct rng *rng, size_t i)
{
    static const char *const constraints[] = {
        "",
        "{matchAttribute: d.x/k}",
        "{distinctAttribute: d.x/k}",
        "{matchAttribute: d.x/m}",
        "{matchAttribute: d.x/m}, {distinctAttribute: d.x/k}",
        "{matchAttribute: d.x/k, requests: [r0]}",
        "{distinctAttribute: d.x/k, requests: [r0]}",
    };
    size_t n = 1 + rng_below(rng, 3);

    buf_addf(b,
             "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c%zu, namespace: ns}, spec: "
             "{devices: {requests: [",
             i);
    for (size_t k = 0; k < n; k++)
        add_request(b, theme, rng, k);
    buf_addf(b, "], constraints: [%s]}}}\n", constraints[rng_below(rng, ARRAY_SIZE(constraints))]);
}

/* ---- both searches ---- */

static char *answer_text(const struct prediction *prediction)
{
    BUF text = {0};

    buf_addf(&text, "verdict %d", (int)prediction->verdict);
    for (size_t i = 0; i < prediction->n_allocations; i++)
        for (size_t k = 0; k < prediction->allocations[i].n_results; k++)
            buf_addf(&text, " %s=%s", prediction->allocations[i].results[k].request,
                     prediction->allocations[i].results[k].device);
    return buf_take(&text);
}

static void compare(const struct snapshot *snapshot, const struct claim *const *claims, size_t n, const char *what)
{
    struct search_options options = {.plain = true, .max_steps = 200000};
    struct shape *shape = shape_new(snapshot, claims, n);
    struct prediction prediction;
    struct arena arena = {0};
    char *fast, *plain;

    predict(snapshot, "n1", claims, n, 0, &arena, &prediction);
    fast = answer_text(&prediction);
    predict_shape(shape, NULL, snapshot_find_node(snapshot, "n1"), &options, &arena, &prediction);
    plain = answer_text(&prediction);
    if (prediction.verdict != PREDICT_TIMEOUT && !text_is(fast, plain))
        fail_msg("%s: %s, plain search %s", what, fast, plain);
    free(fast);
    free(plain);
    shape_free(shape);
    arena_release(&arena);
}

static struct snapshot *snapshot_of(const struct theme *theme, const char *yaml)
{
    struct features features = features_default(theme->release);
    struct snapshot_builder *builder;
    struct snapshot *snapshot;

    if (theme->list_attributes)
        assert_int_equal(features_switch(&features, "listAttributes", true, NULL), 0);
    builder = snapshot_builder_new(&features, true);
    put_yaml(builder, yaml);
    snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    return snapshot;
}

static void run_case(uint64_t seed)
{
    struct rng rng = {seed};
    struct theme theme = random_theme(&rng);
    const struct claim *claims[MAX_CLAIMS];
    size_t n = 1 + rng_below(&rng, MAX_CLAIMS);
    struct snapshot *snapshot;
    struct arena arena = {0};
    json_t *documents;
    BUF yaml = {0};
    BUF what = {0};

    add_cluster(&yaml, &theme, &rng);
    snapshot = snapshot_of(&theme, buf_str(&yaml));
    buf_clear(&yaml);
    for (size_t i = 0; i < n; i++)
        add_claim(&yaml, &theme, &rng, i);
    documents = yaml_documents(buf_str(&yaml));
    for (size_t i = 0; i < n; i++) {
        struct claim *claim;

        assert_int_equal(
            claim_parse(json_array_get(documents, i), snapshot_features(snapshot), false, &arena, &claim, NULL), 0);
        claims[i] = claim;
    }
    buf_addf(&what, "seed %llu, 1.%d", (unsigned long long)seed, theme.release);
    compare(snapshot, claims, n, buf_str(&what));
    arena_release(&arena);
    json_decref(documents);
    snapshot_unref(snapshot);
}

static void test_search__fast_equals_plain(void **state)
{
    const char *one = getenv("SEARCH_SEED"), *many = getenv("SEARCH_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1;
    uint64_t n = one ? 1 : many ? strtoull(many, NULL, 10) : N_SEEDS;

    (void)state;
    print_message("seeds from %llu\n", (unsigned long long)first);
    for (uint64_t seed = first; seed < first + n; seed++)
        run_case(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_search__fast_equals_plain)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
