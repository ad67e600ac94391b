/* For N = 1, 2, 3, ... the server is killed just before its N-th effect (a commit or a call to the cluster) and started
 * again. The end must be that of the undisturbed run: each gang ran once, completely, and nothing is left over. A
 * client whose submission was not answered sends it again, with the same idempotency key. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const struct stage_job first = {.name = "first", .members = 2, .gpus = 2, .seconds = 10};
static const struct stage_job second = {.name = "second", .queue = "b", .members = 1, .gpus = 2, .seconds = 5};

static void submit_until_answered(struct stage *stage, const struct stage_job *job)
{
    char *yaml = stage_job_yaml(job);
    struct submit_options options = {.idempotency_key = job->name};
    bool is_told = false;

    for (int i = 0; i < 3 && !is_told; i++) {
        struct stage_answer answer = stage_submit(stage, &stage_admin, yaml, &options);

        is_told = answer.is_told;
        assert_int_equal(answer.err.code, ERR_NONE);
        stage_answer_release(&answer);
    }
    assert_true(is_told);
    free(yaml);
}

static void check_ran_once(struct stage *stage, const char *job)
{
    json_t *view = stage_view(stage, job);

    assert_string_equal(json_string_value(json_object_get(view, "state")), "Succeeded");
    assert_int_equal(json_integer_value(json_object_get(view, "attempt")), 1);
    json_decref(view);
    assert_int_equal(stage_n_moves(stage, job, "Running"), 1);
    assert_int_equal(stage_n_moves(stage, job, "Succeeded"), 1);
}

static void check_nothing_created_twice(struct stage *stage)
{
    const char *key;
    json_t *n;

    json_object_foreach (stage->relay.created, key, n)
        if (json_integer_value(n) != 1)
            fail_msg("%s was created %d times", key, (int)json_integer_value(n));
}

/* Returns whether the crash was reached. */
static bool run_with_crash(int nth)
{
    struct stage stage;
    bool reached;

    stage_open(&stage, NULL);
    stage.crash_at = nth;
    stage_restart(&stage);
    submit_until_answered(&stage, &first);
    submit_until_answered(&stage, &second);
    stage_run(&stage, 5000);
    reached = stage.n_crashes > 0;
    stage_run(&stage, 60000);
    reached |= stage.n_crashes > 0;
    check_ran_once(&stage, "first");
    check_ran_once(&stage, "second");
    check_nothing_created_twice(&stage);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
    return reached;
}

static void test_core_crash__at_every_effect(void **state)
{
    int n = 1;

    (void)state;
    while (run_with_crash(n))
        n++;
    print_message("%d effects\n", n - 1);
    assert_true(n > 20);
}

/* The same with calls that fail: refused, or carried out with the answer lost. */
static const struct fault_case {
    const char *name;
    enum relay_fault fault;
    enum err_code code;
} fault_cases[] = {
    {"a call is not answered in time and was not carried out", RELAY_REFUSE, ERR_TIMEOUT},
    {"a call is not answered in time but was carried out", RELAY_LOSE, ERR_TIMEOUT},
    {"the cluster is not available", RELAY_REFUSE, ERR_UNAVAILABLE},
    {"a call is refused for good", RELAY_REFUSE, ERR_INVALID},
    {"a call is refused as conflicting", RELAY_REFUSE, ERR_CONFLICT},
};

/* A refusal for good ends the attempt and the next one succeeds; all others must not cost an attempt. */
static bool run_with_fault(const struct fault_case *c, size_t nth)
{
    struct stage stage;
    bool reached;
    json_t *view;

    stage_open(&stage, NULL);
    stage.relay.fault = c->fault;
    stage.relay.code = c->code;
    stage.relay.fail_nth = nth;
    stage_must_start(&stage, &first);
    stage_run(&stage, 60000);
    reached = stage.relay.n_calls >= nth;
    view = stage_view(&stage, "first");
    assert_string_equal(json_string_value(json_object_get(view, "state")), "Succeeded");
    assert_in_range(json_integer_value(json_object_get(view, "attempt")), 1, c->code == ERR_INVALID ? 2 : 1);
    assert_int_equal(stage_n_moves(&stage, "first", "Running"), 1);
    json_decref(view);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
    return reached;
}

static void test_core_crash__a_call_fails(void **state)
{
    size_t n = 1;

    while (run_with_fault(*state, n))
        n++;
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_core_crash__at_every_effect)};

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_core_crash__a_call_fails, fault_cases);
}
