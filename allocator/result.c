/* From a solution to what would stand in the claims' status (semantics, section 5), and its JSON. */
#include "allocator/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/banned.h"

/* ---- 5.1: results ---- */

static const char *request_name(struct shape *shape, const struct ask *ask, struct arena *arena)
{
    const struct claim_request *request = &shape->claims[ask->claim].claim->requests[ask->request];

    return request->is_list ? arena_printf(arena, "%s/%s", request->name, ask->ask->name) : request->name;
}

static void add_consumed(struct shape *shape, const struct ask *ask, const struct device *device, struct arena *arena,
                         struct device_result *out)
{
    struct consumed_capacity *consumed = arena_array(arena, struct consumed_capacity, device->n_capacities + 1u);
    const struct need_row *row = capacity_row(shape, (size_t)(ask - shape->asks), device);

    if (row->state != CAPACITY_OK)
        return;
    for (size_t i = 0; i < device->n_capacities; i++)
        consumed[i] = (struct consumed_capacity){device->capacities[i].key, quantity_copy(&row->amounts[i], arena)};
    out->consumed = consumed;
    out->n_consumed = device->n_capacities;
}

static bool shows_operations(const struct shape *shape)
{
    return shape->behaviour->variant == VARIANT_EXPERIMENTAL &&
           feature_on(shape->features, FEATURE_OPTIONAL_NODE_OPERATIONS);
}

void pick_describe(const struct shape *shape, const struct bench *bench, const struct pick *pick, struct memo_pick *out)
{
    const struct behaviour *behaviour = shape->behaviour;
    const struct offer *offer = &bench->offers[pick->offer];
    const struct device *device = offer->device;
    const char *name = offer->slice->per_device ? device->node_name : offer->slice->node_name;

    *out = (struct memo_pick){
        .pick = *pick,
        .index = offer->index,
        .device = device->name,
        .slice = offer->slice,
        .pool = offer->view->pool,
        .is_share = device->multi && feature_on(shape->features, FEATURE_CONSUMABLE_CAPACITY),
        .pins = name || (device->binds_to_node && behaviour->binds_to_node),
    };
    out->is_bare = !out->is_share &&
                   !(behaviour->binding_and_status && (device->binding.n || device->binding_failure.n)) &&
                   !shows_operations(shape);
}

/* What else of the device stands in the result. */
static void add_device_fields(struct shape *shape, const struct memo_pick *pick, const struct ask *ask,
                              struct arena *arena, struct device_result *out)
{
    const struct device *device = pick->pool->devices[pick->index].device;

    if (shape->behaviour->binding_and_status) {
        out->binding_conditions = device->binding;
        out->binding_failure_conditions = device->binding_failure;
    }
    if (shows_operations(shape))
        out->skip_node_operations = pick->slice->skip_node_operations;
    if (out->is_share)
        add_consumed(shape, ask, device, arena, out);
}

static void finish_result(struct shape *shape, const struct memo_pick *pick, const struct ask *ask, const char *name,
                          struct arena *arena, struct device_result *out)
{
    *out = (struct device_result){
        .request = name,
        .driver = pick->slice->driver,
        .pool = pick->slice->pool,
        .device = pick->device,
        .admin_access = ask->ask->admin_access,
        .is_share = pick->is_share,
    };
    if (shape->behaviour->copies_tolerations) {
        out->tolerations = ask->ask->tolerations;
        out->n_tolerations = ask->ask->n_tolerations;
    }
    if (!pick->is_bare)
        add_device_fields(shape, pick, ask, arena, out);
}

/* ---- 5.2: config ---- */

struct configuring {
    struct shape *shape;
    const struct claim_shape *claim;
    const size_t *chosen; /* alternative per request */
    struct arena *arena;
    struct config_entry *entries;
    size_t n;
};

static const struct ask *chosen_ask(const struct configuring *c, size_t request)
{
    return &c->shape->asks[c->claim->requests[request].first_ask + c->chosen[request]];
}

static bool has_text(const char *const *items, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (text_is(items[i], text))
            return true;
    return false;
}

