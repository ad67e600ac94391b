#include "queued/manifest/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "queued/manifest/fields.h"
#include "queued/manifest/job.h"

#include "allocator/base/banned.h"

#define NAME_MAX_LEN 63
#define SOURCES_MAX  2000 /* they are compared with each other */

/* ---- drafts ---- */

static void draft_init(struct draft *draft, const struct source *source, bool joint)
{
    *draft = (struct draft){
        .source = source,
        .name = source->name,
        .ns = source->ns,
        .joint = joint,
        .metadata = json_object(),
        .spec = json_object(),
        .groups = json_array(),
        .templates = json_array(),
        .claims = json_array(),
        .constraints = json_array(),
        .alternatives = json_array(),
    };
}

static void draft_release(struct draft *draft)
{
    json_decref(draft->metadata);
    json_decref(draft->spec);
    json_decref(draft->groups);
    json_decref(draft->templates);
    json_decref(draft->claims);
    json_decref(draft->constraints);
    json_decref(draft->alternatives);
}

void draft_set(struct draft *draft, const char *key, json_t *value)
{
    INVARIANT(json_object_set_new(draft->spec, key, value) == 0);
}

void draft_metadata(struct draft *draft, const json_t *metadata)
{
    static const char *const maps[] = {"labels", "annotations"};

    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        json_t *map = json_object_get(metadata, maps[i]);

        if (json_object_size(map) > 0)
            json_object_set_new(draft->metadata, maps[i], json_deep_copy(map));
    }
    kueue_drop(draft->metadata);
}

json_t *draft_group(struct draft *draft, const char *name, json_int_t replicas, json_t *template,
                    const char *member_name)
{
    json_t *copy = json_deep_copy(template), *group;

    kueue_drop(json_object_get(copy, "metadata"));
    group = json_pack("{s:s, s:I, s:s, s:o}", "name", name, "replicas", replicas, "memberName", member_name, "template",
                      copy);

    INVARIANT(group && json_array_append_new(draft->groups, group) == 0);
    return group;
}

int draft_pod_priority(struct draft *draft, const json_t *pod_spec, struct error *err)
{
    const json_t *class = json_object_get(pod_spec, "priorityClassName");
    const json_t *set = json_object_get(draft->spec, "priorityClassName");

    if (!class || draft->ranked)
        return 0;
    if (set && !json_equal(set, class))
        return error_field(err, "priorityClassName", "the members of a gang have one priority; another one names %.63s",
                           json_string_value(set));
    draft_set(draft, "priorityClassName", json_string(json_string_value(class)));
    return 0;
}

void draft_seconds(struct draft *draft, const char *key, json_int_t seconds)
{
    char text[32];

    snprintf(text, sizeof(text), "%llds", (long long)seconds);
    draft_set(draft, key, json_string(text));
}

int members_must_end(json_t *pod_template, const char *default_policy, struct error *err)
{
    json_t *spec = json_object_get(pod_template, "spec");
    const char *policy = json_string_value(json_object_get(spec, "restartPolicy"));

    if (!policy)
        json_object_set_new(spec, "restartPolicy", json_string(default_policy));
    else if (strcmp(policy, "Never") != 0 && strcmp(policy, "OnFailure") != 0)
        return error_field(err, "spec.restartPolicy",
                           "%.40s: the members of a job must come to an end; use Never or OnFailure", policy);
    return 0;
}

/* ---- joining ---- */

static json_t *named_object(const json_t *list, const char *name)
{
    json_t *object;
    size_t i;

    json_array_foreach (list, i, object) {
        const json_t *metadata = json_object_get(object, "metadata");

        if (strcmp(json_string_value(json_object_get(metadata, "name")), name) == 0)
            return object;
    }
    return NULL;
}

static void join_objects(json_t *into, const json_t *from)
{
    json_t *object;
    size_t i;

    json_array_foreach (from, i, object)
        if (!named_object(into, json_string_value(json_object_get(json_object_get(object, "metadata"), "name"))))
            json_array_append(into, object);
}

static int join_groups(json_t *into, const json_t *from, struct error *err)
{
    json_t *group, *other;
    size_t i, j;

    json_array_foreach (from, i, group) {
        json_array_foreach (into, j, other)
            if (json_equal(json_object_get(other, "name"), json_object_get(group, "name")))
                return error_field(err, "metadata.name", "another workload of this job has the name %.63s",
                                   json_string_value(json_object_get(group, "name")));
        json_array_append(into, group);
    }
    return 0;
}

