/* Turns: which members kube-scheduler may be shown at the same time.
 *
 * kube-scheduler adds what claims in the cluster consume of a device to what claims in flight consume. A claim whose
 * allocation it has just written is both for a moment: from the write until its pod is about to be bound (longer where
 * devices have binding conditions). So a card looks fuller than it is, a member that needs the rest of it is refused,
 * and no event wakes that pod again for minutes. So it is in 1.35 and 1.37; devices held alone are a set there, which
 * counts nothing twice.
 *
 * A member is given a later turn than another where both consume of one device and the later could be refused although
 * everything of the same turn but itself were counted twice. Those of earlier turns are bound and count once. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

struct sums {
    gs_amount total, least; /* of what was added; least of the single amounts */
};

/* Something that members of the gang share: a device, or where first fit has a say all the devices of a node. */
struct common {
    const void *key;                  /* the pool_device, the node, or the gang for devices of the network */
    const struct device *device;      /* NULL: one member a turn */
    const struct device_use *use;     /* before the gang */
    size_t turn;                      /* of those who came last */
    size_t n;                         /* results of that turn */
    const struct device_result *only; /* of the claim that all of these are of, if several members use it */
    gs_amount *before;                /* per capacity: of earlier turns */
    struct sums *during;              /* per capacity: of that turn */
    bool is_joined;
};

/* A claim that several members use: it is allocated once, by any of those who have the turn of the first. */
struct seen {
    const struct device_result *results;
    size_t turn;
};

struct turns {
    struct gang *gang;
    const struct placement *placement;
    bool is_exact;
    struct common *commons;
    size_t n, cap;
    struct seen *seen;
    size_t n_seen, cap_seen;
};

/* ---- what is shared ---- */

static struct common *find_common(struct turns *t, const void *key, const struct device *device,
                                  const struct device_use *use)
{
    struct common *one;

    for (size_t i = 0; i < t->n; i++)
        if (t->commons[i].key == key)
            return &t->commons[i];
    mem_grow(t->commons, t->n, t->cap);
    one = &t->commons[t->n++];
    *one = (struct common){.key = key, .device = device, .use = use};
    if (device) {
        one->before = arena_array(&t->gang->work, gs_amount, device->n_capacities + 1u);
        one->during = arena_array(&t->gang->work, struct sums, device->n_capacities + 1u);
    }
    return one;
}

static const struct pool_device *find_device(const struct turns *t, const struct device_result *result,
                                             const struct device_use **out_use)
{
    const struct pool *pool = snapshot_find_pool(t->gang->snapshot, result->driver, result->pool);
    size_t i = pool ? pool_find_device(pool, result->device, SIZE_MAX) : SIZE_MAX;

    if (i == SIZE_MAX)
        return NULL;
    *out_use = &pool->use[i];
    return &pool->devices[i];
}

/* Where first fit has a say, what is refused on one card is looked for on others. */
static struct common *common_of(struct turns *t, const struct placed_member *member, const struct device_result *result)
{
    const struct pool *pool = snapshot_find_pool(t->gang->snapshot, result->driver, result->pool);
    const struct device_use *use;
    const struct pool_device *device = find_device(t, result, &use);

    if (!device)
        return NULL;
    if (t->is_exact)
        return find_common(t, device, device->device, use);
    return find_common(t, pool->only_node ? (const void *)snapshot_find_node(t->gang->snapshot, member->node) : t->gang,
                       NULL, NULL);
}

/* ---- what a member adds ---- */

static bool is_counted(const struct device_result *result)
{
    return result->is_share && !result->admin_access;
}

static const struct allocation *taken_by(const struct turns *t, const struct placed_claim *claim)
{
    return claim->source == GANG_CLAIM_SHARED ? &t->placement->shared[claim->shared] : &claim->allocation;
}

/* Whether an earlier member of the order brings the claim's devices already. */
static const struct seen *find_seen(const struct turns *t, const struct device_result *results)
{
    for (size_t i = 0; i < t->n_seen; i++)
        if (t->seen[i].results == results)
            return &t->seen[i];
    return NULL;
}

static bool is_for_several(const struct placed_claim *claim)
{
    return claim->source == GANG_CLAIM_SHARED || claim->source == GANG_CLAIM_EXISTING;
}

