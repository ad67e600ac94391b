/* The search of the structured allocator: depth first over claims, requests, alternatives and slots; the first complete
 * solution wins (semantics, 4.2 and 4.3).
 *
 * One piece of code serves two searches. The plain one does what the specification says, step by step. The fast one
 * leaves out subtrees of which it is certain that they hold no solution and no other error:
 *
 *   counting    when a request begins, it counts for every position the devices at or behind it that could serve; a
 *               slot that cannot get as many as it still needs fails at once. The plain search would walk on to the
 *               end of the devices before it fails, and so meet the first device whose evaluation fails; so does this
 *               one.
 *   sums        when a claim's later requests kept failing, it counts once whether its first requests together want
 *               more devices than could serve any of them; if so, the claim is given up beside the present picks of
 *               earlier claims.
 *   symmetry    when taking a device led to failure, then so does taking another one of the same kind at a later
 *               position of the same slot; symmetry.c says why, and where it does not hold.
 *
 * All hold only while a failed try leaves no trace; for releases that leak counters the fast search steps aside. */
#include "allocator/search.h"

#include "allocator/base/bitset.h"

#include "allocator/base/banned.h"

#define MANY_FAILED 64 /* requests, before their claim is looked at as a whole */

/* ---- preparation (4.2) ---- */

static enum step fatal(struct search *s, const char *message)
{
    s->message = message;
    return STEP_FATAL;
}

static enum step check_views(struct search *s, const struct ask *ask)
{
    for (size_t i = 0; i < s->bench->n_views; i++) {
        const struct pool_view *view = s->bench->views[i];

        if (view->status == POOL_INCOMPLETE)
            return fatal(s, arena_printf(s->arena,
                                         "%s: asks for all devices, but resource pool %s/%s is currently being updated",
                                         ask->label, view->pool->driver, view->pool->name));
        if (view->status == POOL_INVALID)
            return fatal(s, arena_printf(s->arena,
                                         "%s: asks for all devices, but resource pool %s/%s is currently invalid: %s",
                                         ask->label, view->pool->driver, view->pool->name, view->problem));
    }
    return STEP_OK;
}

/* The first incomplete or invalid pool is met only after the devices of the pools before it were evaluated. */
static enum step list_all(struct search *s, size_t index)
{
    const struct ask *ask = &s->shape->asks[index];
    struct ask_state *state = &s->asks[index];
    uint32_t *list = arena_array(s->arena, uint32_t, s->bench->n_offers + 1);
    size_t offer = 0;

    for (size_t v = 0; v < s->bench->n_views; v++) {
        const struct pool_view *view = s->bench->views[v];

        if (view->status != POOL_USABLE)
            return check_views(s, ask);
        for (size_t k = 0; k < view->n_devices; k++, offer++) {
            const char *message = NULL;
            enum selectable selects = bench_selects(s->shape, s->bench, offer, index, &message);
            enum capacity_state capacity;

            if (selects == SELECT_ERROR)
                return fatal(s, message);
            if (selects != SELECT_YES)
                continue;
            capacity = capacity_test(s, index, offer, !s->behaviour->all_skips_used_up);
            if (capacity == CAPACITY_ERROR)
                return STEP_FATAL;
            if (capacity == CAPACITY_OK)
                list[state->n_list++] = (uint32_t)offer;
        }
    }
    state->list = list;
    state->need = (int64_t)state->n_list;
    return STEP_OK;
}

static enum step prepare_ask(struct search *s, size_t index)
{
    const struct ask *ask = &s->shape->asks[index];

    if (ask->problem)
        return fatal(s, ask->problem);
    s->asks[index].need = ask->ask->count;
    return ask->ask->mode == MODE_ALL ? list_all(s, index) : STEP_OK;
}

static enum step prepare_request(struct search *s, const struct request *request, int64_t *out_min)
{
    if (request->problem)
        return fatal(s, request->problem);
    *out_min = request->n_asks ? INT64_MAX : 0;
    for (size_t i = 0; i < request->n_asks; i++) {
        enum step step = prepare_ask(s, request->first_ask + i);

        if (step != STEP_OK)
            return step;
        if (s->asks[request->first_ask + i].need < *out_min)
            *out_min = s->asks[request->first_ask + i].need;
    }
    return STEP_OK;
}

static enum step prepare_claim(struct search *s, const struct claim_shape *claim)
{
    int64_t sum = 0;

