/* One heap of timers, ordered by time and then by the order of setting, serves both kinds of clock. The virtual clock
 * takes from it as time is moved; the real one keeps a single libevent timer armed for the head of the heap, so that
 * thousands of timers cost the loop one.
 *
 * The real clock never goes back: it is the larger of the system's UTC and (last reading + monotonic time passed). A
 * step forward of the system's time, or a suspend, makes timers due at once, as it should for points in time; a step
 * backward is not followed, so that nothing waits twice. */
#include "queued/clock.h"

#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

#define NOT_SET SIZE_MAX

struct clock_timer {
    struct clock *clock;
    void (*fire)(void *ctx);
    void *ctx;
    int64_t at_ms;
    uint64_t order; /* of setting */
    size_t place;   /* in the heap, or NOT_SET */
};

struct clock {
    int64_t now_ms;
    int64_t mono_ms;     /* real: monotonic time of the last reading */
    struct event *alarm; /* real: armed for the head of the heap; NULL on a virtual clock */
    struct clock_timer **heap;
    size_t n, cap;
    size_t n_timers; /* alive, set or not */
    uint64_t next_order;
    bool is_advancing;
};

/* ---- the heap ---- */

static bool is_before(const struct clock_timer *a, const struct clock_timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void heap_put(struct clock *clock, size_t place, struct clock_timer *timer)
{
    clock->heap[place] = timer;
    timer->place = place;
}

static void heap_rise(struct clock *clock, size_t place, struct clock_timer *timer)
{
    while (place > 0 && is_before(timer, clock->heap[(place - 1) / 2])) {
        heap_put(clock, place, clock->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(clock, place, timer);
}

static void heap_sink(struct clock *clock, size_t place, struct clock_timer *timer)
{
    size_t child;

    while ((child = 2 * place + 1) < clock->n) {
        if (child + 1 < clock->n && is_before(clock->heap[child + 1], clock->heap[child]))
            child++;
        if (!is_before(clock->heap[child], timer))
            break;
        heap_put(clock, place, clock->heap[child]);
        place = child;
    }
    heap_put(clock, place, timer);
}

static void heap_remove(struct clock *clock, struct clock_timer *timer)
{
    size_t place = timer->place;
    struct clock_timer *last = clock->heap[--clock->n];

    timer->place = NOT_SET;
    if (last == timer)
        return;
    if (place > 0 && is_before(last, clock->heap[(place - 1) / 2]))
        heap_rise(clock, place, last);
    else
        heap_sink(clock, place, last);
}

/* Fire what is due and was set before `before`; later settings wait for the next call. */
static void fire_due(struct clock *clock, uint64_t before)
{
    while (clock->n > 0 && clock->heap[0]->at_ms <= clock->now_ms && clock->heap[0]->order < before) {
        struct clock_timer *timer = clock->heap[0];

        heap_remove(clock, timer);
        timer->fire(timer->ctx); /* may free the timer */
    }
}

/* ---- real time ---- */

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    INVARIANT(clock_gettime(id, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void arm(struct clock *clock)
{
    struct timeval wait = {0, 0};
    int64_t ms;

    if (!clock->alarm)
        return;
    if (clock->n == 0) {
        (void)event_del(clock->alarm);
        return;
    }
    ms = clock->heap[0]->at_ms - clock->now_ms;
    if (ms > 0) {
        /* One day at most: a longer wait only wakes up early and arms again. */
        ms = ms < 86400000 ? ms : 86400000;
        wait.tv_sec = ms / 1000;
        wait.tv_usec = ms % 1000 * 1000;
    }
    INVARIANT(event_add(clock->alarm, &wait) == 0);
}

static void on_alarm(evutil_socket_t fd, short what, void *arg)
{
    struct clock *clock = arg;

    (void)fd, (void)what;
    clock_new_turn(clock);
    fire_due(clock, clock->next_order);
    arm(clock);
}

struct clock *clock_real_new(struct event_base *base)
{
    struct clock *clock = mem_new(struct clock);

    clock->now_ms = read_ms(CLOCK_REALTIME);
    clock->mono_ms = read_ms(CLOCK_MONOTONIC);
    clock->alarm = event_new(base, -1, 0, on_alarm, clock);
    INVARIANT(clock->alarm != NULL);
    return clock;
}

void clock_new_turn(struct clock *clock)
{
    int64_t mono_ms, utc_ms;

    if (!clock->alarm)
        return;
    mono_ms = read_ms(CLOCK_MONOTONIC);
    utc_ms = read_ms(CLOCK_REALTIME);
    clock->now_ms += mono_ms - clock->mono_ms;
    clock->mono_ms = mono_ms;
    if (utc_ms > clock->now_ms)
        clock->now_ms = utc_ms;
}

/* ---- virtual time ---- */

struct clock *clock_virtual_new(int64_t start_ms)
{
    struct clock *clock = mem_new(struct clock);

    clock->now_ms = start_ms;
    return clock;
}

int64_t clock_next_ms(const struct clock *clock)
{
    return clock->n > 0 ? clock->heap[0]->at_ms : INT64_MAX;
}

/* Everything that happens at the present instant, until nothing more does. */
static void run_instant(struct clock *clock, void (*settle)(void *ctx), void *ctx)
{
    do {
        fire_due(clock, UINT64_MAX);
        if (settle)
            settle(ctx);
    } while (clock_next_ms(clock) <= clock->now_ms);
}

void clock_advance(struct clock *clock, int64_t to_ms, void (*settle)(void *ctx), void *ctx)
{
    INVARIANT(clock_is_virtual(clock) && !clock->is_advancing);
    clock->is_advancing = true;
    for (;;) {
        int64_t next_ms;

        run_instant(clock, settle, ctx);
        if (clock->now_ms >= to_ms)
            break;
        next_ms = clock_next_ms(clock);
        clock->now_ms = next_ms < to_ms ? next_ms : to_ms;
    }
    clock->is_advancing = false;
}

/* ---- both ---- */

void clock_free(struct clock *clock)
{
    if (!clock)
        return;
    INVARIANT(clock->n_timers == 0);
    if (clock->alarm)
        event_free(clock->alarm);
    free(clock->heap);
    free(clock);
}

int64_t clock_now_ms(const struct clock *clock)
{
    return clock->now_ms;
}

bool clock_is_virtual(const struct clock *clock)
{
    return !clock->alarm;
}

struct clock_timer *clock_timer_new(struct clock *clock, void (*fire)(void *ctx), void *ctx)
{
    struct clock_timer *timer = mem_new(struct clock_timer);

    *timer = (struct clock_timer){.clock = clock, .fire = fire, .ctx = ctx, .place = NOT_SET};
    clock->n_timers++;
    return timer;
}

void clock_timer_free(struct clock_timer *timer)
{
    if (!timer)
        return;
    clock_timer_cancel(timer);
    timer->clock->n_timers--;
    free(timer);
}

void clock_timer_set(struct clock_timer *timer, int64_t at_ms)
{
    struct clock *clock = timer->clock;

    if (timer->place != NOT_SET)
        heap_remove(clock, timer);
    /* What is past counts as now, so that the order of setting decides among all that is due at once. */
    timer->at_ms = at_ms > clock->now_ms ? at_ms : clock->now_ms;
    timer->order = clock->next_order++;
    mem_grow(clock->heap, clock->n, clock->cap);
    heap_rise(clock, clock->n++, timer);
    if (timer->place == 0)
        arm(clock);
}

void clock_timer_cancel(struct clock_timer *timer)
{
    /* The alarm may stay armed too early: then it finds nothing due and arms itself again. */
    if (timer->place != NOT_SET)
        heap_remove(timer->clock, timer);
}
