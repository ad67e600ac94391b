/* Requests against a scripted server: what is verified, what is sent, and how each way to fail is told. */
#include "test/cluster/kube/http_world.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/support/cmocka.h"

#include "allocator/base/banned.h"

#define JANE "{client-certificate: client.crt, client-key: client.key}"

/* ---- one request, one outcome ---- */

static const struct ask_case {
    const char *name;
    enum server_kind server;
    const char *cluster, *user;
    struct https_reply replies[3];
    const char *method, *body;
    int64_t timeout_ms, idle_ms;
    size_t max_bytes;
    bool streams;
    /* wanted */
    int status;
    const char *text; /* of the body, or of the error (a part of it) */
    enum err_code code;
    bool may_be_done;
    size_t n_requests;
    const char *head; /* a part of the last request's head, or NULL */
    int64_t retry_after_ms;
} ask_cases[] = {
    {"an answer", .replies = {{.chunks = {"he", "llo"}}}, .status = 200, .text = "hello", .n_requests = 1},
    {"an answer with a status of its own", .replies = {{.status = 409, .chunks = {"{}"}}}, .status = 409, .text = "{}",
     .n_requests = 1},
    {"a status of its own is no stream", .replies = {{.status = 410, .chunks = {"gone"}}}, .streams = true,
     .status = 410, .text = "gone", .n_requests = 1},
    {"a stream", .replies = {{.chunks = {"a\n", "b\n"}, .gap_ms = 5}}, .streams = true, .status = 200, .text = "a\nb\n",
     .n_requests = 1},
    {"no redirect is followed", .replies = {{.status = 302, .headers = "Location: https://127.0.0.1:1/\r\n"}},
     .status = 302, .text = "", .n_requests = 1},
    {"plain HTTP where it is said", .server = SERVER_PLAIN, .cluster = "plain", .user = "", .replies = {{0}},
     .status = 200, .text = "", .n_requests = 1, .head = "Accept: application/json\r\n"},

    {"the client's certificate is shown", .user = JANE, .replies = {{0}}, .status = 200, .text = "", .n_requests = 1},
    {"the token is sent", .user = "token: abc.def", .replies = {{0}}, .status = 200, .text = "", .n_requests = 1,
     .head = "Authorization: Bearer abc.def\r\n"},
    {"impersonation is sent", .user = "{token: t, as: joe, as-groups: [g], as-user-extra: {a/b: [x]}}",
     .replies = {{0}}, .status = 200, .text = "", .n_requests = 1, .head = "Impersonate-Extra-a%2Fb: x\r\n"},
    {"answers may be compressed", .replies = {{0}}, .status = 200, .text = "", .n_requests = 1,
     .head = "Accept-Encoding: gzip\r\n"},
    {"a body is sent with its type", .method = "PATCH", .body = "{\"a\":1}", .replies = {{0}}, .status = 200,
     .text = "", .n_requests = 1, .head = "Content-Type: application/json\r\n"},
    {"no leave is asked for to send a body", .method = "POST", .body = "{}", .replies = {{0}}, .status = 200,
     .text = "", .n_requests = 1, .head = "POST /a/b?c=d%2Fe HTTP/1.1\r\n"},

    {"another authority", .server = SERVER_OTHER_CA, .replies = {{0}}, .code = ERR_DENIED, .text = "certificate"},
    {"another name", .server = SERVER_OTHER_NAME, .replies = {{0}}, .code = ERR_DENIED, .text = "127.0.0.1"},
    {"an expired certificate", .server = SERVER_EXPIRED, .replies = {{0}}, .code = ERR_DENIED, .text = "expired"},
    {"a certificate of the future", .server = SERVER_NOT_YET, .replies = {{0}}, .code = ERR_DENIED,
     .text = "not yet valid"},
    {"the system's authorities do not know it", .cluster = "disable-compression: true", .replies = {{0}},
     .code = ERR_DENIED, .text = "certificate"},
    {"unverified when asked for", .server = SERVER_OTHER_CA, .cluster = "insecure-skip-tls-verify: true",
     .replies = {{0}}, .status = 200, .text = "", .n_requests = 1},
    {"the name that the certificate must have", .server = SERVER_OTHER_NAME,
     .cluster = "certificate-authority: ca.crt\n    tls-server-name: api.test", .replies = {{0}}, .status = 200,
     .text = "", .n_requests = 1, .head = "Host: 127.0.0.1:"},
    {"the name that the certificate must have and has not",
     .cluster = "certificate-authority: ca.crt\n    tls-server-name: api.test", .replies = {{0}}, .code = ERR_DENIED,
     .text = "api.test"},
    {"no TLS where TLS is expected", .server = SERVER_PLAIN, .replies = {{0}}, .timeout_ms = 100, .code = ERR_TIMEOUT,
     .text = "no answer in time"},

    {"no answer in time", .replies = {{.delay_ms = 3000}}, .timeout_ms = 700, .code = ERR_TIMEOUT, .may_be_done = true,
     .text = "no answer in time", .n_requests = 1},
    {"an answer that stops", .replies = {{.chunks = {"a"}, .end = HTTPS_HANG}}, .idle_ms = 700, .code = ERR_TIMEOUT,
     .may_be_done = true, .text = "broke off", .n_requests = 1},
    {"an answer that drips is not idle", .replies = {{.chunks = {"a", "b", "c", "d"}, .gap_ms = 500}}, .idle_ms = 1500,
     .status = 200, .text = "abcd", .n_requests = 1},
    {"the whole time counts also for one that drips", .replies = {{.chunks = {"a"}, .repeat = 100, .gap_ms = 20}},
     .idle_ms = 3000, .timeout_ms = 900, .code = ERR_TIMEOUT, .may_be_done = true, .text = "broke off",
     .n_requests = 1},
    {"closed before the answer", .method = "POST", .body = "{}", .replies = {{.end = HTTPS_NO_ANSWER}},
     .code = ERR_REMOTE, .may_be_done = true, .text = "POST /a/b", .n_requests = 1},
    {"closed in the middle", .replies = {{.chunks = {"a"}, .end = HTTPS_BROKEN}}, .code = ERR_REMOTE,
     .may_be_done = true, .text = "GET", .n_requests = 1},
    {"a stream closed in the middle", .replies = {{.chunks = {"a"}, .end = HTTPS_BROKEN}}, .streams = true,
     .code = ERR_REMOTE, .may_be_done = true, .text = "GET", .n_requests = 1},

    {"too large a body", .replies = {{.chunks = {"0123456789"}, .repeat = 11}}, .max_bytes = 100, .code = ERR_LIMIT,
     .may_be_done = true, .text = "larger than 100 bytes", .n_requests = 1},
    {"just as large as may be", .replies = {{.chunks = {"0123456789"}, .repeat = 2}}, .max_bytes = 20, .status = 200,
     .text = "01234567890123456789", .n_requests = 1},

    {"come back in seconds", .replies = {{.status = 429, .headers = "Retry-After: 7\r\n"}}, .status = 429, .text = "",
     .n_requests = 1, .retry_after_ms = 7000},
    {"come back, in other letters", .replies = {{.status = 429, .headers = "retry-AFTER:  3 \r\n"}}, .status = 429,
     .text = "", .n_requests = 1, .retry_after_ms = 3000},
    {"come back at a date that is over",
     .replies = {{.status = 503, .headers = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n"}}, .status = 503,
     .text = "", .n_requests = 1, .retry_after_ms = 0},
    {"come back in a century", .replies = {{.status = 429, .headers = "Retry-After: 99999999999999999999\r\n"}},
     .status = 429, .text = "", .n_requests = 1, .retry_after_ms = 86400000},
    {"come back whenever", .replies = {{.status = 429, .headers = "Retry-After: -4 apples\r\n"}}, .status = 429,
     .text = "", .n_requests = 1, .retry_after_ms = -1},
    {"a token that cannot be renewed is not sent again", .user = "token: t", .replies = {{.status = 401}},
     .status = 401, .text = "", .n_requests = 1},
};

static void test_http__ask(void **state)
{
    const struct ask_case *c = *state;
    struct http_world world;
    struct kept kept = {0};
    struct error err = {0};
    size_t n;

    http_world_begin(&world, c->server);
    http_world_kubeconfig(&world, c->cluster, c->user ? c->user : "");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, c->replies, 3);
    struct http_request request = {
        .method = c->method ? c->method : "GET",
        .path = "/a/b?c=d%2Fe",
        .body = c->body,
        .len = c->body ? strlen(c->body) : 0,
        .timeout_ms = c->timeout_ms,
        .idle_ms = c->idle_ms,
        .max_bytes = c->max_bytes,
        .data = c->streams ? kept_data : NULL,
        .done = kept_done,
        .ctx = &kept,
    };
    http_send(world.http, &request);
    assert_int_equal(kept.n, 0); /* never from inside */
    http_world_run(&world, &kept.n);
    n = https_stub_n_requests(world.stub);
    assert_int_equal(kept.n, 1);
    if (kept.status != c->status)
        print_error("%s\n", kept.err.text);
    assert_int_equal(kept.status, c->status);
    assert_int_equal(kept.err.code, c->code);
    assert_int_equal(kept.may_be_done, c->may_be_done);
    assert_int_equal(n, c->n_requests);
    if (c->status)
        assert_string_equal(buf_str(kept.data.len ? &kept.data : &kept.body), c->text);
    else
        assert_non_null(strstr(kept.err.text, c->text));
    if (c->head)
        assert_non_null(strstr(https_stub_request(world.stub, n - 1)->head, c->head));
    if (c->body)
        assert_string_equal(https_stub_request(world.stub, n - 1)->body, c->body);
    if (c->user && strcmp(c->user, JANE) == 0)
        assert_string_equal(https_stub_request(world.stub, n - 1)->client, "jane");
    if (c->status == 429 || c->status == 503)
        assert_int_equal(kept.retry_after_ms, c->retry_after_ms);
    else
        assert_int_equal(kept.retry_after_ms, -1);
    assert_int_equal(http_n_failed(world.http), c->status ? 0 : 1);
    kept_release(&kept);
    http_world_end(&world);
}

/* ---- what needs more than one request ---- */

static struct http_request get(const char *path, struct kept *kept)
{
    return (struct http_request){.method = "GET", .path = path, .done = kept_done, .ctx = kept};
}

static void begin(struct http_world *world, const char *user, const struct https_reply *replies, size_t n)
{
    struct error err = {0};

    http_world_begin(world, SERVER_GOOD);
    http_world_kubeconfig(world, NULL, user);
    assert_int_equal(http_world_open(world, NULL, &err), 0);
    https_stub_script(world->stub, replies, n);
}

static void end(struct http_world *world, struct kept *kept)
{
    kept_release(kept);
    http_world_end(world);
}

/* Through the proxy of the context to the real server, whose certificate is checked as ever; or not at all. */
static void through_proxy(const struct https_reply *reply, int want_status)
{
    static const struct https_reply fine[] = {{.chunks = {"fine"}}};
    struct http_world world;
    struct kept kept = {0};
    struct error err = {0};
    BUF cluster = {0};

    http_world_begin(&world, SERVER_GOOD);
    struct https_options plain = {.base = world.base};
    struct https_stub *proxy = https_stub_new(&plain);
    https_stub_script(world.stub, fine, 1);
    https_stub_script(proxy, reply, 1);
    buf_addf(&cluster, "certificate-authority: ca.crt\n    proxy-url: http://127.0.0.1:%d", https_stub_port(proxy));
    http_world_kubeconfig(&world, buf_str(&cluster), "token: t");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    struct http_request request = get("/", &kept);
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.status, want_status);
    assert_string_equal(https_stub_request(proxy, 0)->method, "CONNECT");
    assert_null(strstr(https_stub_request(proxy, 0)->head, "Bearer"));
    assert_int_equal(https_stub_n_requests(world.stub), want_status ? 1 : 0);
    if (!want_status) {
        assert_int_equal(kept.err.code, ERR_UNAVAILABLE);
        assert_false(kept.may_be_done);
    }
    http_free(world.http);
    world.http = NULL;
    https_stub_free(proxy);
    end(&world, &kept);
}

