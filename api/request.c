/* From an exchange to a handler and back: find the route, the caller and its role, check parameters and body, call. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "api/body.h"
#include "api/handlers.h"
#include "api/internal.h"
#include "api/problem.h"
#include "queued/clock.h"
#include "queued/log.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

enum { WAKE_PERIOD_US = 10000 };

static int64_t mono_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* ---- what was asked ---- */

const char *request_param(const struct request *request, const char *name)
{
    return uri_param_find(&request->uri, name);
}

static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    intmax_t number;

    if (text[0] < '0' || text[0] > '9' || strlen(text) > 19)
        return false;
    number = strtoimax(text, &end, 10);
    *out = number;
    return *end == '\0';
}

/* Parameters were checked before the handler was called. */
int64_t request_int(const struct request *request, const char *name, int64_t absent)
{
    const char *text = request_param(request, name);
    int64_t number = absent;

    if (text)
        INVARIANT(parse_int(text, &number));
    return number;
}

bool request_flag(const struct request *request, const char *name)
{
    const char *text = request_param(request, name);

    return text && strcmp(text, "false") != 0;
}

const char *request_header(struct request *request, const char *name)
{
    struct str value = http_header_find(exchange_head(request->exchange), name);

    return value.ptr ? arena_strndup(&request->arena, value.ptr, value.len) : NULL;
}

/* ---- answers ---- */

static void note(struct request *request, int status)
{
    struct str method = exchange_head(request->exchange)->method;

    if (!log_is_on(LOG_DEBUG))
        return;
    log_debug("http.request", LOG_STR("request", exchange_id(request->exchange)),
              LOG_STR("peer", exchange_peer(request->exchange)->address), LOG_STR("user", request->caller.name),
              LOG_STR("method", arena_strndup(&request->arena, method.ptr, method.len)),
              LOG_STR("route", request->route ? request->route->path : NULL), LOG_INT("status", status),
              LOG_INT("us", mono_us() - request->begin_mono_us));
}

void request_text(struct request *request, int status, const char *content_type, struct str text)
{
    note(request, status);
    exchange_reply(request->exchange, status, content_type, text);
}

