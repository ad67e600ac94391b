/* allocator/cel/value.h - values at run time: 16 bytes, by value, pointing into the scratch arena or the device.
 *
 * Errors are values, so that `&&`, `||` and the macros can look at them. Nothing here owns memory. Pointers that a
 * value carries are never NULL, except those of empty texts and lists. */
#ifndef QUEUED_CEL_VALUE_H
#define QUEUED_CEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/quantity.h"
#include "allocator/base/str.h"
#include "allocator/cel/type.h"

struct arena;
struct cel_concat;
struct cel_eval;
struct cel_growing;
struct cel_map;
struct cidr;
struct ip;
struct named_format;
struct semver;
struct url;

enum cel_kind {
    CEL_V_ERROR,
    CEL_V_NULL,
    CEL_V_BOOL,
    CEL_V_INT,
    CEL_V_UINT,
    CEL_V_DOUBLE,
    CEL_V_STRING,
    CEL_V_BYTES,
    CEL_V_TIMESTAMP,
    CEL_V_DURATION,
    CEL_V_TYPE,
    CEL_V_LIST,
    CEL_V_MAP,
    CEL_V_OPTIONAL,
    CEL_V_QUANTITY,
    CEL_V_SEMVER,
    CEL_V_IP,
    CEL_V_CIDR,
    CEL_V_URL,
    CEL_V_FORMAT,
    CEL_V_KINDS,
};

/* How a list is held. A concatenation stays a tree, because it must cost nothing and because the real implementation
 * compares it differently. A growing list is the accumulator of a macro, changed in place. */
enum cel_list_form { CEL_LIST_FLAT, CEL_LIST_CONCAT, CEL_LIST_GROWING };

/* Which host type of the real implementation a quantity has: sums are pointers there, and the two do not compare. */
enum cel_quantity_form { CEL_QUANTITY_PARSED, CEL_QUANTITY_COMPUTED };

struct cel_value {
    uint8_t kind; /* enum cel_kind */
    uint8_t form; /* enum cel_list_form, enum cel_quantity_form */
    int16_t zone; /* minutes east of UTC, of a timestamp */
    uint32_t n;   /* octets of a text, elements of a flat list, nanoseconds of a timestamp */
    union {
        bool b;
        int64_t i; /* also: nanoseconds of a duration, seconds of a timestamp */
        uint64_t u;
        double d;
        const char *s; /* text, octets, or the words of an error (NUL-terminated) */
        const struct cel_value *items;
        const struct cel_concat *concat;
        struct cel_growing *growing;
        const struct cel_map *map;
        struct cel_map *growing_map;     /* the same, of an accumulator */
        const struct cel_value *content; /* of an optional; NULL is none */
        const struct cel_type *type;
        const struct quantity *quantity;
        const struct semver *semver;
        const struct ip *ip;
        const struct cidr *cidr;
        const struct url *url;
        const struct named_format *format;
    } as;
};

struct cel_concat {
    struct cel_value left, right;
    int64_t n;
};

struct cel_growing {
    struct cel_value *items;
    size_t n, cap;
};

struct cel_entry {
    struct cel_value key, value;
};

/* A map keeps its entries in order of insertion. A large one has a hash table of entry numbers plus one (`index`); the
 * small ones of a device have a fingerprint per key, so that a lookup touches little memory. */
struct cel_map {
    struct cel_entry *entries;
    const uint32_t *fingerprints;
    uint32_t *index;
    uint32_t n, cap;
    uint32_t index_size;
    bool has_default; /* a lookup (not a membership test) of an absent key gives an empty map */
    bool texts_only;  /* keys are strings; other keys are simply absent */
    bool unwraps;     /* an optional string is taken for the string (capacities) */
    bool is_growing;  /* an accumulator, changed in place */
};

#define CEL_NULL ((struct cel_value){.kind = CEL_V_NULL})

