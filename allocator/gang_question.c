/* The question, read once: members that are alike become one kind, their claims become shapes, and every distinct way
 * to want a device becomes one ask, however many groups share it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

#define MAX_SHARED_USERS 256 /* entries of a claim's status.reservedFor */

static void refuse(struct gang *gang, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void refuse(struct gang *gang, const char *fmt, ...)
{
    va_list args;

    if (gang->refusal)
        return;
    va_start(args, fmt);
    gang->refusal = arena_vprintf(gang->arena, fmt, args);
    va_end(args);
}

static bool listed(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

bool gang_constraint_covers_group(const struct gang_constraint *constraint, const char *group)
{
    return constraint->n_groups == 0 || listed(constraint->groups, constraint->n_groups, group);
}

bool gang_constraint_covers_request(const struct gang_constraint *constraint, const char *request, const char *sub)
{
    char both[160];

    if (constraint->n_requests == 0 || listed(constraint->requests, constraint->n_requests, request))
        return true;
    snprintf(both, sizeof(both), "%s/%s", request, sub);
    return listed(constraint->requests, constraint->n_requests, both);
}

/* ---- attributes, resources, ports: lists of what the gang speaks of ---- */

static uint32_t attribute_index(struct gang *gang, const char *name)
{
    const char **grown;

    for (size_t i = 0; i < gang->n_attributes; i++)
        if (strcmp(gang->attributes[i], name) == 0)
            return (uint32_t)i;
    grown = arena_array(&gang->work, const char *, gang->n_attributes + 1);
    if (gang->n_attributes)
        memcpy(grown, gang->attributes, gang->n_attributes * sizeof(*grown));
    grown[gang->n_attributes] = name;
    gang->attributes = grown;
    return (uint32_t)gang->n_attributes++;
}

static void add_resource(struct gang *gang, const char *name)
{
    const char **grown;

    if (listed(gang->resources, gang->n_resources, name))
        return;
    grown = arena_array(&gang->work, const char *, gang->n_resources + 1);
    if (gang->n_resources)
        memcpy(grown, gang->resources, gang->n_resources * sizeof(*grown));
    grown[gang->n_resources++] = name;
    gang->resources = grown;
}

static void add_port(struct gang *gang, const struct host_port *port)
{
    const struct host_port **grown;

    for (size_t i = 0; i < gang->n_ports; i++)
        if (gang->ports[i]->port == port->port && host_ports_clash(gang->ports[i], port) &&
            strcmp(gang->ports[i]->ip ? gang->ports[i]->ip : "", port->ip ? port->ip : "") == 0)
            return;
    grown = arena_array(&gang->work, const struct host_port *, gang->n_ports + 1);
    if (gang->n_ports)
        memcpy(grown, gang->ports, gang->n_ports * sizeof(*grown));
    grown[gang->n_ports++] = port;
    gang->ports = grown;
}

/* ---- asks ---- */

static void digest_name(struct digest *digest, const char *text)
{
    digest_text(digest, text ? text : "", text ? strlen(text) : 0);
}

static struct digest ask_digest(const struct claim_ask *ask, uint64_t covered)
{
    struct digest d = {1, 2};
    BUF amount = {0};

    digest_add(&d, covered);
    digest_add(&d, (uint64_t)ask->mode * 2 + ask->admin_access);
    digest_name(&d, ask->class_name);
    digest_add(&d, ask->n_selectors);
    for (size_t i = 0; i < ask->n_selectors; i++)
        digest_name(&d, ask->selectors[i]);
    digest_add(&d, ask->n_tolerations);
    for (size_t i = 0; i < ask->n_tolerations; i++) {
        digest_name(&d, ask->tolerations[i].key);
        digest_name(&d, ask->tolerations[i].op_text);
        digest_name(&d, ask->tolerations[i].value);
        digest_name(&d, ask->tolerations[i].effect_text);
    }
    digest_add(&d, ask->n_capacity);
    for (size_t i = 0; i < ask->n_capacity; i++) {
        buf_clear(&amount);
        quantity_format_to(&ask->capacity[i].amount, &amount);
        digest_name(&d, ask->capacity[i].key);
        digest_name(&d, buf_str(&amount));
    }
    return d;
}

static uint32_t ask_number(struct gang *gang, const struct gang_unit *unit, size_t index, uint64_t covered)
{
    const struct shape_ask *asked = shape_ask(unit->shape, index);
    struct digest digest = ask_digest(asked->ask, covered);

    for (size_t i = 0; i < gang->n_asks; i++)
        if (digest_eq(gang->asks[i].digest, digest))
            return (uint32_t)i;
    mem_grow(gang->asks, gang->n_asks, gang->cap_asks);
    gang->asks[gang->n_asks] = (struct gang_ask){.unit = unit,
                                                 .index = index,
                                                 .ask = asked->ask,
                                                 .device_class = asked->device_class,
                                                 .covered = covered,
                                                 .digest = digest,
                                                 .all = asked->ask->mode == MODE_ALL,
                                                 .admin = asked->ask->admin_access};
    return (uint32_t)gang->n_asks++;
}

/* Bits of the spec's attribute constraints that cover a request of a group (of any group that uses a shared claim). */
static uint64_t covered_by(const struct gang *gang, uint64_t constraints, const char *request, const char *sub)
{
    uint64_t covered = 0;

    for (size_t i = 0; i < gang->spec->n_constraints; i++)
        if ((constraints >> i & 1) && gang->spec->constraints[i].kind != GANG_MATCH_NODE_LABEL &&
            gang_constraint_covers_request(&gang->spec->constraints[i], request, sub))
            covered |= (uint64_t)1 << i;
    return covered;
}

/* ---- variants ---- */

/* Where the asks of a unit's shape are: first[claim][request] + alternative. */
struct ask_table {
    size_t **first;
};

static struct ask_table ask_table_make(struct gang *gang, const struct gang_unit *unit)
{
    struct ask_table table = {arena_array(&gang->work, size_t *, unit->n_claims)};

    for (size_t c = 0; c < unit->n_claims; c++)
        table.first[c] = arena_array(&gang->work, size_t, unit->claims[c]->n_requests);
    for (size_t i = 0; i < shape_n_asks(unit->shape); i++) {
        const struct shape_ask *ask = shape_ask(unit->shape, i);

        if (ask->alternative == 0)
            table.first[ask->claim][ask->request] = i;
    }
    return table;
}

static bool constraint_names(const struct claim_constraint *constraint, const struct claim_request *request,
                             size_t alternative)
{
    char both[160];

    if (constraint->n_requests == 0 || listed(constraint->requests, constraint->n_requests, request->name))
        return true;
    if (!request->is_list)
        return false;
    snprintf(both, sizeof(both), "%s/%s", request->name, request->asks[alternative].name);
    return listed(constraint->requests, constraint->n_requests, both);
}

static void fill_constraints(struct gang *gang, const struct claim *claim, const uint8_t *alternatives,
                             struct gs_claim *out)
{
    struct gs_constraint *constraints = arena_array(&gang->work, struct gs_constraint, claim->n_constraints);

    for (size_t i = 0; i < claim->n_constraints; i++) {
        struct gs_constraint one = {.distinct = claim->constraints[i].kind == CONSTRAINT_DISTINCT,
                                    .attribute = attribute_index(gang, claim->constraints[i].attribute)};

        for (size_t r = 0; r < claim->n_requests && r < 32; r++)
            if (constraint_names(&claim->constraints[i], &claim->requests[r], alternatives[r]))
                one.requests |= BIT(r);
        if (one.requests)
            constraints[out->n_constraints++] = one;
    }
    out->constraints = constraints;
}

/* Distinct constraints of the gang get numbers of their own, in the order of the spec. */
static uint32_t distinct_bits(const struct gang *gang, uint64_t covered)
{
    uint32_t bits = 0, number = 0;

    for (size_t i = 0; i < gang->spec->n_constraints; i++)
        if (gang->spec->constraints[i].kind == GANG_DISTINCT_ATTRIBUTE) {
            if (covered >> i & 1)
                bits |= BIT(number);
            number++;
        }
    return bits;
}

static struct gs_claim variant_claim(struct gang *gang, const struct gang_unit *unit, size_t c,
                                     const struct ask_table *table, const uint8_t *alternatives)
{
    const struct claim *claim = unit->claims[c];
    struct gs_request *requests = arena_array(&gang->work, struct gs_request, claim->n_requests);
    uint32_t *distinct = arena_array(&gang->work, uint32_t, claim->n_requests);
    struct gs_claim out = {.requests = requests, .n_requests = claim->n_requests, .gang_distinct = distinct};

    for (size_t r = 0; r < claim->n_requests; r++) {
        uint32_t ask = unit->asks[table->first[c][r] + alternatives[r]];
        const struct claim_ask *asked = &claim->requests[r].asks[alternatives[r]];

        requests[r] = (struct gs_request){.ask = ask,
                                          .count = asked->count > CLAIM_MAX_RESULTS ? CLAIM_MAX_RESULTS + 1
                                                   : asked->count < 0               ? 0
                                                                                    : (uint32_t)asked->count,
                                          .all = asked->mode == MODE_ALL,
                                          .admin = asked->admin_access};
        distinct[r] = distinct_bits(gang, gang->asks[ask].covered);
    }
    fill_constraints(gang, claim, alternatives, &out);
    return out;
}

static bool next_alternatives(const struct gang_unit *unit, uint8_t *alternatives, size_t n_requests)
{
    size_t at = n_requests;

    for (size_t c = unit->n_claims; c-- > 0;)
        for (size_t r = unit->claims[c]->n_requests; r-- > 0;) {
            at--;
            if ((size_t)alternatives[at] + 1 < unit->claims[c]->requests[r].n_asks) {
                alternatives[at]++;
                return true;
            }
            alternatives[at] = 0;
        }
    return false;
}

static void fill_variants(struct gang *gang, struct gang_unit *unit)
{
    struct ask_table table = ask_table_make(gang, unit);
    size_t n_requests = 0, cap = 0;
    const uint8_t **choices = arena_array(&gang->work, const uint8_t *, GANG_MAX_VARIANTS);
    uint8_t *alternatives;
    bool more = true;

    for (size_t c = 0; c < unit->n_claims; c++)
        n_requests += unit->claims[c]->n_requests;
    alternatives = arena_array(&gang->work, uint8_t, n_requests + 1);
    unit->variants = arena_array(&gang->work, struct gs_variant, GANG_MAX_VARIANTS);
    for (cap = 0; more && cap < GANG_MAX_VARIANTS; cap++) {
        uint8_t *copy = arena_array(&gang->work, uint8_t, n_requests + 1);
        struct gs_claim *claims = arena_array(&gang->work, struct gs_claim, unit->n_claims);
        const uint8_t *at = copy;

        memcpy(copy, alternatives, n_requests);
        for (size_t c = 0; c < unit->n_claims; at += unit->claims[c]->n_requests, c++)
            claims[c] = variant_claim(gang, unit, c, &table, at);
        unit->variants[cap] = (struct gs_variant){.claims = claims, .n_claims = unit->n_claims, .id = (uint32_t)cap};
        choices[cap] = copy;
        more = next_alternatives(unit, alternatives, n_requests);
    }
    unit->n_variants = cap;
    unit->alternatives = choices;
    unit->is_cut = more;
}

/* ---- units ---- */

static void check_admin(struct gang *gang, const struct claim *claim)
{
    const struct namespace_info *ns = snapshot_find_namespace(gang->snapshot, gang->spec->ns);
    bool allowed = false;

    for (size_t i = 0; ns && i < ns->n_labels; i++)
        if (strcmp(ns->labels[i].key, "resource.kubernetes.io/admin-access") == 0 &&
            strcmp(ns->labels[i].value, "true") == 0)
            allowed = true;
    for (size_t r = 0; r < claim->n_requests && !allowed; r++)
        if (claim->requests[r].n_asks && claim->requests[r].asks[0].admin_access)
            refuse(gang,
                   "request %s asks for adminAccess, which namespace %s does not allow (label "
                   "resource.kubernetes.io/admin-access is not \"true\")",
                   claim->requests[r].name, gang->spec->ns);
}

static struct gang_unit *unit_make(struct gang *gang, const struct claim *const *claims, const size_t *entries,
                                   size_t n_claims, uint64_t constraints)
{
    struct gang_unit *unit = arena_new(&gang->work, struct gang_unit);
    const char *problem;
    size_t n_asks;

    unit->claims = claims;
    unit->entries = entries;
    unit->n_claims = n_claims;
    unit->shape = shape_new(gang->snapshot, claims, n_claims);
    mem_grow(gang->units, gang->n_units, gang->cap_units);
    gang->units[gang->n_units++] = unit;
    problem = shape_problem(unit->shape);
    if (problem) {
        refuse(gang, "%s", problem);
        return unit;
    }
    n_asks = shape_n_asks(unit->shape);
    unit->asks = arena_array(&gang->work, uint32_t, n_asks);
    for (size_t i = 0; i < n_asks; i++) {
        const struct shape_ask *ask = shape_ask(unit->shape, i);
        const struct claim_request *request = &claims[ask->claim]->requests[ask->request];

        unit->asks[i] = ask_number(gang, unit, i, covered_by(gang, constraints, request->name, ask->ask->name));
    }
    for (size_t c = 0; c < n_claims; c++)
        check_admin(gang, claims[c]);
    fill_variants(gang, unit);
    return unit;
}

/* ---- what makes members alike ---- */

static void add_json(struct buf *text, const json_t *value)
{
    char *dumped = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;

    buf_adds(text, dumped ? dumped : "-");
    buf_addc(text, '\n');
    free(dumped);
}

static void add_containers(struct buf *text, const json_t *list)
{
    json_t *container;
    size_t i;

    json_array_foreach (list, i, container) {
        add_json(text, json_object_get(container, "resources"));
        add_json(text, json_object_get(container, "restartPolicy"));
        add_json(text, json_object_get(container, "ports"));
    }
    buf_addc(text, '|');
}

static const char *kind_text(struct gang *gang, size_t g)
{
    static const char *const keys[] = {"nodeName",  "nodeSelector", "affinity",    "tolerations",
                                       "resources", "overhead",     "hostNetwork", "topologySpreadConstraints"};
    const struct gang_group *group = &gang->spec->groups[g];
    const json_t *spec = json_object_get(group->pod, "spec");
    const char *out;
    BUF text = {0};

    if (gang->spec->same_alternative)
        buf_addf(&text, "group %zu\n", g);
    for (size_t i = 0; i < gang->spec->n_constraints; i++)
        buf_addc(&text, gang_constraint_covers_group(&gang->spec->constraints[i], group->name) ? '1' : '0');
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        add_json(&text, json_object_get(spec, keys[i]));
    add_containers(&text, json_object_get(spec, "initContainers"));
    add_containers(&text, json_object_get(spec, "containers"));
    for (size_t c = 0; c < group->n_claims; c++) {
        const struct gang_claim *claim = &group->claims[c];

        buf_addf(&text, "%d %zu %s ", (int)claim->source, claim->shared, claim->name ? claim->name : "");
        if (claim->source == GANG_CLAIM_OWN)
            add_json(&text, json_object_get(claim->object, "spec"));
    }
    out = arena_strdup(&gang->work, buf_str(&text));
    return out;
}

/* ---- kinds ---- */

static uint64_t constraints_of(const struct gang *gang, const char *group)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < gang->spec->n_constraints; i++)
        if (gang_constraint_covers_group(&gang->spec->constraints[i], group) &&
            !(gang->lift && gang->lift->constraint == i))
            bits |= (uint64_t)1 << i;
    return bits;
}

