/* The objects of the cluster: found by key and by uid, listed by kind in the order of creation. Each change gets the
 * next number of one counter as its resourceVersion, is noted for the disk, told to the listener and put on the list of
 * what the controllers look at before the turn ends. */
#include "queued/cluster/embedded/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "allocator/snapshot.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define DEFAULT_NAMESPACE "default"

static const char *effective_ns(const struct kind *kind, const char *ns)
{
    if (!kind->has_namespace)
        return "";
    return ns && *ns ? ns : DEFAULT_NAMESPACE;
}

static char *key_of(const struct kind *kind, const char *ns, const char *name)
{
    struct buf key = {0};

    buf_addf(&key, "%s/%s/%s", kind->name, ns, name);
    return buf_take(&key);
}

struct entry *entry_find(struct embedded *cluster, enum kind_id kind, const char *ns, const char *name)
{
    char *key = key_of(&kinds[kind], effective_ns(&kinds[kind], ns), name);
    struct entry *entry;

    HASH_FIND(by_key, cluster->by_key, key, strlen(key), entry);
    free(key);
    return entry;
}

struct entry *entry_by_uid(struct embedded *cluster, const char *uid)
{
    struct entry *entry;

    HASH_FIND(by_uid, cluster->by_uid, uid, strlen(uid), entry);
    return entry;
}

bool entry_is_going(const struct entry *entry)
{
    return field_text(entry->json, "metadata", "deletionTimestamp", NULL) != NULL;
}

bool entry_is_told(const struct entry *entry)
{
    if (entry->kind->stream == STREAM_OURS)
        return field_text(entry->json, "metadata", "labels", LABEL_JOB, NULL) != NULL;
    return entry->kind->stream == STREAM_ALWAYS;
}

/* ---- owners ---- */

static void count_dependent(struct entry *entry, bool is_there)
{
    for (size_t i = 0; i < entry->n_owners; i++) {
        struct entry *owner = entry_by_uid(entry->cluster, entry->owners[i]);

        if (!owner)
            continue;
        owner->n_dependents += is_there ? 1 : (size_t)-1;
        if (!is_there && entry_is_going(owner))
            entry_push(owner);
    }
}

static void read_owners(struct entry *entry)
{
    const json_t *references = field_get(entry->json, "metadata", "ownerReferences", NULL);
    size_t i;
    json_t *reference;

    count_dependent(entry, false);
    free(entry->owners);
    entry->n_owners = 0;
    entry->owners = mem_zalloc(json_array_size(references), sizeof(*entry->owners));
    json_array_foreach (references, i, reference) {
        const char *uid = field_text(reference, "uid", NULL);

        if (uid)
            snprintf(entry->owners[entry->n_owners++], sizeof(*entry->owners), "%s", uid);
    }
    count_dependent(entry, true);
}

/* Dependents may be there before their owner: manifests come in any order. */
static void count_existing_dependents(struct entry *owner)
{
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct entry *entry;

        DL_FOREACH (owner->cluster->lists[k], entry)
            for (size_t i = 0; i < entry->n_owners; i++)
                if (strcmp(entry->owners[i], owner->uid) == 0)
                    owner->n_dependents++;
    }
}

static void push_dependents(const struct entry *owner)
{
    for (size_t k = 0; owner->n_dependents > 0 && k < KIND_COUNT; k++) {
        struct entry *entry;

        DL_FOREACH (owner->cluster->lists[k], entry)
            for (size_t i = 0; i < entry->n_owners; i++)
                if (strcmp(entry->owners[i], owner->uid) == 0) {
                    entry->lost_owner = true;
                    entry_push(entry);
                }
    }
}

/* ---- what follows from a change ---- */

/* Kinds whose changes can make a waiting pod schedulable; pods see to it themselves, when they end. */
static void wake_others(struct entry *entry)
{
    struct embedded *cluster = entry->cluster;

    if (entry->kind->is_modelled && entry->kind->id != KIND_POD)
        cluster->is_scheduling_due = true;
    if (entry->kind->id == KIND_SLICE || entry->kind->id == KIND_TAINT_RULE || entry->kind->id == KIND_NODE)
        evictions_changed(cluster);
    quotas_wake(entry);
    embedded_wake(cluster);
}

static void model_put(struct entry *entry)
{
    struct embedded *cluster = entry->cluster;
    struct error err = {0};

    if (!entry->kind->is_modelled)
        return;
    if (snapshot_builder_put(cluster->model, entry->json, &err) < 0) {
        error_wrap(&err, "%s", entry->key);
        embedded_warn(cluster, &err);
    }
    snapshot_unref(cluster->snapshot);
    cluster->snapshot = NULL;
}

static void note_change(struct entry *entry)
{
    if (entry->cluster->disk &&
        (!entry->manifest || field_text(entry->json, "metadata", "annotations", ANNOTATION_MANIFEST, NULL)))
        disk_note(entry->cluster->disk, entry->key, entry->json);
    if (entry_is_told(entry))
        embedded_tell(entry->cluster, CLUSTER_PUT, entry->json);
    wake_others(entry);
}

/* ---- adding, changing, dropping ---- */

static void entry_name(struct entry *entry)
{
    const char *name = field_text(entry->json, "metadata", "name", NULL);
    const char *ns = effective_ns(entry->kind, field_text(entry->json, "metadata", "namespace", NULL));
    size_t n = strlen(ns) + 1;

    entry->key = key_of(entry->kind, ns, name);
    entry->names = mem_zalloc(n + strlen(name) + 1, 1);
    memcpy(entry->names, ns, n);
    memcpy(entry->names + n, name, strlen(name));
    entry->ns = entry->names;
    entry->name = entry->names + n;
    snprintf(entry->uid, sizeof(entry->uid), "%s", field_text(entry->json, "metadata", "uid", NULL));
}

