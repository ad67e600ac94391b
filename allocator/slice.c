/* ResourceSlices: from JSON to struct slice, in the shapes v1, v1beta2 and v1beta1 (section 1.9 of the semantics). */
#include "allocator/internal.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

/* Whatever an object claims to hold: beyond this it is no object of a cluster. */
#define MAX_DEVICES 4096
#define MAX_ENTRIES 4096

struct slice *slice_ref(struct slice *slice)
{
    atomic_fetch_add_explicit(&slice->refs, 1, memory_order_relaxed);
    return slice;
}

void slice_unref(struct slice *slice)
{
    if (!slice || atomic_fetch_sub_explicit(&slice->refs, 1, memory_order_acq_rel) != 1)
        return;
    arena_release(&slice->arena);
    free(slice);
}

static void slice_freep(struct slice **slice)
{
    slice_unref(*slice);
}

/* ---- attributes ---- */

static const struct attribute_field {
    const char *field;
    enum cel_attribute_kind kind;
    bool is_list;
} attribute_fields[] = {
    /* in the order in which the scheduler looks for the first one present (6.4) */
    {"ints", CEL_ATTR_INT, true},         {"bools", CEL_ATTR_BOOL, true},       {"strings", CEL_ATTR_STRING, true},
    {"versions", CEL_ATTR_VERSION, true}, {"int", CEL_ATTR_INT, false},         {"bool", CEL_ATTR_BOOL, false},
    {"string", CEL_ATTR_STRING, false},   {"version", CEL_ATTR_VERSION, false},
};

static int attribute_value(const json_t *json, enum cel_attribute_kind kind, struct arena *arena,
                           union cel_attribute_value *out, struct error *err)
{
    if (kind == CEL_ATTR_INT && json_is_integer(json))
        out->i = json_integer_value(json);
    else if (kind == CEL_ATTR_BOOL && json_is_boolean(json))
        out->b = json_is_true(json);
    else if ((kind == CEL_ATTR_STRING || kind == CEL_ATTR_VERSION) && json_is_string(json))
        out->s = (struct str){arena_strndup(arena, json_string_value(json), json_string_length(json)),
                              json_string_length(json)};
    else
        return error_set(err, ERR_INVALID, "has a value of another type");
    return 0;
}

static int attribute_list(const json_t *json, const struct attribute_field *field, struct arena *arena,
                          struct attribute *out, struct error *err)
{
    union cel_attribute_value *values;

    if (!json_is_array(json))
        return error_field(err, field->field, "must be a list");
    if (json_array_size(json) > MAX_ENTRIES)
        return error_field(err, field->field, "has too many values");
    values = arena_array(arena, union cel_attribute_value, json_array_size(json));
    for (size_t i = 0; i < json_array_size(json); i++)
        if (attribute_value(json_array_get(json, i), field->kind, arena, &values[i], err) < 0)
            return error_in(err, "%s[%zu]", field->field, i);
    out->n_values = (uint32_t)json_array_size(json);
    out->list = values;
    return 0;
}

static int attribute_scalar(const json_t *json, const struct attribute_field *field, struct arena *arena,
                            struct attribute *out, struct error *err)
{
    union cel_attribute_value value;

    if (attribute_value(json, field->kind, arena, &value, err) < 0)
        return error_in(err, "%s", field->field);
    out->n_values = 1;
    if (field->kind == CEL_ATTR_INT)
        out->i = value.i;
    else if (field->kind == CEL_ATTR_BOOL)
        out->b = value.b;
    else
        out->s = value.s;
    return 0;
}

static void digest_value(struct digest *digest, enum cel_attribute_kind kind, const union cel_attribute_value *value)
{
    if (kind == CEL_ATTR_INT)
        digest_add(digest, (uint64_t)value->i);
    else if (kind == CEL_ATTR_BOOL)
        digest_add(digest, value->b);
    else
        digest_text(digest, value->s.ptr, value->s.len);
}

static uint64_t attribute_hash(const struct attribute *attribute)
{
    struct digest digest = {0};

    digest_add(&digest, (uint64_t)attribute->kind * 2 + attribute->is_list);
    digest_add(&digest, attribute->n_values);
    if (attribute->is_list)
        for (size_t i = 0; i < attribute->n_values; i++)
            digest_value(&digest, attribute->kind, &attribute->list[i]);
    else if (attribute->kind == CEL_ATTR_INT)
        digest_add(&digest, (uint64_t)attribute->i);
    else if (attribute->kind == CEL_ATTR_BOOL)
        digest_add(&digest, attribute->b);
    else if (attribute->kind != CEL_ATTR_NONE)
        digest_text(&digest, attribute->s.ptr, attribute->s.len);
    return digest.lo;
}

