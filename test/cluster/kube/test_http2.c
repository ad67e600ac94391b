/* HTTP/2: one connection for many, and every way in which a stream or its connection ends. */
#include "test/cluster/kube/h2_stub.h"
#include "test/cluster/kube/http_world.h"

#include <event2/event.h>
#include <string.h>

#include "test/support/cmocka.h"

#include "allocator/base/banned.h"

struct h2_world {
    struct http_world world;
    struct h2_stub *stub;
};

static void begin(struct h2_world *w, const enum h2_action *actions, size_t n)
{
    struct error err = {0};
    char *certificate, *key;
    BUF text = {0};

    http_world_begin(&w->world, SERVER_PLAIN);
    pki_issue(w->world.pki, "server", "IP:127.0.0.1", -60, 3600, &certificate, &key);
    w->stub = h2_stub_new(w->world.base, certificate, key, actions, n);
    free(certificate);
    free(key);
    buf_addf(&text,
             "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: "
             "{certificate-authority: ca.crt, server: 'https://127.0.0.1:%d'}}]\n",
             h2_stub_port(w->stub));
    http_world_write(&w->world, "config", buf_str(&text));
    assert_int_equal(http_world_open(&w->world, NULL, &err), 0);
}

static void end(struct h2_world *w)
{
    http_free(w->world.http);
    w->world.http = NULL;
    h2_stub_free(w->stub);
    http_world_end(&w->world);
}

static void ask(struct h2_world *w, const char *method, bool streams, struct kept *kept)
{
    struct http_request request = {
        .method = method, .path = "/", .data = streams ? kept_data : NULL, .done = kept_done, .ctx = kept};

    if (strcmp(method, "GET") != 0) {
        request.body = "{\"a\":1}";
        request.len = 7;
    }
    http_send(w->world.http, &request);
}

static const struct end_case {
    const char *name;
    enum h2_action actions[3];
    const char *method;
    bool streams;
    int status;
    enum err_code code; /* without an answer it may always be done: it was sent */
    size_t n_requests;
} end_cases[] = {
    {"an answer", {H2_ANSWER}, "GET", false, 200, ERR_NONE, 1},
    {"an answer to a body", {H2_ANSWER}, "POST", false, 200, ERR_NONE, 1},
    {"a stream", {H2_ANSWER}, "GET", true, 200, ERR_NONE, 1},
    {"a refused GET is sent again", {H2_REFUSE, H2_ANSWER}, "GET", false, 200, ERR_NONE, 2},
    {"a refused POST is not", {H2_REFUSE, H2_ANSWER}, "POST", false, 0, ERR_REMOTE, 1},
    {"a reset GET", {H2_RESET, H2_ANSWER}, "GET", false, 0, ERR_REMOTE, 1},
    {"a reset POST", {H2_RESET, H2_ANSWER}, "POST", false, 0, ERR_REMOTE, 1},
    {"a connection closed", {H2_CLOSE, H2_ANSWER}, "POST", false, 0, ERR_REMOTE, 1},
    {"a server that goes", {H2_GO_AWAY, H2_ANSWER, H2_ANSWER}, "POST", false, 0, ERR_REMOTE, 1},
    {"half an answer, reset", {H2_HALF_RESET}, "GET", false, 0, ERR_REMOTE, 1},
    {"half an answer, closed", {H2_HALF_CLOSE}, "GET", false, 0, ERR_REMOTE, 1},
    {"half an answer of a server that goes", {H2_HALF_GO_AWAY}, "GET", false, 0, ERR_REMOTE, 1},
    {"half a stream, reset", {H2_HALF_RESET}, "GET", true, 0, ERR_REMOTE, 1},
    {"half a stream, closed", {H2_HALF_CLOSE}, "GET", true, 0, ERR_REMOTE, 1},
    {"half a stream of a server that goes", {H2_HALF_GO_AWAY}, "GET", true, 0, ERR_REMOTE, 1},
};

