/* Commands and queries of core.h: who may what, what is answered, and what a repeated request gets. */
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "test/support/stage.h"

static const struct stage_job small = {.name = "small", .members = 1, .gpus = 1, .seconds = 10};

static int setup(void **state)
{
    struct stage *stage = mem_new(struct stage);

    stage_open(stage, NULL);
    *state = stage;
    return 0;
}

static int teardown(void **state)
{
    stage_close(*state);
    free(*state);
    return 0;
}

/* ---- answers caught in a struct ---- */

static void keep(void *ctx, const struct core_reply *reply)
{
    struct stage_answer *answer = ctx;

    answer->is_told = true;
    if (reply->err)
        answer->err = *reply->err;
    answer->body = json_incref((json_t *)(uintptr_t)reply->body);
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- submission ---- */

static void test_core__nothing_is_answered_before_the_turn_ends(void **state)
{
    struct stage *stage = *state;
    struct stage_answer answer = {0};
    json_t *documents = json_array();
    const struct submit_options options = {0};

    core_submit(stage->core, &stage_admin, documents, &options, keep, &answer);
    json_decref(documents);
    assert_false(answer.is_told);
    assert_false(core_is_idle(stage->core));
    core_end_turn(stage->core);
    assert_true(answer.is_told);
    assert_int_equal(answer.err.code, ERR_INVALID);
    stage_answer_release(&answer);
}

static void test_core__a_submission_is_accepted_whole_or_not_at_all(void **state)
{
    struct stage *stage = *state;
    char *good = stage_job_yaml(&small),
         *bad = stage_job_yaml(&(struct stage_job){.name = "bad", .queue = "nowhere", .members = 1, .gpus = 1});
    const struct job_filter filter = {.limit = 10};
    struct stage_answer answer;
    BUF both = {0};
    json_t *jobs;

    buf_addf(&both, "%s---\n%s", good, bad);
    answer = stage_submit(stage, &stage_admin, buf_str(&both), NULL);
    assert_int_equal(answer.err.code, ERR_INVALID);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(answer.problems, 0), "document")), 1);
    assert_string_equal(text(json_array_get(answer.problems, 0), "field"), "spec.queue");
    jobs = core_jobs(stage->core, &stage_admin, &filter, NULL);
    assert_int_equal(json_array_size(json_object_get(jobs, "items")), 0);
    json_decref(jobs);
    stage_answer_release(&answer);
    free(good);
    free(bad);
}

static void test_core__the_same_key_gives_the_first_answer(void **state)
{
    struct stage *stage = *state;
    const struct submit_options options = {.idempotency_key = "k1"};
    char *yaml = stage_job_yaml(&small),
         *other = stage_job_yaml(&(struct stage_job){.name = "other", .members = 1, .gpus = 1});
    struct stage_answer first = stage_submit(stage, &stage_admin, yaml, &options), again, conflict;

    stage_restart(stage);
    again = stage_submit(stage, &stage_admin, yaml, &options);
    conflict = stage_submit(stage, &stage_admin, other, &options);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(first.body, "jobs"), 0), "id")),
                     json_integer_value(json_object_get(json_array_get(json_object_get(again.body, "jobs"), 0), "id")));
    assert_int_equal(conflict.err.code, ERR_CONFLICT);
    stage_answer_release(&first);
    stage_answer_release(&again);
    stage_answer_release(&conflict);
    free(yaml);
    free(other);
}

