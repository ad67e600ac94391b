/* ResourceClaims and templates: from JSON to struct claim, in the shapes v1, v1beta2 and v1beta1. */
#include "allocator/internal.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

#define MAX_REQUESTS 1024

/* ---- the digest: equal claims ask for the same ---- */

static void digest_string(struct digest *digest, const char *text)
{
    digest_text(digest, text ? text : "", text ? strlen(text) : 0);
}

static void digest_strings(struct digest *digest, const char *const *items, size_t n)
{
    digest_add(digest, n);
    for (size_t i = 0; i < n; i++)
        digest_string(digest, items[i]);
}

static void digest_ask(struct digest *digest, const struct claim_ask *ask)
{
    digest_string(digest, ask->name);
    digest_string(digest, ask->class_name);
    digest_strings(digest, ask->selectors, ask->n_selectors);
    digest_string(digest, ask->mode_text);
    digest_add(digest, (uint64_t)ask->count);
    digest_add(digest, (uint64_t)ask->has_admin_access | (uint64_t)ask->admin_access << 1 |
                           (uint64_t)ask->has_capacity << 2 | (uint64_t)ask->n_capacity << 3 |
                           (uint64_t)ask->n_tolerations << 32);
    for (size_t i = 0; i < ask->n_capacity; i++) {
        digest_string(digest, ask->capacity[i].key);
        digest_quantity(digest, &ask->capacity[i].amount);
    }
    for (size_t i = 0; i < ask->n_tolerations; i++) {
        const struct toleration *t = &ask->tolerations[i];

        digest_string(digest, t->key);
        digest_string(digest, t->value);
        digest_string(digest, t->op_text);
        digest_string(digest, t->effect_text);
        digest_add(digest, (uint64_t)t->seconds + t->has_seconds);
    }
    digest_add(digest, ask->n_derived);
    for (size_t i = 0; i < ask->n_derived; i++) {
        digest_string(digest, ask->derived[i].name);
        digest_string(digest, ask->derived[i].expression);
    }
}

static struct digest claim_digest(const struct claim *claim)
{
    struct digest digest = {0};

    digest_add(&digest, claim->n_requests);
    for (size_t i = 0; i < claim->n_requests; i++) {
        const struct claim_request *request = &claim->requests[i];

        digest_string(&digest, request->name);
        digest_add(&digest, request->n_asks * 2 + request->is_list);
        for (size_t k = 0; k < request->n_asks; k++)
            digest_ask(&digest, &request->asks[k]);
    }
    digest_add(&digest, claim->n_constraints);
    for (size_t i = 0; i < claim->n_constraints; i++) {
        digest_add(&digest, claim->constraints[i].kind);
        digest_string(&digest, claim->constraints[i].attribute);
        digest_strings(&digest, claim->constraints[i].requests, claim->constraints[i].n_requests);
    }
    digest_add(&digest, claim->n_config);
    for (size_t i = 0; i < claim->n_config; i++) {
        digest_string(&digest, claim->config[i].opaque);
        digest_strings(&digest, claim->config[i].requests, claim->config[i].n_requests);
    }
    return digest;
}

/* ---- requests ---- */

static int read_capacity_requests(const json_t *json, const struct load *load, struct claim_ask *ask, struct error *err)
{
    const json_t *capacity, *map, *value;
    struct capacity_request *requests;
    const char *key;
    size_t n = 0;

    if (read_object(json, "capacity", &capacity, err) < 0)
        return -1;
    if (!capacity)
        return 0;
    ask->has_capacity = true;
    if (read_object(capacity, "requests", &map, err) < 0)
        return error_in(err, "capacity");
    requests = arena_array(load->arena, struct capacity_request, json_object_size(map) + 1);
    json_object_foreach((json_t *)map, key, value)
    {
        requests[n].key = load_symbol(load, key);
        if (read_quantity(value, load->arena, &requests[n++].amount, err) < 0)
            return error_in(err, "capacity.requests[%s]", key);
    }
    ask->capacity = requests;
    ask->n_capacity = n;
    return 0;
}