static const struct claim *own_claim(struct gang *gang, size_t g, size_t c)
{
    const struct gang_claim *entry = &gang->spec->groups[g].claims[c];
    struct error err = {0};
    struct claim *claim;

    if (!entry->object) {
        refuse(gang, "the ResourceClaimTemplate %s of group %s does not exist in namespace %s", entry->name,
               gang->spec->groups[g].name, gang->spec->ns);
        return NULL;
    }
    if (claim_parse(entry->object, snapshot_features(gang->snapshot), true, gang->arena, &claim, &err) < 0) {
        refuse(gang, "the ResourceClaimTemplate %s is not valid: %s%s%s", entry->name ? entry->name : entry->pod_claim,
               err.field, err.field[0] ? ": " : "", err.text);
        return NULL;
    }
    if (gang->lift)
        gang_lift_claim(gang->lift, claim, gang->arena);
    return claim;
}

static void add_allocated(struct gang *gang, struct gang_kind *kind, const struct cluster_claim *claim)
{
    const struct cluster_claim **grown = arena_array(&gang->work, const struct cluster_claim *, kind->n_allocated + 1);

    if (kind->n_allocated)
        memcpy(grown, kind->allocated, kind->n_allocated * sizeof(*grown));
    grown[kind->n_allocated++] = claim;
    kind->allocated = grown;
}

