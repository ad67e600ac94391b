/* Cells. Whatever shares a counter set, or an attribute value that a constraint looks at, influences each other and
 * lies in one cell. A cell's signature says all that matters of it with its own numbering of values, so that the eight
 * GPUs of a node are eight equal cells although each has another PCIe root. */
#include "allocator/gang_builder.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/bitset.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

/* ---- cells ---- */

static size_t root_of(size_t *parent, size_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Whether the device can influence another one at all. */
static bool is_bound(const struct builder *b, const struct gang_device *device)
{
    bool bound = device->device->n_consumes > 0;

    for (size_t a = 0; a < b->gang->n_attributes && !bound; a++)
        bound = b->claim_attributes[a] && device->gs.values[a];
    return bound;
}

static bool share_counters(const struct gang_device *a, const struct gang_device *b)
{
    if (a->pool != b->pool)
        return false;
    for (size_t i = 0; i < a->device->n_consumes; i++)
        for (size_t j = 0; j < b->device->n_consumes; j++)
            if (strcmp(a->device->consumes[i].set, b->device->consumes[j].set) == 0)
                return true;
    return false;
}

static bool share_value(const struct builder *b, const struct gang_device *x, const struct gang_device *y)
{
    for (size_t a = 0; a < b->gang->n_attributes; a++) {
        const struct gs_value *v = x->gs.values[a], *w = y->gs.values[a];

        if (!b->claim_attributes[a] || !v || !w)
            continue;
        for (uint32_t i = 0; i < v->n; i++)
            for (uint32_t j = 0; j < w->n; j++)
                if (v->elements[i] == w->elements[j])
                    return true;
    }
    return false;
}

/* A cell's own numbers for the elements of its devices, in the order of their appearance. */
struct numbering {
    uint32_t *elements;
    size_t n, cap;
};

static uint64_t number_of(struct numbering *numbering, uint32_t element)
{
    for (size_t i = 0; i < numbering->n; i++)
        if (numbering->elements[i] == element)
            return i;
    mem_grow(numbering->elements, numbering->n, numbering->cap);
    numbering->elements[numbering->n] = element;
    return numbering->n++;
}

static struct gs_hash sign_values(const struct builder *b, const struct gang_device *device,
                                  struct numbering *numbering, struct gs_hash h)
{
    for (size_t a = 0; a < b->gang->n_attributes; a++) {
        const struct gs_value *value = device->gs.values[a];
        struct gs_hash sum = {0, 0};

        if (!b->claim_attributes[a] && !b->distinct_attributes[a])
            continue;
        h = gs_hash_mix(h, value ? value->n + 2 + value->odd : 1);
        for (uint32_t i = 0; value && i < value->n; i++) {
            uint32_t element = value->elements[i];
            bool raw = device->is_net || b->distinct_attributes[a] ||
                       (b->net_elements && bitset_has(b->net_elements, element));

            sum = gs_hash_add(sum, raw ? gs_hash_mix((struct gs_hash){7, 7}, element)
                                       : gs_hash_mix((struct gs_hash){8, 8}, number_of(numbering, element)));
        }
        h = gs_hash_mix(gs_hash_mix(h, sum.a), sum.b);
    }
    return h;
}

/* The cell's counters in one array of its own, so that its state is in one place; returns where a pointer went. */
static gs_amount *adopt_counter(struct gs_cell *cell, gs_amount **known, gs_amount *left, size_t *out_position)
{
    for (size_t i = 0; i < cell->n_counters; i++)
        if (known[i] == left) {
            *out_position = i;
            return &cell->counters[i];
        }
    known[cell->n_counters] = left;
    cell->counters[cell->n_counters] = *left;
    *out_position = cell->n_counters;
    return &cell->counters[cell->n_counters++];
}

static struct gs_hash sign_device(struct builder *b, struct gs_cell *cell, gs_amount **known,
                                  struct gang_device *device, struct numbering *numbering)
{
    struct gs_use *uses = arena_array(b->arena, struct gs_use, device->gs.n_counters);
    struct gs_hash h = device->signature;

    if (device->gs.likeness)
        h = gs_hash_mix(h, device->gs.likeness);
    h = gs_hash_mix(gs_hash_mix(h, device->gs.multi), device->gs.charged * 2u + device->gs.pins);
    for (size_t i = 0; i < device->gs.n_counters; i++) {
        size_t position;

        uses[i].amount = device->gs.counters[i].amount;
        uses[i].left = adopt_counter(cell, known, device->gs.counters[i].left, &position);
        h = gs_hash_mix(gs_hash_mix(gs_hash_mix(h, position), (uint64_t)uses[i].amount),
                        (uint64_t)(uses[i].amount >> 64));
    }
    device->gs.counters = uses;
    return sign_values(b, device, numbering, h);
}

static size_t n_uses_of(struct gang_device *const *devices, size_t n)
{
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += devices[i]->gs.n_counters;
    return total;
}

/* One cell of the given devices. Twins are devices with equal signatures. */
static void fill_cell(struct builder *b, struct gs_cell *cell, struct gang_device **devices, size_t n,
                      struct gs_node *node)
{
    struct numbering numbering = {0};
    struct gs_hash *signatures = arena_array(b->arena, struct gs_hash, n);
    gs_amount **known = arena_array(b->arena, gs_amount *, n_uses_of(devices, n));

    *cell = (struct gs_cell){.node = node, .n_devices = n, .signature = {n, 11}};
    cell->counters = arena_array(b->arena, gs_amount, n_uses_of(devices, n));
    cell->devices = arena_array(b->arena, struct gs_device *, n);
    for (size_t i = 0; i < n; i++) {
        size_t twin = 0;

        cell->devices[i] = &devices[i]->gs;
        devices[i]->gs.cell = cell;
        signatures[i] = sign_device(b, cell, known, devices[i], &numbering);
        while (!gs_hash_eq(signatures[twin], signatures[i]))
            twin++;
        devices[i]->gs.twin = (uint32_t)twin;
        cell->signature = gs_hash_mix(gs_hash_mix(cell->signature, signatures[i].a), signatures[i].b);
        if (devices[i]->is_net)
            cell->signature = gs_hash_mix(
                cell->signature, gs_hash_of(devices[i]->gs.reach, bitset_words(b->n_nodes) * sizeof(uint64_t), 1).a);
    }
    free(numbering.elements);
}

/* Split devices into cells. */
static struct gs_cell *make_cells(struct builder *b, struct gang_device **devices, size_t n, struct gs_node *node,
                                  size_t *out_n)
{
    size_t *parent = arena_array(b->arena, size_t, n);
    struct gang_device **group = arena_array(b->arena, struct gang_device *, n);
    struct gs_cell *cells;
    size_t n_cells = 0;

    for (size_t i = 0; i < n; i++) {
        parent[i] = i;
        for (size_t j = 0; j < i && is_bound(b, devices[i]); j++)
            if (share_counters(devices[i], devices[j]) || share_value(b, devices[i], devices[j]))
                parent[root_of(parent, i)] = root_of(parent, j);
    }
    for (size_t i = 0; i < n; i++)
        n_cells += root_of(parent, i) == i;
    cells = arena_array(b->arena, struct gs_cell, n_cells);
    n_cells = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size = 0;

        if (root_of(parent, i) != i)
            continue;
        for (size_t j = 0; j < n; j++)
            if (root_of(parent, j) == i)
                group[size++] = devices[j];
        fill_cell(b, &cells[n_cells++], group, size, node);
    }
    *out_n = n_cells;
    return cells;
}

