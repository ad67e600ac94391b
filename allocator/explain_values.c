/* Constraints in numbers: how many devices with one value (or with different ones) are needed, and how many are free.
 *
 * Of a claim's constraint the devices of one node count, as one member sees them; of the gang's, those of all nodes.
 * What is said of the most is an upper bound, because other rules may leave fewer: "at most". */
#include "allocator/explain.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define MAX_PARTS    32 /* requests of a claim */
#define NODES_NAMED  4
#define VALUES_NAMED 6
#define LABELS_TRIED 16
#define LABEL_BUDGET UINT64_C(200000)

/* The requests of a claim that a constraint covers. */
struct part {
    size_t request;   /* in the claim */
    const char *name; /* of the request */
    size_t need;
};
struct parts {
    struct part items[MAX_PARTS];
    size_t n, need; /* need: of all parts */
};

/* Free devices with one value. */
struct value_count {
    uint32_t element;
    size_t all, of[MAX_PARTS]; /* devices that some part could take; and each */
};
struct value_table {
    struct value_count *items;
    size_t n, cap;
    size_t missing; /* devices without the attribute */
};

/* What never fits is told of the empty cluster, where nothing is "free" because all is. */
static const char *are_free(const struct gang *gang, size_t n)
{
    if (gang->is_empty)
        return n == 1 ? "exists" : "exist";
    return n == 1 ? "is free" : "are free";
}

/* ---- which requests ---- */

static void add_part(struct parts *parts, size_t request, const struct claim_request *asked, size_t times)
{
    int64_t count = asked->asks[0].count;

    if (asked->asks[0].mode != MODE_EXACT_COUNT || count < 1 || count > 1000000)
        return;
    if (parts->n < MAX_PARTS)
        parts->items[parts->n++] = (struct part){request, asked->name, (size_t)count * times};
    parts->need += (size_t)count * times;
}

static bool covers(const struct claim_constraint *constraint, const char *request)
{
    size_t len = strlen(request);

    for (size_t i = 0; i < constraint->n_requests; i++)
        if (strncmp(constraint->requests[i], request, len) == 0 &&
            (constraint->requests[i][len] == '\0' || constraint->requests[i][len] == '/'))
            return true;
    return constraint->n_requests == 0;
}

static struct parts parts_of(const struct claim *claim, const struct claim_constraint *constraint)
{
    struct parts parts = {.n = 0};

    for (size_t r = 0; r < claim->n_requests; r++)
        if (claim->requests[r].n_asks > 0 && covers(constraint, claim->requests[r].name))
            add_part(&parts, r, &claim->requests[r], 1);
    return parts;
}

/* ---- counting ---- */

static struct value_count *value_slot(struct value_table *table, uint32_t element)
{
    for (size_t i = 0; i < table->n; i++)
        if (table->items[i].element == element)
            return &table->items[i];
    mem_grow(table->items, table->n, table->cap);
    table->items[table->n] = (struct value_count){.element = element};
    return &table->items[table->n++];
}

/* The parts that could take the offer now, as bits. */
static uint32_t takers(struct gang *gang, const struct gang_unit *unit, size_t claim, const struct parts *parts,
                       const struct bench *bench, size_t offer)
{
    uint32_t bits = 0;

    for (size_t a = 0; a < shape_n_asks(unit->shape); a++) {
        const struct shape_ask *asked = shape_ask(unit->shape, a);
        const char *detail = NULL;

        if (asked->claim != claim)
            continue;
        for (size_t p = 0; p < parts->n; p++)
            if (parts->items[p].request == asked->request && !(bits >> p & 1) &&
                bench_selects(unit->shape, bench, offer, a, NULL) == SELECT_YES &&
                gang_device_state(gang, &gang->asks[unit->asks[a]], &bench->offers[offer], &detail) == DEVICE_FREE)
                bits |= (uint32_t)1 << p;
    }
    return bits;
}

static void count_value(struct gang *gang, struct value_table *table, const struct offer *offer, const char *attribute,
                        uint32_t bits)
{
    const struct gs_value *value =
        gang_value(gang, attribute_find(offer->slice->driver, offer->device, attribute), &gang->work);

    if (!value || value->n == 0)
        table->missing++;
    for (uint32_t e = 0; value && e < value->n; e++) {
        struct value_count *count = value_slot(table, value->elements[e]);

        count->all++;
        for (size_t p = 0; p < MAX_PARTS; p++)
            count->of[p] += bits >> p & 1;
    }
}

