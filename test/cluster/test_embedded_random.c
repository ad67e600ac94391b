/* Random sequences of requests, failures and kills, with the rules that a cluster must keep checked after every change
 * that is told. The seed of a failing run is printed. */
#include "test/cluster/world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/base/rng.h"

#include "test/support/cmocka.h"

/* Seeds of each test in an ordinary run. EMBEDDED_TIMES=K runs K times as many (for a night: 1000). */
#define N_SEEDS     400
#define N_RESTARTED 30 /* of them with a state folder and kills */
#define N_KILLED    20
#define N_TWICE     20
#define N_ODD       100
#define N_STEPS     40

/* ---- rules ---- */

static const char *at(const json_t *object, const char *a, const char *b)
{
    return json_string_value(json_object_get(json_object_get(object, a), b));
}

static bool is_finished(const json_t *pod)
{
    const char *phase = at(pod, "status", "phase");

    return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

static const json_t *find_uid(const json_t *objects, const char *uid)
{
    const char *key;
    json_t *object;

    json_object_foreach ((json_t *)(uintptr_t)objects, key, object)
        if (at(object, "metadata", "uid") && strcmp(at(object, "metadata", "uid"), uid) == 0)
            return object;
    return NULL;
}

/* No device is in two allocations. */
static void check_devices(const json_t *objects)
{
    json_t *taken = json_object(), *object, *result;
    const char *key;
    size_t i;

    json_object_foreach ((json_t *)(uintptr_t)objects, key, object) {
        const json_t *allocation = json_object_get(json_object_get(object, "status"), "allocation");

        json_array_foreach (json_object_get(json_object_get(allocation, "devices"), "results"), i, result) {
            char device[128];

            snprintf(device, sizeof(device), "%s/%s", json_string_value(json_object_get(result, "pool")),
                     json_string_value(json_object_get(result, "device")));
            if (json_object_get(taken, device))
                fail_msg("%s is allocated to %s and to %s", device, key,
                         json_string_value(json_object_get(taken, device)));
            json_object_set_new(taken, device, json_string(key));
        }
    }
    json_decref(taken);
}

/* A pod that runs holds all its claims, allocated on its node; there is no other consumer. Only asked between turns:
 * within one, changes are told one by one. */
static void check_claims(const json_t *objects)
{
    const char *key;
    json_t *object, *item;
    size_t i;

    json_object_foreach ((json_t *)(uintptr_t)objects, key, object) {
        const json_t *status = json_object_get(object, "status");

        if (strncmp(key, "ResourceClaim/", 14) == 0) {
            const json_t *reserved = json_object_get(status, "reservedFor");

            json_array_foreach (reserved, i, item) {
                const json_t *pod = find_uid(objects, json_string_value(json_object_get(item, "uid")));

                if (!pod || is_finished(pod))
                    fail_msg("%s is reserved for a pod that is %s", key, pod ? "finished" : "not there");
            }
            if (json_object_get(status, "allocation") && json_array_size(reserved) == 0)
                fail_msg("%s is allocated for nobody", key);
        }
        if (strncmp(key, "Pod/", 4) != 0 || strcmp(at(object, "status", "phase"), "Running") != 0)
            continue;
        json_array_foreach (json_object_get(json_object_get(object, "spec"), "resourceClaims"), i, item) {
            const char *name = json_string_value(json_object_get(item, "resourceClaimName"));
            char claim[64];
            const json_t *results;

            snprintf(claim, sizeof(claim), "ResourceClaim/default/%s", name);
            results = json_object_get(
                json_object_get(
                    json_object_get(json_object_get(json_object_get(objects, claim), "status"), "allocation"),
                    "devices"),
                "results");
            if (json_array_size(results) == 0)
                fail_msg("%s runs without its claim %s", key, name);
            if (strcmp(json_string_value(json_object_get(json_array_get(results, 0), "pool")),
                       at(object, "spec", "nodeName")) != 0)
                fail_msg("%s runs elsewhere than its claim %s", key, name);
        }
    }
}

/* Nothing outlives its owner, which goes last. */
static void check_owners(const json_t *objects)
{
    const char *key;
    json_t *object;

    json_object_foreach ((json_t *)(uintptr_t)objects, key, object) {
        const json_t *reference =
            json_array_get(json_object_get(json_object_get(object, "metadata"), "ownerReferences"), 0);

        if (reference && !find_uid(objects, json_string_value(json_object_get(reference, "uid"))))
            fail_msg("%s has outlived its owner", key);
    }
}

static void check_each(struct world *world)
{
    if (world->n_synced > 0)
        check_devices(world->objects);
}

static void check_all(struct world *world)
{
    check_devices(world->objects);
    check_claims(world->objects);
    check_owners(world->objects);
}

/* ---- steps ---- */

#define N_NAMES 8

static void create_anchor(struct world *world, size_t i)
{
    world_create(world, NULL,
                 "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a%zu', 'labels': {'" LABEL_JOB
                 "': '%zu'}}}",
                 i % 2, i);
}

static void owned(const struct world *world, json_t *object, uint64_t pick)
{
    const char *anchors[] = {"ConfigMap/default/a0", "ConfigMap/default/a1"};
    const json_t *anchor = json_object_get(world->objects, anchors[pick % 2]);

    if (!anchor || pick % 4 > 1)
        return;
    json_object_set_new(json_object_get(object, "metadata"), "ownerReferences",
                        world_json("[{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': '%s', 'uid': '%s'}]",
                                   at(anchor, "metadata", "name"), at(anchor, "metadata", "uid")));
}

static void create_claim(struct world *world, struct rng *rng, size_t i)
{
    static const char *const classes[] = {"any", "a", "b", "missing"};
    json_t *claim =
        world_json("{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c%zu'}, "
                   "'spec': {'devices': "
                   "{'requests': [{'name': 'r', 'exactly': {'deviceClassName': '%s', 'count': %d}}]}}}",
                   i, classes[rng_below(rng, 12) % 4 % (rng_below(rng, 5) ? 3 : 4)], (int)rng_below(rng, 3) + 1);

    owned(world, claim, rng_next(rng));
    world_create_json(world, claim, NULL);
    json_decref(claim);
}

static void create_pod(struct world *world, struct rng *rng, size_t i)
{
    json_t *pod = world_json(
        "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p%zu', 'annotations': {'" EMBEDDED_DURATION
        "': '%dms', '" EMBEDDED_EXIT_CODE "': '%d'}}, 'spec': {'containers': [{'name': 'a', 'image': 'x', 'resources': "
        "{'requests': {'cpu': '%d'}}}], 'resourceClaims': [{'name': 'c', 'resourceClaimName': 'c%zu'}]}}",
        i, (int)rng_below(rng, 3000), (int)rng_below(rng, 2), (int)rng_below(rng, 8), (size_t)rng_below(rng, N_NAMES));

    if (rng_below(rng, 3) == 0)
        json_object_set_new(json_object_get(pod, "spec"), "schedulingGates", world_json("[{'name': 'g'}]"));
    if (rng_below(rng, 4) == 0)
        json_object_set_new(
            json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0), "resources",
            world_json("{'limits': {'deviceclass.resource.kubernetes.io/a': %d}}", (int)rng_below(rng, 2) + 1));
    if (rng_below(rng, 8) == 0)
        json_object_del(json_object_get(pod, "spec"), "resourceClaims");
    owned(world, pod, rng_next(rng));
    world_create_json(world, pod, NULL);
    json_decref(pod);
}

