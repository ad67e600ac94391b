/* The choices around the search. What ties the whole gang to one value (an attribute that all devices must share, a
 * node label, one alternative for all members) is settled first, value by value, and the rest is decided under it:
 * exhaustive, and each part is smaller than the whole. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"
#include "allocator/base/compiler.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

#define MAX_UNSTEERED 16 /* choices whose placements cannot be steered, before one of them is taken all the same */
#define MAX_KEPT      32 /* placements that did not count */

struct plan {
    struct gang *gang;
    struct gang_choice choice;
    const char **labels;
    uint32_t *elements;
    size_t *alternatives;
    bool insists; /* on preferred constraints too */
    bool is_undecided;
    bool wants_placement;
    bool is_steered;                  /* a placement counts only when steering holds it */
    unsigned n_unsteered;             /* how many did not count */
    struct placement *placement;      /* NULL: the one that was found cannot be told or is wrong */
    struct placement *kept[MAX_KEPT]; /* those that did not count, in the order in which they were found */
    size_t n_kept;
};

/* ---- one choice ---- */

static size_t devices_of(const struct gs_group *group)
{
    const struct gs_form *form = &group->forms[0];
    size_t n = 0;

    for (size_t c = 0; form->n_variants && c < form->variants[0].n_claims; c++)
        for (size_t r = 0; r < form->variants[0].claims[c].n_requests; r++)
            n += form->variants[0].claims[c].requests[r].all ? 32 : form->variants[0].claims[c].requests[r].count;
    return n;
}

struct hardness {
    uint32_t kind;
    size_t devices, nodes;
};

