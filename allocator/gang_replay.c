/* Every member's steered claims go through predict on its node, one member after the other, as kube-scheduler will take
 * them.
 *
 * Members can only disturb each other on one node (or all, where devices of the network or constraints of the gang join
 * the nodes), so that the orders to be tried are those of the members of a node: all of few, several of many. */
#include "allocator/gang_replay.h"

#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/rng.h"

#include "allocator/base/banned.h"

#define MIXED_ORDERS 6
#define FEW_MEMBERS  5  /* so many that all orders are tried */
#define TURN_STEPS   64 /* of the budget: one member replayed where devices are not told apart */
#define LARGE_GANG   8  /* members; the first so many of a larger one are replayed where that is enough */

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

/* Every member that uses it shows the same. */
static const struct allocation *planned_of_existing(const struct replay *r, const struct placement *placement,
                                                    const struct gang_shared_claim *shared)
{
    for (size_t m = 0; m < placement->n_members; m++) {
        const struct placed_member *member = &placement->members[m];
        const struct gang_group *group = &r->gang->spec->groups[member->group];

        for (size_t c = 0; c < group->n_claims; c++)
            if (group->claims[c].source == GANG_CLAIM_EXISTING && strcmp(group->claims[c].name, shared->existing) == 0)
                return &member->claims[c].allocation;
    }
    return NULL;
}