static void test_core__a_dry_run_predicts_and_records_nothing(void **state)
{
    struct stage *stage = *state;
    const struct submit_options options = {.dry_run = true};
    char *yaml = stage_job_yaml(&small);
    struct stage_answer answer = stage_submit(stage, &stage_admin, yaml, &options);
    const json_t *job = json_array_get(json_object_get(answer.body, "jobs"), 0);
    struct error err = {0};

    assert_string_equal(text(json_object_get(job, "prediction"), "verdict"), "fits");
    assert_null(core_job(stage->core, &stage_admin, "small", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    stage_answer_release(&answer);
    free(yaml);
}

static void test_core__a_job_without_queue_goes_to_the_default_one(void **state)
{
    struct stage *stage = *state;
    static const char pod[] =
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}";
    struct stage_answer refused = stage_submit(stage, &stage_admin, pod, NULL), applied;

    assert_int_equal(refused.err.code, ERR_INVALID);
    assert_string_equal(refused.err.field, "spec.queue");
    applied = stage_apply(stage, "{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: default}, spec: {}}");
    assert_int_equal(applied.err.code, ERR_NONE);
    stage_must_submit(stage, pod);
    stage_answer_release(&refused);
    stage_answer_release(&applied);
}

/* Before the cluster has been read nobody knows which classes exist, and nothing may start. */
static void test_core__until_the_cluster_is_read_jobs_are_accepted_and_wait(void **state)
{
    static const char job[] =
        "{apiVersion: queue.dra/v1, kind: GangJob, metadata: {name: early}, spec: {queue: a, groups: [{name: w,"
        " replicas: 1, template: {spec: {containers: [{name: c, image: i, resources: {claims: [{name: g}]}}],"
        " resourceClaims: [{name: g, resourceClaimTemplateName: t}]}}}], claimTemplates: [{name: t, spec:"
        " {devices: {requests: [{name: r, exactly: {deviceClassName: missing}}]}}}]}}";
    const struct submit_options options = {0};
    const struct manifest_limits limits = MANIFEST_LIMITS_DEFAULT;
    struct stage *stage = *state;
    struct stage_answer answer = {0};
    CLEANUP(manifest) *manifest = NULL;
    json_t *documents = json_array(), *view;

    assert_int_equal(manifest_parse("t", job, strlen(job), &limits, &manifest, NULL), 0);
    json_array_append(documents, manifest_document(manifest, 0));
    stage_restart_unread(stage);
    core_submit(stage->core, &stage_admin, documents, &options, keep, &answer);
    core_end_turn(stage->core);
    assert_int_equal(answer.err.code, ERR_NONE);
    view = core_status(stage->core);
    assert_true(json_is_false(json_object_get(view, "ready")));
    json_decref(view);
    view = core_explain(stage->core, &stage_admin, "early", NULL);
    assert_non_null(strstr(text(view, "summary"), "has not been read"));
    json_decref(view);
    stage_settle(stage);
    view = core_explain(stage->core, &stage_admin, "early", NULL);
    assert_string_equal(text(view, "layer"), "devices");
    assert_non_null(strstr(text(view, "summary"), "missing"));
    json_decref(view);
    json_decref(documents);
    stage_answer_release(&answer);
}

/* ---- who may what ---- */

static const struct access_case {
    const char *name;
    struct caller caller;
    const char *queues; /* JSON, or NULL: all */
    bool sees, submits, cancels;
} access_cases[] = {
    {"nobody may do nothing", {.role = ROLE_NONE, .name = "x"}, NULL, false, false, false},
    {"a viewer looks", {.role = ROLE_VIEWER, .name = "ada"}, NULL, true, false, false},
    {"a submitter acts on its own jobs", {.role = ROLE_SUBMITTER, .name = "ada"}, NULL, true, true, true},
    {"and not on those of others", {.role = ROLE_SUBMITTER, .name = "bob"}, NULL, true, true, false},
    {"a queue's administrator acts on all jobs in it",
     {.role = ROLE_QUEUE_ADMIN, .name = "bob"},
     "[\"a\"]",
     true,
     true,
     true},
    {"and sees nothing of others", {.role = ROLE_QUEUE_ADMIN, .name = "ada"}, "[\"b\"]", false, false, false},
    {"an administrator may do everything", {.role = ROLE_ADMIN, .name = "eve"}, "[]", true, true, true},
};

static void test_core__access(void **state)
{
    static const struct caller ada = {.role = ROLE_SUBMITTER, .name = "ada"};
    const struct access_case *c = *state;
    struct stage stage;
    struct caller caller = c->caller;
    char *yaml = stage_job_yaml(&small);
    json_t *queues = c->queues ? json_loads(c->queues, 0, NULL) : NULL, *view;
    struct stage_answer answer = {0};

    stage_open(&stage, NULL);
    caller.queues = queues;
    answer = stage_submit(&stage, &ada, yaml, NULL);
    stage_answer_release(&answer);
    view = core_job(stage.core, &caller, "small", NULL);
    assert_int_equal(view != NULL, c->sees);
    json_decref(view);
    answer = stage_submit(&stage, &caller, yaml, NULL);
    assert_int_equal(answer.err.code == ERR_NONE, c->submits);
    stage_answer_release(&answer);
    answer = (struct stage_answer){0};
    core_job_action(stage.core, &caller, "1", JOB_ACTION_CANCEL, keep, &answer);
    stage_settle(&stage);
    assert_int_equal(answer.err.code == ERR_NONE, c->cancels);
    stage_answer_release(&answer);
    answer = (struct stage_answer){0};
    core_delete_queue(stage.core, &caller, "b", keep, &answer);
    stage_settle(&stage);
    assert_int_equal(answer.err.code == ERR_NONE, caller.role == ROLE_ADMIN);
    stage_answer_release(&answer);
    json_decref(queues);
    free(yaml);
    stage_close(&stage);
}

static struct stage_answer create_token(struct stage *stage, const char *request)
{
    struct stage_answer answer = {0};
    json_t *json = json_loads(request, 0, NULL);

    core_create_token(stage->core, &stage_admin, json, keep, &answer);
    json_decref(json);
    stage_settle(stage);
    return answer;
}

static void test_core__a_token_is_told_once_and_works_until_it_is_deleted(void **state)
{
    struct stage *stage = *state;
    struct stage_answer made = create_token(stage, "{\"name\": \"ci\", \"role\": \"submitter\", \"queues\": [\"a\"]}");
    struct stage_answer gone = {0};
    struct caller caller;
    json_t *list;

    assert_int_equal(made.err.code, ERR_NONE);
    stage_restart(stage);
    assert_int_equal(core_authenticate(stage->core, text(made.body, "token"), &caller, NULL), 0);
    assert_int_equal(caller.role, ROLE_SUBMITTER);
    assert_string_equal(caller.name, "ci");
    assert_int_equal(json_array_size(caller.queues), 1);
    assert_int_equal(core_authenticate(stage->core, "qd_wrong", &caller, NULL), -1);
    assert_int_equal(core_authenticate(stage->core, "", &caller, NULL), -1);
    list = core_tokens(stage->core, &stage_admin, NULL);
    assert_null(json_object_get(json_array_get(json_object_get(list, "items"), 0), "token"));
    json_decref(list);
    core_delete_token(stage->core, &stage_admin, text(made.body, "id"), keep, &gone);
    stage_settle(stage);
    assert_int_equal(gone.err.code, ERR_NONE);
    assert_int_equal(core_authenticate(stage->core, text(made.body, "token"), &caller, NULL), -1);
    stage_answer_release(&made);
    stage_answer_release(&gone);
}

static void test_core__a_wrong_token_request_names_the_field(void **state)
{
    static const char *const rows[][2] = {
        {"{}", "name"},
        {"{\"name\": \"x\"}", "role"},
        {"{\"name\": \"x\", \"role\": \"king\"}", "role"},
        {"{\"name\": \"x\", \"role\": \"none\"}", "role"},
        {"{\"name\": \"x\", \"role\": \"admin\", \"queues\": [\"zzz\"]}", "queues[0]"},
        {"{\"name\": \"x\", \"role\": \"admin\", \"queues\": 3}", "queues"}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct stage_answer answer = create_token(*state, rows[i][0]);

        assert_int_equal(answer.err.code, ERR_INVALID);
        assert_string_equal(answer.err.field, rows[i][1]);
        stage_answer_release(&answer);
    }
}

/* ---- queries ---- */

static void test_core__jobs_come_in_pages(void **state)
{
    struct stage *stage = *state;
    struct job_filter filter = {.limit = 2};
    size_t n = 0, n_pages = 0;

    for (int i = 0; i < 5; i++)
        stage_must_start(stage, &small);
    for (;;) {
        json_t *page = core_jobs(stage->core, &stage_admin, &filter, NULL);
        const char *next = text(page, "next");

        n += json_array_size(json_object_get(page, "items"));
        n_pages++;
        filter.after = next ? strtoll(next, NULL, 10) : 0;
        json_decref(page);
        if (filter.after == 0)
            break;
    }
    assert_int_equal(n, 5);
    assert_int_equal(n_pages, 3);
}

static void test_core__jobs_are_filtered(void **state)
{
    static const struct {
        struct job_filter filter;
        size_t want;
    } rows[] = {
        {{.limit = 10, .state = "pending"}, 1}, {{.limit = 10, .state = "Running"}, 1},
        {{.limit = 10, .queue = "b"}, 1},       {{.limit = 10, .user = "root"}, 2},
        {{.limit = 10, .user = "ada"}, 0},      {{.limit = 10, .ns = "default"}, 2},
        {{.limit = 10, .ns = "other"}, 0},      {{.limit = 10, .label = "x=y"}, 0},
    };
    struct stage *stage = *state;
    struct error err = {0};

    stage_must_start(stage, &(struct stage_job){.name = "big", .queue = "b", .members = 2, .gpus = 2, .seconds = 60});
    stage_must_start(stage, &small);
    stage_run(stage, 1000);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        json_t *page = core_jobs(stage->core, &stage_admin, &rows[i].filter, NULL);

        assert_int_equal(json_array_size(json_object_get(page, "items")), rows[i].want);
        json_decref(page);
    }
    assert_null(core_jobs(stage->core, &stage_admin, &(struct job_filter){.limit = 10, .state = "dancing"}, &err));
    assert_string_equal(err.field, "state");
    assert_null(core_jobs(stage->core, &stage_admin, &(struct job_filter){.limit = 0}, &err));
}

