/* Refusals of an API server: what they mean to us, and in whose words. */
#include "queued/cluster/kube/status.h"
#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/rng.h"
#include "allocator/base/str.h"

#include "allocator/base/banned.h"

#define STATUS(rest) "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"," rest "}"
#define SAID(words)  STATUS("\"message\":\"" words "\"")

static const struct status_case {
    const char *name;
    int status;
    const char *body;
    enum err_code read, write;
    const char *text, *field;
} cases[] = {
    {"a success", 201, "{}", ERR_NONE, ERR_NONE, "", ""},
    {"invalid, with the first cause's field", 422,
     STATUS(
         "\"message\":\"Pod \\\"a\\\" is invalid\",\"reason\":\"Invalid\",\"details\":{\"causes\":[{\"reason\":\"x\"},"
         "{\"field\":\"spec.containers[0].name\"},{\"field\":\"spec.b\"}]}"),
     ERR_INVALID, ERR_INVALID, "422 Pod \"a\" is invalid", "spec.containers[0].name"},
    {"a bad request", 400, SAID("no"), ERR_INVALID, ERR_INVALID, "400 no", ""},
    {"not logged in", 401, SAID("Unauthorized"), ERR_DENIED, ERR_DENIED, "401 Unauthorized", ""},
    {"a quota", 403, SAID("pods \\\"a\\\" is forbidden: exceeded quota: q"), ERR_DENIED, ERR_DENIED,
     "403 pods \"a\" is forbidden: exceeded quota: q", ""},
    {"not found", 404, SAID("pods \\\"a\\\" not found"), ERR_NOT_FOUND, ERR_NOT_FOUND, "404 pods \"a\" not found", ""},
    {"exists already", 409, STATUS("\"message\":\"exists\",\"reason\":\"AlreadyExists\""), ERR_CONFLICT, ERR_CONFLICT,
     "409 exists", ""},
    {"somebody else was counting the quota", 409,
     STATUS("\"message\":\"cannot be fulfilled\",\"reason\":\"Conflict\",\"details\":{\"kind\":\"resourcequotas\"}"),
     ERR_UNAVAILABLE, ERR_UNAVAILABLE, "409 cannot be fulfilled", ""},
    {"expired", 410, SAID("too old"), ERR_NOT_FOUND, ERR_NOT_FOUND, "410 too old", ""},
    {"too many requests", 429, SAID("later"), ERR_UNAVAILABLE, ERR_UNAVAILABLE, "429 later", ""},
    {"a webhook that fails", 500, SAID("failed calling webhook"), ERR_UNAVAILABLE, ERR_TIMEOUT,
     "500 failed calling webhook", ""},
    {"a proxy in between", 502, "<html>\nBad gateway", ERR_UNAVAILABLE, ERR_TIMEOUT, "502 <html>", ""},
    {"overloaded", 503, SAID("no"), ERR_UNAVAILABLE, ERR_UNAVAILABLE, "503 no", ""},
    {"too late", 504, SAID("no"), ERR_TIMEOUT, ERR_TIMEOUT, "504 no", ""},
    {"a status nobody knows", 599, "", ERR_REMOTE, ERR_TIMEOUT, "599 the server gave no reason", ""},
    {"a redirect", 302, "", ERR_REMOTE, ERR_REMOTE, "302 the server gave no reason", ""},
    {"only a reason", 403, STATUS("\"reason\":\"Forbidden\""), ERR_DENIED, ERR_DENIED, NULL, ""},
    {"plain text", 404, "\n  404 page not found\nmore", ERR_NOT_FOUND, ERR_NOT_FOUND, "404 404 page not found", ""},
    {"control characters", 403, SAID("a\\nb\\tc\\u001b[0m"), ERR_DENIED, ERR_DENIED, "403 a b c [0m", ""},
    {"members of other types", 422, STATUS("\"message\":7,\"reason\":[],\"details\":{\"causes\":{\"field\":1}}"),
     ERR_INVALID, ERR_INVALID, NULL, ""},
    {"an array", 500, "[1]", ERR_UNAVAILABLE, ERR_TIMEOUT, "500 [1]", ""},
};

