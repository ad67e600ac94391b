/* batch/v1 Job and, made of Jobs, jobset.x-k8s.io JobSet.
 *
 * A gang starts whole, so a Job's pods are members that run at once: parallelism counts, and completions beyond it
 * (pods one after the other) cannot be honoured. backoffLimit becomes restarts of the whole gang, and only where it is
 * written: a gang's restart costs too much to happen six times by default. A JobSet's replicated job is a group of
 * replicas x parallelism. */
#include <stdio.h>
#include <string.h>

#include "queued/manifest/decode.h"
#include "queued/manifest/duration.h"
#include "queued/manifest/fields.h"

#include "allocator/base/banned.h"

/* ---- what a Job may hold ---- */

static const char *const completion_modes[] = {"NonIndexed", "Indexed", NULL}; /* members always have an index */
static const char *const replacement_policies[] = {"TerminatingOrFailed", "Failed", NULL};
static const char *const job_managers[] = {"kubernetes.io/job-controller", NULL};

#define WHOLE_GANG "members are not retried one by one: backoffLimit restarts the whole gang"

#define JOB_SPEC_ROWS                                                                                                  \
    {.name = "parallelism", FIELD_INT, .min = 1, .max = MEMBERS_MAX},                                                  \
        {.name = "completions", FIELD_INT, .min = 1, .max = INT32_MAX},                                                \
        {.name = "completionMode", FIELD_STRING, .one_of = completion_modes},                                          \
        {.name = "backoffLimit", FIELD_INT, .min = 0, .max = INT32_MAX},                                               \
        {.name = "backoffLimitPerIndex", FIELD_INT, .refused = WHOLE_GANG},                                            \
        {.name = "maxFailedIndexes", FIELD_INT, .refused = WHOLE_GANG},                                                \
        {.name = "podFailurePolicy", FIELD_MAP, .refused = "rules by exit code are not supported; " WHOLE_GANG},       \
        {.name = "successPolicy", FIELD_MAP, .refused = "a gang succeeds when all its members do"},                    \
        {.name = "podReplacementPolicy",                                                                               \
         FIELD_STRING,                                                                                                 \
         .one_of = replacement_policies}, /* an attempt waits for the one before */                                    \
        {.name = "selector", FIELD_MAP, .refused = "is written by the API server: leave it out"},                      \
        {.name = "manualSelector", FIELD_BOOL, .refused = "members have labels of queued's choice: leave it out"},     \
        {.name = "scheduling", FIELD_MAP, .refused = "the whole Job is a gang already: leave it out"},                 \
        {.name = "template", FIELD_OBJECT, .of = &pod_template_fields, .required = true},                              \
        {.name = "managedBy", FIELD_STRING, .one_of = job_managers, .refused = "another controller would run it"},     \
    {                                                                                                                  \
        .name = "activeDeadlineSeconds", FIELD_INT, .min = 1, .max = INT32_MAX                                         \
    }

static const struct field job_spec_rows[] = {
    JOB_SPEC_ROWS,
    {.name = "ttlSecondsAfterFinished", FIELD_INT, .min = 0, .max = INT32_MAX},
    {.name = "suspend", FIELD_BOOL},
};
static const struct fields job_spec_fields = FIELDS(job_spec_rows);

static const struct field job_rows[] = {
    {.name = "apiVersion", FIELD_STRING},
    {.name = "kind", FIELD_STRING},
    {.name = "metadata", FIELD_OBJECT, .of = &job_metadata_fields, .required = true},
    {.name = "spec", FIELD_OBJECT, .of = &job_spec_fields, .required = true},
    {"status", .dropped = true},
};
static const struct fields job_fields = FIELDS(job_rows);

/* ---- Job ---- */

/* How many members run at once; the path of a failure is below the Job's spec. */
static int members_of(const json_t *spec, json_int_t *out, struct error *err)
{
    const json_t *parallelism = json_object_get(spec, "parallelism"),
                 *completions = json_object_get(spec, "completions");
    json_int_t members = parallelism ? json_integer_value(parallelism) : 1;

    if (completions && json_integer_value(completions) > members)
        return error_field(
            err, "completions",
            "%lld is more than parallelism (%lld): a gang runs all its members at once; set parallelism to %lld, or "
            "submit a job for each",
            (long long)json_integer_value(completions), (long long)members, (long long)json_integer_value(completions));
    *out = completions ? json_integer_value(completions)
                       : members; /* a Job starts no more pods than completions are left */
    return 0;
}

