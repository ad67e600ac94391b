/* Random sequences of requests, failures and kills, with the rules that a cluster must keep checked after every change
 * that is told. The seed of a failing run is printed. */
#include "test/cluster/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/rng.h"

#include "test/support/cmocka.h"

#define N_SEEDS     2000
#define N_RESTARTED 60 /* of them with a state folder and kills */
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

    json_object_foreach((json_t *)(uintptr_t)objects, key,
                        object) if (at(object, "metadata", "uid") &&
                                    strcmp(at(object, "metadata", "uid"), uid) == 0) return object;
    return NULL;
}

/* No device is in two allocations. */
static void check_devices(const json_t *objects)
{
    json_t *taken = json_object(), *object, *result;
    const char *key;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)objects, key, object)
    {
        const json_t *allocation = json_object_get(json_object_get(object, "status"), "allocation");

        json_array_foreach(json_object_get(json_object_get(allocation, "devices"), "results"), i, result)
        {
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

    json_object_foreach((json_t *)(uintptr_t)objects, key, object)
    {
        const json_t *status = json_object_get(object, "status");

        if (strncmp(key, "ResourceClaim/", 14) == 0) {
            const json_t *reserved = json_object_get(status, "reservedFor");

            json_array_foreach(reserved, i, item)
            {
                const json_t *pod = find_uid(objects, json_string_value(json_object_get(item, "uid")));

                if (!pod || is_finished(pod))
                    fail_msg("%s is reserved for a pod that is %s", key, pod ? "finished" : "not there");
            }
            if (json_object_get(status, "allocation") && json_array_size(reserved) == 0)
                fail_msg("%s is allocated for nobody", key);
        }
        if (strncmp(key, "Pod/", 4) != 0 || strcmp(at(object, "status", "phase"), "Running") != 0)
            continue;
        json_array_foreach(json_object_get(json_object_get(object, "spec"), "resourceClaims"), i, item)
        {
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

    json_object_foreach((json_t *)(uintptr_t)objects, key, object)
    {
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
    world_remove(world, kinds[kind], "default", name, NULL);
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
    for (seed_now = 1; seed_now <= N_SEEDS; seed_now++)
        free(run(seed_now, false));
}

static void test_random__rules_hold_over_kills(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= N_RESTARTED; seed_now++)
        free(run(seed_now, true));
}

static void test_random__equal_inputs_give_equal_streams(void **state)
{
    (void)state;
    for (seed_now = 1; seed_now <= 50; seed_now++) {
        char *a = run(seed_now, false), *b = run(seed_now, false);

        assert_string_equal(a, b);
        free(a);
        free(b);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_random__rules_hold_after_every_change, tell_seed),
        cmocka_unit_test_teardown(test_random__rules_hold_over_kills, tell_seed),
        cmocka_unit_test_teardown(test_random__equal_inputs_give_equal_streams, tell_seed),
    };

    return cmocka_run_group_tests_name("embedded_random", tests, NULL, NULL);
}
