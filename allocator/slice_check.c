/* What an API server refuses in a ResourceSlice (semantics, 1.4 to 1.7). Fields in errors start below spec. */
#include "allocator/internal.h"

#include <string.h>

#include "allocator/base/banned.h"

static bool has_twice(const char *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (text_is(items[i], items[k]))
                return true;
    return false;
}

/* ---- capacities ---- */

static bool is_multiple(const struct quantity *value, const struct quantity *of, const struct quantity *step)
{
    int64_t v, o, s;

    if (!quantity_to_milli(value, &v) || !quantity_to_milli(of, &o) || !quantity_to_milli(step, &s) || s <= 0)
        return true; /* beyond what can be checked exactly here; the search does it with care */
    return (v - o) % s == 0;
}

static int check_range(const struct request_policy *p, const struct quantity *value, struct error *err)
{
    if (!p->has_min)
        return error_field(err, "validRange.min", "is required");
    if (quantity_cmp(&p->min, value) > 0)
        return error_field(err, "validRange.min", "must not be above the capacity");
    if (p->has_default && quantity_cmp(&p->fallback, &p->min) < 0)
        return error_field(err, "default", "must not be below the range");
    if (p->has_max && (quantity_cmp(&p->max, value) > 0 || quantity_cmp(&p->min, &p->max) > 0))
        return error_field(err, "validRange.max", "must be between the minimum and the capacity");
    if (p->has_max && p->has_default && quantity_cmp(&p->fallback, &p->max) > 0)
        return error_field(err, "default", "must not be above the range");
    if (!p->has_step)
        return 0;
    if (quantity_sign(&p->step) <= 0)
        return error_field(err, "validRange.step", "must be positive");
    if (p->has_default && !is_multiple(&p->fallback, &p->min, &p->step))
        return error_field(err, "default", "must be a whole number of steps above the minimum");
    if (p->has_max && !is_multiple(&p->max, &p->min, &p->step))
        return error_field(err, "validRange.max", "must be a whole number of steps above the minimum");
    return 0;
}

static int check_values(const struct request_policy *p, const struct quantity *value, struct error *err)
{
    bool has_default = false;

    if (p->n_valid > 10)
        return error_field(err, "validValues", "at most 10 values are allowed");
    for (size_t i = 0; i < p->n_valid; i++) {
        if (quantity_cmp(&p->valid[i], value) > 0)
            return error_field(err, "validValues", "must not be above the capacity");
        if (i && quantity_cmp(&p->valid[i - 1], &p->valid[i]) >= 0)
            return error_field(err, "validValues", "must be ascending and unique");
        has_default = has_default || (p->has_default && quantity_cmp(&p->valid[i], &p->fallback) == 0);
    }
    return has_default ? 0 : error_field(err, "default", "must be one of the valid values");
}

static int check_policy(const struct device *device, const struct capacity *c, struct error *err)
{
    const struct request_policy *p = c->policy;

    if (!p)
        return 0;
    if (!device->multi)
        return error_set(err, ERR_INVALID, "needs allowMultipleAllocations");
    if (p->has_range && p->n_valid)
        return error_set(err, ERR_INVALID, "must not have both validValues and validRange");
    if ((p->has_range || p->n_valid) && !p->has_default)
        return error_field(err, "default", "is required");
    if (p->has_default && quantity_cmp(&p->fallback, &c->value) > 0)
        return error_field(err, "default", "must not be above the capacity");
    if (p->has_range)
        return check_range(p, &c->value, err);
    return p->n_valid ? check_values(p, &c->value, err) : 0;
}

static int check_capacities(const struct device *device, struct error *err)
{
    for (size_t i = 0; i < device->n_capacities; i++) {
        const struct capacity *c = &device->capacities[i];
        const char *problem = name_problem_qualified(c->key);

        if (problem)
            return error_field(err, "capacity", "\"%.80s\": %s", c->key, problem);
        if (check_policy(device, c, err) < 0) {
            error_in(err, "requestPolicy");
            return error_in(err, "capacity[%s]", c->key);
        }
    }
    return 0;
}

/* ---- attributes ---- */

static const char *text_problem(enum cel_attribute_kind kind, struct str text)
{
    if (kind != CEL_ATTR_STRING && kind != CEL_ATTR_VERSION)
        return NULL;
    if (text.len > 64)
        return "must be at most 64 bytes";
    return kind == CEL_ATTR_VERSION ? name_problem_version(text.ptr) : NULL;
}