/* suspend is how Kueue's users hand a Job over; without a queue it means what it says. */
static void set_suspend(struct draft *draft, const json_t *spec)
{
    if (json_is_true(json_object_get(spec, "suspend")) && !json_object_get(draft->spec, "queue"))
        draft_set(draft, "hold", json_true());
}

static void set_limits(struct draft *draft, const json_t *spec)
{
    const json_t *backoff = json_object_get(spec, "backoffLimit"),
                 *deadline = json_object_get(spec, "activeDeadlineSeconds");
    const json_t *ttl = json_object_get(spec, "ttlSecondsAfterFinished");
    int64_t ms;

    if (backoff)
        draft_set(draft, "retries", json_integer(json_integer_value(backoff)));
    if (ttl)
        draft_seconds(draft, "ttlAfterFinished", json_integer_value(ttl));
    if (deadline && (!json_object_get(draft->spec, "maxRuntime") ||
                     (duration_parse(json_string_value(json_object_get(draft->spec, "maxRuntime")), &ms) &&
                      ms > json_integer_value(deadline) * 1000)))
        draft_seconds(draft, "maxRuntime", json_integer_value(deadline));
}

static int job_group(struct draft *draft, const char *job, const json_t *spec, json_int_t min_members,
                     struct error *err)
{
    const char *name = draft->joint ? job : "main";
    json_t *pod_template = json_object_get(spec, "template"), *group;
    json_int_t members;
    char pattern[300];

    if (members_of(spec, &members, err) < 0)
        return -1;
    if (members_must_end(pod_template, "Never", err) < 0 || kueue_template(draft, pod_template, name, err) < 0)
        return error_in(err, "template");
    if (draft_pod_priority(draft, json_object_get(pod_template, "spec"), err) < 0)
        return error_in(err, "template.spec");
    snprintf(pattern, sizeof(pattern), "%s-{index}", job);
    group = draft_group(draft, name, members, pod_template, pattern);
    if (min_members > members)
        return error_field(err, "parallelism", "%lld is less than the least number of members, %lld",
                           (long long)members, (long long)min_members);
    if (min_members > 0 && min_members < members)
        json_object_set_new(group, "minReplicas", json_integer(min_members));
    return 0;
}

int job_decode(struct source *source, struct draft *draft, struct error *err)
{
    json_int_t min_members = 0;
    json_t *metadata, *spec;

    if (fields_check(source->object, &job_fields, err) < 0)
        return -1;
    metadata = json_object_get(source->object, "metadata");
    spec = json_object_get(source->object, "spec");
    draft_metadata(draft, metadata);
    if (kueue_workload(draft, metadata, WORKLOAD_JOB, NULL, &min_members, err) < 0)
        return -1;
    set_suspend(draft, spec);
    set_limits(draft, spec);
    if (job_group(draft, source->name, spec, min_members, err) < 0)
        return error_in(err, "spec");
    return 0;
}

/* ---- what a JobSet may hold ---- */

static const struct field child_spec_rows[] = {
    JOB_SPEC_ROWS,
    {.name = "ttlSecondsAfterFinished",
     FIELD_INT,
     .refused = "belongs to the JobSet: its jobs are kept as long as it is"},
    {.name = "suspend", FIELD_BOOL, .refused = "belongs to the JobSet"},
};
static const struct fields child_spec_fields = FIELDS(child_spec_rows);

static const struct field child_rows[] = {
    {.name = "metadata", FIELD_MAP}, /* of Job objects, which are not made */
    {.name = "spec", FIELD_OBJECT, .of = &child_spec_fields, .required = true},
};
static const struct fields child_fields = FIELDS(child_rows);

static const char *const default_group[] = {"default", NULL};

static const struct field replicated_rows[] = {
    {.name = "name", FIELD_STRING, .required = true},
    {.name = "groupName",
     FIELD_STRING,
     .one_of = default_group,
     .refused = "groups of replicated jobs are not supported"},
    {.name = "template", FIELD_OBJECT, .of = &child_fields, .required = true},
    {.name = "replicas", FIELD_INT, .min = 1, .max = MEMBERS_MAX},
    {.name = "dependsOn",
     FIELD_LIST,
     .refused = "a gang starts whole, not in stages: submit the stages as GangJobs that name each other in dependsOn"},
};
static const struct fields replicated_fields = FIELDS(replicated_rows);

