/* Which nodes have to be looked at.
 *
 * A node is looked at once per question and state; what class it was in is noted in the cache that all snapshots of a
 * builder share. The next plan looks at the first node of each class and knows the others by their notes, so that a
 * plan over ten thousand nodes costs ten thousand look-ups and the work for a few dozen nodes.
 *
 * Notes are only made where nothing couples nodes, and only of questions whose answer depends on the job, the classes
 * and the node alone: not while something is excluded, and not of nodes that a ledger of somebody else's making
 * touches. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"
#include "allocator/gang_builder.h"
#include "allocator/gang_notes.h"

#include "allocator/base/banned.h"

struct survey {
    struct builder b;
    struct gang_survey *out;
    struct gang_notes *notes; /* NULL: nothing is noted for this question */
    struct gang_spot *spots;
    size_t n_spots, cap_spots;
    struct gs_memo *classes; /* those that have a node in the problem */
    bool is_streaming;       /* nothing couples nodes as far as is known */
};

/* ---- the question ---- */

static void digest_word(struct digest *d, const char *text)
{
    digest_text(d, text ? text : "", text ? strlen(text) : 0);
    digest_add(d, 0);
}

static void digest_constraints(struct digest *d, const struct gang *gang, const struct gang_choice *choice)
{
    for (size_t i = 0; i < gang->spec->n_constraints; i++) {
        const struct gang_constraint *c = &gang->spec->constraints[i];
        uint32_t element = choice->elements ? choice->elements[i] : UINT32_MAX;

        digest_add(d, (uint64_t)c->kind);
        digest_word(d, c->key);
        for (size_t k = 0; k < c->n_groups; k++)
            digest_word(d, c->groups[k]);
        digest_add(d, c->n_requests);
        for (size_t k = 0; k < c->n_requests; k++)
            digest_word(d, c->requests[k]);
        digest_word(d, choice->labels ? choice->labels[i] : NULL);
        digest_add(d, element == UINT32_MAX ? 0 : gang->elements.items[element].hash);
    }
}

static void digest_lift(struct digest *d, const struct gang_lift *lift)
{
    if (!lift)
        return;
    digest_word(d, lift->attribute);
    digest_word(d, lift->selector);
    digest_word(d, lift->resource);
    digest_add(d, lift->constraint);
    digest_add(d, (uint64_t)lift->all_selectors | (uint64_t)lift->device_taints << 1 |
                      (uint64_t)lift->node_taints << 2 | (uint64_t)lift->node_selector << 3 |
                      (uint64_t)lift->node_affinity << 4 | (uint64_t)lift->node_name << 5 | (uint64_t)lift->ports << 6 |
                      (uint64_t)lift->counters << 7 | (uint64_t)lift->capacity << 8 | (uint64_t)lift->node_states << 9);
}

static void digest_unit(struct digest *d, const struct gang_unit *unit)
{
    digest_add(d, unit ? unit->shape->question.lo : 0);
    digest_add(d, unit ? unit->shape->question.hi : 0);
}

static struct digest question_of(const struct gang *gang, const struct gang_choice *choice)
{
    struct digest d = {17, 19};

    digest_add(&d, (uint64_t)gang->is_empty | (uint64_t)gang->divides_alike << 1);
    digest_constraints(&d, gang, choice);
    digest_lift(&d, gang->lift);
    for (size_t k = 0; k < gang->n_kinds; k++) {
        digest_word(&d, gang->kinds[k].text);
        digest_add(&d, gang->kinds[k].shared);
        digest_add(&d, choice->alternatives ? choice->alternatives[k] : SIZE_MAX);
        for (size_t f = 0; f < GANG_MAX_FORMS; f++)
            digest_unit(&d, gang->kinds[k].forms[f]);
    }
    for (size_t s = 0; s < gang->n_shared; s++)
        digest_unit(&d, gang->shared[s].unit);
    return d;
}

static bool can_note(const struct gang *gang)
{
    bool can = gang->spec->n_excluded == 0;

    for (size_t k = 0; k < gang->n_kinds; k++)
        can = can && gang->kinds[k].n_allocated == 0;
    return can;
}

/* ---- looking ---- */

static void count_kinds(struct gang_survey *out, uint64_t kinds)
{
    for (size_t k = 0; k < GANG_MAX_KINDS && kinds >> k; k++)
        out->kind_nodes[k] += kinds >> k & 1;
}

