/* Events as they happen (server-sent events, WHATWG HTML, section 9.2): one message per event, its id for
 * Last-Event-ID, its type, its JSON. Pages are read from the core only while the peer keeps up, so that a slow reader
 * costs a page. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"

#include "allocator/base/banned.h"

enum { STREAM_PAGE = 100, STREAM_BACKLOG_MAX = 65536, STREAM_ALIVE_MS = 15000 };

static void add_event(struct request *request, const json_t *event)
{
    json_int_t id = json_integer_value(json_object_get(event, "id"));
    const char *type = json_string_value(json_object_get(event, "type"));
    char *data = json_dumps(event, JSON_COMPACT);
    BUF message = {0};

    buf_addf(&message, "id: %lld\nevent: %s\ndata: %s\n\n", (long long)id, type ? type : "event", data);
    exchange_stream_add(request->exchange, (struct str){message.data, message.len});
    free(data);
    request->stream_after = id;
}

/* Returns how many events there were, STREAM_PAGE when there may be more, or -1 when the job is gone. */
static long add_page(struct request *request)
{
    struct error err = {0};
    json_t *page =
        core_events(request->api->core, &request->caller, request->args[0], request->stream_after, STREAM_PAGE, &err);
    json_t *items = json_object_get(page, "items"), *event;
    const char *next = json_string_value(json_object_get(page, "next"));
    size_t n = json_array_size(items), i;

    if (!page)
        return -1;
    json_array_foreach (items, i, event)
        add_event(request, event);
    if (next) { /* behind what others may see only */
        request->stream_after = strtoll(next, NULL, 10);
        n = STREAM_PAGE;
    }
    json_decref(page);
    return (long)n;
}

static bool job_has_ended(struct request *request)
{
    struct error err = {0};
    json_t *job;
    const char *state;
    bool has_ended;

    if (!request->args[0]) /* of all jobs */
        return false;
    job = core_job(request->api->core, &request->caller, request->args[0], &err);
    state = json_string_value(json_object_get(job, "state"));
    has_ended = !state || job_state_is_final(state);
    json_decref(job);
    return has_ended;
}

static void look(struct request *request, bool is_over)
{
    long n = STREAM_PAGE;

    while (n == STREAM_PAGE && exchange_backlog(request->exchange) < STREAM_BACKLOG_MAX)
        n = add_page(request);
    if (n < 0 || (n < STREAM_PAGE && job_has_ended(request))) {
        request_end_wait(request);
        return;
    }
    if (is_over) {
        exchange_stream_add(request->exchange, STR(": alive\n\n"));
        request_wait_again(request, STREAM_ALIVE_MS);
    }
}

/* A client that comes back says what it has seen. */
static int64_t last_seen(struct request *request)
{
    const char *header = request_header(request, "last-event-id");
    char *end;
    intmax_t id;

    if (!header || header[0] < '0' || header[0] > '9' || strlen(header) > 18)
        return request_int(request, "after", 0);
    id = strtoimax(header, &end, 10);
    return *end == '\0' ? id : 0;
}

/* The job that the name means now, whatever gets this name later. */
static int settle_job(struct request *request, struct error *err)
{
    json_t *job = core_job(request->api->core, &request->caller, request->args[0], err);

    if (!job)
        return -1;
    request->args[0] = arena_printf(&request->arena, "%lld", (long long)json_integer_value(json_object_get(job, "id")));
    json_decref(job);
    return 0;
}

void request_stream_events(struct request *request)
{
    struct error err = {0};

    if (request->args[0] && settle_job(request, &err) < 0) {
        request_fail(request, &err);
        return;
    }
    request->stream_after = last_seen(request);
    request_stream(request, "text/event-stream");
    request_wait(request, STREAM_ALIVE_MS, look);
    if (request->api->is_stopping || str_is(exchange_head(request->exchange)->method, "HEAD"))
        request_end_wait(request);
    else
        look(request, false);
}
