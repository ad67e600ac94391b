/* Taking a device and giving it back: the tests of 4.4 of the semantics in their order, and what each leaves behind. */
#include "allocator/search.h"

#include <string.h>

#include "allocator/base/bitset.h"

#include "allocator/base/banned.h"

/* ---- the state before anything is taken ---- */

/* The bank of an earlier view of a pool with this name, for releases that told pools apart by name only. */
static struct bank *namesake(const struct search *s, const struct pool_view *view)
{
    for (size_t i = 0; i < s->n_accesses && s->behaviour->mixes_pool_names; i++)
        if (text_is(s->accesses[i].view->pool->name, view->pool->name))
            return s->accesses[i].bank;
    return NULL;
}

static struct bank_access *access_to(struct search *s, const struct pool_view *view)
{
    struct bank_access *access;
    struct bank *bank;

    for (size_t i = s->n_accesses; i-- > 0;)
        if (s->accesses[i].view == view)
            return &s->accesses[i];
    bank = namesake(s, view);
    access = &s->accesses[s->n_accesses++];
    *access = (struct bank_access){.view = view, .bank = bank ? bank : arena_new(s->arena, struct bank)};
    return access;
}

void search_init(struct search *s)
{
    const struct bench *bench = s->bench;
    const struct pool_view *view = NULL;
    uint32_t position = 0;

    s->offers = arena_array(s->arena, struct offer_state, bench->n_offers + 1);
    s->accesses = arena_array(s->arena, struct bank_access, bench->n_views + 1);
    for (size_t i = 0; i < bench->n_offers; i++) {
        const struct offer *offer = &bench->offers[i];
        struct offer_state *state = &s->offers[i];

        position = offer->view == view ? position + 1 : 0;
        view = offer->view;
        state->use = bench_table(bench)->use[i];
        state->multi = s->consumable && offer->device->multi;
        state->position = position;
        if (offer->device->n_consumes && view->use_start)
            state->access = access_to(s, view);
    }
}

/* ---- in use (4.4, step 2) ---- */

static bool is_busy_for(const struct offer_state *state, size_t claim)
{
    return state->busy && bitset_has(state->busy, claim);
}

bool is_in_use(const struct search *s, const struct claim_ask *ask, size_t claim, size_t offer)
{
    const struct offer_state *state = &s->offers[offer];

    if (ask->admin_access)
        return is_busy_for(state, claim);
    return state->use->n_dedicated || state->n_busy;
}

/* ---- counters (section 9) ---- */

static bool is_allocated(const struct search *s, const struct device_use *use)
{
    return use->n_dedicated || (s->behaviour->shares_count && (use->n_shares || use->has_consumed));
}

static void bank_open(struct search *s, struct bank *bank, const struct pool_view *view)
{
    const struct ledger *ledger = bench_table(s->bench)->ledger;
    const struct device_use *use = ledger ? ledger_pool_use(ledger, view->pool) : view->pool->use;

    bank->is_ready = true;
    bank->view = view;
    bank->n = view->n_counters;
    bank->is_odd = s->behaviour->mixes_pool_names;
    bank->left = arena_array(s->arena, struct quantity, bank->n + 1);
    bank->used = arena_array(s->arena, struct quantity, bank->n + 1);
    if (bank->n)
        memcpy(bank->left, view->totals, bank->n * sizeof(*bank->left));
    for (size_t i = 0; i < view->n_devices + view->n_counted; i++) {
        uint32_t index = i < view->n_devices ? view->devices[i] : view->counted[i - view->n_devices];
        bool allocated = is_allocated(s, &use[index]);

        for (uint32_t k = view->use_start[i]; k < view->use_start[i + 1]; k++) {
            const struct counter_use *u = &view->uses[k];

            bank->is_odd = bank->is_odd || quantity_sign(&u->amount) < 0;
            if (allocated)
                bank->left[u->counter] = quantity_sub(&bank->left[u->counter], &u->amount, s->arena);
        }
    }
    for (size_t i = 0; i < bank->n; i++)
        bank->is_odd = bank->is_odd || quantity_sign(&bank->left[i]) < 0;
}