/* The notes, if they tell of the node in its present state. */
static struct gang_notes *notes_of(const struct survey *s, const struct node *node)
{
    const struct gang *gang = s->b.gang;

    return s->notes && gang->ledger && !gang->is_empty && ledger_touches(gang->ledger, node) ? NULL : s->notes;
}

/* Whether the node is known; if so it needs no look, unless it is the first of its class. */
static bool is_known(struct survey *s, const struct node *node, uint32_t rank)
{
    struct gang_notes *notes = notes_of(s, node);
    struct gang_note note;

    if (!notes || !gang_notes_find(notes, node->slot, gang_node_state(s->b.gang->snapshot, node), &note))
        return false;
    if (note.kinds == 0)
        return true;
    if (!gs_memo_has(s->classes, note.class)) {
        if (!s->is_streaming) /* else by look_at() */
            gs_memo_put(s->classes, note.class);
        return false;
    }
    mem_grow(s->spots, s->n_spots, s->cap_spots);
    s->spots[s->n_spots++] = (struct gang_spot){note.class, node->slot, rank};
    count_kinds(s->out, note.kinds);
    return true;
}

/* Look at a node; where nothing couples nodes, one that looks like an earlier one leaves only a spot behind. */
static void look_at(struct survey *s, const struct node *node, uint32_t rank)
{
    struct arena_mark mark = arena_mark(s->b.arena);
    struct gang_note note = {.state = gang_node_state(s->b.gang->snapshot, node)};
    struct gang_notes *notes = notes_of(s, node);
    const struct gs_node *added;

    if (!builder_add_node(&s->b, node, rank)) {
        if (notes)
            gang_notes_put(notes, node->slot, &note);
        if (s->b.devices.n == 0)
            arena_rewind(s->b.arena, mark);
        return;
    }
    added = s->b.nodes[s->b.n_nodes - 1];
    count_kinds(s->out, added->groups);
    if (!s->is_streaming || s->b.devices.n > 0)
        return;
    builder_settle(&s->b);
    note.class = added->hash;
    note.kinds = added->groups;
    if (notes)
        gang_notes_put(notes, node->slot, &note);
    if (!gs_memo_has(s->classes, note.class)) {
        gs_memo_put(s->classes, note.class);
        return;
    }
    mem_grow(s->spots, s->n_spots, s->cap_spots);
    s->spots[s->n_spots++] = (struct gang_spot){note.class, node->slot, rank};
    s->b.n_settled = --s->b.n_nodes;
    arena_rewind(s->b.arena, mark);
}

static void look_at_all(struct survey *s)
{
    const uint32_t *slots;
    size_t n_slots;

    slots = snapshot_sorted_nodes(s->b.gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(s->b.gang->snapshot, slots[i]);

        if (!is_known(s, node, (uint32_t)i))
            look_at(s, node, (uint32_t)i);
        if (s->is_streaming && s->b.devices.n > 0)
            return; /* coupled after all */
    }
}

/* Of nodes in equal state no more are needed than there are members. */
static void look_at_spots(struct survey *s)
{
    size_t most = 0;

    for (size_t k = 0; k < s->b.gang->n_kinds; k++)
        most += s->b.gang->kinds[k].n_members;
    for (size_t i = 0; i < s->n_spots; i++) {
        size_t before = 0;

        for (size_t k = 0; k < i && before < most; k++)
            before += gs_hash_eq(s->spots[k].class, s->spots[i].class);
        if (before < most)
            builder_add_node(&s->b, snapshot_node(s->b.gang->snapshot, s->spots[i].slot), s->spots[i].rank);
    }
    s->n_spots = 0;
}

static bool is_coupled_job(const struct gang *gang)
{
    for (size_t i = 0; i < gang->spec->n_constraints; i++)
        if (gang->spec->constraints[i].kind == GANG_DISTINCT_ATTRIBUTE)
            return true;
    return gang->n_shared > 0;
}

/* Begin (again) with nothing seen. */
static void survey_begin(struct survey *s, struct gang *gang, const struct gang_choice *choice)
{
    memset(s->out->kind_nodes, 0, sizeof(s->out->kind_nodes));
    s->n_spots = 0;
    gs_memo_free(s->classes);
    s->classes = gs_memo_new();
    builder_init(&s->b, gang, choice);
    look_at_all(s);
}

