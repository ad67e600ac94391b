/* The process: starting, refusing to start, stopping, and one job over HTTP from submission to its end. */
#include "test/support/cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/str.h"
#include "test/api/integration/process.h"

#include "allocator/base/banned.h"

#define JSON "application/json"

static const char *const virtual_clock[] = {"--clock", "virtual", NULL};
static const char *const quick[] = {"--schedule-delay", "1ms", "--start-delay", "1ms", NULL};

static void start(struct process *process, const char *const *args)
{
    process_init(process);
    if (!process_start(process, args))
        process_print_log(process);
    assert_true(process->pid != 0);
}

static void stop(struct process *process)
{
    int status = process_stop(process);

    if (status != 0)
        process_print_log(process);
    assert_int_equal(status, 0);
    process_release(process);
}

static unsigned mode_of(const char *folder, const char *name)
{
    char path[256];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_server__starts_private_and_stops_clean(void **state)
{
    struct process process;

    (void)state;
    start(&process, NULL);
    assert_true(process.port > 0);
    assert_int_equal(mode_of(process.state, ""), 0700);
    assert_int_equal(mode_of(process.state, "queued.db"), 0600);
    assert_int_equal(mode_of(process.folder, "queued.sock"), 0600);
    assert_int_equal(call(&process, "", "GET", "/healthz", NULL, NULL, NULL), 200);
    assert_int_equal(call(&process, "", "GET", "/v1/jobs", NULL, NULL, NULL), 401);
    assert_int_equal(call(&process, NULL, "GET", "/v1/jobs", NULL, NULL, NULL), 200);
    assert_int_equal(process_stop(&process), 0);
    assert_int_equal(access(process.socket, F_OK), -1);
    assert_true(process_logged(&process, "server.stopped"));
    process_release(&process);
}

static void test_server__sigint_stops_too(void **state)
{
    struct process process;

    (void)state;
    start(&process, NULL);
    kill(process.pid, SIGINT);
    assert_int_equal(process_wait(&process), 0);
    process_release(&process);
}

static void test_server__a_second_one_on_the_same_state_is_refused(void **state)
{
    struct process first, second;

    (void)state;
    start(&first, NULL);
    process_init(&second);
    snprintf(second.state, sizeof(second.state), "%s", first.state);
    assert_false(process_start(&second, NULL));
    assert_int_equal(process_wait(&second), 1);
    assert_true(process_logged(&second, "another"));
    process_release(&second);
    assert_int_equal(call(&first, "", "GET", "/readyz", NULL, NULL, NULL), 200);
    stop(&first);
}

static const struct refusal_case {
    const char *name;
    const char *args[PROCESS_ARGS_MAX];
    int want;
    const char *want_words;
} refusal_cases[] = {
    {"the version", {"--version"}, 0, "queued 0."},
    {"the help", {"--help"}, 0, "--embedded DIR"},
    {"the configuration", {"--print-config", "--state", "/x"}, 0, "state = /x\n"},
    {"an unknown flag", {"--nonsense"}, 2, "queued: there is no flag --nonsense"},
    {"no state folder", {"--embedded", "x"}, 1, "--state DIR is needed"},
    {"a state folder that cannot be",
     {"--embedded", "x", "--state", "/proc/no/where"},
     1,
     "state folder /proc/no/where"},
};

static void test_server__start(void **state)
{
    const struct refusal_case *c = *state;
    struct process process;
    int status;

    process_init(&process);
    status = process_run(&process, c->args);
    if (status != c->want || !process_logged(&process, c->want_words))
        process_print_log(&process);
    assert_int_equal(status, c->want);
    assert_true(process_logged(&process, c->want_words));
    process_release(&process);
}

static void test_server__without_a_cluster_it_says_so(void **state)
{
    struct process process;
    const char *args[] = {"--state", NULL, "--listen", "", NULL};

    (void)state;
    process_init(&process);
    args[1] = process.state;
    assert_int_equal(process_run(&process, args), 1);
    assert_true(process_logged(&process, "which cluster?"));
    process_release(&process);
}

/* ---- tokens ---- */

static void test_server__the_first_token_is_made_over_the_socket(void **state)
{
    struct process process;
    json_t *token, *jobs;
    char text[256];

    (void)state;
    start(&process, virtual_clock);
    assert_int_equal(call(&process, NULL, "POST", "/v1/tokens", JSON, "{\"name\":\"ci\",\"role\":\"viewer\"}", &token),
                     201);
    snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(token, "token")));
    assert_int_equal(call(&process, text, "GET", "/v1/jobs", NULL, NULL, &jobs), 200);
    assert_int_equal(call(&process, text, "GET", "/v1/tokens", NULL, NULL, NULL), 403);
    json_decref(token);
    json_decref(jobs);
    assert_int_equal(process_stop(&process), 0);
    assert_false(process_logged(&process, text)); /* secrets do not reach the log */
    assert_true(process_start(&process, virtual_clock));
    assert_int_equal(call(&process, text, "GET", "/v1/jobs", NULL, NULL, NULL), 200); /* and survive a restart */
    stop(&process);
}

/* ---- a job ---- */

static void begin(struct process *process, const char *name, const char *duration)
{
    assert_int_equal(submit(process, &(struct gang){.name = name, .duration = duration}), 201);
}

static void expect_state(struct process *process, const char *target, const char *want)
{
    json_t *job;
    const char *state;

    assert_int_equal(call(process, NULL, "GET", target, NULL, NULL, &job), 200);
    state = json_string_value(json_object_get(job, "state"));
    if (!state || strcmp(state, want) != 0) {
        json_dumpf(job, stderr, JSON_INDENT(1));
        process_print_log(process);
    }
    assert_string_equal(state, want);
    json_decref(job);
}

