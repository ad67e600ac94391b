/* Depth first, with memory.
 *
 * Members are placed one after the other, group by group. For a member every node is tried (of nodes in equal state
 * only the first), on it every variant, and for that every choice of devices (of devices in equal state only the
 * first). The first time that all members have a place the search ends. Between two members the whole state is summed
 * up as a hash that does not see the order of interchangeable parts; a state from which the rest could not be placed is
 * remembered and never searched again. What takes is undone on the way back, so that the problem is left as it was
 * found.
 *
 * This is exhaustive: what it does not try equals something that it did, because
 *   - members of a group are alike, and only the sum of what is taken matters to those that follow;
 *   - equal cells in equal state can be exchanged, unless the member that is being placed has touched one of them;
 *   - within a request devices are taken in ascending order, so that each set is tried once. */
#include "allocator/gang_search.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define MAX_RESULTS 32   /* devices in one claim's allocation */
#define MAX_DEPTH   6000 /* of the recursion, in members and their devices */

/* A member (or a shared claim) that is being placed. */
struct member {
    size_t position; /* in order[]; of a shared claim: its index */
    uint32_t group;
    bool is_shared;
    struct gs_node *node;
    const struct gs_variant *variant;
    size_t first_pick;
    uint32_t stamp;
};

struct run {
    struct gs_problem *problem;
    const uint32_t *order;
    size_t n_order;
    uint32_t *remaining; /* per group */
    struct gs_memo *memo;
    uint64_t *steps;
    bool is_exhausted; /* of steps */
    struct gs_hash total;
    uint64_t **distinct_used; /* per gang constraint: element numbers in use */
    struct gs_pick *picks;
    size_t n_picks, cap_picks;
    struct gs_placed *placed; /* shared claims, then members; picks hold offsets until they are copied */
    size_t *placed_first;
    size_t n_placed;
    uint32_t stamp, claim_stamp; /* the last ones given out */
    struct arena scratch;
    struct arena *arena;
    struct gs_solution *out;
};

static bool next_member(struct run *r, size_t position);
static bool next_shared(struct run *r, size_t index);

static bool spend(struct run *r)
{
    if (*r->steps == 0) {
        r->is_exhausted = true;
        return false;
    }
    --*r->steps;
    return true;
}

/* ---- hashes ---- */

static struct gs_hash device_state(const struct gs_device *device)
{
    struct gs_hash h = {device->twin, device->n_takers > 0};

    for (size_t i = 0; i < device->n_left; i++)
        h = gs_hash_mix(gs_hash_mix(h, (uint64_t)device->left[i]), (uint64_t)(device->left[i] >> 64));
    return gs_hash_mix(h, device->multi);
}

static struct gs_hash cell_hash(const struct gs_cell *cell)
{
    struct gs_hash sum = {0, 0}, h = cell->signature;

    for (size_t i = 0; i < cell->n_devices; i++)
        if (cell->devices[i]->multi || cell->devices[i]->n_takers)
            sum = gs_hash_add(sum, device_state(cell->devices[i]));
    for (size_t i = 0; i < cell->n_counters; i++)
        h = gs_hash_mix(gs_hash_mix(h, (uint64_t)cell->counters[i]), (uint64_t)(cell->counters[i] >> 64));
    h.a += sum.a;
    h.b += sum.b;
    return gs_hash_mix(h, 1);
}

static struct gs_hash node_hash(const struct gs_problem *problem, const struct gs_node *node)
{
    struct gs_hash h = gs_hash_add(node->signature, node->cell_sum);

    for (size_t i = 0; i < problem->n_resources; i++)
        h = gs_hash_mix(h, (uint64_t)node->left[i]);
    return gs_hash_mix(gs_hash_mix(h, node->ports), node->shared_ok);
}

void gs_prepare_node(const struct gs_problem *problem, struct gs_node *node)
{
    node->cell_sum = (struct gs_hash){0, 0};
    for (size_t c = 0; c < node->n_cells; c++) {
        node->cells[c].hash = cell_hash(&node->cells[c]);
        node->cell_sum = gs_hash_add(node->cell_sum, node->cells[c].hash);
    }
    node->hash = node_hash(problem, node);
}