/* A claim of the cluster: where it has devices it decides on nodes, else it gets them together with the gang. */
static void use_existing(struct gang *gang, struct gang_kind *kind, const char *name)
{
    const struct cluster_claim *claim = snapshot_find_claim(gang->snapshot, gang->spec->ns, name);
    const struct claim **claims;

    if (!claim) {
        refuse(gang, "the ResourceClaim %s does not exist in namespace %s", name, gang->spec->ns);
        return;
    }
    if (claim->is_allocated) {
        add_allocated(gang, kind, claim);
        return;
    }
    for (size_t i = 0; i < gang->n_shared; i++)
        if (gang->shared[i].existing && strcmp(gang->shared[i].existing, name) == 0) {
            kind->shared |= (uint64_t)1 << i;
            return;
        }
    if (!claim->spec || gang->n_shared == GANG_MAX_KINDS) {
        refuse(gang, "the ResourceClaim %s cannot be used by this gang", name);
        return;
    }
    claims = arena_new(&gang->work, const struct claim *);
    claims[0] = claim->spec;
    gang->shared[gang->n_shared] =
        (struct gang_shared_claim){.unit = unit_make(gang, claims, NULL, 1, constraints_of(gang, "")),
                                   .spec_index = SIZE_MAX,
                                   .existing = arena_strdup(&gang->work, name)};
    kind->shared |= (uint64_t)1 << gang->n_shared++;
}

