/* Answers that come later: commands, waiting for a state, event streams, and what happens to them when somebody leaves.
 */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/api/fixture.h"

#include "allocator/base/banned.h"

static int begin(struct fixture *fixture, const char *method, const char *target, const char *headers)
{
    int fd = client_open(fixture, false);
    BUF request = {0};

    buf_addf(&request, "%s %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer submitter\r\n%s\r\n", method, target,
             headers ? headers : "");
    client_send(fixture, fd, request.data, request.len);
    return fd;
}

static struct answer finish(struct fixture *fixture, int fd, int wait_ms)
{
    struct answer answer = client_read(fixture, fd, false, wait_ms);

    close(fd);
    fixture_turn(fixture, 0);
    return answer;
}

static void expect_silence(struct fixture *fixture, int fd)
{
    struct answer answer = client_read(fixture, fd, false, 30);

    assert_int_equal(answer.status, 0);
    assert_false(answer.is_closed);
}

/* From one state to the next, and whether the one who waits hears of it. */
static const struct wait_case {
    const char *name;
    const char *wait_for, *from, *to;
    bool want;
} wait_cases[] = {
    {"running", "running", "Pending", "Running", true},
    {"not yet running", "running", "Pending", "Launching", false},
    {"ended instead of running", "running", "Pending", "Cancelled", true},
    {"a state in any case", "LAUNCHING", "Pending", "Launching", true},
    {"ended well", "ended", "Running", "Succeeded", true},
    {"ended badly", "ended", "Running", "Failed", true},
    {"not ended", "ended", "Pending", "Running", false},
};

static void test_waiting__for_a_state(void **state)
{
    const struct wait_case *c = *state;
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    char target[64];
    int fd;

    fake_core_add_job(fixture->core, 5, "train", c->from);
    snprintf(target, sizeof(target), "/v1/jobs/train?waitFor=%s&timeout=60", c->wait_for);
    fd = begin(fixture, "GET", target, NULL);
    expect_silence(fixture, fd);
    fake_core_set_state(fixture->core, 5, c->to);
    answer = client_read(fixture, fd, false, c->want ? 2000 : 30);
    assert_int_equal(answer.status, c->want ? 200 : 0);
    if (c->want)
        assert_string_equal(answer_member(&answer, "state"), c->to);
    answer_release(&answer);
    close(fd);
    fixture_free(fixture);
}

