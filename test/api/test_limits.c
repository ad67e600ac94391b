/* Limits of connections, sizes and time; who is told what; that any bytes leave the server whole. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "allocator/base/rng.h"
#include "api/auth.h"
#include "api/body.h"
#include "api/server.h"
#include "queued/manifest/yaml.h"
#include "test/api/fixture.h"

#include "allocator/base/banned.h"

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: a\r\n"

static int64_t mono_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void expect_alive(struct fixture *fixture)
{
    struct answer answer = ask(fixture, "", "GET", "/healthz", NULL, NULL);

    assert_int_equal(answer.status, 200);
    answer_release(&answer);
}

static void test_limits__a_large_body_is_refused_before_it_is_read(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int fd = client_open(fixture, false);
    BUF bytes = {0};
    struct answer answer;

    (void)state;
    buf_adds(&bytes, "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    for (int i = 0; i < 100000; i++)
        buf_adds(&bytes, "0123456789");
    client_send(fixture, fd, bytes.data, bytes.len); /* all of it: the reply must survive what follows the head */
    answer = client_read(fixture, fd, false, 5000);
    assert_int_equal(answer.status, 413);
    assert_string_equal(answer_member(&answer, "code"), "limit");
    answer_release(&answer);
    close(fd);
    expect_alive(fixture);
    fixture_free(fixture);
}

static void test_limits__a_body_of_the_largest_size_is_taken(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    BUF body = {0};

    (void)state;
    buf_adds(&body, "{\"documents\":[{\"a\":\"");
    while (body.len < 65536 - 4)
        buf_addc(&body, 'x');
    buf_adds(&body, "\"}]}");
    assert_int_equal(body.len, 65536);
    answer = ask(fixture, "submitter", "POST", "/v1/jobs", "Content-Type: application/json\r\n", buf_str(&body));
    assert_int_equal(answer.status, 201);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_limits__a_large_head_is_refused(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    BUF bytes = {0};

    (void)state;
    buf_adds(&bytes, HEALTH "X: ");
    while (bytes.len < 20000)
        buf_addc(&bytes, 'x');
    buf_adds(&bytes, "\r\n\r\n");
    answer = ask_raw(fixture, bytes.data, bytes.len);
    assert_int_equal(answer.status, 431);
    answer_release(&answer);
    fixture_free(fixture);
}

static void test_limits__an_expected_body_is_asked_for(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int fd = client_open(fixture, false);
    static const char head[] =
        "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer submitter\r\nExpect: 100-continue\r\n"
        "Content-Type: application/json\r\nContent-Length: 18\r\n\r\n";
    char *text;

    (void)state;
    client_say(fixture, fd, head);
    text = client_read_all(fixture, fd, 50);
    assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
    free(text);
    client_send(fixture, fd, "{\"documents\":[{}]}", 18);
    text = client_read_all(fixture, fd, 50);
    assert_memory_equal(text, "HTTP/1.1 201 ", 13);
    free(text);
    close(fd);
    fixture_free(fixture);
}

static void test_limits__requests_in_a_row_are_answered_in_order(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    int fd = client_open(fixture, false);
    static const char bytes[] = HEALTH "\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
                                       "GET /v1/version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" HEALTH "\r\n";
    char *text, *first, *second, *third;

    (void)state;
    client_say(fixture, fd, bytes);
    text = client_read_all(fixture, fd, 100);
    first = strstr(text, "HTTP/1.1 200 OK");
    assert_ptr_equal(first, text);
    second = strstr(first + 1, "HTTP/1.1 401 ");
    assert_non_null(second);
    third = strstr(second, "HTTP/1.1 200 OK");
    assert_non_null(third);
    assert_null(strstr(third + 1, "HTTP/1.1")); /* nothing behind the one that closes */
    free(text);
    close(fd);
    fixture_free(fixture);
}

static void test_limits__connections_over_the_limit_are_told(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.max_connections = 3});
    int fds[3], over, local;
    struct answer answer;

    (void)state;
    for (int i = 0; i < 3; i++)
        fds[i] = client_open(fixture, false);
    over = client_open(fixture, false);
    answer = client_read(fixture, over, false, 1000);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer_member(&answer, "detail"), "the server has too many connections");
    answer_release(&answer);
    close(over);

    local = client_open(fixture, true); /* the administrator always gets in */
    client_say(fixture, local, HEALTH "\r\n");
    answer = client_read(fixture, local, false, 1000);
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    close(local);

    for (int i = 0; i < 3; i++)
        close(fds[i]);
    fixture_turn(fixture, 5);
    expect_alive(fixture);
    fixture_free(fixture);
}

