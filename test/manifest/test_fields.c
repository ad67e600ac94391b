#include "test/support/cmocka.h"

#include "queued/manifest/duration.h"
#include "queued/manifest/fields.h"

static const struct duration_case {
    const char *text;
    bool valid;
    int64_t ms;
} duration_cases[] = {
    {"90s", true, 90000},
    {"1h30m", true, 5400000},
    {"1.5h", true, 5400000},
    {".5s", true, 500},
    {"1.s", true, 1000},
    {"250ms", true, 250},
    {"1us", true, 1}, /* rounded up: a limit of 0 would mean none */
    {"1\xc2\xb5s", true, 1},
    {"1ns", true, 1},
    {"0", true, 0},
    {"0s", true, 0},
    {"2h2h", true, 14400000},
    {"2540400h", true, 9145440000000},
    {"", false, 0},
    {"h", false, 0},
    {"5", false, 0},
    {"5 m", false, 0},
    {"-5m", false, 0},
    {"+5m", false, 0},
    {"1d", false, 0},
    {"1h3", false, 0},
    {".h", false, 0},
    {"9999999999999999999h", false, 0},
    {"9999999999h", false, 0},
};

static void test_fields__durations(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(duration_cases); i++) {
        int64_t ms = 0;
        bool valid = duration_parse(duration_cases[i].text, &ms);

        if (valid != duration_cases[i].valid || (valid && ms != duration_cases[i].ms))
            fail_msg("\"%s\": %d, %lld", duration_cases[i].text, valid, (long long)ms);
    }
}

static const char *word_of(const void *ctx, size_t i)
{
    const char *const *words = ctx;

    return words[i];
}

static void test_fields__the_closest_name(void **state)
{
    static const char *const words[] = {"replicas", "minReplicas", "template", "name", "nodeSelector"};

    (void)state;
    assert_string_equal(closest_name("replica", word_of, words, 5), "replicas");
    assert_string_equal(closest_name("relpicas", word_of, words, 5), "replicas");
    assert_string_equal(closest_name("nodeselector", word_of, words, 5), "nodeSelector");
    assert_string_equal(closest_name("mname", word_of, words, 5), "name");
    assert_null(closest_name("image", word_of, words, 5));
    assert_null(closest_name("completelyDifferent", word_of, words, 5));
    assert_null(closest_name("x", word_of, words, 0));
}

static void test_fields__names(void **state)
{
    static const struct {
        const char *name;
        bool dots, valid;
    } rows[] = {
        {"a", false, true},    {"a-b.c", true, true}, {"a.b", false, false}, {"-a", true, false}, {"a-", true, false},
        {"a.-b", true, false}, {"a..b", true, false}, {"A", true, false},    {"", true, false},   {"a_b", true, false},
        {"1", true, true},     {"a-.b", true, false}, {"a.", true, false},   {".a", true, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if ((field_name_check(rows[i].name, 63, rows[i].dots, NULL) == 0) != rows[i].valid)
            fail_msg("\"%s\"", rows[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields__durations),
        cmocka_unit_test(test_fields__the_closest_name),
        cmocka_unit_test(test_fields__names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
