/* How a pod's total is made (source: the resource helpers of Kubernetes): containers run at the same time and sum up;
 * sidecars (init containers that restart always) run beside all that start after them; an ordinary init container
 * runs alone with the sidecars before it; so the total is the larger of both moments. Amounts stated for the pod as a
 * whole replace the sum, and overhead is added at the end. */
#include "allocator/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/quantity.h"

#include "allocator/base/banned.h"

#define MAX_CONTAINERS 4096
#define MAX_RESOURCES  256
#define MAX_RULES      4096

/* ---- sets of amounts ---- */

/* A growing set of amounts by name; lives in the arena of the parse. */
struct amounts {
    struct resource_amount *items;
    size_t n, cap;
};

static struct resource_amount *amounts_slot(struct amounts *set, const char *name, struct arena *arena)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->items[i].name, name) == 0)
            return &set->items[i];
    if (set->n == set->cap) {
        struct resource_amount *grown = arena_array(arena, struct resource_amount, set->cap ? set->cap * 2 : 8);

        if (set->n)
            memcpy(grown, set->items, set->n * sizeof(*grown));
        set->items = grown;
        set->cap = set->cap ? set->cap * 2 : 8;
    }
    set->items[set->n] = (struct resource_amount){.name = name};
    return &set->items[set->n++];
}

static const struct resource_amount *amounts_find(const struct amounts *set, const char *name)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->items[i].name, name) == 0)
            return &set->items[i];
    return NULL;
}

static int64_t add_saturated(int64_t a, int64_t b)
{
    int64_t sum;

    return checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static void amounts_add(struct amounts *into, const struct amounts *more, struct arena *arena)
{
    for (size_t i = 0; i < more->n; i++) {
        struct resource_amount *slot = amounts_slot(into, more->items[i].name, arena);

        slot->amount = add_saturated(slot->amount, more->items[i].amount);
    }
}

static void amounts_max(struct amounts *into, const struct amounts *other, struct arena *arena)
{
    for (size_t i = 0; i < other->n; i++) {
        struct resource_amount *slot = amounts_slot(into, other->items[i].name, arena);

        if (slot->amount < other->items[i].amount)
            slot->amount = other->items[i].amount;
    }
}

static int compare_amounts(const void *a, const void *b)
{
    return strcmp(((const struct resource_amount *)a)->name, ((const struct resource_amount *)b)->name);
}

static void amounts_sort(struct amounts *set)
{
    if (set->n > 1)
        qsort(set->items, set->n, sizeof(*set->items), compare_amounts);
}

/* ---- reading amounts ---- */

static int quantity_amount(const json_t *value, const char *resource, struct arena *arena, int64_t *out,
                           struct error *err)
{
    struct quantity quantity;
    char number[32];
    struct str text;

    if (json_is_integer(value)) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
        text = str_of(number);
    } else if (json_is_string(value)) {
        text = (struct str){json_string_value(value), json_string_length(value)};
    } else {
        return error_field(err, "", "is no quantity");
    }
    if (quantity_parse(text, arena, &quantity, err) < 0)
        return -1;
    if (quantity_sign(&quantity) < 0)
        return error_field(err, "", "must not be negative");
    if (!(strcmp(resource, "cpu") == 0 ? quantity_to_milli(&quantity, out) : quantity_to_int(&quantity, out)))
        return error_field(err, "", "is too large");
    return 0;
}

static int read_amounts(const json_t *object, struct amounts *out, struct arena *arena, struct error *err)
{
    const char *name;
    json_t *value;

    if (!object || json_is_null(object))
        return 0;
    if (!json_is_object(object))
        return error_field(err, "", "must be an object");
    if (json_object_size(object) > MAX_RESOURCES)
        return error_set(err, ERR_LIMIT, "more than %d resources", MAX_RESOURCES);
    json_object_foreach((json_t *)object, name, value)
    {
        int64_t amount;

        if (quantity_amount(value, name, arena, &amount, err) < 0)
            return error_in(err, "%s", name);
        amounts_slot(out, arena_strdup(arena, name), arena)->amount = amount;
    }
    return 0;
}