static void test_http__proxy(void **state)
{
    static const struct https_reply tunnel = {.end = HTTPS_TUNNEL};

    (void)state;
    through_proxy(&tunnel, 200);
}

static void test_http__proxy_that_refuses(void **state)
{
    static const struct https_reply refusal = {.status = 502};

    (void)state;
    through_proxy(&refusal, 0);
}

/* A server that goes while TLS begins has not shown a wrong certificate: it was not reached. */
static void test_http__cut_while_tls_begins(void **state)
{
    static const struct https_reply cut = {.end = HTTPS_CLOSE};

    (void)state;
    through_proxy(&cut, 0);
}

static void test_http__nobody_listens(void **state)
{
    struct http_world world;
    struct kept kept = {0};
    struct error err = {0};
    struct https_stub *gone;

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_kubeconfig(&world, NULL, "");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    gone = world.stub;
    struct https_options nothing = {.base = world.base};
    world.stub = https_stub_new(&nothing); /* another port */
    https_stub_free(gone);
    struct http_request request = get("/", &kept);
    request.method = "POST";
    request.body = "{}";
    request.len = 2;
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.status, 0);
    assert_int_equal(kept.err.code, ERR_UNAVAILABLE);
    assert_false(kept.may_be_done);
    end(&world, &kept);
}