    for (size_t i = 0; i < claim->n_requests; i++) {
        int64_t min;
        enum step step = prepare_request(s, &claim->requests[i], &min);

        if (step != STEP_OK)
            return step;
        if (min > CLAIM_MAX_RESULTS - sum)
            return fatal(s, arena_printf(s->arena,
                                         "claim %s, request %s: the number of requested devices exceeds the maximum "
                                         "supported number of %d per claim",
                                         claim->claim->name, claim->requests[i].request->name, CLAIM_MAX_RESULTS));
        if (min > 0)
            sum += min;
    }
    return claim->problem ? fatal(s, claim->problem) : STEP_OK;
}

static enum step prepare(struct search *s)
{
    if (s->behaviour->variant == VARIANT_NONE)
        return fatal(s, shape_problem(s->shape));
    if (s->bench->problem)
        return fatal(s, s->bench->problem);
    for (size_t i = 0; i < s->shape->n_claims; i++) {
        enum step step = prepare_claim(s, &s->shape->claims[i]);

        if (step != STEP_OK)
            return step;
    }
    return STEP_OK;
}

/* ---- counting ---- */

static bool is_forbidden(const struct search *s, size_t offer)
{
    return s->options->forbidden && (s->options->forbidden[offer / 64] >> (offer % 64) & 1);
}

/* The offer at a position of the walk. */
static size_t offer_at(const struct search *s, size_t position)
{
    return s->options->order ? s->options->order[position] : position;
}

enum chance { CHANCE_NO, CHANCE_YES, CHANCE_ERROR };

/* Whether the offer could serve the ask now, as far as it can be said without taking it. */
static enum chance chance_of(struct search *s, size_t index, size_t offer)
{
    const struct ask *ask = &s->shape->asks[index];
    enum capacity_state capacity;

    if (is_forbidden(s, offer) || is_in_use(s, ask->ask, ask->claim, offer))
        return CHANCE_NO;
    switch (bench_selects(s->shape, s->bench, offer, index, NULL)) {
    case SELECT_ERROR:
        return CHANCE_ERROR;
    case SELECT_NO:
        return CHANCE_NO;
    case SELECT_YES:
        break;
    }
    capacity = capacity_test(s, index, offer, false);
    if (capacity != CAPACITY_OK)
        return capacity == CAPACITY_ERROR ? CHANCE_ERROR : CHANCE_NO;
    return is_blocked(s, index, offer) ? CHANCE_NO : CHANCE_YES;
}

static struct outlook look_ahead(struct search *s, size_t index)
{
    size_t n = s->bench->n_offers;
    uint16_t *candidates = arena_array(&s->scratch, uint16_t, n + 1);
    uint32_t *error = arena_array(&s->scratch, uint32_t, n + 1);

    error[n] = (uint32_t)n;
    for (size_t i = n; i-- > 0;) {
        enum chance chance = chance_of(s, index, offer_at(s, i));
        uint16_t more = chance == CHANCE_YES && candidates[i + 1] < UINT16_MAX;

        candidates[i] = (uint16_t)(candidates[i + 1] + more);
        error[i] = chance == CHANCE_ERROR ? (uint32_t)i : error[i + 1];
    }
    return (struct outlook){candidates, error};
}

/* Whether the offer could serve the ask if this claim had no picks yet. */
static enum chance chance_at_first(struct search *s, size_t index, size_t offer)
{
    struct offer_state *state = &s->offers[offer];
    uint32_t n_busy = state->n_busy;
    enum chance chance;

    if (n_busy == 1 && bitset_has(state->busy, s->shape->asks[index].claim))
        state->n_busy = 0;
    chance = chance_of(s, index, offer);
    state->n_busy = n_busy;
    return chance;
}

static bool is_plain_count(const struct search *s, const struct request *request)
{
    const struct claim_ask *ask = request->n_asks ? s->shape->asks[request->first_ask].ask : NULL;

    return ask && !request->is_list && ask->mode == MODE_EXACT_COUNT && !ask->admin_access;
}

/* Looks at the plain requests that the claim begins with, since nothing behind them is reached without them; and only
 * when nothing can fail to evaluate: then every way through the claim ends in "no". */
