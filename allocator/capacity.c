/* Consumable capacity: what a request takes of a device, and whether a policy allows it (semantics, section 10). */
#include "allocator/shape.h"

#include <string.h>

#include "allocator/base/checked.h"

#include "allocator/base/banned.h"

static bool exact_milli(const struct quantity *q, int64_t *out)
{
    return quantity_is_milli_exact(q) && quantity_to_milli(q, out);
}

/* Whether rounding in steps happens in thousandths: every number of the range must be whole ones. */
static bool uses_milli(const struct shape *shape, const struct request_policy *p)
{
    int64_t number;

    if (!feature_on(shape->features, FEATURE_FRACTIONAL_CAPACITY_RANGE) || shape->features->release < 37)
        return false;
    if ((p->has_min && !exact_milli(&p->min, &number)) || (p->has_max && !exact_milli(&p->max, &number)))
        return false;
    return p->has_step && exact_milli(&p->step, &number) && number >= 1;
}

/* min + step * ceil((r - min) / step), false when something does not fit 64 bits; r >= min. */
static bool round_up(int64_t r, int64_t min, int64_t step, int64_t *out)
{
    int64_t distance, steps;

    if (step == 0 || !checked_sub(r, min, &distance))
        return false;
    steps = distance / step + (distance % step != 0);
    return checked_mul(steps, step, &steps) && checked_add(min, steps, out);
}

/* As releases up to 1.36 did it: amounts beyond 64 bits are 0, sums wrap around. */
static int64_t round_up_wrapping(const struct quantity *r, const struct request_policy *p)
{
    int64_t rv = 0, min = 0, step = 0;
    uint64_t distance, steps;

    if (!quantity_to_int(r, &rv))
        rv = 0;
    if (!quantity_to_int(&p->min, &min))
        min = 0;
    if (!quantity_to_int(&p->step, &step) || step <= 0)
        return rv;
    distance = (uint64_t)rv - (uint64_t)min;
    steps = (uint64_t)((int64_t)distance / step) + ((int64_t)distance % step != 0);
    return (int64_t)((uint64_t)min + steps * (uint64_t)step);
}

static bool round_milli(const struct quantity *r, const struct request_policy *p, struct quantity *out)
{
    int64_t rv, min = 0, step, value;

    if (!exact_milli(r, &rv) || !exact_milli(&p->step, &step))
        return false;
    if (p->has_min && !exact_milli(&p->min, &min))
        return false;
    if (!round_up(rv, min, step, &value))
        return false;
    *out = quantity_of_milli(value, p->step.format);
    return true;
}

static bool round_whole(const struct quantity *r, const struct request_policy *p, struct quantity *out)
{
    int64_t rv, min = 0, step, value;
    struct quantity largest = quantity_of_int(INT64_MAX);

    if (quantity_cmp(r, &largest) > 0 || !quantity_to_int(r, &rv) || !quantity_to_int(&p->step, &step))
        return false;
    if (p->has_min && !quantity_to_int(&p->min, &min))
        return false;
    if (!round_up(rv, min, step, &value))
        return false;
    *out = quantity_of_int(value);
    out->format = p->step.format;
    return true;
}

static bool round_to_step(const struct shape *shape, const struct quantity *r, const struct request_policy *p,
                          struct quantity *out)
{
    if (shape->behaviour->steps_overflow) {
        *out = quantity_of_int(round_up_wrapping(r, p));
        out->format = p->step.format;
        return true;
    }
    return uses_milli(shape, p) ? round_milli(r, p, out) : round_whole(r, p, out);
}

/* 10.3; false: the amount cannot be represented. */
static bool consumption(const struct shape *shape, const struct quantity *requested, const struct capacity *c,
                        struct quantity *out)
{
    const struct request_policy *p = c->policy;

    if (!requested) {
        *out = p && p->has_default ? p->fallback : c->value;
        return true;
    }
    *out = *requested;
    if (!p)
        return true;
    if (p->has_range && p->has_min) {
        if (quantity_cmp(requested, &p->min) < 0) {
            *out = p->min;
            return true;
        }
        return !p->has_step || round_to_step(shape, requested, p, out);
    }
    for (size_t i = 0; i < p->n_valid; i++) {
        if (quantity_cmp(&p->valid[i], requested) >= 0) {
            *out = p->valid[i];
            break;
        }
    }
    return true;
}

