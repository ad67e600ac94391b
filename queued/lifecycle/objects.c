#include "queued/lifecycle/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/cluster/cluster.h"
#include "queued/lifecycle/member.h"

#include "allocator/base/banned.h"

/* FNV-1a: a few characters that tell cut names apart; nothing secret. */
static uint32_t fingerprint(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

char *launch_name(const char *text)
{
    char *name = mem_strdup(text);
    size_t len = strlen(text);

    if (len > LAUNCH_NAME_MAX)
        snprintf(name + LAUNCH_NAME_MAX - 9, 10, "-%08x", (unsigned)fingerprint(text));
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '-';
    return name;
}

char *attempt_name(const char *job_name, int64_t job, int64_t attempt)
{
    BUF text = {0};
    size_t len = strnlen(job_name, 24); /* leaves room for id, attempt, group and index */

    while (len > 0 && strchr("-.", job_name[len - 1]))
        len--;
    buf_addf(&text, "%.*s-%lld-%lld", (int)len, job_name, (long long)job, (long long)attempt);
    return launch_name(buf_str(&text));
}

static json_t *labels(const struct objects_input *input)
{
    return json_pack("{s:o, s:o, s:s}", LABEL_JOB, json_sprintf("%lld", (long long)input->job), LABEL_ATTEMPT,
                     json_sprintf("%lld", (long long)input->attempt), LABEL_SERVER, input->server);
}

static json_t *metadata(const struct objects_input *input, const char *name)
{
    return json_pack("{s:s, s:s, s:o}", "name", name, "namespace", input->spec->ns, "labels", labels(input));
}

static void add(json_t *objects, json_t *body, json_t *planned, const size_t *member)
{
    json_t *entry = json_pack("{s:o}", "body", body);

    if (planned)
        json_object_set_new(entry, "planned", planned);
    if (member)
        json_object_set_new(entry, "member", json_integer((json_int_t)*member));
    json_array_append_new(objects, entry);
}

static void add_anchor(const struct objects_input *input, const char *base, json_t *objects)
{
    json_t *body = json_pack("{s:s, s:s, s:o, s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                             metadata(input, base), "data", "job", input->spec->name);

    add(objects, body, NULL, NULL);
}

static void add_service(const struct objects_input *input, const char *base, json_t *objects)
{
    json_t *body = json_pack("{s:s, s:s, s:o, s:{s:s, s:b, s:o}}", "apiVersion", "v1", "kind", "Service", "metadata",
                             metadata(input, base), "spec", "clusterIP", "None", "publishNotReadyAddresses", 1,
                             "selector", labels(input));

    add(objects, body, NULL, NULL);
}

/* Members that have to start in turns cannot be placed together. */
static const char *pod_group_of(const struct objects_input *input)
{
    return input->placement->needs_turns ? NULL : input->pod_group;
}

/* kube-scheduler places the members together or not at all. An elastic gang counts as large as it was planned. */
static void add_pod_group(const struct objects_input *input, const char *base, json_t *objects)
{
    json_t *body = json_pack("{s:s, s:s, s:o, s:{s:{s:{s:I}}}}", "apiVersion", pod_group_of(input), "kind", "PodGroup",
                             "metadata", metadata(input, base), "spec", "schedulingPolicy", "gang", "minCount",
                             (json_int_t)input->placement->n_members);

    add(objects, body, NULL, NULL);
}

/* Share ids of the plan: they only have to differ from each other; the real ones are kube-scheduler's. */
struct share_ids {
    const char *claim;
    unsigned n;
};

static void share_id(void *ctx, char out[37])
{
    struct share_ids *ids = ctx;

    snprintf(out, 37, "00000000-0000-4000-8000-%08x%04x", (unsigned)fingerprint(ids->claim), ids->n++ & 0xffff);
}

/* Labels and annotations that the template gives its claims, with ours on top. */
static json_t *claim_metadata(const struct objects_input *input, const char *name, const json_t *object)
{
    const json_t *from = json_object_get(object, "metadata");
    json_t *to = metadata(input, name), *ours = json_object_get(to, "labels"), *theirs;

    if (strcmp(json_string_value(json_object_get(object, "kind")), "ResourceClaimTemplate") == 0)
        from = json_object_get(json_object_get(object, "spec"), "metadata");
    json_object_update_missing(ours, json_object_get(from, "labels"));
    theirs = json_object_get(from, "annotations");
    if (theirs)
        json_object_set_new(to, "annotations", json_copy(theirs));
    json_object_del(json_object_get(to, "annotations"), ANNOTATION_BIND); /* ours to say */
    json_object_del(json_object_get(to, "annotations"), ANNOTATION_LOOSE);
    return to;
}

static void set_annotation(json_t *metadata, const char *key, const char *value)
{
    if (!json_object_get(metadata, "annotations"))
        json_object_set_new(metadata, "annotations", json_object());
    json_object_set_new(json_object_get(metadata, "annotations"), key, json_string(value));
}

static void add_claim(const struct objects_input *input, const char *name, const json_t *object,
                      const struct allocation *allocation, const size_t *member, json_t *objects)
{
    struct share_ids ids = {name, 0};
    json_t *metadata = claim_metadata(input, name, object), *body, *spec;
    bool is_exact;

    spec = steered_claim_spec_of(input->snapshot, object, allocation, &is_exact);
    if (bind_covers(&input->bind, object, allocation))
        set_annotation(metadata, ANNOTATION_BIND, "queued");
    else if (!is_exact)
        set_annotation(metadata, ANNOTATION_LOOSE, "alike");
    body = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata",
                     metadata, "spec", spec);
    add(objects, body, allocation_to_json(allocation, share_id, &ids), member);
}

static const struct job_group *group_of(const struct objects_input *input, size_t member)
{
    return &input->spec->shapes[input->shape].groups[input->placement->members[member].group];
}

static char *member_name(const struct objects_input *input, const char *base, size_t member, const char *suffix)
{
    BUF text = {0};

    buf_addf(&text, "%s-%s-%zu", base, group_of(input, member)->name, input->placement->members[member].index);
    if (suffix)
        buf_addf(&text, "-%s", suffix);
    return launch_name(buf_str(&text));
}

static char *joined_name(const char *base, const char *what, const char *name)
{
    BUF text = {0};

    buf_addf(&text, "%s-%s-%s", base, what, name);
    return launch_name(buf_str(&text));
}

static char *shared_name(const struct objects_input *input, const char *base, size_t shared)
{
    return joined_name(base, "shared", input->spec->shared_names[shared]);
}

/* The name of the claim in the cluster behind one entry of a member's pod. To free(). */
static char *claim_name(const struct objects_input *input, const char *base, size_t member, size_t claim)
{
    const struct job_claim *from = &group_of(input, member)->claims[claim];

    switch (from->source) {
    case JOB_CLAIM_OWN:
        return member_name(input, base, member, from->pod_claim);
    case JOB_CLAIM_SHARED:
        return shared_name(input, base, from->shared);
    case JOB_CLAIM_EXISTING:
        break;
    }
    return mem_strdup(from->name);
}

static const struct allocation *allocation_of(const struct objects_input *input, size_t member, size_t claim)
{
    const struct placed_claim *placed = &input->placement->members[member].claims[claim];

    if (placed->source == GANG_CLAIM_SHARED)
        return &input->placement->shared[placed->shared];
    return &placed->allocation;
}

static void add_claims(const struct objects_input *input, const char *base, json_t *objects)
{
    for (size_t i = 0; i < input->placement->n_shared; i++) {
        char *name = shared_name(input, base, i);

        add_claim(input, name, input->spec->shared[i], &input->placement->shared[i], NULL, objects);
        free(name);
    }
    for (size_t m = 0; m < input->placement->n_members; m++)
        for (size_t c = 0; c < group_of(input, m)->n_claims; c++) {
            const struct job_claim *claim = &group_of(input, m)->claims[c];
            char *name = claim_name(input, base, m, c);

            if (claim->source == JOB_CLAIM_OWN)
                add_claim(input, name, claim->object, allocation_of(input, m, c), &m, objects);
            free(name);
        }
}

/* Of an elastic group perhaps fewer than the manifest asks for. */
static size_t group_size(const struct placement *placement, size_t group)
{
    size_t n = 0;

    for (size_t m = 0; m < placement->n_members; m++)
        n += placement->members[m].group == group;
    return n;
}

/* Whether we write all allocations that the member waits for. */
static bool is_allocated_by_us(const struct objects_input *input, size_t member)
{
    const struct job_group *group = group_of(input, member);

    if (input->placement->members[member].n_claims > group->n_claims) /* of extended resources */
        return false;
    for (size_t c = 0; c < group->n_claims; c++) {
        const struct job_claim *claim = &group->claims[c];
        const json_t *object = claim->source == JOB_CLAIM_SHARED ? input->spec->shared[claim->shared] : claim->object;

        if (claim->source == JOB_CLAIM_EXISTING || !bind_covers(&input->bind, object, allocation_of(input, member, c)))
            return false;
    }
    return true;
}

/* What kube-scheduler chooses for a pod, and we do not simulate. */
static bool has_volumes_to_choose(const json_t *pod)
{
    const json_t *volume;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(pod, "spec"), "volumes"), i, volume)
        if (json_object_get(volume, "persistentVolumeClaim") || json_object_get(volume, "ephemeral"))
            return true;
    return false;
}