void gs_prepare(struct gs_problem *problem)
{
    for (size_t c = 0; c < problem->n_net_cells; c++)
        problem->net_cells[c].hash = cell_hash(&problem->net_cells[c]);
    for (size_t n = 0; n < problem->n_nodes; n++)
        gs_prepare_node(problem, problem->nodes[n]);
}

static struct gs_hash total_hash(const struct gs_problem *problem)
{
    struct gs_hash total = {0, 0};

    for (size_t n = 0; n < problem->n_nodes; n++)
        total = gs_hash_add(total, problem->nodes[n]->hash);
    for (size_t c = 0; c < problem->n_net_cells; c++)
        total = gs_hash_add(total, problem->net_cells[c].hash);
    return total;
}

static void refresh_node(struct run *r, struct gs_node *node)
{
    r->total = gs_hash_sub(r->total, node->hash);
    node->hash = node_hash(r->problem, node);
    r->total = gs_hash_add(r->total, node->hash);
}

/* The cell's state has changed for good (until the way back): bring its hash and those above it up to date. */
static void refresh_cell(struct run *r, struct gs_cell *cell, struct gs_hash hash)
{
    if (!cell->node) {
        r->total = gs_hash_add(gs_hash_sub(r->total, cell->hash), hash);
        cell->hash = hash;
        return;
    }
    cell->node->cell_sum = gs_hash_add(gs_hash_sub(cell->node->cell_sum, cell->hash), hash);
    cell->hash = hash;
}

/* ---- constraints ---- */

struct wish { /* a request of the claim that is being served */
    const struct gs_claim *claim;
    size_t claim_index, request;
    size_t first;         /* pick of the claim */
    uint32_t claim_stamp; /* of this claim of this member */
};

static bool values_meet(const struct gs_value *a, const struct gs_value *b)
{
    uint32_t i = 0, j = 0;

    while (i < a->n && j < b->n) {
        if (a->elements[i] == b->elements[j])
            return true;
        if (a->elements[i] < b->elements[j])
            i++;
        else
            j++;
    }
    return false;
}

static bool value_has(const struct gs_value *value, uint32_t element)
{
    for (uint32_t i = 0; i < value->n; i++)
        if (value->elements[i] == element)
            return true;
    return false;
}

/* Whether the device agrees (or differs) with all that the constraint covers among the claim's picks so far. */
static bool distinct_holds(const struct run *r, const struct gs_constraint *constraint, size_t first,
                           const struct gs_value *value)
{
    for (size_t i = first; i < r->n_picks; i++) {
        const struct gs_value *other = r->picks[i].candidate->device->values[constraint->attribute];

        if (!(constraint->requests >> r->picks[i].request & 1))
            continue;
        if (value->odd || values_meet(value, other))
            return false;
    }
    return true;
}

static bool match_holds(const struct run *r, const struct gs_constraint *constraint, size_t first,
                        const struct gs_value *value)
{
    bool is_first = true;
    uint32_t left = value->n;

    for (size_t i = first; i < r->n_picks; i++)
        if (constraint->requests >> r->picks[i].request & 1)
            is_first = false;
    if (is_first)
        return true;
    if (value->odd)
        return false;
    for (uint32_t e = 0; e < value->n; e++)
        for (size_t i = first; i < r->n_picks; i++)
            if ((constraint->requests >> r->picks[i].request & 1) &&
                (r->picks[i].candidate->device->values[constraint->attribute]->odd ||
                 !value_has(r->picks[i].candidate->device->values[constraint->attribute], value->elements[e]))) {
                left--;
                break;
            }
    return left > 0;
}

static bool constraints_hold(const struct run *r, const struct gs_claim *claim, size_t request, size_t first,
                             const struct gs_device *device)
{
    for (size_t i = 0; i < claim->n_constraints; i++) {
        const struct gs_constraint *constraint = &claim->constraints[i];
        const struct gs_value *value;

        if (!(constraint->requests >> request & 1))
            continue;
        value = device->values[constraint->attribute];
        if (!value || !(constraint->distinct ? distinct_holds : match_holds)(r, constraint, first, value))
            return false;
    }
    return true;
}

