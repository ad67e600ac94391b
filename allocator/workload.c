/* What jobs of a cluster usually look like, read once for the score: the selections they make of devices, the shapes of
 * what they want, and how common each is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/score.h"

#include "allocator/base/banned.h"

#define PER_CLAIM 32

static bool same_texts(const char *const *a, const char *const *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!a[i] || !b[i] || strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static bool same_selection(const struct claim_ask *a, const struct claim_ask *b)
{
    return strcmp(a->class_name, b->class_name) == 0 && a->n_selectors == b->n_selectors &&
           same_texts(a->selectors, b->selectors, a->n_selectors);
}

uint32_t score_selection(const struct gang_workload *w, const struct claim_ask *ask)
{
    uint32_t s = 0;

    while (s < w->n_selections && !same_selection(w->selections[s].ask, ask))
        s++;
    return s < w->n_selections ? s : SCORE_MAX_SELECTIONS;
}

int64_t score_thousandths(const struct quantity *amount, bool *out_exact)
{
    gs_amount billionths = gang_amount(amount), exact = billionths / 1000000;
    bool is_exact = billionths >= 0 && billionths % 1000000 == 0 && exact <= INT64_MAX / 2;

    if (out_exact)
        *out_exact = *out_exact && is_exact;
    return exact < 0 ? 0 : exact > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)exact;
}

static int64_t need_of(const struct claim_ask *ask)
{
    return ask->n_capacity ? score_thousandths(&ask->capacity[0].amount, NULL) : SCORE_WHOLE;
}

static uint32_t shape_number(struct gang_workload *w, const struct claim_ask *ask)
{
    uint32_t selection = score_selection(w, ask);
    struct typical_shape shape;

    if (selection == SCORE_MAX_SELECTIONS) {
        if (w->n_selections == SCORE_MAX_SELECTIONS || w->n_shapes == SCORE_MAX_SHAPES)
            return UINT32_MAX;
        selection = (uint32_t)w->n_selections;
        w->selections[w->n_selections++].ask = ask;
    }
    shape = (struct typical_shape){selection, (uint32_t)ask->count, need_of(ask)};
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].selection == shape.selection && w->shapes[i].count == shape.count &&
            w->shapes[i].need == shape.need)
            return (uint32_t)i;
    if (w->n_shapes == SCORE_MAX_SHAPES)
        return UINT32_MAX;
    mem_grow(w->shapes, w->n_shapes, w->cap_shapes);
    w->shapes[w->n_shapes] = shape;
    return (uint32_t)w->n_shapes++;
}

/* What can be counted in copies. Mode All takes whatever a node has, and no claim can hold more than CLAIM_MAX_RESULTS.
 */
static bool is_countable(const struct claim_ask *ask)
{
    return ask->mode == MODE_EXACT_COUNT && ask->count > 0 && ask->count <= CLAIM_MAX_RESULTS;
}

int64_t score_demand(const struct pod_rules *rules, const char *resource)
{
    for (size_t i = 0; i < rules->demand.n_resources; i++)
        if (strcmp(rules->demand.resources[i].name, resource) == 0)
            return scheduler_units(resource, &rules->demand.resources[i].amount);
    return 0;
}

static int add_typical(struct gang_workload *w, const struct gang_typical *typical, const struct features *features,
                       struct error *err)
{
    struct typical_pod pod = {.weight = (float)typical->weight, .shape = UINT32_MAX};
    struct pod_rules rules;
    struct claim *claim = NULL;

