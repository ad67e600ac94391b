/* One list and watch against scripted answers on the virtual clock: what is asked, when, and what is told. */
#include "queued/cluster/kube/reflector.h"
#include "test/cluster/kube/fake_api.h"
#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

enum how { END, HOLD, BREAK, REFUSE };

/* One answer. END: whole; HOLD: the bytes, then nothing; BREAK: the bytes, then a lost connection; REFUSE: a status. */
struct reply {
    enum how how;
    const char *body;
    int status;
    int64_t retry_after_ms;
    int64_t after_ms; /* the bytes come, and then so long nothing, before it ends */
    enum err_code code;
};

#define MAX_REPLIES 16

struct world {
    struct clock *clock;
    struct http http;
    struct reflector *reflector;
    const struct reply *replies; /* MAX_REPLIES of them; a zeroed one ends the row, then all is held */
    size_t n;
    struct buf told;
    bool frees_in_synced, frees_in_changed, frees_in_stale;
    int64_t gaps[MAX_REPLIES + 1]; /* when each request came */
};

static void free_now(struct world *w)
{
    reflector_free(w->reflector);
    w->reflector = NULL;
}

static void on_changed(void *ctx, enum cluster_change change, const json_t *object)
{
    struct world *w = ctx;
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = json_string_value(json_object_get(metadata, "name"));
    const char *uid = json_string_value(json_object_get(metadata, "uid"));
    const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));

    assert_non_null(json_string_value(json_object_get(object, "kind")));
    assert_non_null(json_string_value(json_object_get(object, "apiVersion")));
    if (change == CLUSTER_PUT)
        buf_addf(&w->told, "%s@%s ", name, version);
    else
        buf_addf(&w->told, "-%s(%s) ", name, uid);
    if (w->frees_in_changed && w->reflector)
        free_now(w);
}

static void on_synced(void *ctx)
{
    struct world *w = ctx;

    buf_adds(&w->told, "synced ");
    if (w->frees_in_synced)
        free_now(w);
}

static void on_stale(void *ctx, const struct error *err)
{
    struct world *w = ctx;

    assert_int_not_equal(err->code, ERR_NONE);
    buf_adds(&w->told, "stale ");
    if (w->frees_in_stale)
        free_now(w);
}

static void finish(struct http_call *call, const struct reply *reply)
{
    if (reply->how == REFUSE)
        fake_refuse(call, reply->status, reply->body ? reply->body : "", reply->retry_after_ms);
    else if (reply->how == BREAK)
        fake_break(call, reply->code ? reply->code : ERR_REMOTE);
    else if (reply->how == END)
        fake_end(call);
}

static void on_request(void *ctx, struct http_call *call)
{
    struct world *w = ctx;
    const struct reply *reply = call->mark ? *(const struct reply **)call->mark : NULL;

    if (reply) { /* after_ms is over */
        finish(call, reply);
        return;
    }
    if (w->n >= MAX_REPLIES)
        return;
    reply = &w->replies[w->n];
    w->gaps[w->n] = clock_now_ms(w->clock);
    if (!reply->body && reply->how == END)
        return; /* the row is over */
    w->n++;
    if (reply->how != REFUSE && !fake_send(call, reply->body ? reply->body : "", reply->body ? strlen(reply->body) : 0))
        return;
    if (!reply->after_ms) {
        finish(call, reply);
        return;
    }
    call->mark = mem_new(const struct reply *);
    *(const struct reply **)call->mark = reply;
    clock_timer_set(call->timer, clock_now_ms(w->clock) + reply->after_ms);
}

static const struct source *source_of(const char *kind)
{
    for (size_t i = 0; i < n_kube_sources; i++)
        if (strcmp(kube_sources[i].kind->name, kind) == 0)
            return &kube_sources[i];
    return NULL;
}

static void begin(struct world *w, const char *kind, const struct reply *replies)
{
    w->clock = clock_virtual_new(1000);
    fake_init(&w->http, w->clock, 7);
    w->http.arrived = on_request;
    w->http.ctx = w;
    w->replies = replies;
    w->reflector = reflector_new(&(struct reflector_options){.http = &w->http,
                                                             .clock = w->clock,
                                                             .source = source_of(kind),
                                                             .version = "v1",
                                                             .seed = 3,
                                                             .page = 2,
                                                             .ctx = w,
                                                             .changed = on_changed,
                                                             .synced = on_synced,
                                                             .stale = on_stale});
    assert_int_equal(w->http.n_requests, 0); /* nothing from inside reflector_new */
}

