/* Maps: entries in order of insertion, a hash table beside them when there are many.
 *
 * The real implementation uses the language's own maps, so two keys are the same entry only when kind and value are
 * identical; a lookup then tries a number as the other kinds of number too. */
#include "allocator/cel/value.h"

#include <math.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/invariant.h"
#include "allocator/cel/eval.h"

#include "allocator/base/banned.h"

#define INDEX_FROM 9 /* entries from which a table pays */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u ^ n;

    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;

        memcpy(&word, p, 8);
        h = mix(h, word);
    }
    for (; n; p++, n--)
        h = mix(h, (unsigned char)*p);
    return h;
}

static uint64_t hash_key(struct cel_value key)
{
    uint64_t bits;

    switch ((enum cel_kind)key.kind) {
    case CEL_V_NULL:
        return 1;
    case CEL_V_BOOL:
        return mix(2, key.as.b);
    case CEL_V_DOUBLE:
        key.as.d += 0.0; /* minus zero is the same key as zero */
        memcpy(&bits, &key.as.d, sizeof(bits));
        return mix(3, bits);
    case CEL_V_STRING:
    case CEL_V_BYTES:
        return hash_bytes(key.as.s, key.n);
    case CEL_V_TYPE:
        return hash_bytes(cel_type_name(key.as.type), strlen(cel_type_name(key.as.type)));
    case CEL_V_INT:
    case CEL_V_UINT:
    case CEL_V_TIMESTAMP:
    case CEL_V_DURATION:
        return mix(key.kind, key.as.u);
    default:
        return mix(key.kind, (uint64_t)(uintptr_t)key.as.s);
    }
}

/* Identity as the real implementation's maps know it: values by value, objects by address. */
static bool same_key(struct cel_value a, struct cel_value b)
{
    if (a.kind != b.kind)
        return false;
    switch ((enum cel_kind)a.kind) {
    case CEL_V_NULL:
        return true;
    case CEL_V_BOOL:
        return a.as.b == b.as.b;
    case CEL_V_DOUBLE:
        return a.as.d == b.as.d;
    case CEL_V_STRING:
        return a.n == b.n && (!a.n || memcmp(a.as.s, b.as.s, a.n) == 0);
    case CEL_V_TYPE:
        return strcmp(cel_type_name(a.as.type), cel_type_name(b.as.type)) == 0;
    case CEL_V_INT:
    case CEL_V_UINT:
    case CEL_V_DURATION:
        return a.as.u == b.as.u;
    case CEL_V_TIMESTAMP:
        return a.as.i == b.as.i && a.n == b.n && a.zone == b.zone;
    default:
        return a.as.s == b.as.s && a.n == b.n;
    }
}

bool cel_is_hashable(struct cel_value v)
{
    return v.kind != CEL_V_BYTES && v.kind != CEL_V_SEMVER && v.kind != CEL_V_FORMAT;
}

size_t cel_map_slot(const struct cel_map *map, struct cel_value key)
{
    if (!map->index) {
        for (size_t i = 0; i < map->n; i++)
            if (same_key(map->entries[i].key, key))
                return i;
        return SIZE_MAX;
    }
    for (size_t h = hash_key(key) & (map->index_size - 1); map->index[h]; h = (h + 1) & (map->index_size - 1))
        if (same_key(map->entries[map->index[h] - 1].key, key))
            return map->index[h] - 1;
    return SIZE_MAX;
}

static void index_put(struct cel_map *map, size_t i)
{
    size_t h = hash_key(map->entries[i].key) & (map->index_size - 1);

    while (map->index[h])
        h = (h + 1) & (map->index_size - 1);
    map->index[h] = (uint32_t)i + 1;
}

static void index_build(struct cel_map *map, struct arena *arena, size_t cap)
{
    map->index_size = 16;
    while (map->index_size < cap * 2)
        map->index_size *= 2;
    map->index = arena_array(arena, uint32_t, map->index_size);
    for (size_t i = 0; i < map->n; i++)
        index_put(map, i);
}

struct cel_map *cel_map_new(struct arena *arena, size_t cap)
{
    struct cel_map *map = arena_new(arena, struct cel_map);

    INVARIANT(cap <= UINT32_MAX / 4);
    map->cap = (uint32_t)cap;
    map->entries = cap ? arena_array(arena, struct cel_entry, cap) : NULL;
    return map;
}

void cel_map_put(struct cel_map *map, struct arena *arena, struct cel_value key, struct cel_value value)
{
    size_t i = cel_map_slot(map, key);

    if (i != SIZE_MAX) {
        map->entries[i].value = value;
        return;
    }
    if (map->n == map->cap) {
        struct cel_entry *entries;

        map->cap = map->cap ? map->cap * 2 : 8;
        entries = arena_array(arena, struct cel_entry, map->cap);
        if (map->n)
            memcpy(entries, map->entries, map->n * sizeof(*entries));
        map->entries = entries;
        map->index = NULL;
    }
    map->entries[map->n++] = (struct cel_entry){key, value};
    if (map->index)
        index_put(map, map->n - 1);
    else if (map->n >= INDEX_FROM)
        index_build(map, arena, map->cap);
}