static int compare_hardness(const void *a, const void *b)
{
    const struct hardness *x = a, *y = b;

    if (x->devices != y->devices)
        return x->devices > y->devices ? -1 : 1;
    if (x->nodes != y->nodes)
        return x->nodes < y->nodes ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

void gang_order_kinds(const struct gang *gang, const struct gang_survey *survey, uint32_t *out_order)
{
    struct hardness kinds[GANG_MAX_KINDS];

    for (size_t k = 0; k < gang->n_kinds; k++) {
        kinds[k] = (struct hardness){
            .kind = (uint32_t)k, .devices = devices_of(&survey->problem->groups[k]), .nodes = survey->kind_nodes[k]};
    }
    qsort(kinds, gang->n_kinds, sizeof(*kinds), compare_hardness);
    for (size_t k = 0; k < gang->n_kinds; k++)
        out_order[k] = kinds[k].kind;
}

static enum gs_outcome search_all(struct gang *gang, const struct gang_survey *survey, struct gs_solution *out)
{
    uint32_t counts[GANG_MAX_KINDS], order[GANG_MAX_KINDS];
    struct gs_memo *memo = gs_memo_new();
    enum gs_outcome outcome;

    for (size_t k = 0; k < gang->n_kinds; k++)
        counts[k] = gang->kinds[k].n_members;
    gang_order_kinds(gang, survey, order);
    outcome = gs_search(survey->problem, counts, order, gang->n_kinds, memo, &gang->steps, &gang->work, out);
    gs_memo_free(memo);
    return outcome;
}

uint32_t gang_most_alone(struct gang *gang, const struct gang_survey *survey, size_t kind)
{
    uint32_t counts[GANG_MAX_KINDS] = {0}, order[1] = {(uint32_t)kind}, low = 0, high = gang->kinds[kind].n_members + 1;
    struct gs_memo *memo;

    if (!gang_is_coupled(survey->problem))
        return gang_most_by_classes(gang, survey, kind);
    memo = gs_memo_new();
    while (high - low > 1) {
        struct gs_solution solution;
        struct arena_mark mark = arena_mark(&gang->work);

        counts[kind] = low + (high - low) / 2;
        if (gs_search(survey->problem, counts, order, 1, memo, &gang->steps, &gang->work, &solution) == GS_FOUND)
            low = counts[kind];
        else
            high = counts[kind];
        arena_rewind(&gang->work, mark);
    }
    gs_memo_free(memo);
    return low;
}

/* Every kind needs some node at all; this also spares the search where a name is misspelt. */
static bool has_nodes(const struct gang *gang, const struct gang_survey *survey)
{
    for (size_t k = 0; k < gang->n_kinds; k++)
        if (gang->kinds[k].n_members && survey->kind_nodes[k] == 0)
            return false;
    return true;
}

/* Begin with another node, so that another solution is found first. */
static void rotate(struct gs_problem *problem, size_t by, struct arena *arena)
{
    struct gs_node **nodes = arena_array(arena, struct gs_node *, problem->n_nodes);

    for (size_t i = 0; i < problem->n_nodes; i++)
        nodes[i] = problem->nodes[(i + by) % problem->n_nodes];
    problem->nodes = nodes;
}

static enum gs_outcome search_survey(struct gang *gang, const struct gang_choice *choice, struct gs_solution *out)
{
    const struct gang_survey *survey = gang_survey(gang, choice);

    if (!has_nodes(gang, survey))
        return GS_NONE;
    gang->is_coupled = gang_is_coupled(survey->problem);
    if (gang->first_node)
        rotate(survey->problem, gang->first_node, &gang->work);
    return gang->is_coupled ? search_all(gang, survey, out) : gang_by_classes(gang, survey, out);
}

/* Whether the solution will do: any, unless its placement has to be one that steering holds. */
static bool accept(struct plan *plan, const struct gs_solution *solution)
{
    if (!plan->wants_placement)
        return true;
    plan->placement = gang_place(plan->gang, solution);
    if (!plan->placement || !plan->is_steered)
        return true;
    switch (gang_check(plan->gang, &plan->placement)) {
    case GANG_STEERED:
        return true;
    case GANG_BIND_ONLY:
        break;
    case GANG_WRONG:
        plan->placement = NULL;
        return true;
    }
    if (plan->n_kept < MAX_KEPT)
        plan->kept[plan->n_kept++] = plan->placement;
    return false;
}

static enum gs_outcome find_one(struct plan *plan, struct gs_solution *out)
{
    switch (gang_score_members(plan->gang, &plan->choice, out)) {
    case GANG_SCORED:
        return GS_FOUND;
    case GANG_SCORED_NONE:
        return GS_NONE;
    case GANG_NOT_SCORED:
        break;
    }
    return search_survey(plan->gang, &plan->choice, out);
}

/* The best placement cannot be steered. Others can more easily: those that leave devices which look alike together,
 * those that put fewer members on a node, where less depends on their order, and where nodes are coupled just others.
 */
static bool decide_again(struct plan *plan)
{
    static const struct {
        bool divides_alike, spreads;
        size_t first_node;
    } ways[] = {{true, false, 0},  {false, true, 0}, {true, true, 0},   {false, false, 1}, {true, false, 1},
                {false, false, 2}, {true, false, 2}, {false, false, 3}, {true, false, 3}};
    struct gang *gang = plan->gang;
    bool found = false;

    for (size_t i = 0; i < ARRAY_SIZE(ways) && !found && gang->steps > 0; i++) {
        struct arena_mark mark = arena_mark(&gang->work);
        struct gs_solution solution = {0};

        if (ways[i].first_node && !gang->is_coupled)
            break; /* members would be dealt out as before */
        gang->divides_alike = ways[i].divides_alike;
        gang->spreads = ways[i].spreads;
        gang->first_node = ways[i].first_node;
        found = search_survey(gang, &plan->choice, &solution) == GS_FOUND && accept(plan, &solution);
        arena_rewind(&gang->work, mark);
    }
    gang->divides_alike = false;
    gang->spreads = false;
    gang->first_node = 0;
    return found;
}

/* Once too many placements were in vain, the first of them has to do. */
static bool decide(struct plan *plan)
{
    struct gang *gang = plan->gang;
    struct arena_mark mark = arena_mark(&gang->work);
    struct gs_solution solution = {0};
    enum gs_outcome outcome = find_one(plan, &solution);
    bool found = outcome == GS_FOUND && accept(plan, &solution);

    arena_rewind(&gang->work, mark);
    plan->is_undecided = plan->is_undecided || outcome == GS_BUDGET;
    if (outcome != GS_FOUND || found)
        return found;
    return decide_again(plan) || ++plan->n_unsteered == MAX_UNSTEERED;
}

/* ---- one alternative for all ---- */

static bool settle_alternatives(struct plan *plan, size_t kind)
{
    struct gang *gang = plan->gang;
    size_t most = 0;

    if (!gang->spec->same_alternative || kind == gang->n_kinds)
        return decide(plan);
    for (size_t f = 0; f < GANG_MAX_FORMS; f++)
        if (gang->kinds[kind].forms[f] && gang->kinds[kind].forms[f]->n_variants > most)
            most = gang->kinds[kind].forms[f]->n_variants;
    for (size_t v = 0; v < most; v++) {
        plan->alternatives[kind] = v;
        if (settle_alternatives(plan, kind + 1))
            return true;
    }
    return false;
}

/* ---- values ---- */

static bool settle(struct plan *plan, size_t constraint);

struct label_value {
    const char *value;
    size_t n_nodes;
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_label_values(const void *a, const void *b)
{
    const struct label_value *x = a, *y = b;

    if (x->n_nodes != y->n_nodes)
        return x->n_nodes > y->n_nodes ? -1 : 1;
    return strcmp(x->value, y->value);
}

/* The values of a label over all nodes, the most frequent first. */
static struct label_value *label_values(struct gang *gang, const char *key, size_t *out_n)
{
    const uint32_t *slots;
    size_t n_slots, n = 0, n_values = 0;
    const char **texts;
    struct label_value *values;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    texts = arena_array(&gang->work, const char *, n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const char *value = node_label(snapshot_node(gang->snapshot, slots[i])->info, key);

        if (value)
            texts[n++] = value;
    }
    if (n > 1)
        qsort(texts, n, sizeof(*texts), compare_texts);
    values = arena_array(&gang->work, struct label_value, n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(texts[i], texts[i - 1]) != 0)
            values[n_values++].value = texts[i];
        values[n_values - 1].n_nodes++;
    }
    if (n_values > 1)
        qsort(values, n_values, sizeof(*values), compare_label_values);
    *out_n = n_values;
    return values;
}

static bool settle_label(struct plan *plan, size_t constraint)
{
    size_t n;
    struct label_value *values = label_values(plan->gang, plan->gang->spec->constraints[constraint].key, &n);

    for (size_t i = 0; i < n; i++) {
        plan->labels[constraint] = values[i].value;
        if (settle(plan, constraint + 1))
            return true;
    }
    plan->labels[constraint] = NULL;
    return false;
}

struct element_count {
    uint32_t element;
    size_t n_devices;
};

static int compare_element_counts(const void *a, const void *b)
{
    const struct element_count *x = a, *y = b;

    if (x->n_devices != y->n_devices)
        return x->n_devices > y->n_devices ? -1 : 1;
    return x->element < y->element ? -1 : x->element > y->element;
}

static void count_elements(struct gang *gang, const struct pool *pool, const char *name, struct element_count **counts,
                           size_t *n, size_t *cap)
{
    for (size_t d = 0; d < pool->n_devices; d++) {
        struct arena_mark mark = arena_mark(&gang->work);
        const struct gs_value *value =
            gang_value(gang, attribute_find(pool->driver, pool->devices[d].device, name), &gang->work);

        for (uint32_t e = 0; value && e < value->n; e++) {
            size_t at = 0;

            while (at < *n && (*counts)[at].element != value->elements[e])
                at++;
            if (at == *n) {
                mem_grow(*counts, *n, *cap);
                (*counts)[(*n)++] = (struct element_count){.element = value->elements[e]};
            }
            (*counts)[at].n_devices++;
        }
        arena_rewind(&gang->work, mark);
    }
}

static bool settle_attribute(struct plan *plan, size_t constraint)
{
    struct gang *gang = plan->gang;
    struct element_count *counts = NULL;
    size_t n = 0, cap = 0;
    bool found = false;

    for (uint32_t slot = 0; slot < snapshot_pool_slots(gang->snapshot); slot++) {
        const struct pool *pool = snapshot_pool(gang->snapshot, slot);

        if (pool)
            count_elements(gang, pool, gang->spec->constraints[constraint].key, &counts, &n, &cap);
    }
    if (n > 1)
        qsort(counts, n, sizeof(*counts), compare_element_counts);
    for (size_t i = 0; i < n && !found; i++) {
        plan->elements[constraint] = counts[i].element;
        found = settle(plan, constraint + 1);
    }
    plan->elements[constraint] = UINT32_MAX;
    free(counts);
    return found;
}

/* Whether the constraint covers any request at all; one that covers none holds. */
static bool covers_something(const struct gang *gang, size_t constraint)
{
    for (size_t a = 0; a < gang->n_asks; a++)
        if (gang->asks[a].covered >> constraint & 1)
            return true;
    return false;
}

/* Settle the constraints of the spec from this one on. */
static bool settle(struct plan *plan, size_t constraint)
{
    const struct gang_spec *spec = plan->gang->spec;
    const struct gang_constraint *one = &spec->constraints[constraint];

    if (constraint == spec->n_constraints)
        return settle_alternatives(plan, 0);
    if (plan->gang->lift && plan->gang->lift->constraint == constraint)
        return settle(plan, constraint + 1);
    if (one->kind == GANG_MATCH_NODE_LABEL && (!one->preferred || plan->insists))
        return settle_label(plan, constraint);
    if (one->kind == GANG_MATCH_ATTRIBUTE && covers_something(plan->gang, constraint))
        return settle_attribute(plan, constraint);
    return settle(plan, constraint + 1);
}

/* ---- the whole ---- */

static bool has_preferences(const struct gang_spec *spec)
{
    for (size_t i = 0; i < spec->n_constraints; i++)
        if (spec->constraints[i].kind == GANG_MATCH_NODE_LABEL && spec->constraints[i].preferred)
            return true;
    return false;
}

static bool is_cut(const struct gang *gang)
{
    for (size_t u = 0; u < gang->n_units; u++)
        if (gang->units[u]->is_cut)
            return true;
    return false;
}

/* No placement holds whatever the order: the first that does in turns, else the first that was found. */
static struct placement *second_best(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_kept; i++)
        if (gang_hold_in_turns(plan->gang, &plan->kept[i]))
            return plan->kept[i];
    gang_bind_only(plan->kept[0]);
    return plan->kept[0];
}