/* The devices that a request has been given so far agree in this already, so the first one tells. */
static bool likeness_agrees(const struct run *r, const struct wish *wish, const struct gs_device *device)
{
    for (size_t i = wish->first; i < r->n_picks; i++)
        if (r->picks[i].request == wish->request)
            return r->picks[i].candidate->device->likeness == device->likeness;
    return true;
}

/* Gang-wide: all values ever taken under the constraint differ. */
static bool gang_distinct_holds(const struct run *r, uint32_t mask, const struct gs_device *device)
{
    for (uint32_t d = 0; mask >> d; d++) {
        const struct gs_value *value;

        if (!(mask >> d & 1))
            continue;
        value = device->values[r->problem->distinct_attributes[d]];
        if (!value || value->odd)
            return false;
        for (uint32_t e = 0; e < value->n; e++)
            if (bitset_has(r->distinct_used[d], value->elements[e]))
                return false;
    }
    return true;
}

static void gang_distinct_mark(struct run *r, uint32_t mask, const struct gs_device *device, bool used)
{
    for (uint32_t d = 0; mask >> d; d++) {
        const struct gs_value *value = device->values[r->problem->distinct_attributes[d]];

        for (uint32_t e = 0; (mask >> d & 1) && e < value->n; e++) {
            struct gs_hash h = gs_hash_mix((struct gs_hash){d, 77}, value->elements[e]);

            if (used)
                bitset_put(r->distinct_used[d], value->elements[e]);
            else
                bitset_drop(r->distinct_used[d], value->elements[e]);
            r->total = used ? gs_hash_add(r->total, h) : gs_hash_sub(r->total, h);
        }
    }
}

/* ---- taking a device ---- */

/* What a pick changed, to be undone. */
struct taken {
    struct gs_device *device;
    const struct gs_candidate *candidate;
    uint32_t touched, admin_claim, admin_member;
    uint32_t distinct;
    bool is_admin, has_counters;
};

static bool amounts_suffice(const struct gs_use *uses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (uses[i].amount > *uses[i].left)
            return false;
    return true;
}

static void amounts_move(const struct gs_use *uses, size_t n, int sign)
{
    for (size_t i = 0; i < n; i++)
        *uses[i].left -= sign * uses[i].amount;
}

static bool is_free(const struct member *m, const struct wish *wish, const struct gs_device *device, bool admin)
{
    if (admin && !device->multi)
        return device->admin_claim != wish->claim_stamp;
    return device->multi || (device->n_takers == 0 && device->admin_member != m->stamp);
}

static void push_pick(struct run *r, const struct wish *wish, const struct gs_candidate *candidate)
{
    mem_grow(r->picks, r->n_picks, r->cap_picks);
    r->picks[r->n_picks++] = (struct gs_pick){(uint32_t)wish->claim_index, (uint32_t)wish->request, candidate};
}

static bool take(struct run *r, const struct member *m, const struct wish *wish, const struct gs_candidate *candidate,
                 struct taken *out)
{
    struct gs_device *device = candidate->device;
    bool admin = wish->claim->requests[wish->request].admin;
    bool charge = device->n_counters && !(device->multi && (device->charged || device->n_takers > 0));
    uint32_t distinct = wish->claim->gang_distinct ? wish->claim->gang_distinct[wish->request] : 0;

    if (!is_free(m, wish, device, admin) || !amounts_suffice(candidate->uses, candidate->n_uses) ||
        (charge && !amounts_suffice(device->counters, device->n_counters)) ||
        !constraints_hold(r, wish->claim, wish->request, wish->first, device) ||
        (!wish->claim->requests[wish->request].all && !likeness_agrees(r, wish, device)) ||
        (distinct && !gang_distinct_holds(r, distinct, device)))
        return false;
    *out = (struct taken){device,   candidate, device->cell->touched, device->admin_claim, device->admin_member,
                          distinct, admin,     charge && !admin};
    device->cell->touched = m->stamp;
    if (admin) { /* is not counted once the pod has started, so that nobody else meets it */
        device->admin_claim = wish->claim_stamp;
        device->admin_member = m->stamp;
    } else {
        device->n_takers++;
        amounts_move(candidate->uses, candidate->n_uses, 1);
    }
    if (out->has_counters)
        amounts_move(device->counters, device->n_counters, 1);
    if (distinct)
        gang_distinct_mark(r, distinct, device, true);
    push_pick(r, wish, candidate);
    return true;
}

