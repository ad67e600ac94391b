/* The controllers: what follows from the state of one object, looked at again after every change of it or of what it
 * depends on. Each look makes at most one change and returns; the change puts the object on the list again, so that a
 * look always sees the newest state and a killed server goes on where it was. */
#include "queued/cluster/embedded/internal.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define FINALIZER_FOREGROUND "foregroundDeletion"
#define FINALIZER_CLAIM      "resource.kubernetes.io/delete-protection"
#define ANNOTATION_POD_CLAIM "resource.kubernetes.io/pod-claim-name"

/* ---- garbage ---- */

/* Objects of manifests may name owners that were not dumped with them: only an owner that was seen to go counts. */
static bool is_orphan(const struct entry *entry)
{
    if (entry->n_owners == 0 || (entry->manifest && !entry->lost_owner))
        return false;
    for (size_t i = 0; i < entry->n_owners; i++)
        if (entry_by_uid(entry->cluster, entry->owners[i]))
            return false;
    return true;
}

static bool depends_on(const struct entry *entry, const struct entry *owner)
{
    if (entry == owner)
        return false;
    if (owner->kind->id == KIND_NAMESPACE && entry->kind->has_namespace && strcmp(entry->ns, owner->name) == 0)
        return true;
    for (size_t i = 0; i < entry->n_owners; i++)
        if (strcmp(entry->owners[i], owner->uid) == 0)
            return true;
    return false;
}

/* Another owner that stays keeps it. */
static bool has_other_owner(const struct entry *entry, const struct entry *owner)
{
    for (size_t i = 0; i < entry->n_owners; i++) {
        const struct entry *other = entry_by_uid(entry->cluster, entry->owners[i]);

        if (other && other != owner && !entry_is_going(other))
            return true;
    }
    return false;
}

static bool goes_with(const struct entry *entry, const struct entry *owner)
{
    return depends_on(entry, owner) && (owner->kind->id == KIND_NAMESPACE || !has_other_owner(entry, owner));
}

/* Delete what depends on it; the number of those that are still there afterwards. */
static size_t delete_dependents(const struct entry *owner)
{
    struct entry **found = NULL, *entry;
    size_t n = 0, cap = 0, left = 0;

    if (owner->n_dependents == 0 && owner->kind->id != KIND_NAMESPACE)
        return 0;
    for (size_t k = 0; k < KIND_COUNT; k++)
        DL_FOREACH (owner->cluster->lists[k], entry)
            if (goes_with(entry, owner)) {
                mem_grow(found, n, cap);
                found[n++] = entry;
            }
    /* Deleting one frees at most that one: others only get on the list of what to look at. */
    for (size_t i = 0; i < n; i++)
        entry_delete(found[i]);
    for (size_t k = 0; n > 0 && k < KIND_COUNT; k++)
        DL_FOREACH (owner->cluster->lists[k], entry)
            left += goes_with(entry, owner);
    free(found);
    return left;
}

static bool drop_finalizer(struct entry *entry, const char *name)
{
    json_t *draft;

    if (!texts_have(field_get(entry->json, "metadata", "finalizers", NULL), name))
        return false;
    draft = entry_draft(entry);
    texts_drop(field_array(json_object_get(draft, "metadata"), "finalizers"), name);
    if (json_array_size(field_get(draft, "metadata", "finalizers", NULL)) == 0)
        json_object_del(json_object_get(draft, "metadata"), "finalizers");
    entry_change(entry, draft);
    return true;
}

/* An object that is being deleted goes when nothing depends on it and no finalizer is left; foreign ones stay until
 * somebody puts the object without them. True when it changed the object, or freed it. */
static bool finish_deletion(struct entry *entry)
{
    if (delete_dependents(entry) > 0)
        return false;
    if (drop_finalizer(entry, FINALIZER_FOREGROUND))
        return true;
    if (json_array_size(field_get(entry->json, "metadata", "finalizers", NULL)) > 0)
        return false;
    if (entry->kind->id == KIND_POD && pod_is_bound(entry) && !pod_is_finished(entry))
        return false; /* the kubelet ends its containers first */
    entry_drop(entry);
    return true;
}

/* ---- claims (semantics 13.3) ---- */

static bool is_consumer(const struct entry *claim, const json_t *reference)
{
    const char *uid = field_text(reference, "uid", NULL);
    const struct entry *pod = uid ? entry_by_uid(claim->cluster, uid) : NULL;

    /* A dump may have claims without the pods that hold them: those devices are in use all the same. */
    if (!pod)
        return claim->manifest && !claim->lost_owner && !entry_is_going(claim) &&
               !entry_find(claim->cluster, KIND_POD, claim->ns, field_text(reference, "name", NULL));
    return pod->kind->id == KIND_POD && !pod_is_finished(pod);
}

static json_t *consumers_left(const struct entry *claim)
{
    json_t *left = json_array(), *reference;
    size_t i;

    json_array_foreach (field_get(claim->json, "status", "reservedFor", NULL), i, reference)
        if (is_consumer(claim, reference))
            json_array_append(left, reference);
    return left;
}

static void claim_release(struct entry *claim, json_t *left)
{
    json_t *draft = entry_draft(claim), *status = field_object(draft, "status");
    json_t *finalizers = field_array(json_object_get(draft, "metadata"), "finalizers");

    if (json_array_size(left) > 0) {
        json_object_set(status, "reservedFor", left);
    } else {
        json_object_del(status, "reservedFor");
        if (texts_drop(finalizers, FINALIZER_CLAIM)) {
            json_object_del(status, "allocation");
            json_object_del(status, "devices");
        }
    }
    if (json_array_size(finalizers) == 0)
        json_object_del(json_object_get(draft, "metadata"), "finalizers");
    entry_change(claim, draft);
}

