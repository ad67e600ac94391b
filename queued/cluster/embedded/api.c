/* What the API server does with a request: validate, name, number, and begin a deletion. What follows from a change is
 * the controllers' business. */
#include "queued/cluster/embedded/internal.h"

#include <stdio.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "allocator/snapshot.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define FINALIZER_FOREGROUND "foregroundDeletion"
#define MAX_GENERATED_PREFIX 58 /* with the five letters behind it a DNS label, as the API server has it */

void uid_of_number(uint64_t number, char out[40])
{
    snprintf(out, 40, "00000000-0000-4000-8000-%012llx", (unsigned long long)(number & 0xffffffffffffu));
}

/* ---- creation ---- */

static void set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_string(text));
}

/* metadata.generateName and the default namespace, before anything is checked. */
static void complete_name(struct embedded *cluster, json_t *object)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* as Kubernetes: no vowels, nothing to misread */
    const char *kind_name = field_text(object, "kind", NULL);
    const struct kind *kind = kind_name ? served_kind_find(kind_name) : NULL;
    json_t *metadata = json_object_get(object, "metadata");
    const char *prefix = field_text(metadata, "generateName", NULL);
    uint64_t rest = fnv64(cluster->version + 1, "name", 4);
    struct buf name = {0};

    if (kind && kind->has_namespace && json_is_object(metadata) && !json_object_get(metadata, "namespace"))
        set_text(metadata, "namespace", "default");
    if (!prefix || field_text(metadata, "name", NULL))
        return;
    buf_addf(&name, "%.*s", MAX_GENERATED_PREFIX, prefix);
    for (int i = 0; i < 5; i++, rest /= sizeof(letters) - 1)
        buf_addc(&name, letters[rest % (sizeof(letters) - 1)]);
    set_text(metadata, "name", buf_str(&name));
    buf_release(&name);
}

static int check_namespace(struct embedded *cluster, const struct kind *kind, const json_t *object, struct error *err)
{
    const char *name = field_text(object, "metadata", "namespace", NULL);
    const struct entry *ns;

    if (!kind->has_namespace)
        return 0;
    ns = entry_find(cluster, KIND_NAMESPACE, NULL, name);
    if (!ns && !cluster->any_namespace) {
        error_field(err, "metadata.namespace", "the namespace \"%s\" does not exist", name);
        if (err)
            err->code = ERR_NOT_FOUND;
        return -1;
    }
    if (ns && entry_is_going(ns)) {
        error_field(err, "metadata.namespace", "the namespace \"%s\" is being deleted", name);
        if (err)
            err->code = ERR_DENIED;
        return -1;
    }
    return 0;
}

static json_t *pod_first_status(const json_t *pod, int64_t now_ms)
{
    json_t *status = json_pack("{s:s}", "phase", "Pending"), *draft = json_object();

    if (json_array_size(field_get(pod, "spec", "schedulingGates", NULL)) > 0) {
        pod_condition(draft, "PodScheduled", false, "SchedulingGated",
                      "Scheduling is blocked due to non-empty scheduling gates", now_ms);
        json_object_set(status, "conditions", field_get(draft, "status", "conditions", NULL));
    }
    json_decref(draft);
    return status;
}

static void complete_object(struct embedded *cluster, const struct kind *kind, json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    char text[40];

    do
        uid_of_number(++cluster->version, text);
    while (entry_by_uid(cluster, text)); /* a dump of such a cluster among the manifests */
    set_text(metadata, "uid", text);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)cluster->version);
    set_text(metadata, "resourceVersion", text);
    json_object_set_new(metadata, "creationTimestamp", when_json(clock_now_ms(cluster->clock)));
    json_object_del(metadata, "deletionTimestamp");
    json_object_del(metadata, "deletionGracePeriodSeconds");
    if (kind->id == KIND_TAINT_RULE && !field_get(object, "spec", "taint", "timeAdded", NULL))
        json_object_set_new(field_object(field_object(object, "spec"), "taint"), "timeAdded",
                            when_json(clock_now_ms(cluster->clock)));
    if (kind->id == KIND_POD && !json_object_get(object, "status"))
        json_object_set_new(object, "status", pod_first_status(object, clock_now_ms(cluster->clock)));
}

static struct entry *entry_of(struct embedded *cluster, const struct kind *kind, const json_t *object)
{
    return entry_find(cluster, kind->id, field_text(object, "metadata", "namespace", NULL),
                      field_text(object, "metadata", "name", NULL));
}