static void advance(struct world *w, int64_t ms)
{
    clock_advance(w->clock, clock_now_ms(w->clock) + ms, NULL, NULL);
}

static void end(struct world *w)
{
    reflector_free(w->reflector);
    assert_null(w->http.calls); /* nothing is left on its way */
    fake_release(&w->http);
    buf_release(&w->told);
    clock_free(w->clock);
}

#define ITEM_UID(name, uid, version)                                                                                   \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"x\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version "\"" \
    "}}"
#define ITEM(name, version)  ITEM_UID(name, "u-" name, version)
#define LIST(version, items) "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define PAGE(version, token, items)                                                                                    \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)   EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define EXPIRED             EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}")
#define BROKEN              EVENT("ERROR", "{\"kind\":\"Status\",\"code\":500,\"reason\":\"InternalError\",\"message\":\"no\"}")
#define GONE                                                                                                           \
    {                                                                                                                  \
        .how = REFUSE, .body = "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}", .status = 410,             \
        .retry_after_ms = -1                                                                                           \
    }

static const struct reflector_case {
    const char *name;
    struct reply replies[MAX_REPLIES];
    const char *asked, *told;
    int64_t run_ms;   /* 0: 5 s */
    const char *kind; /* NULL: ResourceClaim */
    uint64_t failures;
} cases[] = {
    {.name = "a list of one page, then the watch",
     {{.how = END, .body = LIST("9", ITEM("a", "3") "," ITEM("b", "4"))}},
     "list watch@9 ",
     "a@3 b@4 synced "},
    {.name = "pages, in order",
     {{.how = END, .body = PAGE("9", "t1", ITEM("a", "3") "," ITEM("b", "4"))},
      {.how = END, .body = LIST("9", ITEM("c", "5"))}},
     "list list+t1 watch@9 ",
     "a@3 b@4 c@5 synced "},
    {.name = "events",
     {{.how = END, .body = LIST("9", ITEM("a", "3"))},
      {.how = HOLD,
       .body = EVENT("ADDED", ITEM("b", "10")) EVENT("MODIFIED", ITEM("a", "11")) EVENT("DELETED", ITEM("b", "12"))}},
     "list watch@9 ",
     "a@3 synced b@10 a@11 -b(u-b) "},
    {.name = "a deletion of what was never told is not told",
     {{.how = END, .body = LIST("9", "")}, {.how = HOLD, .body = EVENT("DELETED", ITEM("b", "12"))}},
     "list watch@9 ",
     "synced "},
    {.name = "an orderly end goes on from the last version, also of a bookmark",
     {{.how = END, .body = LIST("9", "")},
      {.how = END, .body = EVENT("ADDED", ITEM("b", "10"))},
      {.how = END, .body = BOOKMARK("40")}},
     "list watch@9 watch@10 watch@40 ",
     "synced b@10 "},
    {.name = "a broken connection goes on without a list",
     {{.how = END, .body = LIST("9", "")},
      {.how = BREAK, .body = EVENT("ADDED", ITEM("b", "10")) "{\"type\":\"ADD"},
      {.how = HOLD, .body = EVENT("ADDED", ITEM("c", "11"))}},
     "list watch@9 watch@10 ",
     "synced b@10 c@11 ",
     .failures = 1},
    {.name = "a watch cut within an event by an orderly end",
     {{.how = END, .body = LIST("9", "")},
      {.how = END, .body = EVENT("ADDED", ITEM("b", "10")) "{\"type\":\"ADD"},
      {.how = HOLD, .body = EVENT("ADDED", ITEM("c", "11"))}},
     "list watch@9 watch@10 ",
     "synced b@10 c@11 ",
     .failures = 1},
    {.name = "a list that breaks off within a page asks for that page again",
     {{.how = END, .body = PAGE("9", "t1", ITEM("a", "3"))},
      {.how = BREAK, .body = "{\"items\":[" ITEM("b", "4") ",{"},
      {.how = END, .body = LIST("9", ITEM("b", "4") "," ITEM("c", "5"))}},
     "list list+t1 list+t1 watch@9 ",
     "a@3 b@4 c@5 synced ",
     .failures = 1},
    {.name = "what vanished between two tries of the first page is gone",
     {{.how = BREAK, .body = "{\"items\":[" ITEM("a", "3") ",{"}, {.how = END, .body = LIST("9", ITEM("b", "4"))}},
     "list list watch@9 ",
     "a@3 b@4 -a(u-a) synced ",
     .failures = 1},
    {.name = "410 as an event: lists again and tells what is gone, and not what is the same",
     {{.how = END, .body = LIST("9", ITEM("a", "3") "," ITEM("b", "4") "," ITEM("c", "5"))},
      {.how = END, .body = EXPIRED},
      {.how = END, .body = LIST("20", ITEM("a", "3") "," ITEM("c", "15"))}},
     "list watch@9 list watch@20 ",
     "a@3 b@4 c@5 synced c@15 -b(u-b) "},
    {.name = "410 as a status",
     {{.how = END, .body = LIST("9", ITEM("a", "3"))}, GONE, {.how = END, .body = LIST("20", "")}},
     "list watch@9 list watch@20 ",
     "a@3 synced -a(u-a) "},
    {.name = "410 again and again: slower and slower",
     {{.how = END, .body = LIST("9", "")},
      GONE,
      {.how = END, .body = LIST("10", "")},
      GONE,
      {.how = END, .body = LIST("11", "")},
      GONE,
      {.how = END, .body = LIST("12", "")}},
     "list watch@9 list watch@10 list watch@11 list watch@12 ",
     "synced "},
    {.name = "a token that has expired: the list begins anew, the second time without pages",
     {{.how = END, .body = PAGE("9", "t1", ITEM("a", "3"))},
      GONE,
      {.how = END, .body = PAGE("19", "t2", ITEM("b", "4"))},
      GONE,
      {.how = END, .body = LIST("29", ITEM("c", "5"))}},
     "list list+t1 list list+t2 list-all watch@29 ",
     "a@3 b@4 c@5 -a(u-a) -b(u-b) synced "},
    {.name = "replaced by another of its name, in a watch",
     {{.how = END, .body = LIST("9", ITEM("a", "3"))},
      {.how = HOLD, .body = EVENT("ADDED", ITEM_UID("a", "other", "10"))}},
     "list watch@9 ",
     "a@3 synced -a(u-a) a@10 "},
    {.name = "replaced by another of its name, in a list",
     {{.how = END, .body = LIST("9", ITEM("a", "3"))},
      {.how = END, .body = EXPIRED},
      {.how = END, .body = LIST("20", ITEM_UID("a", "other", "10"))}},
     "list watch@9 list watch@20 ",
     "a@3 synced -a(u-a) a@10 "},
    {.name = "another ERROR event goes on from the last version",
     {{.how = END, .body = LIST("9", "")}, {.how = END, .body = EVENT("ADDED", ITEM("b", "10")) BROKEN}},
     "list watch@9 watch@10 ",
     "synced b@10 ",
     .failures = 1},
    {.name = "three ERROR events in a row lead to a list",
     {{.how = END, .body = LIST("9", "")},
      {.how = END, .body = BROKEN},
      {.how = END, .body = BROKEN},
      {.how = END, .body = BROKEN},
      {.how = END, .body = LIST("10", "")}},
     "list watch@9 watch@9 watch@9 list watch@10 ",
     "synced ",
     .failures = 3},
    {.name = "three streams that are no JSON lead to a list",
     {{.how = END, .body = LIST("9", "")},
      {.how = END, .body = "<"},
      {.how = END, .body = "}"},
      {.how = END, .body = "[]"},
      {.how = END, .body = LIST("10", "")}},
     "list watch@9 watch@9 watch@9 list watch@10 ",
     "synced ",
     .failures = 3},
    {.name = "a version that the server does not like leads to a list",
     {{.how = END, .body = LIST("9", "")},
      {.how = REFUSE, .body = "{}", .status = 400, .retry_after_ms = -1},
      {.how = END, .body = LIST("10", "")}},
     "list watch@9 list watch@10 ",
     "synced ",
     .failures = 1},
    {.name = "an object without a name and one that nobody can read are passed over",
     {{.how = END, .body = LIST("9", "{\"metadata\":{}}," ITEM("a", "3"))},
      {.how = HOLD, .body = EVENT("ADDED", "{\"x\":tru}") EVENT("ADDED", ITEM("b", "10"))}},
     "list watch@9 ",
     "a@3 synced b@10 "},
    {.name = "a list without a version is a failure",
     {{.how = END, .body = "{\"items\":[]}"}, {.how = END, .body = LIST("9", "")}},
     "list list watch@9 ",
     "synced ",
     .failures = 1},
    {.name = "a watch that ends at once is a failure",
     {{.how = END, .body = LIST("9", "")}, {.how = END, .body = ""}, {.how = BREAK, .body = ""}},
     "list watch@9 watch@9 watch@9 ",
     "synced ",
     .failures = 2,
     .run_ms = 2000},
    {.name = "a kind that is not served has nothing, and is asked for again",
     {{.how = REFUSE, .body = "404 page not found", .status = 404, .retry_after_ms = -1},
      {.how = END, .body = LIST("9", ITEM("a", "3"))}},
     "list list watch@9 ",
     "synced a@3 ",
     310000,
     "ResourceQuota"},
    {.name = "an optional kind that we may not read any more",
     {{.how = END, .body = LIST("9", ITEM("a", "3"))},
      {.how = BREAK, .body = ""},
      {.how = REFUSE, .body = "{}", .status = 403, .retry_after_ms = -1}},
     "list watch@9 watch@9 ",
     "a@3 synced -a(u-a) ",
     200000,
     "ResourceQuota",
     1},
    {.name = "a kind that we need and may not read: stale after a minute",
     {{.how = REFUSE, .body = "{}", .status = 403, .retry_after_ms = -1},
      {.how = REFUSE, .body = "{}", .status = 403, .retry_after_ms = 90000}},
     "list list ",
     "stale ",
     80000,
     .failures = 2},
    {.name = "whole watches without an event lead to a list",
     {{.how = END, .body = LIST("9", "")},
      {.how = END, .body = "", .after_ms = 300000},
      {.how = END, .body = "", .after_ms = 300000},
      {.how = END, .body = LIST("9", "")}},
     "list watch@9 watch@9 list watch@9 ",
     "synced ",
     601000},
    {.name = "silence after bookmarks is a failure",
     {{.how = END, .body = LIST("9", "")}, {.how = HOLD, .body = BOOKMARK("10")}},
     "list watch@9 watch@10 ",
     "synced ",
     152000,
     .failures = 1},
    {.name = "silence where no bookmark ever came is not",
     {{.how = END, .body = LIST("9", "")}, {.how = HOLD, .body = " "}},
     "list watch@9 ",
     "synced ",
     152000},
    {.name = "nothing works for a minute: stale once, and again after it worked",
     {{.how = END, .body = LIST("9", "")},
      {.how = BREAK, .body = "", .code = ERR_UNAVAILABLE},
      {.how = REFUSE, .body = "", .status = 503, .retry_after_ms = 70000},
      {.how = HOLD, .body = EVENT("ADDED", ITEM("a", "10")), .after_ms = 1}},
     "list watch@9 watch@9 watch@9 ",
     "synced stale a@10 ",
     100000,
     .failures = 2},
};

