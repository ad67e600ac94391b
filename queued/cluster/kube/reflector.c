/* A life in three places:
 *
 *            ┌────────────── 410, or nothing to resume from ◄──────────────┐
 *            ▼                                                             │
 *   PAUSE ─► LIST ─ page by page ─► sweep what was not seen, `synced` ─► WATCH ─ ends in order ─► WATCH
 *     ▲       │                                                            │
 *     └───────┴────────────────── any failure (back to the same place) ◄───┘
 *
 * A list is consistent (no resourceVersion is asked for: the server answers with what is true now) and each listing
 * from its first page is a round; at its end, what was not seen in this round is gone. Pages of one listing show one
 * version, so a page that failed is asked for again; only when its token has expired the listing begins anew, the
 * second time without pages, so that it ends.
 *
 * A watch costs nothing while nothing happens, therefore silence has to be told from death. Servers with a watch cache
 * send a bookmark about every minute: once we have seen one, 150 silent seconds are a failure. After any failure the
 * next watch is a short one: its orderly end proves that the server is there. Two whole watches without even a bookmark
 * lead to a new list, because a server that went back in time (restored from a backup) lets a watch from its future
 * hang.
 *
 * Sources: the documented list and watch semantics of the Kubernetes API (resource versions, 410 Gone, bookmarks,
 * limit and continue), and what a 1.37 server was seen to do (README). */
#include "queued/cluster/kube/reflector.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "queued/cluster/kube/backoff.h"
#include "queued/cluster/kube/known.h"
#include "queued/cluster/kube/split.h"
#include "queued/cluster/kube/status.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

#define DEFAULT_PAGE      500
#define DEFAULT_STALE_MS  60000
#define BACKOFF_MIN_MS    200
#define BACKOFF_MAX_MS    30000
#define RETRY_AFTER_MAX   300000
#define LIST_IDLE_MS      60000
#define WATCH_MIN_S       300
#define WATCH_MAX_S       600
#define PROBE_S           15 /* a watch after a failure */
#define GRACE_MS          30000
#define BOOKMARK_LIMIT_MS 150000 /* 2.5 times what servers keep to */
#define ABSENT_MS         300000 /* between two looks at a kind that is not there */
#define TOO_SHORT_MS      1000
#define MAX_BAD_STREAMS   3
#define MAX_SILENT        2

enum phase { PHASE_LIST, PHASE_WATCH };

/* What an ERROR event said about the watch that it came in. */
enum verdict { VERDICT_NONE, VERDICT_EXPIRED, VERDICT_FAILED };

struct watch {
    int64_t began_ms, last_byte_ms, timeout_ms;
    size_t n_events;
    bool is_probe;
    enum verdict verdict;
    struct error why;
};

struct reflector {
    struct reflector_options options;
    struct known *known;
    struct rng rng;
    enum phase phase;
    struct http_call *call;
    struct split *split;
    struct clock_timer *pause, *quiet, *stale;
    char *version, *token; /* to watch from; of the next page */
    uint64_t round;
    struct watch watch;

    bool is_synced, has_bookmarks, is_doomed;
    int inside;        /* the listener may be running */
    int failures;      /* in a row */
    int relists;       /* in a row, without a watch that worked */
    int expired_lists; /* in a row */
    int bad_streams;   /* watches in a row that came and made no sense */
    int silent;        /* whole watches in a row without an event */
    int64_t down_ms;   /* since when nothing works, or -1 */
    struct error why;  /* the last failure */
    struct reflector_counts counts;
};

static void begin(struct reflector *r);

static int64_t now_ms(const struct reflector *r)
{
    return clock_now_ms(r->options.clock);
}

/* ---- the end ---- */

static void destroy(struct reflector *r)
{
    if (r->call)
        http_cancel(r->call);
    clock_timer_free(r->pause);
    clock_timer_free(r->quiet);
    clock_timer_free(r->stale);
    split_free(r->split);
    known_free(r->known);
    free(r->version);
    free(r->token);
    free(r);
}

