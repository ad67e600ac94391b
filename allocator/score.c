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

#define MAX_MEMBERS 4096 /* of a gang that is scored */
#define MAX_CHUNK   8    /* members that are looked ahead on one node */
#define MOST_ALIKE  1024 /* verdicts that are kept for nodes which look alike */

/* What was found about a node for members of a kind. */
struct verdict {
    struct digest state;
    bool is_simple;         /* the score knows what to do with it */
    uint8_t n_asked, n_fit; /* how many members were tried, one after the other; how many found room */
    float left;             /* what would be free with one of them, to tell equal ones apart */
    float least[MAX_CHUNK]; /* average increase per member, of so many members or fewer */
};

struct chain {           /* the next members on a node, looked ahead */
    struct facts *ahead; /* with all of them */
    struct step steps[MAX_CHUNK];
    uint32_t n;
    bool is_ended, is_simple;
};

struct site { /* a node that has got members */
    uint32_t rank;
    const struct node *node;
    struct facts *facts;             /* with them */
    const struct question *question; /* that the chain is for */
    struct chain chain;
    struct gs_node *visited; /* NULL: not yet */
};

struct scoring {
    struct gang *gang;
    const struct gang_choice *choice;
    const struct gang_workload *w;
    struct scratch scratch;
    uint64_t weights_digest;            /* of them and all that the fragments of a node depend on; never 0 */
    const uint32_t *slots;              /* of the nodes, sorted by name */
    struct digest *states, *likenesses; /* of the nodes, in that order */
    size_t n_nodes;
    struct shape *shape; /* of the workload's selections */
    struct gang_notes *facts_notes, *supplies;
    struct facts *facts;        /* of the node in work */
    struct chain chain;         /* of it */
    struct question *questions; /* per kind */
    struct alike {
        struct digest likeness;
        const struct question *question;
        struct verdict verdict;
    } * alike; /* of nodes that look alike, the last that was judged */
    struct site *sites;
    size_t n_sites;
    uint32_t *site_of; /* by rank of the node: number + 1 */
    struct spot {
        size_t site;
        const struct question *question;
        uint32_t devices[SCORE_MAX_PARTS];
    } * spots; /* where members go */
    size_t n_spots;
    bool has_odd_nodes; /* that would admit a member and cannot be scored */
};

static const struct node *node_at(const struct scoring *s, uint32_t rank)
{
    return snapshot_node(s->gang->snapshot, s->slots[rank]);
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
    s->facts->fragments = score_fragments(s->w, s->scratch.weights, s->facts);
    s->facts->weights = s->weights_digest;
    gang_notes_put(s->facts_notes, node->slot, s->facts);
}

static bool admits(const struct scoring *s, const struct question *q, const struct node *node)
{
    return node_admits(&q->kind->rules, node->info).obstacle == NODE_ADMITS &&
           gang_label_admits(s->gang, s->choice, q->kind, node->info);
}

/* ---- looking ahead ---- */

static void chain_begin(const struct scoring *s, struct chain *chain, const struct facts *facts)
{
    score_copy(s->w, chain->ahead, facts);
    chain->n = 0;
    chain->is_ended = false;
    chain->is_simple = facts->is_simple;
}

static void chain_extend(struct scoring *s, struct question *q, const struct node *node, struct chain *chain,
                         uint32_t limit)
{
    while (chain->n < limit && !chain->is_ended) {
        struct step step = score_step(&s->scratch, q, node, chain->ahead);

        chain->is_ended = !step.fits;
        chain->is_simple = chain->is_simple && step.is_simple;
        if (!step.fits)
            return;
        chain->steps[chain->n++] = step;
        score_copy(s->w, chain->ahead, s->scratch.base);
    }
}

static struct verdict verdict_of(const struct chain *chain, uint32_t limit)
{
    struct verdict verdict = {.is_simple = chain->is_simple, .n_asked = (uint8_t)limit};
    float sum = 0;

    if (!chain->is_simple)
        return verdict;
    verdict.n_fit = (uint8_t)(chain->n < limit ? chain->n : limit);
    verdict.left = chain->n ? chain->steps[0].left : 0;
    for (uint32_t i = 0; i < verdict.n_fit; i++) {
        sum += chain->steps[i].increase;
        verdict.least[i] = sum / (float)(i + 1);
        if (i > 0 && verdict.least[i - 1] < verdict.least[i])
            verdict.least[i] = verdict.least[i - 1];
    }
    return verdict;
}

static bool answers(const struct verdict *verdict, uint32_t limit)
{
    return verdict->n_asked >= limit || verdict->n_fit < verdict->n_asked;
}

/* Look at a node that has got no members yet. */
static struct verdict judge(struct scoring *s, struct question *q, uint32_t rank, uint32_t limit)
{
    const struct node *node = node_at(s, rank);
    struct digest likeness = s->likenesses[rank];
    struct alike *alike = &s->alike[likeness.lo % MOST_ALIKE];

