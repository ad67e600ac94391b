/* Pods and claims from creation to their end: gates, scheduling, devices, deletion. */
#include "test/cluster/world.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocator/base/arena.h"
#include "allocator/predict.h"
#include "allocator/snapshot.h"

#include "test/support/cmocka.h"

static void run_pod(struct world *world, const char *pod, const char *claim)
{
    assert_int_equal(world_pod(world, pod, claim, false, NULL), ERR_NONE);
    world_run(world, 1000);
}

/* ---- a pod's course ---- */

static void test_life__a_pod_runs_its_course_at_known_times(void **state)
{
    static const struct {
        int64_t ms;
        const char *pod, *claim;
    } course[] = {
        {0, "Pending gated", "free"},
        {5000, "Pending gated", "free"},
        /* ungated here */
        {5049, "Pending", "free"},
        {5050, "Pending@n1", "n1/gpu-2 for p"},
        {5149, "Pending@n1", "n1/gpu-2 for p"},
        {5150, "Running@n1", "n1/gpu-2 for p"},
        {7149, "Running@n1", "n1/gpu-2 for p"},
        {7150, "Succeeded@n1 exit 0", "free"},
    };
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "c", "b", 1);
    world_pod(&world, "p", "c", true, "2s");
    for (size_t i = 0; i < ARRAY_SIZE(course); i++) {
        world_run(&world, course[i].ms - world_ms(&world));
        assert_string_equal(world_state(&world, "Pod/default/p"), course[i].pod);
        assert_string_equal(world_state(&world, "ResourceClaim/default/c"), course[i].claim);
        if (course[i].ms == 5000)
            assert_int_equal(world_ungate(&world, "default", "p"), ERR_NONE);
    }
    assert_int_equal(world_ungate(&world, "default", "nobody"), ERR_NOT_FOUND);
    world_close(&world);
}

static const char *condition_text(struct world *world, const char *key, const char *type, const char *member)
{
    const json_t *conditions = json_object_get(json_object_get(world_object(world, key), "status"), "conditions");
    size_t i;
    json_t *condition;

    json_array_foreach (conditions, i, condition)
        if (strcmp(json_string_value(json_object_get(condition, "type")), type) == 0)
            return json_string_value(json_object_get(condition, member));
    return NULL;
}

static void test_life__conditions_say_why_a_pod_waits(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_pod(&world, "p", "c", true, NULL);
    assert_string_equal(condition_text(&world, "Pod/default/p", "PodScheduled", "reason"), "SchedulingGated");
    world_ungate(&world, "default", "p");
    assert_null(condition_text(&world, "Pod/default/p", "PodScheduled", "reason"));
    world_run(&world, 100);
    assert_string_equal(condition_text(&world, "Pod/default/p", "PodScheduled", "reason"), "Unschedulable");
    assert_string_equal(condition_text(&world, "Pod/default/p", "PodScheduled", "message"),
                        "0/2 nodes are available: the resource claim for \"c\" does not exist yet.");
    world_claim(&world, "c", "a", 3);
    assert_string_equal(condition_text(&world, "Pod/default/p", "PodScheduled", "message"),
                        "0/2 nodes are available: 2 cannot allocate all claims.");
    world_delete(&world, "ResourceClaim", "default", "c", NULL);
    world_claim(&world, "c", "a", 2);
    world_run(&world, 100);
    assert_string_equal(condition_text(&world, "Pod/default/p", "PodScheduled", "status"), "True");
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    assert_string_equal(condition_text(&world, "Pod/default/p", "Ready", "status"), "True");
    world_close(&world);
}

/* ---- where ---- */

#define POD_WITH(more)                                                                                                 \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'main', "         \
    "'image': 'x' "                                                                                                    \
    "" more "}"

static const struct place_case {
    const char *name, *pod, *want;
} place_cases[] = {
    {"the first node", POD_WITH("}]"), "Running@n1"},
    {"a node selector", POD_WITH("}], 'nodeSelector': {'kubernetes.io/hostname': 'n2'}"), "Running@n2"},
    {"required affinity to a name",
     POD_WITH(
         "}], 'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
         "[{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n2']}]}]}}}"),
     "Running@n2"},
    {"a name given at creation", POD_WITH("}], 'nodeName': 'n2'"), "Running@n2"},
    {"no such label", POD_WITH("}], 'nodeSelector': {'kubernetes.io/hostname': 'n3'}"), "Pending"},
    {"too much CPU", POD_WITH(", 'resources': {'requests': {'cpu': '17'}}}]"), "Pending"},
    {"as much CPU as there is", POD_WITH(", 'resources': {'requests': {'cpu': '16'}}}]"), "Running@n1"},
    {"an unknown resource", POD_WITH(", 'resources': {'requests': {'example.com/x': '1'}}}]"), "Pending"},
};