static int read_kind(struct gang *gang, struct gang_kind *kind, struct error *err)
{
    const struct gang_group *group = &gang->spec->groups[kind->first_group];

    if (pod_rules_parse(group->pod, snapshot_symbols(gang->snapshot), gang->arena, &kind->rules, err) < 0)
        return error_in(err, "pod");
    if (gang->lift)
        gang_lift_pod(gang->lift, &kind->rules, gang->arena);
    for (size_t i = 0; i < kind->rules.demand.n_resources; i++)
        add_resource(gang, kind->rules.demand.resources[i].name);
    for (size_t i = 0; i < kind->rules.demand.n_ports; i++)
        add_port(gang, &kind->rules.demand.ports[i]);
    kind->label_constraints = constraints_of(gang, group->name);
    for (size_t c = 0; c < group->n_claims; c++) {
        const struct gang_claim *claim = &group->claims[c];

        if (claim->source == GANG_CLAIM_EXISTING)
            use_existing(gang, kind, claim->name);
        if (claim->source == GANG_CLAIM_SHARED && claim->shared >= gang->spec->n_shared)
            return error_field(err, "claims", "entry %s names a shared claim that is not there", claim->pod_claim);
        if (claim->source == GANG_CLAIM_SHARED)
            kind->shared |= (uint64_t)1 << claim->shared;
    }
    return 0;
}

