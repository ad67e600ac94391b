/* Sets of devices that an administrator counts: by class, by CEL expression, or both. */
#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/mem.h"
#include "allocator/cache.h"
#include "allocator/gang.h"

#include "allocator/base/banned.h"

struct device_matcher {
    char *device_class, *expression; /* NULL: any */
};

int device_matcher_new(const char *device_class, const char *expression, struct device_matcher **out, struct error *err)
{
    struct cel_options options = {0};
    struct cel_expr *compiled = NULL;
    struct cel_problem problem;

    if (expression && cel_compile(str_of(expression), &options, &compiled, &problem) < 0)
        return error_set(err, ERR_INVALID, "%s", problem.text);
    cel_expr_free(compiled);
    *out = mem_new(struct device_matcher);
    (*out)->device_class = mem_strdup(device_class);
    (*out)->expression = mem_strdup(expression);
    return 0;
}

void device_matcher_free(struct device_matcher *matcher)
{
    if (!matcher)
        return;
    free(matcher->device_class);
    free(matcher->expression);
    free(matcher);
}

/* ---- a matcher on one snapshot ---- */

struct matching {
    struct expression *expressions[40];
    size_t n;
    bool none; /* the class does not exist, or cannot be evaluated */
    struct arena scratch;
};

static void add_expression(struct matching *m, const struct snapshot *s, const char *text)
{
    if (!text || m->n == ARRAY_SIZE(m->expressions))
        m->none = true;
    else
        m->expressions[m->n++] = cache_expression(s->cache, text);
}

static void matching_init(struct matching *m, const struct snapshot *s, const struct device_matcher *matcher)
{
    *m = (struct matching){0};
    if (matcher->device_class) {
        const struct device_class *class = class_find(s->classes, matcher->device_class);

        m->none = !class;
        for (size_t i = 0; class && i < class->n_selectors; i++)
            add_expression(m, s, class->selectors[i]);
    }
    if (matcher->expression)
        add_expression(m, s, matcher->expression);
}

static void matching_release(struct matching *m)
{
    for (size_t i = 0; i < m->n; i++)
        expression_unref(m->expressions[i]);
    arena_release(&m->scratch);
}

static bool matches(struct matching *m, const char *driver, const struct device *device)
{
    struct arena_mark mark = arena_mark(&m->scratch);
    bool all = !m->none;

    for (size_t i = 0; i < m->n && all; i++)
        all = expression_selects(m->expressions[i], driver, device, &m->scratch, NULL) == SELECT_YES;
    arena_rewind(&m->scratch, mark);
    return all;
}

bool device_matches(const struct snapshot *snapshot, const struct device_matcher *matcher, const char *driver,
                    const struct device *device)
{
    struct matching m;
    bool result;

    matching_init(&m, snapshot, matcher);
    result = matches(&m, driver, device);
    matching_release(&m);
    return result;
}

/* ---- sums ---- */

static int64_t add_up(int64_t sum, int64_t more)
{
    return checked_add(sum, more, &sum) ? sum : INT64_MAX;
}

static int64_t whole(const struct quantity *q)
{
    int64_t value;

    return quantity_to_int(q, &value) ? value : INT64_MAX;
}

/* A capacity by its name as published, or by its bare or qualified form. */
static const struct capacity *capacity_find(const char *driver, const struct device *device, const char *name)
{
    const char *slash = strchr(name, '/');
    size_t domain = strlen(driver);

    for (size_t i = 0; i < device->n_capacities; i++) {
        const char *key = device->capacities[i].key;

        if (text_is(key, name))
            return &device->capacities[i];
        if (slash && (size_t)(slash - name) == domain && memcmp(name, driver, domain) == 0 && text_is(key, slash + 1))
            return &device->capacities[i];
        if (!slash && strncmp(key, driver, domain) == 0 && key[domain] == '/' && text_is(key + domain + 1, name))
            return &device->capacities[i];
    }
    return NULL;
}

static int64_t worth(const char *driver, const struct device *device, const char *capacity)
{
    const struct capacity *c;

    if (!capacity)
        return 1;
    c = capacity_find(driver, device, capacity);
    return c ? whole(&c->value) : 0;
}

/* Only the newest generation of a pool exists. */
static bool is_current(const struct pool *pool, const struct slice *slice)
{
    for (size_t i = 0; i < pool->n_slices; i++)
        if (pool->slices[i]->generation > slice->generation)
            return false;
    return true;
}

int64_t snapshot_capacity(const struct snapshot *snapshot, const struct device_matcher *matcher, const char *capacity)
{
    struct matching m;
    size_t n;
    const uint32_t *pools = snapshot_sorted_pools(snapshot, &n);
    int64_t sum = 0;

    matching_init(&m, snapshot, matcher);
    for (size_t i = 0; i < n && !m.none; i++) {
        const struct pool *pool = snapshot_pool(snapshot, pools[i]);

        for (size_t k = 0; k < pool->n_devices; k++) {
            const struct pool_device *pd = &pool->devices[k];

            if (is_current(pool, pd->slice) && matches(&m, pool->driver, pd->device))
                sum = add_up(sum, worth(pool->driver, pd->device, capacity));
        }
    }
    matching_release(&m);
    return sum;
}

/* ---- what a placement takes ---- */

static const struct device *find_device(const struct snapshot *s, const struct device_result *result,
                                        const char **out_driver)
{
    const struct pool *pool = snapshot_find_pool(s, result->driver, result->pool);
    size_t i = pool ? pool_find_device(pool, result->device, SIZE_MAX) : SIZE_MAX;

    if (i == SIZE_MAX)
        return NULL;
    *out_driver = pool->driver;
    return pool->devices[i].device;
}

static int64_t share_of(const struct device_result *result, const char *key)
{
    for (size_t i = 0; i < result->n_consumed; i++)
        if (text_is(result->consumed[i].name, key))
            return whole(&result->consumed[i].amount);
    return 0;
}

static int64_t charge_result(const struct snapshot *s, struct matching *m, const struct device_result *result,
                             const char *capacity)
{
    const char *driver = NULL;
    const struct device *device = find_device(s, result, &driver);
    const struct capacity *c;

    if (result->admin_access || !device || !matches(m, driver, device))
        return 0;
    if (!capacity || !result->is_share)
        return worth(driver, device, capacity);
    c = capacity_find(driver, device, capacity);
    return c ? share_of(result, c->key) : 0;
}

static int64_t charge_allocation(const struct snapshot *s, struct matching *m, const struct allocation *allocation,
                                 const char *capacity)
{
    int64_t sum = 0;

    for (size_t i = 0; i < allocation->n_results; i++)
        sum = add_up(sum, charge_result(s, m, &allocation->results[i], capacity));
    return sum;
}

int64_t placement_charge(const struct snapshot *snapshot, const struct placement *placement,
                         const struct device_matcher *matcher, const char *capacity)
{
    struct matching m;
    int64_t sum = 0;

    matching_init(&m, snapshot, matcher);
    for (size_t i = 0; i < placement->n_members; i++)
        for (size_t k = 0; k < placement->members[i].n_claims; k++) {
            const struct allocation *allocation = placed_claim_takes(placement, i, k);

            if (allocation)
                sum = add_up(sum, charge_allocation(snapshot, &m, allocation, capacity));
        }
    for (size_t i = 0; i < placement->n_shared; i++)
        sum = add_up(sum, charge_allocation(snapshot, &m, &placement->shared[i], capacity));
    matching_release(&m);
    return sum;
}