/* Add the groups of a workload to the job that it is part of. What both say about the job must be the same. */
static int draft_join(struct draft *into, const struct draft *from, struct error *err)
{
    const char *key;
    json_t *value;

    if (strcmp(into->ns, from->ns) != 0)
        return error_field(err, "metadata.namespace",
                           "all workloads of a job are in one namespace; the first is in %.63s", into->ns);
    json_object_foreach (from->spec, key, value) {
        const json_t *set = json_object_get(into->spec, key);

        if (set && !json_equal(set, value))
            return error_field(err, "", "asks for another %s than %s, which is part of the same job", key,
                               into->source->name);
        json_object_set(into->spec, key, value);
    }
    if (join_groups(into->groups, from->groups, err) < 0)
        return -1;
    join_objects(into->templates, from->templates);
    join_objects(into->claims, from->claims);
    json_array_extend(into->constraints, from->constraints);
    return 0;
}

/* ---- the submission ---- */

struct submission {
    const struct job_decode_options *options;
    struct source *sources;
    size_t n, cap;
    struct draft *drafts;
    size_t n_drafts;
    struct rng rng;
    size_t at;                       /* document at work, for problems */
    json_t *missing[KIND_CLAIM + 1]; /* names of templates and claims that pods want and the submission has not */
};

static int source_error(struct submission *s, const struct source *source, struct error *err)
{
    s->at = source->document;
    return *source->prefix ? error_in(err, "%s", source->prefix) : -1;
}

/* Kubernetes' way to make names unique: five letters that spell no word. */
static json_t *generated_name(struct submission *s, const char *beginning)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    char name[300];
    size_t len = (size_t)snprintf(name, sizeof(name) - 5, "%s", beginning);

    if (len > NAME_MAX_LEN - 5)
        len = NAME_MAX_LEN - 5;
    for (size_t i = 0; i < 5; i++)
        name[len + i] = letters[rng_below(&s->rng, sizeof(letters) - 1)];
    name[len + 5] = '\0';
    return json_string(name);
}

static int source_name(struct submission *s, struct source *source, struct error *err)
{
    json_t *metadata = json_object_get(source->object, "metadata");
    const char *beginning = json_string_value(json_object_get(metadata, "generateName"));

    if (!json_is_object(metadata))
        return error_field(err, "metadata", "%s", metadata ? "must be an object" : "is missing");
    if (!json_object_get(metadata, "name") && beginning)
        json_object_set_new(metadata, "name", generated_name(s, beginning));
    source->name = json_string_value(json_object_get(metadata, "name"));
    if (!source->name)
        return error_field(err, "metadata.name", "%s",
                           json_object_get(metadata, "name") ? "must be text" : "is missing");
    if (field_name_check(source->name, source->kind->role == KIND_WORKLOAD ? NAME_MAX_LEN : 253, true, err) < 0)
        return error_in(err, "metadata.name");
    return 0;
}

static int source_namespace(const struct submission *s, struct source *source, struct error *err)
{
    const json_t *ns = json_object_get(json_object_get(source->object, "metadata"), "namespace");

    source->ns = s->options->default_namespace ? s->options->default_namespace : "default";
    if (!ns || json_is_null(ns))
        return 0;
    if (!json_is_string(ns))
        return error_field(err, "metadata.namespace", "must be text");
    source->ns = json_string_value(ns);
    if (field_name_check(source->ns, 63, false, err) < 0)
        return error_in(err, "metadata.namespace");
    return 0;
}

static int source_open(struct submission *s, struct source *source, struct error *err)
{
    source->kind = kind_of(source->object, err);
    if (!source->kind || source_name(s, source, err) < 0 || source_namespace(s, source, err) < 0)
        return -1;
    return source->kind->role == KIND_WORKLOAD ? 0 : claim_object_check(source->object, err);
}

static int same_object(struct submission *s, const struct source *source, struct error *err)
{
    for (const struct source *other = s->sources; other < source; other++)
        if (strcmp(other->kind->name, source->kind->name) == 0 && strcmp(other->name, source->name) == 0 &&
            strcmp(other->ns, source->ns) == 0)
            return error_field(err, "metadata.name", "%s \"%.63s\" is there twice, first in document %zu",
                               source->kind->name, source->name, other->document + 1);
    return 0;
}

