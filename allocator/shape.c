/* Shapes: claims resolved against the classes, with everything checked that needs no node (semantics, 4.2). */
#include "allocator/shape.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

static const char *gate_problem(struct shape *shape, const char *label, const char *field, enum feature feature)
{
    return arena_printf(&shape->arena, "%s: %s is used, but the feature gate %s is off", label, field,
                        feature_gate(feature));
}

static bool is_on(const struct shape *shape, enum feature feature)
{
    return feature_on(shape->features, feature);
}

/* What makes an ask FATAL whatever the node. */
static const char *ask_problem(struct shape *shape, const struct ask *ask)
{
    const struct claim_ask *a = ask->ask;

    if (a->n_derived && !is_on(shape, FEATURE_DERIVED_ATTRIBUTES))
        return gate_problem(shape, ask->label, "derivedAttributes", FEATURE_DERIVED_ATTRIBUTES);
    if (a->n_derived)
        return arena_printf(&shape->arena, "%s: derivedAttributes are not simulated", ask->label);
    for (size_t i = 0; i < a->n_selectors; i++)
        if (!a->selectors[i])
            return arena_printf(&shape->arena, "%s: selector #%zu: unsupported, it has no CEL expression", ask->label,
                                i);
    if (a->has_admin_access && !is_on(shape, FEATURE_ADMIN_ACCESS))
        return gate_problem(shape, ask->label, "adminAccess", FEATURE_ADMIN_ACCESS);
    if (!*a->class_name)
        return arena_printf(&shape->arena, "%s: it has no deviceClassName: unsupported request type", ask->label);
    if (!ask->device_class)
        return arena_printf(&shape->arena, "%s: could not retrieve device class %s", ask->label, a->class_name);
    if (a->mode == MODE_UNKNOWN)
        return arena_printf(&shape->arena, "%s: unsupported allocation mode %s", ask->label, a->mode_text);
    return NULL;
}

/* What makes a request FATAL before its asks are looked at. */
static const char *request_problem(struct shape *shape, const char *label, const struct claim_request *request)
{
    if (request->is_list && !is_on(shape, FEATURE_PRIORITIZED_LIST))
        return gate_problem(shape, label, "firstAvailable", FEATURE_PRIORITIZED_LIST);
    for (size_t i = 0; i < request->n_asks; i++)
        if (request->asks[i].has_capacity && !is_on(shape, FEATURE_CONSUMABLE_CAPACITY))
            return gate_problem(shape, label, "capacity", FEATURE_CONSUMABLE_CAPACITY);
    return NULL;
}

static const char *constraint_problem(struct shape *shape, const struct claim *claim)
{
    for (size_t i = 0; i < claim->n_constraints; i++) {
        enum constraint_kind kind = claim->constraints[i].kind;

        if (kind == CONSTRAINT_UNKNOWN || (kind == CONSTRAINT_DISTINCT && !shape->behaviour->knows_distinct))
            return arena_printf(&shape->arena, "claim %s, constraint #%zu: unsupported constraint type", claim->name,
                                i);
    }
    return NULL;
}

static void resolve_expressions(struct shape *shape, struct ask *ask)
{
    const struct device_class *class = ask->device_class;
    size_t n_class = class ? class->n_selectors : 0, n = n_class + ask->ask->n_selectors;

    ask->expressions = arena_array(&shape->arena, struct expression *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *text = i < n_class ? class->selectors[i] : ask->ask->selectors[i - n_class];

        ask->expressions[i] = text ? cache_expression(shape->snapshot->cache, text) : NULL;
    }
    ask->n_expressions = n;
}

static const char *ask_label(struct shape *shape, const struct claim *claim, const struct claim_request *request,
                             const struct claim_ask *ask)
{
    if (request->is_list)
        return arena_printf(&shape->arena, "claim %s, request %s/%s", claim->name, request->name, ask->name);
    return arena_printf(&shape->arena, "claim %s, request %s", claim->name, request->name);
}

