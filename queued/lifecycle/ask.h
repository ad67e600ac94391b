/* queued/lifecycle/ask.h - asking an autoscaler for the nodes that a waiting job lacks.
 *
 * A planning round says which jobs nodes should be asked for (lifecycle_wish_nodes). For such a job the objects of
 * ask_objects.h are created; what the autoscaler answers is read from the request's conditions. Decided by looking at
 * what is there, as a launch is: a restart goes on with the request that it finds.
 *
 *   waits, wished for           created; kept while it is neither refused nor over
 *   refused, failed, expired    told, and asked again after 1 min, 2 min, ... 30 min, as a new request
 *   waits for something else    removed
 *   admitted                    removed, unless the nodes were made for it: then members say that they take that room,
 *                               and the request stays until the attempt has ended (autoscalers may look at it so long)
 *   held, ended                 removed
 *
 * Source of the conditions: kubernetes/autoscaler, apis/provisioningrequest/autoscaling.x-k8s.io/v1/types.go. Delays as
 * by default in Kueue's ProvisioningRequestConfig (retryStrategy). Loop thread only. */
#ifndef QUEUED_LIFECYCLE_ASK_H
#define QUEUED_LIFECYCLE_ASK_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct lifecycle;

/* What the last planning round means for a request. */
enum ask_wish {
    ASK_UNKNOWN, /* no round came to the job yet: what is there stays */
    ASK_NO,
    ASK_KEEP,  /* nothing new: it may start soon, or was not looked at */
    ASK_NODES, /* nodes are what it lacks */
};

/* A round has decided. Only of pending jobs. */
void lifecycle_wish_nodes(struct lifecycle *lifecycle, struct job *job, enum ask_wish wish);

struct ask_view {
    const char *name;   /* of the request; "" before it is there */
    const char *state;  /* "asking", "asked", "accepted", "provisioned", "expired", "failed", "refused" */
    const char *detail; /* the autoscaler's or the API server's words, or "" */
    int64_t again_ms;   /* when it is asked again; 0: it need not be */
};
/* What became of the job's request; false when nothing is asked for. Borrowed until the job changes. */
bool job_ask_view(const struct job *job, struct ask_view *out);

/* The name of the request whose nodes are there for this job now; NULL: none. */
const char *job_ask_provisioned(const struct job *job);

#endif