/* All of the gang or none of it, so that one scheduler sees it whole. */
static bool binds_gang(const struct objects_input *input)
{
    bool has_claims = false;

    for (size_t m = 0; m < input->placement->n_members; m++) {
        if (!is_allocated_by_us(input, m) || has_volumes_to_choose(group_of(input, m)->pod))
            return false;
        has_claims |= input->placement->members[m].n_claims > 0;
    }
    return input->binds_pods && has_claims;
}

/* Turns are for what kube-scheduler allocates pod by pod. It has no pods of a group before it has all of them. */
static size_t turn_of(const struct objects_input *input, size_t member)
{
    size_t turn = input->placement->members[member].turn;

    return turn == 0 || pod_group_of(input) || is_allocated_by_us(input, member) ? 0 : turn;
}

static void add_pods(const struct objects_input *input, const char *base, bool is_bound_by_us, json_t *objects)
{
    const struct placement *placement = input->placement;
    size_t n_groups = input->spec->shapes[input->shape].n_groups, *sizes = mem_array(size_t, n_groups + 1);

    for (size_t g = 0; g < n_groups; g++)
        sizes[g] = group_size(placement, g);
    for (size_t m = 0; m < placement->n_members; m++) {
        const struct job_group *group = group_of(input, m);
        char *name = member_name(input, base, m, NULL);
        struct member_input member = {
            .spec = input->spec,
            .group = group,
            .first_group = group_of(input, 0),
            .labels = labels(input),
            .name = name,
            .service = input->spec->has_no_hostnames ? NULL : base,
            .pod_group = pod_group_of(input) && !is_bound_by_us ? base : NULL,
            .is_bound_by_us = is_bound_by_us,
            .node = placement->members[m].node,
            .consumes = input->consumes,
            .consumes_class = input->consumes_class,
            .job = input->job,
            .attempt = input->attempt,
            .turn = turn_of(input, m),
            .index = placement->members[m].index,
            .group_size = sizes[placement->members[m].group],
            .rank = m,
            .world_size = placement->n_members,
            .claim_names = mem_array(char *, group->n_claims + 1),
        };

        for (size_t c = 0; c < group->n_claims; c++)
            member.claim_names[c] = claim_name(input, base, m, c);
        add(objects, member_pod(&member), json_string(member.node), &m);
        for (size_t c = 0; c < group->n_claims; c++)
            free(member.claim_names[c]);
        free(member.claim_names);
        json_decref(member.labels);
        free(name);
    }
    free(sizes);
}