static void test_life__place(void **state)
{
    const struct place_case *c = *state;
    struct world world;
    struct error err;

    world_open(&world, world_two_nodes, false);
    if (world_create(&world, &err, "%s}", c->pod) != ERR_NONE)
        fail_msg("%s: %s", err.field, err.text);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), c->want);
    world_close(&world);
}

static void test_life__tainted_and_cordoned_nodes_are_left_out(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(
        world_command(&world, NULL, "%s",
                      "{'putObject': {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n1'}, 'spec': "
                      "{'unschedulable': true}}}"),
        ERR_NONE);
    assert_int_equal(
        world_command(&world, NULL, "%s",
                      "{'putObject': {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n2'}, 'spec': "
                      "{'taints': [{'key': 'k', 'value': 'v', 'effect': 'NoSchedule'}]}}}"),
        ERR_NONE);
    run_pod(&world, "p", NULL);
    assert_string_equal(
        condition_text(&world, "Pod/default/p", "PodScheduled", "message"),
        "0/2 nodes are available: 1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable.");
    assert_int_equal(world_command(&world, NULL, "%s",
                                   "{'putObject': {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n1'}}}"),
                     ERR_NONE);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_close(&world);
}

/* ---- devices ---- */

static void test_life__devices_go_in_order_and_come_back(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    for (int i = 0; i < 5; i++) {
        char claim[8], pod[8];

        snprintf(claim, sizeof(claim), "c%d", i);
        snprintf(pod, sizeof(pod), "p%d", i);
        world_claim(&world, claim, "any", 2);
        world_pod(&world, pod, claim, false, i == 1 ? "3s" : "10s");
    }
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c0"), "n1/gpu-0 n1/gpu-1 for p0");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c1"), "n1/gpu-2 n1/gpu-3 for p1");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c3"), "n2/gpu-2 n2/gpu-3 for p3");
    assert_string_equal(world_state(&world, "Pod/default/p4"), "Pending");
    world_run(&world, 2149);
    assert_string_equal(world_state(&world, "Pod/default/p1"), "Running@n1");
    world_run(&world, 1); /* p1 ends, and p4 gets its devices at once */
    assert_string_equal(world_state(&world, "Pod/default/p1"), "Succeeded@n1 exit 0");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c1"), "free");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c4"), "n1/gpu-2 n1/gpu-3 for p4");
    world_close(&world);
}

static void test_life__a_claim_shared_by_pods_keeps_them_together(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "c", "any", 1);
    world_pod(&world, "p", "c", false, "3s");
    world_pod(&world, "q", "c", false, "6s");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-0 for p,q");
    world_run(&world, 3000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-0 for q");
    world_run(&world, 3000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    world_close(&world);
}

static void test_life__a_pod_that_was_placed_by_hand_waits_for_its_claim(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "c", "any", 1);
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'nodeName': 'n1', "
                     "'containers': [{'name': 'a', 'image': 'x'}], 'resourceClaims': [{'name': 'c', "
                     "'resourceClaimName': 'c'}]}}"),
        ERR_NONE);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending@n1");
    run_pod(&world, "q", "c"); /* allocates it */
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-0 for q,p");
    world_close(&world);
}