/* Where the bank keeps the counter of that name in the set of that name. */
static uint32_t counter_by_name(const struct pool_view *view, const char *set, const char *counter)
{
    uint32_t at = 0;

    for (size_t i = 0; i < view->n_sets; i++) {
        const struct counter_set *s = view->sets[i];

        for (size_t k = 0; k < s->n_counters; k++, at++)
            if (text_is(s->name, set) && text_is(s->counters[k].name, counter))
                return at;
    }
    return UNLIMITED;
}

static void access_map(struct search *s, struct bank_access *access)
{
    const struct pool_view *view = access->view;
    uint32_t at = 0;

    access->map = arena_array(s->arena, uint32_t, view->n_counters + 1);
    for (size_t i = 0; i < view->n_sets; i++)
        for (size_t k = 0; k < view->sets[i]->n_counters; k++)
            access->map[at++] =
                counter_by_name(access->bank->view, view->sets[i]->name, view->sets[i]->counters[k].name);
}

static void access_open(struct search *s, struct bank_access *access)
{
    if (!access->bank->is_ready)
        bank_open(s, access->bank, access->view);
    if (access->bank->view != access->view && !access->map)
        access_map(s, access);
}

static uint32_t bank_counter(const struct bank_access *access, uint32_t counter)
{
    return access->map ? access->map[counter] : counter;
}

static void counters_add(struct search *s, const struct offer_state *state, int sign)
{
    const struct pool_view *view = state->access->view;

    for (uint32_t k = view->use_start[state->position]; k < view->use_start[state->position + 1]; k++) {
        uint32_t counter = bank_counter(state->access, view->uses[k].counter);
        struct quantity *used = counter == UNLIMITED ? NULL : &state->access->bank->used[counter];

        if (!used)
            continue;
        *used = sign > 0 ? quantity_add(used, &view->uses[k].amount, &s->scratch)
                         : quantity_sub(used, &view->uses[k].amount, &s->scratch);
        if (used->big) /* beyond 64 bits: must outlive the scratch memory of this pick */
            *used = quantity_copy(used, s->arena);
    }
}

static bool counters_suffice(const struct offer_state *state)
{
    const struct bank *bank = state->access->bank;
    const struct pool_view *view = state->access->view;

    if (bank->is_odd) {
        for (size_t i = 0; i < bank->n; i++)
            if (quantity_cmp(&bank->used[i], &bank->left[i]) > 0)
                return false;
        return true;
    }
    for (uint32_t k = view->use_start[state->position]; k < view->use_start[state->position + 1]; k++) {
        uint32_t counter = view->uses[k].counter;

        if (quantity_cmp(&bank->used[counter], &bank->left[counter]) > 0)
            return false;
    }
    return true;
}

/* Further shares of a device do not take its counters again (9.3). */
static bool skips_counters(const struct search *s, const struct offer_state *state)
{
    if (!state->multi || !s->behaviour->shares_skip_counters)
        return false;
    return state->n_taking || state->use->has_consumed || (s->behaviour->bare_shares_count && state->use->n_shares);
}

/* ---- compatibility groups (9.5) ---- */

/* What the members of a counter set agree on so far. */
struct agreement {
    const char *set;
    bool has_members, has_groups;
    const char *groups[16];
    size_t n_groups;
};

static bool shares_group(const struct agreement *a, const char *group)
{
    for (size_t i = 0; i < a->n_groups; i++)
        if (text_is(a->groups[i], group))
            return true;
    return false;
}

