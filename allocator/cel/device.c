/* The maps of a device, built once: domain -> id -> value for attributes and capacities. */
#include "allocator/cel/device.h"

#include "allocator/base/error.h"
#include "allocator/cel/env.h"
#include "allocator/cel/semver.h"

#include "allocator/base/banned.h"

struct builder {
    struct arena *arena;
    const struct cel_device_spec *spec;
    const struct cel_options *options;
    struct cel_device *device;
};

static void fail(struct builder *b, struct str attribute, const char *words)
{
    if (!b->device->problem)
        b->device->problem = arena_printf(b->arena, "attribute %.*s: %s", STR_FMT(attribute), words);
}

/* "d/x" is x in domain d, "x" is in the domain of the driver. */
static void split_name(const struct builder *b, struct str name, struct str *out_domain, struct str *out_id)
{
    size_t i = 0;

    while (i < name.len && name.ptr[i] != '/')
        i++;
    if (i == name.len) {
        *out_domain = b->spec->driver;
        *out_id = name;
    } else {
        *out_domain = (struct str){name.ptr, i};
        *out_id = (struct str){name.ptr + i + 1, name.len - i - 1};
    }
}

/* A map with room for `cap` texts and their fingerprints, in one piece. */
static struct cel_map *text_map(struct builder *b, size_t cap)
{
    struct cel_map *map = arena_new(b->arena, struct cel_map);

    map->texts_only = true;
    map->cap = (uint32_t)cap;
    map->fingerprints = arena_array(b->arena, uint32_t, cap);
    map->entries = arena_array(b->arena, struct cel_entry, cap);
    return map;
}

/* The last of two equal names stays. */
static void put(struct cel_map *map, struct str key, struct cel_value value)
{
    for (size_t i = 0; i < map->n; i++)
        if (str_eq(cel_str(map->entries[i].key), key)) {
            map->entries[i].value = value;
            return;
        }
    ((uint32_t *)(uintptr_t)map->fingerprints)[map->n] = cel_fingerprint(key);
    map->entries[map->n++] = (struct cel_entry){cel_text(key), value};
}

/* How many of n names are in a domain. */
static size_t count_in(const struct builder *b, struct str domain, const void *names, size_t stride, size_t n)
{
    struct str other, id;
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        split_name(b, *(const struct str *)((const char *)names + i * stride), &other, &id);
        count += str_eq(domain, other);
    }
    return count;
}

/* How many domains n names have. */
static size_t count_domains(const struct builder *b, const void *names, size_t stride, size_t n)
{
    struct str domain, id;
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        split_name(b, *(const struct str *)((const char *)names + i * stride), &domain, &id);
        count += count_in(b, domain, names, stride, i) == 0;
    }
    return count;
}

/* The map of a domain, made when it is first asked for. */
static struct cel_map *domain_of(struct builder *b, struct cel_map *outer, struct str domain, const void *names,
                                 size_t stride, size_t n)
{
    for (size_t i = 0; i < outer->n; i++)
        if (str_eq(cel_str(outer->entries[i].key), domain))
            return outer->entries[i].value.as.growing_map;
    put(outer, domain, cel_map(text_map(b, count_in(b, domain, names, stride, n))));
    return outer->entries[outer->n - 1].value.as.growing_map;
}

static struct cel_value version_value(struct builder *b, const struct cel_attribute *attribute, struct str text)
{
    struct semver *version = arena_new(b->arena, struct semver);
    struct error err = {0};

    if (semver_parse(text, false, version, &err) < 0) {
        fail(b, attribute->name, arena_printf(b->arena, "parse semantic version: %s", err.text));
        return CEL_NULL;
    }
    return (struct cel_value){.kind = CEL_V_SEMVER, .as.semver = version};
}

static struct cel_value one_value(struct builder *b, const struct cel_attribute *attribute,
                                  const union cel_attribute_value *v)
{
    switch (attribute->kind) {
    case CEL_ATTR_INT:
        return cel_int(v->i);
    case CEL_ATTR_BOOL:
        return cel_bool(v->b);
    case CEL_ATTR_STRING:
        return cel_text(v->s);
    case CEL_ATTR_VERSION:
        return version_value(b, attribute, v->s);
    case CEL_ATTR_NONE:
        break;
    }
    return CEL_NULL;
}

static bool lists_are_known(const struct cel_options *options)
{
    int release = options && options->release ? options->release : CEL_DEFAULT_RELEASE;

    return release >= 37 || (release == 36 && options->list_attributes);
}