static int read_derived(const json_t *json, const struct load *load, struct claim_ask *ask, struct error *err)
{
    const json_t *array;
    struct derived_attribute *derived;

    if (read_array(json, "derivedAttributes", &array, err) < 0)
        return -1;
    derived = arena_array(load->arena, struct derived_attribute, json_array_size(array) + 1);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);

        if (read_text(item, "name", load->arena, "", &derived[i].name, err) < 0 ||
            read_text(item, "expression", load->arena, "", &derived[i].expression, err) < 0)
            return error_in(err, "derivedAttributes[%zu]", i);
    }
    ask->derived = derived;
    ask->n_derived = json_array_size(array);
    return 0;
}

static enum allocation_mode mode_of(const char *text)
{
    if (text_is(text, "ExactCount"))
        return MODE_EXACT_COUNT;
    return text_is(text, "All") ? MODE_ALL : MODE_UNKNOWN;
}

static int ask_parse(const json_t *json, const char *name, const struct load *load, struct claim_ask *out,
                     struct error *err)
{
    out->name = name;
    if (read_text(json, "deviceClassName", load->arena, "", &out->class_name, err) < 0 ||
        read_selectors(json, "selectors", load, &out->selectors, &out->n_selectors, err) < 0 ||
        read_text(json, "allocationMode", load->arena, "ExactCount", &out->mode_text, err) < 0 ||
        read_int(json, "count", &out->count, err) < 0 || read_bool(json, "adminAccess", &out->admin_access, err) < 0 ||
        read_tolerations(json, "tolerations", load, &out->tolerations, &out->n_tolerations, err) < 0 ||
        read_capacity_requests(json, load, out, err) < 0 || read_derived(json, load, out, err) < 0)
        return -1;
    if (!*out->mode_text)
        out->mode_text = "ExactCount";
    out->mode = mode_of(out->mode_text);
    out->has_admin_access = member(json, "adminAccess") != NULL;
    /* an explicit 0 is the same as none to an API server; without its checks the allocator would take it at its word */
    if (out->mode == MODE_EXACT_COUNT && (!member(json, "count") || (load->validate && out->count == 0)))
        out->count = 1;
    return 0;
}

/* Where the fields of an exact request are: under `exactly`, or (v1beta1) in the request itself; NULL: nowhere. */
static const json_t *exact_part(const json_t *request, const json_t *exactly)
{
    static const char *const flat[] = {"deviceClassName", "selectors",   "allocationMode", "count",
                                       "adminAccess",     "tolerations", "capacity"};

    if (exactly)
        return exactly;
    for (size_t i = 0; i < ARRAY_SIZE(flat); i++)
        if (member(request, flat[i]))
            return request;
    return NULL;
}

static int read_alternatives(const json_t *list, const struct load *load, struct claim_request *out, struct error *err)
{
    struct claim_ask *asks = arena_array(load->arena, struct claim_ask, json_array_size(list) + 1);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *name;

        if (!json_is_object(item)) {
            error_set(err, ERR_INVALID, "must be an object");
            return error_in(err, "firstAvailable[%zu]", i);
        }
        if (read_text(item, "name", load->arena, "", &name, err) < 0 || ask_parse(item, name, load, &asks[i], err) < 0)
            return error_in(err, "firstAvailable[%zu]", i);
    }
    out->asks = asks;
    out->n_asks = json_array_size(list);
    out->is_list = true;
    return 0;
}

static int request_parse(const json_t *json, const struct load *load, struct claim_request *out, struct error *err)
{
    const json_t *exactly, *list, *flat;
    struct claim_ask *ask;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "name", load->arena, "", &out->name, err) < 0 ||
        read_object(json, "exactly", &exactly, err) < 0 || read_array(json, "firstAvailable", &list, err) < 0)
        return -1;
    if (json_array_size(list)) {
        if (exact_part(json, exactly) && load->validate)
            return error_field(err, "firstAvailable", "excludes the fields of an exact request");
        return read_alternatives(list, load, out, err);
    }
    flat = exact_part(json, exactly);
    if (!flat && load->validate)
        return error_set(err, ERR_INVALID, "needs exactly or firstAvailable");
    ask = arena_new(load->arena, struct claim_ask);
    if (ask_parse(flat, out->name, load, ask, err) < 0)
        return exactly ? error_in(err, "exactly") : -1;
    out->asks = ask;
    out->n_asks = 1;
    return 0;
}

