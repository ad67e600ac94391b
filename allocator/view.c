/* Reading a snapshot: devices with who holds them, nodes, as values for people and quotas. */
#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

/* ---- who holds what ---- */

struct holder { /* the first claim that holds a device */
    UT_hash_handle hh;
    char *key; /* driver, pool, device */
    char *claim;
    const char *job;
};

struct holders {
    struct holder *table;
};

static char *device_key(const char *driver, const char *pool, const char *device)
{
    BUF key = {0};

    buf_addf(&key, "%s\x1f%s\x1f%s", driver, pool, device);
    return buf_take(&key);
}

static void add_holder(void *ctx, const struct cluster_claim *claim)
{
    struct holders *holders = ctx;

    for (size_t i = 0; i < claim->n_held; i++) {
        const struct held_device *held = &claim->held[i];
        char *key = device_key(held->driver, held->pool, held->device);
        struct holder *holder;
        BUF name = {0};

        HASH_FIND_STR(holders->table, key, holder);
        if (holder || held->admin_access) {
            free(key);
            continue;
        }
        holder = mem_new(struct holder);
        buf_addf(&name, "%s/%s", claim->ns, claim->name);
        holder->key = key;
        holder->claim = buf_take(&name);
        holder->job = claim->job;
        HASH_ADD_KEYPTR(hh, holders->table, holder->key, strlen(holder->key), holder);
    }
}

static void free_holders(struct holders *holders)
{
    while (holders->table) {
        struct holder *holder = holders->table;

        HASH_DEL(holders->table, holder);
        free(holder->key);
        free(holder->claim);
        free(holder);
    }
}

/* ---- the state of a device ---- */

/* What the pool's counters still have, for "blocked": a free device whose counters are taken by others. */
struct counting {
    const struct pool_view *view;
    struct quantity *left;
    struct arena arena;
};

static bool is_held(const struct device_use *use)
{
    return use->n_dedicated || use->n_shares || use->has_consumed;
}

static void count(struct counting *c, const struct pool *pool, const struct pool_view *view)
{
    c->view = view;
    c->left = arena_array(&c->arena, struct quantity, view->n_counters + 1);
    if (view->n_counters)
        memcpy(c->left, view->totals, view->n_counters * sizeof(*c->left));
    for (size_t i = 0; view->use_start && i < view->n_devices; i++) {
        if (!is_held(&pool->use[view->devices[i]]))
            continue;
        for (uint32_t k = view->use_start[i]; k < view->use_start[i + 1]; k++) {
            struct quantity *left = &c->left[view->uses[k].counter];

            *left = quantity_sub(left, &view->uses[k].amount, &c->arena);
        }
    }
}

static bool lacks_counters(const struct counting *c, size_t position)
{
    const struct pool_view *view = c->view;

    for (uint32_t k = view->use_start[position]; k < view->use_start[position + 1]; k++)
        if (quantity_cmp(&view->uses[k].amount, &c->left[view->uses[k].counter]) > 0)
            return true;
    return false;
}

static bool keeps_away(const struct taint *taints, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (taints[i].effect == EFFECT_NO_SCHEDULE || taints[i].effect == EFFECT_NO_EXECUTE)
            return true;
    return false;
}

static const char *state_of(const struct pool *pool, const struct pool_view *view, const struct counting *counting,
                            size_t index)
{
    const struct pool_device *pd = &pool->devices[index];
    const struct device_use *use = &pool->use[index];
    size_t position = 0;

    if (use->n_dedicated)
        return "in-use";
    if (use->n_shares || use->has_consumed)
        return "shared";
    if (!view || view->status != POOL_USABLE)
        return "unavailable";
    while (position < view->n_devices && view->devices[position] != index)
        position++;
    if (position == view->n_devices)
        return "unavailable"; /* of another generation */
    if (keeps_away(pd->device->taints, pd->device->n_taints) || keeps_away(pd->rule_taints, pd->n_rule_taints))
        return "tainted";
    return view->use_start && lacks_counters(counting, position) ? "blocked" : "free";
}

/* A node from which the pool can be seen: its only one, or the first of its slices', or any. */
static const struct node *witness(const struct snapshot *s, const struct pool *pool, const struct slice *slice)
{
    const char *name = slice->node_name;
    size_t n;
    const uint32_t *nodes = snapshot_sorted_nodes(s, &n);

    if (name)
        return snapshot_find_node(s, name);
    for (size_t i = 0; i < n; i++) {
        const struct node *node = snapshot_node(s, nodes[i]);

        if (slice->all_nodes || slice->per_device ||
            (slice->selector && node_selector_matches(slice->selector, node->info)))
            return node;
    }
    (void)pool;
    return NULL;
}

struct showing {
    const struct snapshot *snapshot;
    struct holders holders;
    void (*each)(void *ctx, const struct device_view *device);
    void *ctx;
};

