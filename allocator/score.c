/* The fragmentation score: members of a gang, placed one after the other where they add the least fragments.
 *
 * A node's fragments, for a typical pod, are the free shares of its devices that this pod could not use there: all of
 * them if the pod does not fit the node, else those that are too small or of the wrong kind, and in part (COPIES) those
 * that would still be free when the node is filled with such pods. Weighted over the workload this is the node's
 * fragmentation; a member goes to the node and devices where it adds the least to it. Between equal increases the
 * fullest node wins.
 *
 * A typical pod weighs as much as it is common, times how scarce the devices are that it selects: all shares that exist
 * by those that it could use. Else pods that take any device use up the few that others depend on.
 *
 * Source: the idea of fragmentation gradient descent (Weng et al., USENIX ATC 2023, section 3), written from the idea.
 * Departures: copies, scarcity, gangs.
 *
 * The score only ever chooses. What it knows of a node is exact for the members it takes on (plain requests, devices of
 * the node that share nothing), so that whatever it places is valid; whom it cannot place, the search of gang_plan.c
 * decides about - unless it is plain that all there is to try has been tried.
 *
 * It must be quick, because every waiting job asks it of every node. So what is known of a node (its facts: room on
 * each device, which selections of the workload match it, how many devices serve each typical shape) is kept per node
 * state, and the verdict for a question as well: after a placement one node is looked at anew. Within a gang the nodes
 * stand in a heap, and one that took a member is judged again on a copy of its facts. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_builder.h"
#include "allocator/gang_notes.h"
#include "allocator/score.h"

#include "allocator/base/banned.h"

#define MAX_PARTS   4    /* requests of a member */
#define MAX_MEMBERS 4096 /* of a gang that is scored */

/* ---- the question ---- */

/* One request of a member. */
struct part {
    const struct claim_ask *ask;
    uint32_t claim, request, number; /* number: of the ask in the shape */
    uint32_t selection, count;       /* SCORE_MAX_SELECTIONS: one that no typical pod makes */
    struct rounded {                 /* what the request takes of a capacity, by the capacity's hash */
        uint64_t hash;
        int64_t need; /* 0: nothing of such a device can be had; -1: not in whole thousandths */
    } rounded[4];
    size_t n_rounded; /* ever; the oldest is forgotten */
};

/* What members of one kind want of a node. */
struct question {
    const struct gang_kind *kind;
    const struct gang_unit *unit;
    struct part parts[MAX_PARTS];
    size_t n_parts;
    int64_t cpu, memory;
    struct gang_notes *verdicts;
};

/* What was found about a node for a member. */
struct verdict {
    struct digest state;
    bool fits, is_simple;
    float increase, left;        /* of fragments; what would be free on the node then, to tell equal ones apart */
    uint32_t devices[MAX_PARTS]; /* bits of the facts' devices */
};

struct site { /* a node that has got members */
    uint32_t rank;
    const struct node *node;
    struct facts *facts;     /* with them */
    struct gs_node *visited; /* NULL: not yet */
};

struct scoring {
    struct gang *gang;
    const struct gang_choice *choice;
    const struct gang_workload *w;
    float *weights;          /* of the typical pods, with scarcity */
    uint64_t weights_digest; /* never 0 */
    const uint32_t *slots;   /* of the nodes, sorted by name */
    struct digest *states;   /* of the nodes, in that order */
    size_t n_nodes;
    struct shape *shape; /* of the workload's selections */
    struct gang_notes *facts_notes, *supplies;
    /* scratch: of the node in work; with the member in work; with devices on trial; with the best of these */
    struct facts *facts, *base, *trial, *best;
    struct question *questions; /* per kind */
    struct site *sites;
    size_t n_sites;
    uint32_t *site_of; /* by rank of the node: number + 1 */
    struct spot {
        size_t site;
        const struct question *question;
        uint32_t devices[MAX_PARTS];
    } * spots; /* where members go */
    size_t n_spots;
    bool has_odd_nodes; /* that would admit a member and cannot be scored */
    bool has_shared;    /* of several devices for a request, some were left with room for another member */
};