static void resolve_request(struct shape *shape, size_t claim, size_t index, struct request *out)
{
    const struct claim *c = shape->claims[claim].claim;
    const struct claim_request *request = &c->requests[index];

    *out = (struct request){
        .request = request, .first_ask = shape->n_asks, .n_asks = request->n_asks, .is_list = request->is_list};
    out->problem =
        request_problem(shape, arena_printf(&shape->arena, "claim %s, request %s", c->name, request->name), request);
    for (size_t i = 0; i < request->n_asks; i++) {
        struct ask *ask = &shape->asks[shape->n_asks++];

        ask->ask = &request->asks[i];
        ask->device_class = class_find(shape->snapshot->classes, ask->ask->class_name);
        ask->claim = claim;
        ask->request = index;
        ask->alternative = i;
        ask->label = ask_label(shape, c, request, ask->ask);
        ask->problem = ask_problem(shape, ask);
        ask->view = (struct shape_ask){ask->ask, ask->device_class, claim, index, i};
        resolve_expressions(shape, ask);
        shape->has_derived = shape->has_derived || ask->ask->n_derived;
        shape->has_all = shape->has_all || ask->ask->mode == MODE_ALL;
    }
}

static void add_attribute(struct shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->n_attributes; i++)
        if (text_is(shape->attributes[i], name))
            return;
    shape->attributes[shape->n_attributes++] = name;
}

static void list_attributes(struct shape *shape)
{
    size_t n = 0;

    for (size_t i = 0; i < shape->n_claims; i++)
        n += shape->claims[i].claim->n_constraints;
    shape->attributes = arena_array(&shape->arena, const char *, n + 1);
    for (size_t i = 0; i < shape->n_claims; i++) {
        const struct claim *claim = shape->claims[i].claim;

        for (size_t k = 0; k < claim->n_constraints; k++)
            if (claim->constraints[k].attribute)
                add_attribute(shape, claim->constraints[k].attribute);
    }
}

static struct digest question_of(const struct shape *shape)
{
    struct digest digest = {0};

    digest_add(&digest, shape->snapshot->classes->stamp);
    digest_add(&digest, shape->n_claims);
    for (size_t i = 0; i < shape->n_claims; i++) {
        digest_add(&digest, shape->claims[i].claim->digest.lo);
        digest_add(&digest, shape->claims[i].claim->digest.hi);
    }
    return digest;
}

struct shape *shape_new(const struct snapshot *snapshot, const struct claim *const *claims, size_t n_claims)
{
    struct shape *shape = mem_new(struct shape);
    size_t n_asks = 0;

    shape->snapshot = snapshot;
    shape->features = &snapshot->features;
    shape->behaviour = &snapshot->behaviour;
    shape->n_claims = n_claims;
    shape->claims = arena_array(&shape->arena, struct claim_shape, n_claims + 1);
    for (size_t i = 0; i < n_claims; i++)
        for (size_t k = 0; k < claims[i]->n_requests; k++)
            n_asks += claims[i]->requests[k].n_asks;
    shape->asks = arena_array(&shape->arena, struct ask, n_asks + 1);
    for (size_t i = 0; i < n_claims; i++) {
        struct request *requests = arena_array(&shape->arena, struct request, claims[i]->n_requests + 1);

        shape->claims[i] = (struct claim_shape){.claim = claims[i], .n_requests = claims[i]->n_requests};
        for (size_t k = 0; k < claims[i]->n_requests; k++)
            resolve_request(shape, i, k, &requests[k]);
        shape->claims[i].requests = requests;
        shape->claims[i].problem = constraint_problem(shape, claims[i]);
    }
    list_attributes(shape);
    shape->question = question_of(shape);
    return shape;
}

void shape_free(struct shape *shape)
{
    if (!shape)
        return;
    for (size_t i = 0; i < shape->n_asks; i++)
        for (size_t k = 0; k < shape->asks[i].n_expressions; k++)
            expression_unref(shape->asks[i].expressions[k]);
    memo_unref(shape->memo);
    arena_release(&shape->arena);
    arena_release(&shape->scratch);
    free(shape);
}

const char *shape_problem(const struct shape *shape)
{
    if (shape->behaviour->variant == VARIANT_NONE)
        return "no allocator of this release supports all features that are switched on";
    for (size_t i = 0; i < shape->n_claims; i++) {
        const struct claim_shape *claim = &shape->claims[i];

        for (size_t k = 0; k < claim->n_requests; k++) {
            const struct request *request = &claim->requests[k];

            if (request->problem)
                return request->problem;
            for (size_t a = 0; a < request->n_asks; a++)
                if (shape->asks[request->first_ask + a].problem)
                    return shape->asks[request->first_ask + a].problem;
        }
        if (claim->problem)
            return claim->problem;
    }
    return NULL;
}

size_t shape_n_asks(const struct shape *shape)
{
    return shape->n_asks;
}

const struct shape_ask *shape_ask(const struct shape *shape, size_t i)
{
    return &shape->asks[i].view;
}
