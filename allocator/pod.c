#include "allocator/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

#define MAX_RULES 4096

static const char required_key[] = "requiredDuringSchedulingIgnoredDuringExecution";

static const char *copied(struct arena *arena, const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && *text ? arena_strdup(arena, text) : otherwise;
}

/* ---- where it may go ---- */

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static int read_node_selector(const json_t *spec, struct arena *arena, struct pod_rules *out, struct error *err)
{
    json_t *selector = json_object_get(spec, "nodeSelector");
    struct label *labels;
    const char *key;
    json_t *value;
    size_t n = 0;

    if (json_object_size(selector) > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d labels in nodeSelector", MAX_RULES);
    labels = arena_array(arena, struct label, json_object_size(selector));
    json_object_foreach(selector, key, value)
    {
        if (!json_is_string(value))
            return error_field(err, "nodeSelector", "the value of %s must be a string", key);
        labels[n++] = (struct label){arena_strdup(arena, key), arena_strdup(arena, json_string_value(value))};
    }
    if (n > 1)
        qsort(labels, n, sizeof(*labels), compare_labels);
    out->selector = labels;
    out->n_selector = n;
    return 0;
}

static int read_affinity(const json_t *spec, struct arena *arena, struct pod_rules *out, struct error *err)
{
    const json_t *affinity = json_object_get(json_object_get(spec, "affinity"), "nodeAffinity");
    const json_t *required = json_object_get(affinity, required_key);

    if (!json_is_object(required))
        return 0;
    out->affinity = node_selector_parse(required, arena);
    if (out->affinity->problem)
        return error_field(err, "affinity.nodeAffinity", "%s: %s", required_key, out->affinity->problem);
    return 0;
}

static const struct {
    const char *name;
    enum toleration_operator op;
} toleration_operators[] = {
    {"Equal", TOLERATE_EQUAL}, {"Exists", TOLERATE_EXISTS}, {"Lt", TOLERATE_LT}, {"Gt", TOLERATE_GT}};

static struct toleration read_toleration(const json_t *json, struct arena *arena)
{
    struct toleration out = {.key = copied(arena, json, "key", ""),
                             .value = copied(arena, json, "value", ""),
                             .op = TOLERATE_OTHER,
                             .op_text = copied(arena, json, "operator", "Equal"),
                             .effect_text = copied(arena, json, "effect", "")};

    for (size_t i = 0; i < ARRAY_SIZE(toleration_operators); i++)
        if (strcmp(out.op_text, toleration_operators[i].name) == 0)
            out.op = toleration_operators[i].op;
    return out;
}

static int read_tolerations(const json_t *spec, struct arena *arena, struct pod_rules *out, struct error *err)
{
    const json_t *list = json_object_get(spec, "tolerations");
    struct toleration *tolerations;

    if (json_array_size(list) > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d tolerations", MAX_RULES);
    tolerations = arena_array(arena, struct toleration, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++)
        tolerations[i] = read_toleration(json_array_get(list, i), arena);
    out->tolerations = tolerations;
    out->n_tolerations = json_array_size(list);
    return 0;
}

/* ---- what is not simulated ---- */

static int refuse_required_affinity(const json_t *spec, const char *kind, const char *word, struct error *err)
{
    char field[128];

    if (json_array_size(json_object_get(json_object_get(json_object_get(spec, "affinity"), kind), required_key)) == 0)
        return 0;
    snprintf(field, sizeof(field), "affinity.%s.%s", kind, required_key);
    return error_field(err, field,
                       "required %s between pods is not simulated for a gang; use a gang constraint or a preference",
                       word);
}

static int refuse_hard_spread(const json_t *spec, struct error *err)
{
    const json_t *spread = json_object_get(spec, "topologySpreadConstraints");

    for (size_t i = 0; i < json_array_size(spread); i++) {
        const char *action = json_string_value(json_object_get(json_array_get(spread, i), "whenUnsatisfiable"));
        char field[64];

        if (action && strcmp(action, "ScheduleAnyway") == 0)
            continue;
        snprintf(field, sizeof(field), "topologySpreadConstraints[%zu]", i);
        return error_field(err, field,
                           "a topology spread that must hold is not simulated for a gang; use whenUnsatisfiable: "
                           "ScheduleAnyway");
    }
    return 0;
}

static int read_spec(const json_t *spec, struct symbols *symbols, struct arena *arena, struct pod_rules *out,
                     struct error *err)
{
    const char *node = json_string_value(json_object_get(spec, "nodeName"));

    if (refuse_required_affinity(spec, "podAffinity", "affinity", err) < 0 ||
        refuse_required_affinity(spec, "podAntiAffinity", "anti-affinity", err) < 0 ||
        refuse_hard_spread(spec, err) < 0)
        return -1;
    out->node_name = node && *node ? arena_strdup(arena, node) : NULL;
    if (read_node_selector(spec, arena, out, err) < 0 || read_affinity(spec, arena, out, err) < 0 ||
        read_tolerations(spec, arena, out, err) < 0)
        return -1;
    return pod_demand_parse(spec, symbols, arena, &out->demand, err);
}

int pod_rules_parse(const json_t *pod, struct symbols *symbols, struct arena *arena, struct pod_rules *out,
                    struct error *err)
{
    const json_t *spec = json_object_get(pod, "spec");

    *out = (struct pod_rules){0};
    if (!json_is_object(spec))
        return error_field(err, "spec", "must be an object");
    if (read_spec(spec, symbols, arena, out, err) < 0)
        return error_in(err, "spec");
    return 0;
}