static void test_life__the_allocation_is_what_predict_says(void **state)
{
    struct world world;
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct arena arena = {0};
    struct prediction prediction = {0};
    struct claim *claim;
    const json_t *object;
    struct snapshot *snapshot;
    json_t *wanted, *got;
    const char *key;
    json_t *value;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "before", "any", 3);
    run_pod(&world, "first", "before");
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c'}, "
                     "'spec': {'devices': {'requests': [{'name': 'r', 'firstAvailable': [{'name': 'many', "
                     "'deviceClassName': 'a', 'count': 3}, {'name': 'few', 'deviceClassName': 'b', 'count': "
                     "2}]}]}}}"),
        ERR_NONE);
    object = world_object(&world, "ResourceClaim/default/c");
    json_object_foreach (world.objects, key, value)
        if (strncmp(key, "ConfigMap", 9) != 0 && strncmp(key, "Service", 7) != 0)
            assert_int_equal(snapshot_builder_put(builder, value, NULL), 0);
    snapshot = snapshot_builder_build(builder);
    assert_int_equal(claim_parse(object, &features, true, &arena, &claim, NULL), 0);
    predict(snapshot, "n1", (const struct claim *const[]){claim}, 1, 0, &arena, &prediction);
    assert_int_equal(prediction.verdict, PREDICT_NO_FIT);
    predict(snapshot, "n2", (const struct claim *const[]){claim}, 1, 0, &arena, &prediction);
    assert_int_equal(prediction.verdict, PREDICT_ALLOCATED);
    wanted = allocation_to_json(&prediction.allocations[0], NULL, NULL);
    run_pod(&world, "p", "c");
    got = json_deep_copy(
        json_object_get(json_object_get(world_object(&world, "ResourceClaim/default/c"), "status"), "allocation"));
    assert_int_equal(json_object_del(got, "allocationTimestamp"), 0);
    assert_true(json_equal(got, wanted));
    json_decref(got);
    json_decref(wanted);
    snapshot_unref(snapshot);
    snapshot_builder_free(builder);
    arena_release(&arena);
    world_close(&world);
}

static void test_life__the_better_alternative_decides_between_nodes(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "before", "a", 2); /* takes n1's a */
    run_pod(&world, "first", "before");
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c'}, "
                     "'spec': {'devices': {'requests': [{'name': 'r', 'firstAvailable': [{'name': 'x', "
                     "'deviceClassName': 'a'}, {'name': 'y', 'deviceClassName': 'b'}]}]}}}"),
        ERR_NONE);
    run_pod(&world, "p", "c");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n2/gpu-0 for p");
    world_close(&world);
}

/* ---- deletion ---- */

static void test_life__a_claim_stays_until_no_pod_uses_it(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_claim(&world, "c", "any", 1);
    run_pod(&world, "p", "c");
    assert_int_equal(world_delete(&world, "ResourceClaim", "default", "c", NULL), ERR_NONE);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-0 for p going");
    buf_clear(&world.stream);
    assert_int_equal(world_delete(&world, "Pod", "default", "p", NULL), ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1 going");
    world_run(&world, 1000);
    assert_string_equal(buf_str(&world.stream), "PUT Pod/default/p Running@n1 going\n"
                                                "PUT Pod/default/p Failed@n1 exit 143 going\n"
                                                "GONE Pod/default/p\n"
                                                "PUT ResourceClaim/default/c free going\n"
                                                "GONE ResourceClaim/default/c\n");
    world_close(&world);
}

static void test_life__a_foreground_deletion_takes_the_owner_last(void **state)
{
    struct world world;
    const char *uid;
    char *summary;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_create(&world, NULL, "%s",
                 "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'anchor', 'labels': {'" LABEL_JOB
                 "': '1'}}}");
    uid = json_string_value(
        json_object_get(json_object_get(world_object(&world, "ConfigMap/default/anchor"), "metadata"), "uid"));
    for (int i = 0; i < 3; i++) {
        char owners[200];

        snprintf(owners, sizeof(owners),
                 "'ownerReferences': [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'anchor', 'uid': '%s'}]", uid);
        assert_int_equal(
            world_create(
                &world, NULL,
                "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c%d', %s}, "
                "'spec': {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any'}}]}}}",
                i, owners),
            ERR_NONE);
        assert_int_equal(world_create(&world, NULL,
                                      "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p%d', %s}, 'spec': "
                                      "{'containers': [{'name': 'a', 'image': 'x'}], 'resourceClaims': [{'name': 'c', "
                                      "'resourceClaimName': 'c%d'}]%s}}",
                                      i, owners, i, i == 2 ? ", 'schedulingGates': [{'name': 'g'}]" : ""),
                         ERR_NONE);
    }
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p1"), "Running@n1");
    assert_int_equal(world_delete(&world, "ConfigMap", "default", "anchor", NULL), ERR_NONE);
    assert_string_equal(world_state(&world, "ConfigMap/default/anchor"), "there going");
    assert_string_equal(world_state(&world, "Pod/default/p2"), "none"); /* was not bound */
    assert_string_equal(world_state(&world, "ResourceClaim/default/c2"), "none");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c0"), "n1/gpu-0 for p0 going");
    world_run(&world, 99);
    assert_string_equal(world_state(&world, "Pod/default/p0"), "Running@n1 going");
    world_run(&world, 1);
    summary = world_summary(&world);
    assert_string_equal(summary, "");
    free(summary);
    assert_string_equal(buf_str(&world.stream) + world.stream.len - strlen("GONE ConfigMap/default/anchor\n"),
                        "GONE ConfigMap/default/anchor\n");
    world_close(&world);
}

static void test_life__what_names_an_owner_that_is_not_there_is_collected(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm', 'labels': {'" LABEL_JOB
                     "': '1'}, 'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'x', 'uid': "
                     "'nobody'}]}}"),
        ERR_NONE);
    assert_string_equal(buf_str(&world.stream), "PUT ConfigMap/default/m there\nGONE ConfigMap/default/m\n");
    world_close(&world);
}

