/* Nodes that do not answer: what becomes of the gangs whose members are there. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

/* On both nodes; longer than all that is waited for here. */
static const struct stage_job train = {.name = "train", .members = 2, .gpus = 2, .seconds = 7200, .retries = 1};

static const char lost_member[] = "train-1-1-w-1";

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

static size_t count_events(struct stage *stage, const char *type, const char *words)
{
    json_t *events = core_events(stage->core, &stage_admin, "train", 0, 1000, NULL), *event;
    size_t i, n = 0;

    json_array_foreach (json_object_get(events, "items"), i, event)
        n += strcmp(text(event, "type"), type) == 0 && strstr(text(event, "detail"), words) != NULL;
    json_decref(events);
    return n;
}

static void check(struct stage *stage, const char *state, const char *ending, const char *words)
{
    json_t *view = stage_view(stage, "train");

    assert_string_equal(text(view, "state"), state);
    assert_string_equal(text(view, "ending"), ending);
    if (!strstr(text(view, "reason"), words))
        fail_msg("%s", text(view, "reason"));
    assert_int_equal(json_integer_value(json_object_get(view, "retriesLeft")), 1);
    json_decref(view);
}

static bool is_there(struct stage *stage, const char *pod)
{
    char key[80];

    snprintf(key, sizeof(key), "Pod/default/%s", pod);
    return json_object_get(stage->relay.objects, key) != NULL;
}

/* The gang runs, and after a second n2 falls silent. The member there is evicted. */
static void lose_node(struct stage *stage, int64_t timeout_ms)
{
    const struct stage_options options = {.lost_node_timeout_ms = timeout_ms, .reconcile_period_ms = 10000};

    stage_open_with(stage, &options);
    stage_must_start(stage, &train);
    stage_run(stage, 1000);
    assert_string_equal(stage_state(stage, "train"), "Running");
    must_command(stage, "{\"nodeDown\": \"n2\", \"silent\": true}");
    stage_run(stage, 3000);
}

/* From the moment in which its eviction is told: nothing revives it. */
static void test_core_silent__a_member_that_is_evicted_is_lost(void **state)
{
    struct stage stage;

    (void)state;
    lose_node(&stage, 300000);
    check(&stage, "Running", "Pending",
          "attempt 1 failed: Pod train-1-1-w-1 was lost: evicted because of a taint of its node; waits for node n2, which does not answer, to "
          "give up pod train-1-1-w-1; it is given up at 00:05 UTC");
    assert_false(is_there(&stage, "train-1-1-w-0"));
    assert_true(is_there(&stage, lost_member));
    stage_close(&stage);
}

static void test_core_silent__it_is_given_up_in_the_end(void **state)
{
    struct stage stage;

    (void)state;
    lose_node(&stage, 300000);
    stage_run(&stage, 296000); /* 300 s after the beginning, and 299 after the node was told to be silent */
    assert_true(is_there(&stage, lost_member));
    stage_run(&stage, 3000);
    assert_false(is_there(&stage, lost_member));
    assert_int_equal(count_events(&stage, "MemberGivenUp",
                                  "pod train-1-1-w-1 is deleted without the word of node n2, which does not answer"),
                     1);
    stage_run(&stage, 10000);
    assert_string_equal(stage_state(&stage, "train"), "Pending");
    must_command(&stage, "{\"nodeUp\": \"n2\"}");
    stage_run(&stage, 20000);
    check(&stage, "Running", "", "");
    assert_int_equal(stage_n_moves(&stage, "train", "Running"), 2);
    stage_close(&stage);
}

static void test_core_silent__zero_waits_for_ever(void **state)
{
    struct stage stage;

    (void)state;
    lose_node(&stage, 0);
    stage_run(&stage, 48 * INT64_C(3600000));
    assert_true(is_there(&stage, lost_member));
    check(&stage, "Running", "Pending", "to give up pod train-1-1-w-1; until it does, or is taken out of the cluster");
    stage_close(&stage);
}

/* It says itself that the member has ended: nothing is given up. */
static void test_core_silent__a_node_that_comes_back_ends_the_member_itself(void **state)
{
    struct stage stage;

    (void)state;
    lose_node(&stage, 300000);
    stage_run(&stage, 100000);
    must_command(&stage, "{\"nodeUp\": \"n2\"}");
    stage_run(&stage, 20000);
    check(&stage, "Running", "", "");
    assert_int_equal(stage_n_moves(&stage, "train", "Running"), 2);
    assert_int_equal(count_events(&stage, "MemberGivenUp", ""), 0);
    stage_close(&stage);
}

/* Nobody remembers since when the node is silent: it gets the whole time anew. */
static void test_core_silent__a_restart_gives_the_node_more_time(void **state)
{
    struct stage stage;

    (void)state;
    lose_node(&stage, 300000);
    stage_run(&stage, 200000);
    stage_restart(&stage);
    stage_run(&stage, 299000);
    assert_true(is_there(&stage, lost_member));
    stage_run(&stage, 2000);
    assert_false(is_there(&stage, lost_member));
    stage_close(&stage);
}

/* What is refused is asked again. */
static void test_core_silent__a_refused_end_is_asked_again(void **state)
{
    struct stage stage;

    (void)state;
    lose_node(&stage, 60000);
    stage_run(&stage, 57000);
    must_command(&stage, "{\"fail\": \"remove\", \"kind\": \"Pod\", \"error\": \"unavailable\"}");
    must_command(&stage, "{\"fail\": \"remove\", \"kind\": \"Pod\", \"error\": \"unavailable\", \"nth\": 2}");
    stage_run(&stage, 30000);
    assert_false(is_there(&stage, lost_member));
    assert_string_equal(stage_state(&stage, "train"), "Pending");
    assert_int_equal(count_events(&stage, "MemberGivenUp", ""), 1);
    stage_close(&stage);
}

/* A member that has done its work has, whoever deletes it. */
static void test_core_silent__success_stays_success(void **state)
{
    static const struct stage_job brief = {.name = "train", .members = 1, .gpus = 2, .seconds = 60, .retries = 1};
    struct stage stage;
    json_t *object, *put;
    char *words;

    (void)state;
    stage_open(&stage, NULL);
    stage_must_start(&stage, &brief);
    stage_run(&stage, 1000);
    object = json_deep_copy(json_object_get(stage.relay.objects, "Pod/default/train-1-1-w-0"));
    json_object_set_new(json_object_get(object, "metadata"), "deletionTimestamp", json_string("2026-01-01T00:01:00Z"));
    json_object_set_new(json_object_get(object, "status"), "phase", json_string("Succeeded"));
    put = json_pack("{s:o}", "putObject", object);
    words = json_dumps(put, JSON_COMPACT);
    must_command(&stage, words);
    stage_run(&stage, 5000);
    assert_string_equal(stage_state(&stage, "train"), "Succeeded");
    free(words);
    json_decref(put);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_silent__a_member_that_is_evicted_is_lost),
        cmocka_unit_test(test_core_silent__it_is_given_up_in_the_end),
        cmocka_unit_test(test_core_silent__zero_waits_for_ever),
        cmocka_unit_test(test_core_silent__a_node_that_comes_back_ends_the_member_itself),
        cmocka_unit_test(test_core_silent__a_restart_gives_the_node_more_time),
        cmocka_unit_test(test_core_silent__a_refused_end_is_asked_again),
        cmocka_unit_test(test_core_silent__success_stays_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
