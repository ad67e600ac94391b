/* Devices, nodes and the state of the server as the API shows them (api/README.md). */
#include <stdlib.h>

#include "queued/internal.h"

#include "allocator/base/banned.h"

struct device_list {
    const struct core *core;
    const struct snapshot *snapshot;
    json_t *extended; /* "namespace/name" of claims that the scheduler made for members of jobs: the job's id */
    json_t *items;
};

static void note_extended(json_t *extended, const struct job *job)
{
    for (size_t i = 0; i < job->live->n_objects; i++) {
        const struct launch_object *pod = &job->live->objects[i];
        const json_t *status = json_object_get(json_object_get(pod->observed, "status"), "extendedResourceClaimStatus");
        const char *claim = json_string_value(json_object_get(status, "resourceClaimName"));
        BUF key = {0};

        if (!claim)
            continue;
        buf_addf(&key, "%s/%s", pod->ns, claim);
        json_object_set_new(extended, buf_str(&key), json_integer(job->id));
    }
}

/* kube-scheduler puts none of our labels on them. New reference. */
static json_t *extended_claims(const struct core *core)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    json_t *extended = json_object();

    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->items[i]->live)
            note_extended(extended, jobs->items[i]);
    return extended;
}

/* The label is text that anybody could have written: a number, or nobody's. */
static json_t *job_of_label(const char *label)
{
    char *end;
    long long id = label ? strtoll(label, &end, 10) : 0;

    return label && *end == '\0' && id > 0 ? json_integer(id) : json_null();
}

static void add_device(void *ctx, const struct device_view *device)
{
    struct device_list *list = ctx;
    json_t *view = json_pack("{s:s?, s:s, s:s, s:s, s:s, s:s?, s:o}", "node", device->node, "driver", device->driver,
                             "pool", device->pool, "name", device->name, "state", device->state, "claim", device->claim,
                             "job", job_of_label(device->pod_job));
    json_t *more = snapshot_device_json(list->snapshot, device->driver, device->pool, device->name);
    json_t *job = device->claim ? json_object_get(list->extended, device->claim) : NULL;

    if (job)
        json_object_set(view, "job", job);
    json_object_update_missing(view, more);
    json_decref(more);
    json_array_append_new(list->items, view);
}

json_t *core_devices(struct core *core, const struct caller *caller, struct error *err)
{
    struct snapshot *snapshot;
    struct device_list list = {.core = core};

    if (caller_needs(caller, ROLE_VIEWER, err) < 0)
        return NULL;
    snapshot = world_snapshot(core->world);
    list.snapshot = snapshot;
    list.extended = extended_claims(core);
    list.items = json_array();
    snapshot_each_device(snapshot, add_device, &list);
    json_decref(list.extended);
    snapshot_unref(snapshot);
    return json_pack("{s:o}", "items", list.items);
}

json_t *core_nodes(struct core *core, const struct caller *caller, struct error *err)
{
    struct snapshot *snapshot;
    json_t *nodes;

    if (caller_needs(caller, ROLE_VIEWER, err) < 0)
        return NULL;
    snapshot = world_snapshot(core->world);
    nodes = snapshot_nodes_json(snapshot);
    snapshot_unref(snapshot);
    return json_pack("{s:o}", "items", nodes);
}

static json_t *counts(const struct core *core)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    json_int_t n[JOB_STATE_COUNT] = {0};
    json_t *view = json_object();

    for (size_t i = 0; i < jobs->n; i++)
        n[jobs->items[i]->state]++;
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++)
        json_object_set_new(view, state_name(state), json_integer(n[state]));
    return view;
}

/* Label by label what the simulation looked up, and how often it was there: {"asked": {...}, "found": {...}}. */
static void add_cache(struct core *core, json_t *status)
{
    struct snapshot *snapshot = world_snapshot(core->world);
    struct snapshot_hits hits = snapshot_hits(snapshot);

    json_object_set_new(status, "cacheAsked",
                        json_pack("{s:I, s:I, s:I}", "expression", (json_int_t)hits.expressions_asked, "result",
                                  (json_int_t)hits.results_asked, "answer", (json_int_t)hits.answers_asked));
    json_object_set_new(status, "cacheFound",
                        json_pack("{s:I, s:I, s:I}", "expression", (json_int_t)hits.expressions_found, "result",
                                  (json_int_t)hits.results_found, "answer", (json_int_t)hits.answers_found));
    snapshot_unref(snapshot);
}

json_t *core_strays(struct core *core, const struct caller *caller, struct error *err)
{
    json_t *items, *object;
    const char *key;

    if (caller_needs(caller, ROLE_ADMIN, err) < 0)
        return NULL;
    items = json_array();
    json_object_foreach (core->foreign, key, object)
        json_array_append(items, object);
    return json_pack("{s:o}", "items", items);
}

json_t *core_status(struct core *core)
{
    const char *reason = core->degraded.code       ? core->degraded.text
                         : core->not_leading.code  ? core->not_leading.text
                         : core->cluster_lost.code ? core->cluster_lost.text
                         : !core->is_synced        ? "the cluster has not been read yet"
                                                   : "";
    json_t *cluster = core->options.cluster->ops->describe(core->options.cluster);
    json_t *status =
        json_pack("{s:b, s:s, s:O, s:o, s:I, s:I, s:I, s:I, s:I, s:f}", "ready", reason[0] == '\0', "reason", reason,
                  "cluster", cluster, "jobs", counts(core), "drift", (json_int_t)lifecycle_n_drift(core->lifecycle),
                  "launches", (json_int_t)lifecycle_n_launches(core->lifecycle), "launchFailures",
                  (json_int_t)lifecycle_n_launch_failures(core->lifecycle), "foreignObjects",
                  (json_int_t)json_object_size(core->foreign), "plannerRounds", (json_int_t)core->n_plans,
                  "plannerSeconds", (double)core->last_plan_us / 1e6);

    add_cache(core, status);
    json_object_update_missing(status, json_object_get(cluster, "measured"));
    json_object_del(cluster, "measured");
    json_decref(cluster);
    return status;
}
