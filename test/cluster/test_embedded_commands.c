/* Failures on command, each with what it leads to. */
#include "test/cluster/world.h"

#include <stdio.h>
#include <string.h>

#include "test/support/cmocka.h"

static void running_pair(struct world *world)
{
    world_open(world, world_two_nodes, false);
    world_claim(world, "c", "any", 4);
    world_claim(world, "d", "any", 1);
    world_pod(world, "p", "c", false, "1h");
    world_pod(world, "q", "d", false, "1h");
    world_run(world, 1000);
    assert_string_equal(world_state(world, "Pod/default/p"), "Running@n1");
    assert_string_equal(world_state(world, "Pod/default/q"), "Running@n2");
}

/* ---- requests that fail ---- */

static const struct fail_case {
    const char *name, *command;
    enum err_code first, second; /* of two creations of pods */
    bool is_first_there;
} fail_cases[] = {
    {"a conflict", "{'fail': 'create', 'kind': 'Pod', 'error': 'conflict'}", ERR_CONFLICT, ERR_NONE, false},
    {"a refusal", "{'fail': 'create', 'kind': 'Pod', 'nth': 1, 'error': 'invalid'}", ERR_INVALID, ERR_NONE, false},
    {"the second one", "{'fail': 'create', 'kind': 'Pod', 'nth': 2, 'error': 'unavailable'}", ERR_NONE, ERR_UNAVAILABLE,
     true},
    {"a timeout after which it is there", "{'fail': 'create', 'kind': 'Pod', 'error': 'timeout'}", ERR_TIMEOUT,
     ERR_NONE, true},
    {"a timeout after which it is not", "{'fail': 'create', 'kind': 'Pod', 'error': 'timeout', 'applied': false}",
     ERR_TIMEOUT, ERR_NONE, false},
    {"any kind", "{'fail': 'create', 'error': 'conflict'}", ERR_CONFLICT, ERR_NONE, false},
    {"another kind", "{'fail': 'create', 'kind': 'Service', 'error': 'conflict'}", ERR_NONE, ERR_NONE, true},
    {"another request", "{'fail': 'remove', 'kind': 'Pod', 'error': 'conflict'}", ERR_NONE, ERR_NONE, true},
};

static void test_commands__fail_create(void **state)
{
    const struct fail_case *c = *state;
    struct world world;

    world_open(&world, world_two_nodes, false);
    assert_int_equal(world_command(&world, NULL, "%s", c->command), ERR_NONE);
    assert_int_equal(world_pod(&world, "one", NULL, true, NULL), c->first);
    assert_int_equal(world_pod(&world, "two", NULL, true, NULL), c->second);
    assert_string_equal(world_state(&world, "Pod/default/one"), c->is_first_there ? "Pending gated" : "none");
    world_close(&world);
}

