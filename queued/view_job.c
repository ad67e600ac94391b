/* Jobs, explanations and events as the API shows them (api/README.md). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/mem.h"
#include "queued/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

json_t *when_view(int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[40];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    return json_sprintf("%s.%03dZ", text, (int)(ms % 1000));
}

static void set_when(json_t *view, const char *key, int64_t ms)
{
    if (ms)
        json_object_set_new(view, key, when_view(ms));
}

/* ---- members ---- */

static size_t n_asked(const struct job *job)
{
    const struct job_shape *shape = &job->blueprint->spec.shapes[job->live ? job->live->shape : 0];
    size_t n = 0;

    for (size_t i = 0; i < shape->n_groups; i++)
        n += shape->groups[i].replicas;
    return n;
}

/* What runs or ran; of whoever waits, what is asked for. */
static size_t n_members_of(const struct job *job)
{
    bool has_run = job->live || job_has_ended(job);

    return has_run && job->n_members ? job->n_members : n_asked(job);
}

static size_t count_phase(const struct job *job, const char *phase)
{
    size_t n = 0;

    for (size_t i = 0; job->live && i < job->live->n_objects; i++) {
        const struct launch_object *object = &job->live->objects[i];
        const char *now = json_string_value(json_object_get(json_object_get(object->observed, "status"), "phase"));

        n += object->rank == RANK_POD && now && strcmp(now, phase) == 0;
    }
    return n;
}

static json_t *members_view(const struct job *job)
{
    size_t total = n_members_of(job);

    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "total", (json_int_t)total, "asked", (json_int_t)n_asked(job),
                     "running", (json_int_t)count_phase(job, "Running"), "succeeded",
                     (json_int_t)(job->state == JOB_SUCCEEDED ? total : count_phase(job, "Succeeded")), "failed",
                     (json_int_t)count_phase(job, "Failed"));
}

/* ---- a job ---- */

static json_t *charges_view(const struct job *job)
{
    json_t *view = json_array(), *amount;
    const char *resource;

    json_object_foreach (job->live->charges, resource, amount)
        json_array_append_new(view, json_pack("{s:s, s:o}", "resource", resource, "amount",
                                              amount_json(resource_kind_of(resource), json_integer_value(amount))));
    return view;
}

static void add_attempt(json_t *view, const struct job *job)
{
    json_object_set_new(view, "shape", json_string(job->blueprint->spec.shapes[job->live->shape].name));
    json_object_set(view, "placement", job->live->placement);
    json_object_set(view, "chosen", job->live->chosen);
    json_object_set_new(view, "charges", charges_view(job));
}

/* What it was placed by, or would be now. An attempt of which that is not known is older than what queues say. */
static void add_effective(json_t *view, const struct core *core, const struct job *job)
{
    size_t queue = job->live ? PLAN_ROOT : book_find_queue(core->book, job->queue);
    struct effective_placement effective =
        effective_placement_of(job->blueprint->spec.placement, core->book->queues, queue);

    if (job->live && job->live->effective)
        json_object_set(view, "effectivePlacement", job->live->effective);
    else if (!job_has_ended(job))
        json_object_set_new(view, "effectivePlacement", effective_view(&effective));
}

/* What became of asking for nodes. */
static void add_ask(json_t *view, const struct job *job)
{
    struct ask_view ask;
    json_t *shown;

    if (!job_ask_view(job, &ask))
        return;
    shown = json_pack("{s:s, s:s, s:s}", "request", ask.name, "state", ask.state, "detail", ask.detail);
    set_when(shown, "againAt", ask.again_ms);
    json_object_set_new(view, "askedForNodes", shown);
}

/* Why it is where it is; of one that waits also what the autoscaler says. */
static json_t *reason_view(const struct job *job)
{
    struct ask_view ask;

    if (job->state != JOB_PENDING || !job_ask_view(job, &ask))
        return json_string(job_sentence(job));
    return json_sprintf("%s; asked for nodes: %s%s%s", job_sentence(job), ask.state, ask.detail[0] ? ": " : "",
                        ask.detail);
}

