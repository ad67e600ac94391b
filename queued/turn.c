/* One turn: gather, commit, act, answer. Commands, the cluster's stream, ended calls, timers and plans have changed
 * memory and written into the open transaction by the time the turn ends. Then, in this order:
 *
 *   decide    every job that something happened to is looked at; effects are promised
 *   commit    everything since the last turn becomes durable, or nothing does
 *   act       the promised effects are performed; all of them may be repeated
 *   answer    nobody hears "accepted" before it is durable
 *   plan      a new round begins if something has changed
 *
 * A crash between any two lines is harmless. When the commit fails (a full disk), memory is thrown away and read again
 * from the store: the same path as a restart. Until the store can be written again, commands are refused and nothing is
 * decided. */
#include <stdlib.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/internal.h"
#include "queued/log.h"
#include "store/store.h"

#include "allocator/base/banned.h"

#define PROBE_PERIOD_MS 1000

/* ---- answers ---- */

static struct pending_reply *reply_add(struct core *core, core_reply_fn *fn, void *ctx)
{
    mem_grow(core->replies, core->n_replies, core->cap_replies);
    core->replies[core->n_replies] = (struct pending_reply){.fn = fn, .ctx = ctx};
    return &core->replies[core->n_replies++];
}

void reply_with(struct core *core, core_reply_fn *fn, void *ctx, json_t *body)
{
    reply_add(core, fn, ctx)->body = body;
}

void reply_error(struct core *core, core_reply_fn *fn, void *ctx, const struct error *err)
{
    reply_add(core, fn, ctx)->err = *err;
}

void reply_problems(struct core *core, core_reply_fn *fn, void *ctx, const struct error *err, json_t *problems)
{
    struct pending_reply *reply = reply_add(core, fn, ctx);

    reply->err = *err;
    reply->problems = problems;
}

static void reply_release(struct pending_reply *reply)
{
    json_decref(reply->problems);
    json_decref(reply->body);
}

void replies_free(struct core *core)
{
    for (size_t i = 0; i < core->n_replies; i++)
        reply_release(&core->replies[i]);
    free(core->replies);
}

static void answer(struct core *core)
{
    struct pending_reply *replies = core->replies;
    size_t n = core->n_replies;

    core->replies = NULL; /* an answer may lead to the next command */
    core->n_replies = core->cap_replies = 0;
    for (size_t i = 0; i < n; i++) {
        const struct pending_reply *reply = &replies[i];
        struct core_reply told = {
            .err = reply->err.code ? &reply->err : NULL, .problems = reply->problems, .body = reply->body};

        reply->fn(reply->ctx, &told);
        reply_release(&replies[i]);
    }
    free(replies);
}

/* Nothing of this turn was recorded: whoever was to hear "done" hears that. */
static void fail_replies(struct core *core, const struct error *why)
{
    for (size_t i = 0; i < core->n_replies; i++)
        if (!core->replies[i].err.code) {
            core->replies[i].err = *why;
            core->replies[i].err.code = ERR_UNAVAILABLE;
            error_wrap(&core->replies[i].err, "nothing was recorded");
        }
}

static void tell_watches(struct core *core)
{
    if (!core->is_changed)
        return;
    core->is_changed = false;
    core->is_telling = true;
    for (struct core_watch *watch = core->watches; watch; watch = watch->next)
        if (!watch->is_removed)
            watch->changed(watch->ctx);
    core->is_telling = false;
    for (struct core_watch **at = &core->watches; *at;) {
        struct core_watch *watch = *at;

        if (watch->is_removed) {
            *at = watch->next;
            free(watch);
        } else {
            at = &watch->next;
        }
    }
}

/* ---- when the store fails ---- */

int core_check_writable(const struct core *core, struct error *err)
{
    if (!core->degraded.code)
        return 0;
    return error_set(err, ERR_UNAVAILABLE, "nothing can be recorded at present: %s", core->degraded.text);
}

static void degrade(struct core *core, const struct error *why)
{
    struct error err = {0};

    log_error("store.failed", LOG_STR("why", why->text));
    core->degraded = *why;
    fail_replies(core, why);
    outbox_discard(core->outbox);
    if (core_load(core, &err) < 0) {
        /* neither writing nor reading: memory and disk cannot be brought together, only a restart can help */
        log_error("store.unreadable", LOG_STR("why", err.text));
        invariant_failed("the database can be read", __FILE__, __LINE__, __func__);
    }
    clock_timer_set(core->probe_timer, core_now_ms(core) + PROBE_PERIOD_MS);
}

void core_probe(void *ctx)
{
    struct core *core = ctx;
    struct error err = {0};

    if (!core->degraded.code)
        return;
    if (store_is_dirty(core->options.store) || store_probe(core->options.store, &err) < 0) {
        clock_timer_set(core->probe_timer, core_now_ms(core) + PROBE_PERIOD_MS);
        return;
    }
    log_info("store.recovered");
    core->degraded = (struct error){0};
    core->wants_plan = true;
}

/* ---- the turn ---- */

/* Returns false when the process is meant to be dead, or the turn failed. */
static bool commit(struct core *core)
{
    struct error err = {0};

    if (!store_is_dirty(core->options.store))
        return true;
    if (!outbox_effect(core->outbox))
        return false;
    if (store_commit(core->options.store, &err) == 0)
        return true;
    degrade(core, &err);
    return false;
}

static void decide(struct core *core)
{
    if (core->degraded.code)
        return;
    planner_apply(core);
    if (core->has_new_claims)
        lifecycle_claims_changed(core->lifecycle);
    core->has_new_claims = false;
    lifecycle_tick(core->lifecycle);
    lifecycle_step(core->lifecycle);
}

static void set_due_timer(struct core *core)
{
    int64_t due_ms = lifecycle_next_due_ms(core->lifecycle);

    if (due_ms == INT64_MAX || core->degraded.code) /* nothing is decided while degraded, however late it is */
        clock_timer_cancel(core->due_timer);
    else
        clock_timer_set(core->due_timer, due_ms);
}

static void turn(struct core *core)
{
    decide(core);
    if (commit(core))
        outbox_perform(core->outbox);
    if (outbox_is_dead(core->outbox)) {
        store_rollback(core->options.store);
        return;
    }
    answer(core);
    tell_watches(core);
    planner_start(core);
    set_due_timer(core);
}

/* Something is left that the loop will not come back for by itself. */
static bool has_more(const struct core *core)
{
    if (core->degraded.code)
        return core->n_replies > 0 || store_is_dirty(core->options.store);
    return core->is_round_back || core->n_replies > 0 || lifecycle_is_dirty(core->lifecycle) ||
           store_is_dirty(core->options.store) || core->is_changed;
}

void core_end_turn(struct core *core)
{
    if (core->is_in_turn) /* an answer or a watch led back here: the turn in progress goes on for it */
        return;
    core->is_in_turn = true;
    while (!outbox_is_dead(core->outbox)) {
        turn(core);
        if (!has_more(core))
            break;
    }
    core->is_in_turn = false;
}

bool core_is_idle(const struct core *core)
{
    return outbox_is_dead(core->outbox) || (!core->round && !has_more(core) && outbox_is_idle(core->outbox));
}