static bool is_assumed_once(const json_t *objects, const char *name)
{
    const json_t *entry;
    size_t i;

    json_array_foreach (objects, i, entry) {
        const json_t *metadata = json_object_get(json_object_get(entry, "body"), "metadata");

        if (strcmp(json_string_value(json_object_get(metadata, "name")), name) == 0)
            return true;
    }
    return false;
}

/* pod: what brings the real claim, or NULL. */
static void add_assumed(const struct objects_input *input, const char *name, const char *pod,
                        const struct allocation *allocation, json_t *objects)
{
    struct share_ids ids = {name, 0};
    json_t *body;

    if (allocation->n_results == 0 || is_assumed_once(objects, name))
        return;
    body = json_pack("{s:s, s:s, s:o, s:{s:{s:[]}}}", "apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim",
                     "metadata", metadata(input, name), "spec", "devices", "requests");
    json_object_set_new(json_object_get(json_object_get(body, "metadata"), "labels"), LABEL_ASSUMED,
                        json_string("true"));
    if (pod)
        json_object_set_new(json_object_get(body, "metadata"), "annotations",
                            json_pack("{s:s}", ANNOTATION_UNTIL, pod));
    add(objects, body, allocation_to_json(allocation, share_id, &ids), NULL);
}

/* Existing claims are known by their own name: several entries, also of other groups, may mean the same. */
static const char *claim_of_member(const struct objects_input *input, size_t member, size_t claim)
{
    return group_of(input, member)->claims[claim].name;
}

