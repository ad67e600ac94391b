/* Asking an autoscaler for nodes: when, with what, what is told of it, and that nothing of it is left. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queued/lifecycle/ask_objects.h"
#include "test/support/stage.h"

#define CLASS   "check-capacity.autoscaling.x-k8s.io"
#define REQUEST "ProvisioningRequest/default/large-1-ask-1"
#define SECOND  "ProvisioningRequest/default/large-1-ask-2"

/* Three nodes of two devices; the cluster has two. */
static const struct stage_job large = {.name = "large", .members = 3, .gpus = 2, .seconds = 30};
static const struct stage_job next = {.name = "next", .members = 3, .gpus = 2, .seconds = 30};

static const char more[] =
    "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n3\"}, \"spec\": {}, \"status\": "
    "{\"allocatable\": {\"cpu\": \"16\", \"memory\": \"64Gi\", \"pods\": \"20\"}, \"conditions\": [{\"type\": "
    "\"Ready\", \"status\": \"True\"}]}}";
static const char more_devices[] =
    "{\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"ResourceSlice\", \"metadata\": {\"name\": \"n3-gpus\"}, "
    "\"spec\": {\"driver\": \"gpu.example.com\", \"nodeName\": \"n3\", \"pool\": {\"name\": \"n3\", \"generation\": 1, "
    "\"resourceSliceCount\": 1}, \"devices\": [{\"name\": \"gpu-0\", \"attributes\": {\"node\": {\"string\": \"n3\"}, "
    "\"index\": {\"int\": 0}}}, {\"name\": \"gpu-1\", \"attributes\": {\"node\": {\"string\": \"n3\"}, \"index\": "
    "{\"int\": 1}}}]}}";