static void check_layer(struct stage *stage, const char *job, const char *layer)
{
    json_t *view = core_explain(stage->core, &stage_admin, job, NULL);

    assert_string_equal(text(view, "layer"), layer);
    assert_true(strlen(text(view, "summary")) > 0);
    json_decref(view);
}

static void test_core__the_explanation_names_the_layer(void **state)
{
    struct stage *stage = *state;

    stage_must_start(stage, &(struct stage_job){.name = "big", .members = 2, .gpus = 2, .seconds = 20});
    check_layer(stage, "big", "launch");
    stage_must_start(stage, &small);
    check_layer(stage, "small", "devices");
    stage_run(stage, 1000);
    check_layer(stage, "big", "running");
    stage_must_start(stage, &(struct stage_job){.name = "held", .members = 1, .gpus = 1, .more = "  hold: true\n"});
    check_layer(stage, "held", "queue");
    stage_run(stage, 60000);
    check_layer(stage, "big", "ended");
}

static void test_core__a_brief_round_is_explained_in_full_when_asked(void **state)
{
    struct stage *stage = *state;
    json_t *view;

    stage_must_start(stage, &(struct stage_job){.name = "big", .members = 2, .gpus = 2, .seconds = 200});
    for (int i = 0; i < 40; i++)
        stage_must_start(stage, &small);
    view = core_explain(stage->core, &stage_admin, "small", NULL);
    assert_string_equal(text(view, "layer"), "devices");
    assert_true(json_array_size(json_object_get(view, "hints")) > 0);
    json_decref(view);
}