/* Entries of the classes, once per class, with the names of all its requests. */
static void add_class_config(struct configuring *c)
{
    for (size_t i = 0; i < c->claim->n_requests; i++) {
        const struct device_class *class;
        const char **names;
        size_t n_names = 0;
        bool seen = false;

        if (!c->claim->requests[i].n_asks)
            continue;
        class = chosen_ask(c, i)->device_class;
        for (size_t k = 0; k < i; k++)
            seen = seen || (c->claim->requests[k].n_asks && chosen_ask(c, k)->device_class == class);
        if (seen || !class->n_config)
            continue;
        names = arena_array(c->arena, const char *, c->claim->n_requests);
        for (size_t k = i; k < c->claim->n_requests; k++)
            if (c->claim->requests[k].n_asks && chosen_ask(c, k)->device_class == class)
                names[n_names++] = request_name(c->shape, chosen_ask(c, k), c->arena);
        for (size_t k = 0; k < class->n_config; k++)
            c->entries[c->n++] = (struct config_entry){true, names, n_names, class->config[k]};
    }
}

/* Whether the names of an entry cover the request: by itself, or by its chosen alternative. */
static bool covers(const struct configuring *c, const char *const *names, size_t n_names, size_t request)
{
    const struct claim_request *r = c->claim->requests[request].request;

    if (has_text(names, n_names, r->name))
        return true;
    return r->is_list && r->n_asks &&
           has_text(names, n_names, request_name(c->shape, chosen_ask(c, request), c->arena));
}

static void add_claim_config(struct configuring *c)
{
    for (size_t i = 0; i < c->claim->claim->n_config; i++) {
        const struct claim_config *config = &c->claim->claim->config[i];
        struct config_entry entry = {false, config->requests, config->n_requests, config->opaque};

        if (!config->n_requests) {
            c->entries[c->n++] = entry;
            continue;
        }
        for (size_t k = 0; k < c->claim->n_requests; k++) {
            if (!covers(c, config->requests, config->n_requests, k))
                continue;
            c->entries[c->n++] = entry;
            if (!c->shape->behaviour->config_per_request)
                break;
        }
    }
}

/* 1.37: an entry for every request is an entry for all. */
static void clear_complete(struct configuring *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct config_entry *entry = &c->entries[i];
        bool all = entry->n_requests > 0;

        for (size_t k = 0; k < c->claim->n_requests && all; k++)
            all = covers(c, entry->requests, entry->n_requests, k);
        if (all)
            entry->n_requests = 0;
    }
}

static void add_config(struct shape *shape, size_t claim, const size_t *chosen, struct arena *arena,
                       struct allocation *out)
{
    struct configuring c = {.shape = shape, .claim = &shape->claims[claim], .chosen = chosen, .arena = arena};
    size_t max = 0;

    for (size_t i = 0; i < c.claim->n_requests; i++)
        if (c.claim->requests[i].n_asks && chosen_ask(&c, i)->device_class)
            max += chosen_ask(&c, i)->device_class->n_config;
    max += c.claim->claim->n_config * (shape->behaviour->config_per_request ? c.claim->n_requests + 1 : 1);
    if (!max)
        return;
    c.entries = arena_array(arena, struct config_entry, max);
    add_class_config(&c);
    add_claim_config(&c);
    if (shape->behaviour->config_clears)
        clear_complete(&c);
    out->config = c.entries;
    out->n_config = c.n;
}

/* ---- 5.3: node selector ---- */

static bool same_requirement(const struct requirement *a, const struct requirement *b)
{
    if (!text_is(a->key, b->key) || a->op != b->op)
        return false;
    for (size_t i = 0; i < a->n_values; i++)
        if (!has_text(b->values, b->n_values, a->values[i]))
            return false;
    for (size_t i = 0; i < b->n_values; i++)
        if (!has_text(a->values, a->n_values, b->values[i]))
            return false;
    return true;
}

static void merge(const struct requirement **list, size_t *n, const struct requirement *more, size_t n_more,
                  struct arena *arena)
{
    struct requirement *all;
    size_t count = *n;

    if (!n_more)
        return;
    all = arena_array(arena, struct requirement, *n + n_more);
    if (*n)
        memcpy(all, *list, *n * sizeof(*all));
    for (size_t i = 0; i < n_more; i++) {
        bool known = false;

        for (size_t k = 0; k < count && !known; k++)
            known = same_requirement(&all[k], &more[i]);
        if (!known)
            all[count++] = more[i];
    }
    *list = all;
    *n = count;
}

/* Returns 0, or -1 for a selector with several terms. */
static int add_selector(const struct node *node, const struct memo_pick *picks, size_t n, struct arena *arena,
                        struct allocation *out, const char **out_message)
{
    struct selector_term term = {0};
    struct node_selector *selector;