/* requests, with limits where a request is not stated. */
static int read_requests(const json_t *resources, struct amounts *out, struct arena *arena, struct error *err)
{
    struct amounts limits = {0};

    if (read_amounts(json_object_get(resources, "requests"), out, arena, err) < 0)
        return error_in(err, "resources.requests");
    if (read_amounts(json_object_get(resources, "limits"), &limits, arena, err) < 0)
        return error_in(err, "resources.limits");
    for (size_t i = 0; i < limits.n; i++)
        if (!amounts_find(out, limits.items[i].name))
            amounts_slot(out, limits.items[i].name, arena)->amount = limits.items[i].amount;
    return 0;
}

/* ---- containers ---- */

struct pod_reader {
    const json_t *spec;
    struct arena *arena;
    struct pod_demand *demand;
    struct amounts running, sidecars, start; /* all at once; sidecars so far; the largest moment of the start */
    struct pod_container *containers;
    size_t n_containers;
    struct host_port *ports;
    size_t n_ports, cap_ports;
};

static const char *copied(struct arena *arena, const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && *text ? arena_strdup(arena, text) : otherwise;
}

static void add_port(struct pod_reader *r, const json_t *port, bool host_network)
{
    int64_t number = json_integer_value(json_object_get(port, "hostPort"));
    struct host_port *grown;

    if (number == 0 && host_network)
        number = json_integer_value(json_object_get(port, "containerPort"));
    if (number <= 0)
        return;
    if (r->n_ports == r->cap_ports) {
        grown = arena_array(r->arena, struct host_port, r->cap_ports ? r->cap_ports * 2 : 4);
        if (r->n_ports)
            memcpy(grown, r->ports, r->n_ports * sizeof(*grown));
        r->ports = grown;
        r->cap_ports = r->cap_ports ? r->cap_ports * 2 : 4;
    }
    r->ports[r->n_ports++] = (struct host_port){.ip = copied(r->arena, port, "hostIP", "0.0.0.0"),
                                                .protocol = copied(r->arena, port, "protocol", "TCP"),
                                                .port = number};
}

static void add_ports(struct pod_reader *r, const json_t *container)
{
    bool host_network = json_is_true(json_object_get(r->spec, "hostNetwork"));
    json_t *port;
    size_t i;

    json_array_foreach(json_object_get(container, "ports"), i, port)
    {
        add_port(r, port, host_network);
    }
}

static int read_container(struct pod_reader *r, const json_t *container, bool is_init, struct error *err)
{
    const char *restart = json_string_value(json_object_get(container, "restartPolicy"));
    bool is_sidecar = is_init && restart && strcmp(restart, "Always") == 0;
    struct amounts own = {0}, moment = {0};

    if (!json_is_object(container))
        return error_field(err, "", "must be an object");
    if (read_requests(json_object_get(container, "resources"), &own, r->arena, err) < 0)
        return -1;
    if (!is_init || is_sidecar) {
        amounts_add(&r->running, &own, r->arena);
        add_ports(r, container);
    }
    if (is_sidecar)
        amounts_add(&r->sidecars, &own, r->arena);
    if (is_init) {
        amounts_add(&moment, &r->sidecars, r->arena);
        if (!is_sidecar)
            amounts_add(&moment, &own, r->arena);
        amounts_max(&r->start, &moment, r->arena);
    }
    amounts_sort(&own);
    r->containers[r->n_containers++] = (struct pod_container){
        .is_init = is_init, .is_sidecar = is_sidecar, .requests = own.items, .n_requests = own.n};
    return 0;
}