static int check_attribute(const struct attribute *a, struct error *err)
{
    const char *problem = name_problem_qualified(a->key);

    for (uint32_t i = 0; i < a->n_values && !problem && (a->kind == CEL_ATTR_STRING || a->kind == CEL_ATTR_VERSION);
         i++)
        problem = text_problem(a->kind, a->is_list ? a->list[i].s : a->s);
    if (!problem && a->is_list && !a->n_values)
        problem = "must not be an empty list";
    if (!problem)
        return 0;
    error_set(err, ERR_INVALID, "%s", problem);
    return error_in(err, "attributes[%s]", a->key);
}

static int check_attributes(const struct device *device, const struct load *load, struct error *err)
{
    size_t n_values = 0;

    if (device->n_attributes + device->n_capacities > 32)
        return error_field(err, "attributes", "at most 32 attributes and capacities are allowed");
    for (size_t i = 0; i < device->n_attributes; i++) {
        n_values += device->attributes[i].is_list ? device->attributes[i].n_values : 1;
        if (check_attribute(&device->attributes[i], err) < 0)
            return -1;
    }
    if (n_values > 48 && load->features->release >= 36)
        return error_field(err, "attributes", "at most 48 values are allowed");
    return 0;
}

/* ---- counters ---- */

static int check_counters(const struct counter *counters, size_t n, struct error *err)
{
    if (n == 0)
        return error_field(err, "counters", "is required");
    if (n > 32)
        return error_field(err, "counters", "at most 32 counters are allowed");
    for (size_t i = 0; i < n; i++)
        if (name_check("counters", counters[i].name, name_problem_label(counters[i].name), err) < 0)
            return -1;
    return 0;
}

static int check_consumption(const struct consumption *c, struct error *err)
{
    if (name_check("counterSet", c->set, name_problem_label(c->set), err) < 0)
        return -1;
    if (c->n_groups > 2)
        return error_field(err, "compatibilityGroups", "at most 2 groups are allowed");
    return check_counters(c->counters, c->n_counters, err);
}

/* Since 1.35 a device takes of at most two sets, each named once; before, 32 counters in all. */
static int check_consumptions(const struct device *device, const struct load *load, struct error *err)
{
    if (device->n_consumes > 2 && load->features->release >= 35)
        return error_field(err, "consumesCounters", "at most 2 counter sets are allowed");
    for (size_t i = 0; i < device->n_consumes; i++) {
        if (check_consumption(&device->consumes[i], err) < 0)
            return error_in(err, "consumesCounters[%zu]", i);
        for (size_t k = 0; k < i; k++)
            if (text_is(device->consumes[i].set, device->consumes[k].set)) {
                error_field(err, "counterSet", "is named twice");
                return error_in(err, "consumesCounters[%zu]", i);
            }
    }
    return 0;
}

static int check_sets(const struct slice *slice, const struct load *load, struct error *err)
{
    size_t max = load->features->release >= 35 ? 8 : 32;

    if (slice->n_sets > max)
        return error_field(err, "sharedCounters", "at most %zu counter sets are allowed", max);
    for (size_t i = 0; i < slice->n_sets; i++) {
        if (name_check("name", slice->sets[i].name, name_problem_label(slice->sets[i].name), err) < 0 ||
            check_counters(slice->sets[i].counters, slice->sets[i].n_counters, err) < 0)
            return error_in(err, "sharedCounters[%zu]", i);
        for (size_t k = 0; k < i; k++)
            if (text_is(slice->sets[i].name, slice->sets[k].name)) {
                error_field(err, "name", "is used twice");
                return error_in(err, "sharedCounters[%zu]", i);
            }
    }
    return 0;
}

/* ---- devices ---- */

static int check_conditions(const char *field, const struct string_list *list, struct error *err)
{
    if (list->n > 4)
        return error_field(err, field, "at most 4 conditions are allowed");
    if (has_twice(list->items, list->n))
        return error_field(err, field, "a condition is named twice");
    for (size_t i = 0; i < list->n; i++)
        if (name_check(field, list->items[i], name_problem_label_key(list->items[i]), err) < 0)
            return -1;
    return 0;
}

