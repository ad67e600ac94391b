/* Making pools and nodes: the inventory joined with who holds what. */
#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

/* ---- uses of devices (semantics, 10.6) ---- */

static void change_consumed(struct device_use *use, const struct device *device, const struct held_device *held,
                            int sign, struct arena *arena)
{
    struct quantity *row = arena_array(arena, struct quantity, device->n_capacities);

    for (size_t i = 0; i < device->n_capacities; i++) {
        row[i] = use->consumed ? use->consumed[i] : quantity_of_int(0);
        for (size_t k = 0; k < held->n_consumed; k++)
            if (text_is(held->consumed[k].name, device->capacities[i].key))
                row[i] = sign > 0 ? quantity_add(&row[i], &held->consumed[k].value, arena)
                                  : quantity_sub(&row[i], &held->consumed[k].value, arena);
        row[i] = quantity_copy(&row[i], arena);
    }
    use->consumed = row;
    use->has_consumed = true;
}

void device_use_change(struct device_use *use, const struct device *device, const struct held_device *held, int sign,
                       bool consumable, struct arena *arena)
{
    if (held->admin_access)
        return;
    if (!held->share_id || !consumable) {
        use->n_dedicated += (uint32_t)sign;
        return;
    }
    use->n_shares += (uint32_t)sign;
    if (held->has_consumed)
        change_consumed(use, device, held, sign, arena);
    if (use->n_shares == 0) { /* the last share is gone: as if there had never been one */
        use->has_consumed = false;
        use->consumed = NULL;
    }
}

size_t pool_find_device(const struct pool *pool, const char *name, size_t after)
{
    for (size_t i = after == SIZE_MAX ? 0 : after + 1; i < pool->n_devices; i++)
        if (text_is(pool->devices[i].device->name, name))
            return i;
    return SIZE_MAX;
}

/* ---- names to positions, for pools with many devices ---- */

struct name_index {
    uint32_t *table; /* position + 1; 0 is free */
    size_t size;
};

static size_t name_slot(const char *name, size_t size)
{
    struct digest digest = {0};

    digest_text(&digest, name, strlen(name));
    return digest.lo & (size - 1);
}

static struct name_index name_index_make(const struct pool *pool)
{
    struct name_index index = {.size = 16};

    while (index.size < pool->n_devices * 2)
        index.size *= 2;
    index.table = mem_array(uint32_t, index.size);
    for (size_t i = 0; i < pool->n_devices; i++) {
        size_t at = name_slot(pool->devices[i].device->name, index.size);

        while (index.table[at])
            at = (at + 1) & (index.size - 1);
        index.table[at] = (uint32_t)i + 1;
    }
    return index;
}

/* Every device of the name takes the holding: an id names all devices that carry it. */
static void apply_holding(struct pool *pool, struct device_use *use, const struct name_index *index,
                          const struct holding *holding, bool consumable)
{
    size_t at = name_slot(holding->held->device, index->size);

    for (; index->table[at]; at = (at + 1) & (index->size - 1)) {
        size_t i = index->table[at] - 1;

        if (text_is(pool->devices[i].device->name, holding->held->device))
            device_use_change(&use[i], pool->devices[i].device, holding->held, 1, consumable, &pool->arena);
    }
}

static void apply_holdings(struct pool *pool, const struct holding *holdings, size_t n, bool consumable)
{
    struct device_use *use = arena_array(&pool->arena, struct device_use, pool->n_devices);
    struct name_index index;

    pool->use = use;
    if (!n || !pool->n_devices)
        return;
    index = name_index_make(pool);
    for (size_t i = 0; i < n; i++)
        apply_holding(pool, use, &index, &holdings[i], consumable);
    free(index.table);
}

/* ---- taint rules (1.8) ---- */

static bool rule_covers(const struct taint_rule *rule, const struct pool *pool, const struct device *device,
                        const struct behaviour *behaviour)
{
    if (!rule->has_selector)
        return behaviour->rule_without_selector_taints;
    return (!rule->driver || text_is(rule->driver, pool->driver)) && (!rule->pool || text_is(rule->pool, pool->name)) &&
           (!rule->device || text_is(rule->device, device->name));
}