static inline struct cel_value cel_bool(bool b)
{
    return (struct cel_value){.kind = CEL_V_BOOL, .as.b = b};
}
static inline struct cel_value cel_int(int64_t i)
{
    return (struct cel_value){.kind = CEL_V_INT, .as.i = i};
}
static inline struct cel_value cel_uint(uint64_t u)
{
    return (struct cel_value){.kind = CEL_V_UINT, .as.u = u};
}
static inline struct cel_value cel_double(double d)
{
    return (struct cel_value){.kind = CEL_V_DOUBLE, .as.d = d};
}
static inline struct cel_value cel_text(struct str s)
{
    return (struct cel_value){.kind = CEL_V_STRING, .n = (uint32_t)s.len, .as.s = s.ptr};
}
static inline struct cel_value cel_octets(struct str s)
{
    return (struct cel_value){.kind = CEL_V_BYTES, .n = (uint32_t)s.len, .as.s = s.ptr};
}
static inline struct cel_value cel_duration(int64_t ns)
{
    return (struct cel_value){.kind = CEL_V_DURATION, .as.i = ns};
}
static inline struct cel_value cel_timestamp(int64_t seconds, uint32_t nanos, int16_t zone)
{
    return (struct cel_value){.kind = CEL_V_TIMESTAMP, .n = nanos, .zone = zone, .as.i = seconds};
}
static inline struct cel_value cel_type_value(const struct cel_type *type)
{
    return (struct cel_value){.kind = CEL_V_TYPE, .as.type = type};
}
static inline struct cel_value cel_list(const struct cel_value *items, size_t n)
{
    return (struct cel_value){.kind = CEL_V_LIST, .n = (uint32_t)n, .as.items = items};
}
static inline struct cel_value cel_map(const struct cel_map *map)
{
    return (struct cel_value){.kind = CEL_V_MAP, .as.map = map};
}
static inline struct cel_value cel_optional(const struct cel_value *content)
{
    return (struct cel_value){.kind = CEL_V_OPTIONAL, .as.content = content};
}
/* An error with fixed words. */
static inline struct cel_value cel_error(const char *words)
{
    return (struct cel_value){.kind = CEL_V_ERROR, .as.s = words};
}
static inline struct str cel_str(struct cel_value v)
{
    return (struct str){v.as.s, v.n};
}
static inline bool cel_is_true(struct cel_value v)
{
    return v.kind == CEL_V_BOOL && v.as.b;
}
static inline bool cel_is_error(struct cel_value v)
{
    return v.kind == CEL_V_ERROR;
}

#define CEL_NO_OVERLOAD "no such overload"

/* An error with formatted words, in the scratch arena. */
struct cel_value cel_errorf(struct cel_eval *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The type of a value, without parameters. */
const struct cel_type *cel_value_type(struct cel_value v);
/* Its name ("list", "net.IP"). */
const char *cel_kind_name(struct cel_value v);
/* As messages show a value: text in full, numbers, [..], {..}; cut at `max` bytes. */
void cel_value_show(struct cel_value v, struct buf *out, size_t max);

int64_t cel_list_len(struct cel_value list);
/* The element at 0 <= i < cel_list_len(). */
struct cel_value cel_list_at(struct cel_value list, int64_t i);

/* left.Equal(right) of the real implementation: the left value decides what may be compared. */
enum cel_equality { CEL_DIFFERENT, CEL_EQUAL, CEL_INCOMPARABLE };
enum cel_equality cel_equal_method(struct cel_eval *e, struct cel_value a, struct cel_value b);
/* The operator: null is equal to null only, and never incomparable. */
enum cel_equality cel_equal(struct cel_eval *e, struct cel_value a, struct cel_value b);

/* Order of two values of comparable kinds: *out is -1, 0, 1. Returns NULL, or the words of the error. */
const char *cel_compare(struct cel_value a, struct cel_value b, int *out);

/* Look a key up. The real implementation crashes on keys that cannot be hashed: then e->fatal is set. */
bool cel_map_find(struct cel_eval *e, const struct cel_map *map, struct cel_value key, struct cel_value *out);
/* The fingerprint of a key. */
uint32_t cel_fingerprint(struct str key);
/* The same with the default of the device's maps. */
bool cel_map_lookup(struct cel_eval *e, const struct cel_map *map, struct cel_value key, struct cel_value *out);
/* The same for a string whose fingerprint is known, in a map with texts_only. */
bool cel_map_lookup_text(const struct cel_map *map, struct str key, uint32_t fingerprint, struct cel_value *out);
struct cel_map *cel_map_new(struct arena *arena, size_t cap);
/* Put an entry, replacing the one with the very same key (1 and 1u are two keys). */
void cel_map_put(struct cel_map *map, struct arena *arena, struct cel_value key, struct cel_value value);
/* Whether an entry with the very same key is there; its number, or SIZE_MAX. */
size_t cel_map_slot(const struct cel_map *map, struct cel_value key);
void cel_map_remove(struct cel_map *map, struct cel_value key);
/* Whether the real implementation could use the value as a key without a crash. */
bool cel_is_hashable(struct cel_value v);

/* A double that is exactly an int64 or uint64. */
bool cel_double_to_int(double d, int64_t *out);
bool cel_double_to_uint(double d, uint64_t *out);

#endif