static int read_containers(struct pod_reader *r, struct error *err)
{
    static const struct {
        const char *key;
        bool is_init;
    } lists[] = {{"initContainers", true}, {"containers", false}};
    size_t total = 0;

    for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
        total += json_array_size(json_object_get(r->spec, lists[l].key));
    if (total > MAX_CONTAINERS)
        return error_set(err, ERR_LIMIT, "more than %d containers", MAX_CONTAINERS);
    r->containers = arena_array(r->arena, struct pod_container, total);
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        json_t *container;
        size_t i;

        json_array_foreach(json_object_get(r->spec, lists[l].key), i, container)
        {
            if (read_container(r, container, lists[l].is_init, err) < 0)
                return error_in(err, "%s[%zu]", lists[l].key, i);
        }
    }
    return 0;
}

/* ---- the whole pod's amounts ---- */

static bool is_pod_level(const char *resource)
{
    return strcmp(resource, "cpu") == 0 || strcmp(resource, "memory") == 0 || strncmp(resource, "hugepages-", 10) == 0;
}

/* Amounts stated in spec.resources replace the sum; a limit alone counts where no container asks for the resource. */
static int apply_pod_level(struct pod_reader *r, struct amounts *total, struct error *err)
{
    const json_t *resources = json_object_get(r->spec, "resources");
    struct amounts requests = {0}, limits = {0};

    if (read_amounts(json_object_get(resources, "requests"), &requests, r->arena, err) < 0)
        return error_in(err, "resources.requests");
    if (read_amounts(json_object_get(resources, "limits"), &limits, r->arena, err) < 0)
        return error_in(err, "resources.limits");
    for (size_t i = 0; i < limits.n; i++) {
        const char *name = limits.items[i].name;

        if (!amounts_find(&requests, name) && !amounts_find(total, name))
            amounts_slot(&requests, name, r->arena)->amount = limits.items[i].amount;
    }
    for (size_t i = 0; i < requests.n; i++)
        if (is_pod_level(requests.items[i].name))
            amounts_slot(total, requests.items[i].name, r->arena)->amount = requests.items[i].amount;
    return 0;
}

static int read_total(struct pod_reader *r, struct error *err)
{
    struct amounts total = {0}, overhead = {0};
    size_t kept = 0;

    amounts_add(&total, &r->running, r->arena);
    amounts_max(&total, &r->start, r->arena);
    if (apply_pod_level(r, &total, err) < 0)
        return -1;
    if (read_amounts(json_object_get(r->spec, "overhead"), &overhead, r->arena, err) < 0)
        return error_in(err, "overhead");
    amounts_add(&total, &overhead, r->arena);
    amounts_sort(&total);
    for (size_t i = 0; i < total.n; i++)
        if (total.items[i].amount > 0)
            total.items[kept++] = total.items[i];
    r->demand->requests = total.items;
    r->demand->n_requests = kept;
    return 0;
}

/* ---- where it may go ---- */

static const struct {
    const char *name;
    enum label_operator op;
} label_operators[] = {
    {"In", LABEL_IN}, {"NotIn", LABEL_NOT_IN}, {"Exists", LABEL_EXISTS}, {"DoesNotExist", LABEL_DOES_NOT_EXIST},
    {"Gt", LABEL_GT}, {"Lt", LABEL_LT},
};

