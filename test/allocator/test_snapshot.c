/* Snapshots: values that share; ledgers: what if. */
#include "test/allocator/cluster.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/gang.h"
#include "allocator/model.h"

#include "allocator/base/banned.h"

#define ONE CLAIM("requests: [" REQUEST("r", "") "]")
#define TWO_NODES                                                                                                      \
    NODE("n1")                                                                                                         \
    NODE("n2") CLASS("c") SLICE("n1", "{name: a}, {name: b}") SLICE("n2", "{name: a, attributes: {x: {int: 1}}}")

static void expect(const struct snapshot *snapshot, const char *node, const char *want)
{
    char *text = predicted(snapshot, node, ONE);

    assert_string_equal(text, want);
    free(text);
}

static void test_snapshot__stays_what_it_was(void **state)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct snapshot *before, *during, *after;

    (void)state;
    put_yaml(builder, TWO_NODES);
    before = snapshot_builder_build(builder);
    put_yaml(builder, HELD("h", "n2", "a"));
    during = snapshot_builder_build(builder);
    snapshot_builder_remove(builder, "ResourceClaim", "ns", "h");
    after = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    expect(during, "n2", "[no fit]");
    expect(before, "n2", "r=n2/a");
    expect(after, "n2", "r=n2/a");
    snapshot_unref(before);
    expect(during, "n1", "r=n1/a");
    snapshot_unref(during);
    snapshot_unref(after);
}

static void test_snapshot__replaces_and_forgets_slices(void **state)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct snapshot *snapshot;

    (void)state;
    put_yaml(builder, TWO_NODES);
    put_yaml(builder, SLICE("n2", "{name: z}"));
    snapshot = snapshot_builder_build(builder);
    expect(snapshot, "n2", "r=n2/z");
    snapshot_unref(snapshot);
    snapshot_builder_remove(builder, "ResourceSlice", NULL, "n2");
    snapshot = snapshot_builder_build(builder);
    expect(snapshot, "n2", "[no fit]");
    expect(snapshot, "n1", "r=n1/a");
    assert_int_equal(snapshot_n_devices(snapshot), 2);
    snapshot_unref(snapshot);
    snapshot_builder_remove(builder, "Node", NULL, "n1");
    snapshot = snapshot_builder_build(builder);
    assert_int_equal(snapshot_n_nodes(snapshot), 1);
    expect(snapshot, "n1", "[no fit]");
    snapshot_unref(snapshot);
    snapshot_builder_free(builder);
}

static void test_snapshot__a_refused_object_changes_nothing(void **state)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    json_t *bad = yaml_documents(SLICE("n2", "{name: z}, {name: z}"));
    struct snapshot *snapshot;
    struct error err = {0};

    (void)state;
    put_yaml(builder, TWO_NODES);
    assert_int_equal(snapshot_builder_put(builder, json_array_get(bad, 0), &err), -1);
    assert_non_null(strstr(err.text, "n2"));
    snapshot = snapshot_builder_build(builder);
    expect(snapshot, "n2", "r=n2/a");
    snapshot_unref(snapshot);
    snapshot_builder_free(builder);
    json_decref(bad);
}

static void test_snapshot__with_a_placement(void **state)
{
    struct snapshot *snapshot = cluster_of(TWO_NODES, 37), *with;
    struct device_result result = {.request = "r", .driver = "d.x", .pool = "n1", .device = "a"};
    struct placed_claim claim = {.source = GANG_CLAIM_OWN, .allocation = {.results = &result, .n_results = 1}};
    struct placed_member member = {.node = "n1", .claims = &claim, .n_claims = 1};
    struct placement placement = {.members = &member, .n_members = 1};

    (void)state;
    with = snapshot_with(snapshot, &placement);
    expect(with, "n1", "r=n1/b");
    expect(snapshot, "n1", "r=n1/a");
    snapshot_unref(snapshot);
    expect(with, "n2", "r=n2/a");
    snapshot_unref(with);
}

static void test_snapshot__without_namespaces_has_all(void **state)
{
    struct snapshot *none = cluster_of(TWO_NODES, 37);
    struct snapshot *some = cluster_of(TWO_NODES "---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml}}\n", 37);

    (void)state;
    assert_true(snapshot_has_namespace(none, "ml"));
    assert_true(snapshot_has_namespace(some, "ml"));
    assert_false(snapshot_has_namespace(some, "default"));
    snapshot_unref(none);
    snapshot_unref(some);
}

/* Devices of the scheduler's own claim count like those of others; an existing claim counts once, although every member
 * that uses it shows it. */
