#include "queued/admission/namespace.h"

#include <string.h>

#include "allocator/base/str.h"
#include "queued/admission/needs.h"

#include "allocator/base/banned.h"

/* ---- reading ---- */

static bool read_amount(const json_t *value, struct arena *arena, struct quantity *out)
{
    if (json_is_integer(value)) {
        *out = quantity_of_int(json_integer_value(value));
        return true;
    }
    return json_is_string(value) && quantity_parse(str_of(json_string_value(value)), arena, out, NULL) == 0;
}

static void read_limits(const json_t *status, struct arena *arena, struct namespace_quota *out)
{
    const json_t *hard = json_object_get(status, "hard"), *used = json_object_get(status, "used"), *value;
    const char *resource;

    out->limits = arena_array(arena, struct quota_limit, json_object_size(hard));
    json_object_foreach ((json_t *)(uintptr_t)hard, resource, value) {
        struct quota_limit *limit = &out->limits[out->n_limits];

        if (!read_amount(value, arena, &limit->hard) ||
            !read_amount(json_object_get(used, resource), arena, &limit->used))
            continue;
        limit->resource = arena_strdup(arena, resource);
        out->n_limits++;
    }
}

static const char *copied(const json_t *text, struct arena *arena, const char *otherwise)
{
    return json_is_string(text) ? arena_strdup(arena, json_string_value(text)) : otherwise;
}

static void read_values(const json_t *values, struct arena *arena, struct quota_scope *scope)
{
    const char **out = arena_array(arena, const char *, json_array_size(values));
    const json_t *value;
    size_t i;

    json_array_foreach (values, i, value)
        out[i] = copied(value, arena, "");
    scope->values = out;
    scope->n_values = json_array_size(values);
}

static void read_scopes(const json_t *spec, struct arena *arena, struct namespace_quota *out)
{
    const json_t *names = json_object_get(spec, "scopes"), *name, *term;
    const json_t *terms = json_object_get(json_object_get(spec, "scopeSelector"), "matchExpressions");
    struct quota_scope *scopes =
        arena_array(arena, struct quota_scope, json_array_size(names) + json_array_size(terms));
    size_t i;

    json_array_foreach (names, i, name)
        scopes[out->n_scopes++] = (struct quota_scope){.name = copied(name, arena, ""), .op = "Exists"};
    json_array_foreach (terms, i, term) {
        struct quota_scope *scope = &scopes[out->n_scopes++];

        scope->name = copied(json_object_get(term, "scopeName"), arena, "");
        scope->op = copied(json_object_get(term, "operator"), arena, "");
        read_values(json_object_get(term, "values"), arena, scope);
    }
    out->scopes = scopes;
}

int namespace_quota_parse(const json_t *object, struct arena *arena, struct namespace_quota *out, struct error *err)
{
    const json_t *metadata = json_object_get(object, "metadata");

    *out = (struct namespace_quota){
        .ns = copied(json_object_get(metadata, "namespace"), arena, NULL),
        .name = copied(json_object_get(metadata, "name"), arena, NULL),
    };
    if (!out->ns || !out->name)
        return error_field(err, out->ns ? "metadata.name" : "metadata.namespace", "is required");
    read_scopes(json_object_get(object, "spec"), arena, out);
    read_limits(json_object_get(object, "status"), arena, out);
    return 0;
}

int namespace_quota_cmp(const void *a, const void *b)
{
    const struct namespace_quota *x = a, *y = b;
    int order = strcmp(x->ns, y->ns);

    return order ? order : strcmp(x->name, y->name);
}

/* ---- changes ---- */

static const struct quota_limit *find_limit(const struct namespace_quota *quota, const char *resource)
{
    for (size_t i = 0; i < quota->n_limits; i++)
        if (strcmp(quota->limits[i].resource, resource) == 0)
            return &quota->limits[i];
    return NULL;
}

static bool is_any_looser(const struct namespace_quota *before, const struct namespace_quota *after)
{
    for (size_t i = 0; i < before->n_limits; i++) {
        const struct quota_limit *old = &before->limits[i], *now = find_limit(after, old->resource);

        if (!now || quantity_cmp(&now->hard, &old->hard) > 0 || quantity_cmp(&now->used, &old->used) < 0)
            return true;
    }
    return false;
}

bool namespace_quota_is_looser(const json_t *before, const json_t *after)
{
    struct arena arena = {0};
    struct namespace_quota old, now;
    const json_t *old_spec = json_object_get(before, "spec"), *now_spec = json_object_get(after, "spec");
    bool is_looser = (old_spec != now_spec && !json_equal(old_spec, now_spec)) || /* of none twice it says false */
                     namespace_quota_parse(before, &arena, &old, NULL) < 0 ||
                     namespace_quota_parse(after, &arena, &now, NULL) < 0 || is_any_looser(&old, &now);

    arena_release(&arena);
    return is_looser;
}