static void test_status__case(void **state)
{
    const struct status_case *c = *state;
    struct http_answer answer = {.status = c->status, .body = c->body, .len = strlen(c->body)};

    for (int is_write = 0; is_write < 2; is_write++) {
        struct error err = {0};
        enum err_code want = is_write ? c->write : c->read;

        assert_int_equal(status_check(&answer, is_write, &err), want ? -1 : 0);
        assert_int_equal(err.code, want);
        assert_string_equal(err.field, c->field);
        if (c->text)
            assert_string_equal(err.text, c->text);
        assert_int_equal(status_check(&answer, is_write, NULL), want ? -1 : 0);
    }
    assert_int_equal(status_is_expired(&answer), c->status == 410);
}

#define DENIED(details) STATUS("\"reason\":\"Forbidden\",\"message\":\"no\"" details)

static const struct right_case {
    const char *name;
    int status;
    const char *body;
    bool want;
} right_cases[] = {
    {"authorization", 403, DENIED(",\"details\":{\"group\":\"scheduling.k8s.io\",\"kind\":\"podgroups\"}"), true},
    {"a quota", 403, DENIED(",\"details\":{\"name\":\"p\",\"kind\":\"podgroups\"}"), false},
    {"a webhook", 403, DENIED(""), false},
    {"validation", 422, DENIED(",\"details\":{\"kind\":\"podgroups\"}"), false},
    {"a proxy", 403, "no", false},
};

static void test_status__no_right(void **state)
{
    const struct right_case *c = *state;
    struct http_answer answer = {.status = c->status, .body = c->body, .len = strlen(c->body)};

    assert_int_equal(status_is_no_right(&answer), c->want);
}

static void test_status__without_an_answer(void **state)
{
    struct http_answer answer = {.may_be_done = true, .body = ""};
    struct error err = {0};

    (void)state;
    error_set(&answer.err, ERR_REMOTE, "broken off");
    assert_int_equal(status_check(&answer, false, &err), -1);
    assert_int_equal(err.code, ERR_REMOTE);
    assert_int_equal(status_check(&answer, true, &err), -1);
    assert_int_equal(err.code, ERR_TIMEOUT); /* the outcome is unknown */
    assert_string_equal(err.text, "broken off");
    answer.may_be_done = false;
    assert_int_equal(status_check(&answer, true, &err), -1);
    assert_int_equal(err.code, ERR_REMOTE);
}

/* Long words of many bytes per character end at a whole one. */
static void test_status__long_words_are_cut(void **state)
{
    (void)state;
    for (size_t pad = 0; pad < 5; pad++) {
        BUF body = {0};
        struct http_answer answer = {.status = 403};
        struct error err = {0};
        json_t *words;

        for (size_t i = 0; i < pad; i++)
            buf_addc(&body, 'x');
        for (int i = 0; i < 1000; i++)
            buf_adds(&body, "\xf0\x9f\x98\x80\xc3\xa4");
        answer.body = buf_str(&body);
        answer.len = body.len;
        assert_int_equal(status_check(&answer, false, &err), -1);
        assert_in_range(strlen(err.text), 380, 410);
        words = json_string(err.text); /* NULL when it is not UTF-8 */
        assert_non_null(words);
        json_decref(words);
    }
}

static const struct event_case {
    const char *name, *object;
    bool is_expired;
    enum err_code code;
} events[] = {
    {"too old", STATUS("\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\""), true, ERR_NOT_FOUND},
    {"too old, by its reason", STATUS("\"reason\":\"Expired\""), true, ERR_UNAVAILABLE},
    {"too old, by its code", STATUS("\"code\":410"), true, ERR_NOT_FOUND},
    {"broken", STATUS("\"code\":500,\"reason\":\"InternalError\""), false, ERR_UNAVAILABLE},
    {"without a code", "{}", false, ERR_UNAVAILABLE},
    {"with a code of garbage", "{\"code\":99999999999}", false, ERR_UNAVAILABLE},
};

static void test_status__event(void **state)
{
    const struct event_case *c = *state;
    json_t *object = json_loads(c->object, 0, NULL);
    struct error err = {0};

    assert_int_equal(status_of_event(object, &err), c->is_expired);
    assert_int_equal(err.code, c->code);
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status__without_an_answer),
        cmocka_unit_test(test_status__long_words_are_cut),
    };
    int failed = RUN_TABLE(test_status__case, cases);

    failed += RUN_TABLE(test_status__event, events);
    failed += RUN_TABLE(test_status__no_right, right_cases);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
