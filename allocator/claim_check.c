/* What an API server refuses in a claim (semantics, 1.3). Fields in errors start below spec.devices. */
#include "allocator/internal.h"

#include <string.h>

#include "allocator/base/banned.h"

#define MAX_OPAQUE 10240

int expression_check(const char *text, const struct load *load, struct error *err)
{
    struct cel_options options = {.release = load->features->release,
                                  .list_attributes = feature_on(load->features, FEATURE_LIST_ATTRIBUTES)};
    struct cel_problem problem;
    struct cel_expr *expr = NULL;
    uint64_t cost;

    if (!*text)
        return error_field(err, "expression", "is required");
    if (strlen(text) > CEL_MAX_TEXT)
        return error_field(err, "expression", "must be at most %d bytes", CEL_MAX_TEXT);
    if (cel_compile(str_of(text), &options, &expr, &problem) < 0)
        return error_field(err, "expression", "%s", problem.text);
    cost = cel_estimated_cost(expr);
    cel_expr_free(expr);
    return cost > CEL_MAX_COST ? error_field(err, "expression", "is too complex: its estimated cost is above the limit")
                               : 0;
}

int opaque_check(const char *opaque, struct error *err)
{
    json_t *json;
    const char *driver;
    int result = 0;

    if (!opaque)
        return error_field(err, "opaque", "is required");
    json = json_loads(opaque, 0, NULL);
    driver = json_string_value(json_object_get(json, "driver"));
    if (name_check("opaque.driver", driver ? driver : "", name_problem_driver(driver ? driver : ""), err) < 0) {
        result = -1;
    } else if (!json_is_object(json_object_get(json, "parameters"))) {
        result = error_field(err, "opaque.parameters", "must be an object");
    } else {
        size_t size = json_dumpb(json_object_get(json, "parameters"), NULL, 0, JSON_COMPACT);

        if (size > MAX_OPAQUE)
            result = error_field(err, "opaque.parameters", "must be at most %d bytes", MAX_OPAQUE);
    }
    json_decref(json);
    return result;
}

/* ---- requests ---- */

static int check_ask(const struct claim_ask *ask, struct error *err)
{
    if (name_check("deviceClassName", ask->class_name, name_problem_subdomain(ask->class_name), err) < 0)
        return -1;
    if (ask->mode == MODE_UNKNOWN)
        return error_field(err, "allocationMode", "must be ExactCount or All");
    if (ask->mode == MODE_EXACT_COUNT && ask->count <= 0)
        return error_field(err, "count", "must be positive");
    if (ask->mode == MODE_ALL && ask->count)
        return error_field(err, "count", "must not be set when allocationMode is All");
    if (ask->n_tolerations > 16)
        return error_field(err, "tolerations", "at most 16 tolerations are allowed");
    for (size_t i = 0; i < ask->n_capacity; i++)
        if (name_check("capacity.requests", ask->capacity[i].key, name_problem_qualified(ask->capacity[i].key), err) <
            0)
            return -1;
    return 0;
}

static int check_alternatives(const struct claim_request *request, struct error *err)
{
    if (request->n_asks > 8)
        return error_field(err, "firstAvailable", "at most 8 alternatives are allowed");
    for (size_t i = 0; i < request->n_asks; i++) {
        const struct claim_ask *ask = &request->asks[i];

        if (name_check("name", ask->name, name_problem_label(ask->name), err) < 0 || check_ask(ask, err) < 0)
            return error_in(err, "firstAvailable[%zu]", i);
        if (ask->has_admin_access) {
            error_field(err, "adminAccess", "is not allowed in an alternative");
            return error_in(err, "firstAvailable[%zu]", i);
        }
        for (size_t k = 0; k < i; k++)
            if (text_is(ask->name, request->asks[k].name)) {
                error_field(err, "name", "is used twice");
                return error_in(err, "firstAvailable[%zu]", i);
            }
    }
    return 0;
}

static int check_request(const struct claim *claim, size_t index, struct error *err)
{
    const struct claim_request *request = &claim->requests[index];

    if (name_check("name", request->name, name_problem_label(request->name), err) < 0)
        return -1;
    for (size_t k = 0; k < index; k++)
        if (text_is(request->name, claim->requests[k].name))
            return error_field(err, "name", "is used twice");
    if (request->is_list)
        return check_alternatives(request, err);
    if (check_ask(&request->asks[0], err) < 0)
        return error_in(err, "exactly");
    return 0;
}

/* ---- references: "req" or "req/sub" ---- */

static bool names_request(const struct claim *claim, const char *reference)
{
    size_t len = strcspn(reference, "/");

    for (size_t i = 0; i < claim->n_requests; i++) {
        const struct claim_request *request = &claim->requests[i];

        if (strlen(request->name) != len || memcmp(request->name, reference, len) != 0)
            continue;
        if (!reference[len])
            return true;
        for (size_t k = 0; request->is_list && k < request->n_asks; k++)
            if (text_is(request->asks[k].name, reference + len + 1))
                return true;
    }
    return false;
}

static int check_references(const struct claim *claim, const char *const *names, size_t n, struct error *err)
{
    if (n > 32)
        return error_field(err, "requests", "at most 32 references are allowed");
    for (size_t i = 0; i < n; i++) {
        if (!names_request(claim, names[i])) {
            error_set(err, ERR_INVALID, "\"%.80s\" is no request of this claim", names[i]);
            return error_in(err, "requests[%zu]", i);
        }
        for (size_t k = 0; k < i; k++)
            if (text_is(names[i], names[k])) {
                error_set(err, ERR_INVALID, "\"%.80s\" is named twice", names[i]);
                return error_in(err, "requests[%zu]", i);
            }
    }
    return 0;
}

static int check_constraint(const struct claim *claim, const struct claim_constraint *c, struct error *err)
{
    const char *field = c->kind == CONSTRAINT_MATCH ? "matchAttribute" : "distinctAttribute";

    if (check_references(claim, c->requests, c->n_requests, err) < 0)
        return -1;
    return name_check(field, c->attribute, name_problem_fully_qualified(c->attribute), err);
}

static int check_config(const struct claim *claim, const struct claim_config *config, struct error *err)
{
    if (check_references(claim, config->requests, config->n_requests, err) < 0)
        return -1;
    return opaque_check(config->opaque, err);
}

int claim_check(const struct claim *claim, const struct load *load, struct error *err)
{
    (void)load;
    if (claim->n_requests > 32)
        return error_field(err, "requests", "at most 32 requests are allowed");
    if (claim->n_constraints > 32)
        return error_field(err, "constraints", "at most 32 constraints are allowed");
    if (claim->n_config > 32)
        return error_field(err, "config", "at most 32 entries are allowed");
    for (size_t i = 0; i < claim->n_requests; i++)
        if (check_request(claim, i, err) < 0)
            return error_in(err, "requests[%zu]", i);
    for (size_t i = 0; i < claim->n_constraints; i++)
        if (check_constraint(claim, &claim->constraints[i], err) < 0)
            return error_in(err, "constraints[%zu]", i);
    for (size_t i = 0; i < claim->n_config; i++)
        if (check_config(claim, &claim->config[i], err) < 0)
            return error_in(err, "config[%zu]", i);
    return 0;
}