static void test_life__a_second_owner_keeps_what_the_first_leaves(void **state)
{
    struct world world;
    char uids[2][48];

    (void)state;
    world_open(&world, world_two_nodes, false);
    for (int i = 0; i < 2; i++) {
        char key[40];

        assert_int_equal(world_create(&world, NULL,
                                      "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm%d', 'labels': "
                                      "{'" LABEL_JOB "': '1'}}}",
                                      i),
                         ERR_NONE);
        snprintf(key, sizeof(key), "ConfigMap/default/m%d", i);
        snprintf(uids[i], sizeof(uids[i]), "%s",
                 json_string_value(json_object_get(json_object_get(world_object(&world, key), "metadata"), "uid")));
    }
    assert_int_equal(
        world_create(&world, NULL,
                     "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p', 'ownerReferences': "
                     "[{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'm0', 'uid': '%s'}, {'apiVersion': "
                     "'v1', 'kind': 'ConfigMap', 'name': 'm1', 'uid': '%s'}]}, 'spec': {'schedulingGates': "
                     "[{'name': 'g'}], 'containers': [{'name': 'a', 'image': 'x'}]}}",
                     uids[0], uids[1]),
        ERR_NONE);
    world_delete(&world, "ConfigMap", "default", "m0", NULL);
    assert_string_equal(world_state(&world, "ConfigMap/default/m0"), "none");
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending gated");
    world_delete(&world, "ConfigMap", "default", "m1", NULL);
    assert_string_equal(world_state(&world, "ConfigMap/default/m1"), "none");
    assert_string_equal(world_state(&world, "Pod/default/p"), "none");
    world_close(&world);
}

static void test_life__claims_are_generated_from_templates_and_end_with_their_pod(void **state)
{
    struct world world;
    char *summary;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'containers': "
                     "[{'name': 'a', 'image': 'x'}], 'resourceClaims': [{'name': 'gpu', "
                     "'resourceClaimTemplateName': 't'}]}}"),
        ERR_NONE);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending");
    assert_int_equal(world_create(&world, NULL, "%s",
                                  "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaimTemplate', 'metadata': "
                                  "{'name': 't'}, 'spec': {'spec': {'devices': {'requests': [{'name': 'r', 'exactly': "
                                  "{'deviceClassName': 'any'}}]}}}}"),
                     ERR_NONE);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    summary = world_summary(&world);
    assert_non_null(strstr(summary, "ResourceClaim/default/p-gpu-"));
    assert_non_null(strstr(summary, " n1/gpu-0 for p\n"));
    free(summary);
    world_run(&world, 20000);
    summary = world_summary(&world);
    assert_string_equal(summary, "Pod/default/p Succeeded@n1 exit 0\n");
    free(summary);
    world_close(&world);
}

static void test_life__a_deadline_ends_a_pod(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_create(&world, NULL, "%s",
                 "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p', 'annotations': {'" EMBEDDED_DURATION
                 "': '1h'}}, 'spec': {'activeDeadlineSeconds': 60, 'containers': [{'name': 'a', 'image': 'x'}]}}");
    world_run(&world, 60149);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_run(&world, 1);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Failed@n1 exit 143 DeadlineExceeded");
    world_close(&world);
}