static int add_source(struct submission *s, size_t document, const char *prefix, json_t *object, struct error *err)
{
    struct source *source;

    if (s->n == SOURCES_MAX)
        return error_set(err, ERR_LIMIT, "more than %d objects in one submission", SOURCES_MAX);
    mem_grow(s->sources, s->n, s->cap);
    source = &s->sources[s->n++];
    *source = (struct source){.document = document, .object = json_deep_copy(object)};
    snprintf(source->prefix, sizeof(source->prefix), "%s", prefix);
    if (source_open(s, source, err) < 0 || same_object(s, source, err) < 0)
        return source_error(s, source, err);
    return 0;
}

/* `kubectl get -o yaml` of several objects gives a List, some tools a JobList and the like. */
static bool is_list(const json_t *document)
{
    const char *kind = json_string_value(json_object_get(document, "kind"));
    size_t len = kind ? strlen(kind) : 0;

    return len >= 4 && strcmp(kind + len - 4, "List") == 0 && json_is_array(json_object_get(document, "items"));
}

static int open_document(struct submission *s, size_t document, json_t *object, struct error *err)
{
    char prefix[32];
    json_t *item;
    size_t i;

    s->at = document;
    if (!is_list(object))
        return add_source(s, document, "", object, err);
    json_array_foreach (json_object_get(object, "items"), i, item) {
        snprintf(prefix, sizeof(prefix), "items[%zu]", i);
        if (add_source(s, document, prefix, item, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- claims ---- */

static struct source *find_source(struct submission *s, enum kind_role role, const char *name, const char *ns)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->sources[i].kind->role == role && strcmp(s->sources[i].name, name) == 0 &&
            strcmp(s->sources[i].ns, ns) == 0)
            return &s->sources[i];
    return NULL;
}

/* What a job keeps of a template or claim: not its status, nor what a server wrote. */
static json_t *kept_object(const struct source *source)
{
    const json_t *metadata = json_object_get(source->object, "metadata");

    return json_pack("{s:O, s:O, s:{s:s, s:s, s:O*, s:O*}, s:O}", "apiVersion",
                     json_object_get(source->object, "apiVersion"), "kind", json_object_get(source->object, "kind"),
                     "metadata", "name", source->name, "namespace", source->ns, "labels",
                     json_object_get(metadata, "labels"), "annotations", json_object_get(metadata, "annotations"),
                     "spec", json_object_get(source->object, "spec"));
}

/* Bring what one pod's claims name into the draft. What the submission has not may exist in the cluster. */
static int resolve_pod(struct submission *s, struct draft *draft, const json_t *group, struct error *err)
{
    const json_t *spec = json_object_get(json_object_get(group, "template"), "spec"), *claim;
    size_t i;

    json_array_foreach (json_object_get(spec, "resourceClaims"), i, claim) {
        const char *template = json_string_value(json_object_get(claim, "resourceClaimTemplateName"));
        const char *name = template ? template : json_string_value(json_object_get(claim, "resourceClaimName"));
        json_t *list = template ? draft->templates : draft->claims;
        struct source *source = find_source(s, template ? KIND_TEMPLATE : KIND_CLAIM, name, draft->ns);

        if (named_object(list, name))
            continue;
        if (!source) {
            json_array_append_new(s->missing[template ? KIND_TEMPLATE : KIND_CLAIM], json_string(name));
            continue;
        }
        if (source->used && !template && !draft->joint)
            return error_field(err, "",
                               "claim \"%.63s\" is shared with another job of the submission: submit them as one job "
                               "(oneJob, --one-job), or create the claim first and leave it out",
                               name);
        source->used = true;
        json_array_append_new(list, kept_object(source));
    }
    return 0;
}

static int resolve(struct submission *s, struct draft *draft, struct error *err)
{
    json_t *group, *alternative;
    size_t i, j;

    json_array_foreach (draft->groups, i, group)
        if (resolve_pod(s, draft, group, err) < 0)
            return -1;
    json_array_foreach (draft->alternatives, j, alternative)
        json_array_foreach (json_object_get(alternative, "groups"), i, group)
            if (resolve_pod(s, draft, group, err) < 0)
                return -1;
    return 0;
}

/* ---- workloads ---- */

/* The job that a workload is part of, if that has begun. */
static struct draft *draft_of(struct submission *s, const struct source *source, const char *group, bool one_job)
{
    for (size_t i = 0; i < s->n_drafts && (group || one_job); i++) {
        const char *other = kueue_pod_group(s->drafts[i].source->object);

        if (one_job || (group && other && strcmp(other, group) == 0 && strcmp(s->drafts[i].ns, source->ns) == 0))
            return &s->drafts[i];
    }
    return NULL;
}

static int decode_workload(struct submission *s, struct source *source, bool one_job, struct error *err)
{
    const char *group = source->kind->decode == pod_decode ? kueue_pod_group(source->object) : NULL;
    struct draft *begun = draft_of(s, source, group, one_job), draft;
    int rc;

    draft_init(&draft, source, one_job || group);
    if (group && !one_job)
        draft.name = group;
    rc = source->kind->decode(source, &draft, err);
    if (rc == 0)
        rc = resolve(s, &draft, err);
    if (rc == 0 && begun)
        rc = draft_join(begun, &draft, err);
    if (rc < 0 || begun)
        draft_release(&draft);
    else
        s->drafts[s->n_drafts++] = draft;
    return rc;
}

static int decode_workloads(struct submission *s, struct error *err)
{
    size_t n_workloads = 0;

    for (size_t i = 0; i < s->n; i++)
        n_workloads += s->sources[i].kind->role == KIND_WORKLOAD;
    if (n_workloads == 0) {
        s->at = 0;
        return error_field(err, s->n > 0 ? "kind" : "", "there is nothing to run: no Job, JobSet, Pod or GangJob");
    }
    s->drafts = mem_array(struct draft, n_workloads);
    for (size_t i = 0; i < s->n; i++)
        if (s->sources[i].kind->role == KIND_WORKLOAD &&
            decode_workload(s, &s->sources[i], s->options->one_job && n_workloads > 1, err) < 0)
            return source_error(s, &s->sources[i], err);
    return 0;
}

/* The pods of a Kueue group say how many they are. */
static int check_group_sizes(struct submission *s, struct error *err)
{
    for (size_t i = 0; i < s->n_drafts; i++) {
        const struct source *source = s->drafts[i].source;
        bool pod = source->kind->decode == pod_decode;
        size_t want = pod ? kueue_pod_group_size(source->object) : 0, have = json_array_size(s->drafts[i].groups);

        if (want > 0 && kueue_pod_group(source->object) && want != have) {
            error_field(err, "metadata.annotations[kueue.x-k8s.io/pod-group-total-count]",
                        "the group has %zu pods, but %zu are in the submission", want, have);
            return source_error(s, source, err);
        }
    }
    return 0;
}

static const char *text_of(const void *ctx, size_t i)
{
    return json_string_value(json_array_get(ctx, i));
}

/* A template that nobody uses is most often one whose name is misspelt, there or where it is used. */
static int unused(struct submission *s, const struct source *source, struct error *err)
{
    const json_t *missing = s->missing[source->kind->role];
    const char *close = closest_name(source->name, text_of, missing, json_array_size(missing));

    error_field(err, "metadata.name", "no workload of the submission uses %s \"%.63s\" (namespace %.63s)%s%.63s%s",
                source->kind->name, source->name, source->ns, close ? "; one names \"" : "", close ? close : "",
                close ? "\", which is not there" : "");
    return source_error(s, source, err);
}

static int check_unused(struct submission *s, struct error *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->sources[i].kind->role != KIND_WORKLOAD && !s->sources[i].used)
            return unused(s, &s->sources[i], err);
    return 0;
}

/* ---- the result ---- */

static const char *const spec_order[] = {
    "queue", "priority",  "priorityClassName", "maxRuntime", "retries", "ttlAfterFinished",
    "hold",  "dependsOn", "sameAlternative",   "placement",  "network"};

static void set_list(json_t *spec, const char *key, json_t *list)
{
    if (json_array_size(list) > 0)
        json_object_set(spec, key, list);
}

/* Members in one order, whatever order they were written in. */
static void order_group(json_t *group)
{
    static const char *const order[] = {"name", "replicas", "minReplicas", "jobSize", "memberName", "template"};
    json_t *template = json_object_get(group, "template");

    if (json_object_size(json_object_get(template, "metadata")) == 0)
        json_object_del(template, "metadata");
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        json_t *value = json_incref(json_object_get(group, order[i]));

        if (!value)
            continue;
        json_object_del(group, order[i]);
        json_object_set_new(group, order[i], value);
    }
}

