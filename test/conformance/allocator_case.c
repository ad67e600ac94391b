#include "test/conformance/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/model.h"

#include "allocator/base/banned.h"

/* ---- the cluster of a case ---- */

static int put_all(struct snapshot_builder *builder, const json_t *objects, struct error *err)
{
    const json_t *object;
    size_t i;

    json_array_foreach(objects, i, object)
    {
        if (snapshot_builder_put(builder, object, err) < 0)
            return -1;
    }
    return 0;
}

/* A claim that holds one device, as `inUse` says: with a share id or consumed capacity it is a share. */
static json_t *holding_claim(const json_t *entry, size_t number)
{
    json_t *result = json_deep_copy(entry);
    char name[64];

    json_object_set_new(result, "request", json_string("held"));
    if (json_object_get(entry, "consumedCapacity") && !json_object_get(entry, "shareID")) {
        snprintf(name, sizeof(name), "share-%zu", number);
        json_object_set_new(result, "shareID", json_string(name));
    }
    snprintf(name, sizeof(name), "in-use-%zu", number);
    return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:{s:{s:[o]}}}}", "apiVersion", "resource.k8s.io/v1", "kind",
                     "ResourceClaim", "metadata", "name", name, "namespace", "in-use", "status", "allocation",
                     "devices", "results", result);
}

static int put_in_use(struct snapshot_builder *builder, const json_t *entries, struct error *err)
{
    const json_t *entry;
    size_t i;
    int result = 0;

    json_array_foreach(entries, i, entry)
    {
        json_t *claim = holding_claim(entry, i);

        if (result == 0)
            result = snapshot_builder_put(builder, claim, err);
        json_decref(claim);
    }
    return result;
}

static int switch_all(struct features *features, const json_t *names, bool on, struct error *err)
{
    const json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
    {
        if (features_switch(features, json_string_value(name), on, err) < 0)
            return -1;
    }
    return 0;
}

/* The features that the released program knows too; extended resources are no part of the allocator. */
static int case_features(const json_t *object, const struct case_options *options, struct features *out,
                         struct error *err)
{
    int release = options->release ? options->release : 37;

    *out = (struct features){.release = release};
    if (options->features == CASE_FEATURES_DEFAULT)
        *out = features_default(release);
    if (options->features == CASE_FEATURES_ALL)
        out->on = BIT(FEATURE_COUNT) - 1;
    if (switch_all(out, json_object_get(object, "features"), true, err) < 0)
        return -1;
    return options->features == CASE_FEATURES_EXACT
               ? 0
               : switch_all(out, json_object_get(object, "featuresOff"), false, err);
}

/* The default features say nothing about a case that needs others. */
static bool is_within(const json_t *object, const struct features *features)
{
    struct features wanted = {.release = features->release};

    return switch_all(&wanted, json_object_get(object, "features"), true, NULL) == 0 && !(wanted.on & ~features->on);
}

static struct snapshot *case_cluster(const json_t *object, const struct features *features, struct error *err)
{
    struct snapshot_builder *builder = snapshot_builder_new(features, false);
    struct snapshot *snapshot = NULL;

    if (snapshot_builder_put(builder, json_object_get(object, "node"), err) == 0 &&
        put_all(builder, json_object_get(object, "deviceClasses"), err) == 0 &&
        put_all(builder, json_object_get(object, "resourceSlices"), err) == 0 &&
        put_all(builder, json_object_get(object, "deviceTaintRules"), err) == 0 &&
        put_in_use(builder, json_object_get(object, "inUse"), err) == 0)
        snapshot = snapshot_builder_build(builder);
    snapshot_builder_free(builder);
    return snapshot;
}

/* ---- the answer ---- */

static const char *verdict_text(const struct prediction *prediction)
{
    switch (prediction->verdict) {
    case PREDICT_ALLOCATED:
        return prediction->n_allocations ? "allocated" : "none";
    case PREDICT_NO_FIT:
    case PREDICT_TIMEOUT:
        return "none";
    case PREDICT_NODE_ERROR:
    case PREDICT_FATAL:
        return "error";
    }
    return "?";
}