/* The rules' texts are copied: a rule may go while the pool stays in an older snapshot. */
static void add_rule_taints(struct pool *pool, struct pool_device *pd, const struct taint_rule *rules, size_t n_rules,
                            const struct behaviour *behaviour)
{
    struct taint *taints = NULL;

    for (size_t i = 0; i < n_rules; i++) {
        const struct taint *taint = &rules[i].taint;

        if (!rule_covers(&rules[i], pool, pd->device, behaviour))
            continue;
        if (!taints)
            taints = arena_array(&pool->arena, struct taint, n_rules);
        taints[pd->n_rule_taints++] =
            (struct taint){arena_strdup(&pool->arena, taint->key), arena_strdup(&pool->arena, taint->value),
                           taint->effect, arena_strdup(&pool->arena, taint->effect_text)};
    }
    pd->rule_taints = taints;
}

/* ---- pools ---- */

static void list_slices(struct pool *pool, struct slice *const *slices, size_t n)
{
    pool->slices = arena_array(&pool->arena, struct slice *, n + 1);
    pool->n_slices = n;
    for (size_t i = 0; i < n; i++) {
        pool->slices[i] = slice_ref(slices[i]);
        pool->n_devices += slices[i]->n_devices;
    }
    pool->driver = slices[0]->driver;
    pool->name = slices[0]->pool;
}

static struct pool_device *list_devices(struct pool *pool)
{
    struct pool_device *devices = arena_array(&pool->arena, struct pool_device, pool->n_devices);
    size_t n = 0;

    for (size_t i = 0; i < pool->n_slices; i++)
        for (size_t k = 0; k < pool->slices[i]->n_devices; k++)
            devices[n++] = (struct pool_device){.slice = pool->slices[i], .device = &pool->slices[i]->devices[k]};
    pool->devices = devices;
    return devices;
}

static bool is_global(const struct slice *slice, const struct behaviour *behaviour)
{
    return !slice->node_name ||
           (behaviour->counter_slices_everywhere && slice->has_counter_sets && !behaviour->counters_in_slice);
}

static void find_reach(struct pool *pool, const struct behaviour *behaviour)
{
    pool->only_node = pool->slices[0]->node_name;
    for (size_t i = 0; i < pool->n_slices; i++) {
        const struct slice *slice = pool->slices[i];

        pool->is_global = pool->is_global || is_global(slice, behaviour);
        if (pool->only_node && (!slice->node_name || !text_is(slice->node_name, pool->only_node)))
            pool->only_node = NULL;
    }
    if (pool->is_global)
        pool->only_node = NULL;
}

static void make_view(struct pool *pool, const struct features *features, const struct behaviour *behaviour)
{
    struct node_info node = {.name = pool->only_node};
    struct view_problem problem;

    if (pool->only_node)
        pool->view = pool_view_make(pool, &node, features, behaviour, &pool->arena, &problem);
}

struct pool *pool_make(struct slice *const *slices, size_t n_slices, const struct holding *holdings, size_t n_holdings,
                       const struct taint_rule *rules, size_t n_rules, const struct features *features,
                       const struct behaviour *behaviour, uint64_t stamp, uint32_t slot)
{
    struct pool *pool = mem_new(struct pool);
    struct pool_device *devices;

    atomic_init(&pool->refs, 1);
    arena_reserve(&pool->arena, 768);
    pool->stamp = stamp;
    pool->slot = slot;
    list_slices(pool, slices, n_slices);
    devices = list_devices(pool);
    for (size_t i = 0; i < pool->n_devices && n_rules; i++)
        add_rule_taints(pool, &devices[i], rules, n_rules, behaviour);
    apply_holdings(pool, holdings, n_holdings, feature_on(features, FEATURE_CONSUMABLE_CAPACITY));
    find_reach(pool, behaviour);
    make_view(pool, features, behaviour);
    return pool;
}

static void copy_use(struct pool *pool, const struct device_use *from)
{
    struct device_use *use = arena_array(&pool->arena, struct device_use, pool->n_devices);

    for (size_t i = 0; i < pool->n_devices; i++) {
        size_t n = pool->devices[i].device->n_capacities;
        struct quantity *row;

        use[i] = from[i];
        if (!from[i].consumed)
            continue;
        row = arena_array(&pool->arena, struct quantity, n);
        for (size_t k = 0; k < n; k++)
            row[k] = quantity_copy(&from[i].consumed[k], &pool->arena);
        use[i].consumed = row;
    }
    pool->use = use;
}

