/* Symmetry: devices that a slot need not try because another one of their kind failed there.
 *
 * Let x and y be of one kind, x before y, and let everything behind x be searched in vain. Exchanging the two turns any
 * way behind y into a way behind x. So there is no solution behind y, and no expression that fails to evaluate there:
 * it would have failed behind x. Three things need care, because they heed more than which devices are taken:
 *
 *   mode All     takes its devices in the order of its list, and under constraints it matters which of two obstacles
 *                comes first: a device that is busy means "no", one that a constraint refuses ends the search with an
 *                error. So devices in that part of the list which can be reached are told from those behind. The fewer
 *                of them are busy, the further the request gets: such a y is left out only if enough devices of its
 *                kind are next, one of which stays free and can stand in for it. What the request could meet with y
 *                taken, it meets with that one taken.
 *   constraints  that tell by the order of picks. Their devices are tried one by one.
 *   TOO_MANY     ends the walk of the requests above at once, and what these did not come to is unknown. Where the
 *                search may end with an error at all, a failure that met it tells nothing of other devices. */
#include "allocator/search.h"

#include <stdlib.h>

#include "allocator/base/bitset.h"

#include "allocator/base/banned.h"

#define FEW_FAILURES 16 /* searches that end within are cheaper without knowing kinds */
#define ALONE        UINT32_MAX

/* ---- numbers for the kinds ---- */

static int by_digest(const void *x, const void *y)
{
    const struct digest *a = *(const struct digest *const *)x, *b = *(const struct digest *const *)y;

    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->hi < b->hi ? -1 : a->hi > b->hi;
}

/* From 0. */
static void number_kinds(struct search *s)
{
    size_t n = s->bench->n_offers;
    const struct digest **sorted = arena_array(s->arena, const struct digest *, n + 1);
    uint32_t *kinds = arena_array(s->arena, uint32_t, n + 1);
    const struct offer *first = s->bench->offers;
    uint32_t kind = 0;

    bench_kinds(s->shape, s->bench);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &first[i].kind;
    qsort(sorted, n, sizeof(*sorted), by_digest);
    for (size_t i = 0; i < n; i++) {
        if (i && !digest_eq(*sorted[i - 1], *sorted[i]))
            kind++;
        kinds[(const struct offer *)((const char *)sorted[i] - offsetof(struct offer, kind)) - first] = kind;
    }
    s->kinds = kinds;
}

/* ---- what heeds order ---- */

static bool can_fail_to_evaluate(struct search *s, size_t ask)
{
    for (size_t i = 0; i < s->bench->n_offers; i++) {
        if (bench_selects(s->shape, s->bench, i, ask, NULL) == SELECT_ERROR)
            return true;
        if (s->consumable && !s->behaviour->capacity_errors_skip &&
            capacity_row(s->shape, ask, s->bench->offers[i].device)->state == CAPACITY_ERROR)
            return true;
    }
    return false;
}

/* How far a request of mode All gets in its list at most, when one of its constraints may refuse a device on the way;
 * 0: none will. Picks of earlier requests only make constraints stricter. */
static size_t reach_of(struct search *s, size_t index)
{
    const struct ask *ask = &s->shape->asks[index];
    const struct ask_state *state = &s->asks[index];
    const struct claim *claim = s->shape->claims[ask->claim].claim;
    struct arena_mark mark = arena_mark(&s->scratch);
    struct constraint *constraints = constraints_new(s->shape, claim, s->arena);
    size_t i;

    if (s->behaviour->alternatives_mixed_up)
        return state->n_list;
    for (i = 0; i < state->n_list; i++) {
        uint32_t offer = state->list[i];

        if ((s->offers[offer].use->n_dedicated && !ask->ask->admin_access) || is_blocked(s, index, offer))
            break;
        if (enter_constraints(s, constraints, ask, offer) < claim->n_constraints) {
            arena_rewind(&s->scratch, mark);
            return i + 1;
        }
    }
    arena_rewind(&s->scratch, mark);
    return ask->request ? i : 0;
}

/* The devices within reach of an All request under constraints. A share more or less of a device may decide about
 * counters, and where the walk has an order of its own, "behind" means nothing: such devices stand alone. */
