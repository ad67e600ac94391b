/* One more member on a node: its devices, and how much it adds to the fragments there.
 *
 * Exact for the requests that are taken on: what fits by this fits, and where each request is for one device, what does
 * not fit by this does not. */
#include <string.h>

#include "allocator/score.h"

#include "allocator/base/banned.h"

void score_copy(const struct gang_workload *w, struct facts *to, const struct facts *from)
{
    memcpy(to, from, score_facts_size(w));
}

/* ---- the question ---- */

static bool is_plain_request(const struct claim_request *request)
{
    const struct claim_ask *ask = request->asks;

    return !request->is_list && ask->mode == MODE_EXACT_COUNT && !ask->admin_access && ask->n_tolerations == 0 &&
           ask->n_capacity <= 1 && ask->n_derived == 0 && ask->count >= 1 && ask->count <= SCORE_MAX_DEVICES;
}

bool score_read_question(const struct gang *gang, const struct gang_workload *w, size_t kind, struct question *q)
{
    const struct gang_kind *of = &gang->kinds[kind];
    const struct gang_unit *unit = of->forms[0];

    *q = (struct question){
        .kind = of, .unit = unit, .cpu = score_demand(&of->rules, "cpu"), .memory = score_demand(&of->rules, "memory")};
    for (size_t c = 0; c < unit->n_claims; c++) {
        const struct claim *claim = unit->claims[c];

        if (claim->n_constraints > 0)
            return false;
        for (size_t r = 0; r < claim->n_requests; r++) {
            const struct claim_ask *ask = claim->requests[r].asks;

            if (q->n_parts == SCORE_MAX_PARTS || !is_plain_request(&claim->requests[r]))
                return false;
            q->parts[q->n_parts] = (struct part){.ask = ask,
                                                 .claim = (uint32_t)c,
                                                 .request = (uint32_t)r,
                                                 .number = (uint32_t)q->n_parts,
                                                 .selection = score_selection(w, ask),
                                                 .count = (uint32_t)ask->count};
            q->is_anew = q->is_anew || q->parts[q->n_parts].selection == SCORE_MAX_SELECTIONS;
            q->n_parts++;
        }
    }
    return true;
}

/* ---- one request ---- */

/* What the request takes of a device, after the rounding of its policy. */
static int64_t need_on(struct scratch *s, struct question *q, struct part *part, const struct room *room)
{
    const struct capacity *capacity = room->device->n_capacities ? &room->device->capacities[0] : NULL;
    const struct quantity *amounts;
    const char *message;
    struct rounded *known;
    bool is_exact = true;

    if (!part->ask->n_capacity && (!capacity || !room->multi))
        return SCORE_WHOLE;
    for (size_t i = 0; i < part->n_rounded && i < ARRAY_SIZE(part->rounded); i++)
        if (capacity && part->rounded[i].hash == capacity->hash)
            return part->rounded[i].need;
    known = &part->rounded[part->n_rounded++ % ARRAY_SIZE(part->rounded)];
    *known = (struct rounded){.hash = capacity ? capacity->hash : 0};
    if (capacity && capacity_consumption(q->unit->shape, part->ask, room->device, &s->gang->work, &amounts, &message) ==
                        CAPACITY_OK) {
        known->need = score_thousandths(&amounts[0], &is_exact);
        known->need = is_exact ? known->need : -1;
    }
    return known->need;
}

/* The devices that a request selects which no typical pod makes. False: on one of them it fails. */
static bool select_anew(struct scratch *s, const struct question *q, const struct part *part, const struct node *node,
                        const struct facts *facts, uint32_t *out)
{
    struct arena_mark mark = arena_mark(&s->gang->work);
    const struct bench *bench = bench_make(q->unit->shape, NULL, node, &s->gang->work);
    bool is_sure = bench->problem == NULL;

    for (size_t o = 0; o < bench->n_offers && is_sure; o++) {
        enum selectable selects = bench_selects(q->unit->shape, bench, o, part->number, NULL);

        is_sure = selects != SELECT_ERROR;
        for (uint32_t d = 0; selects == SELECT_YES && d < facts->n_devices; d++)
            if (facts->devices[d].pool == bench->offers[o].view->pool->slot &&
                facts->devices[d].index == bench->offers[o].index)
                *out |= BIT(d);
    }
    arena_rewind(&s->gang->work, mark);
    return is_sure;
}

/* The devices that have room for the request. False: it is not known of some. */
static bool find_takable(struct scratch *s, struct question *q, struct part *part, const struct node *node,
                         const struct facts *facts, uint32_t *out)
{
    uint32_t selected = 0;

    *out = 0;
    if (part->selection == SCORE_MAX_SELECTIONS && !select_anew(s, q, part, node, facts, &selected))
        return false;
    if (part->selection < SCORE_MAX_SELECTIONS && (facts->failures >> part->selection & 1))
        return false;
    for (uint32_t d = 0; d < facts->n_devices; d++) {
        const struct room *room = &facts->devices[d];
        int64_t need;

        if (part->selection < SCORE_MAX_SELECTIONS ? !(room->selections >> part->selection & 1) : !(selected >> d & 1))
            continue;
        need = need_on(s, q, part, room);
        if (need < 0)
            return false;
        if (need <= 0 || room->left <= 0 || room->left < (need == SCORE_WHOLE ? room->total : need))
            continue;
        *out |= BIT(d);
        s->has_choice = s->has_choice || (part->count > 1 && room->multi && need <= room->left / 2);
    }
    return true;
}

