/* queued/admission/effective.h - which placement a job is planned with: fragmentation, pack or spread.
 *
 * What the job says itself counts; else what its queue says; else what the nearest queue above says that says anything;
 * else fragmentation. This is the one place that knows the rule: planning, dry runs, explanations and views ask here.
 */
#ifndef QUEUED_ADMISSION_EFFECTIVE_H
#define QUEUED_ADMISSION_EFFECTIVE_H

#include <stddef.h>

#include "queued/manifest/job.h"

struct plan_queue;

enum placement_source { PLACEMENT_OF_DEFAULT, PLACEMENT_OF_QUEUE, PLACEMENT_OF_JOB };

struct effective_placement {
    enum job_placement placement; /* never JOB_PLACEMENT_DEFAULT */
    enum placement_source source;
    const char *queue; /* that says so, borrowed from `queues`; NULL for the other sources */
};

/* own      what the job says; JOB_PLACEMENT_DEFAULT when it says nothing, or when the question is about the queue
 * queues   of a plan_input or a book; their parents form a tree
 * queue    index into `queues`; PLAN_ROOT: no queue is asked
 *
 * Pure; any thread. */
struct effective_placement effective_placement_of(enum job_placement own, const struct plan_queue *queues,
                                                  size_t queue);

/* "job", "queue", "default" */
const char *placement_source_name(enum placement_source source);

#endif
