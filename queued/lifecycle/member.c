#include "queued/lifecycle/member.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/str.h"
#include "queued/cluster/cluster.h"
#include "queued/lifecycle/ask_objects.h"
#include "queued/lifecycle/objects.h"

#include "allocator/base/banned.h"

/* "<group>-<index>", or the name that users know the pod by: a Job's train-0, a JobSet's loop-workers-1-0. */
static json_t *host_name(const struct job_spec *job, const struct job_group *group, size_t index)
{
    BUF text = {0};
    char *name;
    json_t *value;

    if (group->member_name)
        job_member_name(job, group, index, &text);
    else
        buf_addf(&text, "%s-%zu", group->name, index);
    name = launch_name(buf_str(&text));
    value = json_string(name);
    free(name);
    return value;
}

/* The index within the job: of a JobSet's group that is one of several equal jobs, else the group. */
static size_t completion_index(const struct member_input *member)
{
    return member->group->job_size ? member->index % member->group->job_size : member->index;
}

/* What the controllers of Job and JobSet tell a pod by labels and annotations, for users who read them there. */
static void tell_indexes(const struct member_input *member, json_t *told)
{
    const struct job_group *group = member->group;

    json_object_set_new(told, "batch.kubernetes.io/job-completion-index",
                        json_sprintf("%zu", completion_index(member)));
    if (!group->job_size)
        return;
    json_object_set_new(told, "jobset.sigs.k8s.io/jobset-name", json_string(member->spec->name));
    json_object_set_new(told, "jobset.sigs.k8s.io/replicatedjob-name", json_string(group->name));
    json_object_set_new(told, "jobset.sigs.k8s.io/replicatedjob-replicas",
                        json_sprintf("%zu", member->group_size / group->job_size));
    json_object_set_new(told, "jobset.sigs.k8s.io/job-index", json_sprintf("%zu", member->index / group->job_size));
    json_object_set_new(told, "jobset.sigs.k8s.io/restart-attempt",
                        json_sprintf("%lld", (long long)member->attempt - 1));
}

static json_t *pod_metadata(const struct member_input *member)
{
    const json_t *from = json_object_get(member->group->pod, "metadata");
    json_t *labels = json_deep_copy(member->labels), *annotations = json_object();

    tell_indexes(member, annotations);
    if (member->consumes) {
        json_object_set_new(annotations, ANNOTATION_CONSUME, json_string(member->consumes));
        json_object_set_new(annotations, ANNOTATION_CLASS, json_string(member->consumes_class));
    }
    json_object_update_missing(annotations, json_object_get(from, "annotations"));
    json_object_del(annotations, ANNOTATION_TURN); /* ours to say */
    if (member->turn)
        json_object_set_new(annotations, ANNOTATION_TURN, json_sprintf("%zu", member->turn));
    json_object_set_new(labels, LABEL_GROUP, json_string(member->group->name));
    json_object_set_new(labels, LABEL_INDEX, json_sprintf("%zu", member->index));
    tell_indexes(member, labels);
    json_object_update_missing(labels, json_object_get(from, "labels"));
    return json_pack("{s:s, s:s, s:o, s:o}", "name", member->name, "namespace", member->spec->ns, "labels", labels,
                     "annotations", annotations);
}

static json_t *object_at(json_t *object, const char *key)
{
    if (!json_is_object(json_object_get(object, key)))
        json_object_set_new(object, key, json_object());
    return json_object_get(object, key);
}

/* Terms are alternatives, so each of them must name the node; a field selector cannot be mistaken for a label. */
static void bind_to_node(json_t *spec, const char *node)
{
    json_t *affinity = object_at(object_at(spec, "affinity"), "nodeAffinity");
    json_t *required = object_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    json_t *terms = json_object_get(required, "nodeSelectorTerms"), *term;
    size_t i;

    if (json_array_size(terms) == 0) {
        terms = json_pack("[{}]");
        json_object_set_new(required, "nodeSelectorTerms", terms);
    }
    json_array_foreach (terms, i, term) {
        json_t *fields = json_object_get(term, "matchFields");

        if (!json_is_array(fields)) {
            fields = json_array();
            json_object_set_new(term, "matchFields", fields);
        }
        json_array_append_new(fields,
                              json_pack("{s:s, s:s, s:[s]}", "key", "metadata.name", "operator", "In", "values", node));
    }
}