static void test_core__events_tell_a_life(void **state)
{
    struct stage *stage = *state;
    json_t *page;

    stage_must_start(stage, &small);
    stage_run(stage, 60000);
    page = core_events(stage->core, &stage_admin, "small", 0, 2, NULL);
    assert_int_equal(json_array_size(json_object_get(page, "items")), 2);
    assert_non_null(text(page, "next"));
    json_decref(page);
    page = core_events(stage->core, &stage_admin, "small", 2, 100, NULL);
    assert_string_equal(text(json_array_get(json_object_get(page, "items"), 0), "to"), "Launching");
    assert_null(text(page, "next"));
    json_decref(page);
}

static void test_core__events_of_all_jobs_are_those_of_ones_queues(void **state)
{
    struct stage *stage = *state;
    json_t *queues = json_pack("[s]", "b");
    struct caller guest = {.role = ROLE_VIEWER, .name = "eve", .queues = queues};
    json_t *page;

    stage_must_start(stage, &small);
    stage_must_start(stage, &(struct stage_job){.name = "other", .queue = "b", .members = 1, .gpus = 1, .seconds = 5});
    stage_run(stage, 60000);
    page = core_events(stage->core, &stage_admin, NULL, 0, 1000, NULL);
    assert_string_equal(text(json_array_get(json_object_get(page, "items"), 0), "name"), "small");
    assert_null(text(page, "next"));
    assert_int_equal(json_array_size(json_object_get(page, "items")), 2 * 6);
    json_decref(page);
    page = core_events(stage->core, &guest, NULL, 0, 1, NULL);
    assert_int_equal(json_array_size(json_object_get(page, "items")), 1);
    assert_string_equal(text(json_array_get(json_object_get(page, "items"), 0), "name"), "other");
    assert_non_null(text(page, "next"));
    json_decref(page);
    json_decref(queues);
}