struct option { /* devices for a part */
    bool is_any;
    float increase, left;
    uint32_t devices;
};

static bool is_better(float increase, float left, float than_increase, float than_left)
{
    return increase < than_increase || (increase <= than_increase && left < than_left);
}

/* What the state on trial would mean for the node; it is kept when it is the best of its part. */
static void weigh_trial(struct scratch *s, const struct facts *before, uint32_t devices, struct option *best)
{
    struct facts *swapped = s->best;
    float increase;

    s->trial->fragments = score_fragments(s->w, s->weights, s->trial);
    increase = s->trial->fragments - before->fragments;
    if (best->is_any && !is_better(increase, s->trial->free, best->increase, best->left))
        return;
    *best = (struct option){true, increase, s->trial->free, devices};
    s->best = s->trial;
    s->trial = swapped;
}

static void try_devices(struct scratch *s, struct question *q, struct part *part, const struct facts *before,
                        uint32_t devices, struct option *best)
{
    score_copy(s->w, s->trial, s->base);
    for (uint32_t d = 0; devices >> d; d++)
        if (devices >> d & 1)
            score_take(s->w, s->trial, d, need_on(s, q, part, &s->trial->devices[d]));
    weigh_trial(s, before, devices, best);
}

/* One device: every different room is tried. */
static void try_each(struct scratch *s, struct question *q, struct part *part, const struct facts *before,
                     uint32_t takable, struct option *best)
{
    const struct room *rooms = s->base->devices;

    for (uint32_t d = 0; takable >> d; d++) {
        bool seen = false;

        for (uint32_t e = 0; e < d && !seen; e++)
            seen = (takable >> e & 1) && rooms[e].left == rooms[d].left && rooms[e].selections == rooms[d].selections &&
                   rooms[e].total == rooms[d].total;
        if (!seen && (takable >> d & 1))
            try_devices(s, q, part, before, BIT(d), best);
    }
}

/* Several: those with the least room. */
static uint32_t least_of(const struct facts *facts, uint32_t takable, uint32_t count)
{
    uint32_t chosen = 0;

    while (count-- > 0) {
        uint32_t least = SCORE_MAX_DEVICES;

        for (uint32_t d = 0; takable >> d; d++)
            if ((takable & ~chosen) >> d & 1 &&
                (least == SCORE_MAX_DEVICES || facts->devices[d].left < facts->devices[least].left))
                least = d;
        if (least == SCORE_MAX_DEVICES)
            return 0;
        chosen |= BIT(least);
    }
    return chosen;
}

/* ---- one member ---- */

/* Give the part its devices in s->base. */
static void place_part(struct scratch *s, struct question *q, size_t p, const struct node *node,
                       const struct facts *before, struct step *step)
{
    struct part *part = &q->parts[p];
    struct option best = {0};
    struct facts *swapped = s->base;
    uint32_t takable, several;

    step->is_simple = find_takable(s, q, part, node, s->base, &takable);
    step->fits = false;
    if (!step->is_simple)
        return;
    if (part->count == 1)
        try_each(s, q, part, before, takable, &best);
    else if ((several = least_of(s->base, takable, part->count)))
        try_devices(s, q, part, before, several, &best);
    if (!best.is_any)
        return;
    step->fits = true;
    step->devices[p] = best.devices;
    step->increase = best.increase;
    step->left = best.left;
    s->base = s->best;
    s->best = swapped;
}

struct step score_step(struct scratch *s, struct question *q, const struct node *node, const struct facts *facts)
{
    struct step step = {.is_simple = facts->is_simple};
    struct option only = {0};

    if (facts->cpu < q->cpu || facts->memory < q->memory || facts->pods < 1 || !step.is_simple)
        return step;
    score_copy(s->w, s->base, facts);
    s->base->cpu -= q->cpu;
    s->base->memory -= q->memory;
    s->base->pods--;
    step.fits = true;
    for (size_t p = 0; p < q->n_parts && step.fits; p++)
        place_part(s, q, p, node, facts, &step);
    if (q->n_parts > 0)
        return step;
    score_copy(s->w, s->trial, s->base);
    weigh_trial(s, facts, 0, &only);
    step.increase = only.increase;
    step.left = only.left;
    score_copy(s->w, s->base, s->best);
    return step;
}

void score_apply(struct scratch *s, struct question *q, const struct step *step, struct facts *facts)
{
    facts->cpu -= q->cpu;
    facts->memory -= q->memory;
    facts->pods--;
    for (size_t p = 0; p < q->n_parts; p++)
        for (uint32_t d = 0; step->devices[p] >> d; d++)
            if (step->devices[p] >> d & 1)
                score_take(s->w, facts, d, need_on(s, q, &q->parts[p], &facts->devices[d]));
    facts->fragments = score_fragments(s->w, s->weights, facts);
}
