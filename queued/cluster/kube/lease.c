/*                      +---- not ours, or a failure: look again ----+
 *                      v                                            |
 *     LOOK --read--> WAIT --free, expired or ours: claim--> CLAIM --+--ours--> HOLD --release--> GIVE --> OVER
 *      ^                                                                      ^  |
 *      |                                        renewed, or found to be ours  +--+
 *      +------------------------ lost: the deadline, or another holds it --------+
 *
 * One request at a time. In HOLD the next renewal is due renew_ms after the last one began; a failure is tried again
 * sooner; the deadline counts from the moment at which the last request that succeeded was sent: whoever watches the
 * lease can only have seen the change later. */
#include "queued/cluster/kube/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/status.h"
#include "queued/cluster/kube/text.h"

#include "allocator/base/banned.h"

#define LEASE_API "coordination.k8s.io/v1"

enum {
    DURATION_MS = 10000,
    RENEW_MS = 2000,
    PROMISE_MIN_MS = 1000, /* what others write is believed within these */
    PROMISE_MAX_MS = 600000,
    RELEASE_MS = 1000,
    SPINS_MAX = 3,
};

enum lease_at { LEASE_WAIT, LEASE_HOLD, LEASE_GIVE, LEASE_OVER };

struct lease {
    struct lease_options options;
    struct rng rng;
    enum lease_at at;
    struct clock_timer *timer;    /* the next request */
    struct clock_timer *deadline; /* HOLD: when it is lost; GIVE: when nobody waits any more */
    struct http_call *sent;
    bool is_writing;      /* what was sent is a write */
    int64_t sent_boot_ms; /* when */
    json_t *seen;         /* the lease as it was read or written last, or NULL */
    int64_t seen_boot_ms; /* since when it is like that, by our clock */
    int64_t held_boot_ms; /* HOLD: good from here for limit_ms */
    struct error failure; /* the last one; told once */
    int n_spins;          /* looks in a row because a write came too late */
    char *told;           /* the holder told last */
    void (*given)(void *ctx);
    void *given_ctx;
};

/* ---- time ---- */

static int64_t boot_ms(const struct lease *lease)
{
    struct timespec ts;

    if (lease->options.boot_ms)
        return lease->options.boot_ms(lease->options.ctx);
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void fire_in(const struct lease *lease, struct clock_timer *timer, int64_t ms)
{
    clock_timer_set(timer, clock_now_ms(lease->options.clock) + (ms > 0 ? ms : 0));
}

static int64_t limit_ms(const struct lease *lease)
{
    return lease->options.duration_ms * 4 / 5;
}

bool lease_is_held(const struct lease *lease)
{
    return lease->at == LEASE_HOLD && boot_ms(lease) < lease->held_boot_ms + limit_ms(lease);
}

/* ---- what the lease says ---- */

static const json_t *spec_of(const struct lease *lease)
{
    return json_object_get(lease->seen, "spec");
}

static const char *holder_of(const struct lease *lease)
{
    const char *holder = json_string_value(json_object_get(spec_of(lease), "holderIdentity"));

    return holder ? holder : "";
}

static bool is_ours(const struct lease *lease)
{
    return strcmp(holder_of(lease), lease->options.identity) == 0;
}

/* How long its holder promised to be heard of. */
static int64_t promise_ms(const struct lease *lease)
{
    const json_t *seconds = json_object_get(spec_of(lease), "leaseDurationSeconds");
    json_int_t n = json_integer_value(seconds);

    if (!json_is_integer(seconds))
        return lease->options.duration_ms;
    return n < PROMISE_MIN_MS / 1000 ? PROMISE_MIN_MS : n > PROMISE_MAX_MS / 1000 ? PROMISE_MAX_MS : n * 1000;
}

/* When it may be taken: 0 is now. */
static int64_t wait_ms(const struct lease *lease)
{
    int64_t left = lease->seen_boot_ms + promise_ms(lease) - boot_ms(lease);

    return holder_of(lease)[0] == '\0' || is_ours(lease) || left < 0 ? 0 : left;
}

static const char *version_of(const json_t *object)
{
    const char *version = json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

    return version ? version : "";
}

/* Takes the object over. The time of an unchanged lease stays as it is. */
static void see(struct lease *lease, json_t *object)
{
    if (!lease->seen || !object || strcmp(version_of(lease->seen), version_of(object)) != 0)
        lease->seen_boot_ms = boot_ms(lease);
    json_decref(lease->seen);
    lease->seen = object;
}

/* ---- requests ---- */

static void on_answer(void *ctx, const struct http_answer *answer);

static void send(struct lease *lease, const char *method, const char *body)
{
    bool is_creation = strcmp(method, "POST") == 0;
    BUF path = {0};

    buf_adds(&path, "/apis/" LEASE_API "/namespaces/");
    kube_escape(lease->options.ns, &path);
    buf_adds(&path, "/leases");
    if (!is_creation) {
        buf_addc(&path, '/');
        kube_escape(lease->options.name, &path);
    }
    clock_timer_cancel(lease->timer);
    lease->is_writing = body != NULL;
    lease->sent_boot_ms = boot_ms(lease);
    lease->sent = http_send(lease->options.http, &(struct http_request){
                                                     .method = method,
                                                     .path = buf_str(&path),
                                                     .body = body,
                                                     .len = body ? strlen(body) : 0,
                                                     .timeout_ms = lease->options.renew_ms,
                                                     .done = on_answer,
                                                     .ctx = lease,
                                                 });
}

static void look(struct lease *lease)
{
    send(lease, "GET", NULL);
}

static json_t *empty_lease(const struct lease *lease)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", LEASE_API, "kind", "Lease", "metadata", "name",
                     lease->options.name, "namespace", lease->options.ns);
}

