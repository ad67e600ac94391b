/* Can steering hold the placement? The steered claims are replayed (gang_replay.c).
 *
 * Where every request names its devices by an attribute that identifies them, one order proves all: a claim can only be
 * given what was planned for it, the plan gives no device twice, and what is taken adds up to the same in any order.
 *
 * Else first fit has a say, and the plan follows it: what the members are given in their plain order becomes the plan,
 * until the plan repeats itself. Then other orders are tried. Every member must find devices in each, and what the gang
 * asks of all of them together must hold.
 *
 * Where that fails the claims are widened: each admits what the others of its node were given, too, so that first fit
 * deals out as if nothing were steered but the node.
 *
 * Where no placement holds like that, members can take turns. First go all whom first fit gives what was planned for
 * them while nobody has anything; when they have it, all whom first fit gives that now; and so on. Within a turn the
 * order does not matter: nobody takes what was planned for another, and what was the first choice among more stays the
 * first among less. For the same reason nobody goes too early, so that every order in which members would be given what
 * was planned is found. */
#include "allocator/gang_replay.h"

#include <string.h>

#include "allocator/base/banned.h"

#define MAX_FOLLOWS    4  /* before the plan repeats itself */
#define MAX_DEPARTURES 64 /* of a member from its plan, tried in one search for turns */

/* ---- the plan follows ---- */

static bool differs(const struct replay *r, const struct replay_turn *turn)
{
    for (size_t m = 0; m < r->n_members; m++)
        for (size_t c = 0; c < r->members[m].n_claims; c++)
            if (!replay_as_planned(turn->got[m][c], r->members[m].claims[c].planned))
                return true;
    return false;
}

/* An allocation in place of another one; what is admitted beside it stays. */
static void put_allocation(const struct allocation *at, const struct allocation *next)
{
    struct allocation *out = (struct allocation *)(uintptr_t)at;
    const struct allocation before = *at;

    *out = *next;
    out->also = before.also;
    out->n_also = before.n_also;
    out->kept = before.kept;
    out->n_kept = before.n_kept;
}

/* The members' own claims, each unit's together. */
static bool follow_own(const struct replay *r, const struct replay_turn *turn, size_t m,
                       const struct placed_member *out)
{
    const struct replay_member *member = &r->members[m];
    const struct gang_kind *kind = &r->gang->kinds[r->gang->kind_of[out->group]];
    const struct gang_unit *unit = kind->forms[gang_form_of(r->gang, member->node->info)];
    const struct allocation **planned = arena_array(r->arena, const struct allocation *, unit->n_claims), *next;
    const struct allocation **got = arena_array(r->arena, const struct allocation *, unit->n_claims);

    for (size_t c = 0; c < unit->n_claims; c++) {
        size_t entry = unit->entries[c] == SIZE_MAX ? r->gang->spec->groups[out->group].n_claims : unit->entries[c];

        for (size_t k = 0; k < member->n_claims; k++)
            if (member->claims[k].entry == entry) {
                planned[c] = member->claims[k].planned;
                got[c] = turn->got[m][k];
            }
    }
    next = gang_allocations(r->gang, unit, member->node, planned, got);
    for (size_t c = 0; next && c < unit->n_claims; c++)
        put_allocation(
            &out->claims[unit->entries[c] == SIZE_MAX ? r->gang->spec->groups[out->group].n_claims : unit->entries[c]]
                 .allocation,
            &next[c]);
    return next || unit->n_claims == 0;
}

static bool follow_shared(const struct replay *r, const struct replay_turn *turn, struct placement *out)
{
    for (size_t s = 0; s < r->gang->n_shared; s++) {
        const struct gang_shared_claim *shared = &r->gang->shared[s];
        const struct allocation *next;

        if (!turn->shared[s])
            continue;
        next = gang_allocations(r->gang, shared->unit, turn->shared_nodes[s], &r->shared[s].planned, &turn->shared[s]);
        if (!next)
            return false;
        if (shared->spec_index != SIZE_MAX) {
            put_allocation(&out->shared[shared->spec_index], next);
            continue;
        }
        for (size_t m = 0; m < r->n_members; m++)
            for (size_t c = 0; c < r->members[m].n_claims; c++)
                if (r->members[m].claims[c].shared == s)
                    put_allocation(&out->members[m].claims[r->members[m].claims[c].entry].allocation, next);
    }
    return true;
}