    if (!(typical->weight > 0) || !isfinite(typical->weight))
        return error_field(err, "weight", "must be a positive number");
    if (pod_rules_parse(typical->pod, NULL, &w->arena, &rules, err) < 0)
        return error_in(err, "pod");
    if (typical->claim && claim_parse(typical->claim, features, false, &w->arena, &claim, err) < 0)
        return error_in(err, "claim");
    pod.cpu = score_demand(&rules, "cpu");
    pod.memory = score_demand(&rules, "memory");
    pod.per_cpu = pod.cpu > 0 ? 1 / (double)pod.cpu : 0;
    pod.per_memory = pod.memory > 0 ? 1 / (double)pod.memory : 0;
    if (claim && claim->n_requests && claim->requests[0].n_asks && is_countable(&claim->requests[0].asks[0]))
        pod.shape = shape_number(w, &claim->requests[0].asks[0]);
    mem_grow(w->pods, w->n_pods, w->cap_pods);
    w->pods[w->n_pods++] = pod;
    return 0;
}

/* Claims that ask for one device of every selection: what a bench is asked with. */
static void make_claims(struct gang_workload *w)
{
    w->n_claims = (w->n_selections + PER_CLAIM - 1) / PER_CLAIM;
    w->claims = arena_array(&w->arena, const struct claim *, w->n_claims + 1);
    for (size_t c = 0; c < w->n_claims; c++) {
        size_t first = c * PER_CLAIM;
        size_t n = w->n_selections - first < PER_CLAIM ? w->n_selections - first : PER_CLAIM;
        struct claim *claim = arena_new(&w->arena, struct claim);
        struct claim_request *requests = arena_array(&w->arena, struct claim_request, n);

        for (size_t i = 0; i < n; i++) {
            struct claim_ask *ask = arena_new(&w->arena, struct claim_ask);

            *ask = *w->selections[first + i].ask;
            ask->mode = MODE_EXACT_COUNT;
            ask->count = 1;
            ask->n_capacity = 0;
            ask->has_capacity = false;
            requests[i] = (struct claim_request){.name = arena_printf(&w->arena, "s%zu", i), .asks = ask, .n_asks = 1};
        }
        *claim = (struct claim){.ns = "", .name = "workload", .requests = requests, .n_requests = n};
        w->claims[c] = claim;
    }
}

static void digest_workload(struct gang_workload *w)
{
    w->digest = (struct digest){23, 29};
    for (size_t i = 0; i < w->n_selections; i++) {
        const struct claim_ask *ask = w->selections[i].ask;

        digest_text(&w->digest, ask->class_name, strlen(ask->class_name));
        digest_add(&w->digest, ask->n_selectors);
        for (size_t s = 0; s < ask->n_selectors; s++)
            if (ask->selectors[s])
                digest_text(&w->digest, ask->selectors[s], strlen(ask->selectors[s]));
    }
    for (size_t i = 0; i < w->n_shapes; i++) {
        digest_add(&w->digest, (uint64_t)w->shapes[i].selection << 32 | w->shapes[i].count);
        digest_add(&w->digest, (uint64_t)w->shapes[i].need);
    }
    w->shapes_digest = w->digest;
    for (size_t i = 0; i < w->n_pods; i++) {
        digest_text(&w->digest, (const char *)&w->pods[i].weight, sizeof(w->pods[i].weight));
        digest_add(&w->digest, w->pods[i].shape);
        digest_add(&w->digest, (uint64_t)w->pods[i].cpu);
        digest_add(&w->digest, (uint64_t)w->pods[i].memory);
    }
}

struct gang_workload *gang_workload_new(const struct gang_typical *typical, size_t n, const struct features *features,
                                        struct error *err)
{
    struct gang_workload *w = mem_new(struct gang_workload);
    float total = 0;

    for (size_t i = 0; i < n; i++)
        if (add_typical(w, &typical[i], features, err) < 0) {
            (void)error_in(err, "typical[%zu]", i);
            gang_workload_free(w);
            return NULL;
        }
    for (size_t i = 0; i < w->n_pods; i++)
        total += w->pods[i].weight;
    for (size_t i = 0; i < w->n_pods; i++)
        w->pods[i].weight /= total;
    make_claims(w);
    digest_workload(w);
    return w;
}

void gang_workload_free(struct gang_workload *workload)
{
    if (!workload)
        return;
    arena_release(&workload->arena);
    free(workload->shapes);
    free(workload->pods);
    free(workload);
}
