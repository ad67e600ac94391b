/* Ledgers: copies of what changes, made pool by pool and node by node when first touched, and a trail of what stood
 * there before. The memory of changes comes from one arena that a rollback rewinds. */
#include "allocator/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/cache.h"
#include "allocator/gang.h"

#include "allocator/base/banned.h"

struct pool_overlay {
    uint64_t stamp;
    struct device_use use[]; /* one per device of the pool */
};
struct node_overlay {
    uint64_t stamp;
    struct node_use use;
};

struct step_back {             /* what a change replaced */
    struct device_use *device; /* or NULL: a node */
    struct device_use old_device;
    struct node_overlay *node;
    struct node_use old_node;
    uint64_t *stamp;
    uint64_t old_stamp;
    struct arena_mark mark;
};

/* Slots in the order in which they were touched, so that an end or a snapshot costs what changed and not the cluster.
 */
struct touched {
    uint32_t *slots;
    size_t n, cap;
};

struct ledger {
    const struct snapshot *snapshot;
    bool is_empty; /* nothing was held and no pod ran */
    uint64_t counter;
    struct pool_overlay **pools; /* by slot */
    struct node_overlay **nodes;
    struct touched touched_pools, touched_nodes;
    struct step_back *trail;
    size_t n_trail, cap_trail;
    struct arena arena;
};

struct ledger *ledger_new(const struct snapshot *snapshot)
{
    struct ledger *ledger = mem_new(struct ledger);

    ledger->snapshot = snapshot_ref(snapshot);
    ledger->pools = mem_array(struct pool_overlay *, snapshot_pool_slots(snapshot) + 1u);
    ledger->nodes = mem_array(struct node_overlay *, snapshot_node_slots(snapshot) + 1u);
    return ledger;
}

static void touch(struct touched *touched, uint32_t slot)
{
    mem_grow(touched->slots, touched->n, touched->cap);
    touched->slots[touched->n++] = slot;
}

static void drop_overlays(struct ledger *ledger)
{
    while (ledger->touched_pools.n > 0) {
        uint32_t slot = ledger->touched_pools.slots[--ledger->touched_pools.n];

        free(ledger->pools[slot]);
        ledger->pools[slot] = NULL;
    }
    while (ledger->touched_nodes.n > 0) {
        uint32_t slot = ledger->touched_nodes.slots[--ledger->touched_nodes.n];

        free(ledger->nodes[slot]);
        ledger->nodes[slot] = NULL;
    }
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    drop_overlays(ledger);
    free(ledger->touched_pools.slots);
    free(ledger->touched_nodes.slots);
    free(ledger->pools);
    free(ledger->nodes);
    free(ledger->trail);
    arena_release(&ledger->arena);
    snapshot_unref(ledger->snapshot);
    free(ledger);
}

const struct snapshot *ledger_snapshot(const struct ledger *ledger)
{
    return ledger->snapshot;
}

void ledger_empty(struct ledger *ledger)
{
    drop_overlays(ledger);
    ledger->n_trail = 0;
    ledger->is_empty = true;
    ledger->counter++;
}

/* ---- the trail ---- */

size_t ledger_mark(const struct ledger *ledger)
{
    return ledger->n_trail;
}

static struct step_back *note(struct ledger *ledger, uint64_t *stamp)
{
    struct step_back *step;

    mem_grow(ledger->trail, ledger->n_trail, ledger->cap_trail);
    step = &ledger->trail[ledger->n_trail++];
    *step = (struct step_back){.stamp = stamp, .old_stamp = *stamp, .mark = arena_mark(&ledger->arena)};
    *stamp = ++ledger->counter;
    return step;
}

void ledger_rollback(struct ledger *ledger, size_t mark)
{
    while (ledger->n_trail > mark) {
        const struct step_back *step = &ledger->trail[--ledger->n_trail];

        if (step->device)
            *step->device = step->old_device;
        else
            step->node->use = step->old_node;
        *step->stamp = step->old_stamp;
        arena_rewind(&ledger->arena, step->mark);
    }
}

/* ---- devices ---- */

static struct pool_overlay *pool_overlay(struct ledger *ledger, const struct pool *pool)
{
    struct pool_overlay *overlay = ledger->pools[pool->slot];

    if (overlay)
        return overlay;
    overlay = mem_zalloc(1, sizeof(*overlay) + pool->n_devices * sizeof(overlay->use[0]));
    if (!ledger->is_empty && pool->n_devices)
        memcpy(overlay->use, pool->use, pool->n_devices * sizeof(overlay->use[0]));
    ledger->pools[pool->slot] = overlay;
    touch(&ledger->touched_pools, pool->slot);
    return overlay;
}

const struct device_use *ledger_pool_use(const struct ledger *ledger, const struct pool *pool)
{
    const struct pool_overlay *overlay = ledger->pools[pool->slot];

    if (!overlay && ledger->is_empty)
        overlay = pool_overlay((struct ledger *)ledger, pool);
    return overlay ? overlay->use : pool->use;
}