static int find_kinds(struct gang *gang, struct error *err)
{
    gang->kinds = arena_array(gang->arena, struct gang_kind, GANG_MAX_KINDS);
    gang->kind_of = arena_array(&gang->work, size_t, gang->spec->n_groups);
    for (size_t g = 0; g < gang->spec->n_groups; g++) {
        const char *text = kind_text(gang, g);
        size_t k = 0;

        while (k < gang->n_kinds && strcmp(gang->kinds[k].text, text) != 0)
            k++;
        if (k == GANG_MAX_KINDS)
            return error_set(err, ERR_LIMIT, "a gang may have at most %d different kinds of members", GANG_MAX_KINDS);
        if (k == gang->n_kinds) {
            gang->kinds[k] = (struct gang_kind){.first_group = g, .text = text};
            gang->n_kinds++;
            if (read_kind(gang, &gang->kinds[k], err) < 0)
                return error_in(err, "groups[%zu]", g);
        }
        if (gang->spec->groups[g].n_members > UINT32_MAX / 2 - gang->kinds[k].n_members)
            return error_set(err, ERR_LIMIT, "group %s has too many members", gang->spec->groups[g].name);
        gang->kinds[k].n_members += (uint32_t)gang->spec->groups[g].n_members;
        gang->kind_of[g] = k;
    }
    return 0;
}

/* ---- extended resources ---- */