/* Existing claims once for all members that share them, extended resources once per member. */
static void add_all_assumed(const struct objects_input *input, const char *base, json_t *objects)
{
    for (size_t m = 0; m < input->placement->n_members; m++)
        for (size_t c = 0; c < input->placement->members[m].n_claims; c++) {
            const struct placed_claim *claim = &input->placement->members[m].claims[c];
            char *name = NULL, *pod = NULL;

            if (claim->source == GANG_CLAIM_EXISTING) {
                name = joined_name(base, "assumed", claim_of_member(input, m, c));
            } else if (claim->source == GANG_CLAIM_EXTENDED) {
                name = member_name(input, base, m, "assumed");
                pod = member_name(input, base, m, NULL);
            }
            if (name)
                add_assumed(input, name, pod, &claim->allocation, objects);
            free(name);
            free(pod);
        }
}

json_t *attempt_objects(const struct objects_input *input)
{
    char *base = attempt_name(input->spec->name, input->job, input->attempt);
    json_t *objects = json_array();
    bool is_bound_by_us = binds_gang(input);

    add_anchor(input, base, objects);
    if (!input->spec->has_no_hostnames)
        add_service(input, base, objects);
    if (pod_group_of(input) && !is_bound_by_us)
        add_pod_group(input, base, objects);
    add_claims(input, base, objects);
    add_pods(input, base, is_bound_by_us, objects);
    add_all_assumed(input, base, objects);
    free(base);
    return objects;
}

/* ---- the placement, for people ---- */

static json_t *devices_view(const struct allocation *allocation)
{
    json_t *devices = json_array();

    for (size_t i = 0; i < allocation->n_results; i++) {
        const struct device_result *result = &allocation->results[i];

        json_array_append_new(devices, json_pack("{s:s, s:s, s:s, s:s}", "request", result->request, "driver",
                                                 result->driver, "pool", result->pool, "device", result->device));
    }
    return devices;
}

static json_t *claims_view(const struct objects_input *input, const char *base, size_t member)
{
    const struct job_group *group = group_of(input, member);
    json_t *claims = json_array();

    for (size_t c = 0; c < group->n_claims; c++) {
        char *name = claim_name(input, base, member, c);

        json_array_append_new(claims, json_pack("{s:s, s:s, s:o}", "name", name, "podClaim", group->claims[c].pod_claim,
                                                "devices", devices_view(allocation_of(input, member, c))));
        free(name);
    }
    for (size_t c = group->n_claims; c < input->placement->members[member].n_claims; c++) {
        const struct placed_claim *more = &input->placement->members[member].claims[c];

        json_array_append_new(claims, json_pack("{s:s, s:s, s:o}", "name", more->pod_claim, "podClaim", more->pod_claim,
                                                "devices", devices_view(&more->allocation)));
    }
    return claims;
}

json_t *attempt_placement_view(const struct objects_input *input)
{
    char *base = attempt_name(input->spec->name, input->job, input->attempt);
    json_t *members = json_array();

    for (size_t m = 0; m < input->placement->n_members; m++) {
        const struct placed_member *placed = &input->placement->members[m];
        char *name = member_name(input, base, m, NULL);

        json_array_append_new(members, json_pack("{s:s, s:I, s:s, s:s, s:o}", "group", group_of(input, m)->name,
                                                 "index", (json_int_t)placed->index, "pod", name, "node", placed->node,
                                                 "claims", claims_view(input, base, m)));
        free(name);
    }
    free(base);
    return json_pack("{s:o}", "members", members);
}

static bool is_listed(const json_t *chosen, const json_t *entry)
{
    const json_t *other;
    size_t i;

    json_array_foreach (chosen, i, other)
        if (json_equal(other, entry))
            return true;
    return false;
}

static void add_chosen(json_t *chosen, const char *claim, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_results; i++) {
        const char *request = allocation->results[i].request, *slash = strchr(request, '/');
        json_t *entry;

        if (!slash)
            continue;
        entry = json_pack("{s:s, s:s%, s:s}", "claim", claim, "request", request, (size_t)(slash - request),
                          "alternative", slash + 1);
        if (!is_listed(chosen, entry))
            json_array_append(chosen, entry);
        json_decref(entry);
    }
}

json_t *attempt_chosen(const struct objects_input *input)
{
    json_t *chosen = json_array();

    for (size_t m = 0; m < input->placement->n_members; m++)
        for (size_t c = 0; c < group_of(input, m)->n_claims; c++)
            add_chosen(chosen, group_of(input, m)->claims[c].name, allocation_of(input, m, c));
    return chosen;
}