static void add_missing_namespace(struct embedded *cluster, const struct kind *kind, const json_t *object)
{
    const char *name = field_text(object, "metadata", "namespace", NULL);
    json_t *ns;

    if (!kind->has_namespace || entry_find(cluster, KIND_NAMESPACE, NULL, name))
        return;
    ns = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "Namespace", "metadata", "name", name);
    complete_object(cluster, &kinds[KIND_NAMESPACE], ns);
    if (snapshot_builder_put(cluster->model, ns, NULL) == 0)
        entry_add(cluster, &kinds[KIND_NAMESPACE], ns, 0);
    else
        json_decref(ns);
}

/* Takes `object`. */
static int create_copy(struct embedded *cluster, json_t *object, struct entry **out, struct error *err)
{
    const struct kind *kind;

    complete_name(cluster, object);
    if (object_check(cluster, object, &kind, err) < 0)
        goto refused;
    if (field_text(object, "metadata", "resourceVersion", NULL)) {
        error_field(err, "metadata.resourceVersion", "must not be set on an object to be created");
        goto refused;
    }
    if (check_namespace(cluster, kind, object, err) < 0)
        goto refused;
    if (entry_of(cluster, kind, object)) {
        error_set(err, ERR_CONFLICT, "%s \"%s\" already exists", kind->plural,
                  field_text(object, "metadata", "name", NULL));
        goto refused;
    }
    if (quotas_check(cluster, kind, object, err) < 0)
        goto refused;
    complete_object(cluster, kind, object);
    if (kind->is_modelled && snapshot_builder_put(cluster->model, object, err) < 0)
        goto refused;
    add_missing_namespace(cluster, kind, object);
    *out = entry_add(cluster, kind, object, 0);
    if (kind->id == KIND_POD)
        cluster->is_scheduling_due = true;
    return 0;
refused:
    json_decref(object);
    return -1;
}

int api_create(struct embedded *cluster, const json_t *object, struct entry **out, struct error *err)
{
    json_t *copy = json_deep_copy(object);

    json_object_del(copy, "status"); /* not the creator's to say */
    return create_copy(cluster, copy, out, err);
}

static int replace(struct entry *old, json_t *object, struct error *err)
{
    static const char *const kept[] = {"uid", "creationTimestamp", "deletionTimestamp"};
    json_t *metadata = json_object_get(object, "metadata");

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        json_t *value = field_get(old->json, "metadata", kept[i], NULL);

        if (value)
            json_object_set(metadata, kept[i], value);
        else
            json_object_del(metadata, kept[i]);
    }
    if (!json_object_get(object, "status") && json_object_get(old->json, "status"))
        json_object_set(object, "status", json_object_get(old->json, "status"));
    if (old->kind->is_modelled && snapshot_builder_put(old->cluster->model, object, err) < 0) {
        json_decref(object);
        return -1;
    }
    entry_change(old, object);
    old->cluster->is_scheduling_due = true;
    return 0;
}

int api_put(struct embedded *cluster, const json_t *object, struct entry **out, struct error *err)
{
    json_t *copy = json_deep_copy(object);
    const struct kind *kind;

    complete_name(cluster, copy);
    if (object_check(cluster, copy, &kind, err) < 0) {
        json_decref(copy);
        return -1;
    }
    *out = entry_of(cluster, kind, copy);
    if (*out)
        return replace(*out, copy, err);
    json_object_del(json_object_get(copy, "metadata"), "resourceVersion");
    return create_copy(cluster, copy, out, err);
}

int api_ungate(struct embedded *cluster, const char *ns, const char *pod, struct entry **out, struct error *err)
{
    struct entry *entry = entry_find(cluster, KIND_POD, ns, pod);
    json_t *draft;

    if (!entry)
        return error_set(err, ERR_NOT_FOUND, "pods \"%s\" not found", pod);
    *out = entry;
    if (json_array_size(field_get(entry->json, "spec", "schedulingGates", NULL)) == 0)
        return 0;
    draft = entry_draft(entry);
    json_object_del(field_object(draft, "spec"), "schedulingGates");
    json_object_set_new(field_object(field_object(draft, "metadata"), "annotations"), ANNOTATION_UNGATED,
                        when_json(clock_now_ms(cluster->clock)));
    json_object_del(field_object(draft, "status"), "conditions");
    entry_change(entry, draft);
    cluster->is_scheduling_due = true;
    return 0;
}

int api_bind(struct embedded *cluster, const char *ns, const char *pod, const char *uid, const char *node,
             struct entry **out, struct error *err)
{
    struct entry *entry = entry_find(cluster, KIND_POD, ns, pod);
    json_t *draft;

