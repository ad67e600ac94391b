/* Extended resources that device classes stand behind (semantics, 11.3): the implicit claim of a pod on a node. */
#include "allocator/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

#define IMPLICIT_PREFIX "deviceclass.resource.kubernetes.io/"
#define CLAIM_NAME      "<extended-resources>"
#define MAX_COUNTED     256 /* containers, or resources of one */

/* The class created later wins a name, then the smaller name. */
static bool wins(const struct device_class *a, const struct device_class *b)
{
    int order = strcmp(a->created, b->created);

    return order ? order > 0 : strcmp(a->name, b->name) < 0;
}

const struct device_class *extended_class(const struct snapshot *snapshot, const char *resource)
{
    const struct class_table *table = snapshot_classes(snapshot);
    const struct device_class *found = NULL;

    if (strncmp(resource, IMPLICIT_PREFIX, strlen(IMPLICIT_PREFIX)) == 0)
        return class_find(table, resource + strlen(IMPLICIT_PREFIX));
    for (size_t i = 0; i < table->n_classes; i++) {
        const struct device_class *class = &table->classes[i];

        if (class->extended_resource && text_is(class->extended_resource, resource) && (!found || wins(class, found)))
            found = class;
    }
    return found;
}

/* ---- containers ---- */

struct counted {
    const json_t *container;
    bool is_short; /* an ordinary init container: runs before those behind it */
};

struct extended {
    const struct snapshot *snapshot;
    const struct node *node;
    struct arena *arena;
    struct counted containers[MAX_COUNTED];
    size_t n_containers;
    struct claim_request *requests;
    int64_t *counts;
    size_t *owners; /* container of each request */
    const char **resources;
    size_t n_requests, max_requests;
    struct extended_mapping *mappings;
    size_t n_mappings, max_mappings;
};

static void list_containers(struct extended *x, const json_t *spec, const char *key, bool is_init)
{
    const json_t *array = member(spec, key), *item;
    size_t i;

    json_array_foreach(array, i, item)
    {
        const char *policy = json_string_value(member(item, "restartPolicy"));

        if (x->n_containers == MAX_COUNTED)
            return;
        x->containers[x->n_containers++] = (struct counted){item, is_init && !(policy && text_is(policy, "Always"))};
    }
}

/* Requests, and limits where there is no request: the API server fills in the one from the other. */
static const json_t *container_amount(const json_t *container, const char *resource)
{
    const json_t *resources = member(container, "resources");
    const json_t *amount = member(member(resources, "requests"), resource);

    return amount ? amount : member(member(resources, "limits"), resource);
}

/* A whole number above 0, or 0: other amounts are ignored. */
static int64_t amount_of(const struct extended *x, const json_t *container, const char *resource)
{
    const json_t *json = container_amount(container, resource);
    struct quantity q, back;
    int64_t n;

    if (!json || read_quantity(json, x->arena, &q, NULL) < 0 || !quantity_to_int(&q, &n) || n <= 0)
        return 0;
    back = quantity_of_int(n);
    return quantity_cmp(&q, &back) == 0 ? n : 0;
}

/* ---- which resources ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_names(const json_t *map, const char **names, size_t *n, size_t max)
{
    const char *name;
    const json_t *value;

    json_object_foreach((json_t *)map, name, value)
    {
        bool known = false;

        (void)value;
        for (size_t i = 0; i < *n && !known; i++)
            known = text_is(names[i], name);
        if (!known && *n < max)
            names[(*n)++] = name;
    }
}

/* All resource names of one container, sorted. */
static size_t container_resources(const json_t *container, const char **names, size_t max)
{
    const json_t *resources = member(container, "resources");
    size_t n = 0;

    add_names(member(resources, "requests"), names, &n, max);
    add_names(member(resources, "limits"), names, &n, max);
    qsort(names, n, sizeof(*names), by_text);
    return n;
}

static bool advertised(const struct node *node, const char *resource)
{
    for (size_t i = 0; i < node->info->n_allocatable; i++)
        if (text_is(node->info->allocatable[i].name, resource))
            return quantity_sign(&node->info->allocatable[i].amount) > 0;
    return false;
}

static size_t backed_resources(const struct extended *x, const char **names, size_t max)
{
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < x->n_containers; i++) {
        const json_t *resources = member(x->containers[i].container, "resources");

        add_names(member(resources, "requests"), names, &n, max);
        add_names(member(resources, "limits"), names, &n, max);
    }
    qsort(names, n, sizeof(*names), by_text);
    for (size_t i = 0; i < n; i++)
        if (extended_class(x->snapshot, names[i]) && !advertised(x->node, names[i]))
            names[kept++] = names[i];
    return kept;
}

/* ---- requests and mappings ---- */