static const char *const all_jobs[] = {"All", NULL};
static const struct field success_rows[] = {
    {.name = "operator", FIELD_STRING, .one_of = all_jobs, .refused = "a gang succeeds when all its members do"},
    {.name = "targetReplicatedJobs", FIELD_STRINGS, .max = LIST_MAX}, /* compared with all roles below */
};
static const struct fields success_fields = FIELDS(success_rows);

static const struct field failure_rows[] = {
    {.name = "maxRestarts", FIELD_INT, .min = 0, .max = INT32_MAX},
    {.name = "rules",
     FIELD_LIST,
     .refused = "a failure restarts the whole gang; rules for single jobs are not supported"},
    {.name = "restartStrategy", FIELD_STRING}, /* an attempt always waits until the one before is gone */
};
static const struct fields failure_fields = FIELDS(failure_rows);

/* Members look for each other while they start, long before they are ready. */
static int not_ready_check(json_t *value, struct error *err)
{
    if (json_is_false(value))
        return error_set(err, ERR_INVALID, "false is not supported: members find each other before they are ready");
    return 0;
}

static const struct field network_rows[] = {
    {.name = "enableDNSHostnames", FIELD_BOOL},
    {.name = "subdomain", FIELD_STRING, .refused = "the members' subdomain is chosen by queued: leave it out"},
    {.name = "publishNotReadyAddresses", FIELD_BOOL, .check = not_ready_check},
};
static const struct fields network_fields = FIELDS(network_rows);

static const char *const any_order[] = {"AnyOrder", NULL};
static const struct field startup_rows[] = {
    {.name = "startupPolicyOrder",
     FIELD_STRING,
     .one_of = any_order,
     .refused = "a gang starts whole, not in an order"},
};
static const struct fields startup_fields = FIELDS(startup_rows);

static const char *const jobset_managers[] = {"jobset.sigs.k8s.io/jobset-controller", NULL};

static const struct field jobset_spec_rows[] = {
    {.name = "replicatedJobs", FIELD_OBJECTS, .max = LIST_MAX, .of = &replicated_fields, .required = true},
    {.name = "network", FIELD_OBJECT, .of = &network_fields},
    {.name = "successPolicy", FIELD_OBJECT, .of = &success_fields},
    {.name = "failurePolicy", FIELD_OBJECT, .of = &failure_fields},
    {.name = "startupPolicy", FIELD_OBJECT, .of = &startup_fields},
    {.name = "suspend", FIELD_BOOL},
    {.name = "coordinator", FIELD_MAP, .refused = "not supported: every member is told the first one's address"},
    {.name = "managedBy", FIELD_STRING, .one_of = jobset_managers, .refused = "another controller would run it"},
    {.name = "ttlSecondsAfterFinished", FIELD_INT, .min = 0, .max = INT32_MAX},
    {.name = "volumeClaimPolicies",
     FIELD_LIST,
     .refused = "volumes are not made for a job: create the claims with kubectl"},
};
static const struct fields jobset_spec_fields = FIELDS(jobset_spec_rows);

static const struct field jobset_rows[] = {
    {.name = "apiVersion", FIELD_STRING},
    {.name = "kind", FIELD_STRING},
    {.name = "metadata", FIELD_OBJECT, .of = &job_metadata_fields, .required = true},
    {.name = "spec", FIELD_OBJECT, .of = &jobset_spec_fields, .required = true},
    {"status", .dropped = true},
};
static const struct fields jobset_fields = FIELDS(jobset_rows);

/* ---- JobSet ---- */

static int role_group(struct draft *draft, const char *jobset, const json_t *replicated, struct error *err)
{
    const char *role = json_string_value(json_object_get(replicated, "name"));
    const json_t *replicas = json_object_get(replicated, "replicas");
    const json_t *spec = json_object_get(json_object_get(replicated, "template"), "spec");
    json_t *pod_template = json_object_get(spec, "template"), *group;
    json_int_t jobs = replicas ? json_integer_value(replicas) : 1, members;
    char name[300], pattern[600];

    if (field_name_check(role, 63, false, err) < 0)
        return error_in(err, "name");
    snprintf(name, sizeof(name), draft->joint ? "%s-%s" : "%s%s", draft->joint ? jobset : "", role);
    if (members_of(spec, &members, err) < 0)
        return error_in(err, "template.spec");
    if (members_must_end(pod_template, "OnFailure", err) < 0 || kueue_template(draft, pod_template, name, err) < 0)
        return error_in(err, "template.spec.template");
    if (draft_pod_priority(draft, json_object_get(pod_template, "spec"), err) < 0)
        return error_in(err, "template.spec.template.spec");
    snprintf(pattern, sizeof(pattern), "%s-%s-{job}-{index}", jobset, role);
    group = draft_group(draft, name, jobs * members, pod_template, pattern);
    json_object_set_new(group, "jobSize", json_integer(members));
    return 0;
}