static void test_http__refused_token_is_read_again_once(void **state)
{
    static const struct https_reply replies[] = {{.status = 401, .times = 1}, {.chunks = {"fine"}}};
    struct http_world world;
    struct kept kept = {0};

    (void)state;
    struct error err = {0};
    http_world_begin(&world, SERVER_GOOD);
    http_world_write(&world, "token", "old\n");
    http_world_kubeconfig(&world, NULL, "tokenFile: token");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, replies, 2);
    http_world_write(&world, "token", "new\n");
    struct http_request request = get("/", &kept);
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.status, 200);
    assert_string_equal(buf_str(&kept.body), "fine");
    assert_int_equal(https_stub_n_requests(world.stub), 2);
    assert_non_null(strstr(https_stub_request(world.stub, 0)->head, "Bearer old\r\n"));
    assert_non_null(strstr(https_stub_request(world.stub, 1)->head, "Bearer new\r\n"));
    end(&world, &kept);
}

static void test_http__refused_twice_is_the_answer(void **state)
{
    static const struct https_reply replies[] = {{.status = 401, .chunks = {"who?"}}};
    struct http_world world;
    struct kept kept = {0};
    struct error err = {0};

    (void)state;
    http_world_begin(&world, SERVER_GOOD);
    http_world_write(&world, "token", "bad");
    http_world_kubeconfig(&world, NULL, "tokenFile: token");
    assert_int_equal(http_world_open(&world, NULL, &err), 0);
    https_stub_script(world.stub, replies, 1);
    struct http_request request = get("/", &kept);
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.status, 401);
    assert_string_equal(buf_str(&kept.body), "who?");
    assert_int_equal(https_stub_n_requests(world.stub), 2);
    end(&world, &kept);
}