static void test_http2__end(void **state)
{
    const struct end_case *c = *state;
    struct h2_world w;
    struct kept kept = {0};

    begin(&w, c->actions, 3);
    ask(&w, c->method, c->streams, &kept);
    http_world_run(&w.world, &kept.n);
    assert_int_equal(kept.n, 1);
    if (kept.status != c->status)
        print_error("%s\n", kept.err.text);
    assert_int_equal(kept.status, c->status);
    assert_int_equal(kept.err.code, c->code);
    assert_int_equal(kept.may_be_done, c->status == 0);
    assert_int_equal(h2_stub_n_requests(w.stub), c->n_requests);
    if (c->status)
        assert_string_equal(buf_str(c->streams ? &kept.data : &kept.body), "fine");
    kept_release(&kept);
    end(&w);
}

static void run_until(struct h2_world *w, const int *n, int want)
{
    for (int i = 0; i < 100000 && *n < want; i++)
        event_base_loop(w->world.base, EVLOOP_ONCE);
    assert_int_equal(*n, want);
}

static void test_http2__one_connection_for_many(void **state)
{
    static const enum h2_action actions[] = {H2_ANSWER};
    struct h2_world w;
    struct kept kept = {0};

    (void)state;
    begin(&w, actions, 1);
    for (int i = 0; i < 64; i++)
        ask(&w, i % 2 ? "POST" : "GET", false, &kept);
    run_until(&w, &kept.n, 64);
    assert_int_equal(kept.status, 200);
    assert_int_equal(h2_stub_n_connections(w.stub), 1);
    kept_release(&kept);
    end(&w);
}

static void test_http2__a_stream_that_hangs_holds_no_other(void **state)
{
    static const enum h2_action actions[] = {H2_HANG, H2_ANSWER};
    struct h2_world w;
    struct kept hung = {0}, kept = {0};

    (void)state;
    begin(&w, actions, 2);
    ask(&w, "GET", false, &hung);
    http_world_pass(&w.world, 100);
    for (int i = 0; i < 20; i++)
        ask(&w, "GET", false, &kept);
    run_until(&w, &kept.n, 20);
    assert_int_equal(hung.n, 0);
    kept_release(&kept);
    end(&w);
}

/* The server has said that it takes no more: the next request goes over another connection. */
static void test_http2__after_a_goaway(void **state)
{
    static const enum h2_action actions[] = {H2_LAST_ANSWER, H2_ANSWER};
    struct h2_world w;
    struct kept kept = {0};

    (void)state;
    begin(&w, actions, 2);
    ask(&w, "POST", false, &kept);
    run_until(&w, &kept.n, 1);
    http_world_pass(&w.world, 50);
    ask(&w, "POST", false, &kept);
    run_until(&w, &kept.n, 2);
    assert_int_equal(kept.status, 200);
    assert_int_equal(h2_stub_n_connections(w.stub), 2);
    kept_release(&kept);
    end(&w);
}

/* One connection dies under sixty-four: each is told, and the next ones work. */
static void test_http2__a_connection_that_dies_under_many(void **state)
{
    enum h2_action actions[65];
    struct h2_world w;
    struct kept kept = {0};

    (void)state;
    for (size_t i = 0; i < 65; i++)
        actions[i] = i < 63 ? H2_HANG : i == 63 ? H2_CLOSE : H2_ANSWER;
    begin(&w, actions, 65);
    for (int i = 0; i < 64; i++)
        ask(&w, "POST", false, &kept);
    run_until(&w, &kept.n, 64);
    assert_int_equal(http_n_failed(w.world.http), 64);
    assert_int_equal(h2_stub_n_requests(w.stub), 64);
    assert_true(kept.may_be_done);
    for (int i = 0; i < 10; i++)
        ask(&w, "POST", false, &kept);
    run_until(&w, &kept.n, 74);
    assert_int_equal(kept.status, 200);
    kept_release(&kept);
    end(&w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http2__one_connection_for_many),
        cmocka_unit_test(test_http2__a_stream_that_hangs_holds_no_other),
        cmocka_unit_test(test_http2__after_a_goaway),
        cmocka_unit_test(test_http2__a_connection_that_dies_under_many),
    };

    return RUN_TABLE(test_http2__end, end_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