static void join(struct agreement *a, const struct consumption *c)
{
    size_t kept = 0;

    if (!a->has_members) {
        a->has_members = true;
        a->has_groups = c->n_groups > 0;
        for (size_t i = 0; i < c->n_groups && i < ARRAY_SIZE(a->groups); i++)
            a->groups[a->n_groups++] = c->groups[i];
        return;
    }
    for (size_t i = 0; i < a->n_groups; i++)
        for (size_t k = 0; k < c->n_groups; k++)
            if (text_is(a->groups[i], c->groups[k])) {
                a->groups[kept++] = a->groups[i];
                break;
            }
    a->n_groups = kept;
}

static void join_device(struct agreement *a, const struct device *device)
{
    for (size_t i = 0; i < device->n_consumes; i++)
        if (text_is(device->consumes[i].set, a->set))
            join(a, &device->consumes[i]);
}

static void join_members(struct search *s, const struct pool_view *view, struct agreement *a)
{
    const struct ledger *ledger = bench_table(s->bench)->ledger;
    const struct device_use *use = ledger ? ledger_pool_use(ledger, view->pool) : view->pool->use;

    for (size_t i = 0; i < view->n_devices + view->n_counted; i++) {
        uint32_t index = i < view->n_devices ? view->devices[i] : view->counted[i - view->n_devices];

        if (is_allocated(s, &use[index]))
            join_device(a, view->pool->devices[index].device);
    }
    for (size_t i = 0; i < s->n_picks; i++) {
        const struct offer *offer = &s->bench->offers[s->picks[i].pick.offer];

        if (offer->view == view && s->picks[i].counters)
            join_device(a, offer->device);
    }
}

static bool groups_admit(struct search *s, size_t offer)
{
    const struct offer *o = &s->bench->offers[offer];

    if (!feature_on(s->features, FEATURE_COMPATIBILITY_GROUPS))
        return true;
    for (size_t i = 0; i < o->device->n_consumes; i++) {
        const struct consumption *c = &o->device->consumes[i];
        struct agreement a = {.set = c->set};
        bool admits = false;

        join_members(s, o->view, &a);
        admits = !a.has_members || (!c->n_groups && !a.has_groups);
        for (size_t k = 0; k < c->n_groups && !admits; k++)
            admits = a.has_groups && shares_group(&a, c->groups[k]);
        if (!admits)
            return false;
    }
    return true;
}

/* Step 4. Returns false when refused; *out_reserved tells whether the pick holds counters now. */
static bool reserve_counters(struct search *s, size_t offer, bool *out_reserved)
{
    struct offer_state *state = &s->offers[offer];

    *out_reserved = false;
    if (!s->bench->offers[offer].device->n_consumes || skips_counters(s, state))
        return true;
    if (!groups_admit(s, offer))
        return false;
    access_open(s, state->access);
    counters_add(s, state, 1);
    if (!counters_suffice(state)) {
        counters_add(s, state, -1);
        return false;
    }
    *out_reserved = true;
    return true;
}

/* ---- taints, capacity ---- */

bool is_blocked(struct search *s, size_t ask, size_t offer)
{
    uint8_t *known = &s->blocked[offer * s->shape->n_asks + ask];
    const struct offer *o = &s->bench->offers[offer];

    if (!*known)
        *known = ask_is_blocked(s->shape, s->shape->asks[ask].ask, &o->view->pool->devices[o->index]) ? 2 : 1;
    return *known == 2;
}

static const struct need_row *row_of(struct search *s, size_t ask, size_t offer)
{
    return capacity_row(s->shape, ask, s->bench->offers[offer].device);
}

static bool exceeds(struct search *s, size_t offer, const struct quantity *amounts, bool fresh)
{
    const struct device *device = s->bench->offers[offer].device;
    const struct offer_state *state = &s->offers[offer];

    for (size_t i = 0; i < device->n_capacities; i++) {
        struct arena_mark mark = arena_mark(&s->scratch);
        struct quantity sum = amounts[i];
        bool over;

        if (!fresh && state->use->consumed)
            sum = quantity_add(&sum, &state->use->consumed[i], &s->scratch);
        if (!fresh && state->taking)
            sum = quantity_add(&sum, &state->taking[i], &s->scratch);
        over = quantity_cmp(&sum, &device->capacities[i].value) > 0;
        arena_rewind(&s->scratch, mark);
        if (over)
            return true;
    }
    return false;
}