static size_t add_request(struct extended *x, size_t container, const char *resource, int64_t count)
{
    const char *names[MAX_COUNTED];
    size_t n = container_resources(x->containers[container].container, names, MAX_COUNTED), k = 0;
    struct claim_ask *ask = arena_new(x->arena, struct claim_ask);

    while (k < n && !text_is(names[k], resource))
        k++;
    *ask = (struct claim_ask){
        .name = arena_printf(x->arena, "container-%zu-request-%zu", container, k),
        .class_name = arena_strdup(x->arena, extended_class(x->snapshot, resource)->name),
        .mode = MODE_EXACT_COUNT,
        .mode_text = "ExactCount",
        .count = count,
    };
    x->requests[x->n_requests] = (struct claim_request){.name = ask->name, .asks = ask, .n_asks = 1};
    x->counts[x->n_requests] = count;
    x->owners[x->n_requests] = container;
    x->resources[x->n_requests] = resource;
    return x->n_requests++;
}

static void add_mapping(struct extended *x, size_t container, const char *resource, size_t request)
{
    if (x->n_mappings < x->max_mappings)
        x->mappings[x->n_mappings++] =
            (struct extended_mapping){container, arena_strdup(x->arena, resource), x->requests[request].name};
}

struct init_need { /* of an ordinary init container beyond what it may reuse */
    size_t container;
    int64_t more;
};

/* What an init container can reuse of the long-lived ones that start after it; maps what it reuses. */
static int64_t reuse(struct extended *x, size_t container, const char *resource, size_t first, int64_t need)
{
    int64_t sum = 0;
    size_t end = x->n_requests;

    for (size_t i = first; i < end && sum < need; i++) {
        if (x->owners[i] < container)
            continue;
        sum += x->counts[i];
        add_mapping(x, container, resource, i);
    }
    return need > sum ? need - sum : 0;
}

static void add_resource(struct extended *x, const char *resource)
{
    struct init_need needs[MAX_COUNTED];
    size_t n_needs = 0, first = x->n_requests, largest = 0, request;

    for (size_t i = 0; i < x->n_containers; i++) {
        int64_t count = x->containers[i].is_short ? 0 : amount_of(x, x->containers[i].container, resource);

        if (count > 0)
            add_mapping(x, i, resource, add_request(x, i, resource, count));
    }
    for (size_t i = 0; i < x->n_containers; i++) {
        int64_t count = x->containers[i].is_short ? amount_of(x, x->containers[i].container, resource) : 0;
        int64_t more = count > 0 ? reuse(x, i, resource, first, count) : 0;

        if (more > 0)
            needs[n_needs++] = (struct init_need){i, more};
    }
    if (!n_needs)
        return;
    for (size_t i = 1; i < n_needs; i++)
        if (needs[i].more > needs[largest].more)
            largest = i;
    request = add_request(x, needs[largest].container, resource, needs[largest].more);
    for (size_t i = 0; i < n_needs; i++)
        add_mapping(x, needs[i].container, resource, request);
}

static int by_request_name(const void *a, const void *b)
{
    return strcmp(((const struct claim_request *)a)->name, ((const struct claim_request *)b)->name);
}

static struct digest request_digest(const struct claim *claim)
{
    struct digest digest = {0};

    digest_text(&digest, CLAIM_NAME, strlen(CLAIM_NAME));
    for (size_t i = 0; i < claim->n_requests; i++) {
        const struct claim_ask *ask = &claim->requests[i].asks[0];

        digest_text(&digest, ask->name, strlen(ask->name));
        digest_text(&digest, ask->class_name, strlen(ask->class_name));
        digest_add(&digest, (uint64_t)ask->count);
    }
    return digest;
}

void extended_claim(const struct snapshot *snapshot, const struct node *node, const json_t *pod_spec,
                    struct arena *arena, struct claim **out, const struct extended_mapping **out_mappings,
                    size_t *out_n_mappings)
{
    struct extended x = {.snapshot = snapshot, .node = node, .arena = arena};
    const char *names[MAX_COUNTED];
    size_t n_names;
    struct claim *claim;

    *out = NULL;
    *out_n_mappings = 0;
    if (!feature_on(snapshot_features(snapshot), FEATURE_EXTENDED_RESOURCES))
        return;
    list_containers(&x, pod_spec, "initContainers", true);
    list_containers(&x, pod_spec, "containers", false);
    n_names = backed_resources(&x, names, MAX_COUNTED);
    if (!n_names)
        return;
    x.max_requests = n_names * (x.n_containers + 1);
    x.max_mappings = n_names * x.n_containers * (x.n_containers + 1);
    x.requests = arena_array(arena, struct claim_request, x.max_requests);
    x.counts = arena_array(arena, int64_t, x.max_requests);
    x.owners = arena_array(arena, size_t, x.max_requests);
    x.resources = arena_array(arena, const char *, x.max_requests);
    x.mappings = arena_array(arena, struct extended_mapping, x.max_mappings + 1);
    for (size_t i = 0; i < n_names; i++)
        add_resource(&x, names[i]);
    if (!x.n_requests)
        return;
    qsort(x.requests, x.n_requests, sizeof(*x.requests), by_request_name);
    claim = arena_new(arena, struct claim);
    claim->ns = "";
    claim->name = CLAIM_NAME;
    claim->requests = x.requests;
    claim->n_requests = x.n_requests;
    claim->digest = request_digest(claim);
    *out = claim;
    *out_mappings = x.mappings;
    *out_n_mappings = x.n_mappings;
}