static void order_groups(const struct draft *draft)
{
    json_t *group, *alternative;
    size_t i, j;

    json_array_foreach (draft->groups, i, group)
        order_group(group);
    json_array_foreach (draft->alternatives, j, alternative)
        json_array_foreach (json_object_get(alternative, "groups"), i, group)
            order_group(group);
}

static json_t *draft_spec(const struct draft *draft)
{
    json_t *spec = json_object();

    order_groups(draft);
    for (size_t i = 0; i < ARRAY_SIZE(spec_order); i++)
        if (json_object_get(draft->spec, spec_order[i]))
            json_object_set(spec, spec_order[i], json_object_get(draft->spec, spec_order[i]));
    set_list(spec, "groups", draft->groups);
    set_list(spec, "claimTemplates", draft->templates);
    set_list(spec, "sharedClaims", draft->claims);
    set_list(spec, "constraints", draft->constraints);
    set_list(spec, "alternatives", draft->alternatives);
    return spec;
}

static json_t *draft_gangjob(const struct draft *draft)
{
    json_t *metadata = json_pack("{s:s, s:s}", "name", draft->name, "namespace", draft->ns);

    json_object_update(metadata, draft->metadata);
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", JOB_API_VERSION, "kind", "GangJob", "metadata", metadata,
                     "spec", draft_spec(draft));
}

