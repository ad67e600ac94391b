/* Members on nodes that do not answer. The API server keeps a pod that was deleted until its kubelet says that it has
 * ended; a kubelet that is gone for good never does. Then its devices could be had by nobody, and the gang not start
 * again. So after a time that the administrator sets the pod is deleted with no grace. What is given up with it is
 * certainty: a node that was only cut off may still run the member, until it hears of the deletion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/base/checked.h"
#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/lifecycle/internal.h"

#include "allocator/base/banned.h"

#define WAITS_NAMED 3

/* The end of its grace; INT64_MAX: it is not being deleted. */
static int64_t grace_ends_ms(const json_t *pod)
{
    const char *text = json_text_at(pod, "metadata", "deletionTimestamp", NULL);
    struct tm date = {0};

    return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &date) ? (int64_t)timegm(&date) * 1000 : INT64_MAX;
}

static const char *node_of(const struct launch_object *pod)
{
    return json_text_at(pod->observed, "spec", "nodeName", NULL);
}

/* Its node should say that it has ended, and does not answer. When it is not waited for any more: out_at_ms, INT64_MAX
 * is never. */
static bool is_held_by_silence(struct lifecycle *lc, const struct launch_object *pod, int64_t *out_at_ms)
{
    int64_t from_ms = grace_ends_ms(pod->observed), silent_ms, timeout_ms = lc->options.lost_node_timeout_ms;

    if (pod->rank != RANK_POD || !pod->is_there || from_ms == INT64_MAX || !node_of(pod) ||
        !lc->options.node_is_silent(lc->options.ctx, node_of(pod), &silent_ms))
        return false;
    from_ms = silent_ms > from_ms ? silent_ms : from_ms;
    if (timeout_ms == 0 || !checked_add(from_ms, timeout_ms, out_at_ms))
        *out_at_ms = INT64_MAX;
    return true;
}

bool member_is_given_up(struct lifecycle *lc, struct job *job, struct launch_object *pod)
{
    int64_t at_ms;

    if (pod->is_given_up)
        return true;
    if (!is_held_by_silence(lc, pod, &at_ms) || lifecycle_now_ms(lc) < at_ms)
        return false;
    pod->is_given_up = true;
    pod->failures = 0;
    pod->retry_ms = 0;
    job_event(lc, job, "MemberGivenUp",
              "pod %s is deleted without the word of node %s, which does not answer: if the node is only cut off, the "
              "member may still run there, with its devices, until the node hears of it",
              pod->name, node_of(pod));
    return true;
}

static void add_wait(struct lifecycle *lc, struct buf *text, const struct launch_object *pod, int64_t at_ms)
{
    long long minutes = at_ms / 60000 % (24 * 60);

    buf_addf(text, "%swaits for node %s, which does not answer, to give up pod %s", text->len ? "; " : "", node_of(pod),
             pod->name);
    if (at_ms == INT64_MAX)
        buf_adds(text, "; until it does, or is taken out of the cluster");
    else if (at_ms > lifecycle_now_ms(lc))
        buf_addf(text, "; it is given up at %02lld:%02lld UTC", minutes / 60, minutes % 60);
    else
        buf_adds(text, "; it is given up now");
}

void attempt_set_waits(struct lifecycle *lc, struct job *job, char *waits)
{
    char **old = &job->live->waits;
    bool is_same = (!waits && !*old) || (waits && *old && strcmp(waits, *old) == 0);

    free(*old);
    *old = waits;
    if (is_same)
        return;
    job->version++;
    lc->options.changed(lc->options.ctx, job);
}

void attempt_note_silence(struct lifecycle *lc, struct job *job)
{
    size_t n = 0;
    BUF text = {0};

    if (job->reason[0])
        buf_adds(&text, job->reason);
    for (size_t i = 0; i < job->live->n_objects; i++) {
        const struct launch_object *pod = &job->live->objects[i];
        int64_t at_ms;

        if (!is_held_by_silence(lc, pod, &at_ms))
            continue;
        if (at_ms != INT64_MAX && at_ms > lifecycle_now_ms(lc))
            job_wake_at(lc, job, at_ms);
        if (n++ < WAITS_NAMED)
            add_wait(lc, &text, pod, at_ms);
    }
    if (n > WAITS_NAMED)
        buf_addf(&text, "; and %zu more", n - WAITS_NAMED);
    attempt_set_waits(lc, job, n > 0 ? buf_take(&text) : NULL);
}

void lifecycle_nodes_changed(struct lifecycle *lc)
{
    for (size_t i = 0; i < lc->jobs.n; i++)
        if (lc->jobs.items[i]->live && lc->jobs.items[i]->ending != JOB_STATE_COUNT)
            job_touch(lc, lc->jobs.items[i]);
}