static struct placement *copy_placement(struct gang *gang, const struct placement *from)
{
    struct placement *out = arena_new(gang->arena, struct placement);
    struct placed_member *members = arena_array(gang->arena, struct placed_member, from->n_members);
    struct allocation *shared = arena_array(gang->arena, struct allocation, from->n_shared);

    *out = *from;
    for (size_t m = 0; m < from->n_members; m++) {
        struct placed_claim *claims = arena_array(gang->arena, struct placed_claim, from->members[m].n_claims);

        members[m] = from->members[m];
        if (members[m].n_claims)
            memcpy(claims, from->members[m].claims, members[m].n_claims * sizeof(*claims));
        members[m].claims = claims;
    }
    if (from->n_shared)
        memcpy(shared, from->shared, from->n_shared * sizeof(*shared));
    out->members = members;
    out->shared = shared;
    return out;
}

/* The placement with what the members were given; NULL when that cannot be told. */
static struct placement *follow(const struct replay *r, const struct replay_turn *turn,
                                const struct placement *placement)
{
    struct placement *out = copy_placement(r->gang, placement);

    for (size_t m = 0; m < r->n_members; m++)
        if (!follow_own(r, turn, m, &out->members[m]))
            return NULL;
    return follow_shared(r, turn, out) ? out : NULL;
}

/* ---- wider claims ---- */

/* What the claims of a node that are not exact were given, all together. */
static const struct device_result *given_on(const struct replay *r, const struct node *node, size_t *out_n)
{
    struct device_result *out;
    size_t n = 0;

    for (size_t m = 0; m < r->n_members; m++)
        for (size_t c = 0; c < r->members[m].n_claims; c++)
            n += r->members[m].claims[c].planned->n_results;
    out = arena_array(r->gang->arena, struct device_result, n);
    n = 0;
    for (size_t m = 0; m < r->n_members; m++)
        for (size_t c = 0; c < r->members[m].n_claims && r->members[m].node == node; c++) {
            const struct replay_claim *claim = &r->members[m].claims[c];

            if (claim->is_exact || !claim->planned->only_node)
                continue;
            memcpy(out + n, claim->planned->results, claim->planned->n_results * sizeof(*out));
            n += claim->planned->n_results;
        }
    *out_n = n;
    return out;
}

static void widen_claim(const struct replay *r, const struct replay_claim *claim, const struct node *node)
{
    struct allocation *planned = (struct allocation *)(uintptr_t)claim->planned;

    if (!claim->is_exact && planned->only_node)
        planned->also = given_on(r, node, &planned->n_also);
}

/* ---- constraints of the gang in its claims ---- */

/* The constraints on attributes, in the results' arena: a placement outlives the question. */
static const struct gang_constraint *copy_constraints(struct gang *gang)
{
    size_t n = gang->spec->n_constraints;
    struct gang_constraint *out = arena_array(gang->arena, struct gang_constraint, n);

    for (size_t i = 0; i < n; i++) {
        const struct gang_constraint *one = &gang->spec->constraints[i];
        const char **requests = arena_array(gang->arena, const char *, one->n_requests);

        for (size_t r = 0; r < one->n_requests; r++)
            requests[r] = arena_strdup(gang->arena, one->requests[r]);
        out[i] = (struct gang_constraint){.kind = one->kind,
                                          .key = arena_strdup(gang->arena, one->key),
                                          .requests = requests,
                                          .n_requests = one->n_requests};
    }
    return out;
}

struct kept {
    const struct gang_constraint **items;
    size_t n;
};

/* Those that cover the group, or any group that uses the shared claim. */
static struct kept kept_by(struct gang *gang, const struct gang_constraint *copies, size_t group, size_t shared)
{
    const struct gang_spec *spec = gang->spec;
    struct kept out = {arena_array(gang->arena, const struct gang_constraint *, spec->n_constraints), 0};