/* The restarts that a failure may cause: the JobSet's, or those that its jobs allow themselves, here the gang's too. */
static void jobset_retries(struct draft *draft, const json_t *spec)
{
    json_int_t retries = json_integer_value(json_object_get(json_object_get(spec, "failurePolicy"), "maxRestarts"));
    const json_t *replicated;
    size_t i;

    json_array_foreach (json_object_get(spec, "replicatedJobs"), i, replicated) {
        const json_t *job = json_object_get(json_object_get(replicated, "template"), "spec");
        json_int_t limit = json_integer_value(json_object_get(job, "backoffLimit"));

        retries = limit > retries ? limit : retries;
    }
    if (retries > 0)
        draft_set(draft, "retries", json_integer(retries));
}

/* The jobs' deadline, if it is the same for all: there is one for the gang. */
static int jobset_deadline(struct draft *draft, const json_t *jobs, struct error *err)
{
    const json_t *first = NULL, *replicated;
    size_t i;

    json_array_foreach (jobs, i, replicated) {
        const json_t *spec = json_object_get(json_object_get(replicated, "template"), "spec");
        const json_t *deadline = json_object_get(spec, "activeDeadlineSeconds");

        if (i == 0)
            first = deadline;
        if (json_integer_value(deadline) != json_integer_value(first)) {
            error_field(err, "template.spec.activeDeadlineSeconds",
                        "must be the same for all replicated jobs: a gang has one deadline");
            return error_in(err, "replicatedJobs[%zu]", i);
        }
    }
    if (first && !json_object_get(draft->spec, "maxRuntime"))
        draft_seconds(draft, "maxRuntime", json_integer_value(first));
    return 0;
}

static int jobset_success(const json_t *spec, struct error *err)
{
    const json_t *targets = json_object_get(json_object_get(spec, "successPolicy"), "targetReplicatedJobs"),
                 *replicated, *target;
    size_t i, j;

    if (json_array_size(targets) == 0)
        return 0;
    json_array_foreach (json_object_get(spec, "replicatedJobs"), i, replicated) {
        bool found = false;

        json_array_foreach (targets, j, target)
            found = found || json_equal(target, json_object_get(replicated, "name"));
        if (!found)
            return error_field(err, "successPolicy.targetReplicatedJobs",
                               "a gang succeeds when all its members do; %.63s is not among these",
                               json_string_value(json_object_get(replicated, "name")));
    }
    return 0;
}

static int jobset_spec(struct source *source, struct draft *draft, const json_t *spec, struct error *err)
{
    const json_t *jobs = json_object_get(spec, "replicatedJobs"),
                 *ttl = json_object_get(spec, "ttlSecondsAfterFinished");
    const json_t *replicated;
    size_t i;

    if (json_array_size(jobs) == 0)
        return error_field(err, "replicatedJobs", "a JobSet needs a replicated job");
    if (jobset_success(spec, err) < 0 || jobset_deadline(draft, jobs, err) < 0)
        return -1;
    set_suspend(draft, spec);
    if (json_is_false(json_object_get(json_object_get(spec, "network"), "enableDNSHostnames")))
        draft_set(draft, "network", json_pack("{s:b}", "enableDNSHostnames", 0));
    jobset_retries(draft, spec);
    if (ttl)
        draft_seconds(draft, "ttlAfterFinished", json_integer_value(ttl));
    json_array_foreach (jobs, i, replicated)
        if (role_group(draft, source->name, replicated, err) < 0)
            return error_in(err, "replicatedJobs[%zu]", i);
    return 0;
}

int jobset_decode(struct source *source, struct draft *draft, struct error *err)
{
    json_t *metadata;

    if (fields_check(source->object, &jobset_fields, err) < 0)
        return -1;
    metadata = json_object_get(source->object, "metadata");
    draft_metadata(draft, metadata);
    if (kueue_workload(draft, metadata, WORKLOAD_JOBSET, NULL, NULL, err) < 0)
        return -1;
    if (jobset_spec(source, draft, json_object_get(source->object, "spec"), err) < 0)
        return error_in(err, "spec");
    return 0;
}