static void give_back(struct run *r, const struct taken *taken)
{
    struct gs_device *device = taken->device;

    r->n_picks--;
    if (taken->distinct)
        gang_distinct_mark(r, taken->distinct, device, false);
    if (taken->has_counters)
        amounts_move(device->counters, device->n_counters, -1);
    if (!taken->is_admin) {
        device->n_takers--;
        amounts_move(taken->candidate->uses, taken->candidate->n_uses, -1);
    }
    device->admin_claim = taken->admin_claim;
    device->admin_member = taken->admin_member;
    device->cell->touched = taken->touched;
}

/* ---- the devices of one member ---- */

static bool finish(struct run *r, struct member *m);
static bool next_request(struct run *r, struct member *m, struct wish wish);

static bool next_claim(struct run *r, struct member *m, size_t claim_index)
{
    struct wish wish = {.claim_index = claim_index, .first = r->n_picks, .claim_stamp = ++r->claim_stamp};

    if (claim_index == m->variant->n_claims)
        return finish(r, m);
    wish.claim = &m->variant->claims[claim_index];
    return next_request(r, m, wish);
}

static size_t n_takable(const struct member *m, const struct wish *wish, const struct gs_list *list, bool admin)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += is_free(m, wish, list->items[i].device, admin) &&
             amounts_suffice(list->items[i].uses, list->items[i].n_uses);
    return n;
}

/* Identifies a device up to interchangeable ones, for the member that is being placed. */
static struct gs_hash device_key(const struct member *m, const struct gs_device *device)
{
    const struct gs_cell *cell = device->cell;
    struct gs_hash base = cell->touched == m->stamp ? (struct gs_hash){(uintptr_t)cell, 99} : cell->hash;
    struct gs_hash state = device_state(device);

    return gs_hash_mix(gs_hash_mix(base, state.a), device->admin_member == m->stamp ? ~state.b : state.b);
}

static bool seen_before(struct gs_hash *seen, size_t *n, struct gs_hash key)
{
    for (size_t i = 0; i < *n; i++)
        if (gs_hash_eq(seen[i], key))
            return true;
    seen[(*n)++] = key;
    return false;
}

/* Fill the slots of an ExactCount request from `slot` on, with candidates from `start` on. */
static bool next_slot(struct run *r, struct member *m, const struct wish *wish, uint32_t slot, size_t start)
{
    const struct gs_request *request = &wish->claim->requests[wish->request];
    const struct gs_list *list = &m->node->lists[request->ask];
    struct arena_mark mark = arena_mark(&r->scratch);
    struct gs_hash *seen;
    size_t n_seen = 0;
    bool found = false;

    if (slot == request->count) {
        struct wish next = *wish;

        next.request++;
        return next_request(r, m, next);
    }
    if (list->n < start + (request->count - slot))
        return false;
    seen = arena_array(&r->scratch, struct gs_hash, list->n - start);
    for (size_t i = start; i < list->n && !found && !r->is_exhausted; i++) {
        struct taken taken;

        if (!spend(r))
            break;
        if (seen_before(seen, &n_seen, device_key(m, list->items[i].device)) ||
            !take(r, m, wish, &list->items[i], &taken))
            continue;
        found = next_slot(r, m, wish, slot + 1, i + 1);
        give_back(r, &taken);
    }
    arena_rewind(&r->scratch, mark);
    return found;
}

/* Mode All: every device of the list or none. */
static bool take_all(struct run *r, struct member *m, const struct wish *wish, const struct gs_list *list)
{
    struct arena_mark mark = arena_mark(&r->scratch);
    struct taken *taken = arena_array(&r->scratch, struct taken, list->n);
    struct wish next = *wish;
    bool found = false;
    size_t n = 0;

    while (n < list->n && spend(r) && take(r, m, wish, &list->items[n], &taken[n]))
        n++;
    next.request++;
    if (n == list->n)
        found = next_request(r, m, next);
    while (n > 0)
        give_back(r, &taken[--n]);
    arena_rewind(&r->scratch, mark);
    return found;
}