static bool is_hopeless(struct search *s, size_t claim)
{
    const struct claim_shape *c = &s->shape->claims[claim];
    int64_t wanted = 0, there = 0;
    size_t n = 0;

    for (; n < c->n_requests && is_plain_count(s, &c->requests[n]); n++)
        wanted += s->asks[c->requests[n].first_ask].need;
    for (size_t offer = 0; offer < s->bench->n_offers; offer++) {
        bool serves = false;

        if (s->offers[offer].n_taking) /* by this claim, perhaps: what would be left of it is not known */
            return false;
        for (size_t i = 0; i < n; i++) {
            enum chance chance = chance_at_first(s, c->requests[i].first_ask, offer);

            if (chance == CHANCE_ERROR || (chance == CHANCE_YES && s->offers[offer].multi))
                return false;
            serves = serves || chance == CHANCE_YES;
        }
        there += serves;
    }
    return there < wanted;
}

/* A request found nothing: time to look at its claim as a whole? */
static void note_exhausted(struct search *s, size_t claim)
{
    if (s->fast && ++s->n_exhausted == MANY_FAILED && is_hopeless(s, claim))
        s->hopeless = claim;
}

/* ---- 4.3 ---- */

struct place {
    size_t claim, request, alternative;
    int64_t slot;
    bool in_list;
    size_t start;                  /* position of the walk */
    const struct outlook *outlook; /* of the request, once it began */
};

static enum step search_step(struct search *s, const struct place *at);

static enum step next_claim(struct search *s, const struct place *at)
{
    enum step step;

    s->n_exhausted = 0;
    step = search_step(s, &(struct place){.claim = at->claim + 1});
    s->n_exhausted = 0;
    s->hopeless = SIZE_MAX;
    return step == STEP_TOO_MANY ? STEP_FAIL : step;
}

static enum step try_alternatives(struct search *s, const struct place *at, const struct request *request)
{
    bool all_too_many = true;

    for (size_t i = 0; i < request->n_asks; i++) {
        struct place next = {.claim = at->claim, .request = at->request, .alternative = i, .in_list = true};
        enum step step = search_step(s, &next);

        if (step == STEP_TOO_MANY)
            continue;
        all_too_many = false;
        if (step != STEP_FAIL)
            return step;
    }
    return all_too_many ? STEP_TOO_MANY : STEP_FAIL;
}

static enum step next_slot(struct search *s, const struct place *at, size_t start, const struct outlook *outlook)
{
    struct place next = *at;

    next.slot++;
    next.start = start;
    next.outlook = outlook;
    return search_step(s, &next);
}

/* Mode All: this device or none. */
static enum step all_slot(struct search *s, const struct place *at, size_t ask)
{
    size_t offer = s->asks[ask].list[at->slot];
    struct place next = *at;
    enum step step;

    if (is_forbidden(s, offer))
        return STEP_FAIL;
    step = search_take(s, ask, offer, true);
    if (step != STEP_OK)
        return step;
    if (s->behaviour->alternatives_mixed_up)
        next.alternative = 0;
    step = next_slot(s, &next, at->start, NULL);
    if (step != STEP_OK)
        search_undo(s);
    return step;
}

static enum step invalid_pool(struct search *s)
{
    return fatal(s, "resource pool is invalid");
}

static enum step error_at(struct search *s, size_t ask, size_t offer)
{
    const char *message = NULL;

    if (bench_selects(s->shape, s->bench, offer, ask, &message) == SELECT_ERROR)
        return fatal(s, message);
    capacity_test(s, ask, offer, false);
    return STEP_FATAL;
}

/* Try one offer for the slot: STEP_FAIL means go on with the next one. *out_tried: it was worth an attempt. */
static enum step try_offer(struct search *s, const struct place *at, size_t index, size_t position,
                           const struct outlook *outlook, bool *out_tried)
{
    size_t offer = offer_at(s, position);
    const char *message = NULL;
    enum selectable selects = bench_selects(s->shape, s->bench, offer, index, &message);
    enum capacity_state capacity;
    enum step step;

    *out_tried = false;
    if (selects != SELECT_YES)
        return selects == SELECT_ERROR ? fatal(s, message) : STEP_FAIL;
    capacity = capacity_test(s, index, offer, false);
    if (capacity != CAPACITY_OK)
        return capacity == CAPACITY_ERROR ? STEP_FATAL : STEP_FAIL;
    *out_tried = true;
    step = search_take(s, index, offer, false);
    if (step != STEP_OK)
        return step;
    step = next_slot(s, at, s->behaviour->permutations ? 0 : position + 1, outlook);
    if (step != STEP_OK)
        search_undo(s);
    return step;
}