static void test_server__a_job_runs_in_real_time(void **state)
{
    struct process process;

    (void)state;
    start(&process, quick);
    apply_queues(&process);
    begin(&process, "first", "300ms");
    expect_state(&process, "/v1/jobs/first?waitFor=running&timeout=20", "Running");
    begin(&process, "second", "100ms"); /* the first has all the devices */
    expect_state(&process, "/v1/jobs/second", "Pending");
    expect_state(&process, "/v1/jobs/first?waitFor=ended&timeout=20", "Succeeded");
    expect_state(&process, "/v1/jobs/second?waitFor=ended&timeout=20", "Succeeded");
    stop(&process);
}

static void test_server__a_job_is_cancelled(void **state)
{
    struct process process;

    (void)state;
    start(&process, quick);
    apply_queues(&process);
    begin(&process, "first", "1h");
    expect_state(&process, "/v1/jobs/first?waitFor=running&timeout=20", "Running");
    assert_int_equal(call(&process, NULL, "POST", "/v1/jobs/first/cancel", NULL, NULL, NULL), 200);
    expect_state(&process, "/v1/jobs/first?waitFor=ended&timeout=20", "Cancelled");
    stop(&process);
}

static void test_server__a_job_survives_a_restart(void **state)
{
    struct process process;

    (void)state;
    start(&process, quick);
    apply_queues(&process);
    begin(&process, "first", "1500ms");
    expect_state(&process, "/v1/jobs/first?waitFor=running&timeout=20", "Running");
    assert_int_equal(process_stop(&process), 0);
    assert_true(process_start(&process, quick));
    expect_state(&process, "/v1/jobs/first?waitFor=ended&timeout=20", "Succeeded");
    stop(&process);
}

static void test_server__virtual_time_is_moved_by_hand(void **state)
{
    struct process process;
    json_t *before, *after;

    (void)state;
    start(&process, virtual_clock);
    apply_queues(&process);
    begin(&process, "first", "1h");
    assert_int_equal(call(&process, NULL, "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":1000}", NULL), 200);
    expect_state(&process, "/v1/jobs/first", "Running");
    assert_int_equal(call(&process, NULL, "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":3000000}", &before),
                     200);
    expect_state(&process, "/v1/jobs/first", "Running");
    process_kill(&process);
    assert_true(process_start(&process, virtual_clock)); /* where it was, not where it began */
    assert_int_equal(call(&process, NULL, "GET", "/v1/clock", NULL, NULL, &after), 200);
    assert_int_equal(json_integer_value(json_object_get(after, "milliseconds")),
                     json_integer_value(json_object_get(before, "milliseconds")));
    assert_int_equal(call(&process, NULL, "POST", "/v1/clock/advance", JSON, "{\"milliseconds\":700000}", NULL), 200);
    expect_state(&process, "/v1/jobs/first", "Succeeded");
    json_decref(before);
    json_decref(after);
    stop(&process);
}

/* ---- what a queue says about placement ---- */

static void expect_placement(struct process *process, const char *target, const char *want, const char *queue)
{
    json_t *view, *effective;

    assert_int_equal(call(process, NULL, "GET", target, NULL, NULL, &view), 200);
    effective = json_object_get(view, "effectivePlacement");
    assert_string_equal(json_string_value(json_object_get(effective, "placement")), want);
    assert_string_equal(json_string_value(json_object_get(effective, "queue")), queue);
    json_decref(view);
}

static void test_server__a_queue_says_how_its_jobs_are_placed(void **state)
{
    static const char research[] =
        "{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: research}, spec: {placement: %s}}";
    static const char team[] =
        "{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: team}, spec: {parent: research}}";
    struct process process;
    json_t *problem;
    char text[200];

    (void)state;
    start(&process, virtual_clock);
    snprintf(text, sizeof(text), research, "heap");
    assert_int_equal(call(&process, NULL, "POST", "/v1/apply", "application/yaml", text, &problem), 400);
    assert_string_equal(json_string_value(json_object_get(problem, "field")), "spec.placement");
    json_decref(problem);
    snprintf(text, sizeof(text), research, "spread");
    assert_int_equal(call(&process, NULL, "POST", "/v1/apply", "application/yaml", text, NULL), 200);
    assert_int_equal(call(&process, NULL, "POST", "/v1/apply", "application/yaml", team, NULL), 200);
    expect_placement(&process, "/v1/queues/team", "spread", "research");
    begin(&process, "first", "1h");
    expect_placement(&process, "/v1/jobs/first", "spread", "research");
    expect_placement(&process, "/v1/jobs/first/explain", "spread", "research");
    process_kill(&process);
    assert_true(process_start(&process, virtual_clock));
    expect_placement(&process, "/v1/queues/team", "spread", "research");
    expect_placement(&process, "/v1/jobs/first", "spread", "research");
    stop(&process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server__starts_private_and_stops_clean),
        cmocka_unit_test(test_server__sigint_stops_too),
        cmocka_unit_test(test_server__a_second_one_on_the_same_state_is_refused),
        cmocka_unit_test(test_server__without_a_cluster_it_says_so),
        cmocka_unit_test(test_server__the_first_token_is_made_over_the_socket),
        cmocka_unit_test(test_server__a_job_runs_in_real_time),
        cmocka_unit_test(test_server__a_job_is_cancelled),
        cmocka_unit_test(test_server__a_job_survives_a_restart),
        cmocka_unit_test(test_server__virtual_time_is_moved_by_hand),
        cmocka_unit_test(test_server__a_queue_says_how_its_jobs_are_placed),
    };
    int failed = RUN_TABLE(test_server__start, refusal_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