static void test_http__many_at_a_time(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"x"}, .delay_ms = 5}};
    struct http_world world;
    struct kept kept = {0};
    char path[32];

    (void)state;
    begin(&world, "token: t", replies, 1);
    for (int i = 0; i < 200; i++) {
        snprintf(path, sizeof(path), "/%d", i);
        struct http_request request = get(path, &kept);
        http_send(world.http, &request);
    }
    for (int i = 0; i < 100000 && kept.n < 200; i++)
        event_base_loop(world.base, EVLOOP_ONCE);
    assert_int_equal(kept.n, 200);
    assert_int_equal(kept.status, 200);
    assert_true(https_stub_n_connections(world.stub) <= 8);
    assert_int_equal(http_n_sent(world.http), 200);
    end(&world, &kept);
}

static void test_http__streams_take_no_room_from_others(void **state)
{
    static const struct https_reply replies[] = {{.path = "/watch", .chunks = {"x"}, .end = HTTPS_HANG},
                                                 {.chunks = {"y"}}};
    struct http_world world;
    struct kept kept = {0}, watch = {0};

    (void)state;
    begin(&world, "token: t", replies, 2);
    for (int i = 0; i < 30; i++) {
        struct http_request request = get("/watch", &watch);
        request.data = kept_data;
        http_send(world.http, &request);
    }
    while (watch.data.len < 30 && !world.is_over)
        event_base_loop(world.base, EVLOOP_ONCE);
    struct http_request request = get("/", &kept);
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.status, 200);
    assert_int_equal(watch.n, 0);
    kept_release(&watch);
    end(&world, &kept);
}