/* A claim that was generated for a pod, from a template or for extended resources, goes when the pod has ended. */
static bool has_outlived_its_pod(const struct entry *claim)
{
    const struct entry *pod = claim->n_owners == 1 ? entry_by_uid(claim->cluster, claim->owners[0]) : NULL;
    const json_t *annotations = field_get(claim->json, "metadata", "annotations", NULL);

    return pod && pod->kind->id == KIND_POD && pod_is_finished(pod) &&
           (field_text(annotations, ANNOTATION_POD_CLAIM, NULL) || field_text(annotations, ANNOTATION_EXTENDED, NULL));
}

/* True when it changed the claim, or freed it. */
static bool claim_look(struct entry *claim)
{
    size_t n_before = json_array_size(field_get(claim->json, "status", "reservedFor", NULL));
    bool is_protected = texts_have(field_get(claim->json, "metadata", "finalizers", NULL), FINALIZER_CLAIM);
    json_t *left = consumers_left(claim);
    bool is_released =
        json_array_size(left) < n_before || (entry_is_going(claim) && is_protected && json_array_size(left) == 0);

    if (is_released)
        claim_release(claim, left);
    json_decref(left);
    if (is_released || entry_is_going(claim) || !has_outlived_its_pod(claim))
        return is_released;
    entry_delete(claim);
    return true;
}

/* ---- generated claims ---- */

static json_t *generated_claim(const struct entry *pod, const char *entry_name, const json_t *template,
                               const char *name)
{
    json_t *claim =
        json_pack("{s:O,s:s,s:{s:s,s:s,s:{s:s},s:[{s:s,s:s,s:s,s:s,s:b,s:b}]},s:O*}", "apiVersion",
                  json_object_get(template, "apiVersion"), "kind", "ResourceClaim", "metadata", "name", name,
                  "namespace", pod->ns, "annotations", ANNOTATION_POD_CLAIM, entry_name, "ownerReferences",
                  "apiVersion", "v1", "kind", "Pod", "name", pod->name, "uid", pod->uid, "controller", 1,
                  "blockOwnerDeletion", 1, "spec", field_get(template, "spec", "spec", NULL));
    static const char *const copied[] = {"labels", "annotations"};

    for (size_t i = 0; i < ARRAY_SIZE(copied); i++)
        json_object_update_missing(field_object(json_object_get(claim, "metadata"), copied[i]),
                                   field_get(template, "spec", "metadata", copied[i], NULL));
    return claim;
}

static bool generate(struct entry *pod, const char *name, const struct entry *template)
{
    struct embedded *cluster = pod->cluster;
    struct entry *claim;
    json_t *object, *draft;
    struct error err = {0};
    BUF claim_name = {0};
    int rc;

    buf_addf(&claim_name, "%.180s-%s-%05llx", pod->name, name, (unsigned long long)(cluster->version & 0xfffff));
    object = generated_claim(pod, name, template->json, buf_str(&claim_name));
    rc = api_create(cluster, object, &claim, &err);
    json_decref(object);
    if (rc < 0) {
        error_wrap(&err, "claim %s of pod %s/%s", name, pod->ns, pod->name);
        embedded_warn(cluster, &err);
        return false;
    }
    draft = entry_draft(pod);
    json_array_append_new(field_array(field_object(draft, "status"), "resourceClaimStatuses"),
                          json_pack("{s:s,s:s}", "name", name, "resourceClaimName", claim->name));
    cluster->is_scheduling_due = true;
    entry_change(pod, draft);
    return true;
}

static bool is_generated(const struct entry *pod, const char *name)
{
    size_t i;
    json_t *status;

    json_array_foreach (field_get(pod->json, "status", "resourceClaimStatuses", NULL), i, status) {
        const char *other = field_text(status, "name", NULL);

        if (other && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

/* True when it changed the pod. */
static bool generate_claims(struct entry *pod)
{
    size_t i;
    json_t *entry;

    if (pod_is_finished(pod) || entry_is_going(pod))
        return false;
    json_array_foreach (field_get(pod->json, "spec", "resourceClaims", NULL), i, entry) {
        const char *name = field_text(entry, "name", NULL);
        const char *template_name = field_text(entry, "resourceClaimTemplateName", NULL);
        const struct entry *template =
            template_name ? entry_find(pod->cluster, KIND_TEMPLATE, pod->ns, template_name) : NULL;

        if (template && !is_generated(pod, name) && generate(pod, name, template))
            return true;
    }
    return false;
}

/* ---- all ---- */

static void push_waiting_pods(const struct entry *template)
{
    struct entry *pod;

    DL_FOREACH (template->cluster->lists[KIND_POD], pod)
        if (strcmp(pod->ns, template->ns) == 0 && !pod_is_bound(pod))
            entry_push(pod);
}

void controllers_look(struct entry *entry)
{
    if (!entry_is_going(entry) && is_orphan(entry)) {
        entry_delete(entry);
        return;
    }
    if (entry->kind->id == KIND_CLAIM && claim_look(entry))
        return;
    if (entry->kind->id == KIND_TEMPLATE)
        push_waiting_pods(entry);
    if (entry->kind->id == KIND_QUOTA)
        quota_look(entry);
    if (entry->kind->id == KIND_POD && generate_claims(entry))
        return;
    if (entry_is_going(entry) && finish_deletion(entry))
        return;
    if (entry->kind->id == KIND_POD)
        pod_look(entry);
}
