#include "test/support/stage.h"

#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "queued/cluster/embedded/embedded.h"
#include "queued/log.h"
#include "store/rows.h"

const struct caller stage_admin = {.role = ROLE_ADMIN, .name = "root"};

const char stage_cluster[] =
    "{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n"
    "---\n"
    "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: [{cel: {expression: "
    "'device.driver == \"gpu.example.com\"'}}]}}\n"
#define NODE(n)                                                                                                        \
    "---\n"                                                                                                            \
    "{apiVersion: v1, kind: Node, metadata: {name: " n "}, spec: {}, status: {allocatable: {cpu: '16', memory: 64Gi, " \
    "pods: '20'}, conditions: [{type: Ready, status: 'True'}]}}\n"                                                     \
    "---\n"                                                                                                            \
    "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " n "-gpus}, spec: {driver: "              \
    "gpu.example.com, nodeName: " n ", pool: {name: " n ", generation: 1, resourceSliceCount: 1}, devices: ["          \
    "{name: gpu-0, attributes: {node: {string: " n                                                                     \
    "}, index: {int: 0}}}, {name: gpu-1, attributes: {node: {string: " n "}, index: {int: 1}}}]}}\n"
    NODE("n1") NODE("n2");

const char stage_queues[] =
    "{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: gpus}, spec: {deviceClassName: gpu}}\n"
    "---\n"
    "{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: a}, spec: {weight: 1}}\n"
    "---\n"
    "{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: b}, spec: {weight: 2}}\n";

/* ---- the server's life ---- */