enum capacity_state capacity_test(struct search *s, size_t ask, size_t offer, bool fresh)
{
    const struct need_row *row;

    if (!s->consumable)
        return CAPACITY_OK;
    row = row_of(s, ask, offer);
    if (row->state == CAPACITY_ERROR) {
        if (s->behaviour->capacity_errors_skip)
            return CAPACITY_MISSING;
        s->message = arena_printf(s->arena, "%s: device %s: %s", s->shape->asks[ask].label,
                                  s->bench->offers[offer].device->name, row->message);
        return CAPACITY_ERROR;
    }
    if (row->state != CAPACITY_OK)
        return CAPACITY_MISSING;
    return exceeds(s, offer, row->amounts, fresh) ? CAPACITY_MISSING : CAPACITY_OK;
}

/* Step 7 and 8: mark the device, or add to what its shares take. */
static void occupy(struct search *s, size_t claim, size_t offer, const struct quantity *amounts)
{
    struct offer_state *state = &s->offers[offer];
    size_t n = s->bench->offers[offer].device->n_capacities;

    if (!state->multi) {
        if (!state->busy)
            state->busy = arena_array(s->arena, uint64_t, bitset_words(s->shape->n_claims) + 1);
        bitset_put(state->busy, claim);
        state->n_busy++;
        return;
    }
    state->n_taking++;
    if (!state->taking) {
        state->taking = arena_array(s->arena, struct quantity, n + 1);
        for (size_t i = 0; i < n; i++)
            state->taking[i] = quantity_of_int(0);
    }
    for (size_t i = 0; amounts && i < n; i++) {
        state->taking[i] = quantity_add(&state->taking[i], &amounts[i], &s->scratch);
        if (state->taking[i].big)
            state->taking[i] = quantity_copy(&state->taking[i], s->arena);
    }
}

static void vacate(struct search *s, const struct taken *taken)
{
    struct offer_state *state = &s->offers[taken->pick.offer];
    size_t n = s->bench->offers[taken->pick.offer].device->n_capacities;

    if (!state->multi) {
        bitset_drop(state->busy, taken->pick.claim);
        state->n_busy--;
        return;
    }
    state->n_taking--;
    for (size_t i = 0; taken->amounts && i < n; i++) {
        state->taking[i] = quantity_sub(&state->taking[i], &taken->amounts[i], &s->scratch);
        if (state->taking[i].big)
            state->taking[i] = quantity_copy(&state->taking[i], s->arena);
    }
}

/* ---- constraints (step 6) ---- */

static const char *alternative_name(const struct ask *ask, const struct claim_request *request)
{
    return request->is_list ? ask->ask->name : NULL;
}

static void leave_constraints(struct search *s, const struct ask *ask, uint32_t n)
{
    const struct claim_request *request = &s->shape->claims[ask->claim].claim->requests[ask->request];

    while (n-- > 0)
        constraint_remove(s->constraints[ask->claim], n, request->name, alternative_name(ask, request));
}

uint32_t enter_constraints(struct search *s, struct constraint *constraints, const struct ask *ask, size_t offer)
{
    const struct claim *claim = s->shape->claims[ask->claim].claim;
    const struct claim_request *request = &claim->requests[ask->request];
    const struct offer *o = &s->bench->offers[offer];

    for (uint32_t i = 0; i < claim->n_constraints; i++)
        if (!constraint_add(constraints, i, request->name, alternative_name(ask, request), o->slice->driver, o->device,
                            &s->scratch))
            return i;
    return (uint32_t)claim->n_constraints;
}

/* ---- take and undo ---- */