    for (size_t i = 0; i < n; i++) {
        const struct node_selector *more;

        if (picks[i].pins) {
            out->only_node = node->info->name;
            return 0;
        }
        more = picks[i].slice->per_device ? picks[i].pool->devices[picks[i].index].device->selector
                                          : picks[i].slice->selector;
        if (!more || !more->n_terms)
            continue;
        if (more->n_terms > 1) {
            *out_message = arena_printf(arena, "node selector of slice %s has %zu terms, only one is supported",
                                        picks[i].slice->name, more->n_terms);
            return -1;
        }
        merge(&term.fields, &term.n_fields, more->terms[0].fields, more->terms[0].n_fields, arena);
        merge(&term.expressions, &term.n_expressions, more->terms[0].expressions, more->terms[0].n_expressions, arena);
    }
    if (!term.n_fields && !term.n_expressions)
        return 0;
    selector = arena_new(arena, struct node_selector);
    selector->terms = memcpy(arena_new(arena, struct selector_term), &term, sizeof(term));
    selector->n_terms = 1;
    out->selector = selector;
    return 0;
}

/* ---- all together ---- */

static int build_claim(struct shape *shape, const struct node *node, size_t claim, const struct memo_pick *picks,
                       size_t n, struct arena *arena, struct allocation *out, const char **out_message)
{
    struct device_result *results = arena_array(arena, struct device_result, n);
    size_t *alternatives = arena_array(arena, size_t, shape->claims[claim].n_requests);
    const char *name = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct pick *pick = &picks[i].pick;
        const struct ask *ask =
            &shape->asks[shape->claims[claim].requests[pick->request].first_ask + pick->alternative];

        if (!i || pick->request != picks[i - 1].pick.request)
            name = request_name(shape, ask, arena);
        alternatives[pick->request] = pick->alternative;
        finish_result(shape, &picks[i], ask, name, arena, &results[i]);
    }
    out->results = results;
    out->n_results = n;
    add_config(shape, claim, alternatives, arena, out);
    return add_selector(node, picks, n, arena, out, out_message);
}

int allocations_build(struct shape *shape, const struct node *node, const struct memo_pick *picks, size_t n,
                      struct arena *arena, struct allocation **out, const char **out_message)
{
    struct allocation *allocations = arena_array(arena, struct allocation, shape->n_claims);
    size_t at = 0;

    for (size_t i = 0; i < shape->n_claims; i++) {
        size_t end = at;

        while (end < n && picks[end].pick.claim == i)
            end++;
        if (build_claim(shape, node, i, picks + at, end - at, arena, &allocations[i], out_message) < 0) {
            *out_message = arena_printf(arena, "claim %s: %s", shape->claims[i].claim->name, *out_message);
            return -1;
        }
        at = end;
    }
    *out = allocations;
    return 0;
}

int solution_allocations(struct shape *shape, const struct bench *bench, const struct solution *solution,
                         struct arena *arena, struct allocation **out, const char **out_message)
{
    struct memo_pick *picks = arena_array(arena, struct memo_pick, solution->n_picks);

    for (size_t i = 0; i < solution->n_picks; i++)
        pick_describe(shape, bench, &solution->picks[i], &picks[i]);
    return allocations_build(shape, bench->node, picks, solution->n_picks, arena, out, out_message);
}

/* ---- JSON ---- */

static json_t *texts_json(const char *const *items, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, json_string(items[i]));
    return array;
}

static json_t *toleration_json(const struct toleration *t)
{
    json_t *json = json_object();

    if (*t->key)
        json_object_set_new(json, "key", json_string(t->key));
    if (*t->op_text)
        json_object_set_new(json, "operator", json_string(t->op_text));
    if (*t->value)
        json_object_set_new(json, "value", json_string(t->value));
    if (*t->effect_text)
        json_object_set_new(json, "effect", json_string(t->effect_text));
    if (t->has_seconds)
        json_object_set_new(json, "tolerationSeconds", json_integer(t->seconds));
    return json;
}

static void set_texts(json_t *json, const char *key, const struct string_list *list)
{
    if (list->n)
        json_object_set_new(json, key, texts_json(list->items, list->n));
}

static json_t *consumed_json(const struct device_result *result)
{
    json_t *json = json_object();

    for (size_t i = 0; i < result->n_consumed; i++) {
        BUF text = {0};

        quantity_format_to(&result->consumed[i].amount, &text);
        json_object_set_new(json, result->consumed[i].name, json_string(buf_str(&text)));
    }
    return json;
}

struct share_ids {
    void (*make)(void *ctx, char out[37]);
    void *ctx;
    uint64_t counter;
};

