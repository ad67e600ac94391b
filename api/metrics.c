/* Measurements in the text form of Prometheus (exposition format 0.0.4), read from core_status: an object of numbers
 * becomes one metric with a label per key, a number becomes a metric. One more metric is one more row. */
#include <inttypes.h>

#include "api/handlers.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

static const struct metric {
    const char *key; /* in core_status */
    const char *name;
    const char *label; /* for an object of numbers, or NULL */
    const char *type;
    const char *help;
} metrics[] = {
    {"ready", "queued_ready", NULL, "gauge", "1 while the cluster is read and the store written."},
    {"jobs", "queued_jobs", "state", "gauge", "Jobs by state."},
    {"drift", "queued_drift_total", NULL, "counter", "Claims that were allocated otherwise than planned."},
    {"launches", "queued_launches_total", NULL, "counter", "Attempts to launch a gang."},
    {"launchFailures", "queued_launch_failures_total", NULL, "counter",
     "Attempts that failed before all their members ran."},
    {"foreignObjects", "queued_foreign_objects", NULL, "gauge", "Objects with the labels of another server."},
    {"plannerRounds", "queued_planner_rounds_total", NULL, "counter", "Rounds of planning."},
    {"plannerSeconds", "queued_planner_last_round_seconds", NULL, "gauge", "How long the last round of planning took."},
    {"cacheAsked", "queued_simulation_lookups_total", "of", "counter",
     "What the simulation looked up before computing it: compiled expressions, their results, answers for a node."},
    {"cacheFound", "queued_simulation_hits_total", "of", "counter", "Look-ups that found something remembered."},
    {"pending", "queued_queue_pending_jobs", "queue", "gauge", "Jobs that wait, by queue."},
    {"running", "queued_queue_running_jobs", "queue", "gauge", "Jobs that hold devices, by queue."},
    {"devices", "queued_devices", "state", "gauge", "Devices by state."},
    {"clusterRequests", "queued_cluster_requests_total", NULL, "counter", "Requests to the API server."},
    {"clusterRequestFailures", "queued_cluster_request_failures_total", NULL, "counter",
     "Requests to the API server that got no answer."},
    {"clusterLists", "queued_cluster_lists_total", NULL, "counter", "Listings begun, one kind each."},
    {"clusterWatches", "queued_cluster_watches_total", NULL, "counter", "Watches begun, one kind each."},
    {"clusterWatchFailures", "queued_cluster_watch_failures_total", NULL, "counter",
     "Listings and watches that broke off."},
};

/* Label values escape backslash, quote and line end. */
static void add_label(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            buf_addc(out, '\\');
        if (*text == '\n')
            buf_adds(out, "\\n");
        else
            buf_addc(out, *text);
    }
}

static void add_number(struct buf *out, const json_t *value)
{
    if (json_is_integer(value))
        buf_addf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
    else if (json_is_real(value))
        buf_addf(out, " %.17g\n", json_real_value(value));
    else
        buf_addf(out, " %d\n", json_is_true(value) ? 1 : 0);
}

static void add_head(struct buf *out, const struct metric *metric)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name, metric->type);
}

static void add_metric(struct buf *out, const struct metric *metric, json_t *value)
{
    const char *key;
    json_t *number;

    add_head(out, metric);
    if (!json_is_object(value)) {
        buf_adds(out, metric->name);
        add_number(out, value);
        return;
    }
    json_object_foreach (value, key, number) {
        buf_addf(out, "%s{%s=\"", metric->name, metric->label);
        add_label(out, key);
        buf_adds(out, "\"}");
        add_number(out, number);
    }
}

static bool fits(const struct metric *metric, const json_t *value)
{
    return value && (metric->label ? json_is_object(value) : json_is_number(value) || json_is_boolean(value));
}

static void count_queues(json_t *measured, struct request *request)
{
    struct error err = {0};
    json_t *list = core_queues(request->api->core, &request->caller, &err), *queue;
    json_t *pending = json_object(), *running = json_object();
    size_t i;

    json_array_foreach (json_object_get(list, "items"), i, queue) {
        const char *name = json_string_value(json_object_get(queue, "name"));
        json_t *jobs = json_object_get(queue, "jobs");

        json_object_set(pending, name, json_object_get(jobs, "pending"));
        json_object_set(running, name, json_object_get(jobs, "running"));
    }
    json_object_set_new(measured, "pending", pending);
    json_object_set_new(measured, "running", running);
    json_decref(list);
}

static void count_devices(json_t *measured, struct request *request)
{
    struct error err = {0};
    json_t *list = core_devices(request->api->core, &request->caller, &err), *device, *counts = json_object();
    size_t i;

    json_array_foreach (json_object_get(list, "items"), i, device) {
        const char *state = json_string_value(json_object_get(device, "state"));
        json_int_t n = state ? json_integer_value(json_object_get(counts, state)) : 0;

        if (state)
            json_object_set_new(counts, state, json_integer(n + 1));
    }
    json_object_set_new(measured, "devices", counts);
    json_decref(list);
}

void handle_metrics(struct request *request)
{
    static const struct metric connections = {NULL, "queued_http_connections", NULL, "gauge", "Open HTTP connections."};
    json_t *measured = core_status(request->api->core);
    BUF out = {0};

    count_queues(measured, request);
    count_devices(measured, request);
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        json_t *value = json_object_get(measured, metrics[i].key);

        if (fits(&metrics[i], value))
            add_metric(&out, &metrics[i], value);
    }
    add_head(&out, &connections);
    buf_addf(&out, "%s %zu\n", connections.name, server_n_connections(request->api->server));
    json_decref(measured);
    request_text(request, 200, "text/plain; version=0.0.4; charset=utf-8", (struct str){out.data, out.len});
}
