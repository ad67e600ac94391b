#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/semver.h"

static const struct parse_case {
    const char *name; /* the text */
    bool normalize;
    const char *want; /* the version, or the reason of the refusal */
    bool fails;
} parse_cases[] = {
    {"1.2.3", false, "1.2.3", false},
    {"1.2.3-rc.1+build.5", false, "1.2.3-rc.1+build.5", false},
    {"1.0.0--", false, "1.0.0--", false},
    {"1.0.0+a-b", false, "1.0.0+a-b", false},
    {"18446744073709551615.0.0", false, "18446744073709551615.0.0", false},
    {"v1.2.3", true, "1.2.3", false},
    {"01.002.00", true, "1.2.0", false},
    {"1", true, "1.0.0", false},
    {"1.2", true, "1.2.0", false},
    {"1.2.-rc", true, "1.2.0-rc", false},
    {"1.2.00-rc", true, "1.2.0-rc", false},
    {"", false, "Version string empty", true},
    {"", true, "invalid syntax", true},
    {"1.2", false, "No Major.Minor.Patch elements found", true},
    {"v1.2.3", false, "Invalid character(s) found in major number \"v1\"", true},
    {"vv1.2.3", true, "Invalid character(s) found in major number \"0v1\"", true},
    {"01.2.3", false, "Major number must not contain leading zeroes \"01\"", true},
    {"1.2.3.4", false, "Invalid character(s) found in patch number \"3.4\"", true},
    {"1..3", false, "invalid syntax", true},
    {"18446744073709551616.0.0", false, "value out of range", true},
    {"1.2-rc", true, "short version cannot contain", true},
    {"1.0.0-01", false, "Numeric PreRelease version must not contain leading zeroes \"01\"", true},
    {"1.0.0-", false, "Prerelease is empty", true},
    {"1.0.0-a..b", false, "Prerelease is empty", true},
    {"1.0.0-a_b", false, "Invalid character(s) found in prerelease \"a_b\"", true},
    {"1.0.0+", false, "Build meta data is empty", true},
    {" 1.0.0", true, "Invalid character(s) found in major number", true},
};

static void test_semver__parse(void **state)
{
    const struct parse_case *c = *state;
    struct semver version;
    struct error err = {0};
    BUF text = {0};

    assert_int_equal(semver_parse(str_of(c->name), c->normalize, &version, &err), c->fails ? -1 : 0);
    if (c->fails) {
        assert_non_null(strstr(err.text, c->want));
        return;
    }
    semver_format_to(&version, &text);
    assert_string_equal(buf_str(&text), c->want);
}

/* Each is lower than the next. */
static const char *const ladder[] = {
    "0.0.1",         "1.0.0-0",         "1.0.0-2",
    "1.0.0-10",      "1.0.0-A",         "1.0.0-alpha",
    "1.0.0-alpha.1", "1.0.0-alpha.1.0", "1.0.0-alpha.beta",
    "1.0.0-beta",    "1.0.0-beta.2",    "1.0.0-beta.11",
    "1.0.0-rc.1",    "1.0.0",           "1.0.1",
    "1.1.0",         "2.0.0",           "10.0.0",
};

static void test_semver__order(void **state)
{
    struct semver a, b;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(ladder); k++) {
            assert_int_equal(semver_parse(str_of(ladder[i]), false, &a, NULL), 0);
            assert_int_equal(semver_parse(str_of(ladder[k]), false, &b, NULL), 0);
            assert_int_equal(semver_cmp(&a, &b), (i > k) - (i < k));
        }
    }
}

static void test_semver__build_metadata_does_not_order(void **state)
{
    struct semver a, b;

    (void)state;
    assert_int_equal(semver_parse(STR("1.0.0+a"), false, &a, NULL), 0);
    assert_int_equal(semver_parse(STR("1.0.0+b"), false, &b, NULL), 0);
    assert_int_equal(semver_cmp(&a, &b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_semver__order),
        cmocka_unit_test(test_semver__build_metadata_does_not_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_semver__parse, parse_cases);
}