static int read_requests(const json_t *devices, const struct load *load, struct claim *claim, struct error *err)
{
    const json_t *array;
    struct claim_request *requests;

    if (read_array(devices, "requests", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_REQUESTS)
        return error_field(err, "requests", "has too many entries");
    requests = arena_array(load->arena, struct claim_request, json_array_size(array) + 1);
    for (size_t i = 0; i < json_array_size(array); i++)
        if (request_parse(json_array_get(array, i), load, &requests[i], err) < 0)
            return error_in(err, "requests[%zu]", i);
    claim->requests = requests;
    claim->n_requests = json_array_size(array);
    return 0;
}

/* ---- constraints and config ---- */

static int constraint_parse(const json_t *json, const struct load *load, struct claim_constraint *out,
                            struct error *err)
{
    const char *match, *distinct;
    struct string_list requests;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "matchAttribute", load->arena, NULL, &match, err) < 0 ||
        read_text(json, "distinctAttribute", load->arena, NULL, &distinct, err) < 0 ||
        read_texts(json, "requests", load->arena, &requests, err) < 0)
        return -1;
    if (load->validate && (!match == !distinct))
        return error_set(err, ERR_INVALID, "needs exactly one of matchAttribute and distinctAttribute");
    out->kind = match ? CONSTRAINT_MATCH : distinct ? CONSTRAINT_DISTINCT : CONSTRAINT_UNKNOWN;
    out->attribute = load_symbol(load, match ? match : distinct);
    out->requests = requests.items;
    out->n_requests = requests.n;
    return 0;
}

static int read_constraints(const json_t *devices, const struct load *load, struct claim *claim, struct error *err)
{
    const json_t *array;
    struct claim_constraint *constraints;

    if (read_array(devices, "constraints", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_REQUESTS)
        return error_field(err, "constraints", "has too many entries");
    constraints = arena_array(load->arena, struct claim_constraint, json_array_size(array) + 1);
    for (size_t i = 0; i < json_array_size(array); i++)
        if (constraint_parse(json_array_get(array, i), load, &constraints[i], err) < 0)
            return error_in(err, "constraints[%zu]", i);
    claim->constraints = constraints;
    claim->n_constraints = json_array_size(array);
    return 0;
}

static int config_parse(const json_t *json, const struct load *load, struct claim_config *out, struct error *err)
{
    const json_t *opaque;
    struct string_list requests;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_texts(json, "requests", load->arena, &requests, err) < 0 || read_object(json, "opaque", &opaque, err) < 0)
        return -1;
    out->requests = requests.items;
    out->n_requests = requests.n;
    out->opaque = opaque ? json_text(opaque, load->arena) : NULL;
    return 0;
}

static int read_config(const json_t *devices, const struct load *load, struct claim *claim, struct error *err)
{
    const json_t *array;
    struct claim_config *config;

    if (read_array(devices, "config", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_REQUESTS)
        return error_field(err, "config", "has too many entries");
    config = arena_array(load->arena, struct claim_config, json_array_size(array) + 1);
    for (size_t i = 0; i < json_array_size(array); i++)
        if (config_parse(json_array_get(array, i), load, &config[i], err) < 0)
            return error_in(err, "config[%zu]", i);
    claim->config = config;
    claim->n_config = json_array_size(array);
    return 0;
}

int claim_spec_parse(const json_t *spec, const struct load *load, struct claim *out, struct error *err)
{
    const json_t *devices;

    if (read_object(spec, "devices", &devices, err) < 0)
        return -1;
    if (read_requests(devices, load, out, err) < 0 || read_constraints(devices, load, out, err) < 0 ||
        read_config(devices, load, out, err) < 0 || (load->validate && claim_check(out, load, err) < 0))
        return error_in(err, "devices");
    out->digest = claim_digest(out);
    return 0;
}

int claim_parse(const json_t *object, const struct features *features, bool validate, struct arena *arena,
                struct claim **out, struct error *err)
{
    struct load load = {.arena = arena, .features = features, .validate = validate};
    struct claim *claim = arena_new(arena, struct claim);
    const json_t *spec, *inner, *meta;

    if (!json_is_object(object))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_object(object, "metadata", &meta, err) < 0 || read_object(object, "spec", &spec, err) < 0)
        return -1;
    if (read_text(meta, "name", arena, "", &claim->name, err) < 0 ||
        read_text(meta, "namespace", arena, "", &claim->ns, err) < 0)
        return error_in(err, "metadata");
    if (!spec && validate)
        return error_field(err, "spec", "is required");
    inner = member(spec, "spec"); /* a template */
    if (claim_spec_parse(inner ? inner : spec, &load, claim, err) < 0)
        return error_in(err, inner ? "spec.spec" : "spec");
    *out = claim;
    return 0;
}