static void test_commands__fail_the_other_requests(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    world_pod(&world, "p", NULL, true, NULL);
    world_command(&world, NULL, "{'fail': 'ungate', 'error': 'conflict'}");
    assert_int_equal(world_ungate(&world, "default", "p"), ERR_CONFLICT);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending gated");
    world_command(&world, NULL, "{'fail': 'ungate', 'kind': 'Pod', 'error': 'timeout'}");
    assert_int_equal(world_ungate(&world, "default", "p"), ERR_TIMEOUT);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending");
    world_command(&world, NULL, "{'fail': 'get', 'kind': 'Pod', 'error': 'unavailable'}");
    assert_int_equal(world_get(&world, "Pod", "default", "p", NULL), ERR_UNAVAILABLE);
    world_command(&world, NULL, "{'fail': 'remove', 'kind': 'Pod', 'error': 'unavailable'}");
    assert_int_equal(world_delete(&world, "Pod", "default", "p", NULL), ERR_UNAVAILABLE);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending");
    assert_int_equal(world_delete(&world, "Pod", "default", "p", NULL), ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/p"), "none");
    world_close(&world);
}

/* ---- nodes ---- */

static void test_commands__a_node_that_goes_down_takes_its_pods_along(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    assert_int_equal(world_command(&world, NULL, "{'nodeDown': 'n1'}"), ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Failed@n1 exit 137 NodeLost");
    assert_string_equal(world_state(&world, "Pod/default/q"), "Running@n2");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    world_pod(&world, "r", "c", false, NULL); /* four devices are only free on n1 */
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/r"), "Pending");
    assert_int_equal(world_command(&world, NULL, "{'nodeUp': 'n1'}"), ERR_NONE);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/r"), "Running@n1");
    world_close(&world);
}

/* Nobody is left there who could end its pods: a deleted one stays until the node is up again, or it is erased. */
static void test_commands__a_silent_node_keeps_its_pods(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    assert_int_equal(world_command(&world, NULL, "{'nodeDown': 'n1', 'silent': true}"), ERR_NONE);
    world_run(&world, 60000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1 going");
    world.cluster->ops->erase(world.cluster, "default", "p", "another", NULL, NULL);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1 going");
    world.cluster->ops->erase(world.cluster, "default", "p", NULL, NULL, NULL);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "none");
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "free");
    world_close(&world);
}

static void test_commands__a_deleted_node_loses_its_pods(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    assert_int_equal(world_command(&world, NULL, "{'deleteObject': {'kind': 'Node', 'name': 'n2'}}"), ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/q"), "Failed@n2 exit 137 NodeLost");
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_close(&world);
}

static void test_commands__a_no_execute_taint_on_a_node_evicts(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    world_command(
        &world, NULL, "%s",
        "{'putObject': {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n2'}, 'spec': {'taints': [{'key': "
        "'k', 'effect': 'NoExecute'}]}}}");
    assert_string_equal(world_state(&world, "Pod/default/q"), "Running@n2 going");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/q"), "none");
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_close(&world);
}

/* ---- devices ---- */

#define GPU0 "'driver': 'gpu.example.com', 'pool': 'n1', 'device': 'gpu-0'"

static void test_commands__a_tainted_device_is_not_given_away(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(world_command(&world, NULL, "%s", "{'deviceTaint': {" GPU0 "}}"), ERR_NONE);
    world_claim(&world, "c", "any", 1);
    world_pod(&world, "p", "c", false, "1h");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-1 for p");
    assert_int_equal(world_command(&world, NULL, "%s", "{'deviceUntaint': {" GPU0 "}}"), ERR_NONE);
    assert_int_equal(world_command(&world, NULL, "%s", "{'deviceUntaint': {" GPU0 "}}"), ERR_NOT_FOUND);
    world_claim(&world, "d", "any", 1);
    world_pod(&world, "q", "d", false, "1h");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/d"), "n1/gpu-0 for q");
    world_close(&world);
}

static void test_commands__a_no_execute_taint_on_a_device_evicts_its_user(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    assert_int_equal(
        world_command(&world, NULL, "%s", "{'deviceTaint': {" GPU0 ", 'effect': 'NoExecute', 'key': 'dead'}}"),
        ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1 going");
    world_run(&world, 100);
    assert_string_equal(world_state(&world, "Pod/default/p"), "none");
    assert_string_equal(world_state(&world, "Pod/default/q"), "Running@n2");
    world_close(&world);
}

static void test_commands__a_toleration_delays_the_eviction(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(
        world_create(&world, NULL, "%s",
                     "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'c'}, "
                     "'spec': {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'any', "
                     "'tolerations': [{'key': 'dead', 'operator': 'Exists', 'effect': 'NoExecute', "
                     "'tolerationSeconds': 30}]}}]}}}"),
        ERR_NONE);
    world_pod(&world, "p", "c", false, "1h");
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "ResourceClaim/default/c"), "n1/gpu-0 for p");
    world_command(&world, NULL, "%s", "{'deviceTaint': {" GPU0 ", 'effect': 'NoExecute', 'key': 'dead'}}");
    world_run(&world, 29999);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_run(&world, 1);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1 going");
    world_close(&world);
}

/* ---- pods ---- */

static void test_commands__killed_pods_end_with_the_code(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    assert_int_equal(world_command(&world, NULL, "{'killPod': 'default/p'}"), ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Failed@n1 exit 137");
    assert_int_equal(world_command(&world, NULL, "{'killPod': 'default/p'}"), ERR_CONFLICT);
    assert_int_equal(world_command(&world, NULL, "{'killPod': 'default/q', 'exitCode': 0}"), ERR_NONE);
    assert_string_equal(world_state(&world, "Pod/default/q"), "Succeeded@n2 exit 0");
    assert_int_equal(world_command(&world, NULL, "{'killPod': 'default/nobody'}"), ERR_NOT_FOUND);
    world_close(&world);
}

static void test_commands__a_foreign_finalizer_holds_an_object(void **state)
{
    struct world world;

    (void)state;
    running_pair(&world);
    world_command(&world, NULL, "%s",
                  "{'putObject': {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p', 'finalizers': ['x/y']}, "
                  "'spec': {'nodeName': 'n1', 'containers': [{'name': 'a', 'image': 'x'}]}}}");
    world_delete(&world, "Pod", "default", "p", NULL);
    world_run(&world, 5000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Failed@n1 exit 143 going");
    world_command(
        &world, NULL, "%s",
        "{'putObject': {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': {'nodeName': 'n1', "
        "'containers': [{'name': 'a', 'image': 'x'}]}}}");
    assert_string_equal(world_state(&world, "Pod/default/p"), "none");
    world_close(&world);
}

/* ---- holding, losing ---- */

static void test_commands__held_scheduling_waits(void **state)
{
    struct world world;

    (void)state;
    world_open(&world, world_two_nodes, false);
    assert_int_equal(world_command(&world, NULL, "{'hold': 'schedule'}"), ERR_NONE);
    world_pod(&world, "p", NULL, false, NULL);
    world_run(&world, 60000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Pending");
    assert_int_equal(world_command(&world, NULL, "{'release': 'schedule'}"), ERR_NONE);
    world_run(&world, 1000);
    assert_string_equal(world_state(&world, "Pod/default/p"), "Running@n1");
    world_close(&world);
}

static void test_commands__a_lost_stream_begins_anew(void **state)
{
    struct world world;
    char *before, *after;

    (void)state;
    running_pair(&world);
    before = world_summary(&world);
    assert_int_equal(world_command(&world, NULL, "{'lose': 'stream'}"), ERR_NONE);
    assert_int_equal(world.n_lost, 1);
    assert_int_equal(world.n_synced, 2);
    after = world_summary(&world);
    assert_string_equal(before, after);
    free(before);
    free(after);
    world_close(&world);
}

/* ---- refusals ---- */

static const struct refused_case {
    const char *name, *command;
    enum err_code want;
    const char *field;
} refused_cases[] = {
    {"no object", "[]", ERR_INVALID, ""},
    {"no command", "{}", ERR_INVALID, ""},
    {"an unknown command", "{'explode': 1}", ERR_INVALID, ""},
    {"a misspelt key", "{'fail': 'create', 'error': 'conflict', 'nht': 2}", ERR_INVALID, "nht"},
    {"an unknown request", "{'fail': 'update', 'error': 'conflict'}", ERR_INVALID, "fail"},
    {"an unknown kind", "{'fail': 'create', 'kind': 'Secret', 'error': 'conflict'}", ERR_INVALID, "kind"},
    {"an unknown error", "{'fail': 'create', 'error': 'oops'}", ERR_INVALID, "error"},
    {"no error", "{'fail': 'create'}", ERR_INVALID, "error"},
    {"the zeroth", "{'fail': 'create', 'error': 'conflict', 'nth': 0}", ERR_INVALID, "nth"},
    {"an unknown node", "{'nodeDown': 'n9'}", ERR_NOT_FOUND, "nodeDown"},
    {"a node that is a number", "{'nodeUp': 1}", ERR_INVALID, "nodeUp"},
    {"a device without pool", "{'deviceTaint': {'driver': 'd', 'device': 'x'}}", ERR_INVALID, "deviceTaint.pool"},
    {"an unknown effect", "{'deviceTaint': {" GPU0 ", 'effect': 'Explode'}}", ERR_INVALID, "deviceTaint.effect"},
    {"a pod without namespace", "{'killPod': 'p'}", ERR_INVALID, "killPod"},
    {"a wrong exit code", "{'killPod': 'default/p', 'exitCode': 256}", ERR_INVALID, "exitCode"},
    {"an object that is not there", "{'deleteObject': {'kind': 'Pod', 'name': 'x'}}", ERR_NOT_FOUND, ""},
    {"an object of no kind", "{'deleteObject': {'name': 'x'}}", ERR_INVALID, "deleteObject.kind"},
    {"an object that breaks a rule", "{'putObject': {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'P'}}}",
     ERR_INVALID, "putObject.metadata.name"},
    {"something else to hold", "{'hold': 'everything'}", ERR_INVALID, "hold"},
    {"something else to lose", "{'lose': 'patience'}", ERR_INVALID, "lose"},
};

static void test_commands__refused(void **state)
{
    const struct refused_case *c = *state;
    struct world world;
    struct error err;

    world_open(&world, world_two_nodes, false);
    if (world_command(&world, &err, "%s", c->command) != c->want)
        fail_msg("%s [%s]: %s", err_code_name(err.code), err.field, err.text);
    if (c->field)
        assert_string_equal(err.field, c->field);
    assert_string_equal(buf_str(&world.stream), "");
    world_close(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands__fail_the_other_requests),
        cmocka_unit_test(test_commands__a_node_that_goes_down_takes_its_pods_along),
        cmocka_unit_test(test_commands__a_silent_node_keeps_its_pods),
        cmocka_unit_test(test_commands__a_deleted_node_loses_its_pods),
        cmocka_unit_test(test_commands__a_no_execute_taint_on_a_node_evicts),
        cmocka_unit_test(test_commands__a_tainted_device_is_not_given_away),
        cmocka_unit_test(test_commands__a_no_execute_taint_on_a_device_evicts_its_user),
        cmocka_unit_test(test_commands__a_toleration_delays_the_eviction),
        cmocka_unit_test(test_commands__killed_pods_end_with_the_code),
        cmocka_unit_test(test_commands__a_foreign_finalizer_holds_an_object),
        cmocka_unit_test(test_commands__held_scheduling_waits),
        cmocka_unit_test(test_commands__a_lost_stream_begins_anew),
    };
    int failed = RUN_TABLE(test_commands__fail_create, fail_cases);

    failed += RUN_TABLE(test_commands__refused, refused_cases);
    return failed + cmocka_run_group_tests_name("embedded_commands", tests, NULL, NULL);
}