static void test_snapshot__with_a_placement_of_every_source(void **state)
{
    static const struct {
        enum gang_claim_source source;
        const char *left;
        int64_t charge;
    } rows[] = {{GANG_CLAIM_OWN, "[no fit]", 4},
                {GANG_CLAIM_EXTENDED, "[no fit]", 4},
                {GANG_CLAIM_EXISTING, "[no fit]", 2},
                {GANG_CLAIM_SHARED, "r=n1/a", 0}};
    struct snapshot *snapshot = cluster_of(TWO_NODES, 37);
    struct device_result results[] = {{.request = "r", .driver = "d.x", .pool = "n1", .device = "a"},
                                      {.request = "r", .driver = "d.x", .pool = "n1", .device = "b"}};
    struct device_matcher *all;

    (void)state;
    assert_int_equal(device_matcher_new(NULL, "true", &all, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct placed_claim claim = {.source = rows[i].source, .allocation = {.results = results, .n_results = 2}};
        struct placed_member members[] = {{.node = "n1", .claims = &claim, .n_claims = 1},
                                          {.index = 1, .node = "n1", .claims = &claim, .n_claims = 1}};
        struct placement placement = {.members = members, .n_members = 2};
        struct snapshot *with = snapshot_with(snapshot, &placement);

        expect(with, "n1", rows[i].left);
        assert_int_equal(placement_charge(snapshot, &placement, all, NULL), rows[i].charge);
        snapshot_unref(with);
    }
    device_matcher_free(all);
    snapshot_unref(snapshot);
}

struct looking {
    const char *pool;
    char text[256];
};

static void look(void *ctx, const struct device_view *device)
{
    struct looking *l = ctx;
    size_t len = strlen(l->text);

    if (strcmp(device->pool, l->pool) == 0)
        snprintf(l->text + len, sizeof(l->text) - len, "%s%s:%s:%s:%s", len ? " " : "", device->name, device->state,
                 device->claim ? device->claim : "-", device->pod_job ? device->pod_job : "-");
}

static void test_snapshot__shows_who_holds_devices(void **state)
{
    struct snapshot *snapshot =
        cluster_of(TWO_NODES HELD("h", "n1", "b") SLICE("n3", "{name: t, taints: [{key: k, effect: NoExecute}]}"), 37);
    struct looking looking = {.pool = "n1"};

    (void)state;
    snapshot_each_device(snapshot, look, &looking);
    assert_string_equal(looking.text, "a:free:-:- b:in-use:ns/h:job-h");
    looking = (struct looking){.pool = "n3"};
    snapshot_each_device(snapshot, look, &looking);
    assert_string_equal(looking.text, "t:tainted:-:-");
    snapshot_unref(snapshot);
}

static bool are_alike(const struct snapshot *snapshot, const char *a_pool, const char *a, const char *b_pool,
                      const char *b)
{
    json_t *x = snapshot_device_traits(snapshot, "d.x", a_pool, a),
           *y = snapshot_device_traits(snapshot, "d.x", b_pool, b);
    bool result = x && y && json_equal(x, y);

    json_decref(x);
    json_decref(y);
    return result;
}

static void test_snapshot__tells_what_a_device_is_but_for_its_name(void **state)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct snapshot *snapshot;

    (void)state;
    put_yaml(builder, NODE("n1") NODE("n2") SLICE("n2", "{name: a}") SLICE(
                          "n1", "{name: a}, {name: b}, {name: c, attributes: {x: {int: 1}}}, {name: d, capacity: "
                                "{m: {value: 1Gi}}}, {name: e, capacity: {m: {value: 1024Mi}}}, {name: f, taints: "
                                "[{key: k, effect: NoSchedule}]}"));
    snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    assert_true(are_alike(snapshot, "n1", "a", "n1", "b"));
    assert_true(are_alike(snapshot, "n1", "d", "n1", "e"));
    assert_false(are_alike(snapshot, "n1", "a", "n1", "c"));
    assert_false(are_alike(snapshot, "n1", "a", "n1", "d"));
    assert_false(are_alike(snapshot, "n1", "a", "n1", "f"));
    assert_false(are_alike(snapshot, "n1", "a", "n2", "a"));
    assert_null(snapshot_device_traits(snapshot, "d.x", "n1", "z"));
    assert_null(snapshot_device_traits(snapshot, "d.x", "n3", "a"));
    snapshot_unref(snapshot);
}

static void test_snapshot__counts_what_matches(void **state)
{
    struct snapshot *snapshot = cluster_of(
        NODE("n1") CLASS("c")
            SLICE("n1", "{name: a, capacity: {m: {value: 10Gi}}}, {name: b, attributes: {big: {bool: true}}, "
                        "capacity: {m: {value: 20Gi}}}"),
        37);
    struct device_matcher *all, *big, *none;
    struct error err = {0};

    (void)state;
    assert_int_equal(device_matcher_new(NULL, NULL, &all, &err), 0);
    assert_int_equal(device_matcher_new("c", "device.attributes['d.x'].big", &big, &err), 0);
    assert_int_equal(device_matcher_new("missing", NULL, &none, &err), 0);
    assert_int_equal(snapshot_capacity(snapshot, all, NULL), 2);
    assert_int_equal(snapshot_capacity(snapshot, big, NULL), 1);
    assert_int_equal(snapshot_capacity(snapshot, big, "m"), INT64_C(20) << 30);
    assert_int_equal(snapshot_capacity(snapshot, none, NULL), 0);
    assert_int_equal(device_matcher_new(NULL, "device.", &none, &err), -1);
    device_matcher_free(all);
    device_matcher_free(big);
    device_matcher_free(none);
    snapshot_unref(snapshot);
}