static void prepare_shared(struct replay *r, const struct placement *placement)
{
    r->shared = arena_array(r->arena, struct replay_claim, r->gang->n_shared);
    for (size_t s = 0; s < r->gang->n_shared; s++) {
        const struct gang_shared_claim *shared = &r->gang->shared[s];

        if (shared->spec_index == SIZE_MAX) { /* exists already, so that it cannot be steered */
            r->shared[s] = (struct replay_claim){
                .claim = shared->unit->claims[0], .planned = planned_of_existing(r, placement, shared), .shared = s};
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

    out->placed = placed;
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
            *one = (struct replay_claim){
                .claim = implicit_claim(r, kind, out->node), .planned = &claim->allocation, .shared = SIZE_MAX};
        else
            shared =
                claim->source == GANG_CLAIM_SHARED ? claim->shared : existing_index(r->gang, group->claims[c].name);
        if (shared != SIZE_MAX)
            *one = r->shared[shared];
        else if (claim->source == GANG_CLAIM_SHARED || claim->source == GANG_CLAIM_EXISTING)
            continue; /* has its devices already */
        one->entry = c;
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
bool replay_as_planned(const struct allocation *got, const struct allocation *planned)
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

void replay_turn_init(struct replay_turn *turn, const struct replay *r, struct arena *arena)
{
    *turn = (struct replay_turn){.ledger = ledger_new(r->gang->snapshot), .arena = arena};
    turn->shared = arena_array(arena, const struct allocation *, r->gang->n_shared);
    turn->shared_nodes = arena_array(arena, const struct node *, r->gang->n_shared);
    turn->got = arena_array(arena, const struct allocation **, r->n_members);
}

static const void *copy_of(struct arena *arena, const void *from, size_t size)
{
    void *out = arena_alloc(arena, size, alignof(void *));

    if (size)
        memcpy(out, from, size);
    return out;
}

struct replay_kept replay_keep(const struct replay *r, const struct replay_turn *turn)
{
    size_t n = r->gang->n_shared;

    return (struct replay_kept){
        .mark = ledger_mark(turn->ledger),
        .shared = copy_of(turn->arena, turn->shared, n * sizeof(*turn->shared)),
        .shared_nodes = copy_of(turn->arena, turn->shared_nodes, n * sizeof(*turn->shared_nodes)),
        .got = copy_of(turn->arena, turn->got, r->n_members * sizeof(*turn->got)),
    };
}

void replay_return(const struct replay *r, struct replay_turn *turn, const struct replay_kept *kept)
{
    size_t n = r->gang->n_shared;

    ledger_rollback(turn->ledger, kept->mark);
    if (n > 0) {
        memcpy(turn->shared, kept->shared, n * sizeof(*turn->shared));
        memcpy(turn->shared_nodes, kept->shared_nodes, n * sizeof(*turn->shared_nodes));
    }
    memcpy(turn->got, kept->got, r->n_members * sizeof(*turn->got));
}

static bool usable_on(const struct allocation *allocation, const struct node *node)
{
    if (allocation->only_node)
        return strcmp(allocation->only_node, node->info->name) == 0;
    return !allocation->selector || node_selector_matches(allocation->selector, node->info);
}

/* What a member asks for, and is given. */
struct asking {
    const struct claim **claims;
    size_t *entries; /* in the member's claims */
    size_t n;
    struct prediction prediction;
};

static bool is_as_planned(const struct replay_member *member, const struct asking *asking, bool exact_only)
{
    for (size_t i = 0; i < asking->n; i++) {
        const struct replay_claim *claim = &member->claims[asking->entries[i]];

        if ((claim->is_exact || !exact_only) && !replay_as_planned(&asking->prediction.allocations[i], claim->planned))
            return false;
    }
    return true;
}

static void take_results(const struct replay *r, struct replay_turn *turn, size_t index, const struct asking *asking)
{
    const struct replay_member *member = &r->members[index];

    ledger_add_pod(turn->ledger, member->node, member->demand);
    for (size_t i = 0; i < asking->n; i++) {
        const struct replay_claim *claim = &member->claims[asking->entries[i]];
        const struct allocation *got = &asking->prediction.allocations[i];

        turn->got[index][asking->entries[i]] = got;
        if (claim->shared != SIZE_MAX) {
            turn->shared[claim->shared] = got;
            turn->shared_nodes[claim->shared] = member->node;
        }
        ledger_take(turn->ledger, got);
    }
}

/* The member's claims that are still to be allocated; false when one cannot be, or cannot be used on its node. */
static bool ask(const struct replay *r, struct replay_turn *turn, size_t index, struct asking *out)
{
    const struct replay_member *member = &r->members[index];

    *out = (struct asking){.claims = arena_array(turn->arena, const struct claim *, member->n_claims),
                           .entries = arena_array(turn->arena, size_t, member->n_claims)};
    turn->got[index] = arena_array(turn->arena, const struct allocation *, member->n_claims);
    for (size_t c = 0; c < member->n_claims; c++) {
        const struct replay_claim *claim = &member->claims[c];
        const struct allocation *given = claim->shared == SIZE_MAX ? NULL : turn->shared[claim->shared];

        if (!claim->claim || (given && !usable_on(given, member->node)))
            return false;
        turn->got[index][c] = given;
        if (given)
            continue;
        out->entries[out->n] = c;
        out->claims[out->n++] = claim->claim;
    }
    return true;
}

bool replay_member(const struct replay *r, struct replay_turn *turn, size_t index, enum replay_wish wish)
{
    const struct replay_member *member = &r->members[index];
    const struct search_options options = {0};
    struct arena_mark mark = arena_mark(turn->arena);
    struct asking asking;
    struct shape *shape;
    bool held = ask(r, turn, index, &asking);

    if (held) {
        shape = shape_new(r->gang->snapshot, asking.claims, asking.n);
        predict_shape(shape, turn->ledger, member->node, &options, turn->arena, &asking.prediction);
        shape_free(shape);
        held = asking.prediction.verdict == PREDICT_ALLOCATED &&
               is_as_planned(member, &asking, wish == REPLAY_WHAT_IS_GIVEN);
    }
    if (held && wish != REPLAY_TRY)
        take_results(r, turn, index, &asking);
    else {
        turn->got[index] = NULL;
        arena_rewind(turn->arena, mark);
    }
    return held;
}

/* ---- what the gang asks of all its devices together ---- */

/* What a constraint has seen so far. */
struct seen {
    const struct gang_constraint *constraint;
    uint32_t *elements; /* of matchAttribute: those that all share; of distinctAttribute: all */
    size_t n;
    bool is_begun;
};

static bool seen_has(const struct seen *seen, uint32_t element)
{
    for (size_t i = 0; i < seen->n; i++)
        if (seen->elements[i] == element)
            return true;
    return false;
}

static bool value_has(const struct gs_value *value, uint32_t element)
{
    for (uint32_t i = 0; i < value->n; i++)
        if (value->elements[i] == element)
            return true;
    return false;
}

static bool see_value(struct seen *seen, const struct gs_value *value, struct arena *arena)
{
    bool distinct = seen->constraint->kind == GANG_DISTINCT_ATTRIBUTE;
    uint32_t *next = arena_array(arena, uint32_t, seen->n + value->n);
    size_t n = 0;

    for (size_t i = 0; i < seen->n; i++)
        if (distinct || value_has(value, seen->elements[i]))
            next[n++] = seen->elements[i];
    for (uint32_t i = 0; i < value->n && (distinct || !seen->is_begun); i++) {
        if (distinct && seen_has(seen, value->elements[i]))
            return false;
        next[n++] = value->elements[i];
    }
    *seen = (struct seen){.constraint = seen->constraint, .elements = next, .n = n, .is_begun = true};
    return n > 0;
}

static const struct pool_device *device_of(const struct replay *r, const struct device_result *result)
{
    const struct pool *pool = snapshot_find_pool(r->gang->snapshot, result->driver, result->pool);

    for (size_t i = 0; pool && i < pool->n_devices; i++)
        if (strcmp(pool->devices[i].device->name, result->device) == 0)
            return &pool->devices[i];
    return NULL;
}

/* Results of steered claims name the request alone; the plan tells the alternative. */
static bool covers_result(const struct gang_constraint *constraint, const struct allocation *planned,
                          const struct device_result *result)
{
    char request[64];
    size_t len = strcspn(result->request, "/");
    const char *sub = "";

    if (len >= sizeof(request))
        return false;
    memcpy(request, result->request, len);
    request[len] = 0;
    for (size_t i = 0; i < planned->n_results; i++)
        if (strncmp(planned->results[i].request, request, len) == 0 && planned->results[i].request[len] == '/')
            sub = planned->results[i].request + len + 1;
    return gang_constraint_covers_request(constraint, request, sub);
}

static bool see_claim(const struct replay *r, struct seen *seen, const struct replay_claim *claim,
                      const struct allocation *got, struct arena *arena)
{
    for (size_t i = 0; got && i < got->n_results; i++) {
        const struct pool_device *device = device_of(r, &got->results[i]);
        const struct gs_value *value;

        if (!covers_result(seen->constraint, claim->planned, &got->results[i]))
            continue;
        value = device
                    ? gang_value(r->gang, attribute_find(got->results[i].driver, device->device, seen->constraint->key),
                                 arena)
                    : NULL;
        if (!value || value->odd || !see_value(seen, value, arena))
            return false;
    }
    return true;
}

static bool group_shares(const struct gang *gang, size_t g, size_t shared)
{
    return gang->kinds[gang->kind_of[g]].shared >> shared & 1;
}

bool replay_covers_shared(const struct gang *gang, const struct gang_constraint *constraint, size_t shared)
{
    if (gang->shared[shared].spec_index == SIZE_MAX) /* exists already: of no group */
        return constraint->n_groups == 0;
    for (size_t g = 0; g < gang->spec->n_groups; g++)
        if (group_shares(gang, g, shared) && gang_constraint_covers_group(constraint, gang->spec->groups[g].name))
            return true;
    return false;
}

static bool constraint_holds(const struct replay *r, const struct replay_turn *turn,
                             const struct gang_constraint *constraint)
{
    struct seen seen = {.constraint = constraint};

    for (size_t s = 0; s < r->gang->n_shared; s++)
        if (turn->shared[s] && replay_covers_shared(r->gang, constraint, s) &&
            !see_claim(r, &seen, &r->shared[s], turn->shared[s], turn->arena))
            return false;
    for (size_t m = 0; m < r->n_members; m++) {
        const struct replay_member *member = &r->members[m];

        if (!turn->got[m] ||
            !gang_constraint_covers_group(constraint, r->gang->spec->groups[member->placed->group].name))
            continue;
        for (size_t c = 0; c < member->n_claims; c++)
            if (member->claims[c].shared == SIZE_MAX &&
                !see_claim(r, &seen, &member->claims[c], turn->got[m][c], turn->arena))
                return false;
    }
    return true;
}

static bool uses_excluded(const struct gang *gang, const struct replay *r, const struct allocation *got)
{
    for (size_t i = 0; got && i < got->n_results; i++) {
        const struct pool_device *device = device_of(r, &got->results[i]);

        for (size_t x = 0; device && x < gang->spec->n_excluded; x++)
            if (device_matches(gang->snapshot, gang->spec->excluded[x], got->results[i].driver, device->device))
                return true;
    }
    return false;
}

bool replay_agrees(const struct replay *r, const struct replay_turn *turn)
{
    const struct gang_spec *spec = r->gang->spec;

    for (size_t i = 0; i < spec->n_constraints; i++)
        if (spec->constraints[i].kind != GANG_MATCH_NODE_LABEL && !constraint_holds(r, turn, &spec->constraints[i]))
            return false;
    for (size_t m = 0; m < r->n_members && spec->n_excluded; m++)
        for (size_t c = 0; turn->got[m] && c < r->members[m].n_claims; c++)
            if (uses_excluded(r->gang, r, turn->got[m][c]))
                return false;
    return true;
}

/* ---- an order ---- */

void replay_charge(const struct replay *r, size_t n)
{
    r->gang->steps -= r->gang->steps < n * TURN_STEPS ? r->gang->steps : n * TURN_STEPS;
}

bool replay_play(const struct replay *r, struct replay_turn *turn, const size_t *order, size_t n)
{
    bool held = true;

    for (size_t i = 0; i < n && held; i++)
        held = replay_member(r, turn, order[i], REPLAY_WHAT_IS_GIVEN);
    if (r->is_exact)
        return held;
    replay_charge(r, n);
    return held && replay_agrees(r, turn);
}

static bool replay_order(const struct replay *r, const size_t *order, size_t n)
{
    struct arena arena;
    struct replay_turn turn;
    bool held;

    arena_init(&arena);
    replay_turn_init(&turn, r, &arena);
    held = replay_play(r, &turn, order, n);
    ledger_free(turn.ledger);
    arena_release(&arena);
    return held;
}

/* ---- several orders ---- */

static void swap(size_t *order, size_t i, size_t j)
{
    size_t kept = order[i];

    order[i] = order[j];
    order[j] = kept;
}

static void reverse(size_t *order, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        swap(order, i, n - 1 - i);
}

static void mix(size_t *order, size_t n, struct rng *rng)
{
    for (size_t i = n; i > 1; i--)
        swap(order, i - 1, rng_below(rng, i));
}

/* The next one in lexical order; false after the last. */
static bool next_order(size_t *order, size_t n)
{
    size_t at = n - 1, with = n - 1;

    while (at > 0 && order[at - 1] > order[at])
        at--;
    if (at == 0)
        return false;
    while (order[with] < order[at - 1])
        with--;
    swap(order, at - 1, with);
    reverse(order + at, n - at);
    return true;
}

/* In every order of these members but the plain one, in which they are given. */
static bool holds_in_all_orders(const struct replay *r, size_t *members, size_t n)
{
    while (next_order(members, n))
        if (!replay_order(r, members, n))
            return false;
    return true;
}

static bool holds_in_some_orders(const struct replay *r, size_t *members, size_t n)
{
    struct rng rng = {.state = 1};

    reverse(members, n);
    if (!replay_order(r, members, n))
        return false;
    for (size_t t = 0; t < MIXED_ORDERS; t++) {
        mix(members, n, &rng);
        if (!replay_order(r, members, n))
            return false;
    }
    return true;
}

/* Whether the member's node offers devices that other nodes offer, too: its claims may admit them, planned or not. */
static bool reaches_network(const struct replay *r, const struct replay_member *member)
{
    const struct gang_kind *kind = &r->gang->kinds[r->gang->kind_of[member->placed->group]];
    const struct gang_unit *unit = kind->forms[gang_form_of(r->gang, member->node->info)];
    struct arena_mark mark = arena_mark(r->arena);
    const struct bench *bench = bench_make(unit->shape, NULL, member->node, r->arena);
    bool reaches = false;

    for (size_t i = 0; i < bench->n_offers && !reaches; i++)
        reaches = bench->offers[i].view->pool->only_node == NULL;
    arena_rewind(r->arena, mark);
    return reaches;
}

/* Whether members on different nodes can have a say in what each other is given. */
static bool is_coupled(const struct replay *r)
{
    for (size_t i = 0; i < r->gang->spec->n_constraints; i++)
        if (r->gang->spec->constraints[i].kind != GANG_MATCH_NODE_LABEL)
            return true;
    for (size_t m = 0; m < r->n_members; m++)
        if (reaches_network(r, &r->members[m]))
            return true;
    return r->gang->n_shared > 0;
}

bool replay_holds_in_other_orders(const struct replay *r)
{
    size_t *party = arena_array(r->arena, size_t, r->n_members);
    bool *done = arena_array(r->arena, bool, r->n_members), all = is_coupled(r), held = true;

    for (size_t m = 0; m < r->n_members && held; m++) {
        size_t n = 0;

        for (size_t k = m; k < r->n_members && !done[m]; k++)
            if (all || r->members[k].node == r->members[m].node) {
                party[n++] = k;
                done[k] = k != m;
            }
        done[m] = true;
        if (n < 2)
            continue;
        held = n <= FEW_MEMBERS ? holds_in_all_orders(r, party, n) : holds_in_some_orders(r, party, n);
    }
    return held;
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

/* ---- the whole ---- */

void replay_prepare(struct replay *r, struct gang *gang, const struct placement *placement)
{
    *r = (struct replay){.gang = gang, .arena = &gang->work, .n_members = placement->n_members, .is_exact = true};
    if (needs_no_full_replay(r, placement))
        r->n_members = LARGE_GANG;
    r->members = arena_array(r->arena, struct replay_member, r->n_members);
    prepare_shared(r, placement);
    for (size_t m = 0; m < r->n_members; m++)
        prepare_member(r, &placement->members[m], &r->members[m]);
}
