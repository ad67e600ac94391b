/* The kinds that are served, one row each, and what the API server demands of an object by itself. What devices,
 * classes, slices and quantities may look like is checked by the allocator's own reader, when the object enters the
 * model. */
#include "queued/cluster/embedded/internal.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/predict.h"
#include "queued/manifest/duration.h"

#include "allocator/base/banned.h"

/* ---- names ---- */

static bool is_dns_char(char c, bool is_end)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && !is_end);
}

static bool is_dns_label(const char *s, size_t n, size_t max)
{
    if (n == 0 || n > max)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_dns_char(s[i], i == 0 || i + 1 == n))
            return false;
    return true;
}

static int check_label(const char *name, const char *field, struct error *err)
{
    if (is_dns_label(name, strlen(name), 63))
        return 0;
    return error_field(
        err, field,
        "\"%.80s\" is no DNS label: at most 63 lower-case letters, digits and dashes, a letter or digit at "
        "both ends",
        name);
}

static int check_service_name(const char *name, const char *field, struct error *err)
{
    if (*name >= 'a' && *name <= 'z')
        return check_label(name, field, err);
    return error_field(err, field, "\"%.80s\" is no name for a Service: it starts with a lower-case letter", name);
}

static int check_subdomain(const char *name, const char *field, struct error *err)
{
    size_t n = strlen(name);
    const char *part = name;

    for (; n <= 253; part++) {
        size_t len = strcspn(part, ".");

        if (!is_dns_label(part, len, 253))
            break;
        part += len;
        if (*part == '\0')
            return 0;
    }
    return error_field(err, field,
                       "\"%.80s\" is no DNS name: at most 253 lower-case letters, digits, dashes and dots, a letter or "
                       "digit at the ends of every part",
                       name);
}

static bool is_label_text(const char *s, size_t n, bool may_be_empty)
{
    if (n == 0)
        return may_be_empty;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool is_end = i == 0 || i + 1 == n;
        bool is_alnum = is_dns_char(c, true) || (c >= 'A' && c <= 'Z');

        if (!is_alnum && (is_end || (c != '-' && c != '_' && c != '.')))
            return false;
    }
    return n <= 63;
}

/* [prefix "/"] name */
static int check_key(const char *key, const char *field, struct error *err)
{
    const char *slash = strchr(key, '/');
    char prefix[254];

    if (slash) {
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(slash - key < 253 ? slash - key : 253), key);
        if (slash - key > 253 || check_subdomain(prefix, field, NULL) < 0)
            return error_field(err, field, "the part of the key \"%.80s\" before the slash is no DNS name", key);
        key = slash + 1;
    }
    if (is_label_text(key, strlen(key), false))
        return 0;
    return error_field(err, field, "\"%.80s\" is no key: at most 63 letters, digits, '-', '_' and '.'", key);
}

/* ---- metadata ---- */

static int check_texts(const json_t *map, const char *field, bool are_labels, struct error *err)
{
    const char *key;
    json_t *value;

    if (!map || json_is_null(map))
        return 0;
    if (!json_is_object(map))
        return error_field(err, field, "must be an object");
    json_object_foreach ((json_t *)(uintptr_t)map, key, value) {
        if (check_key(key, field, err) < 0)
            return -1;
        if (!json_is_string(value))
            return error_field(err, field, "the value of \"%.80s\" must be a string", key);
        if (are_labels && !is_label_text(json_string_value(value), json_string_length(value), true))
            return error_field(err, field, "\"%.80s\" is no value for the label \"%.80s\"", json_string_value(value),
                               key);
    }
    return 0;
}

static int check_owners(const json_t *references, struct error *err)
{
    static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
    char field[80];
    size_t i;
    json_t *reference;

    if (references && !json_is_array(references) && !json_is_null(references))
        return error_field(err, "metadata.ownerReferences", "must be an array");
    json_array_foreach (references, i, reference)
        for (size_t k = 0; k < ARRAY_SIZE(needed); k++) {
            const char *text = field_text(reference, needed[k], NULL);

            snprintf(field, sizeof(field), "metadata.ownerReferences[%zu].%s", i, needed[k]);
            if (!text || !*text)
                return error_field(err, field, "is required");
            if (strlen(text) > (k == 3 ? 39 : 253))
                return error_field(err, field, "is too long");
        }
    return 0;
}