struct stage_round {
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

/* The worker: it takes its time, and looks at what it was given at the end of it. */
static void run_round(void *ctx, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct stage *stage = ctx;

    stage->round = mem_new(struct stage_round);
    *stage->round = (struct stage_round){work, done, arg};
    clock_timer_set(stage->round_timer, clock_now_ms(stage->clock) + stage->options.planning_ms);
}

static void on_round(void *ctx)
{
    struct stage *stage = ctx;
    struct stage_round *round = TAKE(stage->round);

    round->work(round->arg);
    round->done(round->arg);
    free(round);
}

static void on_crash(void *ctx)
{
    struct stage *stage = ctx;

    stage->is_crashed = true;
    stage->n_crashes++;
}

static void start_core(struct stage *stage)
{
    char path[128];
    struct error err = {0};
    struct core_options options = {.cluster = &stage->relay.port,
                                   .clock = stage->clock,
                                   .server_id = STAGE_SERVER,
                                   .pod_groups = stage->options.pod_groups,
                                   .bind_classes = stage->options.bind_classes,
                                   .binds_pods = stage->options.binds_pods,
                                   .provisioning_class = stage->options.provisioning_class,
                                   .crash_at = stage->crash_at,
                                   .crash = on_crash,
                                   .crash_ctx = stage,
                                   .launch_timeout_ms = stage->launch_timeout_ms,
                                   .lost_node_timeout_ms = stage->options.lost_node_timeout_ms,
                                   .reconcile_period_ms = stage->options.reconcile_period_ms,
                                   .run = stage->options.planning_ms ? run_round : NULL,
                                   .run_ctx = stage};

    if (stage->options.before_start)
        stage->options.before_start(stage->options.ctx);
    snprintf(path, sizeof(path), "%s/queued.db", stage->folder);
    if (store_open(path, &stage->store, &err) < 0)
        fail_msg("%s", err.text);
    options.store = stage->store;
    stage->is_crashed = false;
    if (core_new(&options, &stage->core, &err) < 0)
        fail_msg("%s", err.text);
    stage->crash_at = 0;
}

static void stop_core(struct stage *stage)
{
    relay_detach(&stage->relay);
    clock_timer_cancel(stage->round_timer);
    free(TAKE(stage->round));
    core_free(stage->core);
    store_close(stage->store);
}

void stage_restart_unread(struct stage *stage)
{
    stop_core(stage);
    start_core(stage);
    core_end_turn(stage->core);
}

void stage_restart(struct stage *stage)
{
    stage_restart_unread(stage);
    stage_settle(stage);
}

static void settle(void *ctx)
{
    struct stage *stage = ctx;

    core_end_turn(stage->core);
    while (stage->is_crashed) {
        stop_core(stage);
        start_core(stage);
        core_end_turn(stage->core);
    }
    if (stage->options.at_rest)
        stage->options.at_rest(stage->options.ctx);
}

void stage_settle(struct stage *stage)
{
    settle(stage);
    clock_advance(stage->clock, clock_now_ms(stage->clock), settle, stage);
}

void stage_run(struct stage *stage, int64_t ms)
{
    stage_settle(stage);
    clock_advance(stage->clock, clock_now_ms(stage->clock) + ms, settle, stage);
}

static void write_manifests(const struct stage *stage, char *path, size_t size)
{
    FILE *file;

    snprintf(path, size, "%s/cluster.yaml", stage->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(stage_cluster, file);
    fclose(file);
}

static void on_warning(void *ctx, const struct error *err)
{
    (void)ctx;
    fail_msg("manifest: %s", err->text);
}

void stage_open_with(struct stage *stage, const struct stage_options *options)
{
    char path[128];
    struct embedded_options embedded = {.manifests = options->manifests ? options->manifests : path,
                                        .schedule_delay_ms = 50,
                                        .start_delay_ms = 100,
                                        .has_pod_groups = options->has_pod_groups,
                                        .has_no_provisioning = options->has_no_provisioning};
    struct cluster *behind;
    struct error err = {0};
    struct stage_answer applied;

    log_setup(getenv("STAGE_LOG") ? LOG_DEBUG : LOG_ERROR, LOG_TEXT);
    *stage = (struct stage){.clock = clock_virtual_new(STAGE_START_MS),
                            .options = *options,
                            .launch_timeout_ms = options->launch_timeout_ms};
    stage->options.at_rest = NULL; /* not before it has begun */
    stage->round_timer = clock_timer_new(stage->clock, on_round, stage);
    /* in memory where that exists: the tests commit thousands of times, and none of them cuts the power */
    snprintf(stage->folder, sizeof(stage->folder), "%s/queued-core-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(stage->folder));
    write_manifests(stage, path, sizeof(path));
    if (embedded_new(&embedded, stage->clock, on_warning, NULL, &behind, &err) < 0)
        fail_msg("%s", err.text);
    relay_init(&stage->relay, behind, stage->clock);
    start_core(stage);
    stage_settle(stage);
    applied = stage_apply(stage, options->queues ? options->queues : stage_queues);
    if (applied.err.code)
        fail_msg("%s: %s", applied.err.field, applied.err.text);
    stage_answer_release(&applied);
    stage->options.at_rest = options->at_rest;
}

void stage_open(struct stage *stage, const char *manifests)
{
    stage_open_with(stage, &(struct stage_options){.manifests = manifests});
}

void stage_close(struct stage *stage)
{
    static const char *const files[] = {"queued.db", "queued.db-wal", "queued.db-shm", "queued.db.lock",
                                        "cluster.yaml"};

    stop_core(stage);
    relay_release(&stage->relay);
    clock_timer_free(stage->round_timer);
    clock_free(stage->clock);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", stage->folder, files[i]);
        unlink(path);
    }
    rmdir(stage->folder);
}

/* ---- commands ---- */

static void on_reply(void *ctx, const struct core_reply *reply)
{
    struct stage_answer *answer = ctx;

    answer->is_told = true;
    if (reply->err)
        answer->err = *reply->err;
    answer->body = json_incref((json_t *)(uintptr_t)reply->body);
    answer->problems = json_incref((json_t *)(uintptr_t)reply->problems);
}

void stage_answer_release(struct stage_answer *answer)
{
    json_decref(answer->body);
    json_decref(answer->problems);
}

static json_t *documents_of(const char *yaml)
{
    const struct manifest_limits limits = MANIFEST_LIMITS_DEFAULT;
    struct error err = {0};
    CLEANUP(manifest) *manifest = NULL;
    json_t *documents = json_array();

    if (manifest_parse("test", yaml, strlen(yaml), &limits, &manifest, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < manifest_n_documents(manifest); i++)
        json_array_append(documents, manifest_document(manifest, i));
    return documents;
}

struct stage_answer stage_submit(struct stage *stage, const struct caller *caller, const char *yaml,
                                 const struct submit_options *options)
{
    static const struct submit_options plain = {0};
    struct stage_answer answer = {0};
    json_t *documents = documents_of(yaml);

    core_submit(stage->core, caller, documents, options ? options : &plain, on_reply, &answer);
    json_decref(documents);
    stage_settle(stage);
    return answer;
}

struct stage_answer stage_apply(struct stage *stage, const char *yaml)
{
    struct stage_answer answer = {0};
    json_t *documents = documents_of(yaml);

    core_apply(stage->core, &stage_admin, documents, on_reply, &answer);
    json_decref(documents);
    stage_settle(stage);
    return answer;
}

struct stage_answer stage_action(struct stage *stage, const char *job, enum job_action action)
{
    struct stage_answer answer = {0};

    core_job_action(stage->core, &stage_admin, job, action, on_reply, &answer);
    stage_settle(stage);
    return answer;
}

int stage_command(struct stage *stage, const char *json, struct error *err)
{
    json_t *command = json_loads(json, 0, NULL);
    int result;

    assert_non_null(command);
    result = embedded_command(stage->relay.behind, command, err);
    json_decref(command);
    stage_settle(stage);
    return result;
}

int64_t stage_must_submit(struct stage *stage, const char *yaml)
{
    struct stage_answer answer = stage_submit(stage, &stage_admin, yaml, NULL);
    int64_t id;

    if (answer.err.code)
        fail_msg("%s: %s", answer.err.field, answer.err.text);
    id = json_integer_value(json_object_get(json_array_get(json_object_get(answer.body, "jobs"), 0), "id"));
    stage_answer_release(&answer);
    return id;
}

char *stage_job_yaml(const struct stage_job *job)
{
    BUF text = {0};

    buf_addf(&text,
             "apiVersion: queue.dra/v1\n"
             "kind: GangJob\n"
             "metadata: {name: %s}\n"
             "spec:\n"
             "  queue: %s\n"
             "  priority: %d\n"
             "  retries: %d\n"
             "%s"
             "  groups:\n"
             "    - name: w\n"
             "      replicas: %d\n"
             "      template:\n"
             "        metadata: {annotations: {embedded.queue.dra/duration: %ds, embedded.queue.dra/exit-code: '%d'}}\n"
             "        spec:\n"
             "          containers: [{name: c, image: i, resources: {requests: {cpu: '1'}, claims: [{name: g}]}}]\n"
             "          resourceClaims: [{name: g, resourceClaimTemplateName: t}]\n"
             "  claimTemplates:\n"
             "    - name: t\n"
             "      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: %d}}]}}\n",
             job->name, job->queue ? job->queue : "a", job->priority, job->retries, job->more ? job->more : "",
             job->members, job->seconds, job->exit_code, job->gpus);
    return buf_take(&text);
}

int64_t stage_must_start(struct stage *stage, const struct stage_job *job)
{
    char *yaml = stage_job_yaml(job);
    int64_t id = stage_must_submit(stage, yaml);

    free(yaml);
    return id;
}

/* ---- looking ---- */

json_t *stage_view(struct stage *stage, const char *job)
{
    struct error err = {0};
    json_t *view = core_job(stage->core, &stage_admin, job, &err);

    if (!view)
        fail_msg("%s", err.text);
    return view;
}

const char *stage_state(struct stage *stage, const char *job)
{
    static const char *const states[] = {"Held",       "Pending",   "Admitted", "Launching", "Running",
                                         "Preempting", "Succeeded", "Failed",   "Cancelled"};
    json_t *view = stage_view(stage, job);
    const char *state = json_string_value(json_object_get(view, "state"));
    size_t i = 0;

    while (strcmp(states[i], state) != 0)
        i++;
    json_decref(view);
    return states[i];
}

struct tracing {
    struct stage *stage;
    struct buf *out;
};

static void add_time(struct buf *out, int64_t ms)
{
    buf_addf(out, "+%lld.%03llds", (long long)(ms / 1000), (long long)(ms % 1000));
}

static void trace_event(void *ctx, const struct event_row *row)
{
    struct tracing *tracing = ctx;
    char id[24];
    json_t *view;

    snprintf(id, sizeof(id), "%lld", (long long)row->job);
    view = stage_view(tracing->stage, id);
    add_time(tracing->out, row->at_ms - STAGE_START_MS);
    buf_addf(tracing->out, " %s ", json_string_value(json_object_get(view, "name")));
    if (row->to[0])
        buf_addf(tracing->out, "%s -> %s", row->from, row->to);
    else
        buf_adds(tracing->out, row->type);
    buf_addf(tracing->out, "%s%s\n", row->detail[0] ? ": " : "", row->detail);
    json_decref(view);
    tracing->stage->last_event = row->id;
}

void stage_trace(struct stage *stage, struct buf *out)
{
    struct tracing tracing = {stage, out};

    assert_int_equal(store_events_each(stage->store, 0, stage->last_event, 100000, trace_event, &tracing, NULL), 0);
}

static void show_jobs(struct stage *stage, struct buf *out)
{
    const struct job_filter filter = {.limit = 1000};
    json_t *view = core_jobs(stage->core, &stage_admin, &filter, NULL), *job;
    size_t i;

    json_array_foreach (json_object_get(view, "items"), i, job) {
        json_t *charge;
        size_t k;

        buf_addf(out, "  %s %s attempt %d: %s", json_string_value(json_object_get(job, "name")),
                 json_string_value(json_object_get(job, "state")),
                 (int)json_integer_value(json_object_get(job, "attempt")),
                 json_string_value(json_object_get(job, "reason")));
        json_array_foreach (json_object_get(job, "charges"), k, charge)
            buf_addf(out, "%s%s %lld", k ? ", " : " | ", json_string_value(json_object_get(charge, "resource")),
                     (long long)json_integer_value(json_object_get(charge, "amount")));
        buf_addc(out, '\n');
    }
    json_decref(view);
}

static int cmp_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void show_objects(struct stage *stage, struct buf *out)
{
    const char **keys = mem_array(const char *, json_object_size(stage->relay.objects) + 1), *key;
    json_t *object;
    size_t n = 0;

    json_object_foreach (stage->relay.objects, key, object)
        if (json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), LABEL_JOB))
            keys[n++] = key;
    qsort(keys, n, sizeof(*keys), cmp_text);
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "  has %s\n", keys[i]);
    free(keys);
}

void stage_show(struct stage *stage, struct buf *out)
{
    show_jobs(stage, out);
    show_objects(stage, out);
}

struct counting {
    const char *to;
    size_t n;
};

static void count_move(void *ctx, const struct event_row *row)
{
    struct counting *counting = ctx;

    counting->n += strcmp(row->to, counting->to) == 0;
}

size_t stage_n_moves(struct stage *stage, const char *job, const char *to)
{
    struct counting counting = {to, 0};
    json_t *view = stage_view(stage, job);

    assert_int_equal(store_events_each(stage->store, json_integer_value(json_object_get(view, "id")), 0, 100000,
                                       count_move, &counting, NULL),
                     0);
    json_decref(view);
    return counting.n;
}