static void test_waiting__what_is_so_already_is_answered_at_once(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;

    (void)state;
    fake_core_add_job(fixture->core, 5, "train", "Succeeded");
    answer = finish(fixture, begin(fixture, "GET", "/v1/jobs/5?waitFor=running", NULL), 1000);
    assert_string_equal(answer_member(&answer, "state"), "Succeeded");
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_waiting__time_over_answers_with_the_present_state(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;

    (void)state;
    fake_core_add_job(fixture->core, 5, "train", "Pending");
    answer = finish(fixture, begin(fixture, "GET", "/v1/jobs/5?waitFor=running&timeout=0", NULL), 1000);
    assert_string_equal(answer_member(&answer, "state"), "Pending");
    answer_release(&answer);
    answer = finish(fixture, begin(fixture, "GET", "/v1/jobs/5?waitFor=running&timeout=1", NULL), 3000);
    assert_string_equal(answer_member(&answer, "state"), "Pending");
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_waiting__the_name_keeps_its_job(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    json_t *job;
    int fd;

    (void)state;
    job = fake_core_add_job(fixture->core, 5, "train", "Running");
    fd = begin(fixture, "GET", "/v1/jobs/train?waitFor=ended", NULL);
    json_object_set_new(job, "name", json_string("other"));
    fake_core_add_job(fixture->core, 6, "train", "Succeeded");
    expect_silence(fixture, fd);
    fake_core_set_state(fixture->core, 5, "Failed");
    answer = finish(fixture, fd, 1000);
    assert_string_equal(answer_member(&answer, "id"), "5");
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_waiting__many_at_once(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int fds[10];

    (void)state;
    fake_core_add_job(fixture->core, 5, "train", "Running");
    for (int i = 0; i < 10; i++)
        fds[i] = begin(fixture, "GET", "/v1/jobs/5?waitFor=ended", NULL);
    close(fds[3]);
    close(fds[7]);
    fixture_turn(fixture, 1);
    fake_core_set_state(fixture->core, 5, "Succeeded");
    for (int i = 0; i < 10; i++) {
        struct answer answer;

        if (i == 3 || i == 7)
            continue;
        answer = finish(fixture, fds[i], 1000);
        assert_int_equal(answer.status, 200);
        answer_release(&answer);
    }
    fixture_free(fixture);
}

static void test_waiting__a_command_outlives_its_client(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int fd;

    (void)state;
    fixture->core->holds_replies = true;
    fd = begin(fixture, "POST", "/v1/jobs/1/cancel", NULL);
    assert_int_equal(fixture->core->n_replies, 1);
    close(fd);
    fixture_turn(fixture, 5);
    fixture->core->holds_replies = false;
    fixture_turn(fixture, 0); /* the answer has nobody left to go to */
    assert_int_equal(fixture->core->n_replies, 0);
    assert_true(api_is_quiet(fixture->api));
    fixture_free(fixture);
}

static void test_waiting__half_a_close_still_gets_the_answer(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    int fd;

    (void)state;
    fixture->core->holds_replies = true;
    fd = begin(fixture, "POST", "/v1/jobs/1/cancel", NULL);
    shutdown(fd, SHUT_WR);
    fixture_turn(fixture, 5);
    fixture->core->holds_replies = false;
    answer = finish(fixture, fd, 1000);
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_waiting__no_answer_before_the_turn_ends(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    int fd;

    (void)state;
    fixture->core->holds_replies = true;
    fd = begin(fixture, "POST", "/v1/jobs/1/cancel", NULL);
    expect_silence(fixture, fd);
    fixture->core->holds_replies = false;
    answer = finish(fixture, fd, 1000);
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    fixture_free(fixture);
}

/* Freed with replies outstanding, connections open and clients waiting: nothing may leak or be touched again. */
static void test_waiting__everything_may_end_at_any_time(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int fds[4];

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Running");
    fixture->core->holds_replies = true;
    fds[0] = begin(fixture, "POST", "/v1/jobs/1/cancel", NULL);
    fds[1] = begin(fixture, "GET", "/v1/jobs/1?waitFor=ended", NULL);
    fds[2] = begin(fixture, "GET", "/v1/jobs/1/events", "Accept: text/event-stream\r\n");
    fds[3] = client_open(fixture, false);
    client_say(fixture, fds[3], "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234");
    fixture_free(fixture);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

static void test_waiting__stopping_answers_everybody(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int waiting, streaming, commanding, idle;
    struct answer answer;
    char *text;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Running");
    fixture->core->holds_replies = true;
    commanding = begin(fixture, "POST", "/v1/jobs/1/cancel", NULL);
    waiting = begin(fixture, "GET", "/v1/jobs/1?waitFor=ended", NULL);
    streaming = begin(fixture, "GET", "/v1/jobs/1/events", "Accept: text/event-stream\r\n");
    idle = client_open(fixture, false);
    api_stop(fixture->api);
    assert_false(api_is_quiet(fixture->api));
    answer = finish(fixture, waiting, 1000);
    assert_int_equal(answer.status, 503);
    answer_release(&answer);
    text = client_read_all(fixture, streaming, 100);
    assert_non_null(strstr(text, "\r\n0\r\n\r\n"));
    free(text);
    text = client_read_all(fixture, idle, 100);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(client_open(fixture, false), -1); /* nobody listens */
    fixture->core->holds_replies = false;
    answer = finish(fixture, commanding, 1000);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_header(&answer, "Connection"), "close");
    answer_release(&answer);
    assert_true(api_is_quiet(fixture->api));
    close(streaming);
    close(idle);
    fixture_free(fixture);
}

/* ---- streams ---- */

static void test_waiting__events_come_as_they_happen(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    char *text;
    int fd;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Running");
    fake_core_add_event(fixture->core, 10, 1, "job.submitted");
    fake_core_add_event(fixture->core, 11, 2, "job.submitted");
    fd = begin(fixture, "GET", "/v1/jobs/train/events", "Accept: text/event-stream\r\n");
    text = client_read_all(fixture, fd, 50);
    assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"));
    assert_non_null(
        strstr(text, "id: 10\nevent: job.submitted\ndata: {\"id\":10,\"job\":1,\"type\":\"job.submitted\"}\n\n"));
    assert_null(strstr(text, "id: 11\n"));
    free(text);
    fake_core_add_event(fixture->core, 12, 1, "job.running");
    text = client_read_all(fixture, fd, 50);
    assert_non_null(strstr(text, "id: 12\nevent: job.running\n"));
    assert_null(strstr(text, "id: 10\n"));
    free(text);
    fake_core_add_event(fixture->core, 13, 1, "job.ended");
    fake_core_set_state(fixture->core, 1, "Succeeded");
    text = client_read_all(fixture, fd, 50);
    assert_non_null(strstr(text, "id: 13\n"));
    assert_non_null(strstr(text, "\r\n0\r\n\r\n")); /* and the stream has ended */
    free(text);
    close(fd);
    fixture_free(fixture);
}

static void test_waiting__events_of_all_jobs_have_no_end(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    char *text;
    int fd;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Succeeded");
    fake_core_add_event(fixture->core, 10, 1, "job.ended");
    fd = begin(fixture, "GET", "/v1/events", "Accept: text/event-stream\r\n");
    text = client_read_all(fixture, fd, 50);
    assert_non_null(strstr(text, "id: 10\n"));
    free(text);
    fake_core_add_event(fixture->core, 11, 2, "job.submitted");
    text = client_read_all(fixture, fd, 50);
    assert_non_null(strstr(text, "id: 11\n"));
    assert_null(strstr(text, "\r\n0\r\n\r\n"));
    free(text);
    close(fd);
    fixture_turn(fixture, 1);
    assert_true(api_is_quiet(fixture->api));
    fixture_free(fixture);
}

static void test_waiting__a_stream_goes_on_where_it_was(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    char *text;
    int fd;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Running");
    for (int i = 1; i <= 500; i++)
        fake_core_add_event(fixture->core, i, 1, "e");
    fd = begin(fixture, "GET", "/v1/jobs/1/events", "Accept: text/event-stream\r\nLast-Event-ID: 150\r\n");
    text = client_read_all(fixture, fd, 50);
    assert_null(strstr(text, "id: 150\n"));
    for (int i = 151; i <= 500; i++) { /* more than a page */
        char id[16];

        snprintf(id, sizeof(id), "id: %d\n", i);
        assert_non_null(strstr(text, id));
    }
    free(text);
    close(fd);
    fixture_turn(fixture, 1);
    assert_true(api_is_quiet(fixture->api)); /* the one who left is forgotten */
    fixture_free(fixture);
}

static void test_waiting__a_stream_of_nobody_is_a_problem(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer =
        finish(fixture, begin(fixture, "GET", "/v1/jobs/9/events", "Accept: text/event-stream\r\n"), 1000);

    (void)state;
    assert_int_equal(answer.status, 404);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_waiting__old_clients_get_a_plain_stream(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    static const char bytes[] =
        "GET /v1/jobs/1/events HTTP/1.0\r\nAuthorization: Bearer viewer\r\nAccept: text/event-stream\r\n\r\n";
    int fd = client_open(fixture, false);
    char *text;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Succeeded");
    fake_core_add_event(fixture->core, 10, 1, "e");
    client_say(fixture, fd, bytes);
    text = client_read_all(fixture, fd, 50);
    assert_null(strstr(text, "chunked"));
    assert_non_null(strstr(text, "\r\n\r\nid: 10\n"));
    free(text);
    close(fd);
    fixture_free(fixture);
}

static void test_waiting__head_does_not_follow(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    int fd;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Running");
    fd = begin(fixture, "HEAD", "/v1/jobs/1/events", "Accept: text/event-stream\r\n");
    answer = client_read(fixture, fd, true, 1000);
    assert_int_equal(answer.status, 200);
    assert_true(api_is_quiet(fixture->api));
    answer_release(&answer);
    close(fd);
    fixture_free(fixture);
}

/* The time for requests and idle connections is none for those who wait on purpose. */
static void test_waiting__patience_is_not_limited_by_the_request_timeout(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.timeout_ms = 100});
    int waiting, streaming;
    struct answer answer;
    char *text;

    (void)state;
    fake_core_add_job(fixture->core, 1, "train", "Running");
    waiting = begin(fixture, "GET", "/v1/jobs/1?waitFor=ended", NULL);
    streaming = begin(fixture, "GET", "/v1/jobs/1/events", "Accept: text/event-stream\r\n");
    for (int i = 0; i < 20; i++)
        fixture_turn(fixture, 20);
    fake_core_add_event(fixture->core, 9, 1, "late");
    fake_core_set_state(fixture->core, 1, "Succeeded");
    answer = finish(fixture, waiting, 1000);
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    text = client_read_all(fixture, streaming, 50);
    assert_non_null(strstr(text, "event: late\n"));
    free(text);
    close(streaming);
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting__what_is_so_already_is_answered_at_once),
        cmocka_unit_test(test_waiting__time_over_answers_with_the_present_state),
        cmocka_unit_test(test_waiting__the_name_keeps_its_job),
        cmocka_unit_test(test_waiting__many_at_once),
        cmocka_unit_test(test_waiting__a_command_outlives_its_client),
        cmocka_unit_test(test_waiting__half_a_close_still_gets_the_answer),
        cmocka_unit_test(test_waiting__no_answer_before_the_turn_ends),
        cmocka_unit_test(test_waiting__everything_may_end_at_any_time),
        cmocka_unit_test(test_waiting__stopping_answers_everybody),
        cmocka_unit_test(test_waiting__events_come_as_they_happen),
        cmocka_unit_test(test_waiting__events_of_all_jobs_have_no_end),
        cmocka_unit_test(test_waiting__a_stream_goes_on_where_it_was),
        cmocka_unit_test(test_waiting__a_stream_of_nobody_is_a_problem),
        cmocka_unit_test(test_waiting__head_does_not_follow),
        cmocka_unit_test(test_waiting__patience_is_not_limited_by_the_request_timeout),
        cmocka_unit_test(test_waiting__old_clients_get_a_plain_stream),
    };
    int failed = RUN_TABLE(test_waiting__for_a_state, wait_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
