/* Attribute values as numbers: equal numbers are equal values of equal kind, which is all that constraints ask. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

static struct gang_element element_of(enum cel_attribute_kind kind, const union cel_attribute_value *value)
{
    struct gang_element element = {.kind = kind};
    struct gs_hash h;

    if (kind == CEL_ATTR_STRING || kind == CEL_ATTR_VERSION)
        element.text = value->s;
    else
        element.number = kind == CEL_ATTR_BOOL ? value->b : value->i;
    h = gs_hash_of(element.text.ptr, element.text.len, kind);
    element.hash = gs_hash_mix(h, (uint64_t)element.number).a;
    return element;
}

static bool element_eq(const struct gang_element *a, const struct gang_element *b)
{
    return a->hash == b->hash && a->kind == b->kind && a->number == b->number && str_eq(a->text, b->text);
}

static void elements_rehash(struct gang_elements *set)
{
    size_t n_slots = set->n_slots ? set->n_slots * 2 : 256;

    free(set->slots);
    set->slots = mem_array(uint32_t, n_slots);
    set->n_slots = n_slots;
    for (size_t i = 0; i < set->n; i++) {
        size_t at = set->items[i].hash & (n_slots - 1);

        while (set->slots[at])
            at = (at + 1) & (n_slots - 1);
        set->slots[at] = (uint32_t)(i + 1);
    }
}

uint32_t gang_element(struct gang *gang, enum cel_attribute_kind kind, const union cel_attribute_value *value)
{
    struct gang_elements *set = &gang->elements;
    struct gang_element element = element_of(kind, value);
    size_t at;

    if ((set->n + 1) * 2 > set->n_slots)
        elements_rehash(set);
    at = element.hash & (set->n_slots - 1);
    while (set->slots[at]) {
        if (element_eq(&set->items[set->slots[at] - 1], &element))
            return set->slots[at] - 1;
        at = (at + 1) & (set->n_slots - 1);
    }
    mem_grow(set->items, set->n, set->cap);
    set->items[set->n++] = element;
    set->slots[at] = (uint32_t)set->n;
    return (uint32_t)(set->n - 1);
}

static int compare_elements(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static const struct gs_value *list_value(struct gang *gang, const struct attribute *attribute, struct arena *arena)
{
    struct gs_value *value = arena_new(arena, struct gs_value);
    uint32_t *elements = arena_array(arena, uint32_t, attribute->n_values);

    for (uint32_t i = 0; i < attribute->n_values; i++)
        elements[i] = gang_element(gang, attribute->kind, &attribute->list[i]);
    qsort(elements, attribute->n_values, sizeof(*elements), compare_elements);
    for (uint32_t i = 0; i < attribute->n_values; i++)
        if (i == 0 || elements[i] != elements[i - 1])
            elements[value->n++] = elements[i];
    value->elements = elements;
    return value;
}

/* Lists are compared as sets only where the feature is on; else a list is a value that equals nothing. */
const struct gs_value *gang_value(struct gang *gang, const struct attribute *attribute, struct arena *arena)
{
    bool as_sets = gang->behaviour->variant == VARIANT_EXPERIMENTAL;
    struct gs_value *value;
    uint32_t *element;
    union cel_attribute_value scalar;

    if (!attribute)
        return NULL;
    if (attribute->kind == CEL_ATTR_NONE && as_sets)
        return NULL;
    if (attribute->is_list && as_sets)
        return list_value(gang, attribute, arena);
    value = arena_new(arena, struct gs_value);
    if (attribute->kind == CEL_ATTR_NONE || attribute->is_list) {
        value->odd = true;
        return value;
    }
    if (attribute->kind == CEL_ATTR_BOOL)
        scalar.b = attribute->b;
    else if (attribute->kind == CEL_ATTR_INT)
        scalar.i = attribute->i;
    else
        scalar.s = attribute->s;
    element = arena_new(arena, uint32_t);
    *element = gang_element(gang, attribute->kind, &scalar);
    value->n = 1;
    value->elements = element;
    return value;
}
