#include "queued/admission/needs.h"

#include <string.h>

#include "allocator/gang.h"
#include "allocator/nodecheck.h"

#include "allocator/base/banned.h"

#define DEVICES_OF_ALL 32 /* what an allocation may hold at most: so much a request with mode All counts */

static struct need *add_need(struct needs *needs, size_t n)
{
    if (needs->n == needs->cap) {
        struct need *more = arena_array(needs->arena, struct need, needs->cap * 2 + 8);

        if (needs->n)
            memcpy(more, needs->items, needs->n * sizeof(*more));
        needs->items = more;
        needs->cap = needs->cap * 2 + 8;
    }
    needs->items[needs->n] = (struct need){.n = n};
    return &needs->items[needs->n++];
}

/* ---- amounts of one object ---- */

struct amounts {
    struct arena *arena;
    struct need_amount *items;
    size_t n, cap;
};

static void add_amount(struct amounts *amounts, const char *resource, const struct quantity *amount)
{
    for (size_t i = 0; i < amounts->n; i++)
        if (strcmp(amounts->items[i].resource, resource) == 0) {
            amounts->items[i].amount = quantity_add(&amounts->items[i].amount, amount, amounts->arena);
            return;
        }
    if (amounts->n == amounts->cap) {
        struct need_amount *more = arena_array(amounts->arena, struct need_amount, amounts->cap * 2 + 8);

        if (amounts->n)
            memcpy(more, amounts->items, amounts->n * sizeof(*more));
        amounts->items = more;
        amounts->cap = amounts->cap * 2 + 8;
    }
    amounts->items[amounts->n++] = (struct need_amount){resource, *amount};
}

static void add_number(struct amounts *amounts, const char *resource, int64_t number)
{
    struct quantity amount = quantity_of_int(number);

    if (number)
        add_amount(amounts, resource, &amount);
}

static void keep_amounts(struct need *need, const struct amounts *amounts)
{
    need->amounts = amounts->items;
    need->n_amounts = amounts->n;
}

/* ---- pods ---- */

static bool is_basic(const char *resource)
{
    return strcmp(resource, "cpu") == 0 || strcmp(resource, "memory") == 0 ||
           strcmp(resource, "ephemeral-storage") == 0;
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Basic resources and huge pages are known by two names each, extended resources as requests only. */
static void add_request(void *ctx, const char *resource, const struct quantity *amount)
{
    struct amounts *amounts = ctx;
    bool has_short_name = is_basic(resource) || has_prefix(resource, "hugepages-");

    if (has_short_name)
        add_amount(amounts, resource, amount);
    if (has_short_name || strchr(resource, '/'))
        add_amount(amounts, arena_printf(amounts->arena, "requests.%s", resource), amount);
}

static void add_limit(void *ctx, const char *resource, const struct quantity *amount)
{
    struct amounts *amounts = ctx;

    if (is_basic(resource))
        add_amount(amounts, arena_printf(amounts->arena, "limits.%s", resource), amount);
}

static bool asks_for(const struct amounts *amounts, const char *resource)
{
    for (size_t i = 0; i < amounts->n; i++)
        if (strcmp(amounts->items[i].resource, resource) == 0)
            return quantity_sign(&amounts->items[i].amount) > 0;
    return false;
}

/* What cannot be read counts as nothing: the gang search refuses such a pod anyway. */
static void add_pods(struct needs *needs, const json_t *pod, size_t n)
{
    const json_t *spec = json_object_get(pod, "spec");
    const char *class = json_string_value(json_object_get(spec, "priorityClassName"));
    struct amounts amounts = {.arena = needs->arena};
    struct need *need = add_need(needs, n);

    if (pod_resources_each(pod, false, needs->arena, add_request, &amounts, NULL) < 0 ||
        pod_resources_each(pod, true, needs->arena, add_limit, &amounts, NULL) < 0)
        amounts.n = 0;
    need->is_pod = true;
    need->is_terminating = json_is_integer(json_object_get(spec, "activeDeadlineSeconds"));
    need->is_best_effort = !asks_for(&amounts, "cpu") && !asks_for(&amounts, "memory");
    need->priority_class = class && *class ? class : needs->default_priority_class;
    add_number(&amounts, "pods", 1);
    add_number(&amounts, "count/pods", 1);
    keep_amounts(need, &amounts);
}

/* ---- claims ---- */

/* The alternative of this request that was chosen, "" for an exact request, NULL when there is none. */
static const char *chosen_of(const struct allocation *allocation, const char *request)
{
    size_t len = strlen(request);

    for (size_t i = 0; allocation && i < allocation->n_results; i++) {
        const char *name = allocation->results[i].request;

        if (strncmp(name, request, len) == 0 && (name[len] == '\0' || name[len] == '/'))
            return name[len] == '/' ? name + len + 1 : "";
    }
    return NULL;
}

/* `ask`: an exact request, an alternative, or a request of the old flat shape. */
static int64_t n_devices_of(const json_t *ask)
{
    const char *mode = json_string_value(json_object_get(ask, "allocationMode"));
    const json_t *count = json_object_get(ask, "count");

    if (mode && strcmp(mode, "All") == 0)
        return DEVICES_OF_ALL;
    return json_is_integer(count) ? json_integer_value(count) : 1;
}

static void add_devices(struct amounts *amounts, const json_t *ask)
{
    const char *class = json_string_value(json_object_get(ask, "deviceClassName"));

    if (class)
        add_number(amounts, arena_printf(amounts->arena, "%s.deviceclass.resource.k8s.io/devices", class),
                   n_devices_of(ask));
}

static void add_request_devices(struct amounts *amounts, const json_t *request, const struct allocation *allocation)
{
    const json_t *exactly = json_object_get(request, "exactly"), *alternatives, *alternative;
    const char *name = json_string_value(json_object_get(request, "name"));
    const char *chosen = name ? chosen_of(allocation, name) : NULL;
    size_t i;

    alternatives = json_object_get(request, "firstAvailable");
    if (json_array_size(alternatives) == 0) {
        add_devices(amounts, json_is_object(exactly) ? exactly : request);
        return;
    }
    json_array_foreach (alternatives, i, alternative) {
        const char *its = json_string_value(json_object_get(alternative, "name"));

        if (chosen && its && strcmp(its, chosen) == 0)
            add_devices(amounts, alternative);
    }
}

/* `spec`: a ResourceClaim's. */
static void add_claim(struct needs *needs, const json_t *spec, const struct allocation *allocation)
{
    struct amounts amounts = {.arena = needs->arena};
    const json_t *request;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(spec, "devices"), "requests"), i, request)
        add_request_devices(&amounts, request, allocation);
    add_number(&amounts, "count/resourceclaims.resource.k8s.io", 1);
    keep_amounts(add_need(needs, 1), &amounts);
}