/* How many of the needed devices could have this value. */
static size_t usable(const struct parts *parts, const struct value_count *count)
{
    size_t sum = 0;

    for (size_t p = 0; p < parts->n; p++)
        sum += count->of[p] < parts->items[p].need ? count->of[p] : parts->items[p].need;
    return sum < count->all ? sum : count->all;
}

/* How many members one value could serve. */
static size_t members_of(const struct parts *parts, const struct value_count *count)
{
    size_t most = parts->need ? count->all / parts->need : 0;

    for (size_t p = 0; p < parts->n; p++)
        if (count->of[p] / parts->items[p].need < most)
            most = count->of[p] / parts->items[p].need;
    return most;
}

/* ---- claims ---- */

/* What a node has. */
struct site {
    const char *name;
    size_t best, rank;
    size_t counts[VALUES_NAMED + 1]; /* devices per value, the largest first; of distinct: the number of values */
    size_t n_counts;
};
struct sites {
    struct site *items;
    size_t n, cap;
    size_t best, members, missing;
};

static int larger_first(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static int better_site(const void *a, const void *b)
{
    const struct site *x = a, *y = b;

    if (x->best != y->best)
        return x->best < y->best ? 1 : -1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void add_site(struct sites *sites, const struct node *node, const struct parts *parts,
                     const struct value_table *table, bool distinct)
{
    struct site site = {.name = node->info->name, .rank = sites->n};
    size_t *counts = mem_array(size_t, table->n + 1);

    for (size_t i = 0; i < table->n; i++) {
        size_t here = distinct ? table->n : usable(parts, &table->items[i]);

        counts[i] = parts->n == 1 ? table->items[i].all : here;
        site.best = here > site.best ? here : site.best;
        sites->members += distinct ? 0 : members_of(parts, &table->items[i]);
    }
    qsort(counts, table->n, sizeof(*counts), larger_first);
    site.n_counts = table->n < VALUES_NAMED + 1 ? table->n : VALUES_NAMED + 1;
    for (size_t i = 0; i < site.n_counts; i++)
        site.counts[i] = counts[i];
    free(counts);
    if (distinct) {
        site.counts[0] = table->n;
        site.n_counts = table->n > 0;
        sites->members += parts->need ? table->n / parts->need : 0;
    }
    sites->missing += table->missing;
    sites->best = site.best > sites->best ? site.best : sites->best;
    if (site.n_counts == 0)
        return;
    mem_grow(sites->items, sites->n, sites->cap);
    sites->items[sites->n++] = site;
}

static bool admits_now(struct gang *gang, size_t kind, const struct node *node)
{
    return gang_node_finding(gang, &gang->kinds[kind], node).obstacle == NODE_ADMITS;
}

/* kind: SIZE_MAX for a shared claim, which any node may serve. */
static struct sites sites_of(struct gang *gang, size_t kind, const struct gang_unit *unit, size_t claim,
                             const struct parts *parts, const struct claim_constraint *constraint)
{
    struct sites sites = {0};
    const uint32_t *slots;
    size_t n_slots;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        struct arena_mark mark = arena_mark(&gang->work);
        struct value_table table = {0};
        const struct bench *bench;

        if (kind != SIZE_MAX && !admits_now(gang, kind, node))
            continue;
        bench = bench_make(unit->shape, gang->ledger, node, &gang->work);
        for (size_t o = 0; o < bench->n_offers; o++) {
            uint32_t bits = gang_device_reaches(bench->offers[o].slice, bench->offers[o].device, node->info)
                                ? takers(gang, unit, claim, parts, bench, o)
                                : 0;

            if (bits)
                count_value(gang, &table, &bench->offers[o], constraint->attribute, bits);
        }
        add_site(&sites, node, parts, &table, constraint->kind == CONSTRAINT_DISTINCT);
        free(table.items);
        arena_rewind(&gang->work, mark);
    }
    if (sites.n)
        qsort(sites.items, sites.n, sizeof(*sites.items), better_site);
    return sites;
}

/* " (a100-1: 3 + 3, a100-2: 3 + 3, and 4 more nodes)" */
static void add_sites(struct buf *text, const struct sites *sites)
{
    for (size_t i = 0; i < sites->n && i < NODES_NAMED; i++) {
        const struct site *site = &sites->items[i];

        buf_addf(text, "%s%s: ", i ? ", " : " (", site->name);
        for (size_t k = 0; k < site->n_counts && k < VALUES_NAMED; k++)
            buf_addf(text, "%s%zu", k ? " + " : "", site->counts[k]);
        buf_adds(text, site->n_counts > VALUES_NAMED ? " + ..." : "");
    }
    if (sites->n > NODES_NAMED)
        buf_addf(text, ", and %zu more nodes", sites->n - NODES_NAMED);
    buf_adds(text, sites->n ? ")" : "");
}

/* "4 devices" or "2 devices (1 gpu, 1 nic)" */
static void add_needed(struct buf *text, const struct parts *parts)
{
    buf_addf(text, "%zu %s", parts->need, parts->need == 1 ? "device" : "devices");
    for (size_t p = 0; p < parts->n && parts->n > 1; p++)
        buf_addf(text, "%s%zu %s%s", p ? ", " : " (", parts->items[p].need, parts->items[p].name,
                 p + 1 == parts->n ? ")" : "");
}

static void add_missing(const struct gang *gang, struct buf *text, size_t n)
{
    if (n > 0)
        buf_addf(text, ", and %zu %s%s no such attribute", n, gang->is_empty ? "" : "free ",
                 n == 1 ? "device has" : "devices have");
}

static const char *sites_words(struct gang *gang, const struct claim_constraint *constraint, const struct parts *parts,
                               const struct sites *sites, size_t n_members)
{
    bool distinct = constraint->kind == CONSTRAINT_DISTINCT;
    BUF text = {0};

    add_needed(&text, parts);
    buf_addf(&text, " with %s of %s are needed", distinct ? "different values" : "one value", constraint->attribute);
    if (n_members > 1)
        buf_addf(&text, " by each of %zu members", n_members);
    if (sites->best < parts->need && distinct)
        buf_addf(&text, ", at most %zu %s %s on one node", sites->best, sites->best == 1 ? "value" : "values",
                 are_free(gang, sites->best));
    else if (sites->best < parts->need)
        buf_addf(&text, ", at most %zu %s with one", sites->best, are_free(gang, sites->best));
    else if (sites->members < n_members)
        buf_addf(&text, ", those that %s serve %zu", are_free(gang, 2), sites->members);
    else
        buf_adds(&text, ", and there are enough, but not where the other rules can be met");
    add_sites(&text, sites);
    add_missing(gang, &text, sites->best < parts->need ? sites->missing : 0);
    return arena_strdup(gang->arena, buf_str(&text));
}

/* The constraint of a unit on the attribute, in words; *out_is_short: the numbers alone say that it cannot be met. */
static const char *unit_words(struct gang *gang, size_t kind, const struct gang_unit *unit, const char *attribute,
                              size_t n_members, bool *out_is_short)
{
    const char *words = NULL;

    for (size_t c = 0; c < unit->n_claims && !*out_is_short; c++)
        for (size_t i = 0; i < unit->claims[c]->n_constraints && !*out_is_short; i++) {
            const struct claim_constraint *constraint = &unit->claims[c]->constraints[i];
            struct parts parts;
            struct sites sites;

            if (!constraint->attribute || strcmp(constraint->attribute, attribute) != 0 || !unit->asks)
                continue;
            parts = parts_of(unit->claims[c], constraint);
            if (parts.need == 0)
                continue;
            sites = sites_of(gang, kind, unit, c, &parts, constraint);
            *out_is_short = sites.best < parts.need || sites.members < n_members;
            if (!words || *out_is_short)
                words = sites_words(gang, constraint, &parts, &sites, n_members);
            free(sites.items);
        }
    return words;
}

static const char *claim_words(struct gang *gang, const char *attribute)
{
    const char *words = NULL;
    bool is_short = false;

    for (size_t k = 0; k < gang->n_kinds && !is_short; k++)
        for (size_t f = 0; f < GANG_MAX_FORMS && !is_short; f++) {
            const struct gang_kind *kind = &gang->kinds[k];
            const char *more =
                kind->forms[f] ? unit_words(gang, k, kind->forms[f], attribute, kind->n_members, &is_short) : NULL;

            words = more && (!words || is_short) ? more : words;
        }
    for (size_t s = 0; s < gang->n_shared && !is_short; s++) {
        const char *more =
            gang->shared[s].unit ? unit_words(gang, SIZE_MAX, gang->shared[s].unit, attribute, 1, &is_short) : NULL;

        words = more && (!words || is_short) ? more : words;
    }
    return words;
}

const char *explain_claim_constraint(struct gang *gang, enum gang_verdict verdict, const char *attribute)
{
    struct ledger *empty = explain_empty(gang, verdict);
    const char *words = claim_words(gang, attribute);

    explain_restore(gang, empty);
    return words;
}

/* ---- the gang's constraints on attributes ---- */

struct gang_count {
    struct gang *gang;
    size_t constraint;
    struct parts parts; /* need only */
    struct value_table table;
    uint64_t **seen;
};

static bool is_covered(const struct gang_count *c, const struct gang_unit *unit, size_t ask)
{
    return unit->asks && (c->gang->asks[unit->asks[ask]].covered >> c->constraint & 1);
}

static void count_unit_need(struct gang_count *c, const struct gang_unit *unit, size_t times)
{
    for (size_t a = 0; a < shape_n_asks(unit->shape); a++) {
        const struct shape_ask *asked = shape_ask(unit->shape, a);

        if (is_covered(c, unit, a) && asked->alternative == 0)
            add_part(&c->parts, asked->request, &unit->claims[asked->claim]->requests[asked->request], times);
    }
}

static void count_bench(struct gang_count *c, const struct gang_unit *unit, const struct node *node)
{
    const struct bench *bench = bench_make(unit->shape, c->gang->ledger, node, &c->gang->work);
    const char *key = c->gang->spec->constraints[c->constraint].key, *detail = NULL;

    for (size_t o = 0; o < bench->n_offers; o++) {
        const struct offer *offer = &bench->offers[o];
        bool is_free = false;

        for (size_t a = 0; a < shape_n_asks(unit->shape) && !is_free; a++)
            is_free = is_covered(c, unit, a) && bench_selects(unit->shape, bench, o, a, NULL) == SELECT_YES &&
                      gang_device_state(c->gang, &c->gang->asks[unit->asks[a]], offer, &detail) == DEVICE_FREE;
        if (is_free && gang_device_reaches(offer->slice, offer->device, node->info) &&
            explain_mark(c->gang, c->seen, offer->view->pool, offer->index))
            count_value(c->gang, &c->table, offer, key, 1);
    }
}

static void count_gang(struct gang_count *c)
{
    struct gang *gang = c->gang;
    const uint32_t *slots;
    size_t n_slots;

    c->seen = arena_array(&gang->work, uint64_t *, snapshot_pool_slots(gang->snapshot));
    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t k = 0; k < gang->n_kinds; k++) {
        const struct gang_kind *kind = &gang->kinds[k];
        bool needs = true;

        for (size_t f = 0; f < GANG_MAX_FORMS; f++) {
            if (!kind->forms[f])
                continue;
            if (needs)
                count_unit_need(c, kind->forms[f], kind->n_members);
            needs = false;
            for (size_t i = 0; i < n_slots; i++)
                if (admits_now(gang, k, snapshot_node(gang->snapshot, slots[i])))
                    count_bench(c, kind->forms[f], snapshot_node(gang->snapshot, slots[i]));
        }
    }
    for (size_t s = 0; s < gang->n_shared; s++) {
        if (!gang->shared[s].unit)
            continue;
        count_unit_need(c, gang->shared[s].unit, 1);
        for (size_t i = 0; i < n_slots; i++)
            count_bench(c, gang->shared[s].unit, snapshot_node(gang->snapshot, slots[i]));
    }
}