/* A POST over a connection that was used before and dies is not sent again by itself; a GET is. */
static void dead_connection(const char *method, int want_status, size_t want_requests)
{
    static const struct https_reply replies[] = {
        {.path = "/1"}, {.path = "/2", .times = 1, .end = HTTPS_NO_ANSWER}, {.path = "/2"}};
    struct http_world world;
    struct kept kept = {0};

    begin(&world, "token: t", replies, 3);
    struct http_request request = get("/1", &kept);
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    kept.n = 0;
    request.method = method;
    request.path = "/2";
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.n, 1);
    assert_int_equal(kept.status, want_status);
    assert_int_equal(https_stub_n_requests(world.stub), want_requests);
    if (!want_status) {
        assert_int_equal(kept.err.code, ERR_REMOTE);
        assert_true(kept.may_be_done);
    }
    end(&world, &kept);
}

static void test_http__post_is_not_repeated(void **state)
{
    (void)state;
    dead_connection("POST", 0, 2);
}

static void test_http__get_is_repeated(void **state)
{
    (void)state;
    dead_connection("GET", 200, 3);
}

/* After a request that timed out in silence the next one gets a connection of its own. */
static void test_http__silent_connections_are_left(void **state)
{
    static const struct https_reply replies[] = {{.path = "/1"}, {.path = "/2", .end = HTTPS_HANG, .delay_ms = 60000}};
    struct http_world world;
    struct kept kept = {0};

    (void)state;
    begin(&world, "token: t", replies, 2);
    const char *const paths[] = {"/1", "/2", "/1"};
    for (size_t i = 0; i < 3; i++) {
        struct http_request request = get(paths[i], &kept);
        request.timeout_ms = 1000;
        kept.n = 0;
        http_send(world.http, &request);
        http_world_run(&world, &kept.n);
        assert_int_equal(kept.status, i == 1 ? 0 : 200);
    }
    assert_int_equal(https_stub_request(world.stub, 0)->connection, 0);
    assert_int_equal(https_stub_request(world.stub, 1)->connection, 0);
    assert_int_equal(https_stub_request(world.stub, 2)->connection, 1);
    end(&world, &kept);
}

/* ---- callbacks that refuse and cancel ---- */

struct canceller {
    struct kept kept;
    struct http_call *victims[4];
    size_t n_victims;
    int n_data;
    struct http *http;
};

static int refuse_data(void *ctx, const char *bytes, size_t len, struct error *err)
{
    struct canceller *c = ctx;

    (void)bytes, (void)len;
    c->n_data++;
    return error_set(err, ERR_INVALID, "line 1 is no event");
}

static void on_refused(void *ctx, const struct http_answer *answer)
{
    kept_done(&((struct canceller *)ctx)->kept, answer);
}

static void test_http__data_may_refuse(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"a", "b"}, .end = HTTPS_HANG}};
    struct http_world world;
    struct canceller c = {0};

    (void)state;
    begin(&world, "token: t", replies, 1);
    struct http_request request = {.method = "GET", .path = "/", .data = refuse_data, .done = on_refused, .ctx = &c};
    http_send(world.http, &request);
    http_world_run(&world, &c.kept.n);
    assert_int_equal(c.n_data, 1);
    assert_int_equal(c.kept.status, 0);
    assert_int_equal(c.kept.err.code, ERR_INVALID);
    assert_non_null(strstr(c.kept.err.text, "line 1 is no event"));
    end(&world, &c.kept);
}

static int cancel_all_in_data(void *ctx, const char *bytes, size_t len, struct error *err)
{
    struct canceller *c = ctx;

    (void)bytes, (void)len, (void)err;
    c->n_data++;
    for (size_t i = 0; i < c->n_victims; i++)
        http_cancel(c->victims[i]);
    c->n_victims = 0;
    return 0;
}

static void cancel_all_in_done(void *ctx, const struct http_answer *answer)
{
    struct canceller *c = ctx;

    (void)cancel_all_in_data(c, "", 0, NULL);
    kept_done(&c->kept, answer);
}

