/* Kueue's labels and annotations, so that its users' files work unchanged: what each means here, or why it is refused.
 * A key of Kueue's that is not in the table is refused too: a misspelt one would be dropped silently otherwise. Among
 * them stand those of our own, for what a native manifest has no field for.
 *
 * Source of the keys: Kueue's documentation of the labels and annotations that it reads. */
#include <stdlib.h>
#include <string.h>

#include "queued/manifest/decode.h"
#include "queued/manifest/duration.h"
#include "queued/manifest/fields.h"
#include "queued/manifest/job.h"

#include "allocator/base/banned.h"

#define PREFIX         "kueue.x-k8s.io/"
#define OWN_PREFIX     "queue.dra/"
#define KAI_MIN_MEMBER "kai.scheduler/batch-min-member"
#define EXCLUSIVE      "alpha.jobset.sigs.k8s.io/exclusive-topology"

static int whole_number(const char *text, json_int_t max, json_int_t *out, struct error *err)
{
    char *end;
    long long value = strtoll(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value < 1 || value > max)
        return error_set(err, ERR_INVALID, "\"%.40s\" is no whole number from 1 to %lld", text, (long long)max);
    *out = value;
    return 0;
}

/* ---- what a key does ---- */

struct reading {
    struct draft *draft;
    json_int_t *min_members;
    const char *group; /* of the template that carries the annotation */
};

typedef int key_fn(struct reading *r, const char *value, struct error *err);

static int set_queue(struct reading *r, const char *value, struct error *err)
{
    const char *set = json_string_value(json_object_get(r->draft->spec, "queue"));

    if (!*value)
        return error_set(err, ERR_INVALID, "must not be empty");
    if (set && strcmp(set, value) != 0)
        return error_set(err, ERR_INVALID, "names queue %.60s although %.60s is named too", value, set);
    draft_set(r->draft, "queue", json_string(value));
    return 0;
}

static int set_priority_class(struct reading *r, const char *value, struct error *err)
{
    (void)err;
    if (!json_object_get(r->draft->spec, "priority") && !json_object_get(r->draft->spec, "priorityClassName"))
        draft_set(r->draft, "priorityClassName", json_string(value));
    r->draft->ranked = true;
    return 0;
}

static int set_max_runtime(struct reading *r, const char *value, struct error *err)
{
    json_int_t seconds;
    int64_t ms;
    const char *set = json_string_value(json_object_get(r->draft->spec, "maxRuntime"));

    if (whole_number(value, INT32_MAX, &seconds, err) < 0)
        return -1;
    if (!set || !duration_parse(set, &ms) || ms > seconds * 1000)
        draft_seconds(r->draft, "maxRuntime", seconds);
    return 0;
}

static int set_min_members(struct reading *r, const char *value, struct error *err)
{
    return whole_number(value, MEMBERS_MAX, r->min_members, err);
}

static int set_hold(struct reading *r, const char *value, struct error *err)
{
    (void)err;
    if (*value)
        draft_set(r->draft, "hold", json_true());
    return 0;
}

static int set_placement(struct reading *r, const char *value, struct error *err)
{
    const char *set = json_string_value(json_object_get(r->draft->spec, "placement"));

    if (job_placement_of(value) == JOB_PLACEMENT_DEFAULT)
        return error_set(err, ERR_INVALID, "\"%.40s\" is none of fragmentation, pack, spread", value);
    if (set && strcmp(set, value) != 0)
        return error_set(err, ERR_INVALID, "says %s although %s is said too", value, set);
    draft_set(r->draft, "placement", json_string(value));
    return 0;
}

static int accept(struct reading *r, const char *value, struct error *err)
{
    (void)r, (void)value, (void)err;
    return 0;
}

static int accept_false(struct reading *r, const char *value, struct error *err)
{
    (void)r;
    if (strcmp(value, "false") == 0)
        return 0;
    return error_set(err, ERR_INVALID, "members of a running job are neither added nor taken away");
}

static int topology(struct reading *r, const char *value, bool preferred, struct error *err)
{
    json_t *constraint = json_pack("{s:s, s:[s]}", "matchNodeLabel", value, "groups", r->group);

    if (!*value || !constraint) {
        json_decref(constraint);
        return error_set(err, ERR_INVALID, "must be the name of a node label");
    }
    if (preferred)
        json_object_set_new(constraint, "preferred", json_true());
    json_array_append_new(r->draft->constraints, constraint);
    return 0;
}

