/* devices, nodes, clock, cluster command, version. */
#include <string.h>

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"
#include "queued/manifest/duration.h"

#include "allocator/base/banned.h"

#define FIELD_CELL(function, key)                                                                                      \
    static void function(const json_t *item, int64_t now_ms, struct buf *out)                                          \
    {                                                                                                                  \
        (void)now_ms;                                                                                                  \
        text_field(out, item, key);                                                                                    \
    }
FIELD_CELL(cell_name, "name")
FIELD_CELL(cell_driver, "driver")
FIELD_CELL(cell_pool, "pool")
FIELD_CELL(cell_state, "state")
FIELD_CELL(cell_claim, "claim")
FIELD_CELL(cell_count, "count")

/* ---- devices ---- */

static void cell_node(const json_t *device, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    if (json_is_string(json_object_get(device, "node")))
        text_field(out, device, "node");
    else
        buf_adds(out, "(any)");
}

/* In a group's row after the first of its node, the name is not said again. */
static void cell_node_once(const json_t *row, int64_t now_ms, struct buf *out)
{
    if (!json_is_true(json_object_get(row, "more")))
        cell_node(row, now_ms, out);
}

static void cell_job(const json_t *device, int64_t now_ms, struct buf *out)
{
    const json_t *job = json_object_get(device, "job");

    (void)now_ms;
    if (json_is_integer(job)) {
        text_value(out, job);
        return;
    }
    text_field(out, device, "claim"); /* somebody else's */
}

/* The value of "attribute": {"string": ...}, whatever its type. */
static void attribute_value(const json_t *attribute, struct buf *out)
{
    const char *type;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)attribute, type, value)
        text_value(out, value);
}

static void cell_attributes(const json_t *device, int64_t now_ms, struct buf *out)
{
    const char *key;
    json_t *value;

    (void)now_ms;
    json_object_foreach (json_object_get(device, "attributes"), key, value) {
        buf_adds(out, out->len ? " " : "");
        text_add(out, key);
        buf_addc(out, '=');
        attribute_value(value, out);
    }
}

static void cell_capacity(const json_t *device, int64_t now_ms, struct buf *out)
{
    const char *key;
    json_t *value;

    (void)now_ms;
    json_object_foreach (json_object_get(device, "capacity"), key, value) {
        buf_adds(out, out->len ? " " : "");
        text_add(out, key);
        buf_addc(out, '=');
        text_value(out, value);
    }
}

static void cell_taints(const json_t *device, int64_t now_ms, struct buf *out)
{
    const json_t *taint;
    size_t i;

    (void)now_ms;
    json_array_foreach (json_object_get(device, "taints"), i, taint) {
        buf_adds(out, out->len ? "," : "");
        text_field(out, taint, "key");
        buf_addc(out, ':');
        text_field(out, taint, "effect");
    }
}

static void cell_devices(const json_t *row, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    text_names(out, json_object_get(row, "devices"));
}

static const struct column group_columns[] = {
    {"NODE", cell_node_once, false, false}, {"DRIVER", cell_driver, false, false},
    {"STATE", cell_state, false, false},    {"JOB", cell_job, false, false},
    {"COUNT", cell_count, true, false},     {"DEVICES", cell_devices, false, false},
};

static const struct column device_columns[] = {
    {"NODE", cell_node, false, false},         {"DRIVER", cell_driver, false, false},
    {"POOL", cell_pool, false, false},         {"DEVICE", cell_name, false, false},
    {"STATE", cell_state, false, false},       {"JOB", cell_job, false, false},
    {"CLAIM", cell_claim, false, false},       {"TAINTS", cell_taints, false, false},
    {"CAPACITY", cell_capacity, false, false}, {"ATTRIBUTES", cell_attributes, false, false},
};

static bool same(const json_t *a, const json_t *b, const char *key)
{
    const json_t *left = json_object_get(a, key), *right = json_object_get(b, key);

    return left == right || (left && right && json_equal(left, right));
}