/* The lease with this holder ("" gives it back), as of now. What others may have put beside stays. */
static void write_holder(struct lease *lease, const char *holder)
{
    json_t *draft = lease->seen ? json_deep_copy(lease->seen) : empty_lease(lease);
    json_t *spec = json_object_get(draft, "spec");
    json_int_t transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
    char now[KUBE_TIME_SIZE], *body;

    kube_micro_time_format(clock_now_ms(lease->options.clock), now);
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(draft, "spec", spec);
    }
    if (lease->at != LEASE_GIVE && (!is_ours(lease) || !json_object_get(spec, "acquireTime"))) {
        json_object_set_new(spec, "acquireTime", json_string(now));
        json_object_set_new(spec, "leaseTransitions", json_integer(lease->seen ? transitions + 1 : 0));
    }
    json_object_set_new(spec, "holderIdentity", json_string(holder));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer((lease->options.duration_ms + 999) / 1000));
    json_object_set_new(spec, "renewTime", json_string(now));
    body = json_dumps(draft, JSON_COMPACT);
    send(lease, lease->seen ? "PUT" : "POST", body);
    free(body);
    json_decref(draft);
}

/* ---- steps ---- */

/* A little before and after the time, so that several who wait do not ask at once. */
static int64_t jittered(struct lease *lease, int64_t ms)
{
    return ms - ms / 10 + (int64_t)rng_below(&lease->rng, (uint64_t)(ms / 5) + 1);
}

static void over(struct lease *lease)
{
    lease->at = LEASE_OVER;
    clock_timer_cancel(lease->timer);
    clock_timer_cancel(lease->deadline);
}

/* From the beginning: who else may lead now? */
static void lose(struct lease *lease, const struct error *err)
{
    if (lease->sent)
        http_cancel(lease->sent);
    lease->sent = NULL;
    lease->at = LEASE_WAIT;
    clock_timer_cancel(lease->deadline);
    lease->failure = (struct error){0};
    free(TAKE(lease->told));
    lease->options.lost(lease->options.ctx, err);
    look(lease);
}

static void tell_holder(struct lease *lease)
{
    const char *holder = holder_of(lease);

    if (lease->told && strcmp(lease->told, holder) == 0)
        return;
    free(lease->told);
    lease->told = mem_strdup(holder);
    if (lease->options.waiting)
        lease->options.waiting(lease->options.ctx, lease->told);
}

/* It is known how the lease stands, and it is not held: take it, or look again in time to take it. */
static void wait_or_claim(struct lease *lease)
{
    int64_t ms = wait_ms(lease), again_ms = jittered(lease, lease->options.renew_ms);

    if (ms == 0) {
        write_holder(lease, lease->options.identity);
        return;
    }
    lease->failure = (struct error){0};
    lease->n_spins = 0;
    tell_holder(lease);
    fire_in(lease, lease->timer, ms < again_ms ? ms : again_ms);
}

static void hold(struct lease *lease)
{
    bool is_first = lease->at != LEASE_HOLD;
    int64_t passed = boot_ms(lease) - lease->sent_boot_ms;

    lease->at = LEASE_HOLD;
    lease->held_boot_ms = lease->sent_boot_ms;
    lease->failure = (struct error){0};
    lease->n_spins = 0;
    fire_in(lease, lease->timer, lease->options.renew_ms - passed);
    fire_in(lease, lease->deadline, limit_ms(lease) - passed);
    if (is_first)
        lease->options.acquired(lease->options.ctx);
}

static void on_read(struct lease *lease)
{
    struct error err = {0};

    if (lease->at != LEASE_HOLD) {
        wait_or_claim(lease);
    } else if (!lease->seen || is_ours(lease)) {
        write_holder(lease, lease->options.identity); /* an answer was lost, or somebody deleted or touched it */
    } else {
        error_set(&err, ERR_CONFLICT, "the lease %s/%s is held by %s now", lease->options.ns, lease->options.name,
                  holder_of(lease));
        lose(lease, &err);
    }
}