static void test_limits__a_flood_of_connections_ends(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.max_connections = 2});
    int fds[100];

    (void)state;
    for (int i = 0; i < 100; i++)
        fds[i] = client_open(fixture, false);
    for (int i = 0; i < 100; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (int i = 0; i < 20; i++)
        fixture_turn(fixture, 1);
    expect_alive(fixture);
    fixture_free(fixture);
}

/* Bytes that drip: the time of a head counts from its beginning, not from the last byte. */
static void drip(struct fixture *fixture, const char *begin, const char *drop, int want, const char *want_detail)
{
    int fd = client_open(fixture, false);
    int64_t start = mono_ms();
    struct answer answer = {0};

    client_say(fixture, fd, begin);
    while (!answer.status && !answer.is_closed && mono_ms() - start < 3000) {
        client_say(fixture, fd, drop);
        answer = client_read(fixture, fd, false, 20);
    }
    assert_int_equal(answer.status, want);
    assert_string_equal(answer_member(&answer, "detail"), want_detail);
    assert_in_range(mono_ms() - start, 150, 1500);
    answer_release(&answer);
    close(fd);
}

static void test_limits__a_slow_head_is_given_up(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.timeout_ms = 200});

    (void)state;
    drip(fixture, HEALTH, "X: y\r\n", 408, "the head of the request did not arrive in time");
    fixture_free(fixture);
}

static void test_limits__a_slow_body_is_given_up(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.timeout_ms = 200});

    (void)state;
    drip(fixture, "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n", "x", 408,
         "the body of the request did not arrive in time");
    drip(fixture, "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 408,
         "the body of the request did not arrive in time");
    fixture_free(fixture);
}

static void test_limits__an_idle_connection_is_closed(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.timeout_ms = 100});
    int silent = client_open(fixture, false), used = client_open(fixture, false);
    struct answer answer;
    char *text;

    (void)state;
    client_say(fixture, used, HEALTH "\r\n");
    answer = client_read(fixture, used, false, 1000);
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    text = client_read_all(fixture, silent, 1000);
    assert_string_equal(text, "");
    free(text);
    text = client_read_all(fixture, used, 1000);
    assert_string_equal(text, "");
    free(text);
    close(silent);
    close(used);
    fixture_free(fixture);
}

/* Somebody asks for much and reads nothing: the connection ends, and nothing of it is kept. */
static void test_limits__a_reader_that_does_not_read_is_cut(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.timeout_ms = 300});
    int fd = client_open(fixture, false), small = 4096;
    int64_t start = mono_ms();
    char *text;

    (void)state;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (int i = 0; i < 5000; i++)
        fake_core_add_job(fixture->core, i, "a job with a name that takes some room in the answer", "Pending");
    for (int i = 0; i < 40; i++)
        client_say(fixture, fd, "GET /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer viewer\r\n\r\n");
    while (mono_ms() - start < 1500)
        fixture_turn(fixture, 20);
    text = client_read_all(fixture, fd, 200);
    assert_in_range(strlen(text), 1, 20 * 1000 * 1000); /* less than all forty answers */
    free(text);
    close(fd);
    expect_alive(fixture);
    fixture_free(fixture);
}

static void test_limits__failed_attempts_are_counted_per_address(void **state)
{
    struct auth_failures failures = {0};
    char address[32];

    (void)state;
    for (int i = 0; i < AUTH_BURST; i++)
        assert_true(auth_failure_allowed(&failures, "10.0.0.1", 1000));
    assert_false(auth_failure_allowed(&failures, "10.0.0.1", 1000));
    assert_true(auth_failure_allowed(&failures, "10.0.0.2", 1000));
    assert_true(auth_failure_allowed(&failures, "10.0.0.1", 1000 + AUTH_REFILL_MS));
    assert_false(auth_failure_allowed(&failures, "10.0.0.1", 1000 + AUTH_REFILL_MS));
    for (int i = 0; i < 1000; i++) { /* a table that is full forgets the oldest, never grows */
        snprintf(address, sizeof(address), "10.1.%d.%d", i / 250, i % 250);
        assert_true(auth_failure_allowed(&failures, address, 3000 + i));
    }
}