static int case_predict(const json_t *object, const struct case_options *options, const struct snapshot *snapshot,
                        const struct features *features, struct arena *arena, struct prediction *out, struct error *err)
{
    const json_t *list = json_object_get(object, "claims");
    const char *name =
        json_string_value(json_object_get(json_object_get(json_object_get(object, "node"), "metadata"), "name"));
    const struct claim **claims = arena_array(arena, const struct claim *, json_array_size(list) + 1);
    struct search_options plain = {.plain = true};
    struct shape *shape;

    for (size_t i = 0; i < json_array_size(list); i++) {
        struct claim *claim;

        if (claim_parse(json_array_get(list, i), features, false, arena, &claim, err) < 0)
            return -1;
        claims[i] = claim;
    }
    if (!options->plain) {
        predict(snapshot, name, claims, json_array_size(list), 0, arena, out);
        return 0;
    }
    shape = shape_new(snapshot, claims, json_array_size(list));
    predict_shape(shape, NULL, snapshot_find_node(snapshot, name), &plain, arena, out);
    out->message = out->message ? arena_strdup(arena, out->message) : NULL;
    shape_free(shape);
    return 0;
}

/* ---- comparing ---- */

static bool is_blank(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

static bool same_quantity(const json_t *a, const json_t *b)
{
    struct arena arena = {0};
    struct quantity x, y;
    bool same = json_is_string(a) && json_is_string(b) &&
                quantity_parse(str_of(json_string_value(a)), &arena, &x, NULL) == 0 &&
                quantity_parse(str_of(json_string_value(b)), &arena, &y, NULL) == 0 && quantity_cmp(&x, &y) == 0;

    arena_release(&arena);
    return same;
}

static bool same_amounts(const json_t *a, const json_t *b)
{
    const char *key;
    const json_t *value;

    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)a, key, value)
    {
        if (!same_quantity(value, json_object_get(b, key)))
            return false;
    }
    return true;
}

static bool same_field(const json_t *want, const json_t *got, const char *key)
{
    const json_t *a = json_object_get(want, key), *b = json_object_get(got, key);

    if (is_blank(a) || is_blank(b))
        return is_blank(a) && is_blank(b);
    return json_equal(a, b);
}

static bool same_result(const json_t *want, const json_t *got)
{
    static const char *const fields[] = {"request",
                                         "driver",
                                         "pool",
                                         "device",
                                         "adminAccess",
                                         "tolerations",
                                         "bindingConditions",
                                         "bindingFailureConditions",
                                         "skipNodeOperations"};
    const char *share = json_string_value(json_object_get(want, "shareID"));

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (!same_field(want, got, fields[i]))
            return false;
    if ((share && strcmp(share, "any") == 0) != (json_object_get(got, "shareID") != NULL))
        return false;
    return same_amounts(json_object_get(want, "consumedCapacity"), json_object_get(got, "consumedCapacity"));
}

/* Whether each item of one list has an equal partner in the other; `same` must be an equivalence. */
static bool same_bag(const json_t *a, const json_t *b, bool (*same)(const json_t *x, const json_t *y))
{
    size_t n = json_array_size(a);
    bool *used = calloc(n + 1, sizeof(*used)), all = n == json_array_size(b);

    for (size_t i = 0; i < n && all; i++) {
        size_t k = 0;

        while (k < n && (used[k] || !same(json_array_get(a, i), json_array_get(b, k))))
            k++;
        all = k < n;
        if (all)
            used[k] = true;
    }
    free(used);
    return all;
}

static bool same_text(const json_t *x, const json_t *y)
{
    return json_equal(x, y);
}

static bool same_requirement(const json_t *x, const json_t *y)
{
    return json_equal(json_object_get(x, "key"), json_object_get(y, "key")) &&
           json_equal(json_object_get(x, "operator"), json_object_get(y, "operator")) &&
           same_bag(json_object_get(x, "values"), json_object_get(y, "values"), same_text);
}

static bool same_term(const json_t *x, const json_t *y)
{
    return same_bag(json_object_get(x, "matchExpressions"), json_object_get(y, "matchExpressions"), same_requirement) &&
           same_bag(json_object_get(x, "matchFields"), json_object_get(y, "matchFields"), same_requirement);
}

static bool same_selector(const json_t *want, const json_t *got)
{
    if (is_blank(want) || is_blank(got))
        return is_blank(want) && is_blank(got);
    return same_bag(json_object_get(want, "nodeSelectorTerms"), json_object_get(got, "nodeSelectorTerms"), same_term);
}

static bool same_config_entry(const json_t *want, const json_t *got)
{
    return same_field(want, got, "source") && same_field(want, got, "requests") && same_field(want, got, "opaque");
}