static void remove_something(struct world *world, struct rng *rng, size_t i)
{
    static const char *const kinds[] = {"Pod", "ResourceClaim", "ConfigMap"};
    size_t kind = rng_below(rng, 3);
    char name[16];

    snprintf(name, sizeof(name), "%c%zu", "pca"[kind], kind == 2 ? i % 2 : i);
    world_delete(world, kinds[kind], "default", name, NULL);
}

static void command_something(struct world *world, struct rng *rng, size_t i)
{
    switch (rng_below(rng, 7)) {
    case 0:
        world_command(world, NULL, "{'nodeDown': 'n%zu'}", i % 2 + 1);
        break;
    case 1:
        world_command(world, NULL, "{'nodeUp': 'n%zu'}", i % 2 + 1);
        break;
    case 2:
        world_command(world, NULL, "{'killPod': 'default/p%zu', 'exitCode': %d}", i, (int)rng_below(rng, 3));
        break;
    case 3:
        world_command(
            world, NULL,
            "{'deviceTaint': {'driver': 'gpu.example.com', 'pool': 'n%zu', 'device': 'gpu-%d', 'effect': '%s'}}",
            i % 2 + 1, (int)rng_below(rng, 4), rng_below(rng, 2) ? "NoExecute" : "NoSchedule");
        break;
    case 4:
        world_command(world, NULL,
                      "{'deviceUntaint': {'driver': 'gpu.example.com', 'pool': 'n%zu', 'device': 'gpu-%d'}}", i % 2 + 1,
                      (int)rng_below(rng, 4));
        break;
    case 5:
        world_command(world, NULL, "{'fail': 'create', 'error': 'timeout', 'nth': %d}", (int)rng_below(rng, 4) + 1);
        break;
    default:
        world_command(world, NULL, "{'%s': 'schedule'}", rng_below(rng, 2) ? "hold" : "release");
        break;
    }
}

