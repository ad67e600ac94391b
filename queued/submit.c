/* Submission: documents in, jobs or problems out. Everything is checked before anything is recorded, so that of a
 * submission all jobs are accepted or none. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/classes.h"
#include "queued/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

#define DEFAULT_QUEUE "default" /* for jobs that name none, if there is such a queue */
#define MAX_JOBS      1000      /* of one submission */

#define MAX_CLAIM_USERS 256 /* entries of a claim's status.reservedFor */

/* One submission on its way. */
struct submission {
    struct core *core;
    const struct caller *caller;
    const json_t *documents;
    const struct submit_options *options;
    json_t *gangjobs;
    struct blueprint **blueprints;
    size_t *queues; /* index into the book, one per job */
    int64_t *priorities;
    size_t n;
    json_t *problems; /* what is wrong, by document */
    struct error err; /* the first of it */
};

static void submission_release(struct submission *s)
{
    for (size_t i = 0; s->blueprints && i < s->n; i++)
        blueprint_unref(s->blueprints[i]);
    free(s->blueprints);
    free(s->queues);
    free(s->priorities);
    json_decref(s->gangjobs);
    json_decref(s->problems);
}

/* ---- problems ---- */

static int problem(struct submission *s, size_t document, const struct error *err)
{
    if (!s->problems)
        s->problems = json_array();
    if (!s->err.code)
        s->err = *err;
    json_array_append_new(s->problems, json_pack("{s:I, s:s, s:s}", "document", (json_int_t)document, "field",
                                                 err->field, "detail", err->text));
    return -1;
}

/* The document that a job came from: the one of its name that is no claim; the first if none is. */
static size_t document_of(const struct submission *s, const char *name)
{
    const json_t *object;
    size_t i;

    json_array_foreach (s->documents, i, object) {
        const char *kind = json_string_value(json_object_get(object, "kind"));
        const char *own = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));

        if (kind && own && strcmp(own, name) == 0 && strncmp(kind, "ResourceClaim", 13) != 0)
            return i;
    }
    return 0;
}

