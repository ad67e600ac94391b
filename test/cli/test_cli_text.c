#include "test/support/cmocka.h"

#include "cli/text.h"

struct text_case {
    const char *name;
    void (*add)(struct buf *out, const char *text);
    const char *text;
    const char *want;
};

static void add_ms(struct buf *out, const char *text)
{
    text_duration(out, strtoll(text, NULL, 10));
}

static void add_names(struct buf *out, const char *text)
{
    json_t *names = json_loads(text, 0, NULL);

    text_names(out, names);
    json_decref(names);
}

static void add_memory(struct buf *out, const char *text)
{
    json_t *amount = json_integer(strtoll(text, NULL, 10));

    text_amount(out, "memory", amount);
    json_decref(amount);
}

static void add_value(struct buf *out, const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    text_value(out, value);
    json_decref(value);
}

static void add_placement(struct buf *out, const char *text)
{
    json_t *effective = json_loads(text, 0, NULL);

    text_placement(out, effective);
    json_decref(effective);
}

static const struct text_case text_cases[] = {
    {"seconds", add_ms, "12999", "12s"},
    {"minutes and seconds", add_ms, "125000", "2m05s"},
    {"minutes", add_ms, "1500000", "25m"},
    {"hours", add_ms, "11100000", "3h05m"},
    {"days", add_ms, "190800000", "2d5h"},
    {"many days", add_ms, "8640000000000", "100000d"},
    {"a clock that went back", add_ms, "-5", "0s"},
    {"a time", text_time, "2026-11-29T15:57:37.123Z", "2026-11-29 15:57:37"},
    {"no time", text_time, "yesterday", "yesterday"},
    {"control characters", text_add, "a\033[31mb\nc\td\x7f\xc2\x9b", "a?[31mb c d??"},
    {"other characters stay", text_add, "\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80"},
    {"ranges", add_names, "[\"g-0\",\"g-1\",\"g-2\",\"g-5\"]", "g-[0-2,5]"},
    {"one name", add_names, "[\"g-0\"]", "g-0"},
    {"names of two kinds", add_names, "[\"g-0\",\"g-1\",\"n-0\",\"x\"]", "g-[0-1] n-0 x"},
    {"numbers with zeros before stay", add_names, "[\"n01\",\"n02\"]", "n01 n02"},
    {"names that are numbers stay", add_names, "[\"0\",\"1\"]", "0 1"},
    {"long numbers stay", add_names, "[\"n12345678901\",\"n12345678902\"]", "n12345678901 n12345678902"},
    {"no names", add_names, "[]", ""},
    {"memory", add_memory, "34359738368", "32Gi"},
    {"memory of no round size", add_memory, "1025", "1025"},
    {"no memory", add_memory, "0", "0"},
    {"a queue's placement", add_placement, "{\"placement\":\"pack\",\"from\":\"queue\",\"queue\":\"r\"}",
     "pack, as queue r says"},
    {"a job's placement", add_placement, "{\"placement\":\"spread\",\"from\":\"job\"}", "spread, as the job says"},
    {"the default placement", add_placement, "{\"placement\":\"fragmentation\",\"from\":\"default\"}",
     "fragmentation, the default"},
    {"a placement of a later version", add_placement, "{\"placement\":\"heap\",\"from\":\"moon\"}", "heap"},
    {"no placement", add_placement, "", ""},
    {"values", add_value, "[1,\"a\",true,null,0.1,{\"k\":1}]", "1,a,true,,0.1,{\"k\":1}"},
};

static void test_cli_text__case(void **state)
{
    const struct text_case *c = *state;
    BUF got = {0};

    c->add(&got, c->text);
    assert_string_equal(buf_str(&got), c->want);
}

static void test_cli_text__times(void **state)
{
    int64_t ms = 0;

    (void)state;
    assert_true(time_parse("1970-01-02T00:00:01.500Z", &ms));
    assert_int_equal(ms, 86401500);
    assert_false(time_parse(NULL, &ms));
    assert_false(time_parse("2026-11-29T15:57:37.123", &ms));
    assert_false(time_parse("2026-11-29T15:57:37.123Zx", &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cli_text__times)};

    return RUN_TABLE(test_cli_text__case, text_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