static int more_devices(const void *a, const void *b)
{
    const struct value_count *x = a, *y = b;

    if (x->all != y->all)
        return x->all < y->all ? 1 : -1;
    return (x->element > y->element) - (x->element < y->element);
}

static void add_element(const struct gang *gang, struct buf *text, uint32_t element)
{
    const struct gang_element *value = &gang->elements.items[element];

    if (value->kind == CEL_ATTR_BOOL)
        buf_adds(text, value->number ? "true" : "false");
    else if (value->kind == CEL_ATTR_INT)
        buf_addf(text, "%lld", (long long)value->number);
    else
        buf_add(text, value->text.ptr, value->text.len);
}

static void add_values(struct buf *text, const struct gang_count *c)
{
    for (size_t i = 0; i < c->table.n && i < VALUES_NAMED; i++) {
        buf_adds(text, i ? ", " : " (");
        add_element(c->gang, text, c->table.items[i].element);
        buf_addf(text, ": %zu", c->table.items[i].all);
    }
    if (c->table.n > VALUES_NAMED)
        buf_addf(text, ", and %zu more values", c->table.n - VALUES_NAMED);
    buf_adds(text, c->table.n ? ")" : "");
}

static const char *attribute_words(struct gang *gang, size_t constraint)
{
    struct gang_count c = {.gang = gang, .constraint = constraint};
    bool distinct = gang->spec->constraints[constraint].kind == GANG_DISTINCT_ATTRIBUTE;
    size_t best = 0;
    BUF text = {0};

    count_gang(&c);
    if (c.parts.need == 0) {
        free(c.table.items);
        return NULL;
    }
    if (c.table.n)
        qsort(c.table.items, c.table.n, sizeof(*c.table.items), more_devices);
    best = distinct ? c.table.n : c.table.n ? c.table.items[0].all : 0;
    buf_addf(&text, "%zu %s with %s of %s are needed for the whole gang, ", c.parts.need,
             c.parts.need == 1 ? "device" : "devices", distinct ? "different values" : "one value",
             gang->spec->constraints[constraint].key);
    if (best >= c.parts.need)
        buf_adds(&text, "and there are enough, but not where the other rules can be met");
    else
        buf_addf(&text, distinct ? "only %zu %s%s" : "at most %zu %s%s with one", best,
                 !distinct   ? ""
                 : best == 1 ? "value "
                             : "values ",
                 are_free(gang, best));
    add_values(&text, &c);
    add_missing(gang, &text, best < c.parts.need ? c.table.missing : 0);
    free(c.table.items);
    return arena_strdup(gang->arena, buf_str(&text));
}