static int attribute_parse(const char *key, const json_t *json, const struct load *load, struct attribute *out,
                           struct error *err)
{
    size_t n_given = 0;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    *out = (struct attribute){.key = load_symbol(load, key), .kind = CEL_ATTR_NONE};
    for (size_t i = 0; i < ARRAY_SIZE(attribute_fields); i++) {
        const struct attribute_field *field = &attribute_fields[i];
        const json_t *value = member(json, field->field);

        if (!value || (field->is_list && json_array_size(value) == 0 && !load->validate))
            continue;
        if (n_given++)
            continue;
        out->kind = field->kind;
        out->is_list = field->is_list;
        if ((field->is_list ? attribute_list : attribute_scalar)(value, field, load->arena, out, err) < 0)
            return -1;
    }
    if (load->validate && n_given != 1)
        return error_set(err, ERR_INVALID, "must have exactly one value");
    out->hash = attribute_hash(out);
    return 0;
}

static int attribute_order(const void *a, const void *b)
{
    return strcmp(((const struct attribute *)a)->key, ((const struct attribute *)b)->key);
}

static int read_attributes(const json_t *json, const struct load *load, struct device *device, struct error *err)
{
    const json_t *map, *value;
    struct attribute *attributes;
    const char *key;
    size_t n = 0;

    if (read_object(json, "attributes", &map, err) < 0)
        return -1;
    if (json_object_size(map) > MAX_ENTRIES)
        return error_field(err, "attributes", "has too many entries");
    attributes = arena_array(load->arena, struct attribute, json_object_size(map));
    json_object_foreach((json_t *)map, key, value)
    {
        if (attribute_parse(key, value, load, &attributes[n++], err) < 0)
            return error_in(err, "attributes[%s]", key);
    }
    qsort(attributes, n, sizeof(*attributes), attribute_order);
    device->attributes = attributes;
    device->n_attributes = (uint16_t)n;
    return 0;
}

/* ---- capacity ---- */

static int optional_quantity(const json_t *json, const char *key, struct arena *arena, bool *out_has,
                             struct quantity *out, struct error *err)
{
    const json_t *value = member(json, key);

    *out_has = value != NULL;
    return value && read_quantity(value, arena, out, err) < 0 ? error_in(err, "%s", key) : 0;
}