static bool holds_nothing(const struct device_use *use, const struct held_device *held, bool consumable)
{
    return held->share_id && consumable ? use->n_shares == 0 : use->n_dedicated == 0;
}

static void change_device(struct ledger *ledger, const struct held_device *held, int sign)
{
    const struct pool *pool = snapshot_find_pool(ledger->snapshot, held->driver, held->pool);
    bool consumable = feature_on(&ledger->snapshot->features, FEATURE_CONSUMABLE_CAPACITY);
    struct pool_overlay *overlay;

    if (!pool || held->admin_access)
        return;
    overlay = pool_overlay(ledger, pool);
    for (size_t i = pool_find_device(pool, held->device, SIZE_MAX); i != SIZE_MAX;
         i = pool_find_device(pool, held->device, i)) {
        struct device_use *use = &overlay->use[i];
        struct step_back *step;

        if (sign < 0 && holds_nothing(use, held, consumable))
            continue;
        step = note(ledger, &overlay->stamp);
        step->device = use;
        step->old_device = *use;
        device_use_change(use, pool->devices[i].device, held, sign, consumable, &ledger->arena);
    }
}

static void take_result(struct ledger *ledger, const struct device_result *result)
{
    struct counter consumed[64];
    struct held_device held = {
        .driver = result->driver,
        .pool = result->pool,
        .device = result->device,
        .share_id = result->is_share ? "share" : NULL,
        .admin_access = result->admin_access,
        .has_consumed = result->n_consumed > 0,
        .consumed = consumed,
    };

    for (size_t i = 0; i < result->n_consumed && i < ARRAY_SIZE(consumed); i++)
        consumed[held.n_consumed++] = (struct counter){result->consumed[i].name, result->consumed[i].amount};
    change_device(ledger, &held, 1);
}

void ledger_take(struct ledger *ledger, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_results; i++)
        take_result(ledger, &allocation->results[i]);
}

void ledger_give_back(struct ledger *ledger, const struct cluster_claim *claim)
{
    for (size_t i = 0; i < claim->n_held; i++)
        change_device(ledger, &claim->held[i], -1);
}

/* ---- nodes ---- */

static struct node_overlay *node_overlay(struct ledger *ledger, const struct node *node)
{
    struct node_overlay *overlay = ledger->nodes[node->slot];

    if (overlay)
        return overlay;
    overlay = mem_new(struct node_overlay);
    if (!ledger->is_empty)
        overlay->use = node->use;
    ledger->nodes[node->slot] = overlay;
    touch(&ledger->touched_nodes, node->slot);
    return overlay;
}

void ledger_add_pod(struct ledger *ledger, const struct node *node, const struct pod_demand *demand)
{
    struct node_overlay *overlay = node_overlay(ledger, node);
    struct step_back *step = note(ledger, &overlay->stamp);

    step->node = overlay;
    step->old_node = overlay->use;
    node_use_add(&overlay->use, demand, &ledger->arena);
}

const struct node_use *ledger_node_use(const struct ledger *ledger, const struct node *node)
{
    const struct node_overlay *overlay = ledger->nodes[node->slot];

    if (!overlay && ledger->is_empty)
        overlay = node_overlay((struct ledger *)ledger, node);
    return overlay ? &overlay->use : &node->use;
}

bool ledger_touches(const struct ledger *ledger, const struct node *node)
{
    size_t n_global;
    const uint32_t *global = snapshot_global_pools(ledger->snapshot, &n_global);
    bool touches = ledger->is_empty || ledger->nodes[node->slot];

    for (size_t i = 0; i < node->n_pools && !touches; i++)
        touches = ledger->pools[node->pools[i]] != NULL;
    for (size_t i = 0; i < n_global && !touches; i++)
        touches = ledger->pools[global[i]] != NULL;
    return touches;
}

static void digest_pool(const struct ledger *ledger, uint32_t slot, struct digest *digest)
{
    digest_add(digest, snapshot_pool(ledger->snapshot, slot)->stamp);
    digest_add(digest, ledger->pools[slot] ? ledger->pools[slot]->stamp : 0);
}

uint64_t ledger_node_stamp(const struct ledger *ledger, const struct node *node)
{
    struct digest digest = {0};
    size_t n_global;
    const uint32_t *global = snapshot_global_pools(ledger->snapshot, &n_global);

    digest_add(&digest, ledger->is_empty);
    digest_add(&digest, node->stamp);
    digest_add(&digest, ledger->nodes[node->slot] ? ledger->nodes[node->slot]->stamp : 0);
    for (size_t i = 0; i < node->n_pools; i++)
        digest_pool(ledger, node->pools[i], &digest);
    for (size_t i = 0; i < n_global; i++)
        digest_pool(ledger, global[i], &digest);
    return digest.lo;
}