static int set_required_topology(struct reading *r, const char *value, struct error *err)
{
    return topology(r, value, false, err);
}

static int set_preferred_topology(struct reading *r, const char *value, struct error *err)
{
    return topology(r, value, true, err);
}

/* ---- the keys ---- */

/* Where a key stands: on the workload, on a pod template; a Pod is both. Keys of workloads mean nothing on a template:
 * there Kueue writes them itself. Those of our own are nobody else's, so one that went astray is refused. */
enum { ON_WORKLOAD = 1, ON_TEMPLATE = 2, NOWHERE_ELSE = 4 };

#define SLICES "slices of a topology are not supported: make each slice a group with a matchNodeLabel constraint"
#define EXCLUSIVE_ADVICE                                                                                               \
    "one job per topology domain is not supported: use a GangJob with a matchNodeLabel constraint for each group"

static const struct key {
    const char *name;
    unsigned places, workloads; /* where, and on which kinds, it means something */
    key_fn *run;
    const char *refused;
} keys[] = {
    {PREFIX "queue-name", ON_WORKLOAD, WORKLOAD_ANY, set_queue, NULL},
    {PREFIX "priority-class", ON_WORKLOAD, WORKLOAD_ANY, set_priority_class, NULL},
    {PREFIX "max-exec-time-seconds", ON_WORKLOAD, WORKLOAD_ANY, set_max_runtime, NULL},
    {OWN_PREFIX "placement", ON_WORKLOAD | NOWHERE_ELSE, WORKLOAD_ANY, set_placement, NULL},
    {PREFIX "job-min-parallelism", ON_WORKLOAD, WORKLOAD_JOB, set_min_members, NULL},
    {KAI_MIN_MEMBER, ON_WORKLOAD, WORKLOAD_JOB, set_min_members, NULL},
    {PREFIX "job-completions-equal-parallelism", ON_WORKLOAD, WORKLOAD_JOB, accept, NULL},
    {PREFIX "admission-gated-by", ON_WORKLOAD, WORKLOAD_ANY, set_hold, NULL},
    {PREFIX "pod-group-name", ON_WORKLOAD, WORKLOAD_POD, accept, NULL},
    {PREFIX "pod-group-total-count", ON_WORKLOAD, WORKLOAD_POD, accept, NULL},
    {PREFIX "pod-group-fast-admission", ON_WORKLOAD, WORKLOAD_POD, accept,
     NULL},                                                                 /* all pods of a group are here anyway */
    {PREFIX "retriable-in-group", ON_WORKLOAD, WORKLOAD_POD, accept, NULL}, /* pods are not replaced one by one */
    {PREFIX "pod-group-serving", ON_WORKLOAD, WORKLOAD_POD, NULL, "pods that serve for ever cannot be queued"},
    {PREFIX "elastic-job", ON_WORKLOAD, WORKLOAD_ANY, accept_false, NULL},
    {PREFIX "prebuilt-workload-name", ON_WORKLOAD, WORKLOAD_ANY, NULL,
     "there is no Workload object here: leave it out"},
    {PREFIX "multikueue-origin", ON_WORKLOAD, WORKLOAD_ANY, NULL, "jobs are not passed on between clusters"},
    {PREFIX "priority-boost", ON_WORKLOAD, WORKLOAD_ANY, NULL, "not supported: use a priority class"},
    {EXCLUSIVE, ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, NULL, EXCLUSIVE_ADVICE},
    {PREFIX "podset-required-topology", ON_TEMPLATE, WORKLOAD_ANY, set_required_topology, NULL},
    {PREFIX "podset-preferred-topology", ON_TEMPLATE, WORKLOAD_ANY, set_preferred_topology, NULL},
    {PREFIX "podset-unconstrained-topology", ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
    {PREFIX "podset-slice-required-topology", ON_TEMPLATE, WORKLOAD_ANY, NULL, SLICES},
    {PREFIX "podset-slice-size", ON_TEMPLATE, WORKLOAD_ANY, NULL, SLICES},
    {PREFIX "podset-group-name", ON_TEMPLATE, WORKLOAD_ANY, NULL, "not supported: use the constraints of a GangJob"},
    /* written by Kueue itself on what it manages */
    {PREFIX "managed", ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
    {PREFIX "cluster-queue-name", ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
    {PREFIX "local-queue-name", ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
    {PREFIX "podset", ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
    {PREFIX "workload", ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
    {PREFIX "role-hash", ON_WORKLOAD | ON_TEMPLATE, WORKLOAD_ANY, accept, NULL},
};

static const char *key_name_of(const void *ctx, size_t i)
{
    (void)ctx;
    return keys[i].name;
}

/* Objects of ours carry further keys of our own, so that only what looks misspelt is refused. */
static int unknown_own_key(const char *name, const char *close, struct error *err)
{
    if (!close || strncmp(close, OWN_PREFIX, strlen(OWN_PREFIX)) != 0)
        return 0;
    return error_key(err, name, "unknown key (did you mean %s?)", close);
}

static int unknown_key(const char *name, struct error *err)
{
    const char *close = closest_name(name, key_name_of, NULL, ARRAY_SIZE(keys));

    if (strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
        return unknown_own_key(name, close, err);
    if (strncmp(name, "provreq." PREFIX, strlen("provreq." PREFIX)) == 0)
        return error_key(
            err, name,
            "a job does not say what its provisioning request contains; the server does (provisioning-parameters)");
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return 0;
    return error_key(err, name, "unknown key of Kueue%s%s%s", close ? " (did you mean " : "", close ? close : "",
                     close ? "?)" : "");
}

static int read_key(struct reading *r, const char *name, const char *value, unsigned place, enum workload workload,
                    struct error *err)
{
    const struct key *key = NULL;
    struct error inner = {0};

    for (size_t i = 0; i < ARRAY_SIZE(keys) && !key; i++)
        if (strcmp(keys[i].name, name) == 0)
            key = &keys[i];
    if (!key)
        return unknown_key(name, err);
    if (!(key->places & place) && place == ON_TEMPLATE)
        return key->places & NOWHERE_ELSE ? error_key(err, name, "belongs to the annotations of the workload") : 0;
    if (!(key->places & place))
        return error_key(err, name, "belongs to the annotations of the pod template");
    if (key->refused)
        return error_key(err, name, "%s", key->refused);
    if (!(key->workloads & workload))
        return error_key(err, name, "means nothing on this kind");
    return key->run(r, value, &inner) == 0 ? 0 : error_key(err, name, "%s", inner.text);
}

static int read_keys(struct reading *r, const json_t *metadata, unsigned place, enum workload workload,
                     struct error *err)
{
    static const char *const maps[] = {"labels", "annotations"};
    const char *name;
    json_t *value;

    for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
        json_object_foreach (json_object_get(metadata, maps[i]), name, value)
            if (read_key(r, name, json_string_value(value), place, workload, err) < 0)
                return error_in(err, "metadata.%s", maps[i]);
    return 0;
}

int kueue_workload(struct draft *draft, const json_t *metadata, enum workload workload, const char *group,
                   json_int_t *min_members, struct error *err)
{
    struct reading reading = {draft, min_members, group};
    unsigned place = workload == WORKLOAD_POD ? ON_WORKLOAD | ON_TEMPLATE : ON_WORKLOAD;

    return read_keys(&reading, metadata, place, workload, err);
}

int kueue_template(struct draft *draft, const json_t *pod_template, const char *group, struct error *err)
{
    struct reading reading = {draft, NULL, group};

    return read_keys(&reading, json_object_get(pod_template, "metadata"), ON_TEMPLATE, WORKLOAD_ANY, err);
}

void kueue_drop(json_t *metadata)
{
    static const char *const maps[] = {"labels", "annotations"};

    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        json_t *map = json_object_get(metadata, maps[i]);

        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            json_object_del(map, keys[k].name);
        if (json_object_size(map) == 0)
            json_object_del(metadata, maps[i]);
    }
}

/* ---- groups of plain pods ---- */

static const char *metadata_text(const json_t *object, const char *map, const char *key)
{
    return json_string_value(json_object_get(json_object_get(json_object_get(object, "metadata"), map), key));
}

const char *kueue_pod_group(const json_t *pod)
{
    const char *name = metadata_text(pod, "labels", PREFIX "pod-group-name");

    return name ? name : metadata_text(pod, "annotations", PREFIX "pod-group-name");
}

size_t kueue_pod_group_size(const json_t *pod)
{
    const char *text = metadata_text(pod, "annotations", PREFIX "pod-group-total-count");
    json_int_t size = 0;

    return text && whole_number(text, MEMBERS_MAX, &size, NULL) == 0 ? (size_t)size : 0;
}