static bool next_request(struct run *r, struct member *m, struct wish wish)
{
    const struct gs_request *request;
    const struct gs_list *list;
    size_t n_needed;

    if (wish.request == wish.claim->n_requests)
        return next_claim(r, m, wish.claim_index + 1);
    request = &wish.claim->requests[wish.request];
    list = &m->node->lists[request->ask];
    n_needed = request->all ? list->n : request->count;
    if (r->n_picks - wish.first + n_needed > MAX_RESULTS)
        return false;
    if (request->all)
        return list->n > 0 && !list->all_fails && take_all(r, m, &wish, list);
    if (n_takable(m, &wish, list, request->admin) < n_needed)
        return false;
    return next_slot(r, m, &wish, 0, 0);
}

/* ---- members ---- */

struct saved_cell {
    struct gs_cell *cell;
    struct gs_hash hash;
};

/* Bring the hashes of what the member took up to date; returns how many cells were saved for the way back. */
static size_t settle(struct run *r, const struct member *m, struct saved_cell *saved)
{
    size_t n = 0;

    for (size_t i = m->first_pick; i < r->n_picks; i++) {
        struct gs_cell *cell = r->picks[i].candidate->device->cell;
        bool is_known = false;

        for (size_t k = 0; k < n && !is_known; k++)
            is_known = saved[k].cell == cell;
        if (is_known)
            continue;
        saved[n++] = (struct saved_cell){cell, cell->hash};
        refresh_cell(r, cell, cell_hash(cell));
    }
    refresh_node(r, m->node);
    return n;
}

static void unsettle(struct run *r, const struct member *m, const struct saved_cell *saved, size_t n)
{
    while (n > 0) {
        n--;
        refresh_cell(r, saved[n].cell, saved[n].hash);
    }
    refresh_node(r, m->node);
}

/* Where a shared claim can be used, now that it has its devices; `before` keeps what to restore. */
static void apply_shared(struct run *r, const struct member *m, uint64_t *before)
{
    uint64_t bit = (uint64_t)1 << m->position;

    for (size_t n = 0; n < r->problem->n_nodes; n++) {
        struct gs_node *node = r->problem->nodes[n];
        bool usable = true;

        for (size_t i = m->first_pick; i < r->n_picks && usable; i++) {
            const struct gs_device *device = r->picks[i].candidate->device;

            usable = node == m->node || (device->reach && !device->pins && bitset_has(device->reach, node->index));
        }
        before[n] = node->shared_ok;
        node->shared_ok = usable ? node->shared_ok | bit : node->shared_ok;
        refresh_node(r, node);
    }
}

static void restore_shared(struct run *r, const uint64_t *before)
{
    for (size_t n = 0; n < r->problem->n_nodes; n++) {
        r->problem->nodes[n]->shared_ok = before[n];
        refresh_node(r, r->problem->nodes[n]);
    }
}

static bool finish_shared(struct run *r, const struct member *m)
{
    struct arena_mark mark = arena_mark(&r->scratch);
    uint64_t *before = arena_array(&r->scratch, uint64_t, r->problem->n_nodes);
    bool found;

    apply_shared(r, m, before);
    found = next_shared(r, m->position + 1);
    restore_shared(r, before);
    arena_rewind(&r->scratch, mark);
    return found;
}

/* The member has all its devices: go on with the next one. */
static bool finish(struct run *r, struct member *m)
{
    struct arena_mark mark = arena_mark(&r->scratch);
    struct saved_cell *saved = arena_array(&r->scratch, struct saved_cell, r->n_picks - m->first_pick + 1);
    size_t n_saved = settle(r, m, saved);
    bool found;

    r->placed[r->n_placed] = (struct gs_placed){
        .group = m->group, .node = m->node, .variant = m->variant, .n_picks = r->n_picks - m->first_pick};
    r->placed_first[r->n_placed++] = m->first_pick;
    found = m->is_shared ? finish_shared(r, m) : next_member(r, m->position);
    r->n_placed--;
    unsettle(r, m, saved, n_saved);
    arena_rewind(&r->scratch, mark);
    return found;
}

