/* Commands on one job, and its logs. */
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "queued/internal.h"

#include "allocator/base/banned.h"

static int (*const actions[])(struct lifecycle *lifecycle, struct job *job, const char *who, struct error *err) = {
    [JOB_ACTION_CANCEL] = lifecycle_cancel,
    [JOB_ACTION_HOLD] = lifecycle_hold,
    [JOB_ACTION_RELEASE] = lifecycle_release,
    [JOB_ACTION_REQUEUE] = lifecycle_requeue,
};

void core_job_action(struct core *core, const struct caller *caller, const char *name, enum job_action action,
                     core_reply_fn *reply, void *ctx)
{
    struct error err = {0};
    struct job *job = NULL;

    if (core_check_writable(core, &err) == 0)
        job = caller_find_job_to_change(core, caller, name, &err);
    if (job && actions[action](core->lifecycle, job, caller->name, &err) == 0)
        reply_with(core, reply, ctx, job_view(core, job));
    else
        reply_error(core, reply, ctx, &err);
}

/* ---- logs: a question to the cluster, whose answer goes straight on ---- */

struct log_request {
    struct core *core;
    struct log_request *next; /* of those on their way */
    core_reply_fn *reply;
    void *ctx;
};

static void forget(struct log_request *request)
{
    struct log_request **at = &request->core->log_requests;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    free(request);
}

void log_requests_free(struct core *core)
{
    while (core->log_requests)
        forget(core->log_requests);
}

static void logs_done(void *ctx, const struct error *err, const json_t *object)
{
    struct log_request *request = ctx;
    struct core_reply reply = {.err = err, .body = object};

    request->reply(request->ctx, &reply);
    forget(request);
}

/* "group-index" as in the pod's name: the member's labels tell. */
static bool is_member(const struct launch_object *pod, const char *member)
{
    const json_t *labels = json_object_get(json_object_get(pod->body, "metadata"), "labels");
    BUF text = {0};

    buf_addf(&text, "%s-%s", json_string_value(json_object_get(labels, LABEL_GROUP)),
             json_string_value(json_object_get(labels, LABEL_INDEX)));
    return !member || strcmp(buf_str(&text), member) == 0 || strcmp(pod->name, member) == 0;
}

static const struct launch_object *find_member(const struct job *job, const char *member, struct error *err)
{
    for (size_t i = 0; job->live && i < job->live->n_objects; i++)
        if (job->live->objects[i].rank == RANK_POD && is_member(&job->live->objects[i], member))
            return &job->live->objects[i];
    if (!job->live)
        error_set(err, ERR_NOT_FOUND, "job %s (%lld) is %s: it has no members in the cluster", job_name(job),
                  (long long)job->id, state_name(job->state));
    else
        error_set(err, ERR_NOT_FOUND, "job %s (%lld) has no member %.100s", job_name(job), (long long)job->id, member);
    return NULL;
}

void core_logs(struct core *core, const struct caller *caller, const char *name, const char *member, size_t tail_lines,
               core_reply_fn *reply, void *ctx)
{
    struct error err = {0};
    const struct job *job = caller_find_job(core, caller, name, &err);
    const struct launch_object *pod = job ? find_member(job, member, &err) : NULL;
    struct log_request *request;

    if (!pod) {
        reply_error(core, reply, ctx, &err);
        return;
    }
    request = mem_new(struct log_request);
    *request = (struct log_request){core, core->log_requests, reply, ctx};
    core->log_requests = request;
    core->options.cluster->ops->logs(core->options.cluster, pod->ns, pod->name, tail_lines, logs_done, request);
}
