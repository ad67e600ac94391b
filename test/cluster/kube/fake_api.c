#include "test/cluster/kube/fake_api.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

void fake_init(struct http *http, struct clock *clock, uint64_t seed)
{
    *http = (struct http){.clock = clock, .rng = {seed}};
}

static void drop(struct http_call *call)
{
    struct http_call **at = &call->http->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    clock_timer_free(call->timer);
    free(call->path);
    free(call->mark);
    free(call);
}

void fake_release(struct http *http)
{
    while (http->calls)
        drop(http->calls);
    buf_release(&http->log);
}

bool fake_is_watch(const struct http_call *call)
{
    return strstr(call->path, "watch=1") != NULL;
}

char *fake_parameter(const struct http_call *call, const char *name)
{
    const char *at = strchr(call->path, '?');
    size_t len = strlen(name);

    while (at && *at) {
        at++;
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return mem_strndup(at + len + 1, strcspn(at + len + 1, "&"));
        at = strchr(at, '&');
    }
    return NULL;
}

static void note(struct http_call *call)
{
    char *token = fake_parameter(call, "continue"), *version = fake_parameter(call, "resourceVersion");
    char *limit = fake_parameter(call, "limit");

    if (fake_is_watch(call))
        buf_addf(&call->http->log, "watch@%s ", version ? version : "");
    else if (!call->http->logs_paths)
        buf_addf(&call->http->log, "list%s%s%s ", limit ? "" : "-all", token ? "+" : "", token ? token : "");
    else
        buf_addf(&call->http->log, "%s ", call->path);
    free(token);
    free(version);
    free(limit);
}

static void on_arrived(void *ctx)
{
    struct http_call *call = ctx;

    call->http->arrived(call->http->ctx, call);
}

struct http_call *http_send(struct http *http, const struct http_request *request)
{
    struct http_call *call = mem_new(struct http_call), **at = &http->calls;

    call->http = http;
    call->request = *request;
    call->path = mem_strdup(request->path);
    call->timer = clock_timer_new(http->clock, on_arrived, call);
    clock_timer_set(call->timer, clock_now_ms(http->clock));
    while (*at)
        at = &(*at)->next;
    *at = call;
    http->n_requests++;
    note(call);
    return call;
}

void http_cancel(struct http_call *call)
{
    drop(call);
}

static void end(struct http_call *call, const struct http_answer *answer)
{
    call->request.done(call->request.ctx, answer);
    drop(call);
}

void fake_end(struct http_call *call)
{
    end(call, &(struct http_answer){.status = 200, .body = "", .retry_after_ms = -1});
}

void fake_refuse(struct http_call *call, int status, const char *body, int64_t retry_after_ms)
{
    end(call,
        &(struct http_answer){.status = status, .body = body, .len = strlen(body), .retry_after_ms = retry_after_ms});
}

void fake_break(struct http_call *call, enum err_code code)
{
    struct http_answer answer = {.body = "", .retry_after_ms = -1};

    error_set(&answer.err, code, "broken on purpose");
    end(call, &answer);
}

bool fake_send(struct http_call *call, const char *bytes, size_t len)
{
    struct http_answer answer = {.body = "", .retry_after_ms = -1};

    if (!call->request.data) { /* it wants the whole */
        end(call, &(struct http_answer){.status = 200, .body = bytes, .len = len, .retry_after_ms = -1});
        return false;
    }
    while (len) {
        size_t n = 1 + rng_below(&call->http->rng, len < 64 ? len : 64);
        char *piece;

        n = n < len ? n : len;
        piece = malloc(n); /* of its exact size, so that reading past it is seen */
        memcpy(piece, bytes, n);
        if (call->request.data(call->request.ctx, piece, n, &answer.err) < 0) {
            free(piece);
            end(call, &answer);
            return false;
        }
        free(piece);
        bytes += n;
        len -= n;
    }
    return true;
}