static int read_valid_values(const json_t *json, struct arena *arena, struct request_policy *out, struct error *err)
{
    const json_t *array;
    struct quantity *values;

    if (read_array(json, "validValues", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_ENTRIES)
        return error_field(err, "validValues", "has too many entries");
    values = arena_array(arena, struct quantity, json_array_size(array));
    for (size_t i = 0; i < json_array_size(array); i++)
        if (read_quantity(json_array_get(array, i), arena, &values[i], err) < 0)
            return error_in(err, "validValues[%zu]", i);
    out->valid = values;
    out->n_valid = json_array_size(array);
    return 0;
}

static int read_range(const json_t *json, struct arena *arena, struct request_policy *out, struct error *err)
{
    const json_t *range;
    bool has_min;

    if (read_object(json, "validRange", &range, err) < 0)
        return -1;
    if (!range)
        return 0;
    out->has_range = true;
    if (optional_quantity(range, "min", arena, &has_min, &out->min, err) < 0 ||
        optional_quantity(range, "max", arena, &out->has_max, &out->max, err) < 0 ||
        optional_quantity(range, "step", arena, &out->has_step, &out->step, err) < 0)
        return error_in(err, "validRange");
    out->has_min = has_min;
    return 0;
}

static int read_policy(const json_t *json, struct arena *arena, struct capacity *capacity, struct error *err)
{
    struct request_policy *out;
    const json_t *policy;

    if (read_object(json, "requestPolicy", &policy, err) < 0)
        return -1;
    if (!policy)
        return 0;
    out = arena_new(arena, struct request_policy);
    capacity->policy = out;
    if (optional_quantity(policy, "default", arena, &out->has_default, &out->fallback, err) < 0 ||
        read_valid_values(policy, arena, out, err) < 0 || read_range(policy, arena, out, err) < 0)
        return error_in(err, "requestPolicy");
    return 0;
}

void digest_quantity(struct digest *digest, const struct quantity *q)
{
    struct buf text = {0};

    digest_add(digest, (uint64_t)q->is_dec << 32 | (uint32_t)q->dec_scale);
    if (!q->big) {
        digest_add(digest, (uint64_t)q->value);
        digest_add(digest, (uint64_t)(uint32_t)q->scale * 4 + q->format);
    } else {
        quantity_format_to(q, &text);
        digest_text(digest, buf_str(&text), text.len);
        buf_release(&text);
    }
    if (q->text)
        digest_text(digest, q->text, strlen(q->text));
}

static void digest_policy(struct digest *digest, const struct request_policy *p)
{
    digest_add(digest, (uint64_t)p->has_default << 1 | (uint64_t)p->has_range << 2 | (uint64_t)p->has_min << 3 |
                           (uint64_t)p->has_max << 4 | (uint64_t)p->has_step << 5 | (uint64_t)p->n_valid << 6);
    digest_quantity(digest, &p->fallback);
    for (size_t i = 0; i < p->n_valid; i++)
        digest_quantity(digest, &p->valid[i]);
    digest_quantity(digest, &p->min);
    digest_quantity(digest, &p->max);
    digest_quantity(digest, &p->step);
}

static uint64_t capacity_hash(const struct capacity *c)
{
    struct digest digest = {0};

    digest_text(&digest, c->key, strlen(c->key));
    digest_quantity(&digest, &c->value);
    if (c->policy)
        digest_policy(&digest, c->policy);
    return digest.lo;
}

static int capacity_parse(const char *key, const json_t *json, const struct load *load, struct capacity *out,
                          struct error *err)
{
    bool has_value;

    *out = (struct capacity){.key = load_symbol(load, key)};
    /* v1alpha3 wrote the bare amount */
    if (!json_is_object(json)) {
        if (read_quantity(json, load->arena, &out->value, err) < 0)
            return -1;
    } else if (optional_quantity(json, "value", load->arena, &has_value, &out->value, err) < 0 ||
               read_policy(json, load->arena, out, err) < 0) {
        return -1;
    } else if (!has_value && load->validate) {
        return error_field(err, "value", "is required");
    }
    out->hash = capacity_hash(out);
    return 0;
}

static int capacity_order(const void *a, const void *b)
{
    return strcmp(((const struct capacity *)a)->key, ((const struct capacity *)b)->key);
}

static int read_capacities(const json_t *json, const struct load *load, struct device *device, struct error *err)
{
    const json_t *map, *value;
    struct capacity *capacities;
    const char *key;
    size_t n = 0;

    if (read_object(json, "capacity", &map, err) < 0)
        return -1;
    if (json_object_size(map) > MAX_ENTRIES)
        return error_field(err, "capacity", "has too many entries");
    capacities = arena_array(load->arena, struct capacity, json_object_size(map));
    json_object_foreach((json_t *)map, key, value)
    {
        if (capacity_parse(key, value, load, &capacities[n++], err) < 0)
            return error_in(err, "capacity[%s]", key);
    }
    qsort(capacities, n, sizeof(*capacities), capacity_order);
    device->capacities = capacities;
    device->n_capacities = (uint16_t)n;
    return 0;
}

/* ---- counters ---- */

static int counter_order(const void *a, const void *b)
{
    return strcmp(((const struct counter *)a)->name, ((const struct counter *)b)->name);
}

static int read_counters(const json_t *json, const struct load *load, const struct counter **out, size_t *out_n,
                         struct error *err)
{
    const json_t *map, *value;
    struct counter *counters;
    const char *name;
    size_t n = 0;

    if (read_object(json, "counters", &map, err) < 0)
        return -1;
    if (json_object_size(map) > MAX_ENTRIES)
        return error_field(err, "counters", "has too many entries");
    counters = arena_array(load->arena, struct counter, json_object_size(map));
    json_object_foreach((json_t *)map, name, value)
    {
        const json_t *amount = json_is_object(value) ? member(value, "value") : NULL;

        counters[n].name = arena_strdup(load->arena, name);
        if (amount && read_quantity(amount, load->arena, &counters[n].value, err) < 0)
            return error_in(err, "counters[%s].value", name);
        if (!amount && load->validate) {
            error_set(err, ERR_INVALID, "is required");
            return error_in(err, "counters[%s].value", name);
        }
        n++;
    }
    qsort(counters, n, sizeof(*counters), counter_order);
    *out = counters;
    *out_n = n;
    return 0;
}

static int consumption_parse(const json_t *json, const struct load *load, struct consumption *out, struct error *err)
{
    struct string_list groups;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "counterSet", load->arena, "", &out->set, err) < 0 ||
        read_counters(json, load, &out->counters, &out->n_counters, err) < 0 ||
        read_texts(json, "compatibilityGroups", load->arena, &groups, err) < 0)
        return -1;
    out->groups = groups.items;
    out->n_groups = groups.n;
    return 0;
}

