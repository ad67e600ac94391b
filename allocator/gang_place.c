/* A solution in the words of the API: which member runs where and what its claims are given. */
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

static const struct bench *bench_for(struct gang *gang, const struct gang_node *node, const struct gang_unit *unit)
{
    size_t u = 0;

    while (gang->units[u] != unit)
        u++;
    return node->benches[u] ? node->benches[u] : bench_make(unit->shape, gang->ledger, node->node, &gang->work);
}

static uint32_t offer_of(const struct bench *bench, const struct gs_device *device)
{
    const struct gang_device *wanted = gang_device_of(device);

    for (size_t i = 0; i < bench->n_offers; i++)
        if (bench->offers[i].view->pool == wanted->pool && bench->offers[i].index == wanted->index)
            return (uint32_t)i;
    invariant_failed("a device that was taken is on the bench of its node", __FILE__, __LINE__, __func__);
}

/* The alternative that a variant takes for a request of a claim. */
static uint8_t alternative_of(const struct gang_unit *unit, uint32_t variant, uint32_t claim, uint32_t request)
{
    size_t at = request;

    for (uint32_t c = 0; c < claim; c++)
        at += unit->claims[c]->n_requests;
    return unit->alternatives[variant][at];
}

/* One allocation per claim of the unit. */
static const struct allocation *allocations_of(struct gang *gang, const struct gang_unit *unit,
                                               const struct gang_node *node, const struct gs_placed *placed)
{
    const struct bench *bench = bench_for(gang, node, unit);
    struct pick *picks = arena_array(&gang->work, struct pick, placed->n_picks);
    struct solution solution = {.picks = picks, .n_picks = placed->n_picks};
    struct allocation *out = NULL;
    const char *message;

    for (size_t i = 0; i < placed->n_picks; i++) {
        const struct gs_pick *pick = &placed->picks[i];

        picks[i] = (struct pick){.offer = offer_of(bench, pick->candidate->device),
                                 .claim = (uint16_t)pick->claim,
                                 .request = (uint16_t)pick->request,
                                 .alternative = alternative_of(unit, placed->variant->id, pick->claim, pick->request)};
    }
    if (solution_allocations(unit->shape, bench, &solution, gang->arena, &out, &message) < 0) {
        gang->evaluation_error = message;
        return NULL;
    }
    return out;
}

/* ---- devices by name ---- */

static bool pick_by_name(const struct gang_unit *unit, const struct bench *bench, size_t c,
                         const struct device_result *wanted, const char *planned, struct pick *out)
{
    const struct claim *claim = unit->claims[c];
    size_t len = strcspn(wanted->request, "/"), offer = 0, request = 0, alternative = 0;

    while (offer < bench->n_offers && (strcmp(bench->offers[offer].device->name, wanted->device) != 0 ||
                                       strcmp(bench->offers[offer].slice->pool, wanted->pool) != 0 ||
                                       strcmp(bench->offers[offer].slice->driver, wanted->driver) != 0))
        offer++;
    while (request < claim->n_requests && (strlen(claim->requests[request].name) != len ||
                                           memcmp(claim->requests[request].name, wanted->request, len) != 0))
        request++;
    if (offer == bench->n_offers || request == claim->n_requests)
        return false;
    while (planned[len] && alternative < claim->requests[request].n_asks &&
           strcmp(claim->requests[request].asks[alternative].name, planned + len + 1) != 0)
        alternative++;
    *out = (struct pick){.offer = (uint32_t)offer,
                         .claim = (uint16_t)c,
                         .request = (uint16_t)request,
                         .alternative = (uint8_t)alternative};
    return alternative < claim->requests[request].n_asks;
}

/* The planned request behind a result of the steered claim, with its alternative. */
static const char *planned_request(const struct allocation *planned, const char *request)
{
    size_t len = strcspn(request, "/");

    for (size_t i = 0; i < planned->n_results; i++)
        if (strncmp(planned->results[i].request, request, len) == 0 &&
            (planned->results[i].request[len] == 0 || planned->results[i].request[len] == '/'))
            return planned->results[i].request;
    return request;
}

const struct allocation *gang_allocations(struct gang *gang, const struct gang_unit *unit, const struct node *node,
                                          const struct allocation *const *planned, const struct allocation *const *got)
{
    const struct bench *bench = bench_make(unit->shape, gang->ledger, node, &gang->work);
    struct solution solution = {.n_picks = 0};
    struct allocation *out;
    struct pick *picks;
    const char *message;
    size_t n = 0;

    for (size_t c = 0; c < unit->n_claims; c++)
        n += got[c]->n_results;
    picks = arena_array(&gang->work, struct pick, n);
    for (size_t c = 0; c < unit->n_claims; c++)
        for (size_t i = 0; i < got[c]->n_results; i++)
            if (!pick_by_name(unit, bench, c, &got[c]->results[i],
                              planned_request(planned[c], got[c]->results[i].request), &picks[solution.n_picks++]))
                return NULL;
    solution.picks = picks;
    return solution_allocations(unit->shape, bench, &solution, gang->arena, &out, &message) < 0 ? NULL : out;
}