static enum step count_slot(struct search *s, const struct place *at, size_t index, const struct outlook *outlook)
{
    const struct ask *ask = &s->shape->asks[index];
    int64_t missing = s->asks[index].need - at->slot;
    struct tried tried;

    tried.n = 0;
    for (size_t i = at->start; i < s->bench->n_offers; i++) {
        size_t offer = offer_at(s, i);
        uint64_t too_many = s->n_too_many;
        enum step step;
        bool was_tried;

        if (i == s->invalid_at)
            return invalid_pool(s);
        if (outlook && outlook->candidates[i] < missing)
            return outlook->error[i] < s->bench->n_offers ? error_at(s, index, offer_at(s, outlook->error[i]))
                                                          : STEP_FAIL;
        if (++s->steps > s->max_steps)
            return STEP_TIMEOUT;
        if (is_forbidden(s, offer) || is_in_use(s, ask->ask, ask->claim, offer) ||
            (tried.n && symmetry_excludes(s, &tried, index, offer, missing)))
            continue;
        step = try_offer(s, at, index, i, outlook, &was_tried);
        if (step != STEP_FAIL)
            return step;
        if (s->hopeless == at->claim)
            return STEP_FAIL;
        if (was_tried)
            symmetry_note(s, &tried, offer, s->n_too_many != too_many);
    }
    return s->invalid_at == s->bench->n_offers ? invalid_pool(s) : STEP_FAIL;
}

/* The first slot of a request: count what is there before trying anything. */
static enum step count_request(struct search *s, const struct place *at, size_t index)
{
    struct arena_mark mark = arena_mark(&s->scratch);
    struct outlook outlook;
    enum step step;

    if (!s->fast || s->behaviour->permutations || s->asks[index].need < 2) {
        step = count_slot(s, at, index, NULL);
    } else {
        outlook = look_ahead(s, index);
        step = count_slot(s, at, index, &outlook);
    }
    if (step == STEP_FAIL)
        note_exhausted(s, at->claim);
    if (step != STEP_OK)
        arena_rewind(&s->scratch, mark);
    return step;
}

static enum step serve(struct search *s, const struct place *at, size_t index)
{
    const struct ask *ask = &s->shape->asks[index];
    int64_t need = s->asks[index].need;
    bool is_all = ask->ask->mode == MODE_ALL;

    if (is_all && need == 0)
        return STEP_FAIL;
    if (at->slot >= need)
        return search_step(s, &(struct place){.claim = at->claim, .request = at->request + 1});
    if (s->n_claim_picks[at->claim] + need - at->slot > CLAIM_MAX_RESULTS) {
        s->n_too_many++;
        return STEP_TOO_MANY;
    }
    if (is_all)
        return all_slot(s, at, index);
    return at->outlook || at->slot ? count_slot(s, at, index, at->outlook) : count_request(s, at, index);
}

static enum step search_step(struct search *s, const struct place *at)
{
    const struct claim_shape *claim = &s->shape->claims[at->claim];
    const struct request *request;

    if (++s->steps > s->max_steps)
        return STEP_TIMEOUT;
    if (at->claim == s->shape->n_claims) {
        struct solution solution;
        struct pick *picks;

        if (!s->options->accept)
            return STEP_OK;
        picks = arena_array(&s->scratch, struct pick, s->n_picks + 1);
        for (size_t i = 0; i < s->n_picks; i++)
            picks[i] = s->picks[i].pick;
        solution = (struct solution){picks, s->n_picks};
        return s->options->accept(s->options->ctx, &solution) ? STEP_OK : STEP_FAIL;
    }
    if (at->request == claim->n_requests)
        return next_claim(s, at);
    request = &claim->requests[at->request];
    if (request->is_list && !at->in_list)
        return try_alternatives(s, at, request);
    if (!request->n_asks)
        return search_step(s, &(struct place){.claim = at->claim, .request = at->request + 1});
    return serve(s, at, request->first_ask + at->alternative);
}

/* ---- run ---- */