static void test_limits__guessing_is_answered_429_and_good_tokens_pass(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct answer answer;
    int n_401 = 0, n_429 = 0;

    (void)state;
    for (int i = 0; i < 2 * AUTH_BURST; i++) {
        answer = ask(fixture, "guess", "GET", "/v1/jobs", NULL, NULL);
        n_401 += answer.status == 401;
        n_429 += answer.status == 429 && answer_header(&answer, "Retry-After")[0];
        answer_release(&answer);
    }
    assert_in_range(n_401, AUTH_BURST, 2 * AUTH_BURST - 1);
    assert_int_equal(n_401 + n_429, 2 * AUTH_BURST);
    answer = ask(fixture, "viewer", "GET", "/v1/jobs", NULL, NULL);
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    fixture_free(fixture);
}

/* ---- bodies ---- */

static void repeat(struct buf *out, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        buf_adds(out, text);
}

static const struct body_case {
    const char *name;
    enum body_type type;
    const char *begin, *repeated;
    int n;
    const char *between, *closing, *end;
    enum err_code want;
} body_cases[] = {
    {"as deep as may be", BODY_TYPE_JSON, "{\"documents\":[{\"a\":", "[", 97, "", "]", "}]}", ERR_NONE},
    {"deeper", BODY_TYPE_JSON, "{\"documents\":[{\"a\":", "[", 98, "", "]", "}]}", ERR_LIMIT},
    {"much deeper, and cut off", BODY_TYPE_JSON, "", "[", 200000, "", "", "", ERR_LIMIT},
    {"brackets in a string", BODY_TYPE_JSON, "{\"documents\":[{\"a\":\"\\\"", "[{,", 200000, "", "", "\"}]}", ERR_NONE},
    {"many values", BODY_TYPE_JSON, "{\"documents\":[{\"a\":[0", ",0", 200000, "", "", "]}]}", ERR_NONE},
    {"too many values", BODY_TYPE_JSON, "{\"documents\":[{\"a\":[0", ",0", 300000, "", "", "]}]}", ERR_LIMIT},
    {"deep YAML", BODY_TYPE_YAML, "a: ", "[", 200, "", "]", "", ERR_LIMIT},
    {"a string that does not end", BODY_TYPE_JSON, "{\"documents\":[\"", "\\", 10001, "", "", "", ERR_INVALID},
};

static void test_limits__body(void **state)
{
    const struct body_case *c = *state;
    struct manifest *manifest = NULL;
    json_t *documents = NULL;
    struct error err = {0};
    BUF text = {0};

    buf_adds(&text, c->begin);
    repeat(&text, c->repeated, c->n);
    buf_adds(&text, c->between);
    repeat(&text, c->closing, c->n);
    buf_adds(&text, c->end);
    if (body_parse_documents((struct str){text.data, text.len}, c->type, &documents, &manifest, &err) < 0)
        assert_null(documents);
    assert_int_equal(err.code, c->want);
    json_decref(documents);
    manifest_free(manifest);
}

/* ---- listeners ---- */

static void handle_nothing(void *ctx, struct exchange *exchange)
{
    (void)ctx;
    exchange_reply(exchange, 204, NULL, (struct str){NULL, 0});
}

