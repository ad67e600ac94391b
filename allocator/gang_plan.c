/* The choices around the search. What ties the whole gang to one value (an attribute that all devices must share, a
 * node label, one alternative for all members) is settled first, value by value, and the rest is decided under it:
 * exhaustive, and each part is smaller than the whole. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

struct plan {
    struct gang *gang;
    struct gang_choice choice;
    const char **labels;
    uint32_t *elements;
    size_t *alternatives;
    bool insists; /* on preferred constraints too */
    bool is_undecided;
    bool wants_placement;
    struct placement *placement;
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

static enum gs_outcome search_survey(struct gang *gang, const struct gang_choice *choice, struct gs_solution *out)
{
    const struct gang_survey *survey = gang_survey(gang, choice);

    if (!has_nodes(gang, survey))
        return GS_NONE;
    return gang_is_coupled(survey->problem) ? search_all(gang, survey, out) : gang_by_classes(gang, survey, out);
}

static bool decide(struct plan *plan)
{
    struct gang *gang = plan->gang;
    struct arena_mark mark = arena_mark(&gang->work);
    struct gs_solution solution = {0};
    enum gs_outcome outcome = GS_NONE;

    switch (gang_score_one(gang, &plan->choice, &solution)) {
    case GANG_SCORED:
        outcome = GS_FOUND;
        break;
    case GANG_SCORED_NONE:
        outcome = GS_NONE;
        break;
    case GANG_NOT_SCORED:
        outcome = search_survey(gang, &plan->choice, &solution);
        break;
    }
    if (outcome == GS_FOUND && plan->wants_placement)
        plan->placement = gang_place(gang, &solution);
    arena_rewind(&gang->work, mark);
    plan->is_undecided = plan->is_undecided || outcome == GS_BUDGET;
    return outcome == GS_FOUND;
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

enum gs_outcome gang_plan(struct gang *gang, bool wants_placement, struct placement **out)
{
    size_t n = gang->spec->n_constraints;
    struct plan plan = {.gang = gang, .wants_placement = wants_placement, .insists = has_preferences(gang->spec)};
    bool found;

    plan.labels = arena_array(&gang->work, const char *, n);
    plan.elements = arena_array(&gang->work, uint32_t, n);
    plan.alternatives = arena_array(&gang->work, size_t, gang->n_kinds);
    for (size_t i = 0; i < n; i++)
        plan.elements[i] = UINT32_MAX;
    plan.choice = (struct gang_choice){.labels = plan.labels,
                                       .elements = plan.elements,
                                       .alternatives = gang->spec->same_alternative ? plan.alternatives : NULL};
    found = settle(&plan, 0);
    if (!found && plan.insists) {
        plan.insists = false;
        found = settle(&plan, 0);
    }
    if (found) {
        if (out)
            *out = plan.placement;
        return GS_FOUND;
    }
    return plan.is_undecided || is_cut(gang) ? GS_BUDGET : GS_NONE;
}