static void test_reflector__case(void **state)
{
    const struct reflector_case *c = *state;
    struct world w = {0};

    begin(&w, c->kind ? c->kind : "ResourceClaim", c->replies);
    advance(&w, c->run_ms ? c->run_ms : 5000);
    assert_string_equal(buf_str(&w.http.log), c->asked);
    assert_string_equal(buf_str(&w.told), c->told);
    assert_int_equal(reflector_counts(w.reflector).failures, c->failures);
    end(&w);
}

/* ---- waiting ---- */

#define DOWN                                                                                                           \
    {                                                                                                                  \
        BREAK, "", .code = ERR_UNAVAILABLE                                                                             \
    }

static void test_reflector__waits_grow_to_half_a_minute(void **state)
{
    static const struct reply replies[MAX_REPLIES] = {DOWN, DOWN, DOWN, DOWN, DOWN, DOWN,
                                                      DOWN, DOWN, DOWN, DOWN, DOWN, DOWN};
    struct world w = {0};
    int64_t whole = 200;

    (void)state;
    begin(&w, "ResourceClaim", replies);
    advance(&w, 300000);
    for (size_t i = 1; i < 12; i++) {
        int64_t gap = w.gaps[i] - w.gaps[i - 1];

        assert_in_range(gap, whole / 2, whole);
        whole = whole * 2 > 30000 ? 30000 : whole * 2;
    }
    end(&w);
}