static int read_rule(const json_t *json, bool is_field, struct arena *arena, struct label_rule *out, struct error *err)
{
    const char *op = json_string_value(json_object_get(json, "operator"));
    const json_t *values = json_object_get(json, "values");
    const char **copies;

    *out = (struct label_rule){.key = copied(arena, json, "key", ""), .is_field = is_field, .op = LABEL_BROKEN};
    for (size_t i = 0; op && i < ARRAY_SIZE(label_operators); i++)
        if (strcmp(op, label_operators[i].name) == 0)
            out->op = label_operators[i].op;
    if (out->op == LABEL_BROKEN)
        return error_field(err, "operator", "'%s' is none of In, NotIn, Exists, DoesNotExist, Gt, Lt", op ? op : "");
    if (is_field && (strcmp(out->key, "metadata.name") != 0 || out->op > LABEL_NOT_IN))
        return error_field(err, "key", "only metadata.name with In or NotIn can be asked of a node's fields");
    if (json_array_size(values) > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d values", MAX_RULES);
    copies = arena_array(arena, const char *, json_array_size(values));
    for (size_t i = 0; i < json_array_size(values); i++) {
        const char *text = json_string_value(json_array_get(values, i));

        if (!text)
            return error_field(err, "values", "must be strings");
        copies[i] = arena_strdup(arena, text);
    }
    out->values = copies;
    out->n_values = json_array_size(values);
    return 0;
}

static int read_term(const json_t *json, struct arena *arena, struct node_term *out, struct error *err)
{
    static const struct {
        const char *key;
        bool is_field;
    } lists[] = {{"matchExpressions", false}, {"matchFields", true}};
    struct label_rule *rules;
    size_t total = 0;

    for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
        total += json_array_size(json_object_get(json, lists[l].key));
    if (total > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d expressions", MAX_RULES);
    rules = arena_array(arena, struct label_rule, total);
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        json_t *rule;
        size_t i;

        json_array_foreach(json_object_get(json, lists[l].key), i, rule)
        {
            if (read_rule(rule, lists[l].is_field, arena, &rules[out->n_rules++], err) < 0)
                return error_in(err, "%s[%zu]", lists[l].key, i);
        }
    }
    out->rules = rules;
    return 0;
}

static int read_affinity(struct pod_reader *r, struct error *err)
{
    const json_t *affinity = json_object_get(json_object_get(r->spec, "affinity"), "nodeAffinity");
    const json_t *required = json_object_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    const json_t *terms = json_object_get(required, "nodeSelectorTerms");
    struct node_term *out;

    if (!json_is_object(required))
        return 0;
    if (json_array_size(terms) > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d node selector terms", MAX_RULES);
    out = arena_array(r->arena, struct node_term, json_array_size(terms));
    for (size_t i = 0; i < json_array_size(terms); i++)
        if (read_term(json_array_get(terms, i), r->arena, &out[i], err) < 0)
            return error_in(
                err, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[%zu]", i);
    r->demand->has_terms = true;
    r->demand->terms = out;
    r->demand->n_terms = json_array_size(terms);
    return 0;
}

static int compare_rules(const void *a, const void *b)
{
    return strcmp(((const struct label_rule *)a)->key, ((const struct label_rule *)b)->key);
}

static int read_node_selector(struct pod_reader *r, struct error *err)
{
    json_t *selector = json_object_get(r->spec, "nodeSelector");
    struct label_rule *rules = arena_array(r->arena, struct label_rule, json_object_size(selector));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (json_object_size(selector) > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d labels in nodeSelector", MAX_RULES);
    json_object_foreach(selector, key, value)
    {
        const char **text = arena_new(r->arena, const char *);

        if (!json_is_string(value))
            return error_field(err, "nodeSelector", "the value of %s must be a string", key);
        *text = arena_strdup(r->arena, json_string_value(value));
        rules[n++] = (struct label_rule){
            .key = arena_strdup(r->arena, key), .op = LABEL_IN, .values = (const char *const *)text, .n_values = 1};
    }
    if (n > 1)
        qsort(rules, n, sizeof(*rules), compare_rules);
    r->demand->selector = rules;
    r->demand->n_selector = n;
    return 0;
}

static int read_tolerations(struct pod_reader *r, struct error *err)
{
    const json_t *list = json_object_get(r->spec, "tolerations");
    struct pod_toleration *out;

    if (json_array_size(list) > MAX_RULES)
        return error_set(err, ERR_LIMIT, "more than %d tolerations", MAX_RULES);
    out = arena_array(r->arena, struct pod_toleration, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i);
        const char *op = copied(r->arena, json, "operator", "Equal");

        out[i] = (struct pod_toleration){.key = copied(r->arena, json, "key", ""),
                                         .value = copied(r->arena, json, "value", ""),
                                         .effect = copied(r->arena, json, "effect", ""),
                                         .op = strcmp(op, "Equal") == 0    ? TOLERATION_EQUAL
                                               : strcmp(op, "Exists") == 0 ? TOLERATION_EXISTS
                                                                           : TOLERATION_OTHER};
    }
    r->demand->tolerations = out;
    r->demand->n_tolerations = json_array_size(list);
    return 0;
}

/* ---- what is not simulated ---- */

static int refuse_required_affinity(const json_t *spec, const char *kind, struct error *err)
{
    static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
    char field[128];

    if (json_array_size(json_object_get(json_object_get(json_object_get(spec, "affinity"), kind), required)) == 0)
        return 0;
    snprintf(field, sizeof(field), "affinity.%s.%s", kind, required);
    return error_field(err, field,
                       "required %s between pods cannot be simulated for a gang; state it as a gang constraint or as a "
                       "preference",
                       strcmp(kind, "podAffinity") == 0 ? "affinity" : "anti-affinity");
}

static int refuse_unsimulated(const json_t *spec, struct error *err)
{
    const json_t *spread = json_object_get(spec, "topologySpreadConstraints");

    if (refuse_required_affinity(spec, "podAffinity", err) < 0 ||
        refuse_required_affinity(spec, "podAntiAffinity", err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(spread); i++) {
        const char *action = json_string_value(json_object_get(json_array_get(spread, i), "whenUnsatisfiable"));
        char field[64];

        if (action && strcmp(action, "ScheduleAnyway") == 0)
            continue;
        snprintf(field, sizeof(field), "topologySpreadConstraints[%zu]", i);
        return error_field(err, field,
                           "a topology spread that must hold cannot be simulated for a gang; use whenUnsatisfiable: "
                           "ScheduleAnyway");
    }
    return 0;
}

static int read_placement_rules(struct pod_reader *r, struct error *err)
{
    const char *node = json_string_value(json_object_get(r->spec, "nodeName"));

    if (refuse_unsimulated(r->spec, err) < 0)
        return -1;
    r->demand->node_name = node && *node ? arena_strdup(r->arena, node) : NULL;
    if (read_node_selector(r, err) < 0 || read_affinity(r, err) < 0)
        return -1;
    return read_tolerations(r, err);
}

static int read_spec(struct pod_reader *r, enum pod_use use, struct error *err)
{
    if (read_containers(r, err) < 0 || read_total(r, err) < 0)
        return -1;
    if (use == POD_MEMBER && read_placement_rules(r, err) < 0)
        return -1;
    r->demand->ports = r->ports;
    r->demand->n_ports = r->n_ports;
    r->demand->containers = r->containers;
    r->demand->n_containers = r->n_containers;
    return 0;
}

int pod_demand_parse(const json_t *pod, enum pod_use use, struct arena *arena, struct pod_demand **out,
                     struct error *err)
{
    struct pod_reader r = {.spec = json_object_get(pod, "spec"), .arena = arena};

    if (!json_is_object(r.spec))
        return error_field(err, "spec", "must be an object");
    r.demand = arena_new(arena, struct pod_demand);
    if (read_spec(&r, use, err) < 0)
        return error_in(err, "spec");
    *out = r.demand;
    return 0;
}

int64_t pod_demand_amount(const struct pod_demand *demand, const char *resource)
{
    for (size_t i = 0; i < demand->n_requests; i++)
        if (strcmp(demand->requests[i].name, resource) == 0)
            return demand->requests[i].amount;
    return 0;
}

bool host_ports_clash(const struct host_port *a, const struct host_port *b)
{
    bool same_address = strcmp(a->ip, b->ip) == 0 || strcmp(a->ip, "0.0.0.0") == 0 || strcmp(b->ip, "0.0.0.0") == 0;

    return same_address && a->port == b->port && strcmp(a->protocol, b->protocol) == 0;
}
