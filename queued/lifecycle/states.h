/* queued/lifecycle/states.h - the states of a job and the legal moves between them (contract).
 *
 *   Held <--> Pending --plan--> Admitted --all created--> Launching --all run--> Running --> Succeeded | Failed
 *                ^                  |                         |                     |
 *                |                  +-------------------------+------- requeue -----+--> Preempting
 *                +---- gone --------+-------------------------+---------------------+--------+
 *
 * and from every state that is not final to Cancelled. A job in Admitted, Launching, Running or Preempting is *live*:
 * it has an attempt, holds its placement and is charged for it. It leaves these four only when nothing of the attempt
 * is left in the cluster; until then `ending` says where it will go. So a job that waits or has ended has nothing in
 * the cluster. */
#ifndef QUEUED_LIFECYCLE_STATES_H
#define QUEUED_LIFECYCLE_STATES_H

#include <stdbool.h>

enum job_state {
    JOB_HELD,
    JOB_PENDING,
    JOB_ADMITTED,
    JOB_LAUNCHING,
    JOB_RUNNING,
    JOB_PREEMPTING,
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATE_COUNT, /* also: none */
};

const char *state_name(enum job_state state); /* "Held"; NULL for JOB_STATE_COUNT */
/* By name, upper and lower case alike. Returns false when there is no such state. */
bool state_find(const char *name, enum job_state *out);
bool state_may(enum job_state from, enum job_state to);
bool state_is_live(enum job_state state);
bool state_is_final(enum job_state state);

#endif
