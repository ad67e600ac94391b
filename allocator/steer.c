/* Claims that leave kube-scheduler one choice.
 *
 * A request of the steered claim asks for the planned alternative as `exactly`, and one more selector admits the
 * planned devices only. The selector names an attribute whose value no other device has that the request could match on
 * the node, behind a test that the attribute is there, because an expression that fails ends the scheduling of the pod.
 * Where no attribute tells the devices apart, the selector admits all that look like them, and first fit decides among
 * those. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

#define MAX_SELECTORS   32
#define MAX_CONSTRAINTS 32
#define MAX_EXPRESSION  10240 /* of one selector, in bytes */
#define MAX_SCOPE_NODES 64    /* that a claim of the network is checked on */
#define MAX_LIKENESS    12    /* attributes and capacities by which devices are described that none identifies */

/* Names by which drivers identify a device, the best first. */
static const char *const identifying[] = {"uuid",         "pciBusID", "pciAddress", "serial",
                                          "serialNumber", "index",    "minor",      "id"};

struct scope_device {
    const char *driver;
    const struct device *device;
};

/* The devices that a request could match where its claim may be allocated. */
struct scope {
    struct scope_device *items;
    size_t n, cap;
};

struct steering {
    const struct snapshot *snapshot;
    const struct node *node; /* NULL: several nodes */
    const struct allocation *allocation;
    const struct claim *claim;
    struct shape *shape;
    struct arena *arena;
    bool is_exact;
};

/* ---- the devices of an allocation ---- */

static const struct device *find_device(const struct steering *s, const struct device_result *result)
{
    const struct pool *pool = snapshot_find_pool(s->snapshot, result->driver, result->pool);

    for (size_t i = 0; pool && i < pool->n_devices; i++)
        if (strcmp(pool->devices[i].device->name, result->device) == 0)
            return pool->devices[i].device;
    return NULL;
}

/* The part behind the slash of the results of a request; "" for an exact one, NULL when it has no results. */
static const char *chosen_sub(const struct allocation *allocation, const char *request)
{
    size_t len = strlen(request);

    for (size_t i = 0; i < allocation->n_results; i++) {
        const char *name = allocation->results[i].request;

        if (strncmp(name, request, len) == 0 && (name[len] == 0 || name[len] == '/'))
            return name[len] == '/' ? name + len + 1 : "";
    }
    return NULL;
}

static bool is_of_request(const struct device_result *result, const char *request)
{
    size_t len = strlen(request);

    return strncmp(result->request, request, len) == 0 && (result->request[len] == 0 || result->request[len] == '/');
}

/* ---- scope ---- */

static void scope_add(struct scope *scope, const char *driver, const struct device *device)
{
    mem_grow(scope->items, scope->n, scope->cap);
    scope->items[scope->n++] = (struct scope_device){driver, device};
}

static size_t find_ask(const struct steering *s, size_t request, const char *sub)
{
    for (size_t i = 0; i < shape_n_asks(s->shape); i++) {
        const struct shape_ask *ask = shape_ask(s->shape, i);

        if (ask->request == request && (*sub == 0 || strcmp(ask->ask->name, sub) == 0))
            return i;
    }
    return SIZE_MAX;
}

/* An evaluation that fails counts as a match: the more a value has to differ from, the safer. */
static void scope_add_node(struct steering *s, struct scope *scope, const struct node *node, size_t ask)
{
    const struct bench *bench = bench_make(s->shape, NULL, node, s->arena);

    for (size_t i = 0; i < bench->n_offers; i++)
        if (bench_selects(s->shape, bench, i, ask, NULL) != SELECT_NO)
            scope_add(scope, bench->offers[i].slice->driver, bench->offers[i].device);
}

/* Every device of the drivers in question, wherever it is. */
static void scope_add_all(const struct steering *s, struct scope *scope)
{
    for (uint32_t slot = 0; slot < snapshot_pool_slots(s->snapshot); slot++) {
        const struct pool *pool = snapshot_pool(s->snapshot, slot);

        for (size_t i = 0; pool && i < pool->n_devices; i++)
            scope_add(scope, pool->driver, pool->devices[i].device);
    }
}