static int find_mapped(struct gang *gang, struct error *err)
{
    if (!feature_on(snapshot_features(gang->snapshot), FEATURE_EXTENDED_RESOURCES))
        return 0;
    gang->mapped = arena_array(&gang->work, const char *, gang->n_resources);
    for (size_t i = 0; i < gang->n_resources; i++)
        if (extended_class(gang->snapshot, gang->resources[i]))
            gang->mapped[gang->n_mapped++] = gang->resources[i];
    if (((size_t)1 << gang->n_mapped) > GANG_MAX_FORMS)
        return error_set(err, ERR_LIMIT, "more than 4 extended resources that device classes serve");
    return 0;
}

/* Bit i: the node does not offer mapped[i] itself, so that devices must serve it. */
uint32_t gang_form_of(const struct gang *gang, const struct node_info *node)
{
    uint32_t form = 0;

    for (size_t i = 0; i < gang->n_mapped; i++)
        if (node_allocatable(node, gang->mapped[i]) <= 0)
            form |= BIT(i);
    return form;
}

static const int64_t *kind_demand(struct gang *gang, const struct gang_kind *kind, uint32_t form)
{
    int64_t *demand = arena_array(&gang->work, int64_t, gang->n_resources);

    for (size_t i = 0; i < gang->n_resources; i++) {
        if (gang->lift && gang->lift->resource && strcmp(gang->lift->resource, gang->resources[i]) == 0)
            continue;
        for (size_t m = 0; m < gang->n_mapped; m++)
            if ((form >> m & 1) && strcmp(gang->mapped[m], gang->resources[i]) == 0)
                goto served;
        for (size_t k = 0; k < kind->rules.demand.n_resources; k++)
            if (strcmp(kind->rules.demand.resources[k].name, gang->resources[i]) == 0)
                demand[i] = scheduler_units(gang->resources[i], &kind->rules.demand.resources[k].amount);
    served:;
    }
    return demand;
}

static void fill_form(struct gang *gang, struct gang_kind *kind, uint32_t form, const struct node *node)
{
    const struct gang_group *group = &gang->spec->groups[kind->first_group];
    const struct claim **claims = arena_array(&gang->work, const struct claim *, group->n_claims + 1);
    size_t *entries = arena_array(&gang->work, size_t, group->n_claims + 1);
    const struct extended_mapping *mappings;
    size_t n_mappings, n = 0;
    struct claim *implicit = NULL;

    for (size_t c = 0; c < group->n_claims; c++) {
        if (group->claims[c].source != GANG_CLAIM_OWN)
            continue;
        claims[n] = own_claim(gang, kind->first_group, c);
        entries[n++] = c;
        if (gang->refusal)
            return;
    }
    if (form && node)
        extended_claim(gang->snapshot, node, json_object_get(group->pod, "spec"), gang->arena, &implicit, &mappings,
                       &n_mappings);
    if (implicit) {
        claims[n] = implicit;
        entries[n++] = SIZE_MAX;
    }
    kind->forms[form] = unit_make(gang, claims, entries, n, constraints_of(gang, group->name));
    kind->demand[form] = kind_demand(gang, kind, form);
}

/* Every form that some node has; form 0 in any case. */
static void fill_forms(struct gang *gang)
{
    const struct node *example[GANG_MAX_FORMS] = {NULL};
    bool exists[GANG_MAX_FORMS] = {true};
    const uint32_t *slots;
    size_t n_slots;

    slots = snapshot_sorted_nodes(gang->snapshot, &n_slots);
    for (size_t i = 0; gang->n_mapped && i < n_slots; i++) {
        const struct node *node = snapshot_node(gang->snapshot, slots[i]);
        uint32_t form = gang_form_of(gang, node->info);

        if (!example[form])
            example[form] = node;
        exists[form] = true;
    }
    for (size_t k = 0; k < gang->n_kinds; k++)
        for (uint32_t form = 0; form < GANG_MAX_FORMS && !gang->refusal; form++)
            if (exists[form])
                fill_form(gang, &gang->kinds[k], form, example[form]);
}

/* ---- shared claims ---- */

static uint64_t shared_constraints(const struct gang *gang, size_t shared)
{
    uint64_t bits = 0;

    for (size_t g = 0; g < gang->spec->n_groups; g++)
        for (size_t c = 0; c < gang->spec->groups[g].n_claims; c++)
            if (gang->spec->groups[g].claims[c].source == GANG_CLAIM_SHARED &&
                gang->spec->groups[g].claims[c].shared == shared)
                bits |= constraints_of(gang, gang->spec->groups[g].name);
    return bits;
}

