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

static struct cel_map *text_map(struct builder *b, size_t cap)
{
    struct cel_map *map = cel_map_new(b->arena, cap);

    map->texts_only = true;
    return map;
}

/* Few entries with texts as keys: the last of two equal names stays. */
static void put(struct cel_map *map, struct str key, struct cel_value value)
{
    for (size_t i = 0; i < map->n; i++)
        if (str_eq(cel_str(map->entries[i].key), key)) {
            map->entries[i].value = value;
            return;
        }
    map->entries[map->n++] = (struct cel_entry){cel_text(key), value};
}

static struct cel_map *domain_of(struct builder *b, struct cel_map *outer, struct str domain, size_t cap, bool unwraps)
{
    struct cel_map *inner;

    for (size_t i = 0; i < outer->n; i++)
        if (str_eq(cel_str(outer->entries[i].key), domain))
            return outer->entries[i].value.as.growing_map;
    inner = text_map(b, cap);
    inner->unwraps = unwraps;
    outer->entries[outer->n++] = (struct cel_entry){cel_text(domain), cel_map(inner)};
    return inner;
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
    size_t n = b->spec->n_attributes;
    struct cel_map *outer = text_map(b, n);
    struct str domain, id;

    outer->has_default = true;
    for (size_t i = 0; i < n; i++) {
        split_name(b, b->spec->attributes[i].name, &domain, &id);
        put(domain_of(b, outer, domain, n, false), id, attribute_value(b, &b->spec->attributes[i]));
    }
    return cel_map(outer);
}

static struct cel_value capacities_value(struct builder *b)
{
    size_t n = b->spec->n_capacities;
    struct cel_map *outer = text_map(b, n);
    struct str domain, id;

    outer->has_default = true;
    for (size_t i = 0; i < n; i++) {
        struct quantity *q = arena_new(b->arena, struct quantity);

        *q = b->spec->capacities[i].value;
        split_name(b, b->spec->capacities[i].name, &domain, &id);
        put(domain_of(b, outer, domain, n, true), id, (struct cel_value){.kind = CEL_V_QUANTITY, .as.quantity = q});
    }
    return cel_map(outer);
}

const struct cel_device *cel_device_prepare(const struct cel_device_spec *spec, const struct cel_options *options,
                                            struct arena *arena)
{
    struct cel_device *device = arena_new(arena, struct cel_device);
    struct builder b = {arena, spec, options, device};
    struct cel_map *map = text_map(&b, DEVICE_FIELDS);
    const struct cel_value values[DEVICE_FIELDS] = {
        [DEVICE_DRIVER] = cel_text(spec->driver),
        [DEVICE_ATTRIBUTES] = attributes_value(&b),
        [DEVICE_CAPACITY] = capacities_value(&b),
        [DEVICE_SHARED] = cel_bool(spec->allow_multiple_allocations),
    };

    for (int i = 0; i < DEVICE_FIELDS; i++)
        map->entries[map->n++] = (struct cel_entry){cel_text(str_of(cel_device_field_names[i])), values[i]};
    device->value = cel_map(map);
    return device;
}