/* ---- scopes ---- */

static bool in_values(const struct quota_scope *scope, const char *text)
{
    for (size_t i = 0; text && i < scope->n_values; i++)
        if (strcmp(scope->values[i], text) == 0)
            return true;
    return false;
}

static bool is_terminating(const struct quota_scope *scope, const struct need *pod)
{
    (void)scope;
    return pod->is_terminating;
}

static bool is_not_terminating(const struct quota_scope *scope, const struct need *pod)
{
    (void)scope;
    return !pod->is_terminating;
}

static bool is_best_effort(const struct quota_scope *scope, const struct need *pod)
{
    (void)scope;
    return pod->is_best_effort;
}

static bool is_not_best_effort(const struct quota_scope *scope, const struct need *pod)
{
    (void)scope;
    return !pod->is_best_effort;
}

/* A pod without a class is in none of the values. */
static bool is_of_priority(const struct quota_scope *scope, const struct need *pod)
{
    if (strcmp(scope->op, "Exists") == 0)
        return pod->priority_class != NULL;
    if (strcmp(scope->op, "DoesNotExist") == 0)
        return pod->priority_class == NULL;
    if (strcmp(scope->op, "NotIn") == 0)
        return !in_values(scope, pod->priority_class);
    return strcmp(scope->op, "In") == 0 && in_values(scope, pod->priority_class);
}

static const struct {
    const char *name;
    bool (*holds)(const struct quota_scope *scope, const struct need *pod);
} scopes[] = {
    {"Terminating", is_terminating},       {"NotTerminating", is_not_terminating}, {"BestEffort", is_best_effort},
    {"NotBestEffort", is_not_best_effort}, {"PriorityClass", is_of_priority},
};

/* A scope that is not in the table is not decided here, so that the quota is about nothing. */
static bool scope_holds(const struct quota_scope *scope, const struct need *pod)
{
    for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
        if (strcmp(scopes[i].name, scope->name) == 0)
            return scopes[i].holds(scope, pod);
    return false;
}

static bool is_about(const struct namespace_quota *quota, const struct need *need)
{
    for (size_t i = 0; i < quota->n_scopes; i++)
        if (!need->is_pod || !scope_holds(&quota->scopes[i], need))
            return false;
    return true;
}

/* ---- counting ---- */

/* n times the amount, by doubling. */
static struct quantity times(struct quantity amount, size_t n, struct arena *arena)
{
    struct quantity total = quantity_of_int(0);

    for (; n > 0; n /= 2) {
        if (n % 2)
            total = quantity_add(&total, &amount, arena);
        amount = quantity_add(&amount, &amount, arena);
    }
    return total;
}

/* What all needs ask of one resource of the quota. */
static struct quantity asked(const struct namespace_quota *quota, const char *resource, const struct needs *needs)
{
    struct quantity total = quantity_of_int(0);

    for (size_t i = 0; i < needs->n; i++) {
        const struct need *need = &needs->items[i];

        if (!is_about(quota, need))
            continue;
        for (size_t k = 0; k < need->n_amounts; k++)
            if (strcmp(need->amounts[k].resource, resource) == 0) {
                struct quantity more = times(need->amounts[k].amount, need->n, needs->arena);

                total = quantity_add(&total, &more, needs->arena);
            }
    }
    return total;
}

void namespace_quota_use(const struct namespace_quota *quota, struct quantity *used, const struct needs *needs)
{
    for (size_t i = 0; i < quota->n_limits; i++) {
        struct quantity more = asked(quota, quota->limits[i].resource, needs);

        if (quantity_sign(&more) > 0)
            used[i] = quantity_add(&used[i], &more, needs->arena);
    }
}

void namespace_quota_promise(struct namespace_quota *quota, const struct needs *needs)
{
    for (size_t i = 0; i < quota->n_limits; i++) {
        struct quantity more = asked(quota, quota->limits[i].resource, needs);

        if (quantity_sign(&more) > 0)
            quota->limits[i].used = quantity_add(&quota->limits[i].used, &more, needs->arena);
    }
}

const struct quota_limit *namespace_quota_exceeded(const struct namespace_quota *quota, const struct quantity *used,
                                                   const struct needs *needs, struct quantity *out_needed)
{
    for (size_t i = 0; i < quota->n_limits; i++) {
        const struct quota_limit *limit = &quota->limits[i];
        struct quantity needed = asked(quota, limit->resource, needs), sum;

        if (quantity_sign(&needed) <= 0)
            continue;
        sum = quantity_add(used ? &used[i] : &limit->used, &needed, needs->arena);
        if (quantity_cmp(&sum, &limit->hard) <= 0)
            continue;
        *out_needed = needed;
        return limit;
    }
    return NULL;
}