static void step(struct world *world, struct rng *rng)
{
    size_t i = rng_below(rng, N_NAMES);
    char name[16];

    switch (rng_below(rng, 10)) {
    case 0:
        create_anchor(world, i);
        break;
    case 1:
    case 2:
        create_claim(world, rng, i);
        break;
    case 3:
    case 4:
        create_pod(world, rng, i);
        break;
    case 5:
        snprintf(name, sizeof(name), "p%zu", i);
        world_ungate(world, "default", name);
        break;
    case 6:
        remove_something(world, rng, i);
        break;
    case 7:
        command_something(world, rng, i);
        break;
    default:
        world_run(world, (int64_t)rng_below(rng, 1000));
        break;
    }
    if (world->keeps_state && rng_below(rng, 8) == 0)
        world_restart(world);
    check_all(world);
}

static char *run(uint64_t seed, bool keeps_state)
{
    struct rng rng = {seed};
    struct world world;
    char *end;

    world_open(&world, world_two_nodes, keeps_state);
    world.each = check_each;
    for (size_t i = 0; i < N_STEPS; i++)
        step(&world, &rng);
    if (world.n_warnings > 0)
        fail_msg("%s", buf_str(&world.warnings));
    end = mem_strdup(buf_str(&world.stream));
    world_close(&world);
    return end;
}

static uint64_t seeds(uint64_t ordinary)
{
    const char *times = getenv("EMBEDDED_TIMES");
    unsigned long long k = times ? strtoull(times, NULL, 10) : 1;

    return ordinary * (k ? k : 1);
}

static uint64_t seed_now; /* for the message of a failing run */

static int tell_seed(void **state)
{
    (void)state;
    print_message("last seed: %llu\n", (unsigned long long)seed_now);
    return 0;
}

static void test_random__rules_hold_after_every_change(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= seeds(N_SEEDS); seed_now++)
        free(run(seed_now, false));
}

static void test_random__rules_hold_over_kills(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= seeds(N_RESTARTED); seed_now++)
        free(run(seed_now, true));
}

/* ---- real kills ---- */

/* SIGKILL at any instruction, also in the middle of writing a turn: what is on the disk keeps the rules. */
static void test_random__a_killed_process_leaves_a_cluster_that_keeps_the_rules(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= seeds(N_KILLED); seed_now++) {
        struct rng rng = {seed_now};
        struct world world;
        pid_t child;

        world_open(&world, world_two_nodes, true);
        world_stop(&world);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            world_resume(&world);
            world.keeps_state = false; /* the one kill comes from outside */
            for (;;)
                step(&world, &rng);
        }
        usleep((useconds_t)(2000 + rng_below(&rng, 150000)));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        world.each = check_each;
        world_resume(&world);
        check_all(&world);
        world_run(&world, 3600000);
        check_all(&world);
        if (world.n_warnings > 0)
            fail_msg("%s", buf_str(&world.warnings));
        world_close(&world);
    }
}