/* ---- claims of the cluster ---- */

static int held_parse(const json_t *json, const struct load *load, struct held_device *out, struct error *err)
{
    const json_t *map, *value;
    struct counter *consumed;
    const char *key;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "request", load->arena, "", &out->request, err) < 0 ||
        read_text(json, "driver", load->arena, "", &out->driver, err) < 0 ||
        read_text(json, "pool", load->arena, "", &out->pool, err) < 0 ||
        read_text(json, "device", load->arena, "", &out->device, err) < 0 ||
        read_text(json, "shareID", load->arena, NULL, &out->share_id, err) < 0 ||
        read_bool(json, "adminAccess", &out->admin_access, err) < 0 ||
        read_object(json, "consumedCapacity", &map, err) < 0)
        return -1;
    out->has_consumed = map != NULL;
    consumed = arena_array(load->arena, struct counter, json_object_size(map) + 1);
    json_object_foreach((json_t *)map, key, value)
    {
        consumed[out->n_consumed].name = load_symbol(load, key);
        if (read_quantity(value, load->arena, &consumed[out->n_consumed++].value, err) < 0)
            return error_in(err, "consumedCapacity[%s]", key);
    }
    out->consumed = consumed;
    return 0;
}

static int read_allocation(const json_t *allocation, const struct load *load, struct cluster_claim *out,
                           struct error *err)
{
    const json_t *devices, *results, *selector;
    struct held_device *held;

    if (read_object(allocation, "devices", &devices, err) < 0 ||
        read_object(allocation, "nodeSelector", &selector, err) < 0)
        return -1;
    if (read_array(devices, "results", &results, err) < 0)
        return error_in(err, "devices");
    held = arena_array(load->arena, struct held_device, json_array_size(results) + 1);
    for (size_t i = 0; i < json_array_size(results); i++)
        if (held_parse(json_array_get(results, i), load, &held[i], err) < 0)
            return error_in(err, "devices.results[%zu]", i);
    out->held = held;
    out->n_held = json_array_size(results);
    out->selector = selector ? node_selector_parse(selector, load->arena) : NULL;
    out->is_allocated = true;
    return 0;
}

static int read_status(const json_t *object, const struct load *load, struct cluster_claim *out, struct error *err)
{
    const json_t *status, *allocation, *reserved;

    if (read_object(object, "status", &status, err) < 0)
        return -1;
    if (read_object(status, "allocation", &allocation, err) < 0 ||
        read_array(status, "reservedFor", &reserved, err) < 0)
        return error_in(err, "status");
    out->n_reserved = json_array_size(reserved);
    if (allocation && read_allocation(allocation, load, out, err) < 0)
        return error_in(err, "status.allocation");
    return 0;
}

int cluster_claim_parse(const json_t *object, const struct load *load, struct cluster_claim *out, struct error *err)
{
    struct claim *claim = arena_new(load->arena, struct claim);
    const json_t *meta, *labels, *spec;

    if (read_name(object, load->arena, &out->name, err) < 0 || read_object(object, "metadata", &meta, err) < 0 ||
        read_object(object, "spec", &spec, err) < 0)
        return -1;
    if (read_text(meta, "namespace", load->arena, "", &out->ns, err) < 0 ||
        read_object(meta, "labels", &labels, err) < 0 ||
        read_text(labels, "queue.dra/job", load->arena, NULL, &out->job, err) < 0)
        return error_in(err, "metadata");
    claim->ns = out->ns;
    claim->name = out->name;
    if (claim_spec_parse(spec, load, claim, err) < 0)
        return error_in(err, "spec");
    out->spec = claim;
    return read_status(object, load, out, err);
}