static bool node_takes(const struct run *r, const struct gs_node *node, uint32_t group, const struct gs_form *form)
{
    const struct gs_group *asked = &r->problem->groups[group];

    if (!(node->groups >> group & 1) || (node->ports & asked->ports) || (asked->shared & ~node->shared_ok))
        return false;
    for (size_t i = 0; i < r->problem->n_resources; i++)
        if (form->demand[i] > node->left[i])
            return false;
    return true;
}

static void node_charge(const struct run *r, struct gs_node *node, const struct gs_form *form, int64_t sign)
{
    for (size_t i = 0; i < r->problem->n_resources; i++)
        node->left[i] -= sign * form->demand[i];
}

static bool place(struct run *r, size_t position, struct gs_node *node, const struct gs_variant *variant)
{
    uint32_t group = r->order[position];
    const struct gs_form *form = &r->problem->groups[group].forms[node->form];
    uint64_t ports = node->ports;
    struct member m = {.position = position,
                       .group = group,
                       .node = node,
                       .variant = variant,
                       .first_pick = r->n_picks,
                       .stamp = ++r->stamp};
    bool found;

    node_charge(r, node, form, 1);
    node->ports |= r->problem->groups[group].port_clashes;
    r->remaining[group]--;
    found = next_claim(r, &m, 0);
    r->remaining[group]++;
    node->ports = ports;
    node_charge(r, node, form, -1);
    refresh_node(r, node);
    return found;
}

/* One variant of the group's next member on every node; of nodes in equal state the first. */
static bool place_variant(struct run *r, size_t position, size_t variant, bool *out_any)
{
    uint32_t group = r->order[position];
    struct arena_mark mark = arena_mark(&r->scratch);
    struct gs_hash *seen = arena_array(&r->scratch, struct gs_hash, r->problem->n_nodes);
    size_t n_seen = 0;
    bool found = false;

    for (size_t n = 0; n < r->problem->n_nodes && !found && !r->is_exhausted; n++) {
        struct gs_node *node = r->problem->nodes[n];
        const struct gs_form *form = &r->problem->groups[group].forms[node->form];

        if (variant >= form->n_variants)
            continue;
        *out_any = true;
        if (!node_takes(r, node, group, form) || seen_before(seen, &n_seen, node->hash) || !spend(r))
            continue;
        found = place(r, position, node, &form->variants[variant]);
    }
    arena_rewind(&r->scratch, mark);
    return found;
}

static struct gs_hash state_key(const struct run *r, size_t position)
{
    struct gs_hash key = r->total;

    for (size_t i = position; i < r->n_order; i++)
        if (r->remaining[r->order[i]])
            key = gs_hash_mix(gs_hash_mix(key, r->order[i]), r->remaining[r->order[i]]);
    return key;
}

static void copy_solution(struct run *r)
{
    struct gs_solution *out = r->out;
    size_t n_shared = r->problem->n_shared;
    struct gs_placed *all = arena_array(r->arena, struct gs_placed, r->n_placed);

    for (size_t i = 0; i < r->n_placed; i++) {
        struct gs_pick *picks = arena_array(r->arena, struct gs_pick, r->placed[i].n_picks);

        all[i] = r->placed[i];
        if (all[i].n_picks)
            memcpy(picks, r->picks + r->placed_first[i], all[i].n_picks * sizeof(*picks));
        all[i].picks = picks;
    }
    *out = (struct gs_solution){.shared = all, .members = all + n_shared, .n_members = r->n_placed - n_shared};
}

static bool next_member(struct run *r, size_t position)
{
    struct gs_hash key;
    bool any = true;

    while (position < r->n_order && r->remaining[r->order[position]] == 0)
        position++;
    if (position == r->n_order) {
        copy_solution(r);
        return true;
    }
    key = state_key(r, position);
    if (gs_memo_has(r->memo, key))
        return false;
    for (size_t variant = 0; any && !r->is_exhausted; variant++) {
        any = false;
        if (place_variant(r, position, variant, &any))
            return true;
    }
    if (!r->is_exhausted)
        gs_memo_put(r->memo, key);
    return false;
}