static void test_core__devices_show_their_holder(void **state)
{
    struct stage *stage = *state;
    json_t *view, *device;
    size_t i, n_held = 0;

    stage_must_start(stage, &small);
    stage_run(stage, 1000);
    view = core_devices(stage->core, &stage_admin, NULL);
    json_array_foreach (json_object_get(view, "items"), i, device)
        n_held += json_integer_value(json_object_get(device, "job")) == 1;
    assert_int_equal(json_array_size(json_object_get(view, "items")), 4);
    assert_int_equal(n_held, 1);
    json_decref(view);
    view = core_nodes(stage->core, &stage_admin, NULL);
    assert_int_equal(json_array_size(json_object_get(view, "items")), 2);
    json_decref(view);
}

static void test_core__applying_tells_what_changed(void **state)
{
    static const char *const want[] = {"unchanged", "unchanged", "changed", "created"};
    struct stage *stage = *state;
    struct stage_answer answer = stage_apply(
        stage, "{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: gpus}, spec: {deviceClassName: gpu}}\n"
               "---\n{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: a}, spec: {weight: 1}}\n"
               "---\n{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: b}, spec: {quotas: [{resource: cpu, "
               "nominal: 500m}]}}\n"
               "---\n{apiVersion: queue.dra/v1, kind: Queue, metadata: {name: c}, spec: {parent: b}}\n");
    const json_t *applied = json_object_get(answer.body, "applied");
    json_t *queue;

    for (size_t i = 0; i < ARRAY_SIZE(want); i++)
        assert_string_equal(text(json_array_get(applied, i), "change"), want[i]);
    stage_answer_release(&answer);
    stage_restart(stage);
    queue = core_queue(stage->core, &stage_admin, "b", NULL);
    assert_float_equal(json_real_value(json_object_get(json_array_get(json_object_get(queue, "quotas"), 0), "nominal")),
                       0.5, 1e-9);
    json_decref(queue);
    answer =
        stage_submit(stage, &stage_admin,
                     "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {kueue.x-k8s.io/queue-name: b}}, spec: "
                     "{containers: [{name: c, image: i}]}}",
                     NULL);
    assert_string_equal(answer.err.field, "spec.queue");
    assert_non_null(strstr(answer.err.text, "below it"));
    stage_answer_release(&answer);
}

static void test_core__a_queue_goes_only_when_it_is_empty(void **state)
{
    struct stage *stage = *state;
    struct stage_answer answer = {0};

    stage_must_start(stage, &small);
    core_delete_queue(stage->core, &stage_admin, "a", keep, &answer);
    stage_settle(stage);
    assert_int_equal(answer.err.code, ERR_CONFLICT);
    stage_answer_release(&answer);
    stage_run(stage, 60000);
    answer = (struct stage_answer){0};
    core_delete_queue(stage->core, &stage_admin, "a", keep, &answer);
    stage_settle(stage);
    assert_int_equal(answer.err.code, ERR_NONE);
    stage_answer_release(&answer);
    assert_null(core_queue(stage->core, &stage_admin, "a", NULL));
}

