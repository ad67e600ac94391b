/* Taints with the effect NoExecute end what runs: a node's taint the pods on it, a device's taint (from its slice or
 * from a DeviceTaintRule) the pods whose claims hold it, unless they tolerate it, perhaps for some seconds only.
 *
 * The taints of devices are few; they are gathered once per change of the slices and rules. */
#include "queued/cluster/embedded/internal.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "allocator/base/mem.h"
#include "queued/clock.h"

#include "allocator/base/banned.h"

#define NO_EXECUTE "NoExecute"

/* Borrowed texts: any change of a slice or a rule gathers anew before they are read. */
struct device_taint {
    const char *driver, *pool, *device; /* NULL: any */
    const json_t *taint;
};
struct evictions {
    bool is_stale;
    bool had_any; /* so that pods are looked at once more when the last taint is gone */
    struct device_taint *taints;
    size_t n, cap;
};

struct evictions *evictions_new(void)
{
    return mem_new(struct evictions);
}

void evictions_free(struct evictions *evictions)
{
    if (!evictions)
        return;
    free(evictions->taints);
    free(evictions);
}

void evictions_changed(struct embedded *cluster)
{
    cluster->evictions->is_stale = true;
}

static bool text_eq(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_no_execute(const json_t *taint)
{
    return text_eq(field_text(taint, "effect", NULL), NO_EXECUTE);
}

static void add_taint(struct evictions *evictions, struct device_taint taint)
{
    mem_grow(evictions->taints, evictions->n, evictions->cap);
    evictions->taints[evictions->n++] = taint;
}

static void gather_slice(struct evictions *evictions, const struct entry *slice)
{
    const json_t *spec = json_object_get(slice->json, "spec"), *taints;
    size_t i, k;
    json_t *device, *taint;

    json_array_foreach (json_object_get(spec, "devices"), i, device) {
        taints = json_object_get(device, "taints");
        if (!taints)
            taints = field_get(device, "basic", "taints", NULL);
        json_array_foreach (taints, k, taint)
            if (is_no_execute(taint))
                add_taint(evictions, (struct device_taint){field_text(spec, "driver", NULL),
                                                           field_text(spec, "pool", "name", NULL),
                                                           field_text(device, "name", NULL), taint});
    }
}

static void gather_rule(struct evictions *evictions, const struct entry *rule)
{
    const json_t *selector = field_get(rule->json, "spec", "deviceSelector", NULL);
    const json_t *taint = field_get(rule->json, "spec", "taint", NULL);

    if (json_is_object(selector) && is_no_execute(taint))
        add_taint(evictions,
                  (struct device_taint){field_text(selector, "driver", NULL), field_text(selector, "pool", NULL),
                                        field_text(selector, "device", NULL), taint});
}

static bool any_node_taint(const struct embedded *cluster)
{
    const struct entry *node;
    size_t i;
    json_t *taint;

    DL_FOREACH (cluster->lists[KIND_NODE], node)
        json_array_foreach (field_get(node->json, "spec", "taints", NULL), i, taint)
            if (is_no_execute(taint))
                return true;
    return false;
}

void evictions_refresh(struct embedded *cluster)
{
    struct evictions *evictions = cluster->evictions;
    struct entry *entry;
    bool any;

    if (!evictions->is_stale)
        return;
    evictions->is_stale = false;
    evictions->n = 0;
    if (feature_on(&cluster->features, FEATURE_DEVICE_TAINTS))
        DL_FOREACH (cluster->lists[KIND_SLICE], entry)
            gather_slice(evictions, entry);
    if (feature_on(&cluster->features, FEATURE_DEVICE_TAINT_RULES))
        DL_FOREACH (cluster->lists[KIND_TAINT_RULE], entry)
            gather_rule(evictions, entry);
    any = evictions->n > 0 || any_node_taint(cluster);
    if (any || evictions->had_any)
        DL_FOREACH (cluster->lists[KIND_POD], entry)
            if (pod_is_bound(entry) && !pod_is_finished(entry))
                entry_push(entry);
    evictions->had_any = any;
}

/* ---- one pod ---- */

static bool tolerates(const json_t *toleration, const json_t *taint)
{
    const char *effect = field_text(toleration, "effect", NULL), *key = field_text(toleration, "key", NULL);
    bool is_exists = text_eq(field_text(toleration, "operator", NULL), "Exists");

    if (effect && *effect && !text_eq(effect, NO_EXECUTE))
        return false;
    if (is_exists && (!key || !*key))
        return true;
    if (!text_eq(key, field_text(taint, "key", NULL)))
        return false;
    return is_exists || text_eq(field_text(toleration, "value", NULL), field_text(taint, "value", NULL));
}

/* When what has these tolerations must go because of the taint: the shortest toleration counts. */
static int64_t taint_due(const struct embedded *cluster, const json_t *tolerations, const json_t *taint)
{
    int64_t since_ms = when_read(json_object_get(taint, "timeAdded"), cluster->started_ms);
    int64_t seconds = INT64_MAX;
    bool is_tolerated = false;
    size_t i;
    json_t *toleration;

    json_array_foreach (tolerations, i, toleration) {
        const json_t *limit = json_object_get(toleration, "tolerationSeconds");

        if (!tolerates(toleration, taint))
            continue;
        is_tolerated = true;
        if (json_is_integer(limit) && json_integer_value(limit) < seconds)
            seconds = json_integer_value(limit);
    }
    if (!is_tolerated || seconds <= 0)
        return since_ms;
    return seconds > INT32_MAX ? INT64_MAX : since_ms + seconds * 1000;
}

struct due {
    const struct entry *pod;
    int64_t due_ms;
};

static bool names_device(const struct device_taint *taint, const json_t *result)
{
    return (!taint->driver || text_eq(taint->driver, field_text(result, "driver", NULL))) &&
           (!taint->pool || text_eq(taint->pool, field_text(result, "pool", NULL))) &&
           (!taint->device || text_eq(taint->device, field_text(result, "device", NULL)));
}

static void claim_due(void *ctx, const char *name, struct entry *claim)
{
    struct due *due = ctx;
    const struct evictions *evictions = due->pod->cluster->evictions;
    size_t i;
    json_t *result;

    (void)name;
    if (!claim)
        return;
    json_array_foreach (field_get(claim->json, "status", "allocation", "devices", "results", NULL), i, result)
        for (size_t k = 0; k < evictions->n; k++)
            if (names_device(&evictions->taints[k], result)) {
                int64_t at_ms =
                    taint_due(due->pod->cluster, json_object_get(result, "tolerations"), evictions->taints[k].taint);

                due->due_ms = at_ms < due->due_ms ? at_ms : due->due_ms;
            }
}

int64_t eviction_due(const struct entry *pod, const char **reason)
{
    struct embedded *cluster = pod->cluster;
    const struct entry *node = entry_find(cluster, KIND_NODE, NULL, field_text(pod->json, "spec", "nodeName", NULL));
    struct due due = {pod, INT64_MAX};
    int64_t node_ms = INT64_MAX;
    size_t i;
    json_t *taint;

    evictions_refresh(cluster);
    if (!cluster->evictions->had_any)
        return INT64_MAX;
    if (node)
        json_array_foreach (field_get(node->json, "spec", "taints", NULL), i, taint)
            if (is_no_execute(taint)) {
                int64_t at_ms = taint_due(cluster, field_get(pod->json, "spec", "tolerations", NULL), taint);

                node_ms = at_ms < node_ms ? at_ms : node_ms;
            }
    if (cluster->evictions->n > 0)
        pod_each_claim(pod, claim_due, &due);
    *reason = node_ms <= due.due_ms ? "DeletionByTaintManager" : "DeletionByDeviceTaintManager";
    return node_ms <= due.due_ms ? node_ms : due.due_ms;
}