enum gs_outcome gang_plan(struct gang *gang, bool wants_placement, struct placement **out)
{
    size_t n = gang->spec->n_constraints;
    struct plan plan = {.gang = gang, .wants_placement = wants_placement, .insists = has_preferences(gang->spec)};
    bool found;

    /* a replay knows neither of what is lifted nor of a state that is not the snapshot's */
    plan.is_steered = wants_placement && !gang->lift && !gang->ledger;
    plan.labels = arena_array(&gang->work, const char *, n);
    plan.elements = arena_array(&gang->work, uint32_t, n);
    plan.alternatives = arena_array(&gang->work, size_t, gang->n_kinds);
    for (size_t i = 0; i < n; i++)
        plan.elements[i] = UINT32_MAX;
    plan.choice = (struct gang_choice){.labels = plan.labels,
                                       .elements = plan.elements,
                                       .alternatives = gang->spec->same_alternative ? plan.alternatives : NULL};
    found = settle(&plan, 0);
    if (!found && plan.insists && plan.n_unsteered < MAX_UNSTEERED) {
        plan.insists = false;
        found = settle(&plan, 0);
    }
    if (plan.n_kept && (!found || plan.n_unsteered == MAX_UNSTEERED)) {
        plan.placement = second_best(&plan);
        found = true;
    }
    if (found) {
        if (out)
            *out = plan.placement;
        return GS_FOUND;
    }
    return plan.is_undecided || is_cut(gang) ? GS_BUDGET : GS_NONE;
}
