/* The placement, replayed: every member's steered claims go through predict on its node, one member after the other, as
 * kube-scheduler will take them.
 *
 * Where every request names its devices by an attribute that identifies them, one order proves all: a claim can only be
 * given what was planned for it, the plan gives no device twice, and what is taken adds up to the same in any order.
 * Else several orders are tried: forwards, backwards, and some that are mixed. */
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

#define MIXED_ORDERS 6
#define LARGE_GANG   8 /* members; the first so many of a larger one are replayed where that is enough */

struct replay_claim {
    const struct claim *claim;
    const struct allocation *planned;
    size_t shared; /* index into gang->shared; SIZE_MAX: the member's own */
    bool is_exact;
};
struct replay_member {
    const struct node *node;
    const struct pod_demand *demand;
    struct replay_claim *claims;
    size_t n_claims;
};
struct replay {
    struct gang *gang;
    struct arena *arena;
    struct replay_member *members;
    size_t n_members;
    struct replay_claim *shared; /* per gang->shared */
    bool is_exact;
};

/* ---- what kube-scheduler will see ---- */

static const struct claim *parse_steered(struct replay *r, json_t *spec)
{
    json_t *object = json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                               "metadata", "name", "steered", "spec", spec);
    struct claim *claim = NULL;
    struct error err;

    if (object && claim_parse(object, snapshot_features(r->gang->snapshot), false, r->arena, &claim, &err) < 0)
        claim = NULL;
    json_decref(object);
    return claim;
}

static struct replay_claim steered(struct replay *r, const struct node *node, const json_t *object,
                                   const struct allocation *planned)
{
    struct replay_claim out = {.planned = planned, .shared = SIZE_MAX};
    json_t *spec = steer_claim(r->gang->snapshot, planned->only_node ? node : NULL, object, planned, &out.is_exact);

    out.claim = spec ? parse_steered(r, spec) : NULL;
    return out;
}

static void prepare_shared(struct replay *r, const struct placement *placement)
{
    r->shared = arena_array(r->arena, struct replay_claim, r->gang->n_shared);
    for (size_t s = 0; s < r->gang->n_shared; s++) {
        const struct gang_shared_claim *shared = &r->gang->shared[s];

        if (shared->spec_index == SIZE_MAX) { /* exists already, so that it cannot be steered */
            r->shared[s] = (struct replay_claim){.claim = shared->unit->claims[0], .shared = s};
        } else {
            const struct allocation *planned = &placement->shared[shared->spec_index];
            const struct node *node =
                planned->only_node ? snapshot_find_node(r->gang->snapshot, planned->only_node) : NULL;

            r->shared[s] = steered(r, node, r->gang->spec->shared[shared->spec_index], planned);
            r->shared[s].shared = s;
        }
        r->is_exact = r->is_exact && r->shared[s].is_exact;
    }
}

static size_t existing_index(const struct gang *gang, const char *name)
{
    for (size_t s = 0; s < gang->n_shared; s++)
        if (gang->shared[s].existing && strcmp(gang->shared[s].existing, name) == 0)
            return s;
    return SIZE_MAX;
}

static const struct claim *implicit_claim(struct replay *r, const struct gang_kind *kind, const struct node *node)
{
    const struct gang_unit *unit = kind->forms[gang_form_of(r->gang, node->info)];

    for (size_t c = 0; c < unit->n_claims; c++)
        if (unit->entries[c] == SIZE_MAX)
            return unit->claims[c];
    return NULL;
}

