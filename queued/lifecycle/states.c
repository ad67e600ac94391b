#include "queued/lifecycle/states.h"

#include <stddef.h>
#include <strings.h>

#include "allocator/base/compiler.h"

#include "allocator/base/banned.h"

#define GONE (BIT(JOB_PENDING) | BIT(JOB_FAILED) | BIT(JOB_CANCELLED))

static const struct {
    const char *name;
    unsigned next;
} states[JOB_STATE_COUNT] = {
    [JOB_HELD] = {"Held", BIT(JOB_PENDING) | BIT(JOB_CANCELLED)},
    [JOB_PENDING] = {"Pending", BIT(JOB_HELD) | BIT(JOB_ADMITTED) | BIT(JOB_CANCELLED)},
    [JOB_ADMITTED] = {"Admitted", BIT(JOB_LAUNCHING) | BIT(JOB_PREEMPTING) | GONE},
    [JOB_LAUNCHING] = {"Launching", BIT(JOB_RUNNING) | BIT(JOB_PREEMPTING) | GONE},
    [JOB_RUNNING] = {"Running", BIT(JOB_SUCCEEDED) | BIT(JOB_PREEMPTING) | GONE},
    [JOB_PREEMPTING] = {"Preempting", GONE},
    [JOB_SUCCEEDED] = {"Succeeded", 0},
    [JOB_FAILED] = {"Failed", 0},
    [JOB_CANCELLED] = {"Cancelled", 0},
};

const char *state_name(enum job_state state)
{
    return state < JOB_STATE_COUNT ? states[state].name : NULL;
}

bool state_find(const char *name, enum job_state *out)
{
    for (enum job_state state = 0; state < JOB_STATE_COUNT; state++)
        if (strcasecmp(states[state].name, name) == 0) {
            *out = state;
            return true;
        }
    return false;
}

bool state_may(enum job_state from, enum job_state to)
{
    return from < JOB_STATE_COUNT && to < JOB_STATE_COUNT && (states[from].next & BIT(to));
}

bool state_is_live(enum job_state state)
{
    return state >= JOB_ADMITTED && state <= JOB_PREEMPTING;
}

bool state_is_final(enum job_state state)
{
    return state < JOB_STATE_COUNT && states[state].next == 0;
}