struct pool *pool_with_use(const struct pool *old, const struct device_use *use, const struct features *features,
                           const struct behaviour *behaviour, uint64_t stamp)
{
    struct pool *pool = mem_new(struct pool);
    struct pool_device *devices;

    atomic_init(&pool->refs, 1);
    arena_reserve(&pool->arena, 768);
    pool->stamp = stamp;
    pool->slot = old->slot;
    list_slices(pool, old->slices, old->n_slices);
    devices = list_devices(pool);
    for (size_t i = 0; i < pool->n_devices; i++) {
        const struct pool_device *from = &old->devices[i];
        struct taint *taints;

        if (!from->n_rule_taints)
            continue;
        taints = arena_array(&pool->arena, struct taint, from->n_rule_taints);
        for (size_t k = 0; k < from->n_rule_taints; k++)
            taints[k] =
                (struct taint){arena_strdup(&pool->arena, from->rule_taints[k].key),
                               arena_strdup(&pool->arena, from->rule_taints[k].value), from->rule_taints[k].effect,
                               arena_strdup(&pool->arena, from->rule_taints[k].effect_text)};
        devices[i].rule_taints = taints;
        devices[i].n_rule_taints = from->n_rule_taints;
    }
    copy_use(pool, use);
    find_reach(pool, behaviour);
    make_view(pool, features, behaviour);
    return pool;
}

/* ---- nodes ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct resource_amount *)a)->name, ((const struct resource_amount *)b)->name);
}

/* The sum of `use` and one demand, freshly laid out: uses are shared between snapshots and never changed in place. */
void node_use_add(struct node_use *use, const struct pod_demand *demand, struct arena *arena)
{
    struct resource_amount *sums =
        arena_array(arena, struct resource_amount, use->n_resources + demand->n_resources + 1);
    struct host_port *ports;
    size_t n = use->n_resources, known = n;

    if (n)
        memcpy(sums, use->resources, n * sizeof(*sums));
    for (size_t i = 0; i < demand->n_resources; i++) {
        const struct resource_amount *more = &demand->resources[i];
        struct resource_amount *sum = known ? bsearch(more, sums, known, sizeof(*sums), by_name) : NULL;

        if (sum)
            sum->amount = quantity_add(&sum->amount, &more->amount, arena);
        else
            sums[n++] = (struct resource_amount){more->name, quantity_copy(&more->amount, arena)};
    }
    for (size_t i = 0; i < known; i++)
        sums[i].amount = quantity_copy(&sums[i].amount, arena);
    if (n > known)
        qsort(sums, n, sizeof(*sums), by_name);
    use->resources = sums;
    use->n_resources = n;
    if (!demand->n_ports)
        return;
    ports = arena_array(arena, struct host_port, use->n_ports + demand->n_ports);
    if (use->n_ports)
        memcpy(ports, use->ports, use->n_ports * sizeof(*ports));
    for (size_t i = 0; i < demand->n_ports; i++)
        ports[use->n_ports + i] =
            (struct host_port){arena_strdup(arena, demand->ports[i].ip), arena_strdup(arena, demand->ports[i].protocol),
                               demand->ports[i].port};
    use->ports = ports;
    use->n_ports += demand->n_ports;
}

static void copy_node_use(struct node *node, const struct node_use *use)
{
    struct pod_demand all = {use->resources, use->n_resources, use->ports, use->n_ports};

    if (use->n_resources || use->n_ports)
        node_use_add(&node->use, &all, &node->arena);
}

struct node *node_make(struct node_info *info, const uint32_t *pools, size_t n_pools, bool shares_pools,
                       const struct node_use *use, uint64_t stamp, uint32_t slot)
{
    struct node *node = mem_new(struct node);
    uint32_t *slots;

    atomic_init(&node->refs, 1);
    arena_reserve(&node->arena, 128);
    atomic_fetch_add_explicit(&info->refs, 1, memory_order_relaxed);
    node->info = info;
    node->stamp = stamp;
    node->slot = slot;
    slots = arena_array(&node->arena, uint32_t, n_pools);
    if (n_pools)
        memcpy(slots, pools, n_pools * sizeof(*slots));
    node->pools = slots;
    node->n_pools = n_pools;
    node->shares_pools = shares_pools;
    copy_node_use(node, use);
    return node;
}