static void test_reflector__a_success_makes_waits_short_again(void **state)
{
    static const struct reply replies[MAX_REPLIES] = {
        DOWN, DOWN, DOWN, DOWN, {.how = END, .body = LIST("9", "")}, DOWN, {.how = HOLD, .body = " "}};
    struct world w = {0};

    (void)state;
    begin(&w, "ResourceClaim", replies);
    advance(&w, 10000);
    assert_in_range(w.gaps[6] - w.gaps[5], 100, 200);
    end(&w);
}

static void test_reflector__retry_after_is_kept(void **state)
{
    static const struct reply replies[MAX_REPLIES] = {
        {.how = REFUSE, .body = "{}", .status = 429, .retry_after_ms = 7000},
        {.how = END, .body = LIST("9", "")},
        {.how = HOLD, .body = " "}};
    struct world w = {0};

    (void)state;
    begin(&w, "ResourceClaim", replies);
    advance(&w, 10000);
    assert_in_range(w.gaps[1] - w.gaps[0], 7000, 8400);
    end(&w);
}

static void test_reflector__after_a_failure_a_short_watch_proves_the_server(void **state)
{
    static const struct reply replies[MAX_REPLIES] = {{.how = END, .body = LIST("9", "")},
                                                      DOWN,
                                                      {.how = END, .body = "", .after_ms = 15000},
                                                      {.how = HOLD, .body = " "}};
    struct world w = {0};

    (void)state;
    begin(&w, "ResourceClaim", replies);
    advance(&w, 5000);
    assert_non_null(strstr(w.http.calls->path, "&timeoutSeconds=15"));
    advance(&w, 100000);
    assert_null(strstr(w.http.calls->path, "&timeoutSeconds=15&"));
    assert_string_equal(buf_str(&w.told), "synced ");
    assert_string_equal(buf_str(&w.http.log), "list watch@9 watch@9 watch@9 ");
    end(&w);
}