static void scope_fill(struct steering *s, struct scope *scope, size_t ask)
{
    const uint32_t *slots;
    size_t n_slots, n_nodes = 0;

    if (s->node) {
        scope_add_node(s, scope, s->node, ask);
        return;
    }
    slots = snapshot_sorted_nodes(s->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++)
        n_nodes += !s->allocation->selector ||
                   node_selector_matches(s->allocation->selector, snapshot_node(s->snapshot, slots[i])->info);
    if (n_nodes > MAX_SCOPE_NODES) {
        scope_add_all(s, scope);
        return;
    }
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(s->snapshot, slots[i]);

        if (!s->allocation->selector || node_selector_matches(s->allocation->selector, node->info))
            scope_add_node(s, scope, node, ask);
    }
}

/* ---- attributes as CEL ---- */

static bool is_usable(const struct attribute *attribute)
{
    return !attribute->is_list &&
           (attribute->kind == CEL_ATTR_STRING || attribute->kind == CEL_ATTR_INT || attribute->kind == CEL_ATTR_BOOL);
}

static bool same_value(const struct attribute *a, const struct attribute *b)
{
    if (a->kind != b->kind || a->is_list != b->is_list)
        return false;
    if (a->kind == CEL_ATTR_INT)
        return a->i == b->i;
    return a->kind == CEL_ATTR_BOOL ? a->b == b->b : str_eq(a->s, b->s);
}

static const struct attribute *attribute_of(const struct device *device, const char *key)
{
    for (size_t i = 0; i < device->n_attributes; i++)
        if (strcmp(device->attributes[i].key, key) == 0)
            return &device->attributes[i];
    return NULL;
}

static void add_quoted(struct buf *out, struct str text)
{
    buf_addc(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_addf(out, "\\u%04x", c);
        else
            buf_addc(out, (char)c);
    }
    buf_addc(out, '"');
}

static void add_value(struct buf *out, const struct attribute *attribute)
{
    if (attribute->kind == CEL_ATTR_INT)
        buf_addf(out, "%lld", (long long)attribute->i);
    else if (attribute->kind == CEL_ATTR_BOOL)
        buf_adds(out, attribute->b ? "true" : "false");
    else
        add_quoted(out, attribute->s);
}

/* device.attributes["domain"].id, or device.capacity...; a bare name belongs to the driver. */
static void add_path(struct buf *out, const char *what, const char *driver, const char *key)
{
    const char *slash = strchr(key, '/');

    buf_addf(out, "device.%s[", what);
    add_quoted(out, slash ? (struct str){key, (size_t)(slash - key)} : str_of(driver));
    buf_addf(out, "].%s", slash ? slash + 1 : key);
}

static const char *bare(const char *key)
{
    const char *slash = strchr(key, '/');

    return slash ? slash + 1 : key;
}

/* ---- telling devices apart ---- */

/* Whether no other device of the scope has this value. */
static bool identifies(const struct scope *scope, const char *driver, const struct device *device, const char *key)
{
    const struct attribute *own = attribute_of(device, key);

    if (!own || !is_usable(own) || own->kind == CEL_ATTR_BOOL)
        return false;
    for (size_t i = 0; i < scope->n; i++) {
        const struct attribute *other;

        if (scope->items[i].device == device || strcmp(scope->items[i].driver, driver) != 0)
            continue;
        other = attribute_of(scope->items[i].device, key);
        if (other && same_value(own, other))
            return false;
    }
    return true;
}

static bool identifies_all(const struct scope *scope, const char *driver, const struct device *const *devices, size_t n,
                           const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (!identifies(scope, driver, devices[i], key))
            return false;
    return true;
}

