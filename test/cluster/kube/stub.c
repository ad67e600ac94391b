#include "test/cluster/kube/stub.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct http_call {
    struct http *http;
    struct http_call *next;
    struct clock_timer *timer;
    void (*done)(void *ctx, const struct http_answer *answer);
    void *ctx;
    struct stub_reply reply;
};

void stub_reply(struct stub_reply *out, int status, const char *body)
{
    out->status = status;
    buf_clear(&out->body);
    buf_adds(&out->body, body);
}

static void drop(struct http_call *call)
{
    struct http_call **at = &call->http->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    clock_timer_free(call->timer);
    buf_release(&call->reply.body);
    free(call);
}

void stub_http_release(struct http *http)
{
    while (http->calls)
        drop(http->calls);
}

static void fire(void *ctx)
{
    struct http_call *call = ctx;
    struct http_answer answer = {
        .status = call->reply.status,
        .body = buf_str(&call->reply.body),
        .len = call->reply.body.len,
        .retry_after_ms = call->reply.retry_after_ms,
        .may_be_done = call->reply.may_be_done,
    };

    if (answer.status == 0) {
        call->http->n_failed++;
        error_set(&answer.err, call->reply.code, "no answer");
    }
    call->done(call->ctx, &answer);
    drop(call);
}

static void lose_answer(struct stub_reply *reply)
{
    stub_reply(reply, 0, "");
    reply->code = ERR_TIMEOUT;
    reply->may_be_done = true;
}

static void serve(struct http *http, const struct http_request *request, struct stub_reply *out)
{
    struct stub_request asked = {request->method, request->path, request->body, request->content_type};

    buf_addf(&http->server->log, "%s %s\n", request->method, request->path);
    stub_reply(out, 200, "{}");
    http->server->serve(http->server->ctx, &asked, out);
}

struct http_call *http_send(struct http *http, const struct http_request *request)
{
    struct http_call *call = mem_new(struct http_call);
    int64_t wait_ms = http->latency_ms;

    INVARIANT(request->timeout_ms > 0);
    call->http = http;
    call->done = request->done;
    call->ctx = request->ctx;
    call->reply.retry_after_ms = -1;
    call->timer = clock_timer_new(http->clock, fire, call);
    call->next = http->calls;
    http->calls = call;
    http->n_sent++;
    if (!http->is_cut)
        serve(http, request, &call->reply);
    if (http->is_cut || http->is_half_cut) {
        lose_answer(&call->reply);
        wait_ms = request->timeout_ms;
    }
    clock_timer_set(call->timer, clock_now_ms(http->clock) + wait_ms);
    return call;
}

void http_cancel(struct http_call *call)
{
    drop(call);
}

uint64_t http_n_sent(const struct http *http)
{
    return http->n_sent;
}

uint64_t http_n_failed(const struct http *http)
{
    return http->n_failed;
}
