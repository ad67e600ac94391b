/* What only servers for demonstrations, tests and what-if have: time that is moved by hand, a cluster that fails when
 * told. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "api/handlers.h"
#include "api/internal.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

/* A year at once; more is a mistake in the unit. */
#define ADVANCE_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)

static json_t *clock_json(const struct clock *clock)
{
    int64_t now_ms = clock_now_ms(clock);
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    char day[32], text[48];

    gmtime_r(&seconds, &tm);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "%s.%03dZ", day, (int)(now_ms % 1000));
    return json_pack("{s:s, s:I, s:b}", "now", text, "milliseconds", (json_int_t)now_ms, "virtual",
                     clock_is_virtual(clock));
}

void handle_clock(struct request *request)
{
    request_result(request, clock_json(request->api->options.clock), NULL);
}

static int take_milliseconds(const json_t *body, int64_t *out, struct error *err)
{
    const json_t *value = json_object_get(body, "milliseconds");

    *out = json_integer_value(value);
    if (!json_is_integer(value) || json_object_size(body) != 1 || *out < 0 || *out > ADVANCE_MAX_MS)
        return error_field(err, "milliseconds", "the body must be {\"milliseconds\": N} with N from 0 to %" PRId64,
                           ADVANCE_MAX_MS);
    return 0;
}

/* Everything that is due happens inside this call, including replies to other requests. */
void handle_clock_advance(struct request *request)
{
    const struct api_options *options = &request->api->options;
    struct error err = {0};
    int64_t ms;

    if (!options->advance)
        error_set(&err, ERR_NOT_FOUND, "this server runs on real time");
    else if (take_milliseconds(request->body, &ms, &err) == 0 && options->advance(options->ctx, ms, &err) == 0) {
        request_result(request, clock_json(options->clock), NULL);
        return;
    }
    request_fail(request, &err);
}

void handle_cluster_command(struct request *request)
{
    const struct api_options *options = &request->api->options;
    struct error err = {0};

    if (!options->command)
        error_set(&err, ERR_NOT_FOUND, "this server has no embedded cluster");
    else if (options->command(options->ctx, request->body, &err) == 0) {
        request_empty(request, 204);
        return;
    }
    request_fail(request, &err);
}