/* The attribute that identifies all of these devices of one driver, or NULL. */
static const char *identifying_key(const struct scope *scope, const char *driver, const struct device *const *devices,
                                   size_t n)
{
    for (size_t w = 0; w < ARRAY_SIZE(identifying); w++)
        for (size_t a = 0; a < devices[0]->n_attributes; a++)
            if (strcmp(bare(devices[0]->attributes[a].key), identifying[w]) == 0 &&
                identifies_all(scope, driver, devices, n, devices[0]->attributes[a].key))
                return devices[0]->attributes[a].key;
    for (size_t a = 0; a < devices[0]->n_attributes; a++)
        if (identifies_all(scope, driver, devices, n, devices[0]->attributes[a].key))
            return devices[0]->attributes[a].key;
    return NULL;
}

static void add_identity(struct buf *out, const char *driver, const struct device *const *devices, size_t n,
                         const char *key)
{
    buf_adds(out, "has(");
    add_path(out, "attributes", driver, key);
    buf_adds(out, ") && ");
    add_path(out, "attributes", driver, key);
    buf_adds(out, n == 1 ? " == " : " in [");
    for (size_t i = 0; i < n; i++) {
        buf_adds(out, i ? ", " : "");
        add_value(out, attribute_of(devices[i], key));
    }
    buf_adds(out, n == 1 ? "" : "]");
}

uint64_t steer_likeness(const struct device *device)
{
    struct digest d = {23, 29};
    size_t n = 0;

    for (size_t a = 0; a < device->n_attributes && n < MAX_LIKENESS; a++) {
        const struct attribute *attribute = &device->attributes[a];

        if (!is_usable(attribute))
            continue;
        n++;
        digest_text(&d, attribute->key, strlen(attribute->key));
        digest_add(&d, (uint64_t)attribute->kind);
        if (attribute->kind == CEL_ATTR_STRING)
            digest_text(&d, attribute->s.ptr, attribute->s.len);
        else
            digest_add(&d, attribute->kind == CEL_ATTR_INT ? (uint64_t)attribute->i : attribute->b);
    }
    for (size_t c = 0; c < device->n_capacities && n < MAX_LIKENESS; c++, n++) {
        BUF amount = {0};

        quantity_format_to(&device->capacities[c].value, &amount);
        digest_text(&d, device->capacities[c].key, strlen(device->capacities[c].key));
        digest_text(&d, buf_str(&amount), amount.len);
    }
    digest_add(&d, device->multi);
    return d.lo | 1;
}

static void add_capacity(struct buf *out, const char *driver, const struct capacity *capacity)
{
    buf_adds(out, "has(");
    add_path(out, "capacity", driver, capacity->key);
    buf_adds(out, ") && ");
    add_path(out, "capacity", driver, capacity->key);
    buf_adds(out, ".compareTo(quantity(\"");
    quantity_format_to(&capacity->value, out);
    buf_adds(out, "\")) == 0");
}

/* Whether a device is there of which all the same can be said, but that one can be shared and the other cannot. */
static bool is_told_by_sharing(const struct steering *s, const struct scope *scope, const char *driver,
                               const struct device *device)
{
    struct device other = *device;
    uint64_t looks;

    if (!feature_on(snapshot_features(s->snapshot), FEATURE_CONSUMABLE_CAPACITY))
        return false; /* selectors do not know of it */
    other.multi = !device->multi;
    looks = steer_likeness(&other);
    for (size_t i = 0; i < scope->n; i++)
        if (scope->items[i].device->multi == other.multi && strcmp(scope->items[i].driver, driver) == 0 &&
            steer_likeness(scope->items[i].device) == looks)
            return true;
    return false;
}