static void on_pod_timer(void *ctx)
{
    entry_push(ctx);
}

struct entry *entry_add(struct embedded *cluster, const struct kind *kind, json_t *json, uint64_t manifest)
{
    struct entry *entry = mem_new(struct entry);

    entry->cluster = cluster;
    entry->kind = kind;
    entry->json = json;
    entry->manifest = manifest;
    entry_name(entry);
    HASH_ADD_KEYPTR(by_key, cluster->by_key, entry->key, strlen(entry->key), entry);
    HASH_ADD_KEYPTR(by_uid, cluster->by_uid, entry->uid, strlen(entry->uid), entry);
    count_existing_dependents(entry);
    DL_APPEND(cluster->lists[kind->id], entry);
    read_owners(entry);
    if (kind->id == KIND_POD)
        entry->timer = clock_timer_new(cluster->clock, on_pod_timer, entry);
    model_put(entry);
    note_change(entry);
    entry_push(entry);
    return entry;
}

json_t *entry_draft(const struct entry *entry)
{
    json_t *draft = json_deep_copy(entry->json);

    INVARIANT(draft != NULL);
    return draft;
}

void entry_change(struct entry *entry, json_t *draft)
{
    json_t *metadata = field_object(draft, "metadata");
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)++entry->cluster->version);
    json_object_set_new(metadata, "resourceVersion", json_string(text));
    if (entry->manifest && entry->cluster->disk) {
        snprintf(text, sizeof(text), "%016llx", (unsigned long long)entry->manifest);
        json_object_set_new(field_object(metadata, "annotations"), ANNOTATION_MANIFEST, json_string(text));
    }
    json_decref(entry->json);
    entry->json = draft;
    read_owners(entry);
    model_put(entry);
    note_change(entry);
    entry_push(entry);
}

void entry_restore(struct entry *entry, json_t *json)
{
    json_decref(entry->json);
    entry->json = json;
    read_owners(entry);
    entry_push(entry);
}

/* An object of the manifests would be back after a restart: a state file says that it is gone. */
static json_t *gravestone(const struct entry *entry)
{
    char text[32];

    snprintf(text, sizeof(text), "%016llx", (unsigned long long)entry->manifest);
    return json_pack("{s:O,s:O,s:{s:s,s:s*,s:s,s:{s:s,s:s}}}", "apiVersion", json_object_get(entry->json, "apiVersion"),
                     "kind", json_object_get(entry->json, "kind"), "metadata", "name", entry->name, "namespace",
                     *entry->ns ? entry->ns : NULL, "uid", entry->uid, "annotations", ANNOTATION_MANIFEST, text,
                     ANNOTATION_REMOVED, "true");
}

static void entry_free(struct entry *entry)
{
    clock_timer_free(entry->timer);
    json_decref(entry->json);
    free(entry->owners);
    free(entry->names);
    free(entry->key);
    free(entry);
}

static void unlink_entry(struct entry *entry)
{
    struct embedded *cluster = entry->cluster;

    if (entry->in_work)
        DL_DELETE2(cluster->work, entry, work_prev, work_next);
    DL_DELETE(cluster->lists[entry->kind->id], entry);
    HASH_DELETE(by_key, cluster->by_key, entry);
    HASH_DELETE(by_uid, cluster->by_uid, entry);
}

void push_pods_of(const struct entry *node)
{
    struct entry *pod;

    DL_FOREACH (node->cluster->lists[KIND_POD], pod) {
        const char *name = field_text(pod->json, "spec", "nodeName", NULL);

        if (name && strcmp(name, node->name) == 0)
            entry_push(pod);
    }
}

void entry_drop(struct entry *entry)
{
    struct embedded *cluster = entry->cluster;
    struct entry *ns = entry->kind->has_namespace ? entry_find(cluster, KIND_NAMESPACE, NULL, entry->ns) : NULL;
    json_t *stone = NULL;

    cluster->version++;
    if (cluster->disk) {
        if (entry->manifest)
            stone = gravestone(entry);
        disk_note(cluster->disk, entry->key, stone);
        json_decref(stone);
    }
    if (entry_is_told(entry))
        embedded_tell(cluster, CLUSTER_GONE, entry->json);
    if (entry->kind->is_modelled) {
        snapshot_builder_remove(cluster->model, entry->kind->name, *entry->ns ? entry->ns : NULL, entry->name);
        snapshot_unref(cluster->snapshot);
        cluster->snapshot = NULL;
    }
    wake_others(entry);
    if (entry->kind->id == KIND_POD)
        pod_released(entry);
    if (entry->kind->id == KIND_NODE)
        push_pods_of(entry);
    count_dependent(entry, false);
    unlink_entry(entry);
    push_dependents(entry);
    if (ns && entry_is_going(ns))
        entry_push(ns);
    entry_free(entry);
}

void entry_push(struct entry *entry)
{
    if (!entry->in_work) {
        entry->in_work = true;
        DL_APPEND2(entry->cluster->work, entry, work_prev, work_next);
    }
    embedded_wake(entry->cluster);
}

struct entry *entry_pop(struct embedded *cluster)
{
    struct entry *entry = cluster->work;

    if (entry) {
        DL_DELETE2(cluster->work, entry, work_prev, work_next);
        entry->in_work = false;
    }
    return entry;
}

void entries_free(struct embedded *cluster)
{
    HASH_CLEAR(by_key, cluster->by_key);
    HASH_CLEAR(by_uid, cluster->by_uid);
    cluster->work = NULL;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        struct entry *entry, *next;

        DL_FOREACH_SAFE (cluster->lists[k], entry, next)
            entry_free(entry);
        cluster->lists[k] = NULL;
    }
}