/* ---- members ---- */

struct placing {
    struct gang *gang;
    const struct allocation *const *shared;
};

static struct placed_claim placed_claim_of(const struct placing *p, const struct gang_claim *claim)
{
    struct placed_claim out = {
        .pod_claim = arena_strdup(p->gang->arena, claim->pod_claim), .source = claim->source, .shared = claim->shared};

    for (size_t s = 0; claim->source == GANG_CLAIM_EXISTING && s < p->gang->n_shared; s++)
        if (p->gang->shared[s].existing && strcmp(p->gang->shared[s].existing, claim->name) == 0)
            out.allocation = *p->shared[s];
    return out;
}

static bool place_member(const struct placing *p, const struct gs_placed *placed, struct placed_member *out)
{
    const struct gang_node *node = gang_node_of(placed->node);
    const struct gang_unit *unit = p->gang->kinds[placed->group].forms[node->gs.form];
    const struct gang_group *group = &p->gang->spec->groups[out->group];
    const struct allocation *allocations = allocations_of(p->gang, unit, node, placed);
    struct placed_claim *claims = arena_array(p->gang->arena, struct placed_claim, group->n_claims + 1);

    if (!allocations && unit->n_claims)
        return false;
    out->node = node->node->info->name;
    out->claims = claims;
    out->n_claims = group->n_claims;
    for (size_t c = 0; c < group->n_claims; c++)
        claims[c] = placed_claim_of(p, &group->claims[c]);
    for (size_t c = 0; c < unit->n_claims; c++) {
        size_t entry = unit->entries[c];

        if (entry == SIZE_MAX) {
            entry = out->n_claims++;
            claims[entry] = (struct placed_claim){.pod_claim = "<extended-resources>", .source = GANG_CLAIM_EXTENDED};
        }
        claims[entry].allocation = allocations[c];
    }
    return true;
}

/* Members of a kind take the places of the kind in turn, group by group. */
static bool place_members(const struct placing *p, const struct gs_solution *solution, struct placed_member *out)
{
    size_t next[GANG_MAX_KINDS] = {0}, n = 0;

    for (size_t g = 0; g < p->gang->spec->n_groups; g++) {
        size_t kind = p->gang->kind_of[g];

        for (size_t i = 0; i < p->gang->spec->groups[g].n_members; i++) {
            while (solution->members[next[kind]].group != kind)
                next[kind]++;
            out[n].group = g;
            out[n].index = i;
            if (!place_member(p, &solution->members[next[kind]++], &out[n++]))
                return false;
        }
    }
    return true;
}

static bool place_shared(struct placing *p, const struct gs_solution *solution, struct placement *out)
{
    const struct allocation **all = arena_array(&p->gang->work, const struct allocation *, p->gang->n_shared);
    struct allocation *own = arena_array(p->gang->arena, struct allocation, p->gang->spec->n_shared);

    for (size_t s = 0; s < p->gang->n_shared; s++) {
        const struct gs_placed *placed = &solution->shared[s];

        all[s] = allocations_of(p->gang, p->gang->shared[s].unit, gang_node_of(placed->node), placed);
        if (!all[s])
            return false;
        if (p->gang->shared[s].spec_index != SIZE_MAX)
            own[p->gang->shared[s].spec_index] = *all[s];
    }
    p->shared = all;
    out->shared = own;
    out->n_shared = p->gang->spec->n_shared;
    return true;
}

struct placement *gang_place(struct gang *gang, const struct gs_solution *solution)
{
    struct placement *out = arena_new(gang->arena, struct placement);
    const struct pod_demand **demands = arena_array(gang->arena, const struct pod_demand *, gang->spec->n_groups);
    struct placed_member *members = arena_array(gang->arena, struct placed_member, solution->n_members);
    struct placing p = {.gang = gang};

    for (size_t g = 0; g < gang->spec->n_groups; g++)
        demands[g] = &gang->kinds[gang->kind_of[g]].rules.demand;
    out->demands = demands;
    out->n_demands = gang->spec->n_groups;
    out->members = members;
    out->n_members = solution->n_members;
    return place_shared(&p, solution, out) && place_members(&p, solution, members) ? out : NULL;
}