void request_empty(struct request *request, int status)
{
    request_text(request, status, NULL, (struct str){NULL, 0});
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo): an ETag must differ when the body does, nobody attacks it. */
static uint64_t hash(struct str text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* If-None-Match compares weakly (RFC 9110, section 13.1.2), so a W/ before a tag is skipped. */
static bool is_known_to_client(struct request *request, const char *etag)
{
    struct str header = http_header_find(exchange_head(request->exchange), "if-none-match");
    const char *weak = arena_printf(&request->arena, "w/%s", etag);

    return header.ptr && (http_text_is(header, "*") || http_list_has(header, etag) || http_list_has(header, weak));
}

void request_json(struct request *request, int status, const json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
    struct str bytes = str_of(text);
    bool is_get = request->route && strcmp(request->route->method, "GET") == 0 && status == 200;

    INVARIANT(text);
    exchange_header(request->exchange, "Cache-Control", is_get ? "no-cache" : "no-store");
    if (is_get) {
        const char *etag = arena_printf(&request->arena, "\"%016" PRIx64 "\"", hash(bytes));

        exchange_header(request->exchange, "ETag", etag);
        if (is_known_to_client(request, etag)) {
            free(text);
            request_empty(request, 304);
            return;
        }
    }
    request_text(request, status, "application/json", bytes);
    free(text);
}

void request_result(struct request *request, json_t *body, const struct error *err)
{
    if (!body) {
        request_fail(request, err);
        return;
    }
    request_json(request, request->route->status, body);
    json_decref(body);
}

void request_problem(struct request *request, int status, enum err_code code, const char *field, const char *detail,
                     const json_t *problems)
{
    char *text = problem_format(status, code, field, detail, problems);

    if (status == 401)
        exchange_header(request->exchange, "WWW-Authenticate", "Bearer");
    if (status == 429 || status == 503)
        exchange_header(request->exchange, "Retry-After", "1");
    exchange_header(request->exchange, "Cache-Control", "no-store");
    request_text(request, status, PROBLEM_CONTENT_TYPE, str_of(text));
    free(text);
}

void request_fail(struct request *request, const struct error *err)
{
    request_problem(request, problem_status(err->code), err->code, err->field, err->text, NULL);
}

/* In a YAML body every problem also gets its line. */
static json_t *with_lines(const struct request *request, const json_t *problems)
{
    json_t *copy = json_deep_copy(problems), *problem;
    size_t i;

    json_array_foreach (copy, i, problem) {
        const char *field = json_string_value(json_object_get(problem, "field"));
        json_int_t document = json_integer_value(json_object_get(problem, "document"));

        if (document >= 0 && (size_t)document < manifest_n_documents(request->manifest))
            json_object_set_new(
                problem, "line",
                json_integer((json_int_t)manifest_line(request->manifest, (size_t)document, field ? field : "")));
    }
    return copy;
}

void request_core_reply(void *ctx, const struct core_reply *reply)
{
    struct request *request = ctx;
    json_t *problems = NULL;

    if (!reply->err) {
        if (request->route->status == 204 || !reply->body)
            request_empty(request, 204);
        else
            request_json(request, request->route->status, reply->body);
        return;
    }
    if (reply->problems && request->manifest)
        problems = with_lines(request, reply->problems);
    request_problem(request, problem_status(reply->err->code), reply->err->code, reply->err->field, reply->err->text,
                    problems ? problems : reply->problems);
    json_decref(problems);
}

void request_stream(struct request *request, const char *content_type)
{
    note(request, 200);
    request->is_streaming = true;
    exchange_header(request->exchange, "Cache-Control", "no-store");
    exchange_stream_start(request->exchange, 200, content_type);
}

void request_end_wait(struct request *request)
{
    if (request->is_streaming)
        exchange_stream_end(request->exchange);
    else
        request_problem(request, 503, ERR_UNAVAILABLE, NULL, "the server is stopping", NULL);
}

/* ---- dispatch ---- */

static const struct param *param_find(const struct route *route, const char *name)
{
    for (const struct param *param = route->params; param->name; param++)
        if (strcmp(param->name, name) == 0)
            return param;
    return NULL;
}

static int check_param(const struct param *param, const struct uri_param *given, struct error *err)
{
    int64_t number;

    switch (param->kind) {
    case PARAM_TEXT:
        if (given->value[0] == '\0' || strlen(given->value) > 1024)
            return error_field(err, param->name, "%s must have 1 to 1024 bytes", param->name);
        return 0;
    case PARAM_FLAG:
        if (given->value[0] && strcmp(given->value, "true") != 0 && strcmp(given->value, "false") != 0)
            return error_field(err, param->name, "%s must be true or false", param->name);
        return 0;
    case PARAM_INT:
        if (!parse_int(given->value, &number) || number < param->min || number > param->max)
            return error_field(err, param->name, "%s must be a number from %" PRId64 " to %" PRId64, param->name,
                               param->min, param->max);
        return 0;
    }
    return 0;
}

static int check_params(const struct request *request, struct error *err)
{
    for (size_t i = 0; i < request->uri.n_params; i++) {
        const struct uri_param *given = &request->uri.params[i];
        const struct param *param = param_find(request->route, given->name);

        if (!param)
            return error_field(err, given->name, "%s %s has no parameter '%.60s'", request->route->method,
                               request->route->path, given->name);
        if (check_param(param, given, err) < 0)
            return -1;
    }
    return 0;
}

/* What preparing a request says: 0, or the status of a refusal whose words are in err. */
static int refuse(struct error *err, int status, enum err_code code, const char *detail)
{
    error_set(err, code, "%s", detail);
    return status;
}

static int take_body(struct request *request, struct error *err)
{
    struct str bytes = exchange_body(request->exchange);
    enum body_type type = body_type_of(http_header_find(exchange_head(request->exchange), "content-type"));
    bool takes_yaml = request->route->body == BODY_DOCUMENTS;
    int result;

    if (request->route->body == BODY_NONE)
        return bytes.len == 0 ? 0 : refuse(err, 400, ERR_INVALID, "this request takes no body");
    if (type != BODY_TYPE_JSON && !(takes_yaml && type == BODY_TYPE_YAML)) {
        error_set(err, ERR_INVALID, "Content-Type must be application/json%s",
                  takes_yaml ? " or application/yaml" : "");
        return 415;
    }
    if (takes_yaml)
        result = body_parse_documents(bytes, type, &request->body, &request->manifest, err);
    else
        result = body_parse_json(bytes, &request->body, err);
    if (result < 0)
        return err->code == ERR_LIMIT ? 413 : 400;
    if (!takes_yaml && !json_is_object(request->body))
        return refuse(err, 400, ERR_INVALID, "the body must be an object");
    return 0;
}

static int authorize(struct request *request, struct error *err)
{
    enum role wanted = request->route ? request->route->role : ROLE_VIEWER;
    int status;

    if (wanted == ROLE_NONE)
        return 0;
    status = request_authenticate(request, err);
    if (status != 0)
        return status;
    if (request->caller.role < wanted) {
        error_set(err, ERR_DENIED, "this needs the role %s; %s has %s", role_name(wanted), request->caller.name,
                  role_name(request->caller.role));
        return 403;
    }
    return 0;
}

/* The route if there is one; who asks comes before what there is, so that strangers learn nothing of it. */
static int route_and_authorize(struct request *request, struct error *err)
{
    struct str method = exchange_head(request->exchange)->method;
    BUF allowed = {0};
    int status;

    if (uri_parse(exchange_head(request->exchange)->target, &request->arena, &request->uri, err) < 0)
        return problem_status(err->code); /* says nothing about us */
    request->route = route_find(method, &request->uri, request->args, &allowed);
    status = authorize(request, err);
    if (status != 0 || request->route)
        return status;
    if (allowed.len == 0)
        return refuse(err, 404, ERR_NOT_FOUND, "there is no such path");
    exchange_header(request->exchange, "Allow", buf_str(&allowed));
    error_set(err, ERR_INVALID, "this path takes %s", buf_str(&allowed));
    return 405;
}

/* Without a core there is nobody to know a token, and nothing to tell but that this process is alive. */
static int stand_by(struct request *request, struct error *err)
{
    const struct http_head *head = exchange_head(request->exchange);
    const char *reason = request->api->standby;
    BUF allowed = {0};

    if (uri_parse(head->target, &request->arena, &request->uri, err) < 0)
        return problem_status(err->code);
    request->route = route_find(head->method, &request->uri, request->args, &allowed);
    if (request->route && request->route->handle == handle_healthz)
        return 0;
    return refuse(err, 503, ERR_UNAVAILABLE, reason ? reason : "this server is on standby");
}

static int prepare(struct request *request, struct error *err)
{
    int status = (request->api->core ? route_and_authorize : stand_by)(request, err);

    if (status != 0)
        return status;
    if (check_params(request, err) < 0)
        return 400;
    return take_body(request, err);
}

static void request_free(void *owner)
{
    struct request *request = owner;

    waiter_free(request->waiter);
    json_decref(request->queues);
    json_decref(request->body);
    manifest_free(request->manifest);
    arena_release(&request->arena);
    free(request);
}

/* The peer left. A command in flight is not taken back; what only waits ends. */
static void on_gone(void *owner)
{
    struct request *request = owner;

    if (request->waiter)
        exchange_drop(request->exchange);
}

static void on_drained(void *owner)
{
    struct request *request = owner;

    waiter_look(request->waiter);
}

static void on_exchange(void *ctx, struct exchange *exchange)
{
    struct request *request = mem_new(struct request);
    struct error err = {0};
    int status;

    request->api = ctx;
    request->exchange = exchange;
    request->begin_mono_us = mono_us();
    clock_new_turn(request->api->options.clock); /* the loop may have slept since it was read */
    exchange_own(exchange, &(struct exchange_owner){request, request_free, on_gone, on_drained});
    status = prepare(request, &err);
    if (status == 0) {
        request->route->handle(request);
    } else {
        if (status == 429)
            exchange_close_after(exchange);
        request_problem(request, status, err.code, err.field, err.text, NULL);
    }
}

/* ---- the whole ---- */

/* The core tells within its turn; looking again waits for the turn's end, so that nobody hears what is not durable. It
 * also waits for a moment after the last look: many waiters and many turns cost no more than a few looks together. */
static void on_core_changed(void *ctx)
{
    struct api *api = ctx;
    int64_t rest_us = api->last_wake_us + WAKE_PERIOD_US - mono_us();
    struct timeval tv = {0, rest_us > 0 ? (suseconds_t)rest_us : 0};

    if (api->waiters && !evtimer_pending(api->changed, NULL))
        event_add(api->changed, &tv);
}

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
    struct api *api = arg;

    (void)fd, (void)what;
    api_wake_all(api);
    api->last_wake_us = mono_us();
}