static int check_metadata(const struct kind *kind, const json_t *metadata, struct error *err)
{
    const char *name = field_text(metadata, "name", NULL), *uid = field_text(metadata, "uid", NULL);
    const json_t *ns = json_object_get(metadata, "namespace");

    if (!json_is_object(metadata))
        return error_field(err, "metadata", "is required");
    if (!name)
        return error_field(err, "metadata.name", "is required");
    if (kind->check_name(name, "metadata.name", err) < 0)
        return -1;
    if (uid && (!*uid || strlen(uid) > 39))
        return error_field(err, "metadata.uid", "must have 1 to 39 characters");
    if (ns && !json_is_string(ns))
        return error_field(err, "metadata.namespace", "must be a string");
    if (ns && !kind->has_namespace)
        return error_field(err, "metadata.namespace", "a %s has no namespace", kind->name);
    if (ns && check_label(json_string_value(ns), "metadata.namespace", err) < 0)
        return -1;
    if (check_texts(json_object_get(metadata, "labels"), "metadata.labels", true, err) < 0)
        return -1;
    if (check_texts(json_object_get(metadata, "annotations"), "metadata.annotations", false, err) < 0)
        return -1;
    return check_owners(json_object_get(metadata, "ownerReferences"), err);
}

/* ---- pods ---- */

/* Names of an array of objects: present, DNS labels, each once. `index_of` finds earlier ones. */
static int check_names(const json_t *array, const char *what, bool are_required, struct error *err)
{
    char field[96];
    size_t i, k;
    json_t *item;

    if (array && !json_is_array(array))
        return error_field(err, what, "must be an array");
    if (are_required && json_array_size(array) == 0)
        return error_field(err, what, "at least one is required");
    json_array_foreach (array, i, item) {
        const char *name = field_text(item, "name", NULL);

        snprintf(field, sizeof(field), "%s[%zu].name", what, i);
        if (!name)
            return error_field(err, field, "is required");
        if (check_label(name, field, err) < 0)
            return -1;
        for (k = 0; k < i; k++)
            if (strcmp(field_text(json_array_get(array, k), "name", NULL), name) == 0)
                return error_field(err, field, "\"%s\" is named twice", name);
    }
    return 0;
}