static json_t *share_json(struct share_ids *ids)
{
    char text[37];

    if (ids->make)
        ids->make(ids->ctx, text);
    else
        snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012" PRIx64, ids->counter++ & UINT64_C(0xffffffffffff));
    text[36] = '\0';
    return json_string(text);
}

static json_t *result_json(const struct device_result *result, struct share_ids *ids)
{
    json_t *json = json_object();

    json_object_set_new(json, "request", json_string(result->request));
    json_object_set_new(json, "driver", json_string(result->driver));
    json_object_set_new(json, "pool", json_string(result->pool));
    json_object_set_new(json, "device", json_string(result->device));
    if (result->admin_access)
        json_object_set_new(json, "adminAccess", json_true());
    if (result->n_tolerations) {
        json_t *tolerations = json_array();

        for (size_t i = 0; i < result->n_tolerations; i++)
            json_array_append_new(tolerations, toleration_json(&result->tolerations[i]));
        json_object_set_new(json, "tolerations", tolerations);
    }
    set_texts(json, "bindingConditions", &result->binding_conditions);
    set_texts(json, "bindingFailureConditions", &result->binding_failure_conditions);
    set_texts(json, "skipNodeOperations", &result->skip_node_operations);
    if (result->is_share)
        json_object_set_new(json, "shareID", share_json(ids));
    if (result->n_consumed)
        json_object_set_new(json, "consumedCapacity", consumed_json(result));
    return json;
}

json_t *allocation_config_json(const struct allocation *allocation)
{
    json_t *array;

    if (!allocation->n_config)
        return NULL;
    array = json_array();
    for (size_t i = 0; i < allocation->n_config; i++) {
        const struct config_entry *entry = &allocation->config[i];
        json_t *json = json_object();

        json_object_set_new(json, "source", json_string(entry->from_class ? "FromClass" : "FromClaim"));
        if (entry->n_requests)
            json_object_set_new(json, "requests", texts_json(entry->requests, entry->n_requests));
        if (entry->opaque)
            json_object_set_new(json, "opaque", json_loads(entry->opaque, JSON_DECODE_ANY, NULL));
        json_array_append_new(array, json);
    }
    return array;
}

static json_t *requirements_json(const struct requirement *list, size_t n)
{
    static const char *const names[] = {
        [REQ_IN] = "In", [REQ_NOT_IN] = "NotIn", [REQ_EXISTS] = "Exists", [REQ_DOES_NOT_EXIST] = "DoesNotExist",
        [REQ_GT] = "Gt", [REQ_LT] = "Lt",
    };
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *json = json_pack("{s:s, s:s}", "key", list[i].key, "operator", names[list[i].op]);

        if (list[i].n_values)
            json_object_set_new(json, "values", texts_json(list[i].values, list[i].n_values));
        json_array_append_new(array, json);
    }
    return array;
}

json_t *allocation_selector_json(const struct allocation *allocation)
{
    const struct selector_term *term;
    json_t *json;

    if (allocation->only_node)
        return json_pack("{s:[{s:[{s:s, s:s, s:[s]}]}]}", "nodeSelectorTerms", "matchFields", "key", "metadata.name",
                         "operator", "In", "values", allocation->only_node);
    if (!allocation->selector)
        return NULL;
    term = &allocation->selector->terms[0];
    json = json_object();
    if (term->n_expressions)
        json_object_set_new(json, "matchExpressions", requirements_json(term->expressions, term->n_expressions));
    if (term->n_fields)
        json_object_set_new(json, "matchFields", requirements_json(term->fields, term->n_fields));
    return json_pack("{s:[o]}", "nodeSelectorTerms", json);
}

json_t *allocation_to_json(const struct allocation *allocation, void (*share_id)(void *ctx, char out[37]), void *ctx)
{
    struct share_ids ids = {share_id, ctx, 0};
    json_t *json = json_object(), *devices = json_object(), *results = json_array();
    json_t *config = allocation_config_json(allocation), *selector = allocation_selector_json(allocation);

    for (size_t i = 0; i < allocation->n_results; i++)
        json_array_append_new(results, result_json(&allocation->results[i], &ids));
    if (allocation->n_results)
        json_object_set_new(devices, "results", results);
    else
        json_decref(results);
    if (config)
        json_object_set_new(devices, "config", config);
    json_object_set_new(json, "devices", devices);
    if (selector)
        json_object_set_new(json, "nodeSelector", selector);
    return json;
}