static void note_seen(struct turns *t, const struct placed_claim *claim, size_t turn)
{
    const struct device_result *results = taken_by(t, claim)->results;

    if (!is_for_several(claim) || find_seen(t, results))
        return;
    mem_grow(t->seen, t->n_seen, t->cap_seen);
    t->seen[t->n_seen++] = (struct seen){results, turn};
}

static gs_amount consumed_of(const struct device_result *result, const char *key)
{
    for (size_t i = 0; i < result->n_consumed; i++)
        if (strcmp(result->consumed[i].name, key) == 0)
            return gang_amount(&result->consumed[i].amount);
    return 0;
}

/* What the member adds to one capacity of a device, over all its claims; returns how many results. */
static size_t sum_up(const struct turns *t, const struct placed_member *member, const struct common *common, size_t c,
                     struct sums *out)
{
    size_t n = 0;

    *out = (struct sums){0, 0};
    for (size_t k = 0; k < member->n_claims; k++) {
        const struct allocation *taken = taken_by(t, &member->claims[k]);

        for (size_t i = 0; i < taken->n_results && !find_seen(t, taken->results); i++) {
            const struct device_use *use;
            gs_amount amount;

            if (!is_counted(&taken->results[i]) || find_device(t, &taken->results[i], &use) != common->key)
                continue;
            amount = consumed_of(&taken->results[i], common->device->capacities[c].key);
            out->least = n == 0 || amount < out->least ? amount : out->least;
            out->total += amount;
            n++;
        }
    }
    return n;
}

/* ---- turns ---- */

static bool has_results_on(const struct turns *t, const struct device_result *results, size_t n,
                           const struct common *common)
{
    const struct device_use *use;

    for (size_t i = 0; i < n; i++)
        if (is_counted(&results[i]) && find_device(t, &results[i], &use) == common->key)
            return true;
    return false;
}

/* A claim with results on the device that somebody of its present turn brings, or the member instead; NULL: none. */
static const struct device_result *find_joint(const struct turns *t, const struct placed_member *member,
                                              const struct common *common)
{
    for (size_t k = 0; k < member->n_claims; k++) {
        const struct allocation *taken = taken_by(t, &member->claims[k]);
        const struct seen *seen = find_seen(t, taken->results);

        if (seen && seen->turn == common->turn && has_results_on(t, taken->results, taken->n_results, common))
            return taken->results;
    }
    return NULL;
}

/* Whether the member can go together with those of the present turn: whoever comes last finds room although all the
 * others count twice. */
static bool has_room(const struct turns *t, const struct placed_member *member, const struct common *common)
{
    const struct device_result *joint;

    if (!common->device)
        return !common->is_joined;
    joint = find_joint(t, member, common);
    for (size_t c = 0; c < common->device->n_capacities && common->n > 0; c++) {
        const struct sums *theirs = &common->during[c];
        struct sums sums;
        gs_amount held = common->use->consumed ? gang_amount(&common->use->consumed[c]) : 0, least = theirs->least;

        if (sum_up(t, member, common, c, &sums) > 0)
            least = sums.least < least ? sums.least : least;
        else if (!joint || joint == common->only)
            return true;
        if (held + common->before[c] + 2 * (theirs->total + sums.total) - least >
            gang_amount(&common->device->capacities[c].value))
            return false;
    }
    return true;
}

/* The claim that brings all that the member adds to the device, if several members use it. */
static const struct device_result *only_of(const struct turns *t, const struct placed_member *member,
                                           const struct common *common)
{
    const struct device_result *only = NULL;

    for (size_t k = 0; k < member->n_claims; k++) {
        const struct allocation *taken = taken_by(t, &member->claims[k]);

        if (find_seen(t, taken->results) || !has_results_on(t, taken->results, taken->n_results, common))
            continue;
        if (only || !is_for_several(&member->claims[k]))
            return NULL;
        only = taken->results;
    }
    return only;
}