static void test_random__equal_inputs_give_equal_streams(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= seeds(N_TWICE); seed_now++) {
        char *a = run(seed_now, false), *b = run(seed_now, false);

        assert_string_equal(a, b);
        free(a);
        free(b);
    }
}

/* ---- odd objects ---- */

/* Whole objects, with everything in them that the embedded cluster looks at. */
static const char *const whole[] = {
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p0', 'namespace': 'default', 'finalizers': ['x/y'], "
    "'labels': "
    "{'a': 'b'}, 'annotations': {'" EMBEDDED_DURATION "': '1s', '" EMBEDDED_EXIT_CODE
    "': '1', 'embedded.queue.dra/ungated': '2026-01-01T00:00:00Z'}, 'ownerReferences': [{'apiVersion': 'v1', 'kind': "
    "'ConfigMap', 'name': 'a', 'uid': 'u'}]}, 'spec': {'nodeName': 'n1', 'containers': [{'name': 'a', 'image': 'x', "
    "'resources': {'requests': {'cpu': '1'}, 'claims': [{'name': 'c'}]}}], 'initContainers': [{'name': 'i', 'image': "
    "'x'}], "
    "'resourceClaims': [{'name': 'c', 'resourceClaimName': 'c0'}, {'name': 'd', 'resourceClaimTemplateName': 't'}], "
    "'tolerations': [{'key': 'k', 'operator': 'Exists', 'effect': 'NoExecute', 'tolerationSeconds': 3}], "
    "'nodeSelector': {'a': "
    "'b'}, 'activeDeadlineSeconds': 5}, 'status': {'phase': 'Running', 'startTime': '2026-01-01T00:00:01Z', "
    "'conditions': "
    "[{'type': 'PodScheduled', 'status': 'True', 'lastTransitionTime': '2026-01-01T00:00:00.5Z'}], "
    "'containerStatuses': "
    "[{'name': 'a', 'state': {'running': {'startedAt': '2026-01-01T00:00:00+01:00'}}}], 'resourceClaimStatuses': "
    "[{'name': "
    "'d', 'resourceClaimName': 'c0'}]}}",
    "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c0', 'namespace': 'default', "
    "'finalizers': ['resource.kubernetes.io/delete-protection'], 'annotations': "
    "{'resource.kubernetes.io/pod-claim-name': "
    "'c'}}, 'spec': {'devices': {'requests': [{'name': 'r', 'firstAvailable': [{'name': 's', 'deviceClassName': 'any', "
    "'tolerations': [{'operator': 'Exists'}]}]}], 'constraints': [{'matchAttribute': 'a/b', 'requests': ['r']}]}}, "
    "'status': "
    "{'allocation': {'devices': {'results': [{'request': 'r/s', 'driver': 'gpu.example.com', 'pool': 'n1', 'device': "
    "'gpu-0', 'tolerations': [{'operator': 'Exists', 'tolerationSeconds': 1}]}], 'config': []}, 'nodeSelector': "
    "{'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n1']}]}]}}, "
    "'reservedFor': [{'resource': 'pods', 'name': 'p0', 'uid': 'u'}]}}",
    "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n1', 'labels': {'a': 'b'}}, 'spec': {'unschedulable': "
    "false, "
    "'taints': [{'key': 'k', 'value': 'v', 'effect': 'NoExecute', 'timeAdded': '2026-01-01T00:00:00Z'}]}, 'status': "
    "{'allocatable': {'cpu': '4', 'memory': '1Gi', 'pods': '5'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}",
    "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'DeviceTaintRule', 'metadata': {'name': 't'}, 'spec': "
    "{'deviceSelector': "
    "{'driver': 'gpu.example.com', 'pool': 'n1', 'device': 'gpu-0'}, 'taint': {'key': 'k', 'value': 'v', 'effect': "
    "'NoExecute', 'timeAdded': '2026-01-01T00:00:00Z'}}}",
    "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceSlice', 'metadata': {'name': 'n1-gpus'}, 'spec': {'driver': "
    "'gpu.example.com', 'nodeName': 'n1', 'pool': {'name': 'n1', 'generation': 2, 'resourceSliceCount': 1}, 'devices': "
    "[{'name': 'gpu-0', 'attributes': {'type': {'string': 'a'}}, 'taints': [{'key': 'k', 'effect': 'NoExecute'}]}]}}",
    "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaimTemplate', 'metadata': {'name': 't', 'namespace': "
    "'default'}, 'spec': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'devices': {'requests': [{'name': 'r', "
    "'exactly': "
    "{'deviceClassName': 'any'}}]}}}}",
    "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's', 'namespace': 'default'}, 'spec': {'clusterIP': "
    "'None', "
    "'ports': [{'port': 1}]}}",
    "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm', 'namespace': 'default'}, 'data': {'a': 'b'}}",
};

