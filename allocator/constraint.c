/* matchAttribute and distinctAttribute: what the picks of a claim must have in common, or not (semantics, section 6).
 *
 * Each constraint keeps a stack with one entry per covered pick, so that taking a pick back is popping. With list
 * attributes every attribute is a set; without, the rules for scalars apply. */
#include "allocator/shape.h"

#include <string.h>

#include "allocator/base/banned.h"

struct set {
    enum cel_attribute_kind kind;
    uint32_t n;
    const union cel_attribute_value *values;
};

struct entry {
    const struct attribute *attribute; /* of the pick */
    struct set set;                    /* match: what all picks so far share; distinct: the pick's own */
    const char *request;
};

struct constraint {
    const struct claim_constraint *spec;
    const struct shape *shape;
    bool sets; /* DRAListTypeAttributes */
    struct entry *entries;
    size_t n, cap;
    struct arena *arena;
};

struct constraint *constraints_new(const struct shape *shape, const struct claim *claim, struct arena *arena)
{
    struct constraint *list = arena_array(arena, struct constraint, claim->n_constraints + 1);

    for (size_t i = 0; i < claim->n_constraints; i++)
        list[i] = (struct constraint){.spec = &claim->constraints[i],
                                      .shape = shape,
                                      .sets = shape->behaviour->variant == VARIANT_EXPERIMENTAL &&
                                              feature_on(shape->features, FEATURE_LIST_ATTRIBUTES),
                                      .arena = arena};
    return list;
}

/* 6.1: no list covers every pick; "R" covers all alternatives of R, "R/S" only that one. */
static bool covers(const struct claim_constraint *spec, const char *request, const char *alternative)
{
    size_t len = strlen(request);

    if (!spec->n_requests)
        return true;
    for (size_t i = 0; i < spec->n_requests; i++) {
        const char *name = spec->requests[i];

        if (text_is(name, request) || (alternative && strncmp(name, request, len) == 0 && name[len] == '/' &&
                                       text_is(name + len + 1, alternative)))
            return true;
    }
    return false;
}

static void push(struct constraint *c, struct entry entry)
{
    if (c->n == c->cap) {
        struct entry *more = arena_array(c->arena, struct entry, c->cap * 2 + CLAIM_MAX_RESULTS);

        if (c->n)
            memcpy(more, c->entries, c->n * sizeof(*more));
        c->entries = more;
        c->cap = c->cap * 2 + CLAIM_MAX_RESULTS;
    }
    c->entries[c->n++] = entry;
}

/* ---- scalars (6.3, 6.5) ---- */

static bool is_scalar(const struct attribute *a)
{
    return a->kind != CEL_ATTR_NONE && !a->is_list;
}

/* Equal kind and value; versions compare as text. */
static bool scalars_equal(const struct attribute *a, const struct attribute *b)
{
    if (a->kind != b->kind || !is_scalar(a) || !is_scalar(b))
        return false;
    if (a->kind == CEL_ATTR_INT)
        return a->i == b->i;
    if (a->kind == CEL_ATTR_BOOL)
        return a->b == b->b;
    return str_eq(a->s, b->s);
}

static bool match_scalar(struct constraint *c, const struct attribute *a)
{
    return !c->n || scalars_equal(a, c->entries[0].attribute);
}

/* Up to 1.36 one value was remembered per request, the latest. */
static bool distinct_per_request(struct constraint *c, const struct attribute *a)
{
    if (c->n && !is_scalar(a))
        return false;
    for (size_t i = 0; i < c->n; i++) {
        bool is_latest = true;

        for (size_t k = i + 1; k < c->n; k++)
            is_latest = is_latest && !text_is(c->entries[k].request, c->entries[i].request);
        if (is_latest && scalars_equal(a, c->entries[i].attribute))
            return false;
    }
    return true;
}

static bool distinct_scalar(struct constraint *c, const struct attribute *a)
{
    const struct behaviour *behaviour = c->shape->behaviour;

    if (behaviour->distinct_per_request)
        return distinct_per_request(c, a);
    if (c->n && !is_scalar(a) && !behaviour->distinct_by_identity)
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (behaviour->distinct_by_identity ? a == c->entries[i].attribute : scalars_equal(a, c->entries[i].attribute))
            return false;
    return true;
}

