#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/handlers.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

enum { PAGE_DEFAULT = 100, WAIT_DEFAULT_S = 30, IDEMPOTENCY_KEY_MAX = 255 };

/* ---- submitting ---- */

static int take_idempotency_key(struct request *request, const char **out, struct error *err)
{
    const char *key = request_header(request, "idempotency-key");

    *out = key;
    if (!key)
        return 0;
    if (key[0] == '\0' || strlen(key) > IDEMPOTENCY_KEY_MAX)
        return error_field(err, "Idempotency-Key", "Idempotency-Key must have 1 to %d bytes", IDEMPOTENCY_KEY_MAX);
    for (const char *c = key; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            return error_field(err, "Idempotency-Key", "Idempotency-Key must be printable ASCII");
    return 0;
}

/* Nothing was created, so it is not 201. */
static void on_dry_run(void *ctx, const struct core_reply *reply)
{
    if (reply->err)
        request_core_reply(ctx, reply);
    else
        request_json(ctx, 200, reply->body);
}

void handle_submit(struct request *request)
{
    struct submit_options options = {
        .ns = request_param(request, "namespace"),
        .queue = request_param(request, "queue"),
        .one_job = request_flag(request, "oneJob"),
        .dry_run = request_flag(request, "dryRun"),
    };
    struct error err = {0};

    if (take_idempotency_key(request, &options.idempotency_key, &err) < 0)
        request_fail(request, &err);
    else
        core_submit(request->api->core, &request->caller, request->body, &options,
                    options.dry_run ? on_dry_run : request_core_reply, request);
}

/* ---- reading ---- */

static int take_state(const struct request *request, const char **out, struct error *err)
{
    const char *state = request_param(request, "state");

    *out = state ? job_state_find(state) : NULL;
    if (state && !*out)
        return error_field(err, "state", "there is no state '%.60s'", state);
    return 0;
}

void handle_jobs(struct request *request)
{
    struct job_filter filter = {
        .queue = request_param(request, "queue"),
        .user = request_param(request, "user"),
        .ns = request_param(request, "namespace"),
        .label = request_param(request, "label"),
        .after = request_int(request, "after", 0),
        .limit = (size_t)request_int(request, "limit", PAGE_DEFAULT),
    };
    struct error err = {0};
    json_t *body = NULL;

    if (take_state(request, &filter.state, &err) == 0)
        body = core_jobs(request->api->core, &request->caller, &filter, &err);
    request_result(request, body, &err);
}

/* ---- one job, now or later ---- */

static bool is_reached(const json_t *job, const char *wanted)
{
    const char *state = json_string_value(json_object_get(job, "state"));

    return state && (job_state_is_final(state) || strcmp(state, wanted) == 0);
}

static void answer(struct request *request, json_t *job, const struct error *err)
{
    request_result(request, job, err);
}

static void look_at_job(struct request *request, bool is_over)
{
    const char *wanted = job_state_find(request_param(request, "waitFor"));
    struct error err = {0};
    json_t *job = core_job(request->api->core, &request->caller, request->args[0], &err);

    if (!job || is_over || is_reached(job, wanted ? wanted : ""))
        answer(request, job, &err);
    else
        json_decref(job);
}

/* Wait for the job that the name means now, whatever gets this name later. */
static void wait_for_job(struct request *request, json_t *job)
{
    json_int_t id = json_integer_value(json_object_get(job, "id"));

    request->args[0] = arena_printf(&request->arena, "%lld", (long long)id);
    request_wait(request, request_int(request, "timeout", WAIT_DEFAULT_S) * 1000, look_at_job);
    json_decref(job);
}

void handle_job(struct request *request)
{
    const char *wait_for = request_param(request, "waitFor");
    bool is_ended = wait_for && strcasecmp(wait_for, "ended") == 0;
    const char *wanted = wait_for && !is_ended ? job_state_find(wait_for) : "";
    struct error err = {0};
    json_t *job = NULL;

    if (!wanted)
        error_field(&err, "waitFor", "waitFor must be ended or a state of a job, not '%.60s'", wait_for);
    else
        job = core_job(request->api->core, &request->caller, request->args[0], &err);
    if (!job || !wait_for || is_reached(job, wanted) || request->api->is_stopping)
        answer(request, job, &err);
    else
        wait_for_job(request, job);
}

void handle_job_explain(struct request *request)
{
    struct error err = {0};
    json_t *body = core_explain(request->api->core, &request->caller, request->args[0], &err);

    request_result(request, body, &err);
}

void handle_job_action(struct request *request)
{
    core_job_action(request->api->core, &request->caller, request->args[0], (enum job_action)request->route->arg,
                    request_core_reply, request);
}

/* ---- output of members ---- */

static void on_logs(void *ctx, const struct core_reply *reply)
{
    struct request *request = ctx;

    if (reply->err)
        request_core_reply(ctx, reply);
    else
        request_text(request, 200, "text/plain; charset=utf-8",
                     (struct str){json_string_value(reply->body), json_string_length(reply->body)});
}

void handle_job_logs(struct request *request)
{
    core_logs(request->api->core, &request->caller, request->args[0], request_param(request, "member"),
              (size_t)request_int(request, "tail", PAGE_DEFAULT), on_logs, request);
}

/* ---- events ---- */

void handle_job_events(struct request *request)
{
    struct str accept = http_header_find(exchange_head(request->exchange), "accept");
    struct error err = {0};
    json_t *body;

    if (http_list_has(accept, "text/event-stream")) {
        request_stream_events(request);
        return;
    }
    body = core_events(request->api->core, &request->caller, request->args[0], request_int(request, "after", 0),
                       (size_t)request_int(request, "limit", PAGE_DEFAULT), &err);
    request_result(request, body, &err);
}