    if (!entry)
        return error_set(err, ERR_NOT_FOUND, "pods \"%s\" not found", pod);
    if (uid && strcmp(uid, entry->uid) != 0)
        return error_set(err, ERR_CONFLICT, "pods \"%s\" is another one now", pod);
    if (entry_is_going(entry))
        return error_set(err, ERR_CONFLICT, "pod %s is being deleted, cannot be assigned to a node", pod);
    if (pod_is_bound(entry))
        return error_set(err, ERR_CONFLICT, "pod %s is already assigned to node \"%s\"", pod,
                         field_text(entry->json, "spec", "nodeName", NULL));
    if (json_array_size(field_get(entry->json, "spec", "schedulingGates", NULL)) > 0)
        return error_field(err, "spec.schedulingGates", "pod %s has scheduling gates", pod);
    draft = entry_draft(entry);
    json_object_set_new(field_object(draft, "spec"), "nodeName", json_string(node));
    pod_condition(draft, "PodScheduled", true, NULL, NULL, clock_now_ms(cluster->clock));
    entry_change(entry, draft);
    *out = entry;
    return 0;
}

/* ---- deletion ---- */

/* Whether nothing has to happen before the object may go. */
static bool is_free_to_go(const struct entry *entry)
{
    if (entry->n_dependents > 0 || json_array_size(field_get(entry->json, "metadata", "finalizers", NULL)) > 0)
        return false;
    if (entry->kind->id == KIND_NAMESPACE)
        return false;
    return entry->kind->id != KIND_POD || !pod_is_bound(entry) || pod_is_finished(entry);
}

void entry_delete(struct entry *entry)
{
    int64_t grace_ms = 0;
    json_t *draft, *metadata;

    if (entry_is_going(entry))
        return;
    if (is_free_to_go(entry)) {
        entry_drop(entry);
        return;
    }
    draft = entry_draft(entry);
    metadata = json_object_get(draft, "metadata");
    if (entry->kind->id == KIND_POD && pod_is_bound(entry) && !pod_is_finished(entry))
        grace_ms = POD_GRACE_MS;
    /* As in Kubernetes the timestamp says when the grace ends, not when the deletion was asked for. */
    json_object_set_new(metadata, "deletionTimestamp", when_json(clock_now_ms(entry->cluster->clock) + grace_ms));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(grace_ms > 0 ? 1 : 0));
    if (entry->n_dependents > 0)
        json_array_append_new(field_array(metadata, "finalizers"), json_string(FINALIZER_FOREGROUND));
    entry_change(entry, draft);
}

int api_remove(struct embedded *cluster, const char *kind, const char *ns, const char *name, const char *uid,
               struct error *err)
{
    const struct kind *row = served_kind_find(kind);
    struct entry *entry;

    if (!row)
        return error_field(err, "kind", "\"%.63s\" is not served by the embedded cluster", kind);
    entry = entry_find(cluster, row->id, ns, name);
    if (entry && (!uid || strcmp(uid, entry->uid) == 0))
        entry_delete(entry);
    return 0;
}

void api_erase(struct embedded *cluster, const char *ns, const char *name, const char *uid)
{
    struct entry *entry = entry_find(cluster, KIND_POD, ns, name);
    json_t *draft, *metadata;

    if (!entry || (uid && strcmp(uid, entry->uid) != 0))
        return;
    if (entry->n_dependents == 0 && json_array_size(field_get(entry->json, "metadata", "finalizers", NULL)) == 0) {
        entry_drop(entry);
        return;
    }
    draft = entry_draft(entry);
    metadata = json_object_get(draft, "metadata");
    json_object_set_new(metadata, "deletionTimestamp", when_json(clock_now_ms(cluster->clock)));
    json_object_set_new(metadata, "deletionGracePeriodSeconds", json_integer(0));
    entry_change(entry, draft);
}

/* ---- logs ---- */

/* Members run nothing, so their output is the story that a container would tell. */
json_t *pod_logs(const struct entry *pod, size_t tail_lines)
{
    const json_t *first = json_array_get(field_get(pod->json, "status", "containerStatuses", NULL), 0);
    const json_t *ended = field_get(first, "state", "terminated", NULL);
    const json_t *running = ended ? ended : field_get(first, "state", "running", NULL);
    const char *started = field_text(running, "startedAt", NULL);
    size_t n = (started ? 1 : 0) + (ended ? 1 : 0), skip = n > tail_lines ? n - tail_lines : 0;
    BUF text = {0};

    if (started && skip == 0)
        buf_addf(&text, "%s started on %s\n", started, field_text(pod->json, "spec", "nodeName", NULL));
    if (ended && skip < n)
        buf_addf(&text, "%s ended with exit code %lld\n", field_text(ended, "finishedAt", NULL),
                 (long long)json_integer_value(json_object_get(ended, "exitCode")));
    return json_string(buf_str(&text));
}
