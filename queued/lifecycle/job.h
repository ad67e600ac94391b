/* queued/lifecycle/job.h - a job as the server knows it, and all of them. Loop thread only. */
#ifndef QUEUED_LIFECYCLE_JOB_H
#define QUEUED_LIFECYCLE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "queued/admission/plan.h"
#include "queued/lifecycle/ask.h"
#include "queued/lifecycle/attempt.h"
#include "queued/lifecycle/blueprint.h"
#include "queued/lifecycle/states.h"

struct ask;
struct lifecycle;

struct job {
    int64_t id;
    char *queue, *user;
    struct blueprint *blueprint; /* never NULL; its spec has name and namespace */
    int64_t submitted_ms;

    /* What is stored with every change; job_move() and job_save() alone write it. */
    enum job_state state;
    enum job_state ending; /* where it goes when its attempt is gone; JOB_STATE_COUNT: nobody ends it */
    char *reason;          /* why it is where it is: the last failure, who cancelled it; "" */
    int64_t priority, attempt, retries_left, failures, not_before_ms, started_ms, ended_ms, exit_code;

    struct attempt *live; /* not NULL exactly while the state is live */

    /* Attempts in a row that the API server refused as invalid in the same words; not stored: a restart counts anew. */
    int n_refusals;
    char *refusal;

    struct ask *ask;    /* what nodes are asked for with, or NULL; not stored: the cluster tells it again */
    enum ask_wish wish; /* of the last planning round */

    size_t n_members; /* of the last attempt; 0: none yet, or not known any more */

    int64_t *waits_for; /* ids of jobs that must succeed first */
    size_t n_waits_for;

    /* What the last planning round said of it; not stored. */
    struct {
        bool is_known;
        enum plan_layer layer;
        char *reason;
        bool is_never;
        size_t position;
        bool is_brief; /* the explanation counts only */
        json_t *explanation;
    } wait;
    uint64_t last_look; /* the last planning round that came to it, in place of passing over it; not stored */

    uint64_t version; /* grows with every change: a plan made for an older one is void */
    int64_t due_ms;   /* it wants to be looked at then; INT64_MAX: only when something happens */
    bool is_awaited;  /* attempts wait until it has its devices: wake_behind() */
    bool is_dirty;    /* it wants to be looked at now */
};

const char *job_name(const struct job *job);
const char *job_ns(const struct job *job);
bool job_is_live(const struct job *job);
bool job_has_ended(const struct job *job);
/* A sentence for people: why it waits, what it is doing, how it ended. */
const char *job_sentence(const struct job *job);

/* All jobs, ascending by id. */
struct job_list {
    struct job **items;
    size_t n, cap;
};
struct job *job_list_find(const struct job_list *list, int64_t id); /* NULL if there is none */

/* Keep what a planning round said (outcome of a job that waits), or forget it (NULL). */
void job_set_wait(struct job *job, const struct plan_outcome *outcome, bool is_brief);

#endif