static void show(const struct showing *showing, const struct pool *pool, const char *node, const char *state,
                 size_t index)
{
    char *key = device_key(pool->driver, pool->name, pool->devices[index].device->name);
    struct device_view view = {.node = node,
                               .driver = pool->driver,
                               .pool = pool->name,
                               .name = pool->devices[index].device->name,
                               .state = state};
    struct holder *holder;

    HASH_FIND_STR(showing->holders.table, key, holder);
    if (holder) {
        view.claim = holder->claim;
        view.pod_job = holder->job;
    }
    showing->each(showing->ctx, &view);
    free(key);
}

static void show_slice(const struct showing *showing, const struct pool *pool, size_t slice, size_t first)
{
    const struct snapshot *s = showing->snapshot;
    const struct slice *sl = pool->slices[slice];
    const struct node *node = witness(s, pool, sl);
    struct counting counting = {0};
    const struct pool_view *view = pool->view;
    struct view_problem problem;

    if (!pool->only_node)
        view = node ? pool_view_make(pool, node->info, &s->features, &s->behaviour, &counting.arena, &problem) : NULL;
    if (view && view->status == POOL_USABLE)
        count(&counting, pool, view);
    for (size_t i = 0; i < sl->n_devices; i++) {
        const char *own = sl->per_device ? sl->devices[i].node_name : sl->node_name;

        show(showing, pool, own, state_of(pool, view, &counting, first + i), first + i);
    }
    arena_release(&counting.arena);
}

void snapshot_each_device(const struct snapshot *snapshot, void (*each)(void *ctx, const struct device_view *device),
                          void *ctx)
{
    struct showing showing = {.snapshot = snapshot, .each = each, .ctx = ctx};
    size_t n;
    const uint32_t *pools = snapshot_sorted_pools(snapshot, &n);

    snapshot_each_claim(snapshot, add_holder, &showing.holders);
    for (size_t i = 0; i < n; i++) {
        const struct pool *pool = snapshot_pool(snapshot, pools[i]);
        size_t first = 0;

        for (size_t k = 0; k < pool->n_slices; k++) {
            show_slice(&showing, pool, k, first);
            first += pool->slices[k]->n_devices;
        }
    }
    free_holders(&showing.holders);
}

/* ---- JSON ---- */

static json_t *value_json(enum cel_attribute_kind kind, const union cel_attribute_value *value)
{
    if (kind == CEL_ATTR_INT)
        return json_integer(value->i);
    if (kind == CEL_ATTR_BOOL)
        return json_boolean(value->b);
    return json_stringn(value->s.ptr, value->s.len);
}

static json_t *attribute_json(const struct attribute *a)
{
    static const char *const names[][2] = {[CEL_ATTR_INT] = {"int", "ints"},
                                           [CEL_ATTR_BOOL] = {"bool", "bools"},
                                           [CEL_ATTR_STRING] = {"string", "strings"},
                                           [CEL_ATTR_VERSION] = {"version", "versions"}};
    json_t *json = json_object(), *list;
    union cel_attribute_value scalar;

    if (a->kind == CEL_ATTR_NONE)
        return json;
    if (!a->is_list) {
        if (a->kind == CEL_ATTR_INT)
            scalar.i = a->i;
        else if (a->kind == CEL_ATTR_BOOL)
            scalar.b = a->b;
        else
            scalar.s = a->s;
        json_object_set_new(json, names[a->kind][0], value_json(a->kind, &scalar));
        return json;
    }
    list = json_array();
    for (size_t i = 0; i < a->n_values; i++)
        json_array_append_new(list, value_json(a->kind, &a->list[i]));
    json_object_set_new(json, names[a->kind][1], list);
    return json;
}

static json_t *quantity_json(const struct quantity *q)
{
    BUF text = {0};

    quantity_format_to(q, &text);
    return json_string(buf_str(&text));
}

static void add_taints(json_t *array, const struct taint *taints, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_t *json = json_pack("{s:s, s:s}", "key", taints[i].key, "effect", taints[i].effect_text);

        if (*taints[i].value)
            json_object_set_new(json, "value", json_string(taints[i].value));
        json_array_append_new(array, json);
    }
}

static json_t *device_json(const struct pool_device *pd)
{
    json_t *attributes = json_object(), *capacity = json_object(), *taints = json_array();

    for (size_t i = 0; i < pd->device->n_attributes; i++)
        json_object_set_new(attributes, pd->device->attributes[i].key, attribute_json(&pd->device->attributes[i]));
    for (size_t i = 0; i < pd->device->n_capacities; i++)
        json_object_set_new(capacity, pd->device->capacities[i].key, quantity_json(&pd->device->capacities[i].value));
    add_taints(taints, pd->device->taints, pd->device->n_taints);
    add_taints(taints, pd->rule_taints, pd->n_rule_taints);
    return json_pack("{s:o, s:o, s:o}", "attributes", attributes, "capacity", capacity, "taints", taints);
}

