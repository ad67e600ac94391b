/* Node selectors of slices, devices, allocations and pods: parsed once, the reason why one cannot be parsed kept
 * inside, because kube-scheduler finds out only when it needs the selector (semantics, 3.2). */
#include "allocator/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

static const struct {
    const char *text;
    enum requirement_operator op;
} operators[] = {
    {"In", REQ_IN}, {"NotIn", REQ_NOT_IN}, {"Exists", REQ_EXISTS}, {"DoesNotExist", REQ_DOES_NOT_EXIST},
    {"Gt", REQ_GT}, {"Lt", REQ_LT},
};

static bool parse_integer(const char *text, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    return *text && !*end && errno == 0 && *text != ' ' && *text != '\t' && *text != '\n';
}

/* How many values the operator takes, and whether they are label values. */
static const char *values_problem(const struct requirement *req)
{
    int64_t number;

    switch (req->op) {
    case REQ_IN:
    case REQ_NOT_IN:
        if (req->n_values == 0)
            return "values: must be given for In and NotIn";
        break;
    case REQ_EXISTS:
    case REQ_DOES_NOT_EXIST:
        if (req->n_values)
            return "values: must be empty for Exists and DoesNotExist";
        break;
    case REQ_GT:
    case REQ_LT:
        if (req->n_values != 1 || !parse_integer(req->values[0], &number))
            return "values: must be one integer for Gt and Lt";
        break;
    }
    for (size_t i = 0; i < req->n_values; i++)
        if (name_problem_label_value(req->values[i]))
            return "values: must be label values";
    return NULL;
}

static const char *field_problem(const struct requirement *req)
{
    if (req->op != REQ_IN && req->op != REQ_NOT_IN)
        return "matchFields: the operator must be In or NotIn";
    return req->n_values == 1 ? NULL : "matchFields: exactly one value must be given";
}

static const char *requirement_parse(const json_t *json, bool is_field, struct arena *arena, struct requirement *out)
{
    const char *op = json_string_value(member(json, "operator"));
    const char *key = json_string_value(member(json, "key"));
    struct string_list values;
    bool known = false;

    out->key = arena_strdup(arena, key ? key : "");
    if (read_texts(json, "values", arena, &values, NULL) < 0)
        return "values: must be strings";
    out->values = values.items;
    out->n_values = values.n;
    for (size_t i = 0; i < ARRAY_SIZE(operators) && !known; i++) {
        known = op && text_is(op, operators[i].text);
        out->op = operators[i].op;
    }
    if (!known)
        return arena_printf(arena, "operator: \"%.40s\" is not a valid node selector operator", op ? op : "");
    if (is_field)
        return field_problem(out);
    if (name_problem_label_key(out->key))
        return arena_printf(arena, "key: \"%.80s\" is no label name", out->key);
    return values_problem(out);
}

static const char *requirements_parse(const json_t *term, const char *key, bool is_field, struct arena *arena,
                                      const struct requirement **out, size_t *out_n)
{
    const json_t *array = member(term, key);
    struct requirement *reqs = arena_array(arena, struct requirement, json_array_size(array) + 1);
    const char *problem = NULL;

    *out = reqs;
    *out_n = json_array_size(array);
    for (size_t i = 0; i < *out_n; i++) {
        const char *found = requirement_parse(json_array_get(array, i), is_field, arena, &reqs[i]);

        problem = problem ? problem : found;
    }
    return problem;
}

const struct node_selector *node_selector_parse(const json_t *json, struct arena *arena)
{
    const json_t *array = member(json, "nodeSelectorTerms");
    struct node_selector *selector = arena_new(arena, struct node_selector);
    struct selector_term *terms = arena_array(arena, struct selector_term, json_array_size(array) + 1);

    selector->n_terms = json_array_size(array);
    selector->terms = terms;
    for (size_t i = 0; i < selector->n_terms; i++) {
        const json_t *term = json_array_get(array, i);
        const char *expressions, *fields;

        expressions =
            requirements_parse(term, "matchExpressions", false, arena, &terms[i].expressions, &terms[i].n_expressions);
        fields = requirements_parse(term, "matchFields", true, arena, &terms[i].fields, &terms[i].n_fields);
        if (!selector->problem)
            selector->problem = expressions ? expressions : fields;
    }
    return selector;
}

static bool has_value(const struct requirement *req, const char *value)
{
    for (size_t i = 0; i < req->n_values; i++)
        if (text_is(req->values[i], value))
            return true;
    return false;
}

static bool compares(const struct requirement *req, const char *value)
{
    int64_t have, want;

    if (!value || !parse_integer(value, &have) || !parse_integer(req->values[0], &want))
        return false;
    return req->op == REQ_GT ? have > want : have < want;
}

bool requirement_matches(const struct requirement *req, const char *value)
{
    switch (req->op) {
    case REQ_IN:
        return value && has_value(req, value);
    case REQ_NOT_IN:
        return !value || !has_value(req, value);
    case REQ_EXISTS:
        return value != NULL;
    case REQ_DOES_NOT_EXIST:
        return value == NULL;
    case REQ_GT:
    case REQ_LT:
        return compares(req, value);
    }
    return false;
}

static bool term_matches(const struct selector_term *term, const struct node_info *node)
{
    if (!term->n_expressions && !term->n_fields)
        return false;
    for (size_t i = 0; i < term->n_expressions; i++)
        if (!requirement_matches(&term->expressions[i], node_label(node, term->expressions[i].key)))
            return false;
    for (size_t i = 0; i < term->n_fields; i++)
        if (!requirement_matches(&term->fields[i], text_is(term->fields[i].key, "metadata.name") ? node->name : ""))
            return false;
    return true;
}

bool node_selector_matches(const struct node_selector *selector, const struct node_info *node)
{
    if (selector->problem)
        return false;
    for (size_t i = 0; i < selector->n_terms; i++)
        if (term_matches(&selector->terms[i], node))
            return true;
    return false;
}

const char *node_label(const struct node_info *node, const char *key)
{
    size_t low = 0, high = node->n_labels;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(node->labels[mid].key, key);

        if (order == 0)
            return node->labels[mid].value;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