/* ---- drift ---- */

/* Somebody else decides a claim of ours while the scheduler holds still: not what was planned, but allowed. */
static void allocate_otherwise(struct stage *stage)
{
    const char *key;
    json_t *object, *command = NULL;
    char *text_of_command;

    json_object_foreach (stage->relay.objects, key, object)
        if (strcmp(text(object, "kind"), "ResourceClaim") == 0) {
            json_t *copy = json_deep_copy(object);

            json_object_set_new(copy, "status",
                                json_pack("{s:{s:{s:[{s:s, s:s, s:s, s:s}]}}}", "allocation", "devices", "results",
                                          "request", "r", "driver", "gpu.example.com", "pool", "n2", "device",
                                          "gpu-1"));
            command = json_pack("{s:o}", "putObject", copy);
        }
    text_of_command = json_dumps(command, 0);
    assert_int_equal(stage_command(stage, text_of_command, NULL), 0);
    free(text_of_command);
    json_decref(command);
}

static void check_charge(struct stage *stage, const char *resource, int64_t want)
{
    json_t *view = stage_view(stage, "small"), *charge;
    int64_t amount = 0;
    size_t i;

    json_array_foreach (json_object_get(view, "charges"), i, charge)
        if (strcmp(text(charge, "resource"), resource) == 0)
            amount = json_integer_value(json_object_get(charge, "amount"));
    assert_int_equal(amount, want);
    json_decref(view);
}

static void test_core__an_allocation_that_was_not_planned_is_recorded_and_counted(void **state)
{
    struct stage *stage = *state;
    BUF trace = {0};
    json_t *status;

    struct stage_answer answer =
        stage_apply(stage, "{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: on-n1}, spec: {selector: "
                           "'device.attributes[\"gpu.example.com\"].node == \"n1\"'}}\n"
                           "---\n"
                           "{apiVersion: queue.dra/v1, kind: Resource, metadata: {name: on-n2}, spec: {selector: "
                           "'device.attributes[\"gpu.example.com\"].node == \"n2\"'}}\n");

    assert_int_equal(answer.err.code, ERR_NONE);
    stage_answer_release(&answer);
    stage_command(stage, "{\"hold\": \"schedule\"}", NULL);
    stage_must_start(stage, &small);
    allocate_otherwise(stage);
    stage_command(stage, "{\"release\": \"schedule\"}", NULL);
    stage_run(stage, 2000);
    stage_trace(stage, &trace);
    if (!strstr(buf_str(&trace), "Drift: claim small-1-1-w-0-g: planned n1/gpu-0, allocated n2/gpu-1"))
        fail_msg("%s", buf_str(&trace));
    status = core_status(stage->core);
    assert_int_equal(json_integer_value(json_object_get(status, "drift")), 1);
    json_decref(status);
    check_charge(stage, "on-n1", 0); /* planned there */
    check_charge(stage, "on-n2", 1); /* got there */
    stage_restart(stage);
    check_charge(stage, "on-n2", 1);
}

/* ---- watches, logs ---- */

struct watching {
    struct core_watch *watch;
    int n;
    bool stops;
};

static void on_change(void *ctx)
{
    struct watching *watching = ctx;

    watching->n++;
    if (watching->stops) {
        core_watch_free(watching->watch);
        watching->watch = NULL;
    }
}

static void test_core__a_watch_is_told_of_changes_until_it_goes(void **state)
{
    struct stage *stage = *state;
    struct watching always = {NULL, 0, false}, once = {NULL, 0, true};

    always.watch = core_watch_new(stage->core, on_change, &always);
    once.watch = core_watch_new(stage->core, on_change, &once);
    stage_must_start(stage, &small);
    stage_run(stage, 60000);
    assert_true(always.n > 3);
    assert_int_equal(once.n, 1);
    core_watch_free(always.watch);
}