/* All that can be said of a device: true of those that look like it, and of no others. */
static void add_likeness(const struct steering *s, const struct scope *scope, const char *driver,
                         const struct device *device, struct buf *out)
{
    size_t n = 0;

    for (size_t a = 0; a < device->n_attributes && n < MAX_LIKENESS; a++) {
        const struct attribute *attribute = &device->attributes[a];

        if (!is_usable(attribute))
            continue;
        buf_adds(out, n++ ? " && has(" : "has(");
        add_path(out, "attributes", driver, attribute->key);
        buf_adds(out, ") && ");
        add_path(out, "attributes", driver, attribute->key);
        buf_adds(out, " == ");
        add_value(out, attribute);
    }
    for (size_t c = 0; c < device->n_capacities && n < MAX_LIKENESS; c++) {
        buf_adds(out, n++ ? " && " : "");
        add_capacity(out, driver, &device->capacities[c]);
    }
    if (is_told_by_sharing(s, scope, driver, device))
        buf_addf(out, "%s%sdevice.allowMultipleAllocations", n++ ? " && " : "", device->multi ? "" : "!");
    if (n == 0)
        buf_adds(out, "true");
}

/* Whether an earlier one of the devices looks like the i-th. */
static bool is_said(const struct device *const *devices, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (steer_likeness(devices[k]) == steer_likeness(devices[i]))
            return true;
    return false;
}

/* The first n_own of the n devices are those of the claim itself. */
static void add_driver_clause(struct steering *s, const struct scope *scope, const char *driver,
                              const struct device *const *devices, size_t n_own, size_t n, struct buf *out)
{
    const char *key = identifying_key(scope, driver, devices, n_own);

    buf_adds(out, "device.driver == ");
    add_quoted(out, str_of(driver));
    buf_adds(out, " && ");
    if (key) {
        add_identity(out, driver, devices, n_own, key);
        return;
    }
    s->is_exact = false;
    buf_adds(out, n > 1 ? "(" : "");
    for (size_t i = 0; i < n; i++) {
        if (is_said(devices, i))
            continue;
        buf_adds(out, i ? " || " : "");
        add_likeness(s, scope, driver, devices[i], out);
    }
    buf_adds(out, n > 1 ? ")" : "");
}

/* Add what the claim admits of the driver beside its own devices. */
static size_t add_also(struct steering *s, const char *driver, const struct device **devices, size_t n)
{
    for (size_t i = 0; i < s->allocation->n_also; i++) {
        const struct device_result *result = &s->allocation->also[i];

        if (strcmp(result->driver, driver) != 0)
            continue;
        devices[n] = find_device(s, result);
        n += devices[n] != NULL;
    }
    return n;
}

/* The expression that admits the planned devices of a request; false when there is nothing to say. */
static bool narrow(struct steering *s, size_t request, const char *sub, struct buf *out)
{
    const char *name = s->claim->requests[request].name;
    size_t n_results = s->allocation->n_results, n_clauses = 0, ask = find_ask(s, request, sub);
    const struct device **devices = arena_array(s->arena, const struct device *, n_results + s->allocation->n_also);
    bool *done = arena_array(s->arena, bool, n_results);
    struct scope scope = {0};

    if (ask == SIZE_MAX) {
        s->is_exact = false;
        return false;
    }
    scope_fill(s, &scope, ask);
    for (size_t i = 0; i < n_results; i++) {
        const char *driver = s->allocation->results[i].driver;
        size_t n = 0;

        for (size_t j = i; j < n_results; j++) {
            const struct device_result *result = &s->allocation->results[j];

            if (done[j] || !is_of_request(result, name) || strcmp(result->driver, driver) != 0)
                continue;
            devices[n] = find_device(s, result);
            done[j] = true;
            s->is_exact = s->is_exact && devices[n];
            n += devices[n] != NULL;
        }
        if (n == 0)
            continue;
        buf_adds(out, n_clauses++ ? " || " : "");
        add_driver_clause(s, &scope, driver, devices, n, add_also(s, driver, devices, n), out);
    }
    free(scope.items);
    if (out->len > MAX_EXPRESSION) {
        s->is_exact = false;
        return false;
    }
    return n_clauses > 0;
}

/* By one of the attributes that drivers publish for this: whoever has it has it on all devices, so that it serves all
 * of a request. */
