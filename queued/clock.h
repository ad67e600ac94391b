/* queued/clock.h - the time that the server lives in: real, or virtual and moved by hand.
 *
 * Everything that waits does so on a timer of this clock, so that a whole cluster with its queue runs through hours in
 * milliseconds, deterministically. Timers of equal time fire in the order in which they were set. Loop thread only. */
#ifndef QUEUED_CLOCK_H
#define QUEUED_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct clock_timer;
struct event_base;

/* Real time on the given loop (timers are libevent's). */
struct clock *clock_real_new(struct event_base *base);
/* Virtual time that starts at start_ms and moves only by clock_advance(). */
struct clock *clock_virtual_new(int64_t start_ms);
void clock_free(struct clock *clock); /* all its timers must be gone */

/* Milliseconds UTC. The real clock is read once per turn of the loop: see clock_new_turn(). */
int64_t clock_now_ms(const struct clock *clock);
void clock_new_turn(struct clock *clock);
bool clock_is_virtual(const struct clock *clock);

struct clock_timer *clock_timer_new(struct clock *clock, void (*fire)(void *ctx), void *ctx);
void clock_timer_free(struct clock_timer *timer);
/* Fire once at `at_ms` (now or past: as soon as the current callbacks have returned). Setting again moves it. */
void clock_timer_set(struct clock_timer *timer, int64_t at_ms);
void clock_timer_cancel(struct clock_timer *timer);

/* Virtual only: when the next timer fires, or INT64_MAX. */
int64_t clock_next_ms(const struct clock *clock);
/* Virtual only: go to `to_ms`, firing every timer on the way at its own time. After each instant `settle(ctx)` is called (may
 * be NULL): it brings the rest of the program to rest (planner, outbox) before time goes on. */
void clock_advance(struct clock *clock, int64_t to_ms, void (*settle)(void *ctx), void *ctx);

#endif