/* Optional node operations (11.4): the experimental variant alone looks at them. */
static bool operations_refuse(const struct search *s, const struct slice *slice)
{
    if (!slice->skip_node_operations.n || s->behaviour->variant != VARIANT_EXPERIMENTAL || s->features->release < 37)
        return false;
    return !feature_on(s->features, FEATURE_OPTIONAL_NODE_OPERATIONS) ||
           !s->bench->node->info->declares_optional_operations;
}

static enum step refused(struct search *s, struct taken *taken, const struct ask *ask, uint32_t n_constraints,
                         bool keeps_constraints)
{
    bool leaks = s->behaviour->leaks_counters;

    if (!(leaks && keeps_constraints))
        leave_constraints(s, ask, n_constraints);
    if (taken->counters && !leaks)
        counters_add(s, &s->offers[taken->pick.offer], -1);
    if (!leaks)
        arena_rewind(&s->scratch, taken->mark);
    return STEP_FAIL;
}

static enum step must_fail(struct search *s, const struct ask *ask, size_t offer)
{
    const struct offer *o = &s->bench->offers[offer];

    s->message =
        arena_printf(s->arena, "%s: cannot add device %s/%s/%s because a claim constraint would not be satisfied",
                     ask->label, o->slice->driver, o->slice->pool, o->device->name);
    return STEP_FATAL;
}

enum step search_take(struct search *s, size_t ask_index, size_t offer, bool must)
{
    const struct ask *ask = &s->shape->asks[ask_index];
    const struct offer *o = &s->bench->offers[offer];
    struct offer_state *state = &s->offers[offer];
    struct taken taken = {.mark = arena_mark(&s->scratch)};
    uint32_t n_accepted, n_constraints = (uint32_t)s->shape->claims[ask->claim].claim->n_constraints;

    taken.pick =
        (struct pick){(uint32_t)offer, (uint16_t)ask->claim, (uint16_t)ask->request, (uint16_t)ask->alternative};
    if (ask->ask->admin_access ? !state->multi && is_busy_for(state, ask->claim)
                               : state->use->n_dedicated || state->n_busy)
        return STEP_FAIL;
    if (operations_refuse(s, o->slice))
        return STEP_FAIL;
    if (o->device->n_consumes && !feature_on(s->features, FEATURE_PARTITIONABLE_DEVICES))
        return STEP_FAIL;
    if (!reserve_counters(s, offer, &taken.counters))
        return STEP_FAIL;
    if (is_blocked(s, ask_index, offer))
        return refused(s, &taken, ask, 0, false);
    n_accepted = enter_constraints(s, s->constraints[ask->claim], ask, offer);
    if (n_accepted < n_constraints) {
        refused(s, &taken, ask, n_accepted, false);
        return must ? must_fail(s, ask, offer) : STEP_FAIL;
    }
    if (s->consumable) {
        enum capacity_state capacity = capacity_test(s, ask_index, offer, false);

        if (capacity != CAPACITY_OK) {
            refused(s, &taken, ask, n_constraints, true);
            return capacity == CAPACITY_ERROR ? STEP_FATAL : STEP_FAIL;
        }
        taken.amounts = row_of(s, ask_index, offer)->amounts;
    }
    occupy(s, ask->claim, offer, taken.amounts);
    taken.n_constraints = n_constraints;
    s->picks[s->n_picks++] = taken;
    s->n_claim_picks[ask->claim]++;
    return STEP_OK;
}

void search_undo(struct search *s)
{
    struct taken *taken = &s->picks[--s->n_picks];
    const struct pick *pick = &taken->pick;
    const struct claim_shape *claim = &s->shape->claims[pick->claim];
    const struct ask *ask = &s->shape->asks[claim->requests[pick->request].first_ask + pick->alternative];
    struct offer_state *state = &s->offers[pick->offer];

    s->n_claim_picks[pick->claim]--;
    vacate(s, taken);
    leave_constraints(s, ask, taken->n_constraints);
    if (taken->counters && !(s->behaviour->leaks_counters && state->multi))
        counters_add(s, state, -1);
    if (!s->behaviour->leaks_counters)
        arena_rewind(&s->scratch, taken->mark);
}