bool steer_identifies(const struct bench *bench, const struct offer *offer)
{
    for (size_t w = 0; w < ARRAY_SIZE(identifying); w++) {
        const struct attribute *own = attribute_of(offer->device, identifying[w]);
        bool unique = own && is_usable(own) && own->kind != CEL_ATTR_BOOL;

        for (size_t i = 0; i < bench->n_offers && unique; i++) {
            const struct offer *other = &bench->offers[i];
            const struct attribute *theirs = other == offer || other->slice->driver != offer->slice->driver
                                                 ? NULL
                                                 : attribute_of(other->device, identifying[w]);

            if (other != offer && other->slice->driver == offer->slice->driver)
                unique = theirs && !same_value(own, theirs);
        }
        if (unique)
            return true;
    }
    return false;
}

/* ---- the spec ---- */

static const json_t *spec_of(const json_t *object)
{
    const json_t *spec = json_object_get(object, "spec");
    const json_t *inner = json_object_get(spec, "spec");

    return json_object_get(inner ? inner : spec, "devices");
}

static const json_t *asked_json(const json_t *request, const char *sub)
{
    const json_t *list = json_object_get(request, "firstAvailable"), *exactly = json_object_get(request, "exactly");
    json_t *one;
    size_t i;

    if (json_array_size(list) == 0)
        return exactly ? exactly : request;
    json_array_foreach (list, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));

        if (name && strcmp(name, sub) == 0)
            return one;
    }
    return NULL;
}

static void append_selector(struct steering *s, json_t *exactly, const char *expression)
{
    json_t *selectors = json_object_get(exactly, "selectors");

    if (!json_is_array(selectors)) {
        selectors = json_array();
        json_object_set_new(exactly, "selectors", selectors);
    }
    if (json_array_size(selectors) >= MAX_SELECTORS) {
        s->is_exact = false;
        return;
    }
    json_array_append_new(selectors, json_pack("{s:{s:s}}", "cel", "expression", expression));
}

static json_t *steer_request(struct steering *s, const json_t *request, size_t index)
{
    static const char *const kept[] = {"deviceClassName", "selectors", "allocationMode",    "count",
                                       "adminAccess",     "capacity",  "derivedAttributes", "tolerations"};
    const char *name = s->claim->requests[index].name;
    const char *sub = chosen_sub(s->allocation, name);
    const json_t *asked = asked_json(request, sub ? sub : "");
    const char *mode = json_string_value(json_object_get(asked, "allocationMode"));
    json_t *exactly = json_object();
    BUF expression = {0};

    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        json_t *value = json_object_get(asked, kept[i]);

        if (value && !json_is_null(value))
            json_object_set_new(exactly, kept[i], json_deep_copy(value));
    }
    if (sub && !(mode && strcmp(mode, "All") == 0) && narrow(s, index, sub, &expression))
        append_selector(s, exactly, buf_str(&expression));
    return json_pack("{s:s, s:o}", "name", name, "exactly", exactly);
}

static bool has_text(const json_t *list, const char *text)
{
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        if (strcmp(json_string_value(one), text) == 0)
            return true;
    }
    return false;
}

/* References to requests, with alternatives that were not taken left out and the taken ones under their request's name.
 */
static json_t *steer_references(const struct steering *s, const json_t *references)
{
    json_t *out = json_array(), *one;
    size_t i;

    json_array_foreach (references, i, one) {
        const char *text = json_string_value(one), *slash = text ? strchr(text, '/') : NULL, *sub;
        char *request = slash ? mem_strndup(text, (size_t)(slash - text)) : mem_strdup(text ? text : "");

        sub = chosen_sub(s->allocation, request);
        if ((!slash || (sub && strcmp(slash + 1, sub) == 0)) && !has_text(out, request))
            json_array_append_new(out, json_string(request));
        free(request);
    }
    return out;
}