/* ---- the network ---- */

static void fill_reach(struct builder *b)
{
    for (size_t d = 0; d < b->devices.n; d++) {
        struct gang_device *device = b->devices.items[d];
        uint64_t *reach = arena_array(b->arena, uint64_t, bitset_words(b->n_nodes));

        for (size_t n = 0; n < b->n_nodes; n++)
            if (gang_device_reaches(device->slice, device->device, gang_node_of(b->nodes[n])->node->info))
                bitset_put(reach, n);
        device->gs.reach = reach;
        device->signature = gs_hash_mix((struct gs_hash){13, 13}, device->gs.id);
    }
}

static void find_net_elements(struct builder *b)
{
    b->net_elements = arena_array(b->arena, uint64_t, bitset_words(b->gang->elements.n + 1));
    for (size_t d = 0; d < b->devices.n; d++)
        for (size_t a = 0; a < b->gang->n_attributes; a++) {
            const struct gs_value *value = b->devices.items[d]->gs.values[a];

            for (uint32_t e = 0; value && e < value->n; e++)
                bitset_put(b->net_elements, value->elements[e]);
        }
}

/* ---- groups ---- */

static void mark_attributes(struct builder *b)
{
    const struct gang *gang = b->gang;

    b->claim_attributes = arena_array(b->arena, bool, gang->n_attributes);
    b->distinct_attributes = arena_array(b->arena, bool, gang->n_attributes);
    for (size_t u = 0; u < gang->n_units; u++)
        for (size_t v = 0; v < gang->units[u]->n_variants; v++)
            for (size_t c = 0; c < gang->units[u]->variants[v].n_claims; c++) {
                const struct gs_claim *claim = &gang->units[u]->variants[v].claims[c];

                for (size_t i = 0; i < claim->n_constraints; i++)
                    b->claim_attributes[claim->constraints[i].attribute] = true;
            }
}