static int read_consumptions(const json_t *json, const struct load *load, struct device *device, struct error *err)
{
    const json_t *array;
    struct consumption *consumes;

    if (read_array(json, "consumesCounters", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_ENTRIES)
        return error_field(err, "consumesCounters", "has too many entries");
    consumes = arena_array(load->arena, struct consumption, json_array_size(array));
    for (size_t i = 0; i < json_array_size(array); i++)
        if (consumption_parse(json_array_get(array, i), load, &consumes[i], err) < 0)
            return error_in(err, "consumesCounters[%zu]", i);
    device->consumes = consumes;
    device->n_consumes = (uint16_t)json_array_size(array);
    return 0;
}

static int read_counter_sets(const json_t *spec, const struct load *load, struct slice *slice, struct error *err)
{
    const json_t *array;
    struct counter_set *sets;

    if (read_array(spec, "sharedCounters", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_ENTRIES)
        return error_field(err, "sharedCounters", "has too many entries");
    sets = arena_array(load->arena, struct counter_set, json_array_size(array));
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);

        if (read_text(item, "name", load->arena, "", &sets[i].name, err) < 0 ||
            read_counters(item, load, &sets[i].counters, &sets[i].n_counters, err) < 0)
            return error_in(err, "sharedCounters[%zu]", i);
    }
    slice->sets = sets;
    slice->n_sets = json_array_size(array);
    slice->has_counter_sets = slice->n_sets > 0;
    return 0;
}

/* ---- devices ---- */

/* nodeName, nodeSelector and allNodes, of a slice or of a device. */
static int read_node_selection(const json_t *json, struct arena *arena, const char **out_name, bool *out_all,
                               const struct node_selector **out_selector, struct error *err)
{
    const json_t *selector;

    if (read_text(json, "nodeName", arena, NULL, out_name, err) < 0 || read_bool(json, "allNodes", out_all, err) < 0 ||
        read_object(json, "nodeSelector", &selector, err) < 0)
        return -1;
    if (*out_name && !**out_name)
        *out_name = NULL;
    *out_selector = selector ? node_selector_parse(selector, arena) : NULL;
    return 0;
}

static int read_taint_list(const json_t *json, const struct load *load, struct device *device, struct error *err)
{
    size_t n = 0;

    if (read_taints(json, "taints", load, &device->taints, &n, err) < 0)
        return -1;
    if (n > MAX_ENTRIES)
        return error_field(err, "taints", "has too many entries");
    device->n_taints = (uint16_t)n;
    return 0;
}

static struct digest device_digest(const struct device *device)
{
    struct digest digest = {0};

    digest_add(&digest, device->multi);
    for (size_t i = 0; i < device->n_attributes; i++) {
        digest_text(&digest, device->attributes[i].key, strlen(device->attributes[i].key));
        digest_add(&digest, device->attributes[i].hash);
    }
    for (size_t i = 0; i < device->n_capacities; i++)
        digest_add(&digest, device->capacities[i].hash);
    return digest;
}

static int device_parse(const json_t *json, const struct load *load, struct device *out, struct error *err)
{
    const json_t *basic;

    if (!json_is_object(json))
        return error_set(err, ERR_INVALID, "must be an object");
    if (read_text(json, "name", load->arena, "", &out->name, err) < 0 || read_object(json, "basic", &basic, err) < 0)
        return -1;
    json = basic ? basic : json; /* v1beta1 */
    if (read_attributes(json, load, out, err) < 0 || read_capacities(json, load, out, err) < 0 ||
        read_consumptions(json, load, out, err) < 0 || read_taint_list(json, load, out, err) < 0 ||
        read_node_selection(json, load->arena, &out->node_name, &out->all_nodes, &out->selector, err) < 0 ||
        read_bool(json, "bindsToNode", &out->binds_to_node, err) < 0 ||
        read_bool(json, "allowMultipleAllocations", &out->multi, err) < 0 ||
        read_texts(json, "bindingConditions", load->arena, &out->binding, err) < 0 ||
        read_texts(json, "bindingFailureConditions", load->arena, &out->binding_failure, err) < 0)
        return basic ? error_in(err, "basic") : -1;
    out->digest = device_digest(out);
    return 0;
}

static bool names_groups(const struct device *device)
{
    for (size_t i = 0; i < device->n_consumes; i++)
        if (device->consumes[i].n_groups)
            return true;
    return false;
}