static void prepare_member(struct replay *r, const struct placed_member *placed, struct replay_member *out)
{
    const struct gang_group *group = &r->gang->spec->groups[placed->group];
    const struct gang_kind *kind = &r->gang->kinds[r->gang->kind_of[placed->group]];

    out->node = snapshot_find_node(r->gang->snapshot, placed->node);
    out->demand = &kind->rules.demand;
    out->claims = arena_array(r->arena, struct replay_claim, placed->n_claims);
    for (size_t c = 0; c < placed->n_claims; c++) {
        const struct placed_claim *claim = &placed->claims[c];
        size_t shared = SIZE_MAX;
        struct replay_claim *one = &out->claims[out->n_claims];

        if (claim->source == GANG_CLAIM_OWN)
            *one = steered(r, out->node, group->claims[c].object, &claim->allocation);
        else if (claim->source == GANG_CLAIM_EXTENDED)
            *one = (struct replay_claim){implicit_claim(r, kind, out->node), &claim->allocation, SIZE_MAX, false};
        else
            shared =
                claim->source == GANG_CLAIM_SHARED ? claim->shared : existing_index(r->gang, group->claims[c].name);
        if (shared != SIZE_MAX)
            *one = r->shared[shared];
        else if (claim->source == GANG_CLAIM_SHARED || claim->source == GANG_CLAIM_EXISTING)
            continue; /* has its devices already */
        r->is_exact = r->is_exact && one->is_exact;
        out->n_claims++;
    }
}

/* ---- one order ---- */

static bool same_device(const struct device_result *a, const struct device_result *b)
{
    const char *slash = strchr(b->request, '/');
    size_t len = slash ? (size_t)(slash - b->request) : strlen(b->request);

    return strncmp(a->request, b->request, len) == 0 && a->request[len] == 0 && strcmp(a->driver, b->driver) == 0 &&
           strcmp(a->pool, b->pool) == 0 && strcmp(a->device, b->device) == 0;
}

/* Steered claims name requests without their alternatives. */
static bool as_planned(const struct allocation *got, const struct allocation *planned)
{
    if (got->n_results != planned->n_results)
        return false;
    for (size_t i = 0; i < planned->n_results; i++) {
        bool found = false;

        for (size_t j = 0; j < got->n_results && !found; j++)
            found = same_device(&got->results[j], &planned->results[i]);
        if (!found)
            return false;
    }
    return true;
}

struct turn { /* the state of one replay */
    struct ledger *ledger;
    const struct allocation **shared; /* what each shared claim was given; NULL: nothing yet */
    struct arena arena;
};

static bool usable_on(const struct allocation *allocation, const struct node *node)
{
    if (allocation->only_node)
        return strcmp(allocation->only_node, node->info->name) == 0;
    return !allocation->selector || node_selector_matches(allocation->selector, node->info);
}

static bool take_results(const struct replay *r, struct turn *turn, const struct replay_claim *const *asked, size_t n,
                         const struct prediction *prediction)
{
    for (size_t i = 0; i < n; i++) {
        if (asked[i]->is_exact && !as_planned(&prediction->allocations[i], asked[i]->planned))
            return false;
        if (asked[i]->shared != SIZE_MAX)
            turn->shared[asked[i]->shared] = &prediction->allocations[i];
        ledger_take(turn->ledger, &prediction->allocations[i]);
    }
    (void)r;
    return true;
}

static bool schedule(const struct replay *r, struct turn *turn, const struct replay_member *member)
{
    const struct claim **claims = arena_array(&turn->arena, const struct claim *, member->n_claims);
    const struct replay_claim **asked = arena_array(&turn->arena, const struct replay_claim *, member->n_claims);
    const struct search_options options = {0};
    struct prediction prediction;
    struct shape *shape;
    size_t n = 0;

    for (size_t c = 0; c < member->n_claims; c++) {
        const struct replay_claim *claim = &member->claims[c];
        const struct allocation *given = claim->shared == SIZE_MAX ? NULL : turn->shared[claim->shared];

        if (!claim->claim || (given && !usable_on(given, member->node)))
            return false;
        if (given)
            continue;
        asked[n] = claim;
        claims[n++] = claim->claim;
    }
    shape = shape_new(r->gang->snapshot, claims, n);
    predict_shape(shape, turn->ledger, member->node, &options, &turn->arena, &prediction);
    shape_free(shape);
    if (prediction.verdict != PREDICT_ALLOCATED)
        return false;
    ledger_add_pod(turn->ledger, member->node, member->demand);
    return take_results(r, turn, asked, n, &prediction);
}