static int job_problem(struct submission *s, size_t job, const char *field, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
static int job_problem(struct submission *s, size_t job, const char *field, enum err_code code, const char *fmt, ...)
{
    struct error err = {0};
    char words[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    error_field(&err, field, "%s", words);
    err.code = code;
    return problem(s, document_of(s, s->blueprints[job]->spec.name), &err);
}

/* ---- checks ---- */

static int decode(struct submission *s)
{
    struct job_decode_options options = {.default_namespace = s->options->ns, .one_job = s->options->one_job};
    struct job_problem wrong = {0};

    if (jobs_decode(s->documents, &options, &s->gangjobs, &wrong) < 0)
        return problem(s, wrong.document, &wrong.error);
    s->n = json_array_size(s->gangjobs);
    if (s->n > 0 && s->n <= MAX_JOBS)
        return 0;
    error_set(&s->err, s->n ? ERR_LIMIT : ERR_INVALID,
              s->n ? "a submission may have at most %d jobs" : "the submission has no job", MAX_JOBS);
    return -1;
}

static int parse(struct submission *s)
{
    s->blueprints = mem_array(struct blueprint *, s->n);
    s->queues = mem_array(size_t, s->n);
    s->priorities = mem_array(int64_t, s->n);
    for (size_t i = 0; i < s->n; i++) {
        json_t *gangjob = json_array_get(s->gangjobs, i);
        const char *name = json_string_value(json_object_get(json_object_get(gangjob, "metadata"), "name"));
        struct error err = {0};

        if (s->options->queue)
            json_object_set_new(json_object_get(gangjob, "spec"), "queue", json_string(s->options->queue));
        if (blueprint_new(gangjob, &s->blueprints[i], &err) < 0)
            return problem(s, document_of(s, name ? name : ""), &err);
    }
    return 0;
}

static int check_queue(struct submission *s, size_t job)
{
    const struct book *book = s->core->book;
    const char *name = s->blueprints[job]->spec.queue;
    size_t queue = book_find_queue(book, name[0] ? name : DEFAULT_QUEUE);

    if (!name[0] && queue == SIZE_MAX)
        return job_problem(s, job, "spec.queue", ERR_INVALID,
                           "names no queue, and there is none called " DEFAULT_QUEUE);
    if (queue == SIZE_MAX || !caller_sees_queue(s->caller, book->queues[queue].name))
        return job_problem(s, job, "spec.queue", ERR_INVALID, "there is no queue %s", name);
    if (!book_is_leaf(book, queue))
        return job_problem(s, job, "spec.queue", ERR_INVALID, "queue %s has queues below it: jobs go into one of those",
                           book->queues[queue].name);
    for (size_t above = queue; above != PLAN_ROOT; above = book->queues[above].parent)
        if (book->queues[above].state == QUEUE_DRAINED)
            return job_problem(s, job, "spec.queue", ERR_CONFLICT, "queue %s is drained: it takes no jobs",
                               book->queues[above].name);
    s->queues[job] = queue;
    return 0;
}

/* Whether the job's class is one that its pods name, a class of the cluster, rather than one of queued's own. */
static bool pods_name_class(const struct job_spec *spec)
{
    for (size_t g = 0; g < spec->shapes[0].n_groups; g++) {
        const json_t *pod = json_object_get(spec->shapes[0].groups[g].pod, "spec");
        const char *class = json_string_value(json_object_get(pod, "priorityClassName"));

        if (class && strcmp(class, spec->priority_class) == 0)
            return true;
    }
    return false;
}

/* A cluster without a single PriorityClass does not know the kind: every real one has its own two. */
static bool cluster_tells_classes(const struct core *core)
{
    return json_object_size(world_kept(core->world, WORLD_PRIORITY_CLASSES)) > 0;
}

/* The job's own class is queued's; that of its pods may be the cluster's as well, as it is for those who come from
 * Kueue. Queued's own comes first where both have one of the name. */
static int check_priority(struct submission *s, size_t job)
{
    const struct job_spec *spec = &s->blueprints[job]->spec;
    const struct book_priority *found;
    const char *by_default;

    s->priorities[job] = spec->has_priority ? spec->priority : 0;
    if (spec->has_priority)
        return 0;
    if (!spec->priority_class) {
        by_default = cluster_default_priority(s->core);
        if (by_default)
            (void)cluster_priority(s->core, by_default, &s->priorities[job]);
        return 0;
    }
    found = book_find_priority(s->core->book, spec->priority_class);
    if (!found && cluster_priority(s->core, spec->priority_class, &s->priorities[job]))
        return 0;
    if (!found && pods_name_class(spec) && (!s->core->is_synced || cluster_tells_classes(s->core)))
        return 0; /* the job waits for the class and says so */
    if (!found)
        return job_problem(s, job, "spec.priorityClassName", ERR_INVALID, "there is no priority class %s",
                           spec->priority_class);
    s->priorities[job] = found->value;
    return 0;
}

/* A job before this one in the same submission, by name. */
static bool is_in_submission(const struct submission *s, size_t job, const char *name, size_t *out)
{
    for (size_t i = 0; i < job; i++)
        if (strcmp(s->blueprints[i]->spec.name, name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static struct job *find_dependency(struct submission *s, size_t job, const char *name, struct error *err)
{
    BUF full = {0};
    struct caller all = {.role = ROLE_ADMIN, .name = s->caller->name, .queues = NULL};

    if (!strchr(name, '/'))
        buf_addf(&full, "%s/", s->blueprints[job]->spec.ns);
    buf_adds(&full, name);
    return caller_find_job(s->core, &all, buf_str(&full), err);
}

static int check_dependencies(struct submission *s, size_t job)
{
    const struct job_spec *spec = &s->blueprints[job]->spec;

    for (size_t i = 0; i < spec->n_depends_on; i++) {
        struct error err = {0};
        struct job *other;
        char field[64];
        size_t before;

        snprintf(field, sizeof(field), "spec.dependsOn[%zu]", i);
        if (is_in_submission(s, job, spec->depends_on[i], &before))
            continue;
        other = find_dependency(s, job, spec->depends_on[i], &err);
        if (!other)
            return job_problem(s, job, field, ERR_INVALID, "%s (jobs of the same submission must come before)",
                               err.text);
        if (job_has_ended(other) && other->state != JOB_SUCCEEDED)
            return job_problem(s, job, field, ERR_CONFLICT, "job %s (%lld) is %s already", job_name(other),
                               (long long)other->id, state_name(other->state));
    }
    return 0;
}

/* ---- claims that members share ---- */

static bool uses(const struct job_group *group, enum job_claim_source source, const char *name)
{
    for (size_t c = 0; c < group->n_claims; c++)
        if (group->claims[c].source == source && strcmp(group->claims[c].name, name) == 0)
            return true;
    return false;
}

/* How many members share this claim at least, of an elastic gang. */
static size_t n_users(const struct job_shape *shape, enum job_claim_source source, const char *name)
{
    size_t n = 0;

    for (size_t g = 0; g < shape->n_groups; g++)
        if (uses(&shape->groups[g], source, name))
            n += shape->groups[g].min_replicas;
    return n;
}

static int check_group_sharing(struct submission *s, size_t job, const struct job_shape *shape, size_t group)
{
    const struct job_group *g = &shape->groups[group];

    for (size_t c = 0; c < g->n_claims; c++) {
        const struct job_claim *claim = &g->claims[c];
        size_t n = claim->source == JOB_CLAIM_OWN ? 0 : n_users(shape, claim->source, claim->name);
        char field[120];

        if (n <= MAX_CLAIM_USERS)
            continue;
        snprintf(field, sizeof(field), "spec.groups[%zu].template.spec.resourceClaims[%zu]", group, c);
        return job_problem(s, job, shape == s->blueprints[job]->spec.shapes ? field : "spec.alternatives", ERR_INVALID,
                           "%zu members share the claim %s: Kubernetes reserves a claim for at most %d pods", n,
                           claim->name, MAX_CLAIM_USERS);
    }
    return 0;
}

static int check_sharing(struct submission *s, size_t job)
{
    const struct job_spec *spec = &s->blueprints[job]->spec;

    for (size_t i = 0; i < spec->n_shapes; i++)
        for (size_t g = 0; g < spec->shapes[i].n_groups; g++)
            if (check_group_sharing(s, job, &spec->shapes[i], g) < 0)
                return -1;
    return 0;
}

static void check_class(void *ctx, size_t document, const char *field, const char *name)
{
    struct submission *s = ctx;
    struct error err = {0};

    if (world_has(s->core->world, "DeviceClass", NULL, name))
        return;
    error_field(&err, field, "there is no device class %s in the cluster", name);
    problem(s, document, &err);
}

static int check(struct submission *s)
{
    static int (*const checks[])(struct submission * s, size_t job) = {check_queue, check_priority, check_dependencies,
                                                                     check_sharing};

    if (decode(s) < 0 || parse(s) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < ARRAY_SIZE(checks); k++)
            if (checks[k](s, i) < 0)
                break;      /* the first of each job */
    if (s->core->is_synced) /* before, nobody knows what is missing: such a job waits and says so */
        documents_each_class(s->documents, check_class, s);
    return s->problems ? -1 : 0;
}

/* ---- idempotency ---- */

/* What a key stands for: documents and options. */
static void hash_request(const struct submission *s, unsigned char out[STORE_HASH_BYTES])
{
    json_t *request = json_pack("{s:O, s:s?, s:s?, s:b}", "documents", s->documents, "namespace", s->options->ns,
                                "queue", s->options->queue, "oneJob", s->options->one_job);
    char *bytes = json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT);

    store_hash(bytes, strlen(bytes), out);
    free(bytes);
    json_decref(request);
}

struct earlier {
    unsigned char request[STORE_HASH_BYTES];
    json_t *ids;
};

static void keep_earlier(void *ctx, const struct key_row *row)
{
    struct earlier *earlier = ctx;

    memcpy(earlier->request, row->request, sizeof(earlier->request));
    earlier->ids = json_loads(row->jobs, 0, NULL);
}

/* Returns the first answer's jobs as they are now; NULL when the key is new, or with err when it is another request's.
 */
static json_t *answer_again(struct submission *s)
{
    struct earlier earlier = {.ids = NULL};
    unsigned char request[STORE_HASH_BYTES];
    json_t *jobs = NULL, *id;
    size_t i;

    if (store_key_find(s->core->options.store, s->caller->name, s->options->idempotency_key, keep_earlier, &earlier,
                       &s->err) < 0 ||
        !earlier.ids)
        return NULL;
    hash_request(s, request);
    if (memcmp(request, earlier.request, sizeof(request)) != 0) {
        error_set(&s->err, ERR_CONFLICT, "this idempotency key was used for another submission");
    } else {
        jobs = json_array();
        json_array_foreach (earlier.ids, i, id) {
            const struct job *job = job_list_find(lifecycle_jobs(s->core->lifecycle), json_integer_value(id));

            if (job)
                json_array_append_new(jobs, job_view(s->core, job));
        }
    }
    json_decref(earlier.ids);
    return jobs;
}

static void keep_key(struct submission *s, const int64_t *ids)
{
    json_t *array = json_array();
    struct key_row row = {
        .user = s->caller->name, .key = s->options->idempotency_key, .created_ms = core_now_ms(s->core)};
    char *text;

    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(array, json_integer(ids[i]));
    text = json_dumps(array, JSON_COMPACT);
    row.jobs = text;
    hash_request(s, row.request);
    store_key_insert(s->core->options.store, &row);
    free(text);
    json_decref(array);
}

/* ---- recording ---- */

/* Ids of what a job waits for: of jobs that have not ended yet. */
static size_t dependencies_of(struct submission *s, size_t job, const int64_t *ids, int64_t *out)
{
    const struct job_spec *spec = &s->blueprints[job]->spec;
    size_t n = 0, before;

    for (size_t i = 0; i < spec->n_depends_on; i++) {
        struct job *other;

        if (is_in_submission(s, job, spec->depends_on[i], &before)) {
            out[n++] = ids[before];
            continue;
        }
        other = find_dependency(s, job, spec->depends_on[i], NULL);
        if (other && !job_has_ended(other))
            out[n++] = other->id;
    }
    return n;
}

static struct job *record_one(struct submission *s, size_t i, const int64_t *ids)
{
    int64_t *waits_for = mem_array(int64_t, s->blueprints[i]->spec.n_depends_on + 1);
    struct job_submission submission = {
        .blueprint = s->blueprints[i],
        .queue = s->core->book->queues[s->queues[i]].name,
        .user = s->caller->name,
        .priority = s->priorities[i],
        .waits_for = waits_for,
        .n_waits_for = dependencies_of(s, i, ids, waits_for),
    };
    struct job *job = lifecycle_submit(s->core->lifecycle, &submission);

    free(waits_for);
    return job;
}

static json_t *record(struct submission *s)
{
    json_t *views = json_array();
    int64_t *ids = mem_array(int64_t, s->n);

    for (size_t i = 0; i < s->n; i++) {
        struct job *job = record_one(s, i, ids);

        if (!job) /* the turn has failed: its commit will tell why, to everybody */
            break;
        ids[i] = job->id;
        json_array_append_new(views, job_view(s->core, job));
    }
    if (s->options->idempotency_key)
        keep_key(s, ids);
    free(ids);
    return views;
}

/* What would happen, with nothing recorded: the job's specification and the search's answer. */
static json_t *predict_only(struct submission *s)
{
    json_t *predictions = planner_predict(s->core, s->blueprints, s->queues, s->priorities, s->n);
    json_t *views = json_array(), *prediction;
    size_t i;

    json_array_foreach (predictions, i, prediction) {
        const struct job_spec *spec = &s->blueprints[i]->spec;

        json_array_append_new(views, json_pack("{s:s, s:s, s:s, s:I, s:O, s:O}", "name", spec->name, "namespace",
                                               spec->ns, "queue", s->core->book->queues[s->queues[i]].name, "priority",
                                               (json_int_t)s->priorities[i], "prediction", prediction, "spec",
                                               json_object_get(s->blueprints[i]->gangjob, "spec")));
    }
    json_decref(predictions);
    return views;
}

static json_t *run(struct submission *s)
{
    json_t *jobs;

    if (caller_needs(s->caller, ROLE_SUBMITTER, &s->err) < 0 ||
        (!s->options->dry_run && core_check_writable(s->core, &s->err) < 0))
        return NULL;
    if (s->options->idempotency_key && !s->options->dry_run) {
        jobs = answer_again(s);
        if (jobs || s->err.code)
            return jobs;
    }
    if (check(s) < 0)
        return NULL;
    return s->options->dry_run ? predict_only(s) : record(s);
}

void core_submit(struct core *core, const struct caller *caller, const json_t *documents,
                 const struct submit_options *options, core_reply_fn *reply, void *ctx)
{
    struct submission s = {.core = core, .caller = caller, .documents = documents, .options = options};
    json_t *jobs = run(&s);

    if (jobs)
        reply_with(core, reply, ctx, json_pack("{s:o}", "jobs", jobs));
    else
        reply_problems(core, reply, ctx, &s.err, json_incref(s.problems));
    submission_release(&s);
}