static void fill_distinct(struct builder *b)
{
    const struct gang_spec *spec = b->gang->spec;
    uint32_t *attributes = arena_array(b->arena, uint32_t, spec->n_constraints);

    for (size_t i = 0; i < spec->n_constraints; i++)
        if (spec->constraints[i].kind == GANG_DISTINCT_ATTRIBUTE) {
            attributes[b->problem->n_distinct++] = b->gang->constraint_attribute[i];
            b->distinct_attributes[b->gang->constraint_attribute[i]] = true;
        }
    b->problem->distinct_attributes = attributes;
}

static void fill_groups(struct builder *b)
{
    struct gs_group *groups = arena_array(b->arena, struct gs_group, b->gang->n_kinds);

    for (size_t k = 0; k < b->gang->n_kinds; k++) {
        const struct gang_kind *kind = &b->gang->kinds[k];
        struct gs_form *forms = arena_array(b->arena, struct gs_form, GANG_MAX_FORMS);

        for (size_t f = 0; f < GANG_MAX_FORMS; f++) {
            const struct gang_unit *unit = kind->forms[f];
            size_t only = b->choice->alternatives ? b->choice->alternatives[k] : SIZE_MAX;

            if (!unit)
                continue;
            forms[f].demand = kind->demand[f];
            forms[f].variants = only == SIZE_MAX ? unit->variants : unit->variants + only;
            forms[f].n_variants = only == SIZE_MAX ? unit->n_variants : only < unit->n_variants;
        }
        groups[k] = (struct gs_group){.forms = forms,
                                      .ports = gang_kind_ports(b->gang, kind, false),
                                      .port_clashes = gang_kind_ports(b->gang, kind, true),
                                      .shared = kind->shared};
    }
    b->problem->groups = groups;
    b->problem->n_groups = b->gang->n_kinds;
}

static void fill_shared(struct builder *b)
{
    struct gs_shared *shared = arena_array(b->arena, struct gs_shared, b->gang->n_shared);

    for (size_t s = 0; s < b->gang->n_shared; s++)
        shared[s] = (struct gs_shared){b->gang->shared[s].unit->variants, b->gang->shared[s].unit->n_variants};
    b->problem->shared = shared;
    b->problem->n_shared = b->gang->n_shared;
}

/* ---- which devices are tried first ---- */

/* What is left of a cell that has been broken up; of a whole one, more than that. The units are mixed, which is good
 * enough to tell more from less; of billionths sixteen bits are dropped, so that no sum of them has too many. */