static struct cel_value attribute_value(struct builder *b, const struct cel_attribute *attribute)
{
    struct cel_value *items;

    if (attribute->kind == CEL_ATTR_NONE || (attribute->is_list && !lists_are_known(b->options)) ||
        (!attribute->is_list && attribute->n_values != 1)) {
        fail(b, attribute->name, "unsupported attribute value");
        return CEL_NULL;
    }
    if (!attribute->is_list)
        return one_value(b, attribute, &attribute->values[0]);
    items = arena_array(b->arena, struct cel_value, attribute->n_values);
    for (size_t i = 0; i < attribute->n_values; i++)
        items[i] = one_value(b, attribute, &attribute->values[i]);
    return cel_list(items, attribute->n_values);
}

static struct cel_value attributes_value(struct builder *b)
{
    const struct cel_attribute *all = b->spec->attributes;
    size_t n = b->spec->n_attributes;
    struct cel_map *outer = text_map(b, n ? count_domains(b, &all[0].name, sizeof(*all), n) : 0), *inner;
    struct str domain, id;

    outer->has_default = true;
    for (size_t i = 0; i < n; i++) {
        split_name(b, all[i].name, &domain, &id);
        inner = domain_of(b, outer, domain, &all[0].name, sizeof(*all), n);
        put(inner, id, attribute_value(b, &all[i]));
    }
    return cel_map(outer);
}

static struct cel_value capacities_value(struct builder *b)
{
    const struct cel_capacity *all = b->spec->capacities;
    size_t n = b->spec->n_capacities;
    struct cel_map *outer = text_map(b, n ? count_domains(b, &all[0].name, sizeof(*all), n) : 0), *inner;
    struct str domain, id;

    outer->has_default = true;
    for (size_t i = 0; i < n; i++) {
        struct quantity *q = arena_new(b->arena, struct quantity);

        *q = quantity_copy(&all[i].value, b->arena);
        split_name(b, all[i].name, &domain, &id);
        inner = domain_of(b, outer, domain, &all[0].name, sizeof(*all), n);
        inner->unwraps = true;
        put(inner, id, (struct cel_value){.kind = CEL_V_QUANTITY, .as.quantity = q});
    }
    return cel_map(outer);
}

uint32_t cel_shortcut_fingerprint(int field, struct str domain, struct str id)
{
    return cel_fingerprint(domain) * 31 + cel_fingerprint(id) * 2 + (field == DEVICE_CAPACITY);
}

/* One shortcut per value of a field, from its finished maps. */
static void add_shortcuts(struct cel_device *device, int field)
{
    const struct cel_map *domains = device->fields[field].as.map;

    for (size_t i = 0; i < domains->n; i++) {
        const struct cel_map *ids = domains->entries[i].value.as.map;
        struct str domain = cel_str(domains->entries[i].key);

        for (size_t j = 0; j < ids->n; j++) {
            struct str id = cel_str(ids->entries[j].key);

            device->fingerprints[device->n_shortcuts] = cel_shortcut_fingerprint(field, domain, id);
            device->shortcuts[device->n_shortcuts++] = (struct cel_shortcut){domain, id, ids->entries[j].value};
        }
    }
}

const struct cel_device *cel_device_prepare(const struct cel_device_spec *spec, const struct cel_options *options,
                                            struct arena *arena)
{
    struct cel_device *device = arena_new(arena, struct cel_device);
    struct builder b = {arena, spec, options, device};
    size_t n = spec->n_attributes + spec->n_capacities;
    struct cel_map *map;

    device->fingerprints = arena_array(arena, uint32_t, n); /* beside the device: what most evaluations touch */
    device->shortcuts = arena_array(arena, struct cel_shortcut, n);
    device->fields[DEVICE_DRIVER] = cel_text(spec->driver);
    device->fields[DEVICE_ATTRIBUTES] = attributes_value(&b);
    device->fields[DEVICE_CAPACITY] = capacities_value(&b);
    device->fields[DEVICE_SHARED] = cel_bool(spec->allow_multiple_allocations);
    add_shortcuts(device, DEVICE_ATTRIBUTES);
    add_shortcuts(device, DEVICE_CAPACITY);
    map = text_map(&b, DEVICE_FIELDS);
    for (int i = 0; i < DEVICE_FIELDS; i++)
        put(map, str_of(cel_device_field_names[i]), device->fields[i]);
    device->value = cel_map(map);
    return device;
}
