#include "test/support/cmocka.h"

#include <math.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/doublefmt.h"

static const struct text_case {
    const char *name; /* as string() writes it */
    double value;
    const char *plain; /* without an exponent */
} text_cases[] = {
    {"0", 0.0, "0"},
    {"-0", -0.0, "-0"},
    {"100000", 100000.0, "100000"},
    {"1e+06", 1e6, "1000000"},
    {"123456.5", 123456.5, "123456.5"},
    {"1.234567e+06", 1234567.0, "1234567"},
    {"0.0001", 0.0001, "0.0001"},
    {"2e-09", 2e-9, "0.000000002"},
    {"0.1", 0.1, "0.1"},
    {"0.30000000000000004", 0.1 + 0.2, "0.30000000000000004"},
    {"5e-324", 5e-324, NULL},
    {"1.7976931348623157e+308", 1.7976931348623157e308, NULL},
    {"5.684341886080802e-14", 0x1p-44, NULL}, /* the nearest number of 16 digits does not read back */
    {"-1.5", -1.5, "-1.5"},
    {"+Inf", (double)INFINITY, "+Inf"},
    {"-Inf", -(double)INFINITY, "-Inf"},
    {"NaN", (double)NAN, "NaN"},
};

static void test_doublefmt__text(void **state)
{
    const struct text_case *c = *state;
    BUF text = {0};
    double back;

    double_format_to(c->value, &text);
    assert_string_equal(buf_str(&text), c->name);
    assert_int_equal(double_parse(str_of(c->name), &back, NULL), 0);
    assert_true(back == c->value || (isnan(back) && isnan(c->value)));
    if (!c->plain)
        return;
    buf_clear(&text);
    double_format_plain_to(c->value, &text);
    assert_string_equal(buf_str(&text), c->plain);
}

static const struct parse_case {
    const char *name; /* the text */
    double value;
} parse_cases[] = {
    {"1_0", 10},
    {"0x1p-2", 0.25},
    {"0X1.8P3", 12},
    {"0x_1p0", 1},
    {"iNf", (double)INFINITY},
    {"-Infinity", -(double)INFINITY},
    {".5", 0.5},
    {"5.", 5},
    {"+1e-400", 0},
    {"2.5e-324", 5e-324},
    {"0x1p-1075", 0},
    {"1e0000000000000000001", 10},
};

static void test_doublefmt__parse(void **state)
{
    const struct parse_case *c = *state;
    double value;

    assert_int_equal(double_parse(str_of(c->name), &value, NULL), 0);
    assert_true(value == c->value);
}

static const struct refusal_case {
    const char *name; /* the text */
    const char *why;
} refusal_cases[] = {
    {"", "invalid syntax"},        {" 1", "invalid syntax"},        {"1 ", "invalid syntax"},
    {"1_", "invalid syntax"},      {"_1", "invalid syntax"},        {"1__0", "invalid syntax"},
    {"0x1", "invalid syntax"},     {"0xp1", "invalid syntax"},      {"1e", "invalid syntax"},
    {"infinit", "invalid syntax"}, {"+nan", "invalid syntax"},      {"1,5", "invalid syntax"},
    {".", "invalid syntax"},       {"1e400", "value out of range"}, {"0x1p1024", "value out of range"},
};

static void test_doublefmt__refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct error err = {0};
    double value;

    assert_int_equal(double_parse(str_of(c->name), &value, &err), -1);
    assert_non_null(strstr(err.text, c->why));
}

static void test_doublefmt__fixed_digits_are_exact(void **state)
{
    BUF text = {0};

    (void)state;
    double_format_fixed_to(2.5, 0, &text);
    buf_addc(&text, ' ');
    double_format_fixed_to(-0.125, 2, &text);
    buf_addc(&text, ' ');
    double_format_fixed_to(0.1, 20, &text);
    assert_string_equal(buf_str(&text), "2 -0.12 0.10000000000000000555");
    buf_clear(&text);
    double_format_fixed_to(1, DOUBLE_MAX_PRECISION + 10, &text);
    assert_int_equal(text.len, DOUBLE_MAX_PRECISION + 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_doublefmt__fixed_digits_are_exact)};

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_doublefmt__text, text_cases) +
           RUN_TABLE(test_doublefmt__parse, parse_cases) + RUN_TABLE(test_doublefmt__refusal, refusal_cases);
}