    for (size_t i = 0; i < spec->n_constraints; i++) {
        const struct gang_constraint *one = &spec->constraints[i];

        if (one->kind != GANG_MATCH_NODE_LABEL &&
            (shared == SIZE_MAX ? gang_constraint_covers_group(one, spec->groups[group].name)
                                : replay_covers_shared(gang, one, shared)))
            out.items[out.n++] = &copies[i];
    }
    return out;
}

static void keep(const struct allocation *planned, const struct kept *kept)
{
    struct allocation *out = (struct allocation *)(uintptr_t)planned;

    out->kept = kept->items;
    out->n_kept = kept->n;
}

static void keep_constraints(struct gang *gang, const struct placement *placement)
{
    const struct gang_constraint *copies = copy_constraints(gang);
    struct kept *groups = arena_array(&gang->work, struct kept, gang->spec->n_groups);

    for (size_t s = 0; s < placement->n_shared; s++) {
        struct kept kept = kept_by(gang, copies, 0, s);

        keep(&placement->shared[s], &kept);
    }
    for (size_t g = 0; g < gang->spec->n_groups; g++)
        groups[g] = kept_by(gang, copies, g, SIZE_MAX);
    for (size_t m = 0; m < placement->n_members; m++)
        for (size_t c = 0; c < placement->members[m].n_claims; c++)
            if (placement->members[m].claims[c].source == GANG_CLAIM_OWN)
                keep(&placement->members[m].claims[c].allocation, &groups[placement->members[m].group]);
}

/* ---- the whole ---- */

static struct placement *widened(struct gang *gang, const struct placement *placement)
{
    struct placement *out = copy_placement(gang, placement);
    struct replay r;

    replay_prepare(&r, gang, out);
    for (size_t m = 0; m < r.n_members; m++)
        for (size_t c = 0; c < r.members[m].n_claims; c++)
            widen_claim(&r, &r.members[m].claims[c], r.members[m].node);
    return out;
}

/* Replay once; when the plan has to follow first fit, *out_next is what it becomes. */
static enum gang_steering check_once(struct gang *gang, const struct placement *placement, bool *out_exact,
                                     struct placement **out_next)
{
    struct replay r;
    struct replay_turn turn;
    size_t *plain;
    bool held;

    replay_prepare(&r, gang, placement);
    replay_turn_init(&turn, &r, r.arena);
    plain = arena_array(r.arena, size_t, r.n_members);
    for (size_t m = 0; m < r.n_members; m++)
        plain[m] = m;
    held = replay_play(&r, &turn, plain, r.n_members);
    ledger_free(turn.ledger);
    *out_exact = r.is_exact;
    if (r.is_exact)
        return held ? GANG_STEERED : GANG_WRONG;
    if (!held)
        return GANG_BIND_ONLY;
    if (!differs(&r, &turn))
        return replay_holds_in_other_orders(&r) ? GANG_STEERED : GANG_BIND_ONLY;
    *out_next = follow(&r, &turn, placement);
    return GANG_BIND_ONLY;
}

static enum gang_steering check(struct gang *gang, struct placement **placement)
{
    enum gang_steering answer = GANG_BIND_ONLY;
    struct placement *at = *placement;

    for (size_t i = 0; i < MAX_FOLLOWS && at && answer == GANG_BIND_ONLY; i++) {
        struct arena_mark mark = arena_mark(&gang->work);
        struct placement *next = NULL;
        bool is_exact;

        answer = check_once(gang, at, &is_exact, &next);
        if (answer == GANG_STEERED) {
            gang_turns(gang, is_exact, at);
            *placement = at;
        }
        at = next;
        arena_rewind(&gang->work, mark);
    }
    return answer;
}

enum gang_steering gang_check(struct gang *gang, struct placement **placement)
{
    struct arena_mark mark = arena_mark(&gang->work);
    enum gang_steering answer;
    struct placement *wider;

    if (gang->spec->n_constraints)
        keep_constraints(gang, *placement);
    answer = check(gang, placement);
    if (answer != GANG_BIND_ONLY || (*placement)->n_members < 2)
        return answer;
    wider = widened(gang, *placement);
    arena_rewind(&gang->work, mark);
    answer = check(gang, &wider);
    if (answer == GANG_STEERED)
        *placement = wider;
    return answer == GANG_WRONG ? GANG_BIND_ONLY : answer;
}