void cel_map_remove(struct cel_map *map, struct cel_value key)
{
    size_t i = cel_map_slot(map, key);

    if (i == SIZE_MAX)
        return;
    memmove(&map->entries[i], &map->entries[i + 1], (map->n - i - 1) * sizeof(*map->entries));
    map->n--;
    if (map->index) {
        memset(map->index, 0, map->index_size * sizeof(*map->index));
        for (i = 0; i < map->n; i++)
            index_put(map, i);
    }
}

bool cel_double_to_int(double d, int64_t *out)
{
    if (!(d >= -0x1p63 && d < 0x1p63) || (double)(int64_t)d != d)
        return false;
    *out = (int64_t)d;
    return true;
}

bool cel_double_to_uint(double d, uint64_t *out)
{
    if (!(d >= 0 && d < 0x1p64) || (double)(uint64_t)d != d)
        return false;
    *out = (uint64_t)d;
    return true;
}

/* The entry of a number written as another kind of number. */
static size_t slot_of_number(const struct cel_map *map, struct cel_value key)
{
    int64_t i;
    uint64_t u;
    size_t at = SIZE_MAX;

    if (key.kind == CEL_V_DOUBLE) {
        if (cel_double_to_int(key.as.d, &i))
            at = cel_map_slot(map, cel_int(i));
        if (at == SIZE_MAX && cel_double_to_uint(key.as.d, &u))
            at = cel_map_slot(map, cel_uint(u));
    } else if (key.kind == CEL_V_INT && key.as.i >= 0) {
        at = cel_map_slot(map, cel_uint((uint64_t)key.as.i));
    } else if (key.kind == CEL_V_UINT && key.as.u <= INT64_MAX) {
        at = cel_map_slot(map, cel_int((int64_t)key.as.u));
    }
    return at;
}

/* ---- maps of a device: few entries with texts as keys ---- */

static uint64_t load_bytes(const char *p, size_t n)
{
    uint64_t word = 0;

    memcpy(&word, p, n);
    return word;
}

uint32_t cel_fingerprint(struct str key)
{
    uint64_t h = key.len;

    if (key.len >= 8)
        h = mix(mix(h, load_bytes(key.ptr, 8)), load_bytes(key.ptr + key.len - 8, 8));
    else if (key.len)
        h = mix(h, load_bytes(key.ptr, key.len));
    return (uint32_t)(h ^ h >> 32);
}

static const struct cel_map empty_map = {.texts_only = true};

static bool find_text(const struct cel_map *map, struct str key, uint32_t fingerprint, struct cel_value *out)
{
    for (size_t i = 0; i < map->n; i++)
        if (map->fingerprints[i] == fingerprint && str_eq(cel_str(map->entries[i].key), key)) {
            *out = map->entries[i].value;
            return true;
        }
    return false;
}

bool cel_map_lookup_text(const struct cel_map *map, struct str key, uint32_t fingerprint, struct cel_value *out)
{
    if (find_text(map, key, fingerprint, out))
        return true;
    if (map->has_default)
        *out = cel_map(&empty_map);
    return map->has_default;
}

static bool find_loose_text(const struct cel_map *map, struct cel_value key, struct cel_value *out)
{
    for (int depth = 0; map->unwraps && key.kind == CEL_V_OPTIONAL && key.as.content && depth < 100; depth++)
        key = *key.as.content;
    return key.kind == CEL_V_STRING && find_text(map, cel_str(key), cel_fingerprint(cel_str(key)), out);
}

/* ---- lookup ---- */

bool cel_map_find(struct cel_eval *e, const struct cel_map *map, struct cel_value key, struct cel_value *out)
{
    size_t i;

    if (map->texts_only)
        return find_loose_text(map, key, out);
    if (!map->n)
        return false;
    if (!cel_is_hashable(key)) {
        cel_fatal(e, "internal error: runtime error: hash of unhashable type");
        return false;
    }
    i = cel_map_slot(map, key);
    if (i == SIZE_MAX)
        i = slot_of_number(map, key);
    if (i == SIZE_MAX)
        return false;
    *out = map->entries[i].value;
    return true;
}

bool cel_map_lookup(struct cel_eval *e, const struct cel_map *map, struct cel_value key, struct cel_value *out)
{
    if (cel_map_find(e, map, key, out))
        return true;
    if (!map->has_default || e->fatal)
        return false;
    *out = cel_map(&empty_map);
    return true;
}