/* Up to 1.36 a share that no longer fits leaves counters and constraints as if it did (B1, B6). */
static bool leaves_traces(const struct search *s)
{
    if (!s->behaviour->leaks_counters)
        return false;
    if (bench_table(s->bench)->has_counters)
        return true;
    for (size_t i = 0; i < s->shape->n_asks; i++)
        for (size_t k = 0; k < s->asks[i].n_list && s->shape->claims[s->shape->asks[i].claim].claim->n_constraints; k++)
            if (s->offers[s->asks[i].list[k]].multi)
                return true;
    return false;
}

static void find_invalid(struct search *s)
{
    size_t offers = 0;

    s->invalid_at = SIZE_MAX;
    if (!s->behaviour->uses_incomplete)
        return;
    for (size_t i = 0; i < s->bench->n_views; i++) {
        if (s->bench->views[i]->status == POOL_INVALID) {
            s->invalid_at = offers;
            return;
        }
        offers += s->bench->views[i]->n_devices;
    }
}

static void allocate_state(struct search *s)
{
    size_t n_cells = s->bench->n_offers * s->shape->n_asks + 1;

    s->blocked = arena_array(s->arena, uint8_t, n_cells);
    s->asks = arena_array(s->arena, struct ask_state, s->shape->n_asks + 1);
    s->picks = arena_array(s->arena, struct taken, s->shape->n_claims * CLAIM_MAX_RESULTS + 1);
    s->n_claim_picks = arena_array(s->arena, uint32_t, s->shape->n_claims + 1);
    s->constraints = arena_array(s->arena, struct constraint *, s->shape->n_claims + 1);
    for (size_t i = 0; i < s->shape->n_claims; i++)
        s->constraints[i] = constraints_new(s->shape, s->shape->claims[i].claim, s->arena);
}

static bool has_invalid_pool(const struct search *s)
{
    for (size_t i = 0; i < s->bench->n_views; i++)
        if (s->bench->views[i]->status == POOL_INVALID)
            return true;
    return false;
}

static const char *invalid_pools(struct search *s)
{
    for (size_t i = 0; i < s->bench->n_views; i++) {
        const struct pool_view *view = s->bench->views[i];

        if (view->status == POOL_INVALID)
            return arena_printf(s->arena, "invalid resource pools were encountered: pool %s/%s: %s", view->pool->driver,
                                view->pool->name, view->problem);
    }
    return NULL;
}

static void copy_solution(struct search *s, struct search_answer *out)
{
    struct pick *picks = arena_array(s->arena, struct pick, s->n_picks + 1);

    for (size_t i = 0; i < s->n_picks; i++)
        picks[i] = s->picks[i].pick;
    out->solution = (struct solution){picks, s->n_picks};
}

static void conclude(struct search *s, enum step step, struct search_answer *out)
{
    *out = (struct search_answer){.steps = s->steps};
    switch (step) {
    case STEP_OK:
        out->verdict = PREDICT_ALLOCATED;
        copy_solution(s, out);
        break;
    case STEP_FAIL:
        out->verdict = has_invalid_pool(s) ? PREDICT_NODE_ERROR : PREDICT_NO_FIT;
        out->message = has_invalid_pool(s) ? invalid_pools(s) : "cannot allocate all claims";
        break;
    case STEP_TOO_MANY:
        out->verdict = PREDICT_FATAL;
        out->message = "the claims need more devices than one claim may have";
        break;
    case STEP_FATAL:
        out->verdict = PREDICT_FATAL;
        out->message = s->message;
        break;
    case STEP_TIMEOUT:
        out->verdict = PREDICT_TIMEOUT;
        out->message = "the search took more than its steps";
        break;
    }
}

void search_run(struct shape *shape, const struct bench *bench, const struct ledger *ledger,
                const struct search_options *options, struct arena *arena, struct search_answer *out)
{
    struct search s = {
        .shape = shape,
        .bench = bench,
        .behaviour = shape->behaviour,
        .features = shape->features,
        .options = options,
        .arena = arena,
        .consumable = feature_on(shape->features, FEATURE_CONSUMABLE_CAPACITY),
        .max_steps = options->max_steps ? options->max_steps : SEARCH_DEFAULT_STEPS,
        .hopeless = SIZE_MAX,
    };
    enum step step;

    (void)ledger; /* the bench was made with it */
    search_init(&s);
    allocate_state(&s);
    find_invalid(&s);
    step = prepare(&s);
    if (step == STEP_OK) {
        s.fast = !options->plain && !leaves_traces(&s);
        step = search_step(&s, &(struct place){0});
    }
    conclude(&s, step, out);
    arena_release(&s.scratch);
}
