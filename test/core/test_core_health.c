/* What is told of members that do not start, or do not run well. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const struct stage_job train = {.name = "train", .members = 2, .gpus = 1, .seconds = 60, .retries = 1};

static void must_command(struct stage *stage, const char *json)
{
    struct error err = {0};

    if (stage_command(stage, json, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value ? value : "";
}

static void check_explained(struct stage *stage, const char *layer, const char *cause, const char *words)
{
    json_t *view = core_explain(stage->core, &stage_admin, "train", NULL);

    assert_non_null(view);
    assert_string_equal(text(view, "layer"), layer);
    assert_string_equal(text(view, "cause"), cause);
    if (!strstr(text(view, "summary"), words))
        fail_msg("%s", text(view, "summary"));
    json_decref(view);
}

/* Put a pod with this in its status, as a kubelet would write it. */
static void put_status(struct stage *stage, const char *pod, json_t *more)
{
    char key[80], *words;
    json_t *object, *put;

    snprintf(key, sizeof(key), "Pod/default/%s", pod);
    object = json_deep_copy(json_object_get(stage->relay.objects, key));
    assert_non_null(object);
    json_object_update(json_object_get(object, "status"), more);
    put = json_pack("{s:o}", "putObject", object);
    words = json_dumps(put, JSON_COMPACT);
    must_command(stage, words);
    stage_settle(stage);
    free(words);
    json_decref(put);
    json_decref(more);
}

static size_t count_events(struct stage *stage, const char *type, const char *words)
{
    json_t *events = core_events(stage->core, &stage_admin, "train", 0, 1000, NULL), *event;
    size_t i, n = 0;

    json_array_foreach (json_object_get(events, "items"), i, event)
        n += strcmp(text(event, "type"), type) == 0 && strstr(text(event, "detail"), words) != NULL;
    json_decref(events);
    return n;
}

static void test_core_health__what_is_being_created(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    must_command(&stage, "{\"fail\": \"create\", \"kind\": \"ResourceClaim\", \"error\": \"unavailable\"}");
    stage_must_start(&stage, &train);
    stage_settle(&stage);
    check_explained(&stage, "launch", "api", "ResourceClaim train-1-1-w-0-g: it could not be created yet");
    stage_run(&stage, 10000);
    check_explained(&stage, "running", "", "all members run");
    stage_close(&stage);
}

static void test_core_health__the_layer_that_holds_a_launch_up(void **state)
{
    struct stage stage;
    json_t *view;

    (void)state;
    stage_open(&stage, NULL);
    must_command(&stage, "{\"hold\": \"schedule\"}");
    stage_must_start(&stage, &train);
    stage_run(&stage, 1000);
    check_explained(&stage, "launch", "scheduler",
                    "Pod train-1-1-w-0: kube-scheduler has not said anything of it yet (and others)");
    put_status(&stage, "train-1-1-w-0",
               json_pack("{s:[{s:s, s:s, s:s}]}", "conditions", "type", "PodScheduled", "status", "False", "message",
                         "0/2 nodes are available: 2 Insufficient cpu."));
    check_explained(&stage, "launch", "scheduler", "0/2 nodes are available: 2 Insufficient cpu.");
    view = stage_view(&stage, "train");
    assert_int_equal(json_array_size(json_object_get(view, "troubles")), 2);
    json_decref(view);
    stage_run(&stage, 300000);
    assert_int_equal(count_events(&stage, "Ending", "did not start in time: 0/2 nodes are available"), 1);
    stage_close(&stage);
}

static json_t *sick(void)
{
    return json_pack("{s:[{s:s, s:[{s:s, s:[{s:s, s:s, s:s}]}]}]}", "containerStatuses", "name", "c",
                     "allocatedResourcesStatus", "name", "claim:g/r", "resources", "resourceID", "gpu-0", "health",
                     "Unhealthy", "message", "ECC");
}

static void test_core_health__a_sick_device_is_told_once(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &train);
    stage_run(&stage, 1000);
    put_status(&stage, "train-1-1-w-1", sick());
    put_status(&stage, "train-1-1-w-1", sick());
    stage_restart(&stage);
    put_status(&stage, "train-1-1-w-1", sick());
    assert_int_equal(count_events(&stage, "DeviceUnhealthy",
                                  "member train-1-1-w-1: device gpu-0 (claim:g/r) of container c is unhealthy: ECC"),
                     1);
    check_explained(&stage, "running", "device", "Pod train-1-1-w-1: device gpu-0");
    assert_string_equal(stage_state(&stage, "train"), "Running");
    stage_close(&stage);
}

/* It is named, and costs no retry. */
static void test_core_health__an_eviction_by_a_taint_of_a_device(void **state)
{
    struct stage stage;
    json_t *view;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &train);
    stage_run(&stage, 1000);
    must_command(&stage, "{\"deviceTaint\": {\"driver\": \"gpu.example.com\", \"pool\": \"n1\", \"device\": \"gpu-0\", "
                         "\"effect\": \"NoExecute\", \"key\": \"broken\"}}");
    stage_run(&stage, 20000);
    assert_int_equal(count_events(&stage, "Ending", "was lost: evicted because of a taint of its device"), 1);
    view = stage_view(&stage, "train");
    assert_int_equal(json_integer_value(json_object_get(view, "retriesLeft")), 1);
    assert_string_equal(text(view, "state"), "Running");
    json_decref(view);
    stage_close(&stage);
}

/* As a real kubelet tells it: the containers of a deleted pod end with 143 while the pod is still there. */
static void test_core_health__an_end_after_a_deletion_costs_no_retry(void **state)
{
    struct stage stage;
    json_t *view;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &train);
    stage_run(&stage, 1000);
    put_status(&stage, "train-1-1-w-0",
               json_pack("{s:s, s:[{s:s, s:s, s:s, s:s}], s:[{s:s, s:{s:{s:i}}}]}", "phase", "Failed", "conditions",
                         "type", "DisruptionTarget", "status", "True", "reason", "DeletionByTaintManager", "message",
                         "node is on fire", "containerStatuses", "name", "c", "state", "terminated", "exitCode", 143));
    stage_run(&stage, 10000);
    assert_int_equal(
        count_events(&stage, "Ending", "was lost: evicted because of a taint of its node: node is on fire"), 1);
    view = stage_view(&stage, "train");
    assert_int_equal(json_integer_value(json_object_get(view, "retriesLeft")), 1);
    json_decref(view);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_health__what_is_being_created),
        cmocka_unit_test(test_core_health__the_layer_that_holds_a_launch_up),
        cmocka_unit_test(test_core_health__a_sick_device_is_told_once),
        cmocka_unit_test(test_core_health__an_eviction_by_a_taint_of_a_device),
        cmocka_unit_test(test_core_health__an_end_after_a_deletion_costs_no_retry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