static void test_limits__socket_files(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct server *second = server_new(fixture->base, &(struct server_options){1024, 4, 1000, handle_nothing, NULL});
    struct error err = {0};
    struct stat st;
    char other[128];
    int port;
    FILE *file;

    (void)state;
    assert_int_equal(stat(fixture->socket, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(server_listen_unix(second, fixture->socket, 0600, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(stat(fixture->socket, &st), 0); /* not taken away from the first */

    snprintf(other, sizeof(other), "%s/file", fixture->folder);
    file = fopen(other, "we");
    fclose(file);
    assert_int_equal(server_listen_unix(second, other, 0600, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    unlink(other);

    assert_int_equal(server_listen_unix(second, "/nowhere/at/all", 0600, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    assert_int_equal(server_listen_tcp(second, "nonsense", &port, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(server_listen_tcp(second, "::1:80", &port, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    snprintf(other, sizeof(other), "127.0.0.1:%d", fixture->port);
    assert_int_equal(server_listen_tcp(second, other, &port, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    server_free(second);
    fixture_free(fixture);
}

/* A socket file that a killed server left behind does not hold up the next one. */
static void test_limits__a_dead_socket_is_replaced(void **state)
{
    struct fixture *fixture = fixture_new(NULL);
    struct server *second = server_new(fixture->base, &(struct server_options){1024, 4, 1000, handle_nothing, NULL});
    struct error err = {0};
    char path[128], moved[128];

    (void)state;
    snprintf(path, sizeof(path), "%s/dead", fixture->folder);
    snprintf(moved, sizeof(moved), "%s/moved", fixture->folder);
    assert_int_equal(server_listen_unix(second, path, 0600, &err), 0);
    rename(path, moved); /* its owner does not find it to remove */
    server_free(second);
    second = server_new(fixture->base, &(struct server_options){1024, 4, 1000, handle_nothing, NULL});
    assert_int_equal(server_listen_unix(second, moved, 0600, &err), 0);
    server_free(second);
    fixture_free(fixture);
}

/* ---- any bytes ---- */

static const char *const scraps[] = {
    "GET ",
    "POST ",
    "HEAD ",
    "/healthz",
    "/v1/jobs",
    "?a=b",
    " HTTP/1.1",
    "\r\n",
    "\r\n\r\n",
    "Host: a\r\n",
    "\n",
    "\r",
    "%00",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "Authorization: Bearer viewer\r\n",
    "\0\0",
    "\xff\xfe",
    "{\"documents\":[{}]}",
    "Content-Type: application/json\r\n",
    "Accept: text/event-stream\r\n",
};

static void test_limits__any_bytes_leave_the_server_whole(void **state)
{
    struct fixture *fixture = fixture_new(&(struct fixture_options){.timeout_ms = 100});
    struct rng rng = {20260131};

    (void)state;
    for (int round = 0; round < 400; round++) {
        int fd = client_open(fixture, rng_below(&rng, 2) == 0);
        BUF bytes = {0};

        for (uint64_t n = rng_below(&rng, 20); n > 0; n--) {
            size_t i = (size_t)rng_below(&rng, ARRAY_SIZE(scraps));

            buf_add(&bytes, scraps[i], i == 20 ? 2 : strlen(scraps[i]));
        }
        if (rng_below(&rng, 4) == 0 && bytes.len > 0)
            bytes.data[rng_below(&rng, bytes.len)] = (char)rng_below(&rng, 256);
        if (bytes.len > 0)
            client_send(fixture, fd, bytes.data, bytes.len);
        if (rng_below(&rng, 2) == 0)
            shutdown(fd, SHUT_WR);
        fixture_turn(fixture, 0);
        close(fd);
        fixture_turn(fixture, 0);
    }
    expect_alive(fixture);
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits__a_large_body_is_refused_before_it_is_read),
        cmocka_unit_test(test_limits__a_body_of_the_largest_size_is_taken),
        cmocka_unit_test(test_limits__a_large_head_is_refused),
        cmocka_unit_test(test_limits__an_expected_body_is_asked_for),
        cmocka_unit_test(test_limits__requests_in_a_row_are_answered_in_order),
        cmocka_unit_test(test_limits__connections_over_the_limit_are_told),
        cmocka_unit_test(test_limits__a_flood_of_connections_ends),
        cmocka_unit_test(test_limits__a_slow_head_is_given_up),
        cmocka_unit_test(test_limits__a_slow_body_is_given_up),
        cmocka_unit_test(test_limits__an_idle_connection_is_closed),
        cmocka_unit_test(test_limits__a_reader_that_does_not_read_is_cut),
        cmocka_unit_test(test_limits__failed_attempts_are_counted_per_address),
        cmocka_unit_test(test_limits__guessing_is_answered_429_and_good_tokens_pass),
        cmocka_unit_test(test_limits__socket_files),
        cmocka_unit_test(test_limits__a_dead_socket_is_replaced),
        cmocka_unit_test(test_limits__any_bytes_leave_the_server_whole),
    };
    int failed = RUN_TABLE(test_limits__body, body_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