    if (!admits(s, q, node))
        return (struct verdict){.is_simple = true, .n_asked = MAX_CHUNK};
    if (!q->is_anew && alike->question == q && digest_eq(alike->likeness, likeness) && answers(&alike->verdict, limit))
        return alike->verdict;
    load_weighed_facts(s, node, s->states[rank]);
    chain_begin(s, &s->chain, s->facts);
    chain_extend(s, q, node, &s->chain, limit);
    *alike = (struct alike){likeness, q, verdict_of(&s->chain, limit)};
    return alike->verdict;
}

static struct verdict verdict_on(struct scoring *s, struct question *q, uint32_t rank, uint32_t limit)
{
    struct verdict verdict;

    if (gang_notes_find(q->notes, s->slots[rank], s->states[rank], &verdict) && answers(&verdict, limit))
        return verdict;
    verdict = judge(s, q, rank, limit);
    verdict.state = s->states[rank];
    gang_notes_put(q->notes, s->slots[rank], &verdict);
    return verdict;
}

/* ---- nodes with members ---- */

static struct site *site_at(struct scoring *s, uint32_t rank)
{
    size_t size = score_facts_size(s->w);
    struct site *site;

    if (s->site_of[rank])
        return &s->sites[s->site_of[rank] - 1];
    site = &s->sites[s->n_sites++];
    *site = (struct site){.rank = rank, .node = node_at(s, rank), .facts = arena_alloc(&s->gang->work, size, 16)};
    site->chain.ahead = arena_alloc(&s->gang->work, size, 16);
    load_weighed_facts(s, site->node, s->states[rank]);
    score_copy(s->w, site->facts, s->facts);
    s->site_of[rank] = (uint32_t)s->n_sites;
    return site;
}

static struct verdict verdict_at(struct scoring *s, struct question *q, struct site *site, uint32_t limit)
{
    if (site->question != q) {
        if (!admits(s, q, site->node))
            return (struct verdict){.is_simple = true, .n_asked = MAX_CHUNK};
        chain_begin(s, &site->chain, site->facts);
        site->question = q;
    }
    chain_extend(s, q, site->node, &site->chain, limit);
    return verdict_of(&site->chain, limit);
}

/* The first member of the chain becomes real. */
static void take_first(struct scoring *s, struct question *q, struct site *site)
{
    struct chain *chain = &site->chain;
    struct spot *spot = &s->spots[s->n_spots++];

    *spot = (struct spot){.site = (size_t)(site - s->sites), .question = q};
    memcpy(spot->devices, chain->steps[0].devices, sizeof(spot->devices));
    score_apply(&s->scratch, q, &chain->steps[0], site->facts);
    chain->n--;
    memmove(chain->steps, chain->steps + 1, chain->n * sizeof(*chain->steps));
}

/* ---- scarcity ---- */

struct supply { /* devices of a node, in use or not */
    struct digest state, likeness;
    float by_selection[SCORE_MAX_SELECTIONS + 1]; /* all of them last */
};

static void find_supply(struct scoring *s, const struct node *node, struct supply *supply)
{
    load_facts(s, node, supply->state);
    supply->likeness = s->facts->likeness;
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
    s->likenesses = arena_array(&s->gang->work, struct digest, s->n_nodes + 1);
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
        s->likenesses[i] = supply.likeness;
        for (size_t k = 0; k < s->w->n_selections; k++)
            sum->by_selection[k] += supply.by_selection[k];
        sum->by_selection[SCORE_MAX_SELECTIONS] += supply.by_selection[SCORE_MAX_SELECTIONS];
    }
}

/* A pod whose devices do not exist weighs nothing: no room can be kept for it. */
static void weigh(struct scoring *s)
{
    struct supply sum = {0};
    struct digest digest = s->w->digest;
    float before = 0, after = 0;

    sum_supplies(s, &sum);
    for (size_t p = 0; p < s->w->n_pods; p++) {
        const struct typical_pod *pod = &s->w->pods[p];
        float usable = pod->shape == UINT32_MAX ? 0 : sum.by_selection[s->w->shapes[pod->shape].selection];

        s->scratch.weights[p] = usable > 0 ? pod->weight * sum.by_selection[SCORE_MAX_SELECTIONS] / usable : 0;
        before += pod->shape == UINT32_MAX ? 0 : pod->weight;
        after += s->scratch.weights[p];
    }
    for (size_t p = 0; p < s->w->n_pods && after > 0; p++)
        s->scratch.weights[p] *= before / after;
    digest_text(&digest, (const char *)s->scratch.weights, s->w->n_pods * sizeof(*s->scratch.weights));
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
    uint32_t rank, limit; /* limit: of members that were looked ahead */
};