static bool has_name(const json_t *array, const char *name)
{
    size_t i;
    json_t *item;

    json_array_foreach (array, i, item) {
        const char *other = field_text(item, "name", NULL);

        if (other && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

static int check_container(const json_t *container, const char *field, const json_t *claims, struct error *err)
{
    const json_t *uses = field_get(container, "resources", "claims", NULL);
    const char *image = field_text(container, "image", NULL);
    size_t i;
    json_t *use;

    if (!image || !*image) {
        error_field(err, "image", "is required");
        return error_in(err, "%s", field);
    }
    json_array_foreach (uses, i, use) {
        const char *name = field_text(use, "name", NULL);

        if (name && has_name(claims, name))
            continue;
        error_field(err, "name", "\"%.63s\" is none of spec.resourceClaims", name ? name : "");
        return error_in(err, "%s.resources.claims[%zu]", field, i);
    }
    return 0;
}

static int check_containers(const json_t *spec, struct error *err)
{
    static const char *const lists[] = {"containers", "initContainers"};
    char field[64];
    size_t i;
    json_t *container;

    for (size_t k = 0; k < ARRAY_SIZE(lists); k++) {
        const json_t *list = json_object_get(spec, lists[k]);

        if (check_names(list, lists[k], k == 0, err) < 0)
            return -1;
        json_array_foreach (list, i, container) {
            snprintf(field, sizeof(field), "%s[%zu]", lists[k], i);
            if (check_container(container, field, json_object_get(spec, "resourceClaims"), err) < 0)
                return -1;
            if (k == 1 && has_name(json_object_get(spec, "containers"), field_text(container, "name", NULL)))
                return error_field(err, field, "a container has the same name");
        }
    }
    return 0;
}

static int check_pod_claims(const json_t *claims, struct error *err)
{
    char field[64];
    size_t i;
    json_t *claim;

    if (check_names(claims, "resourceClaims", false, err) < 0)
        return -1;
    json_array_foreach (claims, i, claim) {
        const char *name = field_text(claim, "resourceClaimName", NULL);
        const char *template = field_text(claim, "resourceClaimTemplateName", NULL);

        snprintf(field, sizeof(field), "resourceClaims[%zu]", i);
        if (!name == !template)
            return error_field(err, field, "needs exactly one of resourceClaimName and resourceClaimTemplateName");
        if (check_subdomain(name ? name : template, field, err) < 0)
            return -1;
    }
    return 0;
}

static int check_seconds(const json_t *spec, const char *key, json_int_t min, struct error *err)
{
    const json_t *value = json_object_get(spec, key);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > INT32_MAX)
        return error_field(err, key, "must be a number of seconds from %d", (int)min);
    return 0;
}

static int check_behaviour(const json_t *annotations, struct error *err)
{
    const char *duration = field_text(annotations, EMBEDDED_DURATION, NULL);
    const char *code = field_text(annotations, EMBEDDED_EXIT_CODE, NULL);
    int64_t ms;
    char *end;
    long number;

    if (duration && !duration_parse(duration, &ms))
        return error_field(err, "metadata.annotations[" EMBEDDED_DURATION "]",
                           "\"%.40s\" is no duration, as in 90s or 1h30m", duration);
    if (!code)
        return 0;
    number = strtol(code, &end, 10);
    if (*code < '0' || *code > '9' || *end != '\0' || number > 255)
        return error_field(err, "metadata.annotations[" EMBEDDED_EXIT_CODE "]", "must be a number from 0 to 255");
    return 0;
}

static int check_pod_spec(const json_t *spec, struct error *err)
{
    const char *policy = field_text(spec, "restartPolicy", NULL);
    const json_t *gates = json_object_get(spec, "schedulingGates");

    if (!json_is_object(spec))
        return error_set(err, ERR_INVALID, "is required");
    if (check_pod_claims(json_object_get(spec, "resourceClaims"), err) < 0 || check_containers(spec, err) < 0)
        return -1;
    if (policy && strcmp(policy, "Always") != 0 && strcmp(policy, "OnFailure") != 0 && strcmp(policy, "Never") != 0)
        return error_field(err, "restartPolicy", "must be Always, OnFailure or Never");
    if (json_array_size(gates) > 0 && field_text(spec, "nodeName", NULL))
        return error_field(err, "nodeName", "cannot be set while there are schedulingGates");
    for (size_t i = 0; i < json_array_size(gates); i++) {
        const char *name = field_text(json_array_get(gates, i), "name", NULL);
        char field[64];

        snprintf(field, sizeof(field), "schedulingGates[%zu].name", i);
        if (!name)
            return error_field(err, field, "is required");
        if (check_key(name, field, err) < 0)
            return -1;
    }
    if (check_seconds(spec, "terminationGracePeriodSeconds", 0, err) < 0)
        return -1;
    return check_seconds(spec, "activeDeadlineSeconds", 1, err);
}

static int check_pod(struct embedded *cluster, const json_t *pod, struct error *err)
{
    (void)cluster;
    if (check_pod_spec(json_object_get(pod, "spec"), err) < 0)
        return error_in(err, "spec");
    return check_behaviour(field_get(pod, "metadata", "annotations", NULL), err);
}

/* ---- other kinds ---- */

static int check_template(struct embedded *cluster, const json_t *template, struct error *err)
{
    struct arena arena = {0};
    struct claim *claim;
    int rc = claim_parse(template, &cluster->features, true, &arena, &claim, err);

    arena_release(&arena);
    return rc;
}

static int check_config_map(struct embedded *cluster, const json_t *map, struct error *err)
{
    const json_t *data = json_object_get(map, "data");
    const char *key;
    json_t *value;

    (void)cluster;
    if (data && !json_is_object(data) && !json_is_null(data))
        return error_field(err, "data", "must be an object");
    json_object_foreach ((json_t *)(uintptr_t)data, key, value)
        if (!json_is_string(value))
            return error_field(err, "data", "the value of \"%.80s\" must be a string", key);
    return 0;
}

static int check_service(struct embedded *cluster, const json_t *service, struct error *err)
{
    const json_t *spec = json_object_get(service, "spec");
    const char *ip = field_text(spec, "clusterIP", NULL);
    const json_t *ports = json_object_get(spec, "ports");
    char field[64];
    size_t i;
    json_t *port;

    (void)cluster;
    if (!json_is_object(spec))
        return error_field(err, "spec", "is required");
    if (json_array_size(ports) == 0 && !(ip && strcmp(ip, "None") == 0))
        return error_field(err, "spec.ports", "is required unless clusterIP is None");
    json_array_foreach (ports, i, port) {
        json_int_t number = json_integer_value(json_object_get(port, "port"));

        snprintf(field, sizeof(field), "spec.ports[%zu].port", i);
        if (number < 1 || number > 65535)
            return error_field(err, field, "must be a number from 1 to 65535");
    }
    return 0;
}

/* The API server wants the namespace's consent to administrative access (semantics 1.3). */
static int check_claim(struct embedded *cluster, const json_t *claim, struct error *err)
{
    const char *ns = field_text(claim, "metadata", "namespace", NULL);
    const struct entry *home = entry_find(cluster, KIND_NAMESPACE, NULL, ns ? ns : "default");
    const char *consent =
        home ? field_text(home->json, "metadata", "labels", "resource.kubernetes.io/admin-access", NULL) : NULL;
    size_t i;
    json_t *request;

    if (consent && strcmp(consent, "true") == 0)
        return 0;
    json_array_foreach (field_get(claim, "spec", "devices", "requests", NULL), i, request)
        if (json_is_true(field_get(request, "exactly", "adminAccess", NULL)) ||
            json_is_true(json_object_get(request, "adminAccess"))) {
            error_field(err, "exactly.adminAccess",
                        "needs the label resource.kubernetes.io/admin-access: \"true\" on the namespace");
            return error_in(err, "spec.devices.requests[%zu]", i);
        }
    return 0;
}

static int check_pod_group(struct embedded *cluster, const json_t *group, struct error *err)
{
    const json_t *policy = field_get(group, "spec", "schedulingPolicy", NULL);
    const json_t *gang = json_object_get(policy, "gang"), *n = json_object_get(gang, "minCount");

    (void)cluster;
    if (!gang == !json_object_get(policy, "basic"))
        return error_field(err, "spec.schedulingPolicy", "needs exactly one of basic and gang");
    if (gang && (!json_is_integer(n) || json_integer_value(n) < 1))
        return error_field(err, "spec.schedulingPolicy.gang.minCount", "must be a number from 1");
    return 0;
}

static int check_pod_template(struct embedded *cluster, const json_t *object, struct error *err)
{
    (void)cluster;
    if (check_pod_spec(field_get(object, "template", "spec", NULL), err) < 0)
        return error_in(err, "template.spec");
    return 0;
}

/* As the CRD demands (kubernetes/autoscaler, apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go). Nobody acts on
 * these requests here: what an autoscaler would answer is put by command. */
static int check_provisioning_request(struct embedded *cluster, const json_t *object, struct error *err)
{
    const json_t *spec = json_object_get(object, "spec"), *sets = json_object_get(spec, "podSets"), *set;
    const char *class_name = field_text(spec, "provisioningClassName", NULL);
    size_t i;

    (void)cluster;
    if (!class_name || check_subdomain(class_name, "spec.provisioningClassName", err) < 0)
        return class_name ? -1 : error_field(err, "spec.provisioningClassName", "is required");
    if (json_array_size(sets) < 1 || json_array_size(sets) > 32)
        return error_field(err, "spec.podSets", "must be 1 to 32");
    json_array_foreach (sets, i, set) {
        const char *name = field_text(set, "podTemplateRef", "name", NULL);
        char field[64];

        snprintf(field, sizeof(field), "spec.podSets[%zu]", i);
        if (!name)
            return error_field(err, field, "podTemplateRef.name is required");
        if (check_subdomain(name, field, err) < 0)
            return -1;
        if (json_integer_value(json_object_get(set, "count")) < 1)
            return error_field(err, field, "count must be a number from 1");
    }
    return 0;
}

#define PROVISIONING_VERSIONS " autoscaling.x-k8s.io/v1 autoscaling.x-k8s.io/v1beta1 "
#define DRA_VERSIONS          " resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1beta1 "
#define RULE_VERSIONS         " resource.k8s.io/v1 resource.k8s.io/v1beta2 resource.k8s.io/v1alpha3 "

const struct kind kinds[KIND_COUNT] = {
    [KIND_NAMESPACE] = {KIND_NAMESPACE, "Namespace", "namespaces", " v1 ", false, true, STREAM_ALWAYS, check_label,
                        NULL},
    [KIND_PRIORITY_CLASS] = {KIND_PRIORITY_CLASS, "PriorityClass", "priorityclasses", " scheduling.k8s.io/v1 ", false,
                             false, STREAM_ALWAYS, check_subdomain, NULL},
    [KIND_QUOTA] = {KIND_QUOTA, "ResourceQuota", "resourcequotas", " v1 ", true, false, STREAM_ALWAYS, check_subdomain,
                    NULL},
    [KIND_NODE] = {KIND_NODE, "Node", "nodes", " v1 ", false, true, STREAM_ALWAYS, check_subdomain, NULL},
    [KIND_CLASS] = {KIND_CLASS, "DeviceClass", "deviceclasses", DRA_VERSIONS, false, true, STREAM_ALWAYS,
                    check_subdomain, NULL},
    [KIND_SLICE] = {KIND_SLICE, "ResourceSlice", "resourceslices", DRA_VERSIONS, false, true, STREAM_ALWAYS,
                    check_subdomain, NULL},
    [KIND_TAINT_RULE] = {KIND_TAINT_RULE, "DeviceTaintRule", "devicetaintrules", RULE_VERSIONS, false, true,
                         STREAM_ALWAYS, check_subdomain, NULL},
    [KIND_TEMPLATE] = {KIND_TEMPLATE, "ResourceClaimTemplate", "resourceclaimtemplates", DRA_VERSIONS, true, false,
                       STREAM_NEVER, check_subdomain, check_template},
    [KIND_CONFIG_MAP] = {KIND_CONFIG_MAP, "ConfigMap", "configmaps", " v1 ", true, false, STREAM_OURS, check_subdomain,
                         check_config_map},
    [KIND_SERVICE] = {KIND_SERVICE, "Service", "services", " v1 ", true, false, STREAM_OURS, check_service_name,
                      check_service},
    [KIND_POD_GROUP] = {KIND_POD_GROUP, "PodGroup", "podgroups", " scheduling.k8s.io/v1beta1 ", true, false,
                        STREAM_OURS, check_subdomain, check_pod_group},
    [KIND_POD_TEMPLATE] = {KIND_POD_TEMPLATE, "PodTemplate", "podtemplates", " v1 ", true, false, STREAM_NEVER,
                           check_subdomain, check_pod_template},
    [KIND_PROVISIONING_REQUEST] = {KIND_PROVISIONING_REQUEST, "ProvisioningRequest", "provisioningrequests",
                                   PROVISIONING_VERSIONS, true, false, STREAM_OURS, check_subdomain,
                                   check_provisioning_request},
    [KIND_CLAIM] = {KIND_CLAIM, "ResourceClaim", "resourceclaims", DRA_VERSIONS, true, true, STREAM_ALWAYS,
                    check_subdomain, check_claim},
    [KIND_POD] = {KIND_POD, "Pod", "pods", " v1 ", true, true, STREAM_ALWAYS, check_subdomain, check_pod},
};

const struct kind *served_kind_find(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static bool serves_version(const struct kind *kind, const char *version)
{
    const char *found = strstr(kind->versions, version);

    return found && *version && found[-1] == ' ' && found[strlen(version)] == ' ';
}

int object_check(struct embedded *cluster, const json_t *object, const struct kind **out, struct error *err)
{
    const char *name = field_text(object, "kind", NULL), *version = field_text(object, "apiVersion", NULL);
    const struct kind *kind;

    if (!json_is_object(object))
        return error_set(err, ERR_INVALID, "a Kubernetes object is a JSON object");
    if (!name)
        return error_field(err, "kind", "is required");
    if (!version)
        return error_field(err, "apiVersion", "is required");
    kind = served_kind_find(name);
    if (!kind)
        return error_field(err, "kind", "\"%.63s\" is not served by the embedded cluster", name);
    if (!serves_version(kind, version))
        return error_field(err, "apiVersion", "\"%.63s\" is no version of %s", version, kind->name);
    if (check_metadata(kind, json_object_get(object, "metadata"), err) < 0)
        return -1;
    if (kind->check && kind->check(cluster, object, err) < 0)
        return -1;
    *out = kind;
    return 0;
}