/* ---- a snapshot of a ledger ---- */

/* Everything shared with the snapshot before, ready to be changed piece by piece. */
static struct snapshot *snapshot_copy(const struct snapshot *old)
{
    struct snapshot *s = mem_new(struct snapshot);

    atomic_init(&s->refs, 1);
    s->features = old->features;
    s->behaviour = old->behaviour;
    s->symbols = old->symbols;
    s->cache = cache_ref(old->cache);
    s->nodes = vector_share(&old->nodes);
    s->pools = vector_share(&old->pools);
    s->buckets = vector_share(&old->buckets);
    s->sorted_nodes = order_ref(old->sorted_nodes);
    s->sorted_pools = order_ref(old->sorted_pools);
    s->globals = order_ref(old->globals);
    s->globals_stamp = old->globals_stamp;
    s->classes = class_table_ref(old->classes);
    s->namespaces = namespaces_ref(old->namespaces);
    return s;
}

static void renew_node(struct snapshot *s, const struct node *old, const struct node_use *use)
{
    vector_set(&s->nodes, old->slot,
               node_make((struct node_info *)old->info, old->pools, old->n_pools, old->shares_pools, use,
                         cache_stamp(s->cache), old->slot));
}

static void settle_pool(struct snapshot *s, const struct ledger *ledger, uint32_t slot)
{
    const struct pool *old = snapshot_pool(ledger->snapshot, slot);
    const struct node *node;

    if (!ledger->pools[slot] || !old)
        return;
    if (old->is_global)
        s->globals_stamp = cache_stamp(s->cache);
    vector_set(&s->pools, slot,
               pool_with_use(old, ledger->pools[slot]->use, &s->features, &s->behaviour, cache_stamp(s->cache)));
    node = old->only_node ? snapshot_find_node(s, old->only_node) : NULL;
    if (node)
        renew_node(s, node, &node->use);
}

static void settle_node(struct snapshot *s, const struct ledger *ledger, uint32_t slot)
{
    const struct node *old = snapshot_node(ledger->snapshot, slot);

    if (ledger->nodes[slot] && old)
        renew_node(s, old, &ledger->nodes[slot]->use);
}

struct snapshot *ledger_to_snapshot(const struct ledger *ledger)
{
    struct snapshot *s = snapshot_copy(ledger->snapshot);

    for (size_t i = 0; i < ledger->touched_pools.n; i++)
        settle_pool(s, ledger, ledger->touched_pools.slots[i]);
    for (size_t i = 0; i < ledger->touched_nodes.n; i++)
        settle_node(s, ledger, ledger->touched_nodes.slots[i]);
    return s;
}

/* Whether this is where an existing claim is shown first. The first members of the groups show all there are. */
static bool is_first_shown(const struct placement *placement, size_t member, size_t claim)
{
    const struct device_result *results = placement->members[member].claims[claim].allocation.results;

    if (placement->members[member].index != 0)
        return false;
    for (size_t i = 0; i <= member; i++)
        for (size_t k = 0; k < placement->members[i].n_claims && placement->members[i].index == 0; k++)
            if (placement->members[i].claims[k].source == GANG_CLAIM_EXISTING &&
                placement->members[i].claims[k].allocation.results == results)
                return i == member && k == claim;
    return false;
}

const struct allocation *placed_claim_takes(const struct placement *placement, size_t member, size_t claim)
{
    const struct placed_claim *placed = &placement->members[member].claims[claim];

    if (placed->source == GANG_CLAIM_SHARED || placed->allocation.n_results == 0)
        return NULL;
    if (placed->source == GANG_CLAIM_EXISTING && !is_first_shown(placement, member, claim))
        return NULL;
    return &placed->allocation;
}

void ledger_place(struct ledger *ledger, const struct placement *placement)
{
    for (size_t i = 0; i < placement->n_members; i++) {
        const struct placed_member *member = &placement->members[i];
        const struct node *node = snapshot_find_node(ledger->snapshot, member->node);

        for (size_t k = 0; k < member->n_claims; k++) {
            const struct allocation *allocation = placed_claim_takes(placement, i, k);

            if (allocation)
                ledger_take(ledger, allocation);
        }
        if (node && member->group < placement->n_demands && placement->demands[member->group])
            ledger_add_pod(ledger, node, placement->demands[member->group]);
    }
    for (size_t i = 0; i < placement->n_shared; i++)
        ledger_take(ledger, &placement->shared[i]);
}

struct snapshot *snapshot_with(const struct snapshot *snapshot, const struct placement *placement)
{
    struct ledger *ledger = ledger_new(snapshot);
    struct snapshot *with;

    ledger_place(ledger, placement);
    with = ledger_to_snapshot(ledger);
    ledger_free(ledger);
    return with;
}