json_t *snapshot_device_json(const struct snapshot *snapshot, const char *driver, const char *pool, const char *name)
{
    const struct pool *p = snapshot_find_pool(snapshot, driver, pool);
    size_t i = p ? pool_find_device(p, name, SIZE_MAX) : SIZE_MAX;

    return i == SIZE_MAX ? NULL : device_json(&p->devices[i]);
}

/* ---- what a device is, but for its name ---- */

static const struct counter_set *find_set(const struct pool *pool, const struct slice *of, const char *name)
{
    for (size_t i = 0; i < pool->n_slices; i++)
        for (size_t k = 0; pool->slices[i]->generation == of->generation && k < pool->slices[i]->n_sets; k++)
            if (strcmp(pool->slices[i]->sets[k].name, name) == 0)
                return &pool->slices[i]->sets[k];
    return NULL;
}

static json_t *counters_json(const struct counter *counters, size_t n)
{
    json_t *json = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(json, counters[i].name, quantity_json(&counters[i].value));
    return json;
}

static json_t *texts_json(const char *const *texts, size_t n)
{
    json_t *json = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(json, json_string(texts[i]));
    return json;
}

static json_t *draws_json(const struct pool *pool, const struct pool_device *pd)
{
    json_t *draws = json_array();

    for (size_t i = 0; i < pd->device->n_consumes; i++) {
        const struct consumption *use = &pd->device->consumes[i];
        const struct counter_set *set = find_set(pool, pd->slice, use->set);

        json_array_append_new(draws, json_pack("{s:s, s:o, s:o, s:o}", "from", use->set, "holds",
                                               counters_json(set ? set->counters : NULL, set ? set->n_counters : 0),
                                               "takes", counters_json(use->counters, use->n_counters), "groups",
                                               texts_json(use->groups, use->n_groups)));
    }
    return draws;
}

/* Which nodes have it: by name, or, where a selector or the slice of a pool of the network says so, by the slice. */
static json_t *place_json(const struct pool_device *pd)
{
    const struct device *device = pd->device;
    bool is_of_slice = pd->slice->selector || pd->slice->all_nodes;

    return json_pack("{s:s?, s:s?, s:b, s:s?, s:s?}", "node", device->node_name, "sliceNode", pd->slice->node_name,
                     "everywhere", device->all_nodes, "slice", is_of_slice ? pd->slice->name : NULL, "itself",
                     device->selector ? device->name : NULL);
}

json_t *snapshot_device_traits(const struct snapshot *snapshot, const char *driver, const char *pool, const char *name)
{
    const struct pool *p = snapshot_find_pool(snapshot, driver, pool);
    size_t i = p ? pool_find_device(p, name, SIZE_MAX) : SIZE_MAX;
    const struct device *device;
    json_t *self, *policies;

    if (i == SIZE_MAX)
        return NULL;
    device = p->devices[i].device;
    self = device_json(&p->devices[i]);
    policies = json_array();
    for (size_t c = 0; c < device->n_capacities; c++)
        json_array_append_new(policies, json_integer((json_int_t)device->capacities[c].hash));
    json_object_set_new(self, "policies", policies);
    json_object_set_new(self, "place", place_json(&p->devices[i]));
    json_object_set_new(self, "shared", json_boolean(device->multi));
    json_object_set_new(self, "bindsToNode", json_boolean(device->binds_to_node));
    json_object_set_new(self, "binding", texts_json(device->binding.items, device->binding.n));
    json_object_set_new(self, "bindingFailure", texts_json(device->binding_failure.items, device->binding_failure.n));
    return json_pack("{s:s, s:s, s:o, s:o}", "driver", driver, "pool", pool, "self", self, "draws",
                     draws_json(p, &p->devices[i]));
}

static json_t *amounts_json(const struct resource_amount *amounts, size_t n)
{
    json_t *json = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(json, amounts[i].name, quantity_json(&amounts[i].amount));
    return json;
}

static json_t *node_json(const struct node *node)
{
    json_t *labels = json_object(), *taints = json_array();
    const struct node_info *info = node->info;

    for (size_t i = 0; i < info->n_labels; i++)
        json_object_set_new(labels, info->labels[i].key, json_string(info->labels[i].value));
    add_taints(taints, info->taints, info->n_taints);
    return json_pack("{s:s, s:o, s:b, s:b, s:o, s:o, s:o}", "name", info->name, "labels", labels, "ready", info->ready,
                     "schedulable", !info->unschedulable, "taints", taints, "allocatable",
                     amounts_json(info->allocatable, info->n_allocatable), "used",
                     amounts_json(node->use.resources, node->use.n_resources));
}

json_t *snapshot_nodes_json(const struct snapshot *snapshot)
{
    json_t *array = json_array();
    size_t n;
    const uint32_t *nodes = snapshot_sorted_nodes(snapshot, &n);

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, node_json(snapshot_node(snapshot, nodes[i])));
    return array;
}