static const char *object_name(const json_t *object)
{
    const char *name = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));

    return name ? name : "";
}

static int read_shared(struct gang *gang, struct error *err)
{
    gang->shared = arena_array(&gang->work, struct gang_shared_claim, GANG_MAX_KINDS);
    if (gang->spec->n_shared > GANG_MAX_KINDS)
        return error_set(err, ERR_LIMIT, "a gang may share at most %d claims", GANG_MAX_KINDS);
    for (size_t i = 0; i < gang->spec->n_shared; i++) {
        const struct claim **claims = arena_new(&gang->work, const struct claim *);
        struct error why = {0};
        struct claim *claim;

        gang->n_shared = i + 1;
        gang->shared[i].spec_index = i;
        if (claim_parse(gang->spec->shared[i], snapshot_features(gang->snapshot), true, gang->arena, &claim, &why) <
            0) {
            refuse(gang, "the ResourceClaim %s is not valid: %s%s%s", object_name(gang->spec->shared[i]), why.field,
                   why.field[0] ? ": " : "", why.text);
            continue;
        }
        if (gang->lift)
            gang_lift_claim(gang->lift, claim, gang->arena);
        claims[0] = claim;
        gang->shared[i].unit = unit_make(gang, claims, NULL, 1, shared_constraints(gang, i));
    }
    return 0;
}

static void check_shared_users(struct gang *gang)
{
    for (size_t s = 0; s < gang->n_shared; s++) {
        size_t users = 0;

        for (size_t k = 0; k < gang->n_kinds; k++)
            if (gang->kinds[k].shared >> s & 1)
                users += gang->kinds[k].n_members;
        if (users > MAX_SHARED_USERS)
            refuse(gang, "%zu members share one claim; Kubernetes allows %d", users, MAX_SHARED_USERS);
    }
}

/* ---- the whole ---- */

static int check_constraints(struct gang *gang, struct error *err)
{
    const struct gang_spec *spec = gang->spec;

    if (spec->n_constraints > GANG_MAX_DISTINCT)
        return error_set(err, ERR_LIMIT, "a gang may have at most %d constraints", GANG_MAX_DISTINCT);
    gang->constraint_attribute = arena_array(&gang->work, uint32_t, spec->n_constraints);
    for (size_t i = 0; i < spec->n_constraints; i++) {
        const struct gang_constraint *constraint = &spec->constraints[i];

        if (!constraint->key || !*constraint->key)
            return error_field(err, "constraints", "entry %zu has no key", i);
        if (constraint->kind != GANG_MATCH_NODE_LABEL)
            gang->constraint_attribute[i] = attribute_index(gang, constraint->key);
        for (size_t g = 0; g < constraint->n_groups; g++) {
            bool known = false;

            for (size_t k = 0; k < spec->n_groups; k++)
                known = known || strcmp(spec->groups[k].name, constraint->groups[g]) == 0;
            if (!known)
                return error_field(err, "constraints", "entry %zu names group %s, which does not exist", i,
                                   constraint->groups[g]);
        }
    }
    return 0;
}

int gang_read(struct gang *gang, const struct snapshot *snapshot, const struct gang_spec *spec,
              const struct gang_lift *lift, struct arena *arena, struct error *err)
{
    *gang = (struct gang){.lift = lift,
                          .snapshot = snapshot,
                          .behaviour = snapshot_behaviour(snapshot),
                          .spec = spec,
                          .arena = arena,
                          .budget = spec->budget ? spec->budget : GANG_BUDGET};
    gang->steps = gang->budget;
    arena_init(&gang->work);
    add_resource(gang, symbol(snapshot_symbols(snapshot), "pods"));
    if (check_constraints(gang, err) < 0 || read_shared(gang, err) < 0 || find_kinds(gang, err) < 0)
        return -1;
    if (find_mapped(gang, err) < 0)
        return -1;
    if (!gang->refusal)
        fill_forms(gang);
    if (!gang->refusal)
        check_shared_users(gang);
    return 0;
}

void gang_release(struct gang *gang)
{
    for (size_t i = 0; i < gang->n_units; i++)
        shape_free(gang->units[i]->shape);
    free(gang->units);
    free(gang->asks);
    free(gang->elements.items);
    free(gang->elements.slots);
    arena_release(&gang->work);
}