/* The row of a device's node, driver, state and holder. */
static json_t *group_of(json_t *rows, const json_t *device)
{
    static const char *const keys[] = {"node", "driver", "state", "job", "claim"};
    json_t *row;
    size_t i;

    json_array_foreach (rows, i, row) {
        bool is_it = true;

        /* of a job's devices the claims do not matter */
        for (size_t k = 0; k < ARRAY_SIZE(keys) - json_is_integer(json_object_get(device, "job")); k++)
            is_it = is_it && same(row, device, keys[k]);
        if (is_it)
            return row;
    }
    row = json_pack("{s:[]}", "devices");
    for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
        json_object_set(row, keys[k], json_object_get(device, keys[k]));
    json_array_append_new(rows, row);
    return row;
}

static const char *node_name(const json_t *row)
{
    return field_text(row, "node", "");
}

/* By node, in the order in which the nodes' names sort; else in the server's order. */
static void append_node(const json_t *groups, const char *node, json_t *out)
{
    bool first = true;
    json_t *row;
    size_t i;

    json_array_foreach (groups, i, row) {
        if (strcmp(node_name(row), node) != 0)
            continue;
        json_object_set_new(row, "count", json_integer((json_int_t)json_array_size(json_object_get(row, "devices"))));
        if (!first)
            json_object_set_new(row, "more", json_true());
        first = false;
        json_array_append(out, row);
    }
}

static json_t *grouped(const json_t *devices)
{
    json_t *groups = json_array(), *out = json_array(), *device, *row;
    const char *last = NULL;
    size_t i;

    json_array_foreach (devices, i, device)
        json_array_append(json_object_get(group_of(groups, device), "devices"), json_object_get(device, "name"));
    for (;;) {
        const char *next = NULL;

        json_array_foreach (groups, i, row)
            if ((!last || strcmp(node_name(row), last) > 0) && (!next || strcmp(node_name(row), next) < 0))
                next = node_name(row);
        if (!next)
            break;
        append_node(groups, next, out);
        last = next;
    }
    json_decref(groups);
    return out;
}

static json_t *devices_of_node(const json_t *devices, const char *node)
{
    json_t *of_node = json_array(), *device;
    size_t i;

    json_array_foreach (devices, i, device)
        if (!node || strcmp(node_name(device), node) == 0)
            json_array_append(of_node, device);
    return of_node;
}

int run_devices(struct cli *cli)
{
    struct listing listing = {
        .columns = group_columns,
        .n_columns = ARRAY_SIZE(group_columns),
        .kind = "device",
        .name_key = "name",
        .nothing = args_has(&cli->args, OPT_NODE) ? "no devices on this node" : "no devices",
    };
    json_t *body = NULL, *devices, *rows;
    int status = cli_get(cli, "/v1/devices", &body);

    if (status != EXIT_OK)
        return status;
    devices = devices_of_node(json_object_get(body, "items"), cli->args.values[OPT_NODE]);
    if (cli->output == OUTPUT_TABLE) {
        rows = grouped(devices);
    } else {
        rows = json_incref(devices);
        listing.columns = device_columns;
        listing.n_columns = ARRAY_SIZE(device_columns);
    }
    listing_print(cli, &listing, rows);
    json_decref(rows);
    json_decref(devices);
    json_decref(body);
    return status;
}

/* ---- nodes ---- */

static void cell_ready(const json_t *node, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    buf_adds(out, json_is_true(json_object_get(node, "ready")) ? "ready" : "not ready");
    if (json_is_false(json_object_get(node, "schedulable")))
        buf_adds(out, ", cordoned");
}

static void used_of(const json_t *node, const char *resource, struct buf *out)
{
    const json_t *has = json_object_get(json_object_get(node, "allocatable"), resource);
    const json_t *used = json_object_get(json_object_get(node, "used"), resource);

    if (!has)
        return;
    if (used)
        text_value(out, used);
    else
        buf_adds(out, "0");
    buf_addc(out, '/');
    text_value(out, has);
}

static void cell_cpu(const json_t *node, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    used_of(node, "cpu", out);
}

static void cell_memory(const json_t *node, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    used_of(node, "memory", out);
}

static void cell_pods(const json_t *node, int64_t now_ms, struct buf *out)
{
    (void)now_ms;
    used_of(node, "pods", out);
}