static void test_core__logs_are_asked_of_the_cluster(void **state)
{
    struct stage *stage = *state;
    struct stage_answer answer = {0}, none = {0};

    stage_must_start(stage, &small);
    stage_run(stage, 1000);
    core_logs(stage->core, &stage_admin, "small", "w-0", 10, keep, &answer);
    core_logs(stage->core, &stage_admin, "small", "w-7", 10, keep, &none);
    stage_settle(stage);
    assert_int_equal(answer.err.code, ERR_NONE);
    assert_true(json_is_string(answer.body));
    assert_int_equal(none.err.code, ERR_NOT_FOUND);
    stage_answer_release(&answer);
    stage_answer_release(&none);
}

static void test_core__a_status_tells_whether_it_is_ready(void **state)
{
    struct stage *stage = *state;
    json_t *status = core_status(stage->core);

    assert_true(json_is_true(json_object_get(status, "ready")));
    json_decref(status);
    stage_must_start(stage, &small);
    stage_run(stage, 1000);
    status = core_status(stage->core);
    assert_int_equal(json_integer_value(json_object_get(status, "launches")), 1);
    assert_int_equal(json_integer_value(json_object_get(status, "launchFailures")), 0);
    assert_true(json_integer_value(json_object_get(status, "plannerRounds")) > 0);
    assert_true(json_is_real(json_object_get(status, "plannerSeconds")));
    json_decref(status);
}

/* Each asks for something else, so that none is a twin of another, and none can start. */
static void submit_blocked(struct stage *stage, int from, int n)
{
    BUF yaml = {0};

    for (int i = from; i < from + n; i++) {
        char name[32];
        char *one;

        snprintf(name, sizeof(name), "blocked-%d", i);
        one = stage_job_yaml(&(struct stage_job){.name = name, .members = 1, .gpus = 5, .seconds = i, .priority = 1});
        buf_addf(&yaml, "---\n%s", one);
        free(one);
    }
    stage_must_submit(stage, buf_str(&yaml));
}

/* A round has a thousand tries. */
static void test_core__whoever_stands_behind_a_thousand_that_are_blocked_starts(void **state)
{
    struct stage *stage = *state;

    submit_blocked(stage, 1, 600);
    submit_blocked(stage, 601, 600);
    stage_must_start(stage, &(struct stage_job){.name = "small", .members = 1, .gpus = 1, .seconds = 5});
    stage_run(stage, 1000);
    assert_string_equal(stage_state(stage, "small"), "Running");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_core__##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whoever_stands_behind_a_thousand_that_are_blocked_starts),
        TEST(nothing_is_answered_before_the_turn_ends),
        TEST(a_submission_is_accepted_whole_or_not_at_all),
        TEST(the_same_key_gives_the_first_answer),
        TEST(a_dry_run_predicts_and_records_nothing),
        TEST(a_job_without_queue_goes_to_the_default_one),
        TEST(until_the_cluster_is_read_jobs_are_accepted_and_wait),
        TEST(a_token_is_told_once_and_works_until_it_is_deleted),
        TEST(a_wrong_token_request_names_the_field),
        TEST(jobs_come_in_pages),
        TEST(jobs_are_filtered),
        TEST(the_explanation_names_the_layer),
        TEST(a_brief_round_is_explained_in_full_when_asked),
        TEST(events_tell_a_life),
        TEST(events_of_all_jobs_are_those_of_ones_queues),
        TEST(devices_show_their_holder),
        TEST(applying_tells_what_changed),
        TEST(a_queue_goes_only_when_it_is_empty),
        TEST(an_allocation_that_was_not_planned_is_recorded_and_counted),
        TEST(a_watch_is_told_of_changes_until_it_goes),
        TEST(logs_are_asked_of_the_cluster),
        TEST(a_status_tells_whether_it_is_ready),
    };

    return RUN_TABLE(test_core__access, access_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