static int read_devices(const json_t *spec, const struct load *load, struct slice *slice, struct error *err)
{
    const json_t *array;
    struct device *devices;

    if (read_array(spec, "devices", &array, err) < 0)
        return -1;
    if (json_array_size(array) > MAX_DEVICES)
        return error_field(err, "devices", "has too many entries");
    devices = arena_array(load->arena, struct device, json_array_size(array));
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (device_parse(json_array_get(array, i), load, &devices[i], err) < 0)
            return error_in(err, "devices[%zu]", i);
        slice->has_binding = slice->has_binding || devices[i].binding.items;
        slice->has_groups = slice->has_groups || names_groups(&devices[i]);
    }
    slice->devices = devices;
    slice->n_devices = json_array_size(array);
    return 0;
}

/* ---- the slice ---- */

static int read_pool(const json_t *spec, const struct load *load, struct slice *slice, struct error *err)
{
    const json_t *pool;

    if (read_object(spec, "pool", &pool, err) < 0)
        return -1;
    if (read_text(pool, "name", load->arena, "", &slice->pool, err) < 0 ||
        read_int(pool, "generation", &slice->generation, err) < 0 ||
        read_int(pool, "resourceSliceCount", &slice->count, err) < 0)
        return error_in(err, "pool");
    return 0;
}

static int spec_parse(const json_t *spec, const struct load *load, struct slice *slice, struct error *err)
{
    const char *driver;

    if (read_text(spec, "driver", load->arena, "", &driver, err) < 0 || read_pool(spec, load, slice, err) < 0 ||
        read_node_selection(spec, load->arena, &slice->node_name, &slice->all_nodes, &slice->selector, err) < 0 ||
        read_bool(spec, "perDeviceNodeSelection", &slice->per_device, err) < 0 ||
        read_devices(spec, load, slice, err) < 0 || read_counter_sets(spec, load, slice, err) < 0 ||
        read_texts(spec, "skipNodeOperations", load->arena, &slice->skip_node_operations, err) < 0)
        return -1;
    slice->has_per_device = member(spec, "perDeviceNodeSelection") != NULL;
    slice->driver = load_symbol(load, driver);
    return 0;
}

/* ---- memory: 10,000 slices are in it at once, so each takes one chunk of about its size ---- */

static size_t attributes_need(const json_t *map)
{
    size_t need = json_object_size(map) * sizeof(struct attribute);
    const json_t *attribute, *value;
    const char *key;

    json_object_foreach((json_t *)map, key, attribute)
    {
        const char *field;

        json_object_foreach((json_t *)attribute, field, value)
        {
            need += json_is_string(value) ? json_string_length(value) + 1 : 0;
            need += json_array_size(value) * (sizeof(union cel_attribute_value) + 16);
        }
    }
    return need;
}

static size_t device_need(const json_t *device)
{
    const json_t *basic = member(device, "basic"), *json = basic ? basic : device, *item;
    size_t need = sizeof(struct device) + 32 + attributes_need(member(json, "attributes")), i;
    const char *key;

    json_object_foreach((json_t *)member(json, "capacity"), key, item) need +=
        sizeof(struct capacity) + (member(item, "requestPolicy") ? sizeof(struct request_policy) : 0);
    json_array_foreach(member(json, "consumesCounters"), i, item) need +=
        sizeof(struct consumption) + 32 + json_object_size(member(item, "counters")) * (sizeof(struct counter) + 16);
    need += json_array_size(member(json, "taints")) * (sizeof(struct taint) + 64);
    return need + json_array_size(member(json, "bindingConditions")) * 64;
}

static size_t memory_need(const json_t *object)
{
    const json_t *spec = member(object, "spec"), *item;
    size_t need = 512, i;

    json_array_foreach(member(spec, "devices"), i, item) need += device_need(item);
    json_array_foreach(member(spec, "sharedCounters"), i, item) need +=
        sizeof(struct counter_set) + 32 + json_object_size(member(item, "counters")) * (sizeof(struct counter) + 16);
    return need;
}

int slice_parse(const json_t *object, const struct load *outer, struct slice **out, struct error *err)
{
    CLEANUP(slice) *slice = mem_new(struct slice);
    struct load load = *outer;
    const json_t *spec;

    atomic_init(&slice->refs, 1);
    load.arena = &slice->arena;
    arena_reserve(load.arena, memory_need(object));
    if (read_name(object, load.arena, &slice->name, err) < 0 || read_object(object, "spec", &spec, err) < 0)
        return -1;
    if (spec_parse(spec, &load, slice, err) < 0 || (load.validate && slice_check(slice, &load, err) < 0))
        return error_in(err, "spec");
    *out = TAKE(slice);
    return 0;
}
