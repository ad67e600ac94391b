/* Who may see and do what. A viewer sees the queues that it may use; a submitter adds jobs there and acts on its own; a
 * queue's administrator acts on all jobs there; an administrator may do everything. What a caller may not see does not
 * exist for it. */
#include <stdlib.h>
#include <string.h>

#include "queued/internal.h"

#include "allocator/base/banned.h"

static const char *const roles[] = {
    [ROLE_NONE] = "none",           [ROLE_VIEWER] = "viewer",
    [ROLE_SUBMITTER] = "submitter", [ROLE_QUEUE_ADMIN] = "queue-admin",
    [ROLE_ADMIN] = "admin",
};

const char *role_name(enum role role)
{
    return roles[role];
}

bool role_find(const char *name, enum role *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
        if (strcmp(roles[i], name) == 0) {
            *out = (enum role)i;
            return true;
        }
    return false;
}

int caller_needs(const struct caller *caller, enum role role, struct error *err)
{
    if (caller->role >= role)
        return 0;
    return error_set(err, ERR_DENIED, "this needs the role %s", role_name(role));
}

bool caller_sees_queue(const struct caller *caller, const char *queue)
{
    const json_t *name;
    size_t i;

    if (caller->role >= ROLE_ADMIN || !caller->queues)
        return true;
    json_array_foreach(caller->queues, i, name) if (strcmp(json_string_value(name), queue) == 0) return true;
    return false;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && strlen(text) < 19 && strspn(text, "0123456789") == strlen(text);
}

static bool has_name(const struct job *job, const char *ns, size_t ns_len, const char *name)
{
    if (strcmp(job_name(job), name) != 0)
        return false;
    return !ns || (strlen(job_ns(job)) == ns_len && strncmp(job_ns(job), ns, ns_len) == 0);
}

/* The newest that has not ended; else the newest. */
static struct job *find_by_name(const struct core *core, const struct caller *caller, const char *text)
{
    const struct job_list *jobs = lifecycle_jobs(core->lifecycle);
    const char *slash = strchr(text, '/');
    struct job *newest = NULL;

    for (size_t i = jobs->n; i-- > 0;) {
        struct job *job = jobs->items[i];

        if (!has_name(job, slash ? text : NULL, slash ? (size_t)(slash - text) : 0, slash ? slash + 1 : text) ||
            !caller_sees_queue(caller, job->queue))
            continue;
        if (!job_has_ended(job))
            return job;
        if (!newest)
            newest = job;
    }
    return newest;
}

struct job *caller_find_job(struct core *core, const struct caller *caller, const char *name, struct error *err)
{
    struct job *job = NULL;

    if (caller_needs(caller, ROLE_VIEWER, err) < 0)
        return NULL;
    if (is_number(name))
        job = job_list_find(lifecycle_jobs(core->lifecycle), strtoll(name, NULL, 10));
    if (job && !caller_sees_queue(caller, job->queue))
        job = NULL;
    if (!job)
        job = find_by_name(core, caller, name);
    if (!job)
        error_set(err, ERR_NOT_FOUND, "there is no job %.200s", name);
    return job;
}

struct job *caller_find_job_to_change(struct core *core, const struct caller *caller, const char *name,
                                      struct error *err)
{
    struct job *job;

    if (caller_needs(caller, ROLE_SUBMITTER, err) < 0)
        return NULL;
    job = caller_find_job(core, caller, name, err);
    if (job && caller->role < ROLE_QUEUE_ADMIN && strcmp(job->user, caller->name) != 0) {
        error_set(err, ERR_DENIED, "job %lld belongs to %s", (long long)job->id, job->user);
        return NULL;
    }
    return job;
}