static void command(struct stage *stage, const char *json)
{
    struct error err = {0};

    if (stage_command(stage, json, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    stage_settle(stage);
}

static void put(struct stage *stage, const char *json)
{
    BUF text = {0};

    buf_addf(&text, "{\"putObject\": %s}", json);
    command(stage, buf_str(&text));
}

static void grow(struct stage *stage)
{
    put(stage, more);
    put(stage, more_devices);
}

static void begin(struct stage *stage)
{
    stage_open_with(stage, &(struct stage_options){.provisioning_class = CLASS});
}

static bool exists(const struct stage *stage, const char *key)
{
    return json_object_get(stage->relay.objects, key) != NULL;
}

/* As the autoscaler writes it. */
static void put_condition(struct stage *stage, const char *key, const char *type, const char *message)
{
    json_t *object = json_deep_copy(json_object_get(stage->relay.objects, key)), *status, *list;
    char *text;

    if (!object)
        fail_msg("there is no %s", key);
    status = json_object_get(object, "status");
    if (!status) {
        status = json_object();
        json_object_set_new(object, "status", status);
    }
    list = json_object_get(status, "conditions");
    if (!list) {
        list = json_array();
        json_object_set_new(status, "conditions", list);
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "type", type, "status", "True", "reason", "Because",
                                          "message", message));
    text = json_dumps(object, JSON_COMPACT);
    put(stage, text);
    free(text);
    json_decref(object);
}

static void check_asked(struct stage *stage, const char *job, const char *state, const char *detail)
{
    json_t *view = stage_view(stage, job), *explanation = core_explain(stage->core, &stage_admin, job, NULL);
    const json_t *asked = json_object_get(view, "askedForNodes");

    if (state) {
        assert_non_null(asked);
        assert_string_equal(json_string_value(json_object_get(asked, "state")), state);
        assert_string_equal(json_string_value(json_object_get(asked, "detail")), detail);
        assert_true(json_equal(asked, json_object_get(explanation, "askedForNodes")));
    } else {
        assert_null(asked);
        assert_null(json_object_get(explanation, "askedForNodes"));
    }
    json_decref(explanation);
    json_decref(view);
}

static void check_state(struct stage *stage, const char *job, const char *state)
{
    assert_string_equal(stage_state(stage, job), state);
}

static void act(struct stage *stage, const char *job, enum job_action action)
{
    struct stage_answer answer = stage_action(stage, job, action);

    assert_int_equal(answer.err.code, ERR_NONE);
    stage_answer_release(&answer);
    stage_run(stage, 1000);
}

/* ---- when ---- */

static void test_core_ask__nothing_is_asked_for_unless_that_is_wanted(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &large);
    stage_run(&stage, 60000);
    check_state(&stage, "large", "Pending");
    check_asked(&stage, "large", NULL, NULL);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static void test_core_ask__for_a_gang_that_lacks_nodes(void **state)
{
    struct stage stage;
    const json_t *spec;
    json_t *want = json_pack("{s:s, s:[{s:{s:s}, s:i}]}", "provisioningClassName", CLASS, "podSets", "podTemplateRef",
                             "name", "large-1-ask-1-w", "count", 3);

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    spec = json_object_get(json_object_get(stage.relay.objects, REQUEST), "spec");
    assert_true(json_equal(spec, want));
    assert_true(exists(&stage, "ConfigMap/default/large-1-ask-1"));
    assert_int_equal(json_integer_value(json_object_get(stage.relay.created, "PodTemplate/default/large-1-ask-1-w")),
                     1);
    assert_int_equal(
        json_integer_value(json_object_get(stage.relay.created, "ResourceClaimTemplate/default/large-1-ask-1-w-g")), 1);
    check_asked(&stage, "large", "asked", "");
    stage_run(&stage, 600000); /* reconciliation leaves it alone, and it is asked once */
    assert_true(exists(&stage, REQUEST));
    assert_int_equal(relay_n_ours(&stage.relay), 2);
    json_decref(want);
    stage_close(&stage);
}

static void test_core_ask__for_one_job_of_a_queue_at_a_time(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_must_start(&stage, &next);
    stage_run(&stage, 1000);
    check_asked(&stage, "large", "asked", "");
    check_asked(&stage, "next", NULL, NULL);
    act(&stage, "large", JOB_ACTION_CANCEL);
    assert_false(exists(&stage, REQUEST));
    check_asked(&stage, "next", "asked", "");
    assert_int_equal(relay_n_ours(&stage.relay), 2);
    stage_close(&stage);
}

static void test_core_ask__not_for_more_than_the_quota(void **state)
{
    struct stage stage;
    struct stage_answer answer;

    (void)state;
    begin(&stage);
    answer =
        stage_apply(&stage, "{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: a}, spec: {weight: 1, quotas: "
                            "[{resource: gpus, nominal: 2, borrowingLimit: 0}]}}");
    assert_int_equal(answer.err.code, ERR_NONE);
    stage_answer_release(&answer);
    stage_must_start(&stage, &(struct stage_job){.name = "large", .queue = "a", .members = 3, .gpus = 2, .seconds = 3});
    stage_run(&stage, 60000);
    check_state(&stage, "large", "Pending");
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static void test_core_ask__not_for_a_job_that_fits(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &(struct stage_job){.name = "first", .members = 2, .gpus = 2, .seconds = 30});
    stage_run(&stage, 60000);
    check_state(&stage, "first", "Succeeded");
    assert_null(json_object_get(stage.relay.created, "ConfigMap/default/first-1-ask-1"));
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static void test_core_ask__not_where_the_cluster_lacks_the_kind(void **state)
{
    struct stage stage;

    (void)state;
    stage_open_with(&stage, &(struct stage_options){.provisioning_class = CLASS, .has_no_provisioning = true});
    stage_must_start(&stage, &large);
    stage_run(&stage, 60000);
    check_state(&stage, "large", "Pending");
    check_asked(&stage, "large", NULL, NULL);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

/* ---- what becomes of it ---- */

static void test_core_ask__nodes_that_come_unasked_end_it(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    put_condition(&stage, REQUEST, "Accepted", "is being looked at");
    check_asked(&stage, "large", "accepted", "is being looked at");
    grow(&stage);
    stage_run(&stage, 5000);
    check_state(&stage, "large", "Running");
    assert_false(exists(&stage, REQUEST));
    check_asked(&stage, "large", NULL, NULL);
    stage_run(&stage, 60000);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static void test_core_ask__members_take_the_room_that_was_made(void **state)
{
    struct stage stage;
    const json_t *annotations;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    put_condition(&stage, REQUEST, "Provisioned", "nodes are there");
    check_asked(&stage, "large", "provisioned", "nodes are there");
    grow(&stage);
    stage_run(&stage, 5000);
    check_state(&stage, "large", "Running");
    annotations = json_object_get(
        json_object_get(json_object_get(stage.relay.objects, "Pod/default/large-1-1-w-0"), "metadata"), "annotations");
    assert_string_equal(json_string_value(json_object_get(annotations, ANNOTATION_CONSUME)), "large-1-ask-1");
    assert_string_equal(json_string_value(json_object_get(annotations, ANNOTATION_CLASS)), CLASS);
    assert_true(exists(&stage, REQUEST));
    put_condition(&stage, REQUEST, "BookingExpired", "ten minutes are over"); /* they have it now */
    stage_run(&stage, 10000);
    assert_true(exists(&stage, REQUEST));
    stage_restart(&stage);
    stage_run(&stage, 60000);
    check_state(&stage, "large", "Succeeded");
    assert_int_equal(stage_n_moves(&stage, "large", "Running"), 1);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static void test_core_ask__what_failed_is_asked_again_later_and_later(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    put_condition(&stage, REQUEST, "Failed", "no such nodes");
    check_asked(&stage, "large", "failed", "no such nodes");
    stage_run(&stage, 55000);
    assert_true(exists(&stage, REQUEST)); /* to be looked at */
    stage_run(&stage, 10000);
    assert_false(exists(&stage, REQUEST));
    check_asked(&stage, "large", "asked", "");
    put_condition(&stage, SECOND, "Failed", "none either");
    stage_run(&stage, 115000);
    check_asked(&stage, "large", "failed", "none either");
    stage_run(&stage, 10000);
    check_asked(&stage, "large", "asked", "");
    assert_false(exists(&stage, SECOND));
    assert_int_equal(relay_n_ours(&stage.relay), 2);
    stage_close(&stage);
}

static void test_core_ask__what_the_cluster_refuses_is_told_and_leaves_nothing(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    command(&stage, "{\"fail\": \"create\", \"kind\": \"ProvisioningRequest\", \"error\": \"denied\", \"words\": \"you "
                    "may not\"}");
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    check_asked(&stage, "large", "refused", "create ProvisioningRequest large-1-ask-1: you may not");
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_run(&stage, 65000);
    assert_true(exists(&stage, SECOND));
    stage_close(&stage);
}

static void test_core_ask__a_request_that_somebody_deletes_is_not_made_again_at_once(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    command(&stage, "{\"deleteObject\": {\"kind\": \"ProvisioningRequest\", \"namespace\": \"default\", \"name\": "
                    "\"large-1-ask-1\"}}");
    stage_run(&stage, 50000);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    check_asked(&stage, "large", "failed", "the request was deleted");
    stage_run(&stage, 15000);
    assert_true(exists(&stage, SECOND));
    stage_close(&stage);
}

static void test_core_ask__a_job_that_is_held_asks_for_nothing(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    act(&stage, "large", JOB_ACTION_HOLD);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    act(&stage, "large", JOB_ACTION_RELEASE);
    assert_true(exists(&stage, SECOND));
    act(&stage, "large", JOB_ACTION_CANCEL);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

/* ---- restarts ---- */

static void test_core_ask__a_restart_takes_up_what_it_finds(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    put_condition(&stage, REQUEST, "Accepted", "yes");
    stage_restart(&stage);
    stage_run(&stage, 60000);
    check_asked(&stage, "large", "accepted", "yes");
    assert_int_equal(relay_n_ours(&stage.relay), 2);
    assert_int_equal(
        json_integer_value(json_object_get(stage.relay.created, "ProvisioningRequest/default/large-1-ask-1")), 1);
    stage_close(&stage);
}

static void test_core_ask__switched_off_nothing_is_left(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    stage.options.provisioning_class = NULL;
    stage_restart(&stage);
    stage_run(&stage, 60000);
    check_state(&stage, "large", "Pending");
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
}

static void test_core_ask__with_another_class_it_is_asked_anew(void **state)
{
    struct stage stage;

    (void)state;
    begin(&stage);
    stage_must_start(&stage, &large);
    stage_run(&stage, 1000);
    stage.options.provisioning_class = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
    stage_restart(&stage);
    stage_run(&stage, 60000);
    assert_false(exists(&stage, REQUEST));
    assert_true(exists(&stage, SECOND));
    assert_int_equal(relay_n_ours(&stage.relay), 2);
    stage_close(&stage);
}

/* The server is killed before its n-th effect; the autoscaler and the nodes come, the job runs once, nothing is left.
 */
static bool run_with_crash(int nth)
{
    struct stage stage;
    bool reached;
    json_t *view;

    begin(&stage);
    stage_must_start(&stage, &large);
    stage.crash_at = nth;
    stage_restart(&stage);
    stage_run(&stage, 5000);
    put_condition(&stage, REQUEST, "Provisioned", "there");
    grow(&stage);
    stage_run(&stage, 120000);
    reached = stage.n_crashes > 0;
    view = stage_view(&stage, "large");
    assert_string_equal(json_string_value(json_object_get(view, "state")), "Succeeded");
    json_decref(view);
    assert_int_equal(stage_n_moves(&stage, "large", "Running"), 1);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
    return reached;
}

static void submit_until_told(struct stage *stage)
{
    char *yaml = stage_job_yaml(&large);
    struct submit_options options = {.idempotency_key = "large"};
    bool is_told = false;

    for (int i = 0; i < 3 && !is_told; i++) {
        struct stage_answer answer = stage_submit(stage, &stage_admin, yaml, &options);

        is_told = answer.is_told;
        stage_answer_release(&answer);
    }
    free(yaml);
}

/* The same from the submission on, so that asking itself is interrupted. */
static bool ask_with_crash(int nth)
{
    struct stage stage;
    bool reached;

    begin(&stage);
    stage.crash_at = nth;
    stage_restart(&stage);
    submit_until_told(&stage);
    stage_run(&stage, 20000);
    check_asked(&stage, "large", "asked", "");
    assert_int_equal(relay_n_ours(&stage.relay), 2);
    for (int i = 0; i < 3 && strcmp(stage_state(&stage, "large"), "Cancelled") != 0; i++) {
        struct stage_answer answer = stage_action(&stage, "large", JOB_ACTION_CANCEL); /* may be killed before it */

        stage_answer_release(&answer);
        stage_settle(&stage);
    }
    check_state(&stage, "large", "Cancelled");
    stage_run(&stage, 60000);
    reached = stage.n_crashes > 0;
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
    return reached;
}

static void test_core_ask__a_crash_at_every_effect(void **state)
{
    int n = 1, k = 1;

    (void)state;
    while (run_with_crash(n))
        n++;
    while (ask_with_crash(k))
        k++;
    print_message("%d and %d effects\n", n - 1, k - 1);
    assert_true(n > 10);
    assert_true(k > 6);
}

/* ---- calls that fail ---- */

static const struct fault_case {
    const char *name;
    enum relay_fault fault;
    enum err_code code;
} fault_cases[] = {
    {"not answered in time and not carried out", RELAY_REFUSE, ERR_TIMEOUT},
    {"not answered in time but carried out", RELAY_LOSE, ERR_TIMEOUT},
    {"not available", RELAY_REFUSE, ERR_UNAVAILABLE},
    {"refused for good", RELAY_REFUSE, ERR_INVALID},
    {"refused as conflicting", RELAY_REFUSE, ERR_CONFLICT},
};

static void test_core_ask__a_call_fails(void **state)
{
    const struct fault_case *c = *state;

    for (size_t nth = 1; nth <= 5; nth++) {
        struct stage stage;

        begin(&stage);
        stage.relay.fault = c->fault;
        stage.relay.code = c->code;
        stage.relay.fail_nth = nth;
        stage_must_start(&stage, &large);
        stage_run(&stage, 100000);
        check_asked(&stage, "large", "asked", "");
        assert_int_equal(relay_n_ours(&stage.relay), 2);
        act(&stage, "large", JOB_ACTION_CANCEL);
        stage_run(&stage, 60000);
        assert_int_equal(relay_n_ours(&stage.relay), 0);
        stage_close(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_ask__nothing_is_asked_for_unless_that_is_wanted),
        cmocka_unit_test(test_core_ask__for_a_gang_that_lacks_nodes),
        cmocka_unit_test(test_core_ask__for_one_job_of_a_queue_at_a_time),
        cmocka_unit_test(test_core_ask__not_for_more_than_the_quota),
        cmocka_unit_test(test_core_ask__not_for_a_job_that_fits),
        cmocka_unit_test(test_core_ask__not_where_the_cluster_lacks_the_kind),
        cmocka_unit_test(test_core_ask__nodes_that_come_unasked_end_it),
        cmocka_unit_test(test_core_ask__members_take_the_room_that_was_made),
        cmocka_unit_test(test_core_ask__what_failed_is_asked_again_later_and_later),
        cmocka_unit_test(test_core_ask__what_the_cluster_refuses_is_told_and_leaves_nothing),
        cmocka_unit_test(test_core_ask__a_request_that_somebody_deletes_is_not_made_again_at_once),
        cmocka_unit_test(test_core_ask__a_job_that_is_held_asks_for_nothing),
        cmocka_unit_test(test_core_ask__a_restart_takes_up_what_it_finds),
        cmocka_unit_test(test_core_ask__switched_off_nothing_is_left),
        cmocka_unit_test(test_core_ask__with_another_class_it_is_asked_anew),
        cmocka_unit_test(test_core_ask__a_crash_at_every_effect),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_core_ask__a_call_fails, fault_cases);
}