/* Entries that refer to requests: constraints and configuration. One that named only what was not taken is dropped. */
static json_t *steer_entries(const struct steering *s, const json_t *entries)
{
    json_t *out = json_array(), *entry;
    size_t i;

    json_array_foreach (entries, i, entry) {
        json_t *references = json_object_get(entry, "requests"), *copy = json_deep_copy(entry);

        if (json_array_size(references) > 0) {
            json_t *kept = steer_references(s, references);

            if (json_array_size(kept) == 0) {
                json_decref(kept);
                json_decref(copy);
                continue;
            }
            json_object_set_new(copy, "requests", kept);
        }
        json_array_append_new(out, copy);
    }
    return out;
}

/* Names of the requests with devices that the constraint covers; NULL: none. */
static json_t *kept_requests(const struct steering *s, const struct gang_constraint *constraint)
{
    json_t *names = json_array();

    for (size_t r = 0; r < s->claim->n_requests; r++) {
        const char *name = s->claim->requests[r].name, *sub = chosen_sub(s->allocation, name);

        if (sub && gang_constraint_covers_request(constraint, name, sub))
            json_array_append_new(names, json_string(name));
    }
    if (json_array_size(names) > 0)
        return names;
    json_decref(names);
    return NULL;
}

/* Where first fit has a say, a claim keeps by itself what the gang asks of all of its devices. */
static void keep_constraints(const struct steering *s, json_t *constraints)
{
    bool can_differ = feature_on(snapshot_features(s->snapshot), FEATURE_CONSUMABLE_CAPACITY);

    for (size_t i = 0; i < s->allocation->n_kept && json_array_size(constraints) < MAX_CONSTRAINTS; i++) {
        const struct gang_constraint *constraint = s->allocation->kept[i];
        bool differ = constraint->kind == GANG_DISTINCT_ATTRIBUTE;
        json_t *names = differ && !can_differ ? NULL : kept_requests(s, constraint);

        if (names)
            json_array_append_new(constraints,
                                  json_pack("{s:o, s:s}", "requests", names,
                                            differ ? "distinctAttribute" : "matchAttribute", constraint->key));
    }
}

static json_t *steer_devices(struct steering *s, const json_t *devices)
{
    static const char *const lists[] = {"constraints", "config"};
    const json_t *requests = json_object_get(devices, "requests");
    json_t *out = json_object(), *steered = json_array();

    for (size_t i = 0; i < json_array_size(requests) && i < s->claim->n_requests; i++)
        json_array_append_new(steered, steer_request(s, json_array_get(requests, i), i));
    json_object_set_new(out, "requests", steered);
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        json_t *entries = steer_entries(s, json_object_get(devices, lists[l]));

        if (l == 0 && !s->is_exact)
            keep_constraints(s, entries);
        if (json_array_size(entries) > 0)
            json_object_set_new(out, lists[l], entries);
        else
            json_decref(entries);
    }
    return json_pack("{s:o}", "devices", out);
}

json_t *steer_claim(const struct snapshot *snapshot, const struct node *node, const json_t *object,
                    const struct allocation *allocation, bool *out_exact)
{
    struct arena arena;
    struct steering s = {
        .snapshot = snapshot, .node = node, .allocation = allocation, .arena = &arena, .is_exact = true};
    struct claim *claim;
    struct error err;
    json_t *out = NULL;

    arena_init(&arena);
    if (claim_parse(object, snapshot_features(snapshot), false, &arena, &claim, &err) == 0) {
        s.claim = claim;
        s.shape = shape_new(snapshot, &s.claim, 1);
        out = steer_devices(&s, spec_of(object));
        shape_free(s.shape);
    }
    arena_release(&arena);
    *out_exact = s.is_exact && out;
    return out;
}

json_t *steered_claim_spec_of(const struct snapshot *snapshot, const json_t *object,
                              const struct allocation *allocation, bool *out_exact)
{
    const struct node *node = allocation->only_node ? snapshot_find_node(snapshot, allocation->only_node) : NULL;

    return steer_claim(snapshot, node, object, allocation, out_exact);
}

json_t *steered_claim_spec(const struct snapshot *snapshot, const json_t *object, const struct allocation *allocation)
{
    bool is_exact;

    return steered_claim_spec_of(snapshot, object, allocation, &is_exact);
}