json_t *job_view(const struct core *core, const struct job *job)
{
    json_t *view =
        json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:I}", "id", (json_int_t)job->id, "name",
                  job_name(job), "namespace", job_ns(job), "queue", job->queue, "user", job->user, "state",
                  state_name(job->state), "priority", (json_int_t)job_priority(core, job), "attempt",
                  (json_int_t)job->attempt, "submittedAt", when_view(job->submitted_ms), "members", members_view(job),
                  "reason", reason_view(job), "retriesLeft", (json_int_t)job->retries_left);

    if (job->ending != JOB_STATE_COUNT)
        json_object_set_new(view, "ending", json_string(state_name(job->ending)));
    if (job->exit_code >= 0)
        json_object_set_new(view, "exitCode", json_integer(job->exit_code));
    set_when(view, "startedAt", job->started_ms);
    set_when(view, "endedAt", job->ended_ms);
    if (job->live)
        add_attempt(view, job);
    add_effective(view, core, job);
    add_ask(view, job);
    return view;
}

/* ---- what is wrong with a live job ---- */

#define MAX_TROUBLES 100

static bool is_to_be_created(const struct launch_object *object)
{
    return object->rank != RANK_ASSUMED && !object->is_there;
}

static json_t *trouble_view(const char *kind, const char *name, const char *layer, const char *detail)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "kind", kind, "name", name, "layer", layer, "detail", detail);
}

/* While objects are being created: what it stands at. */
static json_t *creation_view(const struct job *job)
{
    json_t *view = json_array();

    for (size_t i = 0; i < job->live->n_objects && json_array_size(view) == 0; i++) {
        const struct launch_object *object = &job->live->objects[i];
        bool is_missing = is_to_be_created(object);
        bool is_unallocated = object->is_bound && !is_missing && !object->is_allocated &&
                              !json_object_get(json_object_get(object->observed, "status"), "allocation");

        if (is_missing || is_unallocated)
            json_array_append_new(view,
                                  trouble_view(object->kind, object->name, "api",
                                               object->failures ? "it could not be created yet, and is tried again"
                                               : is_missing     ? "it is being created"
                                                                : "it is being allocated"));
    }
    return view;
}

/* Its members that do not run, or not well: [{"kind", "name", "layer", "detail"}], at most MAX_TROUBLES. */
static json_t *troubles_view(const struct job *job)
{
    json_t *view;

    if (!job->live || job->ending != JOB_STATE_COUNT)
        return json_array();
    if (job->state == JOB_ADMITTED)
        return creation_view(job);
    view = json_array();
    for (size_t i = 0; i < job->live->n_objects && json_array_size(view) < MAX_TROUBLES; i++) {
        const struct launch_object *pod = &job->live->objects[i];
        struct diagnosis found;

        if (pod->rank == RANK_POD && member_diagnose(job->live, pod, &found))
            json_array_append_new(view,
                                  trouble_view("Pod", pod->name, diagnosis_layer_name(found.layer), found.sentence));
    }
    return view;
}

static void add_troubles(json_t *view, const struct job *job)
{
    json_t *troubles = troubles_view(job);

    if (json_array_size(troubles) > 0)
        json_object_set(view, "troubles", troubles);
    json_decref(troubles);
}

json_t *core_job(struct core *core, const struct caller *caller, const char *name, struct error *err)
{
    const struct job *job = caller_find_job(core, caller, name, err);
    json_t *view;

    if (!job)
        return NULL;
    view = job_view(core, job);
    json_object_set(view, "spec", json_object_get(job->blueprint->gangjob, "spec"));
    if (core->is_synced)
        add_troubles(view, job);
    return view;
}

/* ---- lists ---- */

static bool has_label(const struct job *job, const char *label)
{
    const json_t *labels = json_object_get(json_object_get(job->blueprint->gangjob, "metadata"), "labels");
    const char *equals = strchr(label, '='), *value;
    char *key = equals ? mem_strndup(label, (size_t)(equals - label)) : mem_strdup(label);

    value = json_string_value(json_object_get(labels, key));
    free(key);
    return value && (!equals || strcmp(value, equals + 1) == 0);
}

