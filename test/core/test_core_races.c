/* What others do at the wrong moment. The simulation (test/simulation) found these; here each is a story of its own. */
#include "test/support/cmocka.h"

#include <stdio.h>

#include "test/support/stage.h"

static const struct stage_job train = {.name = "train", .members = 2, .gpus = 1, .seconds = 10};

static const char take_anchor[] =
    "{\"deleteObject\": {\"kind\": \"ConfigMap\", \"namespace\": \"default\", \"name\": \"train-1-1\"}}";
static const char squat_anchor[] =
    "{\"putObject\": {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"train-1-1\", "
    "\"namespace\": \"default\"}, \"data\": {\"mine\": \"yes\"}}}";

static void check_succeeded(struct stage *stage, const char *job)
{
    assert_string_equal(stage_state(stage, job), "Succeeded");
    assert_int_equal(relay_n_ours(&stage->relay), 0);
}

/* The next n creations of a kind are refused for a while, so that the launch gets no further. */
static void refuse_creations(struct stage *stage, const char *kind, int n)
{
    for (int i = 1; i <= n; i++) {
        char command[200];

        snprintf(command, sizeof(command),
                 "{\"fail\": \"create\", \"kind\": \"%s\", \"error\": \"unavailable\", \"nth\": %d}", kind, i);
        assert_int_equal(stage_command(stage, command, NULL), 0);
    }
}

/* The stream tells of an anchor and of its end before its creation is answered. Claims that name it as their owner are
 * collected as fast as they are created. */
static void test_core_races__an_end_that_is_told_before_the_creation_is_answered(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    stage.relay.answer_lag_ms = 1000;
    refuse_creations(&stage, "ResourceClaim", 2);
    stage_must_start(&stage, &train);
    assert_int_equal(stage_command(&stage, take_anchor, NULL), 0);
    stage.relay.answer_lag_ms = 0;
    stage_run(&stage, 600000);
    check_succeeded(&stage, "train");
    assert_true(stage.relay.n_calls < 100);
    stage_close(&stage);
}

/* Whoever takes away at once what is created for a gang does not make the server go on at full speed. */
static void test_core_races__what_is_taken_away_is_created_later_and_later(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, NULL);
    refuse_creations(&stage, "ResourceClaim", 30);
    stage_must_start(&stage, &train);
    for (int i = 0; i < 100; i++) {
        stage_command(&stage, take_anchor, NULL); /* it may not be there just now */
        stage_run(&stage, 100);
    }
    assert_true(stage.relay.n_calls < 40);
    stage_run(&stage, 3600000);
    check_succeeded(&stage, "train");
    stage_close(&stage);
}

static void submit_until_answered(struct stage *stage)
{
    char *yaml = stage_job_yaml(&train);
    const struct submit_options options = {.idempotency_key = "once"};
    bool is_told = false;

    while (!is_told) {
        struct stage_answer answer = stage_submit(stage, &stage_admin, yaml, &options);

        is_told = answer.is_told;
        assert_int_equal(answer.err.code, ERR_NONE);
        stage_answer_release(&answer);
    }
    free(yaml);
}

/* An object of somebody else under the name of an anchor costs the attempt, and stays as it is. Returns whether the
 * crash was reached. */
static bool run_with_squatter(int crash_at)
{
    struct stage stage;
    bool reached;

    stage_open(&stage, NULL);
    assert_int_equal(stage_command(&stage, squat_anchor, NULL), 0);
    stage.crash_at = crash_at;
    stage_restart(&stage);
    submit_until_answered(&stage);
    stage_run(&stage, 60000);
    reached = stage.n_crashes > 0;
    check_succeeded(&stage, "train");
    assert_int_equal(stage_command(&stage, take_anchor, NULL), 0); /* it is there: else this is refused */
    stage_close(&stage);
    return reached;
}

static void test_core_races__what_others_have_under_our_name_stays(void **state)
{
    int n = 0;

    (void)state;
    run_with_squatter(0);
    for (n = 1; run_with_squatter(n); n++)
        continue;
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_races__an_end_that_is_told_before_the_creation_is_answered),
        cmocka_unit_test(test_core_races__what_is_taken_away_is_created_later_and_later),
        cmocka_unit_test(test_core_races__what_others_have_under_our_name_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
