/* A disk that is full for a while: who was to hear "accepted" hears that nothing was recorded, memory is what the disk
 * has, and when there is room again everything goes on as if nothing had been. */
#include "test/support/cmocka.h"

#include <sqlite3.h>

#include "test/support/stage.h"
#include "test/store/faulty_vfs.h"

static struct faults faults = {.countdown = -1, .result = SQLITE_FULL};

static const struct stage_job train = {.name = "train", .members = 2, .gpus = 1, .seconds = 10};

static void test_core__a_full_disk_refuses_and_recovers(void **state)
{
    struct stage stage;
    struct stage_answer answer;
    char *yaml = stage_job_yaml(&train);
    json_t *status;

    (void)state;
    stage_open(&stage, NULL);
    faults = (struct faults){.countdown = 0, .stays = true, .result = SQLITE_FULL};
    answer = stage_submit(&stage, &stage_admin, yaml, NULL);
    assert_int_equal(answer.err.code, ERR_UNAVAILABLE);
    stage_answer_release(&answer);
    answer = stage_submit(&stage, &stage_admin, yaml, NULL); /* and the next one without a try */
    assert_int_equal(answer.err.code, ERR_UNAVAILABLE);
    stage_answer_release(&answer);
    status = core_status(stage.core);
    assert_true(json_is_false(json_object_get(status, "ready")));
    json_decref(status);
    assert_null(core_job(stage.core, &stage_admin, "train", NULL));
    faults.countdown = -1;
    stage_run(&stage, 3000);
    stage_must_submit(&stage, yaml);
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "train"), "Succeeded");
    free(yaml);
    stage_close(&stage);
}

/* A server that leads no more keeps its books: what is submitted is recorded and not planned until it leads again. */
static void test_core__who_does_not_lead_records_and_waits(void **state)
{
    struct error why = {.code = ERR_TIMEOUT, .text = "the lease could not be renewed"};
    struct stage stage;
    char *yaml = stage_job_yaml(&train);
    json_t *status;

    (void)state;
    stage_open(&stage, NULL);
    stage_run(&stage, 1000);
    core_not_leading(stage.core, &why);
    stage_must_submit(&stage, yaml);
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "train"), "Pending");
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    status = core_status(stage.core);
    assert_true(json_is_false(json_object_get(status, "ready")));
    assert_string_equal(json_string_value(json_object_get(status, "reason")), why.text);
    json_decref(status);
    core_not_leading(stage.core, NULL);
    stage_run(&stage, 60000);
    assert_string_equal(stage_state(&stage, "train"), "Succeeded");
    free(yaml);
    stage_close(&stage);
}

/* Needs every device that there is: what an admission that was not recorded had planned must not stay taken. */
static const struct stage_job greedy = {.name = "train", .members = 2, .gpus = 2, .seconds = 10};

/* The N-th write fails and all that follow for twenty seconds, at any point of a job's life. */
static bool run_with_failure(int nth)
{
    struct stage stage;
    struct stage_answer answer;
    char *yaml = stage_job_yaml(&greedy);
    json_t *view;
    bool reached;

    stage_open(&stage, NULL);
    faults = (struct faults){.countdown = nth, .stays = true, .result = SQLITE_FULL};
    answer = stage_submit(&stage, &stage_admin, yaml, NULL);
    stage_run(&stage, 20000);
    reached = faults.n_failed > 0;
    faults.countdown = -1;
    stage_run(&stage, 3000);
    if (answer.err.code)
        stage_must_submit(&stage, yaml);
    stage_run(&stage, 120000);
    stage_answer_release(&answer);
    free(yaml);
    view = stage_view(&stage, "train");
    assert_string_equal(json_string_value(json_object_get(view, "state")), "Succeeded");
    assert_int_equal(json_integer_value(json_object_get(view, "attempt")), 1);
    json_decref(view);
    assert_int_equal(relay_n_ours(&stage.relay), 0);
    stage_close(&stage);
    return reached;
}

static void test_core__a_disk_that_fills_up_at_any_moment(void **state)
{
    int n = 0;

    (void)state;
    while (run_with_failure(n))
        n++;
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core__a_full_disk_refuses_and_recovers),
        cmocka_unit_test(test_core__who_does_not_lead_records_and_waits),
        cmocka_unit_test(test_core__a_disk_that_fills_up_at_any_moment),
    };

    faulty_vfs_install(&faults);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