static int check_binding(const struct device *device, struct error *err)
{
    const struct string_list *binding = &device->binding, *failure = &device->binding_failure;

    if (check_conditions("bindingConditions", binding, err) < 0 ||
        check_conditions("bindingFailureConditions", failure, err) < 0)
        return -1;
    if ((binding->n == 0) != (failure->n == 0))
        return error_field(err, binding->n ? "bindingFailureConditions" : "bindingConditions", "is required");
    for (size_t i = 0; i < binding->n; i++)
        for (size_t k = 0; k < failure->n; k++)
            if (text_is(binding->items[i], failure->items[k]))
                return error_field(err, "bindingFailureConditions", "must differ from the binding conditions");
    return 0;
}

static int check_device_nodes(const struct slice *slice, const struct device *device, struct error *err)
{
    int n = (device->node_name != NULL) + (device->selector != NULL) + device->all_nodes;

    if (slice->per_device && n != 1)
        return error_set(err, ERR_INVALID, "needs exactly one of nodeName, nodeSelector and allNodes");
    if (!slice->per_device && n)
        return error_set(err, ERR_INVALID, "selects nodes, but the slice does not say perDeviceNodeSelection");
    if (device->selector && device->selector->problem)
        return error_field(err, "nodeSelector", "%s", device->selector->problem);
    return 0;
}

static int check_device(const struct slice *slice, const struct device *device, const struct load *load,
                        struct error *err)
{
    size_t max_taints = load->features->release >= 35 ? 16 : 4;

    if (name_check("name", device->name, name_problem_label(device->name), err) < 0 ||
        check_attributes(device, load, err) < 0 || check_capacities(device, err) < 0 ||
        check_consumptions(device, load, err) < 0 || check_binding(device, err) < 0 ||
        check_device_nodes(slice, device, err) < 0)
        return -1;
    if (device->n_taints > max_taints)
        return error_field(err, "taints", "at most %zu taints are allowed", max_taints);
    return 0;
}

/* ---- the slice ---- */

static bool is_costly(const struct device *device, const struct load *load)
{
    if (device->n_taints || device->n_consumes)
        return true;
    for (size_t i = 0; i < device->n_attributes && load->features->release >= 36; i++)
        if (device->attributes[i].is_list)
            return true;
    return false;
}

static int check_size(const struct slice *slice, const struct load *load, struct error *err)
{
    size_t max = 128;

    for (size_t i = 0; i < slice->n_devices && load->features->release >= 35; i++)
        if (is_costly(&slice->devices[i], load))
            max = 64;
    if (slice->n_devices > max)
        return error_field(err, "devices", "at most %zu devices are allowed", max);
    /* Since 1.35 a slice has devices or counters. Slices of drivers for older servers have both; those are in the wild,
     * and a server that was upgraded still serves them. */
    return 0;
}

static int check_devices(const struct slice *slice, const struct load *load, struct error *err)
{
    for (size_t i = 0; i < slice->n_devices; i++) {
        if (check_device(slice, &slice->devices[i], load, err) < 0)
            return error_in(err, "devices[%zu]", i);
        for (size_t k = 0; k < i; k++)
            if (text_is(slice->devices[i].name, slice->devices[k].name)) {
                error_field(err, "name", "\"%s\" is used twice", slice->devices[i].name);
                return error_in(err, "devices[%zu]", i);
            }
    }
    return 0;
}

static int check_nodes(const struct slice *slice, struct error *err)
{
    int n = (slice->node_name != NULL) + (slice->selector != NULL) + slice->all_nodes + slice->per_device;

    if (n != 1)
        return error_field(err, "nodeName",
                           "exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is required");
    if (slice->selector && slice->selector->problem)
        return error_field(err, "nodeSelector", "%s", slice->selector->problem);
    if (slice->selector && slice->selector->n_terms != 1)
        return error_field(err, "nodeSelector.nodeSelectorTerms", "must have exactly one term");
    return 0;
}

int slice_check(const struct slice *slice, const struct load *load, struct error *err)
{
    if (name_check("driver", slice->driver, name_problem_driver(slice->driver), err) < 0 ||
        name_check("pool.name", slice->pool, name_problem_pool(slice->pool), err) < 0)
        return -1;
    if (slice->generation < 0)
        return error_field(err, "pool.generation", "must not be negative");
    if (slice->count <= 0)
        return error_field(err, "pool.resourceSliceCount", "must be positive");
    if (check_nodes(slice, err) < 0 || check_size(slice, load, err) < 0 || check_sets(slice, load, err) < 0)
        return -1;
    return check_devices(slice, load, err);
}