/* ---- shared claims ---- */

static uint64_t users_of(const struct gs_problem *problem, size_t shared)
{
    uint64_t users = 0;

    for (size_t g = 0; g < problem->n_groups; g++)
        if (problem->groups[g].shared >> shared & 1)
            users |= (uint64_t)1 << g;
    return users;
}

static bool place_shared(struct run *r, size_t index, struct gs_node *node, const struct gs_variant *variant)
{
    struct member m = {.position = index,
                       .group = UINT32_MAX,
                       .is_shared = true,
                       .node = node,
                       .variant = variant,
                       .first_pick = r->n_picks,
                       .stamp = ++r->stamp};

    return next_claim(r, &m, 0);
}

static bool next_shared(struct run *r, size_t index)
{
    const struct gs_shared *shared = &r->problem->shared[index];
    uint64_t users;
    struct gs_hash key;

    if (index == r->problem->n_shared)
        return next_member(r, 0);
    key = gs_hash_mix(state_key(r, 0), UINT64_C(0x5a5a0000) + index);
    if (gs_memo_has(r->memo, key))
        return false;
    users = users_of(r->problem, index);
    for (size_t v = 0; v < shared->n_variants; v++)
        for (size_t n = 0; n < r->problem->n_nodes && !r->is_exhausted; n++)
            if ((r->problem->nodes[n]->groups & users) && spend(r) &&
                place_shared(r, index, r->problem->nodes[n], &shared->variants[v]))
                return true;
    if (!r->is_exhausted)
        gs_memo_put(r->memo, key);
    return false;
}

/* ---- the whole ---- */

static void run_init(struct run *r, const uint32_t *counts)
{
    size_t n_members = r->problem->n_shared;

    r->remaining = arena_array(&r->scratch, uint32_t, r->problem->n_groups);
    for (size_t i = 0; i < r->n_order; i++) {
        r->remaining[r->order[i]] = counts[r->order[i]];
        n_members += counts[r->order[i]];
    }
    r->placed = arena_array(&r->scratch, struct gs_placed, n_members);
    r->placed_first = arena_array(&r->scratch, size_t, n_members);
    r->distinct_used = arena_array(&r->scratch, uint64_t *, r->problem->n_distinct);
    for (size_t d = 0; d < r->problem->n_distinct; d++)
        r->distinct_used[d] = arena_array(&r->scratch, uint64_t, bitset_words(r->problem->n_elements));
    r->total = total_hash(r->problem);
}

/* How deep the recursion can get: it must end before the stack does. */
static size_t depth_of(const struct gs_problem *problem, const uint32_t *counts, const uint32_t *order, size_t n_order)
{
    size_t depth = 0;

    for (size_t i = 0; i < n_order; i++) {
        const struct gs_form *form = &problem->groups[order[i]].forms[0];
        size_t picks = 2;

        for (size_t c = 0; form->n_variants && c < form->variants[0].n_claims; c++)
            for (size_t q = 0; q < form->variants[0].claims[c].n_requests; q++)
                picks += 1 + form->variants[0].claims[c].requests[q].count;
        if (counts[order[i]] > MAX_DEPTH)
            return SIZE_MAX;
        depth += picks * counts[order[i]];
    }
    return depth;
}

enum gs_outcome gs_search(struct gs_problem *problem, const uint32_t *counts, const uint32_t *order, size_t n_order,
                          struct gs_memo *memo, uint64_t *steps, struct arena *arena, struct gs_solution *out)
{
    struct run r = {.problem = problem,
                    .order = order,
                    .n_order = n_order,
                    .memo = memo,
                    .steps = steps,
                    .arena = arena,
                    .out = out};
    bool found;

    if (depth_of(problem, counts, order, n_order) > MAX_DEPTH)
        return GS_BUDGET;
    arena_init(&r.scratch);
    run_init(&r, counts);
    found = next_shared(&r, 0);
    arena_release(&r.scratch);
    free(r.picks);
    if (found)
        return GS_FOUND;
    return r.is_exhausted ? GS_BUDGET : GS_NONE;
}