/* Four calls, of which the first that hears anything cancels all, itself included. */
static void cancel_from(bool from_data)
{
    static const struct https_reply replies[] = {{.chunks = {"a"}, .repeat = 50, .gap_ms = 1}};
    struct http_world world;
    struct canceller c = {0};

    begin(&world, "token: t", replies, 1);
    for (size_t i = 0; i < 4; i++) {
        struct http_request request = {.method = "GET", .path = "/", .done = cancel_all_in_done, .ctx = &c};
        request.data = from_data ? cancel_all_in_data : NULL;
        c.victims[c.n_victims++] = http_send(world.http, &request);
    }
    http_world_run(&world, &c.n_data);
    http_world_pass(&world, 200); /* nobody else is heard of */
    assert_int_equal(c.n_data, 1);
    assert_int_equal(c.kept.n, from_data ? 0 : 1);
    c.kept.n = 0; /* and the client is as good as ever */
    struct http_request request = get("/", &c.kept);
    http_send(world.http, &request);
    http_world_run(&world, &c.kept.n);
    assert_int_equal(c.kept.status, 200);
    end(&world, &c.kept);
}

static void test_http__cancel_in_data(void **state)
{
    (void)state;
    cancel_from(true);
}

static void test_http__cancel_in_done(void **state)
{
    (void)state;
    cancel_from(false);
}

static void send_another(void *ctx, const struct http_answer *answer)
{
    struct canceller *c = ctx;
    struct http_request request = get("/", &c->kept);

    (void)answer;
    http_send(c->http, &request);
}

static void test_http__send_in_done(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"a"}}};
    struct http_world world;
    struct canceller c = {0};

    (void)state;
    begin(&world, "token: t", replies, 1);
    c.http = world.http;
    struct http_request request = {.method = "GET", .path = "/", .done = send_another, .ctx = &c};
    http_send(world.http, &request);
    http_world_run(&world, &c.kept.n);
    assert_int_equal(c.kept.status, 200);
    end(&world, &c.kept);
}

static void test_http__cancel_before_it_began(void **state)
{
    static const struct https_reply replies[] = {{.chunks = {"a"}}};
    struct http_world world;
    struct kept kept = {0};

    (void)state;
    begin(&world, "token: t", replies, 1);
    struct http_request request = get("/", &kept);
    http_cancel(http_send(world.http, &request));
    http_world_pass(&world, 50);
    assert_int_equal(kept.n, 0);
    assert_int_equal(https_stub_n_requests(world.stub), 0);
    http_send(world.http, &request); /* left on its way: freed with the client */
    end(&world, &kept);
}

static void test_http__too_many_headers(void **state)
{
    char *headers = mem_zalloc(80000, 1);
    struct https_reply reply = {.headers = headers};
    struct http_world world;
    struct kept kept = {0};

    (void)state;
    for (size_t i = 0; i < 70; i++)
        snprintf(headers + strlen(headers), 1100, "X-%zu: %01000d\r\n", i, 0);
    begin(&world, "token: t", &reply, 1);
    struct http_request request = get("/", &kept);
    http_send(world.http, &request);
    http_world_run(&world, &kept.n);
    assert_int_equal(kept.status, 0);
    assert_int_equal(kept.err.code, ERR_LIMIT);
    end(&world, &kept);
    free(headers);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http__proxy),
        cmocka_unit_test(test_http__proxy_that_refuses),
        cmocka_unit_test(test_http__cut_while_tls_begins),
        cmocka_unit_test(test_http__nobody_listens),
        cmocka_unit_test(test_http__refused_token_is_read_again_once),
        cmocka_unit_test(test_http__refused_twice_is_the_answer),
        cmocka_unit_test(test_http__many_at_a_time),
        cmocka_unit_test(test_http__streams_take_no_room_from_others),
        cmocka_unit_test(test_http__post_is_not_repeated),
        cmocka_unit_test(test_http__get_is_repeated),
        cmocka_unit_test(test_http__silent_connections_are_left),
        cmocka_unit_test(test_http__data_may_refuse),
        cmocka_unit_test(test_http__cancel_in_data),
        cmocka_unit_test(test_http__cancel_in_done),
        cmocka_unit_test(test_http__send_in_done),
        cmocka_unit_test(test_http__cancel_before_it_began),
        cmocka_unit_test(test_http__too_many_headers),
    };

    return RUN_TABLE(test_http__ask, ask_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