static const struct node *node_at(const struct scoring *s, uint32_t rank)
{
    return snapshot_node(s->gang->snapshot, s->slots[rank]);
}

static void copy_facts(const struct scoring *s, struct facts *to, const struct facts *from)
{
    memcpy(to, from, score_facts_size(s->w));
}

/* ---- one request on one node ---- */

/* What the request takes of a device, after the rounding of its policy. */
static int64_t need_on(struct scoring *s, struct question *q, struct part *part, const struct room *room)
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
static bool select_anew(struct scoring *s, const struct question *q, const struct part *part, const struct node *node,
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
static bool find_takable(struct scoring *s, struct question *q, struct part *part, const struct node *node,
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
        if (need > 0 && room->left > 0 && room->left >= (need == SCORE_WHOLE ? room->total : need))
            *out |= BIT(d);
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
static void weigh_trial(struct scoring *s, const struct facts *before, uint32_t devices, struct option *best)
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

static void try_devices(struct scoring *s, struct question *q, struct part *part, const struct facts *before,
                        uint32_t devices, struct option *best)
{
    copy_facts(s, s->trial, s->base);
    for (uint32_t d = 0; devices >> d; d++) {
        int64_t need;

        if (!(devices >> d & 1))
            continue;
        need = need_on(s, q, part, &s->trial->devices[d]);
        score_take(s->w, s->trial, d, need);
        s->has_shared = s->has_shared || (part->count > 1 && s->trial->devices[d].left >= need);
    }
    weigh_trial(s, before, devices, best);
}

/* One device: every different room is tried. */
static void try_each(struct scoring *s, struct question *q, struct part *part, const struct facts *before,
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

/* ---- one member on one node ---- */

/* Give the part its devices in s->base. */
static void place_part(struct scoring *s, struct question *q, size_t p, const struct node *node,
                       const struct facts *before, struct verdict *verdict)
{
    struct part *part = &q->parts[p];
    struct option best = {0};
    struct facts *swapped = s->base;
    uint32_t takable, several;

    verdict->is_simple = find_takable(s, q, part, node, s->base, &takable);
    verdict->fits = false;
    if (!verdict->is_simple)
        return;
    if (part->count == 1)
        try_each(s, q, part, before, takable, &best);
    else if ((several = least_of(s->base, takable, part->count)))
        try_devices(s, q, part, before, several, &best);
    if (!best.is_any)
        return;
    verdict->fits = true;
    verdict->devices[p] = best.devices;
    verdict->increase = best.increase;
    verdict->left = best.left;
    s->base = s->best;
    s->best = swapped;
}

static bool admits(const struct scoring *s, const struct question *q, const struct node *node)
{
    return node_admits(&q->kind->rules, node->info).obstacle == NODE_ADMITS &&
           gang_label_admits(s->gang, s->choice, q->kind, node->info);
}

/* Judge a node that admits the kind; s->base is what it would be with the member. */
static struct verdict judge(struct scoring *s, struct question *q, const struct node *node, const struct facts *facts)
{
    struct verdict verdict = {.state = facts->state, .is_simple = facts->is_simple};
    struct option only = {0};

    if (facts->cpu < q->cpu || facts->memory < q->memory || facts->pods < 1 || !verdict.is_simple)
        return verdict;
    copy_facts(s, s->base, facts);
    s->base->cpu -= q->cpu;
    s->base->memory -= q->memory;
    s->base->pods--;
    verdict.fits = true;
    for (size_t p = 0; p < q->n_parts && verdict.fits; p++)
        place_part(s, q, p, node, facts, &verdict);
    if (q->n_parts > 0)
        return verdict;
    copy_facts(s, s->trial, s->base);
    weigh_trial(s, facts, 0, &only);
    verdict.increase = only.increase;
    verdict.left = only.left;
    copy_facts(s, s->base, s->best);
    return verdict;
}

/* ---- nodes ---- */

/* The node as it is, in s->facts. */
static void load_facts(struct scoring *s, const struct node *node, struct digest state)
{
    if (gang_notes_find(s->facts_notes, node->slot, state, s->facts))
        return;
    score_look(s->gang, s->w, s->shape, node, s->facts);
    gang_notes_put(s->facts_notes, node->slot, s->facts);
}

static void load_weighed_facts(struct scoring *s, const struct node *node, struct digest state)
{
    load_facts(s, node, state);
    if (s->facts->weights == s->weights_digest || !s->facts->is_simple)
        return;
    s->facts->fragments = score_fragments(s->w, s->weights, s->facts);
    s->facts->weights = s->weights_digest;
    gang_notes_put(s->facts_notes, node->slot, s->facts);
}

static struct verdict verdict_on(struct scoring *s, struct question *q, uint32_t rank)
{
    const struct node *node = node_at(s, rank);
    struct verdict verdict;

    if (s->site_of[rank]) {
        struct site *site = &s->sites[s->site_of[rank] - 1];

        return admits(s, q, node) ? judge(s, q, node, site->facts) : (struct verdict){.is_simple = true};
    }
    if (gang_notes_find(q->verdicts, node->slot, s->states[rank], &verdict))
        return verdict;
    verdict = (struct verdict){.state = s->states[rank], .is_simple = true};
    if (admits(s, q, node)) {
        load_weighed_facts(s, node, s->states[rank]);
        verdict = judge(s, q, node, s->facts);
    }
    gang_notes_put(q->verdicts, node->slot, &verdict);
    return verdict;
}

/* ---- scarcity ---- */

struct supply { /* devices of a node, in use or not */
    struct digest state;
    float by_selection[SCORE_MAX_SELECTIONS + 1]; /* all of them last */
};

static void find_supply(struct scoring *s, const struct node *node, struct supply *supply)
{
    load_facts(s, node, supply->state);
    for (uint32_t d = 0; d < s->facts->n_devices; d++) {
        for (size_t k = 0; k < s->w->n_selections; k++)
            supply->by_selection[k] += (float)(s->facts->devices[d].selections >> k & 1);
        supply->by_selection[SCORE_MAX_SELECTIONS]++;
    }
}

static void find_states(struct scoring *s)
{
    s->slots = snapshot_sorted_nodes(s->gang->snapshot, &s->n_nodes);
    s->states = arena_array(&s->gang->work, struct digest, s->n_nodes + 1);
    for (size_t i = 0; i < s->n_nodes; i++)
        s->states[i] = gang_node_state(s->gang->snapshot, snapshot_node(s->gang->snapshot, s->slots[i]));
}

/* Over all nodes; whole numbers, so that the order of adding does not matter. */
static void sum_supplies(struct scoring *s, struct supply *sum)
{
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct supply supply;

        if (!gang_notes_find(s->supplies, s->slots[i], s->states[i], &supply)) {
            supply = (struct supply){.state = s->states[i]};
            find_supply(s, snapshot_node(s->gang->snapshot, s->slots[i]), &supply);
            gang_notes_put(s->supplies, s->slots[i], &supply);
        }
        for (size_t k = 0; k < s->w->n_selections; k++)
            sum->by_selection[k] += supply.by_selection[k];
        sum->by_selection[SCORE_MAX_SELECTIONS] += supply.by_selection[SCORE_MAX_SELECTIONS];
    }
}

/* A pod whose devices do not exist weighs nothing: no room can be kept for it. */
static void weigh(struct scoring *s)
{
    struct supply sum = {0};
    struct digest digest = {31, 37};
    float before = 0, after = 0;

    sum_supplies(s, &sum);
    for (size_t p = 0; p < s->w->n_pods; p++) {
        const struct typical_pod *pod = &s->w->pods[p];
        float usable = pod->shape == UINT32_MAX ? 0 : sum.by_selection[s->w->shapes[pod->shape].selection];

        s->weights[p] = usable > 0 ? pod->weight * sum.by_selection[SCORE_MAX_SELECTIONS] / usable : 0;
        before += pod->shape == UINT32_MAX ? 0 : pod->weight;
        after += s->weights[p];
    }
    for (size_t p = 0; p < s->w->n_pods && after > 0; p++)
        s->weights[p] *= before / after;
    digest_text(&digest, (const char *)s->weights, s->w->n_pods * sizeof(*s->weights));
    s->weights_digest = digest.lo | 1;
}

/* ---- which jobs ---- */

static bool is_plain_pod(const struct pod_rules *rules)
{
    static const char *const known[] = {"cpu", "memory", "pods"};

    for (size_t i = 0; i < rules->demand.n_resources; i++) {
        bool is_known = false;

        for (size_t k = 0; k < ARRAY_SIZE(known); k++)
            is_known = is_known || strcmp(rules->demand.resources[i].name, known[k]) == 0;
        if (!is_known)
            return false;
    }
    return true;
}

static bool is_plain_job(const struct gang *gang)
{
    const struct gang_spec *spec = gang->spec;
    uint64_t n_members = 0;

    for (size_t i = 0; i < spec->n_constraints; i++)
        if (spec->constraints[i].kind != GANG_MATCH_NODE_LABEL)
            return false;
    for (size_t k = 0; k < gang->n_kinds; k++) {
        n_members += gang->kinds[k].n_members;
        if (gang->kinds[k].n_allocated > 0 || !is_plain_pod(&gang->kinds[k].rules))
            return false;
    }
    return spec->workload && spec->score == GANG_SCORE_FRAGMENTATION && n_members <= MAX_MEMBERS &&
           gang->n_shared == 0 && gang->n_ports == 0 && gang->n_mapped == 0 && spec->n_excluded == 0 && !gang->ledger &&
           !gang->lift;
}

static bool is_plain_request(const struct claim_request *request)
{
    const struct claim_ask *ask = request->asks;

    return !request->is_list && ask->mode == MODE_EXACT_COUNT && !ask->admin_access && ask->n_tolerations == 0 &&
           ask->n_capacity <= 1 && ask->n_derived == 0 && ask->count >= 1 && ask->count <= SCORE_MAX_DEVICES;
}

/* False: a member with more to it than the score understands. */
static bool read_question(const struct scoring *s, size_t kind, struct question *q)
{
    const struct gang_kind *of = &s->gang->kinds[kind];
    const struct gang_unit *unit = of->forms[0];

    *q = (struct question){
        .kind = of, .unit = unit, .cpu = score_demand(&of->rules, "cpu"), .memory = score_demand(&of->rules, "memory")};
    for (size_t c = 0; c < unit->n_claims; c++) {
        const struct claim *claim = unit->claims[c];

        if (claim->n_constraints > 0)
            return false;
        for (size_t r = 0; r < claim->n_requests; r++) {
            const struct claim_ask *ask = claim->requests[r].asks;

            if (q->n_parts == MAX_PARTS || !is_plain_request(&claim->requests[r]))
                return false;
            q->parts[q->n_parts] = (struct part){.ask = ask,
                                                 .claim = (uint32_t)c,
                                                 .request = (uint32_t)r,
                                                 .number = (uint32_t)q->n_parts,
                                                 .selection = score_selection(s->w, ask),
                                                 .count = (uint32_t)ask->count};
            q->n_parts++;
        }
    }
    return true;
}

static struct digest question_digest(const struct scoring *s, const struct question *q)
{
    struct digest d = s->w->digest;

    digest_add(&d, s->weights_digest);
    digest_text(&d, q->kind->text, strlen(q->kind->text));
    digest_add(&d, q->unit->shape->question.lo);
    digest_add(&d, q->unit->shape->question.hi);
    for (size_t i = 0; i < s->gang->spec->n_constraints; i++) {
        const char *label = (q->kind->label_constraints >> i & 1) ? s->choice->labels[i] : NULL;

        digest_text(&d, label ? label : "", label ? strlen(label) + 1 : 0);
    }
    return d;
}

static struct digest supplies_digest(const struct gang_workload *w)
{
    struct digest d = w->shapes_digest;

    digest_add(&d, 41);
    return d;
}

/* ---- the heap of nodes: the one that adds the least on top ---- */

struct entry {
    float increase, left;
    uint32_t rank;
};

static bool is_before(const struct entry *a, const struct entry *b)
{
    return is_better(a->increase, a->left, b->increase, b->left) ||
           (a->increase <= b->increase && a->left <= b->left && a->rank < b->rank);
}

static void sink(struct entry *heap, size_t n, size_t at)
{
    struct entry moved = heap[at];

    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static struct entry *make_heap(struct scoring *s, struct question *q, size_t *out_n)
{
    struct entry *heap = arena_array(&s->gang->work, struct entry, s->n_nodes + 1);
    size_t n = 0;

    for (uint32_t rank = 0; rank < s->n_nodes; rank++) {
        struct verdict verdict = verdict_on(s, q, rank);

        s->has_odd_nodes = s->has_odd_nodes || !verdict.is_simple;
        if (verdict.fits)
            heap[n++] = (struct entry){verdict.increase, verdict.left, rank};
    }
    for (size_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
    *out_n = n;
    return heap;
}

/* ---- the members ---- */

static struct site *site_at(struct scoring *s, uint32_t rank)
{
    const struct node *node = node_at(s, rank);
    struct site *site;

    if (s->site_of[rank])
        return &s->sites[s->site_of[rank] - 1];
    site = &s->sites[s->n_sites++];
    load_weighed_facts(s, node, s->states[rank]);
    *site = (struct site){.rank = rank, .node = node, .facts = arena_alloc(&s->gang->work, score_facts_size(s->w), 16)};
    copy_facts(s, site->facts, s->facts);
    s->site_of[rank] = (uint32_t)s->n_sites;
    return site;
}

static bool place_members(struct scoring *s, struct question *q)
{
    size_t n;
    struct entry *heap = make_heap(s, q, &n);

    for (uint32_t i = 0; i < q->kind->n_members; i++) {
        struct spot *spot = &s->spots[s->n_spots++];
        struct site *site;
        struct verdict verdict;

        if (n == 0)
            return false;
        site = site_at(s, heap[0].rank);
        verdict = judge(s, q, site->node, site->facts);
        copy_facts(s, site->facts, s->base);
        *spot = (struct spot){.site = (size_t)(site - s->sites), .question = q};
        memcpy(spot->devices, verdict.devices, sizeof(spot->devices));
        verdict = judge(s, q, site->node, site->facts);
        heap[0] = verdict.fits ? (struct entry){verdict.increase, verdict.left, heap[0].rank} : heap[--n];
        sink(heap, n, 0);
    }
    return true;
}

/* ---- the placement in the words of the search ---- */

/* The node's candidates that are the chosen devices. */
static bool add_picks(const struct site *site, const struct spot *spot, size_t p, struct gs_placed *placed,
                      struct gs_pick *picks)
{
    const struct part *part = &spot->question->parts[p];
    const struct gs_list *list = &site->visited->lists[spot->question->unit->asks[part->number]];
    size_t before = placed->n_picks;

    for (size_t i = 0; i < list->n; i++) {
        const struct gang_device *device = gang_device_of(list->items[i].device);

        for (uint32_t d = 0; spot->devices[p] >> d; d++)
            if ((spot->devices[p] >> d & 1) && site->facts->devices[d].index == device->index &&
                site->facts->devices[d].pool == device->pool->slot)
                picks[placed->n_picks++] =
                    (struct gs_pick){.claim = part->claim, .request = part->request, .candidate = &list->items[i]};
    }
    return placed->n_picks - before == part->count;
}

static bool make_member(struct scoring *s, const struct spot *spot, struct gs_placed *placed)
{
    struct site *site = &s->sites[spot->site];
    const struct gang_spot at = {.slot = site->node->slot, .rank = site->rank};
    struct gs_pick *picks = arena_array(&s->gang->work, struct gs_pick, MAX_PARTS * SCORE_MAX_DEVICES);
    bool is_whole = true;

    if (!site->visited)
        site->visited = gang_visit(s->gang, s->choice, &at);
    if (!site->visited)
        return false;
    *placed = (struct gs_placed){.group = (uint32_t)(spot->question->kind - s->gang->kinds),
                                 .node = site->visited,
                                 .variant = &spot->question->unit->variants[0],
                                 .picks = picks};
    for (size_t p = 0; p < spot->question->n_parts && is_whole; p++)
        is_whole = add_picks(site, spot, p, placed, picks);
    return is_whole;
}

static bool make_solution(struct scoring *s, struct gs_solution *out)
{
    struct gs_placed *members = arena_array(&s->gang->work, struct gs_placed, s->n_spots);

    for (size_t i = 0; i < s->n_spots; i++)
        if (!make_member(s, &s->spots[i], &members[i]))
            return false;
    *out = (struct gs_solution){.members = members, .n_members = s->n_spots};
    return true;
}

/* ---- the whole ---- */

/* The kinds with the most devices first: those with few find room behind them. */
static void order_questions(const struct scoring *s, uint32_t *order)
{
    uint32_t devices[GANG_MAX_KINDS] = {0};

    for (uint32_t k = 0; k < s->gang->n_kinds; k++) {
        uint32_t at = k;

        for (size_t p = 0; p < s->questions[k].n_parts; p++)
            devices[k] += s->questions[k].parts[p].count;
        for (; at > 0 && devices[order[at - 1]] < devices[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
}

/* Whether the members of a kind that had all nodes to itself were dealt out until no node took another one: how many a
 * node takes does not depend on the choice of devices when each request is for one, or uses up those it gets. */
static bool is_proof(const struct scoring *s, const struct question *q)
{
    return q->n_parts <= 1 && !s->has_shared && !s->has_odd_nodes;
}

static enum gang_scored choose(struct scoring *s, struct gs_solution *out)
{
    uint32_t order[GANG_MAX_KINDS];

    order_questions(s, order);
    for (size_t k = 0; k < s->gang->n_kinds; k++)
        if (!place_members(s, &s->questions[order[k]]))
            return k == 0 && is_proof(s, &s->questions[order[0]]) ? GANG_SCORED_NONE : GANG_NOT_SCORED;
    return make_solution(s, out) ? GANG_SCORED : GANG_NOT_SCORED;
}

static void prepare(struct scoring *s)
{
    struct arena *arena = &s->gang->work;
    size_t size = score_facts_size(s->w), n_members = 0;

    s->facts = arena_alloc(arena, size, 16);
    s->base = arena_alloc(arena, size, 16);
    s->trial = arena_alloc(arena, size, 16);
    s->best = arena_alloc(arena, size, 16);
    s->weights = arena_array(arena, float, s->w->n_pods + 1);
    s->facts_notes = gang_notes_open(s->gang->snapshot, s->w->shapes_digest, size);
    s->supplies = gang_notes_open(s->gang->snapshot, supplies_digest(s->w), sizeof(struct supply));
    find_states(s);
    weigh(s);
    for (size_t k = 0; k < s->gang->n_kinds; k++) {
        struct question *q = &s->questions[k];

        q->verdicts = gang_notes_open(s->gang->snapshot, question_digest(s, q), sizeof(struct verdict));
        n_members += q->kind->n_members;
    }
    s->site_of = arena_array(arena, uint32_t, s->n_nodes + 1);
    s->sites = arena_array(arena, struct site, n_members);
    s->spots = arena_array(arena, struct spot, n_members + 1);
}

static void release(struct scoring *s)
{
    for (size_t k = 0; k < s->gang->n_kinds; k++)
        gang_notes_unref(s->questions[k].verdicts);
    gang_notes_unref(s->facts_notes);
    gang_notes_unref(s->supplies);
}

enum gang_scored gang_score_one(struct gang *gang, const struct gang_choice *choice, struct gs_solution *out)
{
    struct scoring s = {.gang = gang, .choice = choice, .w = gang->spec->workload};
    enum gang_scored scored = GANG_NOT_SCORED;

    if (!is_plain_job(gang))
        return GANG_NOT_SCORED;
    s.questions = arena_array(&gang->work, struct question, gang->n_kinds);
    for (size_t k = 0; k < gang->n_kinds; k++)
        if (!read_question(&s, k, &s.questions[k]))
            return GANG_NOT_SCORED;
    s.shape = shape_new(gang->snapshot, s.w->claims, s.w->n_claims);
    if (!shape_problem(s.shape)) {
        prepare(&s);
        scored = choose(&s, out);
        release(&s);
    }
    shape_free(s.shape);
    return scored;
}
