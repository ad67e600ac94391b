/* Allocations and bindings that a client writes, as a real control plane was seen to take them. */
#include "test/cluster/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/str.h"

#include "test/support/cmocka.h"

#define RESULT(request, pool, device)                                                                                  \
    "{'request': '" request "', 'driver': 'gpu.example.com', 'pool': '" pool "', 'device': '" device "'}"
#define ON(node)                                                                                                       \
    "'nodeSelector': {'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': "    \
    "['" node "']}]}]}"
#define ALLOCATION(node, device) "{'devices': {'results': [" RESULT("gpu", node, device) "]}, " ON(node) "}"

static const struct allocate_case {
    const char *name, *claim, *allocation;
    enum err_code want;
    const char *field;
} allocate_cases[] = {
    {"a device", "c", ALLOCATION("n2", "gpu-3"), ERR_NONE, ""},
    {"a claim that is not there", "d", ALLOCATION("n2", "gpu-3"), ERR_NOT_FOUND, ""},
    {"no object", "c", "[]", ERR_INVALID, "status.allocation.devices.results"},
    {"no results", "c", "{'devices': {}}", ERR_INVALID, "status.allocation.devices.results"},
    {"another request", "c", "{'devices': {'results': [" RESULT("q", "n2", "gpu-3") "]}}", ERR_INVALID,
     "status.allocation.devices.results[0].request"},
    {"an alternative of a plain request", "c", "{'devices': {'results': [" RESULT("gpu/a", "n2", "gpu-3") "]}}",
     ERR_INVALID, "status.allocation.devices.results[0].request"},
    {"no device", "c", "{'devices': {'results': [{'request': 'r', 'driver': 'd', 'pool': 'p'}]}}", ERR_INVALID,
     "status.allocation.devices.results[0].device"},
    {"a selector of two terms", "c", "{'devices': {'results': []}, 'nodeSelector': {'nodeSelectorTerms': [{}, {}]}}",
     ERR_INVALID, "status.allocation.nodeSelector"},
    {"an alternative", "alternatives", "{'devices': {'results': [" RESULT("r/two", "n2", "gpu-3") "]}}", ERR_NONE, ""},
    {"an alternative that is none", "alternatives", "{'devices': {'results': [" RESULT("r/three", "n2", "gpu-3") "]}}",
     ERR_INVALID, "status.allocation.devices.results[0].request"},
    {"a device that does not exist, which the API server does not know", "c", ALLOCATION("n2", "gpu-9"), ERR_NONE, ""},
};

static void make_claims(struct world *world)
{
    assert_int_equal(world_claim(world, "c", "any", 1), ERR_NONE);
    assert_int_equal(world_create(world, NULL,
                                  "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': "
                                  "'alternatives'}, 'spec': {'devices': {'requests': [{'name': 'r', 'firstAvailable': "
                                  "[{'name': 'one', 'deviceClassName': 'a'}, {'name': 'two', 'deviceClassName': "
                                  "'b'}]}]}}}"),
                     ERR_NONE);
}

static void test_embedded_allocate__answer(void **state)
{
    const struct allocate_case *c = *state;
    struct error err = {0};
    struct world world;

    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    assert_int_equal(world_allocate(&world, &err, "default", c->claim, "%s", c->allocation), c->want);
    assert_string_equal(err.field, c->field);
    world_close(&world);
}

static const json_t *part(struct world *world, const char *claim, const char *a, const char *b)
{
    return json_object_get(json_object_get(world_object(world, claim), a), b);
}

/* The pod goes where the allocation says, although another node comes first; the claim is released with it. */
static void test_embedded_allocate__the_scheduler_respects_it(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    make_claims(&world);
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n2", "gpu-3")), ERR_NONE);
    assert_non_null(
        json_object_get(part(&world, "ResourceClaim/default/c", "status", "allocation"), "allocationTimestamp"));
    assert_int_equal(json_array_size(part(&world, "ResourceClaim/default/c", "metadata", "finalizers")), 1);
    world_pod(&world, "p", "c", false, "10s");
    world_restart(&world);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n2");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n2/gpu-3 for p");
    world_run(&world, 20000);
    assert_null(part(&world, "ResourceClaim/default/c", "status", "allocation"));
    assert_null(part(&world, "ResourceClaim/default/c", "metadata", "finalizers"));
    world_close(&world);
}

static void test_embedded_allocate__twice_the_same_is_done_otherwise_a_conflict(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n2", "gpu-3")), ERR_NONE);
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n2", "gpu-3")), ERR_NONE);
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n2", "gpu-2")), ERR_CONFLICT);
    world_pod(&world, "p", "c", false, "60s");
    world_run(&world, 1000);
    world_delete(&world, "ResourceClaim", "default", "c", NULL); /* waits for its pod */
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n2", "gpu-2")), ERR_CONFLICT);
    world_close(&world);
}

