/* ResourceQuota: what is created in its namespace is counted and, beyond the limit, refused.
 *
 * Counted are objects by kind, pods that have not ended with their requests for cpu and memory, and the devices that
 * claims ask for by class (one with mode All counts as 32, of alternatives the largest of each class). Amounts of other
 * resources stay as the manifest has them, and so does a quota with scopes, or without a spec.hard. */
#include "queued/cluster/embedded/internal.h"

#include <string.h>

#include <utlist.h>

#include "allocator/base/arena.h"
#include "allocator/base/checked.h"
#include "allocator/base/quantity.h"
#include "allocator/base/str.h"
#include "allocator/nodecheck.h"

#include "allocator/base/banned.h"

#define DEVICES_OF_ALL 32
#define NOT_COUNTED    INT64_C(-1)

/* Thousandths, so that cpu is exact; saturates. */
static int64_t plus(int64_t total, int64_t amount, int64_t factor)
{
    int64_t product;

    if (!checked_mul(amount, factor, &product) || !checked_add(total, product, &total))
        return INT64_MAX;
    return total;
}

/* ---- one object ---- */

static int64_t devices_of(const json_t *ask, const char *class, size_t n_class)
{
    const char *asked = field_text(ask, "deviceClassName", NULL), *mode = field_text(ask, "allocationMode", NULL);
    const json_t *count = json_object_get(ask, "count");

    if (!asked || strncmp(asked, class, n_class) != 0 || asked[n_class] != '\0')
        return 0;
    if (mode && strcmp(mode, "All") == 0)
        return DEVICES_OF_ALL;
    return json_is_integer(count) ? json_integer_value(count) : 1;
}

static int64_t claim_devices(const json_t *claim, const char *class, size_t n_class)
{
    const json_t *request, *alternative;
    int64_t total = 0;
    size_t i, k;

    json_array_foreach (field_get(claim, "spec", "devices", "requests", NULL), i, request) {
        const json_t *exactly = json_object_get(request, "exactly");
        int64_t most = devices_of(exactly ? exactly : request, class, n_class);

        json_array_foreach (json_object_get(request, "firstAvailable"), k, alternative) {
            int64_t n = devices_of(alternative, class, n_class);

            most = n > most ? n : most;
        }
        total = plus(total, most, 1);
    }
    return total;
}

static bool has_ended(const json_t *pod)
{
    const char *phase = field_text(pod, "status", "phase", NULL);

    return phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
}

static int64_t pod_usage(const json_t *pod, const char *resource)
{
    const char *name = strncmp(resource, "requests.", 9) == 0 ? resource + 9 : resource;
    struct pod_amounts amounts = {0};

    if (has_ended(pod) || pod_amounts_read(pod, &amounts, NULL) < 0)
        return 0;
    if (strcmp(resource, "pods") == 0)
        return 1000;
    return strcmp(name, "cpu") == 0 ? amounts.cpu_milli : plus(0, amounts.memory_bytes, 1000);
}

static bool is_of_pods(const char *resource)
{
    static const char *const names[] = {"pods", "cpu", "requests.cpu", "memory", "requests.memory"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], resource) == 0)
            return true;
    return false;
}

/* What the object takes of a resource, in thousandths. */
static int64_t usage_of(const struct kind *kind, const json_t *object, const char *resource)
{
    static const char devices[] = ".deviceclass.resource.k8s.io/devices";
    const char *end = strstr(resource, devices);
    size_t len = strlen(kind->plural);

    if (end && end[sizeof(devices) - 1] == '\0')
        return kind->id == KIND_CLAIM ? plus(0, claim_devices(object, resource, (size_t)(end - resource)), 1000) : 0;
    if (is_of_pods(resource))
        return kind->id == KIND_POD ? pod_usage(object, resource) : 0;
    if (strncmp(resource, "count/", 6) == 0)
        resource += 6; /* "pods", "resourceclaims.resource.k8s.io" */
    return strncmp(resource, kind->plural, len) == 0 && (resource[len] == '\0' || resource[len] == '.') ? 1000 : 0;
}

static bool is_counted(const char *resource)
{
    return is_of_pods(resource) || strncmp(resource, "count/", 6) == 0 || strcmp(resource, "services") == 0 ||
           strcmp(resource, "configmaps") == 0 || strstr(resource, ".deviceclass.resource.k8s.io/devices");
}

/* ---- a quota ---- */