static bool replay_order(const struct replay *r, const size_t *order)
{
    struct turn turn = {.ledger = ledger_new(r->gang->snapshot)};
    bool held = true;

    arena_init(&turn.arena);
    turn.shared = arena_array(&turn.arena, const struct allocation *, r->gang->n_shared);
    for (size_t i = 0; i < r->n_members && held; i++)
        held = schedule(r, &turn, &r->members[order[i]]);
    arena_release(&turn.arena);
    ledger_free(turn.ledger);
    return held;
}

/* ---- several orders ---- */

static void mix(size_t *order, size_t n, struct rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = rng_below(rng, i), kept = order[i - 1];

        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static bool holds_in_other_orders(const struct replay *r, size_t *order)
{
    struct rng rng = {.state = 1};

    for (size_t i = 0; i < r->n_members; i++)
        order[i] = r->n_members - 1 - i;
    if (!replay_order(r, order))
        return false;
    for (size_t t = 0; t < MIXED_ORDERS; t++) {
        mix(order, r->n_members, &rng);
        if (!replay_order(r, order))
            return false;
    }
    return true;
}

/* ---- large gangs ---- */

static const struct offer *find_offer(const struct bench *bench, const struct device_result *result)
{
    for (size_t i = 0; i < bench->n_offers; i++)
        if (strcmp(bench->offers[i].device->name, result->device) == 0 &&
            strcmp(bench->offers[i].slice->pool, result->pool) == 0 &&
            strcmp(bench->offers[i].slice->driver, result->driver) == 0)
            return &bench->offers[i];
    return NULL;
}

/* Whether the planned devices are told apart by an attribute from all that the node can reach, matching or not. */
static bool plainly_identified(const struct replay *r, const struct node *node, const struct gang_unit *unit,
                               const struct allocation *planned)
{
    struct arena_mark mark = arena_mark(r->arena);
    const struct bench *bench = bench_make(unit->shape, NULL, node, r->arena);
    bool identified = planned->only_node != NULL;

    for (size_t i = 0; i < planned->n_results && identified; i++) {
        const struct offer *offer = find_offer(bench, &planned->results[i]);

        identified = offer && steer_identifies(bench, offer);
    }
    arena_rewind(r->arena, mark);
    return identified;
}

static bool needs_no_full_replay(const struct replay *r, const struct placement *placement)
{
    if (placement->n_members <= LARGE_GANG || r->gang->n_shared > 0)
        return false;
    for (size_t i = 0; i < placement->n_members; i++) {
        const struct placed_member *member = &placement->members[i];
        const struct node *node = snapshot_find_node(r->gang->snapshot, member->node);
        const struct gang_unit *unit =
            r->gang->kinds[r->gang->kind_of[member->group]].forms[gang_form_of(r->gang, node->info)];

        for (size_t c = 0; c < member->n_claims; c++)
            if (member->claims[c].source != GANG_CLAIM_OWN ||
                !plainly_identified(r, node, unit, &member->claims[c].allocation))
                return false;
    }
    return true;
}

bool gang_check(struct gang *gang, struct placement *placement)
{
    struct arena_mark mark = arena_mark(&gang->work);
    struct replay r = {.gang = gang, .arena = &gang->work, .n_members = placement->n_members, .is_exact = true};
    size_t *order = arena_array(r.arena, size_t, r.n_members);
    bool held, exact;

    if (needs_no_full_replay(&r, placement))
        r.n_members = LARGE_GANG;
    r.members = arena_array(r.arena, struct replay_member, r.n_members);
    prepare_shared(&r, placement);
    for (size_t i = 0; i < r.n_members; i++) {
        prepare_member(&r, &placement->members[i], &r.members[i]);
        order[i] = i;
    }
    held = replay_order(&r, order);
    exact = r.is_exact;
    if (!exact && (!held || !holds_in_other_orders(&r, order))) {
        placement->bind_only = true;
        placement->bind_reason =
            "some devices cannot be told apart by an attribute, and in another order of the members "
            "kube-scheduler would choose among them so that a member finds none";
    }
    arena_rewind(&gang->work, mark);
    return held || !exact;
}