/* ---- what is remembered ---- */

static bool is_local(const struct gs_node *node, size_t n_asks)
{
    for (size_t a = 0; a < n_asks; a++)
        for (size_t i = 0; i < node->lists[a].n; i++)
            if (!node->lists[a].items[i].device->cell->node)
                return false;
    return true;
}

static void note_nodes(const struct survey *s)
{
    const struct gs_problem *problem = s->b.problem;

    for (size_t i = 0; i < problem->n_nodes && s->notes && !s->is_streaming && problem->n_distinct == 0; i++) {
        const struct gs_node *node = problem->nodes[i];
        struct gang_notes *notes = notes_of(s, gang_node_of(node)->node);
        struct gang_note note = {.state = gang_node_state(s->b.gang->snapshot, gang_node_of(node)->node),
                                 .class = node->hash,
                                 .kinds = node->groups};

        if (notes && is_local(node, problem->n_asks))
            gang_notes_put(notes, node->id, &note);
    }
}

/* ---- order ---- */

static int compare_rank(const void *a, const void *b)
{
    const struct gs_node *x = *(struct gs_node *const *)a, *y = *(struct gs_node *const *)b;

    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_class(const void *a, const void *b)
{
    const struct gs_node *x = *(struct gs_node *const *)a, *y = *(struct gs_node *const *)b;

    if (x->hash.a != y->hash.a)
        return x->hash.a < y->hash.a ? -1 : 1;
    if (x->hash.b != y->hash.b)
        return x->hash.b < y->hash.b ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Keep of each class as many nodes as there are members, and all in the order of names: the search must not see whether
 * a node was known before. */
static void trim(struct survey *s)
{
    struct gs_problem *problem = s->b.problem;
    size_t most = 0, run = 0, kept = 0;
    struct gs_hash class = {0, 0};

    for (size_t k = 0; k < s->b.gang->n_kinds; k++)
        most += s->b.gang->kinds[k].n_members;
    if (problem->n_nodes > 1)
        qsort(problem->nodes, problem->n_nodes, sizeof(struct gs_node *), compare_class);
    for (size_t i = 0; i < problem->n_nodes; i++) {
        run = i > 0 && gs_hash_eq(problem->nodes[i]->hash, class) ? run + 1 : 0;
        class = problem->nodes[i]->hash;
        if (run < most)
            problem->nodes[kept++] = problem->nodes[i];
    }
    problem->n_nodes = kept;
    if (kept > 1)
        qsort(problem->nodes, kept, sizeof(struct gs_node *), compare_rank);
}

/* ---- the whole ---- */

struct gang_survey *gang_survey(struct gang *gang, const struct gang_choice *choice)
{
    struct survey s = {.out = arena_new(&gang->work, struct gang_survey)};

    if (can_note(gang))
        s.notes = gang_notes_open(gang->snapshot, question_of(gang, choice), sizeof(struct gang_note));
    s.is_streaming = !is_coupled_job(gang);
    survey_begin(&s, gang, choice);
    if (s.is_streaming && s.b.devices.n > 0) {
        builder_release(&s.b);
        s.is_streaming = false;
        survey_begin(&s, gang, choice);
    }
    if (!s.is_streaming)
        look_at_spots(&s);
    builder_finish(&s.b);
    note_nodes(&s);
    if (gang_is_coupled(s.b.problem))
        trim(&s);
    s.out->problem = s.b.problem;
    s.out->choice = choice;
    s.out->spots = arena_array(&gang->work, struct gang_spot, s.n_spots);
    s.out->n_spots = s.n_spots;
    if (s.n_spots)
        memcpy((struct gang_spot *)(uintptr_t)s.out->spots, s.spots, s.n_spots * sizeof(*s.spots));
    builder_release(&s.b);
    gs_memo_free(s.classes);
    gang_notes_unref(s.notes);
    free(s.spots);
    return s.out;
}

struct gs_node *gang_visit(struct gang *gang, const struct gang_choice *choice, const struct gang_spot *spot)
{
    struct builder b;
    struct gs_node *node = NULL;

    builder_init(&b, gang, choice);
    if (builder_add_node(&b, snapshot_node(gang->snapshot, spot->slot), spot->rank)) {
        builder_finish(&b);
        node = b.problem->nodes[0];
    }
    builder_release(&b);
    return node;
}