static void join(const struct turns *t, const struct placed_member *member, struct common *common, size_t turn)
{
    bool is_first = turn > common->turn || common->n == 0;
    size_t n = 0;

    for (size_t c = 0; common->device && c < common->device->n_capacities; c++) {
        struct sums *theirs = &common->during[c], sums;

        if (turn > common->turn) {
            common->before[c] += theirs->total;
            *theirs = (struct sums){0, 0};
        }
        n = sum_up(t, member, common, c, &sums);
        if (n == 0)
            continue;
        theirs->least = is_first || sums.least < theirs->least ? sums.least : theirs->least;
        theirs->total += sums.total;
    }
    if (is_first || n > 0)
        common->only = is_first ? only_of(t, member, common) : NULL;
    common->n = turn > common->turn ? n : common->n + n;
    common->turn = turn;
    common->is_joined = true;
}

/* The things that the member shares, each once. */
static size_t commons_of(struct turns *t, size_t m, size_t *out, size_t max)
{
    const struct placed_member *member = &t->placement->members[m];
    size_t n = 0;

    for (size_t k = 0; k < member->n_claims; k++) {
        const struct allocation *taken = taken_by(t, &member->claims[k]);

        for (size_t i = 0; i < taken->n_results; i++) {
            struct common *common = is_counted(&taken->results[i]) ? common_of(t, member, &taken->results[i]) : NULL;
            size_t at = common ? (size_t)(common - t->commons) : 0;
            bool is_new = common != NULL;

            for (size_t j = 0; j < n && is_new; j++)
                is_new = out[j] != at;
            if (is_new && n < max)
                out[n++] = at;
        }
    }
    return n;
}

static size_t count_results(const struct turns *t, size_t m)
{
    const struct placed_member *member = &t->placement->members[m];
    size_t n = 0;

    for (size_t k = 0; k < member->n_claims; k++)
        n += taken_by(t, &member->claims[k])->n_results;
    return n;
}

static size_t turn_of(struct turns *t, size_t m)
{
    const struct placed_member *member = &t->placement->members[m];
    size_t max = count_results(t, m), *at = arena_array(&t->gang->work, size_t, max + 1), turn = 0;
    size_t n = commons_of(t, m, at, max);

    for (size_t i = 0; i < n; i++) {
        const struct common *common = &t->commons[at[i]];
        size_t own = common->turn + !has_room(t, member, common);

        turn = own > turn ? own : turn;
    }
    for (size_t i = 0; i < n; i++)
        join(t, member, &t->commons[at[i]], turn);
    for (size_t k = 0; k < member->n_claims; k++)
        note_seen(t, &member->claims[k], turn);
    return turn;
}

static bool has_shares(const struct turns *t)
{
    for (size_t m = 0; m < t->placement->n_members; m++)
        for (size_t k = 0; k < t->placement->members[m].n_claims; k++) {
            const struct allocation *taken = taken_by(t, &t->placement->members[m].claims[k]);

            for (size_t i = 0; i < taken->n_results; i++)
                if (is_counted(&taken->results[i]))
                    return true;
        }
    return false;
}

void gang_turns(struct gang *gang, bool is_exact, struct placement *placement)
{
    struct turns t = {.gang = gang, .placement = placement, .is_exact = is_exact};
    struct placed_member *members;

    if (!has_shares(&t))
        return;
    members = arena_array(gang->arena, struct placed_member, placement->n_members);
    for (size_t m = 0; m < placement->n_members; m++) {
        members[m] = placement->members[m];
        members[m].turn = turn_of(&t, m);
    }
    placement->members = members;
    free(t.commons);
    free(t.seen);
}

/* How many go before the member when everybody goes alone. */
static size_t count_before(const size_t *turns, size_t n, size_t member)
{
    size_t before = 0;

    for (size_t m = 0; m < n; m++)
        before += turns[m] < turns[member] || (turns[m] == turns[member] && m < member);
    return before;
}

void gang_set_turns(struct gang *gang, const size_t *turns, struct placement *placement)
{
    struct turns t = {.gang = gang, .placement = placement};
    struct placed_member *members = arena_array(gang->arena, struct placed_member, placement->n_members);
    bool is_alone = has_shares(&t);

    for (size_t m = 0; m < placement->n_members; m++) {
        members[m] = placement->members[m];
        members[m].turn = is_alone ? count_before(turns, placement->n_members, m) : turns[m];
    }
    placement->members = members;
    placement->needs_turns = true;
}