struct api *api_new(const struct api_options *options)
{
    struct api *api = mem_new(struct api);

    api->options = *options;
    api->core = options->core;
    api->server = server_new(options->base, &(struct server_options){.max_body_bytes = options->max_body_bytes,
                                                                     .max_connections = options->max_connections,
                                                                     .timeout_ms = options->request_timeout_ms,
                                                                     .handle = on_exchange,
                                                                     .ctx = api});
    api->changed = evtimer_new(options->base, on_changed, api);
    INVARIANT(api->changed);
    if (api->core)
        api->watch = core_watch_new(api->core, on_core_changed, api);
    return api;
}

void api_standby(struct api *api, const char *reason)
{
    free(api->standby);
    api->standby = mem_strdup(reason);
}

void api_lead(struct api *api, struct core *core)
{
    INVARIANT(!api->core && core);
    api->core = core;
    if (!api->is_stopping)
        api->watch = core_watch_new(core, on_core_changed, api);
}

int api_listen_tcp(struct api *api, const char *listen, int *out_port, struct error *err)
{
    return server_listen_tcp(api->server, listen, out_port, err);
}

int api_listen_unix(struct api *api, const char *path, unsigned mode, struct error *err)
{
    return server_listen_unix(api->server, path, mode, err);
}

void api_stop(struct api *api)
{
    if (api->is_stopping)
        return;
    api->is_stopping = true;
    api_end_waits(api);
    core_watch_free(api->watch);
    api->watch = NULL;
    server_stop(api->server);
}

bool api_is_quiet(const struct api *api)
{
    return server_is_quiet(api->server);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    api_stop(api);
    server_free(api->server);
    event_free(api->changed);
    free(api->standby);
    free(api);
}