static gs_amount rest_of(const struct gs_cell *cell)
{
    bool is_parted = false;
    gs_amount rest = 0;

    for (size_t d = 0; d < cell->n_devices; d++) {
        is_parted = is_parted || cell->devices[d]->parted;
        for (size_t i = 0; i < cell->devices[d]->n_left; i++)
            rest += cell->devices[d]->left[i] >> 16;
    }
    for (size_t i = 0; i < cell->n_counters; i++)
        rest += cell->counters[i] >> 16;
    return is_parted ? rest : (gs_amount)1 << 120;
}

static void sort_list(struct builder *b, const struct gs_list *list)
{
    struct arena_mark mark = arena_mark(b->arena);
    gs_amount *rests = arena_array(b->arena, gs_amount, list->n);
    struct gs_candidate *items = (struct gs_candidate *)(uintptr_t)list->items;

    for (size_t i = 0; i < list->n; i++) {
        struct gs_candidate moved = items[i];
        gs_amount rest = moved.device->cell ? rest_of(moved.device->cell) : (gs_amount)1 << 120;
        size_t at = i;

        for (; at > 0 && rests[at - 1] > rest; at--) {
            rests[at] = rests[at - 1];
            items[at] = items[at - 1];
        }
        rests[at] = rest;
        items[at] = moved;
    }
    arena_rewind(b->arena, mark);
}

/* So that nothing whole is broken up where something broken serves: devices of cells that are broken up already come
 * first, those with the least left in front. The search tries all in any case. */
static void sort_lists(struct builder *b, struct gs_node *node)
{
    bool is_parted = false;

    for (size_t c = 0; c < node->n_cells; c++)
        for (size_t d = 0; d < node->cells[c].n_devices && !is_parted; d++)
            is_parted = node->cells[c].devices[d]->parted;
    for (size_t a = 0; a < b->gang->n_asks && is_parted; a++)
        if (!b->gang->asks[a].all && node->lists[a].n > 1)
            sort_list(b, &node->lists[a]);
}

/* ---- the whole ---- */

static void make_node_cells(struct builder *b, size_t n)
{
    size_t n_devices = 0;

    while (b->node_devices[n][n_devices])
        n_devices++;
    b->nodes[n]->cells = make_cells(b, b->node_devices[n], n_devices, b->nodes[n], &b->nodes[n]->n_cells);
    if (b->gang->spec->score == GANG_SCORE_FRAGMENTATION)
        sort_lists(b, b->nodes[n]);
}

void builder_settle(struct builder *b)
{
    make_node_cells(b, b->n_nodes - 1);
    gs_prepare_node(b->problem, b->nodes[b->n_nodes - 1]);
    b->n_settled = b->n_nodes;
}

static void fill_cells(struct builder *b)
{
    fill_reach(b);
    find_net_elements(b);
    for (size_t n = b->n_settled; n < b->n_nodes; n++)
        make_node_cells(b, n);
    b->problem->net_cells = make_cells(b, b->devices.items, b->devices.n, NULL, &b->problem->n_net_cells);
}

static void fill_problem(struct builder *b)
{
    struct gs_problem *problem = b->problem;

    problem->nodes = arena_array(b->arena, struct gs_node *, b->n_nodes);
    if (b->n_nodes)
        memcpy(problem->nodes, b->nodes, b->n_nodes * sizeof(*problem->nodes));
    problem->n_nodes = b->n_nodes;
    problem->n_elements = b->gang->elements.n + 1;
    fill_groups(b);
    fill_shared(b);
    fill_distinct(b);
}

void builder_finish(struct builder *b)
{
    fill_problem(b);
    fill_cells(b);
    gs_prepare(b->problem);
}

void builder_init(struct builder *b, struct gang *gang, const struct gang_choice *choice)
{
    *b = (struct builder){.gang = gang, .choice = choice, .arena = &gang->work};
    b->problem = arena_new(b->arena, struct gs_problem);
    b->problem->n_resources = gang->n_resources;
    b->problem->n_asks = gang->n_asks;
    b->problem->n_attributes = gang->n_attributes;
    mark_attributes(b);
}

void builder_release(struct builder *b)
{
    free(b->devices.items);
    free(b->devices.slots);
    free(b->local);
    free(b->counters);
    free(b->own);
    free(b->nodes);
    free(b->node_devices);
}
