/* Requests that answer later: each looks again after every turn that changed something. A look is a query from memory.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/event.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "api/internal.h"

#include "allocator/base/banned.h"

struct waiter {
    struct request *request;
    struct waiter *next, *prev;
    struct event *timer;
    void (*look)(struct request *request, bool is_over);
};

static const struct {
    const char *name;
    bool is_final;
} states[] = {
    {"Held", false},       {"Pending", false},  {"Admitted", false}, {"Launching", false}, {"Running", false},
    {"Preempting", false}, {"Succeeded", true}, {"Failed", true},    {"Cancelled", true},
};

const char *job_state_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcasecmp(states[i].name, name) == 0)
            return states[i].name;
    return NULL;
}

bool job_state_is_final(const char *state)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(states[i].name, state) == 0)
            return states[i].is_final;
    return false;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct waiter *waiter = arg;

    (void)fd, (void)what;
    waiter->look(waiter->request, true);
}

void waiter_free(struct waiter *waiter)
{
    if (!waiter)
        return;
    if (waiter->prev)
        waiter->prev->next = waiter->next;
    else
        waiter->request->api->waiters = waiter->next;
    if (waiter->next)
        waiter->next->prev = waiter->prev;
    event_free(waiter->timer);
    free(waiter);
}

void waiter_look(struct waiter *waiter)
{
    if (waiter)
        waiter->look(waiter->request, false);
}

void request_wait_again(struct request *request, int64_t timeout_ms)
{
    struct timeval tv = {(time_t)(timeout_ms / 1000), (suseconds_t)(timeout_ms % 1000 * 1000)};

    INVARIANT(event_add(request->waiter->timer, &tv) == 0);
}

void request_wait(struct request *request, int64_t timeout_ms, void (*look)(struct request *request, bool is_over))
{
    struct api *api = request->api;
    struct waiter *waiter = mem_new(struct waiter);

    *waiter = (struct waiter){.request = request, .look = look, .next = api->waiters};
    if (waiter->next)
        waiter->next->prev = waiter;
    api->waiters = waiter;
    waiter->timer = evtimer_new(api->options.base, on_timer, waiter);
    INVARIANT(waiter->timer);
    request->waiter = waiter;
    request_wait_again(request, timeout_ms);
}

void api_wake_all(struct api *api)
{
    struct waiter *next;

    for (struct waiter *waiter = api->waiters; waiter; waiter = next) {
        next = waiter->next; /* a look may end this request, and no other */
        waiter->look(waiter->request, false);
    }
}

void api_end_waits(struct api *api)
{
    while (api->waiters)
        request_end_wait(api->waiters->request);
}
