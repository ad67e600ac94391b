#include "test/support/cmocka.h"

#include <jansson.h>
#include <string.h>

#include "queued/log.h"

#include "allocator/base/banned.h"

static const struct log_case {
    const char *name;
    enum log_format format;
    struct log_value values[3];
    size_t n;
    const char *want;
} log_cases[] = {
    {"text is plain where it can be",
     LOG_TEXT,
     {LOG_STR("queue", "team-a"), LOG_INT("job", 17)},
     2,
     "2026-01-01T00:00:00.007Z info  job.admitted queue=team-a job=17\n"},
    {"text quotes what has spaces",
     LOG_TEXT,
     {LOG_STR("detail", "a \"b\"")},
     1,
     "2026-01-01T00:00:00.007Z info  job.admitted detail=\"a \\\"b\\\"\"\n"},
    {"an empty text is visible",
     LOG_TEXT,
     {LOG_STR("detail", "")},
     1,
     "2026-01-01T00:00:00.007Z info  job.admitted detail=\"\"\n"},
    {"no value, no key",
     LOG_TEXT,
     {LOG_STR("detail", NULL), LOG_BOOL("ok", true)},
     2,
     "2026-01-01T00:00:00.007Z info  job.admitted ok=true\n"},
    {"a line stays one line",
     LOG_TEXT,
     {LOG_STR("detail", "a\nb\033[31m")},
     1,
     "2026-01-01T00:00:00.007Z info  job.admitted detail=\"a\\u000ab\\u001b[31m\"\n"},
    {"bytes that are no UTF-8 are escaped",
     LOG_TEXT,
     {LOG_STR("detail", "\xc3\xa4 \xff\xc3")},
     1,
     "2026-01-01T00:00:00.007Z info  job.admitted detail=\"\xc3\xa4 \\u00ff\\u00c3\"\n"},
    {"json",
     LOG_JSON,
     {LOG_STR("queue", "a\\b"), LOG_INT("job", -1), LOG_BOOL("ok", false)},
     3,
     "{\"time\":\"2026-01-01T00:00:00.007Z\",\"level\":\"info\",\"event\":\"job.admitted\",\"queue\":\"a\\\\b\","
     "\"job\":-1,"
     "\"ok\":false}\n"},
    {"json without values",
     LOG_JSON,
     {{0}},
     0,
     "{\"time\":\"2026-01-01T00:00:00.007Z\",\"level\":\"info\",\"event\":\"job.admitted\"}\n"},
};

static void test_log__line(void **state)
{
    const struct log_case *c = *state;
    BUF line = {0};

    log_format_to(c->format, INT64_C(1767225600007), LOG_INFO, "job.admitted", c->values, c->n, &line);
    assert_string_equal(buf_str(&line), c->want);
}

static void test_log__any_bytes_are_json(void **state)
{
    (void)state;
    for (int a = 1; a < 256; a++)
        for (int b = 1; b < 256; b += 3) {
            const char text[] = {(char)a, (char)b, (char)(a ^ 0x40), '\0'};
            struct log_value value = LOG_STR("x", text);
            BUF line = {0};
            json_t *json;

            log_format_to(LOG_JSON, 0, LOG_WARN, "e", &value, 1, &line);
            json = json_loads(buf_str(&line), 0, NULL);
            assert_non_null(json);
            json_decref(json);
        }
}

static void test_log__level_is_a_threshold(void **state)
{
    (void)state;
    log_setup(LOG_WARN, LOG_TEXT);
    assert_true(log_is_on(LOG_ERROR));
    assert_true(log_is_on(LOG_WARN));
    assert_false(log_is_on(LOG_INFO));
    log_info("not.seen");
    log_debug("not.seen", LOG_INT("x", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log__any_bytes_are_json),
        cmocka_unit_test(test_log__level_is_a_threshold),
    };
    int failed = RUN_TABLE(test_log__line, log_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