static void test_ledger__takes_and_rolls_back(void **state)
{
    struct snapshot *snapshot = cluster_of(TWO_NODES HELD("h", "n1", "b"), 37);
    const struct node *n1 = snapshot_find_node(snapshot, "n1");
    const struct pool *pool = snapshot_find_pool(snapshot, "d.x", "n1");
    struct ledger *ledger = ledger_new(snapshot);
    struct device_result result = {.request = "r", .driver = "d.x", .pool = "n1", .device = "a"};
    struct allocation allocation = {.results = &result, .n_results = 1};
    uint64_t stamp = ledger_node_stamp(ledger, n1);
    size_t mark = ledger_mark(ledger);

    (void)state;
    ledger_take(ledger, &allocation);
    assert_int_equal(ledger_pool_use(ledger, pool)[0].n_dedicated, 1);
    assert_int_not_equal(ledger_node_stamp(ledger, n1), stamp);
    ledger_give_back(ledger, snapshot_find_claim(snapshot, "ns", "h"));
    assert_int_equal(ledger_pool_use(ledger, pool)[1].n_dedicated, 0);
    ledger_rollback(ledger, mark);
    assert_int_equal(ledger_pool_use(ledger, pool)[0].n_dedicated, 0);
    assert_int_equal(ledger_pool_use(ledger, pool)[1].n_dedicated, 1);
    ledger_empty(ledger);
    assert_int_equal(ledger_pool_use(ledger, pool)[1].n_dedicated, 0);
    ledger_free(ledger);
    snapshot_unref(snapshot);
}

static void test_ledger__adds_pods_to_nodes(void **state)
{
    struct snapshot *snapshot = cluster_of(
        NODE("n1") "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {nodeName: n1, "
                   "initContainers: [{name: i, resources: {requests: {cpu: 3}}}, {name: s, restartPolicy: Always, "
                   "resources: "
                   "{requests: {cpu: 1}}}], containers: [{name: c, resources: {requests: {cpu: 500m}}, ports: "
                   "[{hostPort: "
                   "80}]}]}}\n",
        37);
    const struct node *n1 = snapshot_find_node(snapshot, "n1");
    struct ledger *ledger = ledger_new(snapshot);
    json_t *nodes = snapshot_nodes_json(snapshot);
    struct resource_amount cpu = {symbol(snapshot_symbols(snapshot), "cpu"), quantity_of_int(2)};
    struct pod_demand demand = {.resources = &cpu, .n_resources = 1};
    struct quantity five = quantity_of_int(5);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(json_object_get(json_array_get(nodes, 0), "used"), "cpu")),
                        "3");
    assert_int_equal(n1->use.n_ports, 1);
    ledger_add_pod(ledger, n1, &demand);
    assert_int_equal(quantity_cmp(&ledger_node_use(ledger, n1)->resources[0].amount, &five), 0);
    ledger_rollback(ledger, 0);
    assert_int_not_equal(quantity_cmp(&ledger_node_use(ledger, n1)->resources[0].amount, &five), 0);
    json_decref(nodes);
    ledger_free(ledger);
    snapshot_unref(snapshot);
}

static void test_snapshot__counts_what_it_remembers(void **state)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct snapshot_hits cold, warm;
    struct snapshot *snapshot;

    (void)state;
    put_yaml(builder, TWO_NODES);
    snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    expect(snapshot, "n1", "r=n1/a");
    cold = snapshot_hits(snapshot);
    expect(snapshot, "n1", "r=n1/a");
    warm = snapshot_hits(snapshot);
    assert_int_equal(cold.answers_found, 0);
    assert_int_equal(warm.answers_asked, cold.answers_asked + 1);
    assert_int_equal(warm.answers_found, 1);
    assert_int_equal(warm.results_asked, cold.results_asked); /* what is remembered is not evaluated again */
    snapshot_unref(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot__stays_what_it_was),
        cmocka_unit_test(test_snapshot__replaces_and_forgets_slices),
        cmocka_unit_test(test_snapshot__a_refused_object_changes_nothing),
        cmocka_unit_test(test_snapshot__without_namespaces_has_all),
        cmocka_unit_test(test_snapshot__with_a_placement),
        cmocka_unit_test(test_snapshot__with_a_placement_of_every_source),
        cmocka_unit_test(test_snapshot__shows_who_holds_devices),
        cmocka_unit_test(test_snapshot__tells_what_a_device_is_but_for_its_name),
        cmocka_unit_test(test_snapshot__counts_what_matches),
        cmocka_unit_test(test_snapshot__counts_what_it_remembers),
        cmocka_unit_test(test_ledger__takes_and_rolls_back),
        cmocka_unit_test(test_ledger__adds_pods_to_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