/* Devices of device plugins: whatever is not counted in the other columns. */
static void cell_extended(const json_t *node, int64_t now_ms, struct buf *out)
{
    const char *key;
    json_t *value;

    (void)now_ms;
    json_object_foreach (json_object_get(node, "allocatable"), key, value) {
        if (!strchr(key, '/'))
            continue;
        buf_adds(out, out->len ? " " : "");
        text_add(out, key);
        buf_addc(out, '=');
        used_of(node, key, out);
    }
}

static void cell_labels(const json_t *node, int64_t now_ms, struct buf *out)
{
    const char *key;
    json_t *value;

    (void)now_ms;
    json_object_foreach (json_object_get(node, "labels"), key, value) {
        buf_adds(out, out->len ? "," : "");
        text_add(out, key);
        buf_addc(out, '=');
        text_value(out, value);
    }
}

static const struct column node_columns[] = {
    {"NODE", cell_name, false, false},     {"STATE", cell_ready, false, false},
    {"CPU", cell_cpu, true, false},        {"MEMORY", cell_memory, true, false},
    {"PODS", cell_pods, true, false},      {"EXTENDED", cell_extended, false, false},
    {"TAINTS", cell_taints, false, false}, {"LABELS", cell_labels, false, true},
};

int run_nodes(struct cli *cli)
{
    const struct listing listing = {
        .columns = node_columns,
        .n_columns = ARRAY_SIZE(node_columns),
        .kind = "node",
        .name_key = "name",
        .nothing = "no nodes",
    };
    json_t *body = NULL;
    int status = cli_get(cli, "/v1/nodes", &body);

    if (status == EXIT_OK)
        listing_print(cli, &listing, json_object_get(body, "items"));
    json_decref(body);
    return status;
}

/* ---- clock ---- */

static void print_clock(struct cli *cli, const json_t *clock)
{
    BUF line = {0};

    if (is_document(cli)) {
        document_print(cli, clock);
        return;
    }
    text_time(&line, field_text(clock, "now", ""));
    fprintf(cli->out, "%s UTC (%s)\n", buf_str(&line),
            json_is_true(json_object_get(clock, "virtual")) ? "virtual" : "real");
}

int run_clock(struct cli *cli)
{
    json_t *clock = NULL;
    int status = cli_get(cli, "/v1/clock", &clock);

    if (status == EXIT_OK)
        print_clock(cli, clock);
    json_decref(clock);
    return status;
}

int run_clock_advance(struct cli *cli)
{
    json_t *body, *clock = NULL;
    int64_t ms;
    int status;

    if (!duration_parse(cli->args.words[0], &ms))
        return cli_usage(cli, "\"%.40s\" is no duration such as 90s, 5m or 1h30m", cli->args.words[0]);
    body = json_pack("{s:I}", "milliseconds", (json_int_t)ms);
    status = cli_send(cli, "POST", "/v1/clock/advance", body, &clock);
    if (status == EXIT_OK)
        print_clock(cli, clock);
    json_decref(clock);
    json_decref(body);
    return status;
}

/* ---- the embedded cluster ---- */

int run_cluster_command(struct cli *cli)
{
    json_error_t at;
    json_t *body = json_loads(cli->args.words[0], 0, &at);
    int status;

    if (!json_is_object(body)) {
        json_decref(body);
        return cli_usage(cli, "the command must be a JSON object%s%s", body ? "" : ": ", body ? "" : at.text);
    }
    status = cli_send(cli, "POST", "/v1/cluster/command", body, NULL);
    json_decref(body);
    return status;
}

/* ---- version ---- */

/* This program's is said even when there is no server. */
int run_version(struct cli *cli)
{
    json_t *version = NULL;
    BUF cluster = {0};
    int status;

    if (!is_document(cli))
        fprintf(cli->out, "dra-submit %s\n", QUEUED_VERSION);
    status = cli_get(cli, "/v1/version", &version);
    if (status == EXIT_OK && is_document(cli)) {
        json_object_set_new(version, "client", json_string(QUEUED_VERSION));
        document_print(cli, version);
    } else if (status == EXIT_OK) {
        text_field(&cluster, version, "cluster");
        fprintf(cli->out, "queued     %s\ncluster    %s\n", field_text(version, "version", "?"), buf_str(&cluster));
    }
    json_decref(version);
    return status;
}