/* Nothing in the API stands against two claims with one device; but kube-scheduler gives it to no third. */
static void test_embedded_allocate__two_claims_may_name_one_device(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    assert_int_equal(world_claim(&world, "d", "any", 1), ERR_NONE);
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n1", "gpu-0")), ERR_NONE);
    assert_int_equal(world_allocate(&world, NULL, "default", "d", "%s", ALLOCATION("n1", "gpu-0")), ERR_NONE);
    world_pod(&world, "p", "c", false, NULL);
    world_pod(&world, "q", "d", false, NULL);
    assert_int_equal(world_claim(&world, "e", "any", 1), ERR_NONE);
    world_pod(&world, "s", "e", false, NULL);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    assert_string_equal(world_state(&world, "Pod/default/q"), "Running@n1");
    assert_string_equal(world_state(&world, "ResourceClaim/default/e"), "n1/gpu-1 for s");
    world_close(&world);
}

/* A driver restarts: what runs runs on, what waits waits until the slice is back. */
static void test_embedded_allocate__a_slice_that_vanishes_and_returns_ends_nothing(void **state)
{
    struct world world;
    json_t *slice;
    char *words;

    (void)state;
    world_open(&world, world_two_nodes, true);
    make_claims(&world);
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n1", "gpu-0")), ERR_NONE);
    world_pod(&world, "p", "c", false, "60s");
    world_run(&world, 1000);
    slice = json_deep_copy(world_object(&world, "ResourceSlice/n1-gpus"));
    for (int i = 1; i <= 2; i++)
        world_command(&world, NULL, "{'deleteObject': {'kind': 'ResourceSlice', 'name': 'n%d-gpus'}}", i);
    world_run(&world, 0);
    assert_null(world_object(&world, "ResourceSlice/n1-gpus"));
    assert_int_equal(world_claim(&world, "d", "any", 4), ERR_NONE);
    assert_int_equal(world_claim(&world, "e", "any", 3), ERR_NONE);
    world_pod(&world, "q", "d", false, NULL);
    world_pod(&world, "s", "e", false, NULL);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    assert_string_equal(world_state(&world, "Pod/default/s"), "Pending");
    json_object_del(json_object_get(slice, "metadata"), "uid");
    json_object_del(json_object_get(slice, "metadata"), "resourceVersion");
    words = json_dumps(slice, JSON_COMPACT);
    world_command(&world, NULL, "{'putObject': %s}", words);
    world_restart(&world);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    assert_string_equal(world_state(&world, "Pod/default/q"), "Pending"); /* four are not left */
    assert_string_equal(world_state(&world, "Pod/default/s"), "Running@n1");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-0 for p");
    free(words);
    json_decref(slice);
    world_close(&world);
}

static void test_embedded_allocate__fails_on_command(void **state)
{
    struct error err = {0};
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    world_command(&world, NULL, "{'fail': 'allocate', 'error': 'denied', 'words': 'not you'}");
    assert_int_equal(world_allocate(&world, &err, "default", "c", "%s", ALLOCATION("n1", "gpu-0")), ERR_DENIED);
    assert_string_equal(err.text, "not you");
    assert_null(part(&world, "ResourceClaim/default/c", "status", "allocation"));
    world_command(&world, NULL, "{'fail': 'allocate', 'error': 'timeout'}"); /* carried out all the same */
    assert_int_equal(world_allocate(&world, NULL, "default", "c", "%s", ALLOCATION("n1", "gpu-0")), ERR_TIMEOUT);
    assert_non_null(part(&world, "ResourceClaim/default/c", "status", "allocation"));
    world_close(&world);
}

/* ---- whom the claim is reserved for ---- */

#define FOR(pod, uid) "[{'resource': 'pods', 'name': '" pod "', 'uid': '" uid "'}]"
#define TO(consumers) "[" ALLOCATION("n2", "gpu-3") ", " consumers "]"

static const struct consumers_case {
    const char *name, *claim, *uid, *both;
    enum err_code want;
    const char *field;
} consumers_cases[] = {
    {"another claim of the name", "c", "who", TO(FOR("p", "u")), ERR_CONFLICT, ""},
    {"a claim that is being deleted", "going", NULL, TO(FOR("p", "u")), ERR_CONFLICT, ""},
    {"an entry without uid", "c", NULL, TO("[{'resource': 'pods', 'name': 'p'}]"), ERR_INVALID,
     "status.reservedFor[0].uid"},
    {"a pod that does not exist, which the API server does not know", "c", NULL, TO(FOR("p", "u")), ERR_NONE, ""},
    {"nobody", "c", NULL, TO("[]"), ERR_NONE, ""},
};

static void test_embedded_allocate__for_consumers(void **state)
{
    const struct consumers_case *c = *state;
    struct error err = {0};
    struct world world;

    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    assert_int_equal(world_claim(&world, "going", "any", 1), ERR_NONE);
    assert_int_equal(world_allocate(&world, NULL, "default", "going", "%s", ALLOCATION("n1", "gpu-1")), ERR_NONE);
    world_pod(&world, "user", "going", false, "60s");
    world_run(&world, 1000);
    world_delete(&world, "ResourceClaim", "default", "going", NULL); /* waits for its pod */
    assert_int_equal(world_allocate_for(&world, &err, c->claim, c->uid, "%s", c->both), c->want);
    assert_string_equal(err.field, c->field);
    if (c->want != ERR_NONE) /* wholly or not at all */
        assert_null(part(&world, "ResourceClaim/default/c", "status", "allocation"));
    world_close(&world);
}