static json_t *odd_value(struct rng *rng)
{
    static const char *const values[] = {
        "null", "true",   "0",  "-1",          "9223372036854775807", "1.5",   "''",  "'x'",
        "[]",   "[null]", "{}", "{'name': 7}", "[[], {}, 'x']",       "'a/b'", "'-'", "'1e400'"};

    return world_json("%s", values[rng_below(rng, ARRAY_SIZE(values))]);
}

/* Change one random place below. */
static void make_odd(json_t *json, struct rng *rng)
{
    size_t n = json_is_object(json) ? json_object_size(json) : json_array_size(json), pick;
    bool is_here = n == 0 || rng_below(rng, 4) == 0;

    if (n == 0)
        return;
    pick = rng_below(rng, n);
    if (json_is_array(json)) {
        if (is_here || !json_is_object(json_array_get(json, pick)))
            json_array_set_new(json, pick, odd_value(rng));
        else
            make_odd(json_array_get(json, pick), rng);
        return;
    }
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at)) {
        json_t *child = json_object_iter_value(at);

        if (pick-- > 0)
            continue;
        if (is_here || (!json_is_object(child) && !json_is_array(child)))
            json_object_iter_set_new(json, at, odd_value(rng));
        else
            make_odd(child, rng);
        return;
    }
}

static void test_random__odd_objects_are_refused_or_do_no_harm(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= seeds(N_ODD); seed_now++) {
        struct rng rng = {seed_now};
        struct world world;
        size_t n_taken = 0;

        world_open(&world, world_two_nodes, seed_now % 10 == 0);
        for (size_t i = 0; i < 30; i++) {
            json_t *command = json_object(), *object = world_json("%s", whole[rng_below(&rng, ARRAY_SIZE(whole))]);

            for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
                make_odd(object, &rng);
            json_object_set_new(command, "putObject", object);
            if (rng_below(&rng, 3) == 0)
                world_create_json(&world, object, NULL);
            else
                n_taken += embedded_command(world.cluster, command, NULL) == 0;
            json_decref(command);
            if (rng_below(&rng, 4) == 0)
                remove_something(&world, &rng, 0);
            world_run(&world, (int64_t)rng_below(&rng, 2000));
        }
        assert_true(n_taken > 0);
        if (world.keeps_state)
            world_restart(&world);
        world_close(&world);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_random__rules_hold_after_every_change, tell_seed),
        cmocka_unit_test_teardown(test_random__rules_hold_over_kills, tell_seed),
        cmocka_unit_test_teardown(test_random__a_killed_process_leaves_a_cluster_that_keeps_the_rules, tell_seed),
        cmocka_unit_test_teardown(test_random__odd_objects_are_refused_or_do_no_harm, tell_seed),
        cmocka_unit_test_teardown(test_random__equal_inputs_give_equal_streams, tell_seed),
    };

    return cmocka_run_group_tests_name("embedded_random", tests, NULL, NULL);
}