void reflector_free(struct reflector *r)
{
    if (!r)
        return;
    r->is_doomed = true;
    if (!r->inside)
        destroy(r);
}

/* The listener's calls have returned; `r` may be no more. */
static void leave(struct reflector *r)
{
    if (--r->inside == 0 && r->is_doomed)
        destroy(r);
}

/* ---- telling ---- */

static void tell_put(struct reflector *r, json_t *object)
{
    json_t *trimmed = kind_trim(r->options.source, r->options.version, object);

    if (!r->is_doomed)
        r->options.changed(r->options.ctx, CLUSTER_PUT, trimmed);
    json_decref(trimmed);
}

/* Takes `gone`. */
static void tell_gone(struct reflector *r, json_t *gone)
{
    json_t *named = kind_trim(r->options.source, r->options.version, gone);

    json_object_set(named, "metadata",
                    json_object_get(gone, "metadata")); /* labels too, whatever a picture leaves out */
    if (!r->is_doomed)
        r->options.changed(r->options.ctx, CLUSTER_GONE, named);
    json_decref(named);
    json_decref(gone);
}

static void tell_synced(struct reflector *r)
{
    if (r->is_synced || r->is_doomed)
        return;
    r->is_synced = true;
    r->options.synced(r->options.ctx);
}

static void sweep(struct reflector *r)
{
    json_t *gone;

    while (!r->is_doomed && (gone = known_sweep(r->known, r->round)))
        tell_gone(r, gone);
}

static void refused(void *ctx, const struct error *why)
{
    struct reflector *r = ctx;

    r->counts.refused++;
    log_warn("reflector.refused", LOG_STR("kind", r->options.source->kind->name), LOG_STR("why", why->text));
}

static bool has_name(const json_t *object)
{
    const char *name = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));

    return name && *name;
}

static void take_object(struct reflector *r, json_t *object)
{
    enum known_change change;
    json_t *gone;

    if (!has_name(object)) {
        refused(r, &(struct error){.code = ERR_INVALID, .text = "an object without a name"});
        return;
    }
    change = known_put(r->known, object, r->round, &gone);
    if (gone)
        tell_gone(r, gone);
    if (change != KNOWN_SAME)
        tell_put(r, object);
}

/* ---- whether it works ---- */

static void set_version(struct reflector *r, const char *version)
{
    if (r->version && strcmp(r->version, version) == 0)
        return;
    free(r->version);
    r->version = mem_strdup(version);
}

static void worked(struct reflector *r)
{
    if (r->down_ms >= 0)
        clock_timer_cancel(r->stale);
    r->down_ms = -1;
    r->failures = 0;
}

static void down(struct reflector *r)
{
    if (r->down_ms >= 0)
        return;
    r->down_ms = now_ms(r);
    clock_timer_set(r->stale, r->down_ms + r->options.stale_ms);
}

static void on_stale(void *ctx)
{
    struct reflector *r = ctx;
    struct error why = r->why;

    if (!why.code)
        error_set(&why, ERR_TIMEOUT, "no answer");
    r->inside++;
    r->options.stale(r->options.ctx, &why);
    leave(r);
}