static bool off_step(const struct shape *shape, const struct quantity *x, const struct request_policy *p)
{
    int64_t xv = 0, min = 0, step = 0, distance;

    if (uses_milli(shape, p)) {
        if (!exact_milli(x, &xv) || !exact_milli(&p->step, &step) || (p->has_min && !exact_milli(&p->min, &min)))
            return true;
    } else if (!quantity_to_int(x, &xv) || !quantity_to_int(&p->step, &step) ||
               (p->has_min && !quantity_to_int(&p->min, &min))) {
        return true;
    }
    return step == 0 || !checked_sub(xv, min, &distance) || distance % step != 0;
}

static bool violates(const struct shape *shape, const struct quantity *x, const struct request_policy *p)
{
    if (!p || (p->has_default && quantity_identical(x, &p->fallback)))
        return false;
    if (p->has_range)
        return (p->has_max && quantity_cmp(x, &p->max) > 0) || (p->has_step && off_step(shape, x, p));
    for (size_t i = 0; i < p->n_valid; i++)
        if (quantity_cmp(x, &p->valid[i]) == 0)
            return false;
    return p->n_valid > 0;
}

static const struct quantity *requested_amount(const struct claim_ask *ask, const char *key)
{
    for (size_t i = 0; i < ask->n_capacity; i++)
        if (text_is(ask->capacity[i].key, key))
            return &ask->capacity[i].amount;
    return NULL;
}

static bool lists(const struct device *device, const char *key)
{
    for (size_t i = 0; i < device->n_capacities; i++)
        if (text_is(device->capacities[i].key, key))
            return true;
    return false;
}

enum capacity_state capacity_consumption(const struct shape *shape, const struct claim_ask *ask,
                                         const struct device *device, struct arena *arena, const struct quantity **out,
                                         const char **out_message)
{
    struct quantity *row = arena_array(arena, struct quantity, device->n_capacities + 1u);

    *out = row;
    for (size_t i = 0; i < ask->n_capacity; i++)
        if (!lists(device, ask->capacity[i].key))
            return CAPACITY_MISSING;
    for (size_t i = 0; i < device->n_capacities; i++) {
        const struct capacity *c = &device->capacities[i];

        if (!consumption(shape, requested_amount(ask, c->key), c, &row[i])) {
            *out_message = arena_printf(arena, "the requested amount of capacity %s is not representable", c->key);
            return CAPACITY_ERROR;
        }
        if (quantity_sign(&row[i]) < 0) {
            *out_message = arena_printf(arena, "the amount of capacity %s is negative", c->key);
            return CAPACITY_ERROR;
        }
    }
    for (size_t i = 0; i < device->n_capacities; i++)
        if (violates(shape, &row[i], device->capacities[i].policy))
            return CAPACITY_MISSING;
    return CAPACITY_OK;
}

/* ---- remembered rows: most devices of a cluster publish the same few sets of capacities ---- */

struct need_place {
    const struct device *device; /* NULL: free */
    size_t ask;
    struct need_row row;
};

static bool same_capacities(const struct device *a, const struct device *b)
{
    if (a->n_capacities != b->n_capacities)
        return false;
    for (size_t i = 0; i < a->n_capacities; i++)
        if (a->capacities[i].hash != b->capacities[i].hash || !text_is(a->capacities[i].key, b->capacities[i].key))
            return false;
    return true;
}

static struct need_place *row_place(struct shape *shape, size_t ask, const struct device *device)
{
    uint64_t hash = ask;
    size_t at;

    for (size_t i = 0; i < device->n_capacities; i++)
        hash = hash * UINT64_C(0x9e3779b97f4a7c15) + device->capacities[i].hash;
    at = (hash ^ (hash >> 32)) & (shape->rows_size - 1);
    while (shape->rows[at].device && (shape->rows[at].ask != ask || !same_capacities(shape->rows[at].device, device)))
        at = (at + 1) & (shape->rows_size - 1);
    return &shape->rows[at];
}

static void grow_rows(struct shape *shape)
{
    struct need_place *old = shape->rows;
    size_t n = shape->rows_size;

    shape->rows_size = n ? n * 2 : 16;
    shape->rows = arena_array(&shape->arena, struct need_place, shape->rows_size);
    for (size_t i = 0; i < n; i++)
        if (old[i].device)
            *row_place(shape, old[i].ask, old[i].device) = old[i];
}

const struct need_row *capacity_row(struct shape *shape, size_t ask, const struct device *device)
{
    struct need_place *place;

    if (shape->n_rows * 2 >= shape->rows_size)
        grow_rows(shape);
    place = row_place(shape, ask, device);
    if (!place->device) {
        struct need_row *row = &place->row;

        place->device = device;
        place->ask = ask;
        row->state =
            capacity_consumption(shape, shape->asks[ask].ask, device, &shape->arena, &row->amounts, &row->message);
        shape->n_rows++;
    }
    return &place->row;
}