static const struct duration_case {
    const char *name;
    int64_t want_ms;
} duration_cases[] = {
    {"0", 0}, {"250ms", 250}, {"1.5s", 1500}, {"2m", 120000}, {"1h30m", 5400000}, {"1m0.5s", 60500}, {".5s", 500},
};

static void test_life__duration(void **state)
{
    const struct duration_case *c = *state;
    struct world world;

    world_open(&world, world_two_nodes, false);
    world_pod(&world, "p", NULL, false, c->name);
    world_run(&world, 150 + c->want_ms - 1);
    assert_string_equal(world_state(&world, "Pod/default/p"), c->want_ms ? "Running@n1" : "Pending@n1");
    world_run(&world, 1);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Succeeded@n1 exit 0");
    world_close(&world);
}

/* ---- real time ---- */

struct real {
    struct event_base *base;
    bool has_ended;
};

static void on_real_change(void *ctx, enum cluster_change change, const json_t *object)
{
    struct real *real = ctx;
    const char *phase = json_string_value(json_object_get(json_object_get(object, "status"), "phase"));

    (void)change;
    if (phase && strcmp(phase, "Succeeded") == 0) {
        real->has_ended = true;
        event_base_loopbreak(real->base);
    }
}

static void test_life__a_cluster_in_real_time_does_the_same(void **state)
{
    struct real real = {.base = event_base_new()};
    struct clock *clock = clock_real_new(real.base);
    struct cluster_listener listener = {.ctx = &real, .changed = on_real_change};
    struct embedded_options options = {.schedule_delay_ms = 2, .start_delay_ms = 2};
    char path[] = "/tmp/test-real-XXXXXX";
    struct cluster *cluster;
    struct error err = {0};
    int fd = mkstemp(path);
    json_t *pod;

    (void)state;
    assert_true(fd >= 0 && write(fd, world_two_nodes, strlen(world_two_nodes)) == (ssize_t)strlen(world_two_nodes));
    close(fd);
    options.manifests = path;
    if (embedded_new(&options, clock, NULL, NULL, &cluster, &err) < 0)
        fail_msg("%s", err.text);
    cluster->ops->start(cluster, &listener);
    pod = world_json("{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p', 'annotations': {'" EMBEDDED_DURATION
                     "': '5ms'}}, 'spec': {'containers': [{'name': 'a', 'image': 'x'}]}}");
    cluster->ops->create(cluster, pod, NULL, NULL);
    json_decref(pod);
    event_base_dispatch(real.base);
    assert_true(real.has_ended);
    cluster->ops->free(cluster);
    clock_free(clock);
    event_base_free(real.base);
    unlink(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life__a_pod_runs_its_course_at_known_times),
        cmocka_unit_test(test_life__conditions_say_why_a_pod_waits),
        cmocka_unit_test(test_life__tainted_and_cordoned_nodes_are_left_out),
        cmocka_unit_test(test_life__devices_go_in_order_and_come_back),
        cmocka_unit_test(test_life__a_claim_shared_by_pods_keeps_them_together),
        cmocka_unit_test(test_life__a_pod_that_was_placed_by_hand_waits_for_its_claim),
        cmocka_unit_test(test_life__the_allocation_is_what_predict_says),
        cmocka_unit_test(test_life__the_better_alternative_decides_between_nodes),
        cmocka_unit_test(test_life__a_claim_stays_until_no_pod_uses_it),
        cmocka_unit_test(test_life__a_foreground_deletion_takes_the_owner_last),
        cmocka_unit_test(test_life__what_names_an_owner_that_is_not_there_is_collected),
        cmocka_unit_test(test_life__a_second_owner_keeps_what_the_first_leaves),
        cmocka_unit_test(test_life__claims_are_generated_from_templates_and_end_with_their_pod),
        cmocka_unit_test(test_life__a_deadline_ends_a_pod),
        cmocka_unit_test(test_life__a_cluster_in_real_time_does_the_same),
    };
    int failed = RUN_TABLE(test_life__place, place_cases);

    failed += RUN_TABLE(test_life__duration, duration_cases);
    return failed + cmocka_run_group_tests_name("embedded_life", tests, NULL, NULL);
}