static int64_t used_of(const struct entry *quota, const char *resource)
{
    const struct entry *entry;
    int64_t total = 0;

    if (!is_counted(resource))
        return NOT_COUNTED;
    for (size_t k = 0; k < KIND_COUNT; k++)
        DL_FOREACH (quota->cluster->lists[k], entry)
            if (entry->kind->has_namespace && strcmp(entry->ns, quota->ns) == 0)
                total = plus(total, usage_of(entry->kind, entry->json, resource), 1);
    return total;
}

static bool read_limit(const json_t *value, struct arena *arena, struct quantity *out)
{
    if (json_is_integer(value)) {
        *out = quantity_of_int(json_integer_value(value));
        return true;
    }
    return json_is_string(value) && quantity_parse(str_of(json_string_value(value)), arena, out, NULL) == 0;
}

static bool has_scopes(const struct entry *quota)
{
    return json_array_size(field_get(quota->json, "spec", "scopes", NULL)) > 0 ||
           field_get(quota->json, "spec", "scopeSelector", NULL);
}

static void add_amount(struct buf *text, int64_t milli, enum quantity_format format)
{
    struct quantity amount = quantity_of_milli(milli, format);

    quantity_format_to(&amount, text);
}

static int check_limit(const struct entry *quota, const char *resource, const struct quantity *limit, int64_t asked,
                       const char *what, struct error *err)
{
    int64_t used = asked > 0 ? used_of(quota, resource) : NOT_COUNTED, most;
    BUF words = {0};

    if (used == NOT_COUNTED || !quantity_to_milli(limit, &most) || plus(used, asked, 1) <= most)
        return 0;
    buf_addf(&words, "requested: %s=", resource);
    add_amount(&words, asked, limit->format);
    buf_addf(&words, ", used: %s=", resource);
    add_amount(&words, used, limit->format);
    buf_addf(&words, ", limited: %s=", resource);
    quantity_format_to(limit, &words);
    return error_set(err, ERR_DENIED, "%s is forbidden: exceeded quota: %s, %s", what, quota->name, buf_str(&words));
}

static int check_quota(const struct entry *quota, const struct kind *kind, const json_t *object, struct error *err)
{
    struct arena arena = {0};
    const char *resource;
    json_t *value;
    int result = 0;
    BUF what = {0};

    buf_addf(&what, "%s \"%s\"", kind->plural, field_text(object, "metadata", "name", NULL));
    json_object_foreach (field_get(quota->json, "spec", "hard", NULL), resource, value) {
        struct quantity limit;

        if (result == 0 && read_limit(value, &arena, &limit))
            result = check_limit(quota, resource, &limit, usage_of(kind, object, resource), buf_str(&what), err);
    }
    arena_release(&arena);
    return result;
}

int quotas_check(struct embedded *cluster, const struct kind *kind, const json_t *object, struct error *err)
{
    const char *ns = field_text(object, "metadata", "namespace", NULL);
    const struct entry *quota;

    DL_FOREACH (cluster->lists[KIND_QUOTA], quota)
        if (kind->has_namespace && strcmp(quota->ns, ns) == 0 && !has_scopes(quota) &&
            check_quota(quota, kind, object, err) < 0)
            return -1;
    return 0;
}

/* ---- status ---- */

void quotas_wake(const struct entry *changed)
{
    struct entry *quota;

    if (!changed->kind->has_namespace || changed->kind->id == KIND_QUOTA)
        return;
    DL_FOREACH (changed->cluster->lists[KIND_QUOTA], quota)
        if (strcmp(quota->ns, changed->ns) == 0)
            entry_push(quota);
}

static json_t *status_of(const struct entry *quota, json_t *hard)
{
    json_t *used = json_object(), *value;
    const char *resource;
    struct arena arena = {0};

    json_object_update(used, field_get(quota->json, "status", "used", NULL));
    json_object_foreach (hard, resource, value) {
        int64_t milli = used_of(quota, resource);
        struct quantity limit;
        BUF text = {0};

        if (milli == NOT_COUNTED || !read_limit(value, &arena, &limit))
            continue;
        add_amount(&text, milli, limit.format);
        json_object_set_new(used, resource, json_string(buf_str(&text)));
    }
    arena_release(&arena);
    return json_pack("{s:O, s:o}", "hard", hard, "used", used);
}

void quota_look(struct entry *quota)
{
    json_t *hard = field_get(quota->json, "spec", "hard", NULL), *status, *draft;

    if (!json_is_object(hard) || has_scopes(quota) || entry_is_going(quota))
        return;
    status = status_of(quota, hard);
    if (!json_equal(status, json_object_get(quota->json, "status"))) {
        draft = entry_draft(quota);
        json_object_set(draft, "status", status);
        entry_change(quota, draft);
    }
    json_decref(status);
}
