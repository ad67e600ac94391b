/* The small objects: nodes, device classes, taint rules. */
#include "allocator/internal.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

/* ---- nodes ---- */

static int read_resources(const json_t *map, const struct load *load, const struct resource_amount **out, size_t *out_n,
                          struct error *err)
{
    struct resource_amount *resources = arena_array(load->arena, struct resource_amount, json_object_size(map) + 1);
    const json_t *value;
    const char *name;
    size_t n = 0;

    json_object_foreach((json_t *)map, name, value)
    {
        resources[n].name = load_symbol(load, name);
        if (read_quantity(value, load->arena, &resources[n++].amount, err) < 0)
            return error_in(err, "[%s]", name);
    }
    *out = resources;
    *out_n = n;
    return 0;
}

static bool is_ready(const json_t *status)
{
    const json_t *conditions = member(status, "conditions"), *item;
    size_t i;

    if (!json_array_size(conditions))
        return true;
    json_array_foreach(conditions, i, item)
    {
        const char *type = json_string_value(member(item, "type"));
        const char *value = json_string_value(member(item, "status"));

        if (type && value && text_is(type, "Ready"))
            return text_is(value, "True");
    }
    return false;
}

static int read_node_status(const json_t *object, const struct load *load, struct node_info *out, struct error *err)
{
    const json_t *status, *allocatable;
    struct string_list declared;

    if (read_object(object, "status", &status, err) < 0)
        return -1;
    if (read_object(status, "allocatable", &allocatable, err) < 0 ||
        read_texts(status, "declaredFeatures", load->arena, &declared, err) < 0)
        return error_in(err, "status");
    if (!allocatable && read_object(status, "capacity", &allocatable, err) < 0)
        return error_in(err, "status");
    if (read_resources(allocatable, load, &out->allocatable, &out->n_allocatable, err) < 0)
        return error_in(err, "status.allocatable");
    out->ready = is_ready(status);
    for (size_t i = 0; i < declared.n; i++)
        if (text_is(declared.items[i], "DRAOptionalNodeOperations"))
            out->declares_optional_operations = true;
    return 0;
}

int node_info_parse(const json_t *object, const struct load *load, struct node_info *out, struct error *err)
{
    const json_t *meta, *spec;

    if (read_name(object, load->arena, &out->name, err) < 0 || read_object(object, "metadata", &meta, err) < 0 ||
        read_object(object, "spec", &spec, err) < 0)
        return -1;
    if (read_labels(meta, "labels", load->arena, &out->labels, &out->n_labels, err) < 0)
        return error_in(err, "metadata");
    if (read_taints(spec, "taints", &(struct load){.arena = load->arena}, &out->taints, &out->n_taints, err) < 0 ||
        read_bool(spec, "unschedulable", &out->unschedulable, err) < 0)
        return error_in(err, "spec");
    return read_node_status(object, load, out, err);
}

/* ---- device classes ---- */

static int read_class_config(const json_t *spec, const struct load *load, struct device_class *out, struct error *err)
{
    const json_t *array, *opaque;
    const char **config;

    if (read_array(spec, "config", &array, err) < 0)
        return -1;
    if (json_array_size(array) > 32 && load->validate)
        return error_field(err, "config", "at most 32 entries are allowed");
    config = arena_array(load->arena, const char *, json_array_size(array) + 1);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (read_object(json_array_get(array, i), "opaque", &opaque, err) < 0)
            return error_in(err, "config[%zu]", i);
        config[i] = opaque ? json_text(opaque, load->arena) : NULL;
        if (load->validate && opaque_check(config[i], err) < 0)
            return error_in(err, "config[%zu]", i);
    }
    out->config = config;
    out->n_config = json_array_size(array);
    return 0;
}

/* Domain-qualified, outside of the domains of Kubernetes, and no quota name. */
static const char *extended_problem(const char *name)
{
    const char *slash = strchr(name, '/');
    size_t domain = slash ? (size_t)(slash - name) : 0;

    if (!slash || name_problem_label_key(name))
        return "must be a resource name with a domain";
    if ((domain == strlen("kubernetes.io") && memcmp(name, "kubernetes.io", domain) == 0) ||
        (domain > strlen(".kubernetes.io") &&
         memcmp(slash - strlen(".kubernetes.io"), ".kubernetes.io", strlen(".kubernetes.io")) == 0))
        return "must not be in a domain of kubernetes.io";
    return strncmp(name, "requests.", strlen("requests.")) == 0 ? "must not begin with \"requests.\"" : NULL;
}

int class_parse(const json_t *object, const struct load *load, struct device_class *out, struct error *err)
{
    const json_t *meta, *spec;

    if (read_object(object, "metadata", &meta, err) < 0 || read_object(object, "spec", &spec, err) < 0)
        return -1;
    if (read_text(meta, "name", load->arena, "", &out->name, err) < 0 ||
        read_text(meta, "creationTimestamp", load->arena, "", &out->created, err) < 0)
        return error_in(err, "metadata");
    if (load->validate && name_check("metadata.name", out->name, name_problem_subdomain(out->name), err) < 0)
        return -1;
    if (read_selectors(spec, "selectors", load, &out->selectors, &out->n_selectors, err) < 0 ||
        read_class_config(spec, load, out, err) < 0 ||
        read_text(spec, "extendedResourceName", load->arena, NULL, &out->extended_resource, err) < 0)
        return error_in(err, "spec");
    if (load->validate && out->extended_resource &&
        name_check("spec.extendedResourceName", out->extended_resource, extended_problem(out->extended_resource), err) <
            0)
        return -1;
    return 0;
}

const struct device_class *class_find(const struct class_table *table, const char *name)
{
    size_t low = 0, high = table->n_classes;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(table->classes[mid].name, name);

        if (order == 0)
            return &table->classes[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- taint rules ---- */

int rule_parse(const json_t *object, const struct load *load, struct taint_rule *out, struct error *err)
{
    const json_t *spec, *selector, *taint;

    if (read_name(object, load->arena, &out->name, err) < 0 || read_object(object, "spec", &spec, err) < 0)
        return -1;
    if (read_object(spec, "deviceSelector", &selector, err) < 0 || read_object(spec, "taint", &taint, err) < 0)
        return error_in(err, "spec");
    if (!taint)
        return error_field(err, "spec.taint", "is required");
    if (read_taint(taint, load, &out->taint, err) < 0)
        return error_in(err, "spec.taint");
    out->has_selector = selector != NULL;
    if (read_text(selector, "driver", load->arena, NULL, &out->driver, err) < 0 ||
        read_text(selector, "pool", load->arena, NULL, &out->pool, err) < 0 ||
        read_text(selector, "device", load->arena, NULL, &out->device, err) < 0)
        return error_in(err, "spec.deviceSelector");
    return 0;
}