/* ---- sets (6.4) ---- */

static bool values_equal(enum cel_attribute_kind kind, const union cel_attribute_value *a,
                         const union cel_attribute_value *b)
{
    if (kind == CEL_ATTR_INT)
        return a->i == b->i;
    if (kind == CEL_ATTR_BOOL)
        return a->b == b->b;
    return str_eq(a->s, b->s);
}

static struct set set_of(const struct attribute *a, struct arena *scratch)
{
    union cel_attribute_value *value;

    if (a->is_list || a->kind == CEL_ATTR_NONE)
        return (struct set){a->kind, a->n_values, a->list};
    value = arena_new(scratch, union cel_attribute_value);
    if (a->kind == CEL_ATTR_INT)
        value->i = a->i;
    else if (a->kind == CEL_ATTR_BOOL)
        value->b = a->b;
    else
        value->s = a->s;
    return (struct set){a->kind, 1, value};
}

static struct set intersection(const struct set *a, const struct set *b, struct arena *scratch)
{
    union cel_attribute_value *values = arena_array(scratch, union cel_attribute_value, a->n + 1u);
    struct set both = {.kind = a->kind, .values = values};

    if (a->kind != b->kind)
        return both;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++) {
            if (!values_equal(a->kind, &a->values[i], &b->values[k]))
                continue;
            values[both.n++] = a->values[i];
            break;
        }
    return both;
}

static bool match_set(struct constraint *c, struct set *set, struct arena *scratch)
{
    if (set->kind == CEL_ATTR_NONE)
        return false;
    if (!c->n)
        return true;
    *set = intersection(&c->entries[c->n - 1].set, set, scratch);
    return set->n > 0;
}

static bool distinct_set(struct constraint *c, const struct set *set, struct arena *scratch)
{
    if (set->kind == CEL_ATTR_NONE)
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (intersection(&c->entries[i].set, set, scratch).n)
            return false;
    return true;
}

/* ---- both ---- */

static bool admits(struct constraint *c, struct entry *entry, struct arena *scratch)
{
    bool is_match = c->spec->kind == CONSTRAINT_MATCH;

    if (!c->sets)
        return is_match ? match_scalar(c, entry->attribute) : distinct_scalar(c, entry->attribute);
    entry->set = set_of(entry->attribute, scratch);
    return is_match ? match_set(c, &entry->set, scratch) : distinct_set(c, &entry->set, scratch);
}

bool constraint_add(struct constraint *constraints, size_t i, const char *request, const char *alternative,
                    const char *driver, const struct device *device, struct arena *scratch)
{
    struct constraint *c = &constraints[i];
    struct entry entry = {.request = request};

    if (!covers(c->spec, request, alternative))
        return true;
    entry.attribute = attribute_find(driver, device, c->spec->attribute);
    if (!entry.attribute || !admits(c, &entry, scratch))
        return false;
    push(c, entry);
    return true;
}

/* The old per-request memory also forgot what the request's earlier picks had (B4). */
static void forget_request(struct constraint *c, const char *request)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->n; i++)
        if (!text_is(c->entries[i].request, request))
            c->entries[kept++] = c->entries[i];
    c->n = kept;
}

void constraint_remove(struct constraint *constraints, size_t i, const char *request, const char *alternative)
{
    struct constraint *c = &constraints[i];

    if (!covers(c->spec, request, alternative) || !c->n)
        return;
    if (c->spec->kind == CONSTRAINT_DISTINCT && c->shape->behaviour->distinct_per_request && !c->sets)
        forget_request(c, request);
    else
        c->n--;
}

/* Scalars that must differ: the first value may be of any kind, and up to 1.36 only the latest of a request counts. */
bool constraint_heeds_order(const struct constraint *constraints, size_t i, const char *driver,
                            const struct device *device)
{
    const struct constraint *c = &constraints[i];
    const struct behaviour *behaviour = c->shape->behaviour;
    const struct attribute *a;

    if (c->spec->kind != CONSTRAINT_DISTINCT || c->sets || behaviour->distinct_by_identity)
        return false;
    a = attribute_find(driver, device, c->spec->attribute);
    return a && (behaviour->distinct_per_request || !is_scalar(a));
}
