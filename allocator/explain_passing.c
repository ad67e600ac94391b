/* Never, or not now? A node that is cordoned or does not answer, and a pool whose slices are not all published, are
 * states that pass: what would fit were it not for them must wait. A taint that an administrator or a driver has put
 * on a node or a device may stay for good, so it does not pass. */
#include "allocator/explain.h"

#include <string.h>

#include "allocator/base/bitset.h"

#include "allocator/base/banned.h"

#define NODES_NAMED 3

enum change { TO_BE_READY, TO_BE_UNCORDONED, TO_LOSE_A_TAINT, N_CHANGES };

/* What the nodes that have to change have to do, and the first of them. */
struct waits {
    const char *names[N_CHANGES][NODES_NAMED];
    size_t n[N_CHANGES];
};

static enum change change_of(enum node_obstacle obstacle)
{
    return obstacle == NODE_NOT_READY       ? TO_BE_READY
           : obstacle == NODE_UNSCHEDULABLE ? TO_BE_UNCORDONED
                                            : TO_LOSE_A_TAINT;
}

static bool is_state(const struct node_finding *finding)
{
    return finding->obstacle == NODE_NOT_READY || finding->obstacle == NODE_UNSCHEDULABLE ||
           (finding->obstacle == NODE_TAINTED && gang_is_state_taint(finding->taint->key));
}

/* `lifted`: the same gang, for which such states do not count. */
static void look_at_node(struct gang *gang, struct gang *lifted, const struct node *node, struct waits *out)
{
    for (size_t k = 0; k < gang->n_kinds; k++) {
        struct node_finding now = node_admits(&gang->kinds[k].rules, node->info);
        enum change change = change_of(now.obstacle);

        if (!is_state(&now) || gang_node_finding(lifted, &lifted->kinds[k], node).obstacle != NODE_ADMITS)
            continue;
        if (out->n[change] < NODES_NAMED)
            out->names[change][out->n[change]] = node->info->name;
        out->n[change]++;
        return;
    }
}

static void add_change(struct buf *text, const struct waits *waits, enum change change)
{
    static const char *const words[N_CHANGES] = {
        [TO_BE_READY] = "become ready",
        [TO_BE_UNCORDONED] = "be uncordoned",
        [TO_LOSE_A_TAINT] = "lose the taint of its state",
    };
    size_t n = waits->n[change], shown = n < NODES_NAMED ? n : NODES_NAMED, parts = shown + (n > shown);

    if (n == 0)
        return;
    buf_addf(text, "%s%s ", text->len ? ", and " : "", n == 1 ? "node" : "nodes");
    for (size_t i = 0; i < shown; i++) {
        explain_join(text, i, parts);
        buf_adds(text, waits->names[change][i]);
    }
    if (n > shown)
        buf_addf(text, " and %zu more", n - shown);
    buf_addf(text, " to %s", change == TO_LOSE_A_TAINT && n > 1 ? "lose the taints of their state" : words[change]);
}

static const char *nodes_text(struct gang *gang, struct gang *lifted)
{
    struct waits waits = {0};
    const uint32_t *slots;
    size_t n_slots;
    BUF text = {0};

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++)
        look_at_node(gang, lifted, snapshot_node(gang->snapshot, slots[i]), &waits);
    for (enum change change = 0; change < N_CHANGES; change++)
        add_change(&text, &waits, change);
    return text.len ? arena_strdup(gang->arena, buf_str(&text)) : NULL;
}

static bool has_closed_node(struct gang *gang)
{
    const uint32_t *slots;
    size_t n_slots;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++)
        for (size_t k = 0; k < gang->n_kinds; k++) {
            struct node_finding now = node_admits(&gang->kinds[k].rules, snapshot_node(gang->snapshot, slots[i])->info);

            if (is_state(&now))
                return true;
        }
    return false;
}

/* The nodes that it waits for; NULL: it would not fit on them either. */
static const char *waits_for_nodes(struct gang *gang)
{
    struct gang_lift lift = GANG_LIFT_NONE;
    const char *text = NULL;
    struct ledger *empty;
    struct arena arena;
    struct gang lifted;
    struct error err;

    if (!has_closed_node(gang))
        return NULL;
    lift.node_states = true;
    arena_init(&arena);
    empty = ledger_new(gang->snapshot);
    ledger_empty(empty);
    if (gang_read(&lifted, gang->snapshot, gang->spec, &lift, &arena, &err) == 0 && !lifted.refusal) {
        lifted.ledger = empty;
        lifted.is_empty = true;
        if (gang_plan(&lifted, false, NULL) != GS_NONE)
            text = nodes_text(gang, &lifted);
    }
    gang_release(&lifted);
    arena_release(&arena);
    ledger_free(empty);
    return text;
}

/* ---- pools ---- */

static const char *pool_text(struct gang *gang, const json_t *pools)
{
    json_t *pool;
    size_t i;

    json_array_foreach (pools, i, pool)
        if (strncmp(explain_text(pool, "problem"), "incomplete", strlen("incomplete")) == 0)
            return arena_printf(gang->arena, "pool %s/%s to become complete", explain_text(pool, "driver"),
                                explain_text(pool, "pool"));
    return NULL;
}

/* Fewer slices of its newest generation than they say there are: somewhere it is incomplete. */
static bool lacks_slices(const struct pool *pool)
{
    const struct slice *newest = NULL;
    int64_t n = 0;

    for (size_t i = 0; i < pool->n_slices; i++)
        if (!newest || pool->slices[i]->generation > newest->generation)
            newest = pool->slices[i];
    for (size_t i = 0; i < pool->n_slices; i++)
        n += pool->slices[i]->generation == newest->generation;
    return newest && n < newest->count;
}

static bool has_incomplete_pool(const struct gang *gang)
{
    for (uint32_t slot = 0; slot < snapshot_pool_slots(gang->snapshot); slot++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, slot);

        if (pool && lacks_slices(pool))
            return true;
    }
    return false;
}

static const uint64_t *open_nodes(struct gang *gang, const struct gang_kind *kind)
{
    uint64_t *out = arena_array(&gang->work, uint64_t, bitset_words(snapshot_node_slots(gang->snapshot)));
    struct ledger *empty = explain_empty(gang, GANG_NEVER);
    const uint32_t *slots;
    size_t n_slots;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++)
        if (gang_node_finding(gang, kind, snapshot_node(gang->snapshot, slots[i])).obstacle == NODE_ADMITS)
            bitset_put(out, slots[i]);
    explain_restore(gang, empty);
    return out;
}

/* The first incomplete pool that could have devices for it; NULL: there is none. */
static const char *waits_for_pool(struct gang *gang)
{
    struct arena_mark mark = arena_mark(&gang->work);
    json_t *pools = json_array();
    const char *text;

    for (size_t g = 0; g < gang->spec->n_groups && has_incomplete_pool(gang); g++) {
        const struct gang_kind *kind = &gang->kinds[gang->kind_of[g]];

        json_decref(explain_requests(gang, kind, &gang->spec->groups[g], GANG_NEVER, open_nodes(gang, kind), pools));
    }
    text = pool_text(gang, pools);
    json_decref(pools);
    arena_rewind(&gang->work, mark);
    return text;
}

/* ---- the whole ---- */

enum gang_verdict gang_passing(struct gang *gang)
{
    gang->waits_for = waits_for_nodes(gang);
    if (!gang->waits_for)
        gang->waits_for = waits_for_pool(gang);
    return gang->waits_for ? GANG_WAITS : GANG_NEVER;
}