static void test_reflector__asks_for_what_the_source_says(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w, "Pod", (const struct reply[MAX_REPLIES]){{.how = END, .body = LIST("9", "")}});
    advance(&w, 0);
    assert_non_null(strstr(w.http.calls->path,
                           "/api/v1/pods?labelSelector=%21queue.dra%2Fjob&fieldSelector=status.phase%21%3DSucceeded%2C"
                           "status.phase%21%3DFailed&watch=1&allowWatchBookmarks=true&resourceVersion=9&"));
    end(&w);
}

/* ---- its end ---- */

static const struct reply three[MAX_REPLIES] = {{.how = END, .body = LIST("9", ITEM("a", "3") "," ITEM("b", "4"))},
                                                {.how = HOLD, .body = " "}};

static void test_reflector__freed_from_inside_the_listener(void **state)
{
    struct world w = {.frees_in_changed = true};

    (void)state;
    begin(&w, "ResourceClaim", three);
    advance(&w, 5000);
    assert_string_equal(buf_str(&w.told), "a@3 ");
    end(&w);
    w = (struct world){.frees_in_synced = true};
    begin(&w, "ResourceClaim", three);
    advance(&w, 5000);
    assert_string_equal(buf_str(&w.told), "a@3 b@4 synced ");
    end(&w);
    w = (struct world){.frees_in_stale = true};
    begin(&w, "ResourceClaim", (const struct reply[MAX_REPLIES]){{.how = HOLD, .body = "{"}});
    advance(&w, 100000);
    assert_string_equal(buf_str(&w.told), "stale ");
    end(&w);
}

static void test_reflector__freed_at_any_moment(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms < 3; ms++) {
        struct world w = {0};

        begin(&w, "ResourceClaim", three);
        if (ms)
            advance(&w, ms - 1);
        end(&w);
    }
}

static void test_reflector__gone_carries_our_labels(void **state)
{
    struct world w = {0};

    (void)state;
    begin(&w, "ConfigMap",
          (const struct reply[MAX_REPLIES]){
              {.how = END,
               .body = LIST("9", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"x\",\"uid\":\"u-a\",\"labels\":{"
                                 "\"queue.dra/job\":\"7\"}}}")},
              {.how = END, .body = EXPIRED},
              {.how = END, .body = LIST("10", "")}});
    advance(&w, 5000);
    assert_string_equal(buf_str(&w.told), "a@(null) synced -a(u-a) ");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflector__waits_grow_to_half_a_minute),
        cmocka_unit_test(test_reflector__a_success_makes_waits_short_again),
        cmocka_unit_test(test_reflector__retry_after_is_kept),
        cmocka_unit_test(test_reflector__after_a_failure_a_short_watch_proves_the_server),
        cmocka_unit_test(test_reflector__asks_for_what_the_source_says),
        cmocka_unit_test(test_reflector__freed_from_inside_the_listener),
        cmocka_unit_test(test_reflector__freed_at_any_moment),
        cmocka_unit_test(test_reflector__gone_carries_our_labels),
    };
    int failed = RUN_TABLE(test_reflector__case, cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
