/* May this pod run on this node, and what would devices serve there: the single pod's answers and the gang's agree. */
#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/gang.h"
#include "allocator/nodecheck.h"
#include "test/allocator/cluster.h"

#define CAN(name, resources)                                                                                           \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name "}, status: {allocatable: {pods: '5', " resources "}}}" \
                                                                                                                 "\n"
#define POD(resources)                                                                                                 \
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: x, resources: "          \
    "{requests: {" resources "}}}]}}"

/* n1 has devices of class c, n2 a plugin for the same resource, n3 neither. */
static const char cluster[] = CAN("n1", "cpu: '4'") CAN("n2", "cpu: '4', d.x/gpu: '1'")
    CAN("n3", "cpu: '1'") "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: "
                          "{extendedResourceName: d.x/gpu}}\n" SLICE("n1", "{name: a}, {name: b}");

static const struct check_case {
    const char *name;
    int release;
    const char *pod, *node;
    const char *refusal; /* NULL: none */
    bool has_claim;
    size_t n_fit; /* members of a gang of three such pods */
} cases[] = {
    {"devices serve where no plugin does", 37, POD("d.x/gpu: '1'"), "n1", NULL, true, 3},
    {"a plugin serves alone", 37, POD("d.x/gpu: '1'"), "n2", NULL, false, 3},
    {"not even when it is full", 37, POD("d.x/gpu: '2'"), "n2", "Insufficient d.x/gpu", false, 1},
    {"without devices the refusal is predict's", 37, POD("d.x/gpu: '1'"), "n3", NULL, true, 3},
    {"a class has its implicit name too", 37, POD("deviceclass.resource.kubernetes.io/c: '2'"), "n1", NULL, true, 1},
    {"a name of nobody", 37, POD("d.x/tpu: '1'"), "n1", "Insufficient d.x/tpu", false, 0},
    {"nothing of it asked for", 37, POD("d.x/gpu: '0'"), "n1", NULL, false, 3},
    {"other resources count", 37, POD("d.x/gpu: '1', cpu: '2'"), "n3", "Insufficient cpu", true, 3},
    {"a release without the feature", 35, POD("d.x/gpu: '1'"), "n1", "Insufficient d.x/gpu", false, 1},
    {"a release without the feature, with plugin", 35, POD("d.x/gpu: '1'"), "n2", NULL, false, 1},
};

static void check_gang(const struct snapshot *snapshot, const json_t *pod, size_t n_fit)
{
    for (size_t n = 1; n <= 3; n++) {
        struct gang_group group = {.name = "g", .n_members = n, .pod = pod};
        struct gang_spec spec = {.ns = "ns", .groups = &group, .n_groups = 1};
        struct arena arena = {0};
        struct gang_result result = {0};
        struct error err = {0};

        if (gang_fit(snapshot, &spec, &arena, &result, &err) < 0)
            fail_msg("%s: %s", err.field, err.text);
        assert_int_equal(result.verdict == GANG_FITS, n <= n_fit);
        gang_result_release(&result);
        arena_release(&arena);
    }
}

static void test_nodecheck__case(void **state)
{
    const struct check_case *c = *state;
    struct snapshot *snapshot = cluster_of(cluster, c->release);
    json_t *documents = yaml_documents(c->pod), *pod = json_array_get(documents, 0);
    struct arena arena = {0};
    struct pod_check *check;
    struct error err = {0};
    json_t *spec, *mappings;
    const char *refusal;
    bool has_claim;

    assert_int_equal(pod_check_new(snapshot, pod, &arena, &check, &err), 0);
    refusal = pod_check_refusal(check, c->node, &arena);
    if (c->refusal)
        assert_string_equal(refusal ? refusal : "", c->refusal);
    else
        assert_null(refusal);
    assert_int_equal(pod_check_extended(check, c->node, &arena) != NULL, c->has_claim);
    has_claim = pod_check_extended_json(check, c->node, &spec, &mappings);
    assert_int_equal(has_claim, c->has_claim);
    if (has_claim) {
        assert_int_equal(json_array_size(mappings), 1);
        json_decref(spec);
        json_decref(mappings);
    }
    check_gang(snapshot, pod, c->n_fit);
    arena_release(&arena);
    json_decref(documents);
    snapshot_unref(snapshot);
}

static void test_nodecheck__unknown_nodes_and_foreign_pods(void **state)
{
    struct snapshot *snapshot = cluster_of(cluster, 37);
    json_t *documents = yaml_documents(POD("cpu: '1'") "\n---\n" POD("cpu: x"));
    struct arena arena = {0};
    struct pod_check *check;
    struct error err = {0};

    (void)state;
    assert_int_equal(pod_check_new(snapshot, json_array_get(documents, 1), &arena, &check, &err), -1);
    assert_string_equal(err.field, "spec.containers[0].resources.requests.cpu");
    assert_int_equal(pod_check_new(snapshot, json_array_get(documents, 0), &arena, &check, NULL), 0);
    assert_string_equal(pod_check_refusal(check, "nowhere", &arena), "node(s) were not known");
    assert_null(pod_check_extended(check, "nowhere", &arena));
    arena_release(&arena);
    json_decref(documents);
    snapshot_unref(snapshot);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodecheck__unknown_nodes_and_foreign_pods),
    };
    int failed = RUN_TABLE(test_nodecheck__case, cases);

    return failed + cmocka_run_group_tests_name("nodecheck", tests, NULL, NULL);
}