/* ---- other objects ---- */

static const struct counted {
    const char *kind, *count, *short_name;
} counted[] = {
    {"ConfigMap", "count/configmaps", "configmaps"},
    {"Service", "count/services", "services"},
    {"PodGroup", "count/podgroups.scheduling.k8s.io", NULL},
};

static void add_counted(struct needs *needs, const char *kind)
{
    struct amounts amounts = {.arena = needs->arena};

    for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
        if (strcmp(counted[i].kind, kind) == 0) {
            add_number(&amounts, counted[i].count, 1);
            if (counted[i].short_name)
                add_number(&amounts, counted[i].short_name, 1);
            keep_amounts(add_need(needs, 1), &amounts);
        }
}

/* ---- the whole ---- */

static const json_t *claim_spec_of(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec"), *inner = json_object_get(spec, "spec");

    return inner ? inner : spec; /* of a template, of a claim */
}

static void add_unplaced_claims(struct needs *needs, const struct gang_spec *question)
{
    for (size_t g = 0; g < question->n_groups; g++)
        for (size_t c = 0; c < question->groups[g].n_claims; c++)
            if (question->groups[g].claims[c].source == GANG_CLAIM_OWN) {
                add_claim(needs, claim_spec_of(question->groups[g].claims[c].object), NULL);
                needs->items[needs->n - 1].n = question->groups[g].n_members;
            }
    for (size_t i = 0; i < question->n_shared; i++)
        add_claim(needs, claim_spec_of(question->shared[i]), NULL);
}

/* The claim that kube-scheduler makes for extended resources is a claim too; its devices are counted with the pod. */
static void add_placed_claims(struct needs *needs, const struct gang_spec *question, const struct placement *placement)
{
    for (size_t m = 0; m < placement->n_members; m++) {
        const struct placed_member *member = &placement->members[m];

        for (size_t c = 0; c < member->n_claims; c++) {
            if (member->claims[c].source == GANG_CLAIM_OWN)
                add_claim(needs, claim_spec_of(question->groups[member->group].claims[c].object),
                          &member->claims[c].allocation);
            else if (member->claims[c].source == GANG_CLAIM_EXTENDED)
                add_claim(needs, NULL, NULL);
        }
    }
    for (size_t i = 0; i < placement->n_shared; i++)
        add_claim(needs, claim_spec_of(question->shared[i]), &placement->shared[i]);
}

void needs_add_attempt(struct needs *needs, const struct gang_spec *question, const struct placement *placement,
                       bool has_pod_group)
{
    add_counted(needs, "ConfigMap");
    add_counted(needs, "Service");
    if (has_pod_group && !(placement && placement->needs_turns))
        add_counted(needs, "PodGroup");
    for (size_t g = 0; g < question->n_groups; g++)
        add_pods(needs, question->groups[g].pod, question->groups[g].n_members);
    if (placement)
        add_placed_claims(needs, question, placement);
    else
        add_unplaced_claims(needs, question);
}

void needs_add_object(struct needs *needs, const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));

    if (!kind)
        return;
    if (strcmp(kind, "Pod") == 0)
        add_pods(needs, object, 1);
    else if (strcmp(kind, "ResourceClaim") == 0)
        add_claim(needs, json_object_get(object, "spec"), NULL);
    else
        add_counted(needs, kind);
}