/* ---- the gang's constraints on labels of nodes ---- */

/* How many of the covered members fit on nodes with this value. */
static size_t members_with(struct gang *gang, size_t constraint, const char *value)
{
    const char **labels = arena_array(&gang->work, const char *, gang->spec->n_constraints);
    struct gang_choice choice = {.labels = labels};
    struct gang_survey *survey;
    size_t n = 0;

    labels[constraint] = value;
    survey = gang_survey(gang, &choice);
    for (size_t k = 0; k < gang->n_kinds; k++)
        if (gang->kinds[k].label_constraints >> constraint & 1) {
            gang->steps = LABEL_BUDGET;
            n += gang_most_alone(gang, survey, k);
        }
    return n;
}

static size_t label_values(const struct gang *gang, const char *key, const char **out)
{
    const uint32_t *slots;
    size_t n_slots, n = 0;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; i < n_slots && n < LABELS_TRIED; i++) {
        const char *value = node_label(snapshot_node(gang->snapshot, slots[i])->info, key);
        bool known = !value;

        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(out[k], value) == 0;
        if (!known)
            out[n++] = value;
    }
    return n;
}

static const char *label_words(struct gang *gang, size_t constraint)
{
    const char *key = gang->spec->constraints[constraint].key, *values[LABELS_TRIED];
    size_t n = label_values(gang, key, values), best = 0, n_members = 0;
    BUF list = {0};

    for (size_t k = 0; k < gang->n_kinds; k++)
        n_members += gang->kinds[k].label_constraints >> constraint & 1 ? gang->kinds[k].n_members : 0;
    for (size_t i = 0; i < n; i++) {
        struct arena_mark mark = arena_mark(&gang->work);
        size_t here = members_with(gang, constraint, values[i]);

        arena_rewind(&gang->work, mark);
        best = here > best ? here : best;
        buf_addf(&list, "%s%s: %zu", i ? ", " : " (", values[i], here);
    }
    if (n == 0)
        return arena_printf(gang->arena, "no node has the label %s, of which all members need one value", key);
    return arena_printf(gang->arena,
                        "%zu members need nodes with one value of %s, at most %zu %s a place with one%s%s)", n_members,
                        key, best, best == 1 ? "finds" : "find", buf_str(&list), n == LABELS_TRIED ? ", ..." : "");
}

const char *explain_gang_constraint(struct gang *gang, enum gang_verdict verdict, size_t constraint)
{
    struct arena_mark mark = arena_mark(&gang->work);
    struct ledger *empty = explain_empty(gang, verdict);
    const char *words = gang->spec->constraints[constraint].kind == GANG_MATCH_NODE_LABEL
                            ? label_words(gang, constraint)
                            : attribute_words(gang, constraint);

    explain_restore(gang, empty);
    arena_rewind(&gang->work, mark);
    return words;
}