static void name_claims(json_t *spec, const struct member_input *member)
{
    json_t *entries = json_array();

    for (size_t i = 0; i < member->group->n_claims; i++)
        json_array_append_new(entries, json_pack("{s:s, s:s}", "name", member->group->claims[i].pod_claim,
                                                 "resourceClaimName", member->claim_names[i]));
    if (member->group->n_claims > 0)
        json_object_set_new(spec, "resourceClaims", entries);
    else
        json_decref(entries);
}

static void tell_master(const struct member_input *member, json_t *env)
{
    json_t *master = host_name(member->spec, member->first_group, 0);

    json_array_append_new(
        env, json_pack("{s:s, s:o}", "name", "MASTER_ADDR", "value",
                       json_sprintf("%s.%s.%s.svc", json_string_value(master), member->service, member->spec->ns)));
    json_array_append_new(env, json_pack("{s:s, s:s}", "name", "MASTER_PORT", "value", LAUNCH_MASTER_PORT));
    json_decref(master);
}

static json_t *environment(const struct member_input *member)
{
    json_t *env = json_pack(
        "[{s:s, s:s}, {s:s, s:o}, {s:s, s:o}, {s:s, s:s}, {s:s, s:o}, {s:s, s:o}, {s:s, s:o}, {s:s, s:o}, {s:s, s:o}]",
        "name", "QUEUED_JOB", "value", member->spec->name, "name", "QUEUED_JOB_ID", "value",
        json_sprintf("%lld", (long long)member->job), "name", "QUEUED_ATTEMPT", "value",
        json_sprintf("%lld", (long long)member->attempt), "name", "QUEUED_GROUP", "value", member->group->name, "name",
        "QUEUED_INDEX", "value", json_sprintf("%zu", member->index), "name", "QUEUED_GROUP_SIZE", "value",
        json_sprintf("%zu", member->group_size), "name", "RANK", "value", json_sprintf("%zu", member->rank), "name",
        "WORLD_SIZE", "value", json_sprintf("%zu", member->world_size), "name", "JOB_COMPLETION_INDEX", "value",
        json_sprintf("%zu", completion_index(member)));

    if (member->service)
        tell_master(member, env);
    if (member->group->job_size)
        json_array_append_new(env, json_pack("{s:s, s:o}", "name", "QUEUED_JOB_INDEX", "value",
                                             json_sprintf("%zu", member->index / member->group->job_size)));
    return env;
}

static bool has_variable(const json_t *env, const char *name)
{
    const json_t *variable;
    size_t i;

    json_array_foreach (env, i, variable)
        if (strcmp(json_string_value(json_object_get(variable, "name")), name) == 0)
            return true;
    return false;
}

static void tell_containers(json_t *spec, const char *key, const json_t *env)
{
    json_t *container, *have, *variable;
    size_t i, k;

    json_array_foreach (json_object_get(spec, key), i, container) {
        have = json_object_get(container, "env");
        if (!json_is_array(have)) {
            have = json_array();
            json_object_set_new(container, "env", have);
        }
        json_array_foreach ((json_t *)env, k, variable)
            if (!has_variable(have, json_string_value(json_object_get(variable, "name"))))
                json_array_append(have, variable);
    }
}

/* Until all of the gang is there. */
static void hold(json_t *spec, bool is_bound_by_us)
{
    if (is_bound_by_us)
        json_object_set_new(spec, "schedulerName", json_string(SCHEDULER_NAME));
    else
        json_object_set_new(spec, "schedulingGates", json_pack("[{s:s}]", "name", LAUNCH_GATE));
}

json_t *member_pod(const struct member_input *member)
{
    json_t *spec = json_deep_copy(json_object_get(member->group->pod, "spec")), *env = environment(member);

    bind_to_node(spec, member->node);
    name_claims(spec, member);
    tell_containers(spec, "initContainers", env);
    tell_containers(spec, "containers", env);
    json_decref(env);
    json_object_set_new(spec, "hostname", host_name(member->spec, member->group, member->index));
    if (member->service)
        json_object_set_new(spec, "subdomain", json_string(member->service));
    hold(spec, member->is_bound_by_us);
    if (member->pod_group)
        json_object_set_new(spec, "schedulingGroup", json_pack("{s:s}", "podGroupName", member->pod_group));
    if (!json_object_get(spec, "restartPolicy")) /* a member that ends has ended: the gang restarts as a whole */
        json_object_set_new(spec, "restartPolicy", json_string("Never"));
    return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", pod_metadata(member),
                     "spec", spec);
}