/* ---- turns ---- */

struct turns {
    const struct replay *r;
    struct replay_turn now;
    size_t *of; /* per member; SIZE_MAX: not yet */
    size_t n_left;
    size_t n_departures; /* that may still be tried */
};

static void take_turn(struct turns *t, size_t m, size_t number)
{
    t->of[m] = number;
    t->n_left--;
}

/* All whom first fit gives what was planned now. Returns how many. */
static size_t play_turn(struct turns *t, size_t number)
{
    size_t n = t->n_left;

    replay_charge(t->r, n);
    for (size_t m = 0; m < t->r->n_members; m++)
        if (t->of[m] == SIZE_MAX && replay_member(t->r, &t->now, m, REPLAY_TRY))
            take_turn(t, m, number);
    for (size_t m = 0; m < t->r->n_members; m++)
        if (t->of[m] == number && !replay_member(t->r, &t->now, m, REPLAY_AS_PLANNED)) {
            t->of[m] = SIZE_MAX; /* somebody departed and took more than planned: there is too little for all now */
            t->n_left++;
        }
    return n - t->n_left;
}

static bool play_turns(struct turns *t, size_t number);

/* Nobody would be given what was planned: somebody has to take something else. */
static bool depart(struct turns *t, size_t number)
{
    for (size_t m = 0; m < t->r->n_members && t->n_departures > 0; m++) {
        struct replay_kept before;
        size_t *of, n_left = t->n_left;

        if (t->of[m] != SIZE_MAX)
            continue;
        before = replay_keep(t->r, &t->now);
        of = arena_array(t->r->arena, size_t, t->r->n_members);
        memcpy(of, t->of, t->r->n_members * sizeof(*of));
        t->n_departures--;
        if (replay_member(t->r, &t->now, m, REPLAY_WHAT_IS_GIVEN)) {
            take_turn(t, m, number);
            if (play_turns(t, number + 1))
                return true;
        }
        replay_return(t->r, &t->now, &before);
        t->of = of;
        t->n_left = n_left;
    }
    return false;
}

/* Let everybody who is left have a turn. */
static bool play_turns(struct turns *t, size_t number)
{
    for (; t->n_left > 0 && t->r->gang->steps > 0; number++)
        if (play_turn(t, number) == 0)
            return depart(t, number);
    return t->n_left == 0 && replay_agrees(t->r, &t->now);
}

/* Play once; when the plan has to follow what was given, *out_next is what it becomes. */
static bool play_turns_once(struct gang *gang, struct placement *placement, struct placement **out_next)
{
    struct replay r;
    struct turns t = {.r = &r, .n_departures = MAX_DEPARTURES};
    bool held;

    replay_prepare(&r, gang, placement);
    replay_turn_init(&t.now, &r, r.arena);
    t.n_left = r.n_members;
    t.of = arena_array(r.arena, size_t, r.n_members);
    memset(t.of, -1, r.n_members * sizeof(*t.of));
    held = play_turns(&t, 0);
    ledger_free(t.now.ledger);
    if (!held)
        return false;
    if (differs(&r, &t.now)) {
        *out_next = follow(&r, &t.now, placement);
        return false;
    }
    gang_set_turns(gang, t.of, placement);
    return true;
}

bool gang_hold_in_turns(struct gang *gang, struct placement **placement)
{
    struct placement *at = *placement;
    bool held = false;

    for (size_t i = 0; i < MAX_FOLLOWS && at && !held; i++) {
        struct arena_mark mark = arena_mark(&gang->work);
        struct placement *next = NULL;

        held = play_turns_once(gang, at, &next);
        if (held)
            *placement = at;
        at = next;
        arena_rewind(&gang->work, mark);
    }
    return held;
}

void gang_bind_only(struct placement *placement)
{
    placement->bind_only = true;
    placement->bind_reason = "some devices cannot be told apart by an attribute, and in another order of the members "
                             "kube-scheduler would choose among them so that a member finds none";
}