/* Rules over the whole job, the same for every kind. */
static int finish(struct submission *s, json_t *gangjobs, struct error *err)
{
    for (size_t i = 0; i < s->n_drafts; i++) {
        const struct draft *draft = &s->drafts[i];
        json_t *gangjob = draft_gangjob(draft);
        struct arena arena = {0};
        struct job_spec spec;
        int rc = field_name_check(draft->name, NAME_MAX_LEN, true, err) < 0
                     ? error_in(err, "metadata.name")
                     : job_spec_parse(gangjob, &arena, &spec, err);

        arena_release(&arena);
        if (rc < 0) {
            json_decref(gangjob);
            return source_error(s, draft->source, err);
        }
        json_array_append_new(gangjobs, gangjob);
    }
    return 0;
}

static int run(struct submission *s, const json_t *documents, json_t *gangjobs, struct error *err)
{
    json_t *document;
    size_t i;

    json_array_foreach (documents, i, document)
        if (open_document(s, i, document, err) < 0)
            return -1;
    if (decode_workloads(s, err) < 0 || check_group_sizes(s, err) < 0 || check_unused(s, err) < 0)
        return -1;
    return finish(s, gangjobs, err);
}

static void submission_release(struct submission *s)
{
    for (size_t i = 0; i < s->n_drafts; i++)
        draft_release(&s->drafts[i]);
    for (size_t i = 0; i < s->n; i++)
        json_decref(s->sources[i].object);
    for (size_t i = 0; i < ARRAY_SIZE(s->missing); i++)
        json_decref(s->missing[i]);
    free(s->drafts);
    free(s->sources);
}

int jobs_decode(const json_t *documents, const struct job_decode_options *options, json_t **out_gangjobs,
                struct job_problem *problem)
{
    struct submission s = {.options = options, .rng = {options->name_seed}};
    json_t *gangjobs = json_array();
    struct error err = {0};
    int rc;

    if (options->name_seed == 0 && getrandom(&s.rng.state, sizeof(s.rng.state), 0) < 0)
        s.rng.state = (uint64_t)(uintptr_t)&s; /* names need not be secret */
    for (size_t i = 0; i < ARRAY_SIZE(s.missing); i++)
        s.missing[i] = json_array();
    rc = run(&s, documents, gangjobs, &err);
    if (rc == 0)
        *out_gangjobs = gangjobs;
    else
        json_decref(gangjobs);
    if (rc < 0 && problem)
        *problem = (struct job_problem){s.at, err};
    submission_release(&s);
    return rc;
}