static const char *uid_at(struct world *world, const char *key)
{
    return json_string_value(part(world, key, "metadata", "uid"));
}

/* Once, however often it is asked for; the pod keeps it while it waits, and gives it back when it ends. */
static void test_embedded_allocate__a_pod_with_gates_keeps_it_until_it_ends(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    make_claims(&world);
    world_pod(&world, "p", "c", true, "10s");
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_allocate_for(&world, NULL, "c", uid_at(&world, "ResourceClaim/default/c"),
                                            TO("[{'resource': 'pods', 'name': 'p', 'uid': '%s'}]"),
                                            uid_at(&world, "Pod/default/p")),
                         ERR_NONE);
    world_restart(&world);
    world_run(&world, 60000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n2/gpu-3 for p");
    assert_int_equal(world_ungate(&world, "default", "p"), ERR_NONE);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n2");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n2/gpu-3 for p");
    world_run(&world, 20000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    world_close(&world);
}

static char *consumers(int n)
{
    BUF text = {0};

    for (int i = 0; i < n; i++)
        buf_addf(&text, "%s{'resource': 'pods', 'name': 'p%d', 'uid': 'u%d'}", i ? ", " : "", i, i);
    return buf_take(&text);
}

static void test_embedded_allocate__a_claim_has_room_for_256(void **state)
{
    char *too_many = consumers(257), *many = consumers(256);
    struct error err = {0};
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    assert_int_equal(world_allocate_for(&world, &err, "c", NULL, TO("[%s]"), too_many), ERR_INVALID);
    assert_string_equal(err.field, "status.reservedFor");
    assert_int_equal(world_allocate_for(&world, &err, "c", NULL, TO("[%s]"), many), ERR_NONE);
    free(too_many);
    free(many);
    world_close(&world);
}

/* ---- binding in the scheduler's place ---- */

static const char ours[] = "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p', 'annotations': "
                           "{'embedded.queue.dra/duration': '10s'}}, 'spec': {'schedulerName': 'queued', 'containers': "
                           "[{'name': 'c', 'image': 'i', 'resources': {'claims': [{'name': 'g'}]}}], 'resourceClaims': "
                           "[{'name': 'g', 'resourceClaimName': 'c'}]}}";

static void test_embedded_bind__no_scheduler_looks_at_the_pod_until_it_is_bound(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, true);
    make_claims(&world);
    assert_int_equal(world_create(&world, NULL, "%s", ours), ERR_NONE);
    world_run(&world, 60000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending");
    assert_int_equal(world_bind(&world, "p", "another", "n2"), ERR_CONFLICT);
    assert_int_equal(world_bind(&world, "q", NULL, "n2"), ERR_NOT_FOUND);
    assert_int_equal(world_bind(&world, "p", uid_at(&world, "Pod/default/p"), "n2"), ERR_NONE);
    assert_int_equal(world_bind(&world, "p", NULL, "n1"), ERR_CONFLICT);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending@n2"); /* its claim has no device yet */
    assert_int_equal(world_allocate_for(&world, NULL, "c", NULL, TO("[{'resource': 'pods', 'name': 'p', 'uid': '%s'}]"),
                                        uid_at(&world, "Pod/default/p")),
                     ERR_NONE);
    world_restart(&world);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n2");
    world_run(&world, 20000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    world_close(&world);
}

static void test_embedded_bind__a_pod_with_gates_is_not_bound(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    make_claims(&world);
    world_pod(&world, "p", "c", true, NULL);
    assert_int_equal(world_bind(&world, "p", NULL, "n1"), ERR_INVALID);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedded_allocate__the_scheduler_respects_it),
        cmocka_unit_test(test_embedded_allocate__twice_the_same_is_done_otherwise_a_conflict),
        cmocka_unit_test(test_embedded_allocate__two_claims_may_name_one_device),
        cmocka_unit_test(test_embedded_allocate__a_slice_that_vanishes_and_returns_ends_nothing),
        cmocka_unit_test(test_embedded_allocate__fails_on_command),
        cmocka_unit_test(test_embedded_allocate__a_pod_with_gates_keeps_it_until_it_ends),
        cmocka_unit_test(test_embedded_allocate__a_claim_has_room_for_256),
        cmocka_unit_test(test_embedded_bind__no_scheduler_looks_at_the_pod_until_it_is_bound),
        cmocka_unit_test(test_embedded_bind__a_pod_with_gates_is_not_bound),
    };
    int failed = RUN_TABLE(test_embedded_allocate__answer, allocate_cases);

    failed += RUN_TABLE(test_embedded_allocate__for_consumers, consumers_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