static void heed_list(struct search *s, size_t ask)
{
    bool is_plain = !s->options->order && !s->options->forbidden && !s->behaviour->alternatives_mixed_up;
    size_t n = reach_of(s, ask);

    s->may_err = s->may_err || n;
    for (size_t i = 0; i < n; i++) {
        uint32_t offer = s->asks[ask].list[i];

        if (is_plain && !s->offers[offer].multi)
            bitset_put(s->listed, offer);
        else
            s->kinds[offer] = ALONE;
    }
}

/* Exchanging two devices keeps the order inside the request that chooses them, and may change it in later ones. */
static void heed_constraints(struct search *s, size_t claim)
{
    const struct claim_shape *c = &s->shape->claims[claim];

    for (size_t i = 0; i < s->bench->n_offers; i++)
        for (size_t k = 0; k < c->claim->n_constraints; k++)
            if (constraint_heeds_order(s->constraints[claim], k, s->bench->offers[i].slice->driver,
                                       s->bench->offers[i].device))
                s->kinds[i] = ALONE;
}

/* A device that gives counters instead of taking them makes room for those that are taken after it. */
static bool counters_heed_order(const struct search *s)
{
    for (size_t v = 0; v < s->bench->n_views; v++) {
        const struct pool_view *view = s->bench->views[v];
        size_t n = view->use_start ? view->use_start[view->n_devices] : 0;

        for (size_t i = 0; i < n; i++)
            if (quantity_sign(&view->uses[i].amount) < 0)
                return true;
    }
    return false;
}

static void know_kinds(struct search *s)
{
    bool one_request = s->shape->n_claims == 1 && s->shape->claims[0].n_requests == 1;

    number_kinds(s);
    s->listed = arena_array(s->arena, uint64_t, bitset_words(s->bench->n_offers) + 1);
    s->may_err = s->invalid_at != SIZE_MAX;
    for (size_t i = 0; i < s->shape->n_asks; i++) {
        const struct ask *ask = &s->shape->asks[i];

        s->may_err = s->may_err || can_fail_to_evaluate(s, i);
        if (ask->ask->mode == MODE_ALL && s->shape->claims[ask->claim].claim->n_constraints)
            heed_list(s, i);
    }
    for (size_t i = 0; i < s->shape->n_claims && !one_request; i++)
        heed_constraints(s, i);
    for (size_t i = 0; i < s->bench->n_offers && counters_heed_order(s); i++)
        s->kinds[i] = ALONE;
}

/* ---- the slot ---- */

/* Only devices that nothing in this call touched yet are compared. */
static bool is_untouched(const struct search *s, size_t offer)
{
    return !s->offers[offer].n_busy && !s->offers[offer].n_taking;
}

static uint64_t distinction(const struct search *s, size_t offer)
{
    return s->options->distinct ? s->options->distinct[offer] : 0;
}

static bool are_alike(const struct search *s, size_t a, size_t b)
{
    return s->kinds[a] == s->kinds[b] && distinction(s, a) == distinction(s, b);
}

/* Whether as many devices of its kind as the request still needs are next to try: it takes one less beside this one.
 * With others in between the search might end before it comes to the stand-in. */
static bool has_stand_in(const struct search *s, size_t ask, size_t offer, int64_t missing)
{
    for (size_t i = offer + 1; i < s->bench->n_offers && missing > 0; i++)
        if (are_alike(s, i, offer) && is_untouched(s, i))
            missing--;
        else if (bench_selects(s->shape, s->bench, i, ask, NULL) != SELECT_NO)
            break;
    return missing <= 0;
}

bool symmetry_excludes(const struct search *s, const struct tried *tried, size_t ask, size_t offer, int64_t missing)
{
    bool is_listed = bitset_has(s->listed, offer);

    if (!is_untouched(s, offer))
        return false;
    for (size_t i = 0; i < tried->n; i++)
        if (are_alike(s, tried->offers[i], offer) && bitset_has(s->listed, tried->offers[i]) <= is_listed)
            return !is_listed || has_stand_in(s, ask, offer, missing);
    return false;
}

void symmetry_note(struct search *s, struct tried *tried, size_t offer, bool met_too_many)
{
    if (!s->fast || ++s->n_failures < FEW_FAILURES || tried->n == MAX_TRIED || !is_untouched(s, offer))
        return;
    if (!s->kinds)
        know_kinds(s);
    if (s->kinds[offer] == ALONE || (met_too_many && s->may_err))
        return;
    tried->offers[tried->n++] = (uint32_t)offer;
}