static int64_t backoff_ms(struct reflector *r, int n)
{
    return kube_backoff_ms(&r->rng, n, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
}

static void pause_for(struct reflector *r, int64_t ms)
{
    clock_timer_set(r->pause, now_ms(r) + ms);
}

static void fail(struct reflector *r, const struct error *why, int64_t retry_after_ms)
{
    int64_t wait;

    r->counts.failures++;
    if (r->failures < 1000)
        r->failures++;
    r->why = *why;
    down(r);
    wait = backoff_ms(r, r->failures);
    if (retry_after_ms > RETRY_AFTER_MAX)
        retry_after_ms = RETRY_AFTER_MAX;
    if (retry_after_ms > wait) /* a little later than asked for, and not all at the same moment */
        wait = retry_after_ms + (int64_t)rng_below(&r->rng, (uint64_t)retry_after_ms / 5 + 1);
    log_debug("reflector.failed", LOG_STR("kind", r->options.source->kind->name), LOG_STR("why", why->text),
              LOG_INT("wait_ms", wait));
    pause_for(r, wait);
}

static void list_anew(struct reflector *r)
{
    r->phase = PHASE_LIST;
    free(r->token);
    r->token = NULL;
}

/* The first time at once; when that does not help, as after a failure. */
static void relist(struct reflector *r)
{
    list_anew(r);
    if (r->relists < 1000)
        r->relists++;
    pause_for(r, r->relists > 1 ? backoff_ms(r, r->relists - 1) : 0);
}

static bool is_absent(const struct reflector *r, const struct http_answer *answer)
{
    return r->options.source->kind->is_optional && (answer->status == 403 || answer->status == 404);
}

/* Not served, or not for us to read: nothing exists. */
static void absent(struct reflector *r)
{
    worked(r);
    list_anew(r);
    r->round++;
    sweep(r);
    tell_synced(r);
    pause_for(r, ABSENT_MS - (int64_t)rng_below(&r->rng, ABSENT_MS / 10));
}

/* ---- requests ---- */

static void put_parameter(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(path, "%c%s=", strchr(buf_str(path), '?') ? '&' : '?', name);
    kind_escape(value, path);
}

static void put_collection(const struct reflector *r, struct buf *path)
{
    const struct source *source = r->options.source;

    kind_path(source->kind, r->options.version, NULL, NULL, path);
    put_parameter(path, "labelSelector", source->label_selector);
    put_parameter(path, "fieldSelector", source->field_selector);
}

static int on_data(void *ctx, const char *bytes, size_t len, struct error *err)
{
    struct reflector *r = ctx;
    int result;

    r->watch.last_byte_ms = now_ms(r);
    r->inside++;
    result = split_feed(r->split, bytes, len, err);
    r->inside--; /* a doomed one ends in `done`, which follows */
    return r->is_doomed ? error_set(err, ERR_UNAVAILABLE, "nobody listens any more") : result;
}

static void send(struct reflector *r, const struct buf *path, int64_t idle_ms, enum split_form form,
                 int (*item)(void *ctx, json_t *item, struct error *err),
                 void (*done)(void *ctx, const struct http_answer *answer))
{
    struct split_options split = {.form = form, .item = item, .refused = refused, .ctx = r};
    struct http_request request = {
        .method = "GET", .path = buf_str(path), .idle_ms = idle_ms, .data = on_data, .done = done, .ctx = r};

    split_free(r->split);
    r->split = split_new(&split);
    r->call = http_send(r->options.http, &request);
}

/* ---- the list ---- */

static int take_list_item(void *ctx, json_t *item, struct error *err)
{
    struct reflector *r = ctx;

    (void)err;
    take_object(r, item);
    return r->is_doomed ? -1 : 0;
}

static void list_failed(struct reflector *r, const struct http_answer *answer, const struct error *err)
{
    if (is_absent(r, answer)) {
        absent(r);
    } else if (status_is_expired(answer)) {
        r->expired_lists++;
        relist(r);
    } else {
        fail(r, err, answer->retry_after_ms);
    }
}

static void list_ended(struct reflector *r, const char *version)
{
    r->expired_lists = 0;
    set_version(r, version);
    sweep(r);
    tell_synced(r);
    list_anew(r);
    r->phase = PHASE_WATCH;
    pause_for(r, 0);
}

static void page_ended(struct reflector *r)
{
    const json_t *metadata = split_metadata(r->split);
    const char *token = json_string_value(json_object_get(metadata, "continue"));
    const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
    struct error err = {0};

    if (!version || !*version) {
        error_set(&err, ERR_REMOTE, "a list without a resourceVersion");
        fail(r, &err, -1);
        return;
    }
    worked(r);
    if (token && *token) {
        char *next = mem_strdup(token);

        free(r->token);
        r->token = next;
        pause_for(r, 0);
        return;
    }
    list_ended(r, version);
}

static void on_list_done(void *ctx, const struct http_answer *answer)
{
    struct reflector *r = ctx;
    struct error err = {0};

    r->call = NULL;
    r->inside++;
    if (!r->is_doomed) {
        if (status_check(answer, false, &err) < 0)
            list_failed(r, answer, &err);
        else if (split_end(r->split, &err) < 0)
            fail(r, &err, -1);
        else
            page_ended(r);
    }
    leave(r);
}

static void send_list(struct reflector *r)
{
    BUF path = {0};

    if (!r->token)
        r->round++;
    put_collection(r, &path);
    if (r->expired_lists < 2) {
        put_parameter(&path, "limit", "");
        buf_addf(&path, "%zu", r->options.page);
    }
    put_parameter(&path, "continue", r->token);
    r->counts.lists += !r->token;
    send(r, &path, LIST_IDLE_MS, SPLIT_LIST, take_list_item, on_list_done);
}

/* ---- the watch ---- */

static int take_error(struct reflector *r, const json_t *status, struct error *err)
{
    struct watch *watch = &r->watch;

    watch->verdict = status_of_event(status, &watch->why) ? VERDICT_EXPIRED : VERDICT_FAILED;
    if (err)
        *err = watch->why;
    return -1;
}

static void watch_worked(struct reflector *r)
{
    worked(r);
    r->relists = r->bad_streams = r->silent = 0;
    r->watch.n_events++;
}

static void take_deleted(struct reflector *r, const json_t *object)
{
    json_t *gone = known_remove(r->known, object);

    if (gone)
        tell_gone(r, gone);
}

static int take_event(void *ctx, json_t *event, struct error *err)
{
    struct reflector *r = ctx;
    const char *type = json_string_value(json_object_get(event, "type"));
    json_t *object = json_object_get(event, "object");
    const char *version = json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

    if (!type || !json_is_object(object))
        return error_set(err, ERR_INVALID, "an event without type or object");
    if (strcmp(type, "ERROR") == 0)
        return take_error(r, object, err);
    watch_worked(r);
    if (strcmp(type, "BOOKMARK") == 0)
        r->has_bookmarks = true;
    else if (strcmp(type, "DELETED") == 0)
        take_deleted(r, object);
    else if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        take_object(r, object);
    if (version && *version)
        set_version(r, version);
    return r->is_doomed ? -1 : 0;
}

/* Nothing to resume from that makes sense: the server says so, or it sends what we cannot read time after time. */
static bool wants_list(struct reflector *r, const struct http_answer *answer, bool is_bad_stream)
{
    if (is_bad_stream && ++r->bad_streams >= MAX_BAD_STREAMS) {
        r->bad_streams = 0;
        return true;
    }
    return answer->status >= 400 && answer->status < 500 && answer->status != 401 && answer->status != 403 &&
           answer->status != 408 && answer->status != 429;
}

static void watch_failed(struct reflector *r, const struct http_answer *answer, const struct error *err, bool is_bad)
{
    if (is_absent(r, answer)) {
        absent(r);
        return;
    }
    if (wants_list(r, answer, is_bad))
        list_anew(r);
    fail(r, err, answer->retry_after_ms);
}

static void watch_ended(struct reflector *r)
{
    struct watch *watch = &r->watch;
    struct error err = {0};

    if (!watch->n_events && now_ms(r) - watch->began_ms < TOO_SHORT_MS) {
        error_set(&err, ERR_REMOTE, "the watch ended at once");
        fail(r, &err, -1);
        return;
    }
    worked(r);
    if (!watch->n_events && !watch->is_probe && ++r->silent >= MAX_SILENT) {
        r->silent = 0;
        list_anew(r);
    }
    pause_for(r, 0);
}

static void watch_done(struct reflector *r, const struct http_answer *answer)
{
    struct watch *watch = &r->watch;
    struct error err = {0};

    if (watch->verdict == VERDICT_EXPIRED || status_is_expired(answer))
        relist(r);
    else if (watch->verdict == VERDICT_FAILED)
        watch_failed(r, answer, &watch->why, true);
    else if (status_check(answer, false, &err) < 0)
        watch_failed(r, answer, &err, err.code == ERR_INVALID && answer->status == 0);
    else if (split_end(r->split, &err) < 0)
        fail(r, &err, -1);
    else
        watch_ended(r);
}

static void on_watch_done(void *ctx, const struct http_answer *answer)
{
    struct reflector *r = ctx;

    r->call = NULL;
    clock_timer_cancel(r->quiet);
    r->inside++;
    if (!r->is_doomed)
        watch_done(r, answer);
    leave(r);
}

static int64_t quiet_limit_ms(const struct reflector *r)
{
    int64_t whole = r->watch.timeout_ms + GRACE_MS;

    return r->has_bookmarks && BOOKMARK_LIMIT_MS < whole ? BOOKMARK_LIMIT_MS : whole;
}

/* Looks early enough for a first bookmark that comes in this watch to make the limit shorter. */
static void look_for_silence(struct reflector *r)
{
    int64_t until_ms = r->watch.last_byte_ms + quiet_limit_ms(r), soon_ms = now_ms(r) + BOOKMARK_LIMIT_MS;

    clock_timer_set(r->quiet, until_ms < soon_ms ? until_ms : soon_ms);
}

static void on_quiet(void *ctx)
{
    struct reflector *r = ctx;
    struct error err = {0};

    if (r->watch.last_byte_ms + quiet_limit_ms(r) > now_ms(r)) {
        look_for_silence(r);
        return;
    }
    http_cancel(r->call);
    r->call = NULL;
    error_set(&err, ERR_TIMEOUT, "a watch without a byte for %lld s", (long long)(quiet_limit_ms(r) / 1000));
    fail(r, &err, -1);
}

static void send_watch(struct reflector *r)
{
    bool is_probe = r->down_ms >= 0;
    int64_t seconds = is_probe ? PROBE_S : WATCH_MIN_S + (int64_t)rng_below(&r->rng, WATCH_MAX_S - WATCH_MIN_S + 1);
    BUF path = {0};

    r->watch = (struct watch){.began_ms = now_ms(r), .last_byte_ms = now_ms(r), .is_probe = is_probe};
    r->watch.timeout_ms = seconds * 1000;
    put_collection(r, &path);
    put_parameter(&path, "watch", "1");
    put_parameter(&path, "allowWatchBookmarks", "true");
    put_parameter(&path, "resourceVersion", r->version);
    buf_addf(&path, "&timeoutSeconds=%lld", (long long)seconds);
    r->counts.watches++;
    look_for_silence(r);
    send(r, &path, 0, SPLIT_WATCH, take_event, on_watch_done);
}

/* ---- the beginning ---- */

static void begin(struct reflector *r)
{
    INVARIANT(!r->call);
    if (r->phase == PHASE_LIST)
        send_list(r);
    else
        send_watch(r);
}

static void on_pause(void *ctx)
{
    begin(ctx);
}

struct reflector *reflector_new(const struct reflector_options *options)
{
    struct reflector *r = mem_new(struct reflector);

    r->options = *options;
    if (!r->options.page)
        r->options.page = DEFAULT_PAGE;
    if (!r->options.stale_ms)
        r->options.stale_ms = DEFAULT_STALE_MS;
    r->known = known_new();
    r->rng = (struct rng){options->seed};
    r->pause = clock_timer_new(options->clock, on_pause, r);
    r->quiet = clock_timer_new(options->clock, on_quiet, r);
    r->stale = clock_timer_new(options->clock, on_stale, r);
    r->down_ms = -1;
    down(r);
    pause_for(r, 0);
    return r;
}

bool reflector_is_synced(const struct reflector *r)
{
    return r->is_synced;
}

struct reflector_counts reflector_counts(const struct reflector *r)
{
    struct reflector_counts counts = r->counts;

    counts.known = known_count(r->known);
    counts.bytes = known_bytes(r->known);
    return counts;
}