static bool is_wanted(const struct job *job, const struct caller *caller, const struct job_filter *filter,
                      enum job_state state)
{
    return job->id > filter->after && caller_sees_queue(caller, job->queue) &&
           (state == JOB_STATE_COUNT || job->state == state) &&
           (!filter->queue || strcmp(filter->queue, job->queue) == 0) &&
           (!filter->user || strcmp(filter->user, job->user) == 0) &&
           (!filter->ns || strcmp(filter->ns, job_ns(job)) == 0) && (!filter->label || has_label(job, filter->label));
}

static int check_filter(const struct caller *caller, const struct job_filter *filter, enum job_state *out_state,
                        struct error *err)
{
    *out_state = JOB_STATE_COUNT;
    if (caller_needs(caller, ROLE_VIEWER, err) < 0)
        return -1;
    if (filter->limit < 1 || filter->limit > 1000)
        return error_field(err, "limit", "must be 1 to 1000");
    if (filter->state && !state_find(filter->state, out_state))
        return error_field(err, "state", "there is no state %.40s", filter->state);
    return 0;
}

json_t *core_jobs(struct core *core, const struct caller *caller, const struct job_filter *filter, struct error *err)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    json_t *items, *view;
    int64_t last = 0;
    enum job_state state;

    if (check_filter(caller, filter, &state, err) < 0)
        return NULL;
    items = json_array();
    view = json_pack("{s:o}", "items", items);
    for (size_t i = 0; i < jobs->n; i++) {
        if (!is_wanted(jobs->items[i], caller, filter, state))
            continue;
        if (json_array_size(items) == filter->limit) { /* one more: there is a next page */
            json_object_set_new(view, "next", json_sprintf("%lld", (long long)last));
            break;
        }
        json_array_append_new(items, job_view(core, jobs->items[i]));
        last = jobs->items[i]->id;
    }
    return view;
}

/* ---- explanation ---- */

static const char *layer_of(const struct job *job)
{
    if (job_has_ended(job))
        return "ended";
    if (job->state == JOB_HELD)
        return "queue";
    if (job->state == JOB_RUNNING)
        return "running";
    if (job_is_live(job))
        return "launch";
    return job->wait.is_known ? plan_layer_name(job->wait.layer) : "order";
}

/* What the search said, in full; a copy to add to. */
static json_t *search_explanation(struct core *core, const struct job *job)
{
    json_t *full = job->wait.is_brief && core->is_synced ? planner_explain(core, job) : NULL;
    json_t *copy;

    if (!full && !job->wait.explanation)
        return json_object();
    copy = json_deep_copy(full ? full : job->wait.explanation);
    json_decref(full);
    return copy;
}

/* Of a job that was admitted: what it waits for, in place of that it was admitted. */
static void explain_troubles(json_t *view, const struct job *job)
{
    const json_t *first;
    size_t n;

    add_troubles(view, job);
    first = json_array_get(json_object_get(view, "troubles"), 0);
    n = json_array_size(json_object_get(view, "troubles"));
    if (!first)
        return;
    json_object_set_new(view, "summary",
                        json_sprintf("%s %s: %s%s", json_string_value(json_object_get(first, "kind")),
                                     json_string_value(json_object_get(first, "name")),
                                     json_string_value(json_object_get(first, "detail")),
                                     n > 1 ? " (and others)" : ""));
    json_object_set(view, "cause", json_object_get(first, "layer"));
}