static bool same_config(const json_t *want, const json_t *got)
{
    if (json_array_size(want) != json_array_size(got))
        return false;
    for (size_t i = 0; i < json_array_size(want); i++)
        if (!same_config_entry(json_array_get(want, i), json_array_get(got, i)))
            return false;
    return true;
}

static bool same_results(const json_t *want, const json_t *got, bool exact)
{
    if (!exact)
        return same_bag(want, got, same_result);
    if (json_array_size(want) != json_array_size(got))
        return false;
    for (size_t i = 0; i < json_array_size(want); i++)
        if (!same_result(json_array_get(want, i), json_array_get(got, i)))
            return false;
    return true;
}

static void add_json(struct buf *why, const json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    buf_adds(why, text ? text : "nothing");
    free(text);
}

static bool differ(struct buf *why, size_t claim, const char *what, const json_t *want, const json_t *got)
{
    buf_addf(why, "claim #%zu: %s: want ", claim, what);
    add_json(why, want);
    buf_adds(why, ", got ");
    add_json(why, got);
    return false;
}

static bool compare_allocation(const json_t *want, const json_t *got, bool exact, size_t claim, struct buf *why)
{
    const json_t *devices = json_object_get(got, "devices");

    if (!same_results(json_object_get(want, "results"), json_object_get(devices, "results"), exact))
        return differ(why, claim, "results", json_object_get(want, "results"), json_object_get(devices, "results"));
    if (!same_selector(json_object_get(want, "nodeSelector"), json_object_get(got, "nodeSelector")))
        return differ(why, claim, "nodeSelector", json_object_get(want, "nodeSelector"),
                      json_object_get(got, "nodeSelector"));
    if (!same_config(json_object_get(want, "config"), json_object_get(devices, "config")))
        return differ(why, claim, "config", json_object_get(want, "config"), json_object_get(devices, "config"));
    return true;
}

static bool compare(const json_t *expect, const struct prediction *prediction, struct buf *why)
{
    const char *want = json_string_value(json_object_get(expect, "result")), *got = verdict_text(prediction);
    const char *term = json_string_value(json_object_get(expect, "errorContains"));
    const char *order = json_string_value(json_object_get(expect, "deviceOrder"));
    const json_t *allocations = json_object_get(expect, "allocations");
    bool same = true;

    if (!want || strcmp(want, got) != 0) {
        buf_addf(why, "result: want %s, got %s%s%s", want ? want : "?", got, prediction->message ? ": " : "",
                 prediction->message ? prediction->message : "");
        return false;
    }
    if (strcmp(want, "error") == 0 && term && !strcasestr(prediction->message, term)) {
        buf_addf(why, "error: want \"%s\" in \"%s\"", term, prediction->message);
        return false;
    }
    if (strcmp(want, "allocated") != 0)
        return true;
    if (json_array_size(allocations) != prediction->n_allocations) {
        buf_addf(why, "allocations: want %zu, got %zu", json_array_size(allocations), prediction->n_allocations);
        return false;
    }
    for (size_t i = 0; i < prediction->n_allocations && same; i++) {
        json_t *json = allocation_to_json(&prediction->allocations[i], NULL, NULL);

        same = compare_allocation(json_array_get(allocations, i), json, order && strcmp(order, "exact") == 0, i, why);
        json_decref(json);
    }
    return same;
}

enum case_result case_run(const json_t *object, const struct case_options *options, struct buf *why)
{
    enum case_result result = CASE_FAILED;
    struct prediction prediction = {0};
    struct features features;
    struct snapshot *snapshot;
    struct error err = {0};
    struct arena arena = {0};

    if (case_features(object, options, &features, &err) < 0) {
        buf_addf(why, "%s", err.text);
        return CASE_FAILED;
    }
    if (options->features == CASE_FEATURES_DEFAULT) {
        struct features standard = features_default(features.release);

        if (!is_within(object, &standard)) {
            buf_adds(why, "needs features that are off by default");
            return CASE_SKIPPED;
        }
    }
    snapshot = case_cluster(object, &features, &err);
    if (!snapshot || case_predict(object, options, snapshot, &features, &arena, &prediction, &err) < 0)
        buf_addf(why, "load: %s: %s", err.field, err.text);
    else
        result = compare(json_object_get(object, "expect"), &prediction, why) ? CASE_PASSED : CASE_FAILED;
    snapshot_unref(snapshot);
    arena_release(&arena);
    return result;
}
