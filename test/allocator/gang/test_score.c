/* Which of the nodes that could take a job of one pod gets it, given what jobs usually ask for. */
#include "test/support/cmocka.h"

#include "allocator/gang.h"
#include "test/allocator/cluster.h"

#include "allocator/base/banned.h"

#define BIG_NODE(name)                                                                                                 \
    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name "}, status: {allocatable: {cpu: '64', memory: 64Gi, "   \
    "pods: '99'}}}\n"
#define FOUR "{name: a}, {name: b}, {name: c}, {name: d}"
#define WHOLE_AND_BROKEN                                                                                               \
    BIG_NODE("whole")                                                                                                  \
    BIG_NODE("broken")                                                                                                 \
    CLASS("c") SLICE("whole", FOUR) SLICE("broken", FOUR) HELD("h1", "broken", "a") HELD("h2", "broken", "b")
#define POD "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}"

static const struct score_case {
    const char *name;
    const char *typical; /* a claim that other jobs bring */
    const char *job;     /* the claim of the job */
    const char *node;    /* where it goes */
} score_cases[] = {
    {"one device comes from the broken node when others want four", CLAIM("requests: [" REQUEST("r", ", count: 4") "]"),
     CLAIM("requests: [" REQUEST("r", "") "]"), "broken"},
    {"four devices come from the whole node", CLAIM("requests: [" REQUEST("r", "") "]"),
     CLAIM("requests: [" REQUEST("r", ", count: 4") "]"), "whole"},
    {"others that take all there is do not confuse it", CLAIM("requests: [" REQUEST("r", ", allocationMode: All") "]"),
     CLAIM("requests: [" REQUEST("r", "") "]"), "broken"},
    {"nor do others that ask for more than a claim can hold",
     CLAIM("requests: [" REQUEST("r", ", count: 4294967296") "]"), CLAIM("requests: [" REQUEST("r", "") "]"), "broken"},
    {"nor do others with a claim of nothing", CLAIM("requests: []"), CLAIM("requests: [" REQUEST("r", "") "]"),
     "broken"},
};

static json_t *document(const char *yaml)
{
    json_t *all = yaml_documents(yaml), *first = json_incref(json_array_get(all, 0));

    json_decref(all);
    return first;
}

static void test_score__case(void **state)
{
    const struct score_case *c = *state;
    struct features features = features_default(37);
    struct snapshot *snapshot = cluster_of(WHOLE_AND_BROKEN, 37);
    json_t *pod = document(POD), *claim = document(c->job), *usual = document(c->typical);
    struct gang_typical typical = {1, pod, usual};
    struct gang_claim claims[] = {{.pod_claim = "r", .source = GANG_CLAIM_OWN, .object = claim, .name = "t"}};
    struct gang_group group = {.name = "g", .n_members = 1, .pod = pod, .claims = claims, .n_claims = 1};
    struct gang_spec spec = {.ns = "ns", .groups = &group, .n_groups = 1};
    struct gang_workload *workload;
    struct gang_result result;
    struct error err = {0};
    struct arena arena = {0};

    spec.workload = workload = gang_workload_new(&typical, 1, &features, &err);
    assert_non_null(workload);
    assert_int_equal(gang_fit(snapshot, &spec, &arena, &result, &err), 0);
    assert_int_equal(result.verdict, GANG_FITS);
    assert_string_equal(result.placement->members[0].node, c->node);
    gang_result_release(&result);
    gang_workload_free(workload);
    arena_release(&arena);
    snapshot_unref(snapshot);
    json_decref(pod);
    json_decref(claim);
    json_decref(usual);
}

int main(void)
{
    return RUN_TABLE(test_score__case, score_cases);
}