static bool is_before(const struct entry *a, const struct entry *b)
{
    if (a->increase < b->increase || a->increase > b->increase)
        return a->increase < b->increase;
    if (a->left < b->left || a->left > b->left)
        return a->left < b->left;
    return a->rank < b->rank;
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

/* Whether a member fits there. */
static bool make_entry(struct scoring *s, struct question *q, uint32_t rank, uint32_t limit, struct entry *out)
{
    struct verdict verdict =
        s->site_of[rank] ? verdict_at(s, q, site_at(s, rank), limit) : verdict_on(s, q, rank, limit);
    uint32_t n = verdict.n_fit < limit ? verdict.n_fit : limit;

    s->has_odd_nodes = s->has_odd_nodes || !verdict.is_simple;
    if (n > 0)
        *out = (struct entry){verdict.least[n - 1], verdict.left, rank, limit};
    return n > 0;
}

static struct entry *make_heap(struct scoring *s, struct question *q, uint32_t limit, size_t *out_n)
{
    struct entry *heap = arena_array(&s->gang->work, struct entry, s->n_nodes + 1);
    size_t n = 0;

    for (uint32_t rank = 0; rank < s->n_nodes; rank++)
        n += make_entry(s, q, rank, limit, &heap[n]);
    for (size_t i = n / 2; i-- > 0;)
        sink(heap, n, i);
    *out_n = n;
    return heap;
}

/* Bring the top up to date for so many members. Fewer of them never make a node look better, so that whatever stays on
 * top is the best. */
static void refresh(struct scoring *s, struct question *q, uint32_t limit, struct entry *heap, size_t *n)
{
    while (*n > 0 && heap[0].limit != limit) {
        if (!make_entry(s, q, heap[0].rank, limit, &heap[0]))
            heap[0] = heap[--*n];
        sink(heap, *n, 0);
    }
}

/* ---- the members ---- */

static uint32_t chunk_of(uint32_t n_members)
{
    return n_members < MAX_CHUNK ? n_members : MAX_CHUNK;
}

static bool place_members(struct scoring *s, struct question *q)
{
    uint32_t left = q->kind->n_members;
    size_t n;
    struct entry *heap = make_heap(s, q, chunk_of(left), &n);

    for (; left > 0; left--) {
        struct site *site;

        refresh(s, q, chunk_of(left), heap, &n);
        if (n == 0)
            return false;
        site = site_at(s, heap[0].rank);
        (void)verdict_at(s, q, site, 1);
        take_first(s, q, site);
        heap[0].limit = 0; /* to be looked at anew */
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
    struct gs_pick *picks = arena_array(&s->gang->work, struct gs_pick, SCORE_MAX_PARTS * SCORE_MAX_DEVICES);
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
 * node takes does not depend on the choice of devices when the request is for one, or uses up those it gets. */
static bool is_proof(const struct scoring *s, const struct question *q)
{
    return q->n_parts <= 1 && !s->scratch.has_choice && !s->has_odd_nodes;
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
    s->chain.ahead = arena_alloc(arena, size, 16);
    s->scratch = (struct scratch){.gang = s->gang,
                                  .w = s->w,
                                  .weights = arena_array(arena, float, s->w->n_pods + 1),
                                  .base = arena_alloc(arena, size, 16),
                                  .trial = arena_alloc(arena, size, 16),
                                  .best = arena_alloc(arena, size, 16)};
    s->alike = arena_array(arena, struct alike, MOST_ALIKE);
    s->facts_notes = gang_notes_open(s->gang->snapshot, s->w->shapes_digest, size);
    s->supplies = gang_notes_open(s->gang->snapshot, supplies_digest(s->w), sizeof(struct supply));
    find_states(s);
    weigh(s);
    for (size_t k = 0; k < s->gang->n_kinds; k++) {
        struct question *q = &s->questions[k];

        q->notes = gang_notes_open(s->gang->snapshot, question_digest(s, q), sizeof(struct verdict));
        n_members += q->kind->n_members;
    }
    s->site_of = arena_array(arena, uint32_t, s->n_nodes + 1);
    s->sites = arena_array(arena, struct site, n_members);
    s->spots = arena_array(arena, struct spot, n_members + 1);
}

static void release(struct scoring *s)
{
    for (size_t k = 0; k < s->gang->n_kinds; k++)
        gang_notes_unref(s->questions[k].notes);
    gang_notes_unref(s->facts_notes);
    gang_notes_unref(s->supplies);
}

enum gang_scored gang_score_members(struct gang *gang, const struct gang_choice *choice, struct gs_solution *out)
{
    struct scoring s = {.gang = gang, .choice = choice, .w = gang->spec->workload};
    enum gang_scored scored = GANG_NOT_SCORED;

    if (!is_plain_job(gang))
        return GANG_NOT_SCORED;
    s.questions = arena_array(&gang->work, struct question, gang->n_kinds);
    for (size_t k = 0; k < gang->n_kinds; k++)
        if (!score_read_question(gang, s.w, k, &s.questions[k]))
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