static void on_failed(struct lease *lease, const struct error *err)
{
    int64_t again_ms = jittered(lease, lease->options.renew_ms / (lease->at == LEASE_HOLD ? 4 : 1));
    bool is_news = lease->failure.code != err->code || strcmp(lease->failure.text, err->text) != 0;

    lease->failure = *err;
    fire_in(lease, lease->timer, again_ms);
    if (!is_news || lease->at == LEASE_HOLD)
        return;
    free(TAKE(lease->told)); /* whoever has it is news again when we can read it */
    if (lease->options.failed)
        lease->options.failed(lease->options.ctx, err);
}

static void given(struct lease *lease)
{
    void (*done)(void *ctx) = lease->given;

    over(lease);
    lease->given = NULL;
    if (done)
        done(lease->given_ctx);
}

/* Somebody was faster, or our own write had come through after all: only a look tells. But not for ever at once. */
static bool is_late_write(struct lease *lease, const struct http_answer *answer)
{
    return lease->is_writing && (answer->status == 409 || (answer->status == 404 && lease->seen)) &&
           ++lease->n_spins <= SPINS_MAX;
}

/* The lease as the answer has it; NULL and no error when there is none. */
static json_t *read_answer(const struct lease *lease, const struct http_answer *answer, struct error *err)
{
    json_t *object;

    if (answer->status == 404 && !lease->is_writing)
        return NULL;
    if (answer->status == 0)
        *err = answer->err;
    if (answer->status == 0 || status_check(answer, lease->is_writing, err) < 0)
        return NULL;
    object = json_loadb(answer->body, answer->len, 0, NULL);
    if (json_is_object(object))
        return object;
    error_set(err, ERR_REMOTE, "the API server's answer is no lease");
    json_decref(object);
    return NULL;
}

static void lose_by_time(struct lease *lease)
{
    struct error err = {0};

    error_set(&err, ERR_TIMEOUT, "the lease %s/%s could not be renewed for %lld ms: %s", lease->options.ns,
              lease->options.name, (long long)(boot_ms(lease) - lease->held_boot_ms),
              lease->failure.code ? lease->failure.text : "this process was not running");
    lose(lease, &err);
}

static void on_answer(void *ctx, const struct http_answer *answer)
{
    struct lease *lease = ctx;
    struct error err = {0};
    json_t *object = read_answer(lease, answer, &err);

    lease->sent = NULL;
    if (lease->at == LEASE_GIVE) {
        json_decref(object);
        given(lease);
    } else if (lease->at == LEASE_HOLD && !lease_is_held(lease)) {
        json_decref(object);
        lose_by_time(lease); /* too late, whatever it says */
    } else if (err.code && is_late_write(lease, answer)) {
        look(lease);
    } else if (err.code) {
        on_failed(lease, &err);
    } else {
        see(lease, object);
        (lease->is_writing ? hold : on_read)(lease);
    }
}

static void on_timer(void *ctx)
{
    struct lease *lease = ctx;

    if (lease->at == LEASE_HOLD && lease_is_held(lease))
        write_holder(lease, lease->options.identity);
    else if (lease->at == LEASE_WAIT)
        look(lease);
}

/* The clock of timers follows when the system's time is set; ours does not. */
static void on_deadline(void *ctx)
{
    struct lease *lease = ctx;
    int64_t left = lease->held_boot_ms + limit_ms(lease) - boot_ms(lease);

    if (lease->at == LEASE_GIVE)
        given(lease);
    else if (left > 0)
        fire_in(lease, lease->deadline, left);
    else
        lose_by_time(lease);
}

/* ---- from outside ---- */

struct lease *lease_new(const struct lease_options *options)
{
    struct lease *lease = mem_new(struct lease);

    lease->options = *options;
    if (!lease->options.duration_ms)
        lease->options.duration_ms = DURATION_MS;
    if (!lease->options.renew_ms)
        lease->options.renew_ms = lease->options.duration_ms * RENEW_MS / DURATION_MS;
    lease->rng.state = options->seed;
    lease->timer = clock_timer_new(options->clock, on_timer, lease);
    lease->deadline = clock_timer_new(options->clock, on_deadline, lease);
    look(lease);
    return lease;
}

void lease_release(struct lease *lease, void (*done)(void *ctx), void *ctx)
{
    bool is_held = lease_is_held(lease);

    if (lease->sent)
        http_cancel(lease->sent);
    lease->sent = NULL;
    over(lease);
    if (!is_held) {
        done(ctx);
        return;
    }
    lease->at = LEASE_GIVE;
    lease->given = done;
    lease->given_ctx = ctx;
    write_holder(lease, "");
    fire_in(lease, lease->deadline, RELEASE_MS);
}

void lease_free(struct lease *lease)
{
    if (!lease)
        return;
    if (lease->sent)
        http_cancel(lease->sent);
    clock_timer_free(lease->timer);
    clock_timer_free(lease->deadline);
    json_decref(lease->seen);
    free(lease->told);
    free(lease);
}