static json_t *job_explanation(struct core *core, const struct job *job)
{
    json_t *view = search_explanation(core, job);

    json_object_set_new(view, "id", json_integer(job->id));
    json_object_set_new(view, "name", json_string(job_name(job)));
    json_object_set_new(view, "queue", json_string(job->queue));
    json_object_set_new(view, "state", json_string(state_name(job->state)));
    json_object_set_new(view, "layer", json_string(layer_of(job)));
    if (job->reason[0])
        json_object_set_new(view, "lastReason", json_string(job->reason));
    if (!core->is_synced && !job_has_ended(job))
        json_object_set_new(view, "summary", json_string("the cluster has not been read yet"));
    else if (!job->wait.is_known || job->wait.layer != LAYER_DEVICES || !json_object_get(view, "summary"))
        json_object_set_new(view, "summary", json_string(job_sentence(job)));
    if (core->is_synced)
        explain_troubles(view, job);
    add_effective(view, core, job);
    add_ask(view, job);
    if (job->wait.is_known) {
        json_object_set_new(view, "position", json_integer((json_int_t)job->wait.position));
        json_object_set_new(view, "never", json_boolean(job->wait.is_never));
    }
    if (job->live) {
        json_object_set(view, "placement", job->live->placement);
        json_object_set(view, "chosen", job->live->chosen);
    }
    return view;
}

json_t *core_explain(struct core *core, const struct caller *caller, const char *name, struct error *err)
{
    const struct job *job = caller_find_job(core, caller, name, err);

    return job ? job_explanation(core, job) : NULL;
}

/* ---- events ---- */

#define EVENT_BATCH       1000
#define EVENT_BATCHES_MAX 20 /* of events that the caller must not see, in one call */

struct event_list {
    const struct core *core;
    const struct caller *caller;
    json_t *items;
    size_t limit, n_read;
    int64_t last;
    bool is_full; /* another one that the caller may see follows */
};

static bool may_see(const struct event_list *list, const struct job *job)
{
    return job ? caller_sees_queue(list->caller, job->queue) : !list->caller->queues;
}

static void add_event(void *ctx, const struct event_row *row)
{
    struct event_list *list = ctx;
    const struct job *job = job_list_find(lifecycle_jobs(list->core->lifecycle), row->job);

    list->n_read++;
    if (list->is_full)
        return;
    if (may_see(list, job) && json_array_size(list->items) == list->limit) {
        list->is_full = true;
        return;
    }
    list->last = row->id;
    if (may_see(list, job))
        json_array_append_new(list->items,
                              json_pack("{s:I, s:I, s:s?, s:s?, s:o, s:s, s:s, s:s, s:s}", "id", (json_int_t)row->id,
                                        "job", (json_int_t)row->job, "name", job ? job_name(job) : NULL, "namespace",
                                        job ? job_ns(job) : NULL, "at", when_view(row->at_ms), "type", row->type,
                                        "from", row->from, "to", row->to, "detail", row->detail));
}

/* Fill the list from the store, batch by batch where some of a batch may be for others. */
static int read_events(struct event_list *list, int64_t job, struct error *err)
{
    size_t n = list->caller->queues && !job ? EVENT_BATCH : list->limit + 1;

    for (size_t batch = 0; batch < EVENT_BATCHES_MAX; batch++) {
        list->n_read = 0;
        if (store_events_each(list->core->options.store, job, list->last, n, add_event, list, err) < 0)
            return -1;
        if (list->is_full || list->n_read < n)
            return 0;
    }
    list->is_full = true;
    return 0;
}

/* 0: all jobs; -1 when there is no such job for the caller. */
static int64_t event_job(struct core *core, const struct caller *caller, const char *name, struct error *err)
{
    const struct job *job;

    if (!name)
        return caller_needs(caller, ROLE_VIEWER, err);
    job = caller_find_job(core, caller, name, err);
    return job ? job->id : -1;
}

json_t *core_events(struct core *core, const struct caller *caller, const char *name, int64_t after, size_t limit,
                    struct error *err)
{
    struct event_list list = {.core = core, .caller = caller, .limit = limit, .last = after};
    int64_t job = event_job(core, caller, name, err);
    json_t *view;

    if (job < 0)
        return NULL;
    if (limit < 1 || limit > 1000) {
        error_field(err, "limit", "must be 1 to 1000");
        return NULL;
    }
    list.items = json_array();
    if (read_events(&list, job, err) < 0) {
        json_decref(list.items);
        return NULL;
    }
    view = json_pack("{s:o}", "items", list.items);
    if (list.is_full)
        json_object_set_new(view, "next", json_sprintf("%lld", (long long)list.last));
    return view;
}
