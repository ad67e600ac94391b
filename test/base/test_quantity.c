#include "test/support/cmocka.h"

#include <math.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/quantity.h"

#define NOT_AN_INT INT64_MIN

static struct quantity parsed(const char *text, struct arena *arena)
{
    struct quantity q;
    struct error err = {0};

    if (quantity_parse(str_of(text), arena, &q, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return q;
}

/* ---- what a text means ---- */

static const struct text_case {
    const char *name; /* the text */
    const char *canonical;
    int64_t whole;   /* rounded away from zero */
    int64_t integer; /* what CEL's asInteger gives, or NOT_AN_INT */
} text_cases[] = {
    {"0", "0", 0, 0},
    {"5", "5", 5, 5},
    {"-5", "-5", -5, -5},
    {"+5", "+5", 5, 5}, /* Kubernetes remembers such spellings */
    {"05", "05", 5, 5},
    {"5.", "5.", 5, 5},
    {".5", "500m", 1, NOT_AN_INT},
    {"1.500", "1.500", 2, NOT_AN_INT},
    {"1.5", "1500m", 2, NOT_AN_INT},
    {"1500m", "1500m", 2, NOT_AN_INT},
    {"1000m", "1", 1, NOT_AN_INT},
    {"1000", "1k", 1000, 1000},
    {"1.5k", "1500", 1500, 1500},
    {"1E", "1E", 1000000000000000000, 1000000000000000000},
    {"9E", "9E", 9000000000000000000, 9000000000000000000},
    {"1e3", "1e3", 1000, 1000},
    {"1E3", "1E3", 1000, 1000},
    {"12e1", "120", 120, 120},
    {"1Ki", "1Ki", 1024, 1024},
    {"1024Mi", "1Gi", 1 << 30, 1 << 30},
    {"10Ti", "10Ti", 10995116277760, 10995116277760},
    {"100Ti", "100Ti", 109951162777600, NOT_AN_INT},
    {"1.5Gi", "1536Mi", 1610612736, NOT_AN_INT},
    {"0.5Ki", "512", 512, NOT_AN_INT},
    {"0.0001Ki", "102400u", 1, NOT_AN_INT},
    {"8Ei", "9223372036854775807", INT64_MAX, NOT_AN_INT},
    {"16Ei", "9223372036854775807", INT64_MAX, NOT_AN_INT},
    {"0.1n", "1n", 1, NOT_AN_INT},
    {"-0.1n", "-1n", -1, NOT_AN_INT},
    {"1.0000000001", "1000000001n", 2, NOT_AN_INT},
    {"999999999999999999", "999999999999999999", 999999999999999999, 999999999999999999},
    {"1000000000000000000", "1E", 1000000000000000000, NOT_AN_INT},
    {"9223372036854775807", "9223372036854775807", INT64_MAX, NOT_AN_INT},
};

static void test_quantity__text(void **state)
{
    const struct text_case *c = *state;
    struct arena arena = {0};
    struct quantity q = parsed(c->name, &arena);
    BUF printed = {0};
    int64_t n = 0;

    quantity_format_to(&q, &printed);
    assert_string_equal(buf_str(&printed), c->canonical);
    assert_true(quantity_to_int(&q, &n));
    assert_int_equal(n, c->whole);
    assert_int_equal(quantity_as_integer(&q, &n) ? n : NOT_AN_INT, c->integer);
    arena_release(&arena);
}

/* ---- what is no quantity ---- */

static const struct refusal_case {
    const char *name; /* the text */
    const char *why;
} refusal_cases[] = {
    {"", "must match the regular expression"},
    {" 1", "must match the regular expression"},
    {"1 ", "must match the regular expression"},
    {"1K", "unable to parse quantity's suffix"},
    {"1ki", "unable to parse quantity's suffix"},
    {"1g", "must match the regular expression"},
    {"1e", "unable to parse quantity's suffix"},
    {"1e+", "unable to parse quantity's suffix"},
    {"10Mm", "unable to parse quantity's suffix"},
    {"1.2.3", "must match the regular expression"},
    {"1e5000", "exponent"},
    {"1e-5000", "exponent"},
    {"1e99999999999999999999", "unable to parse quantity's suffix"},
};

static void test_quantity__refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct arena arena = {0};
    struct quantity q;
    struct error err = {0};

    assert_int_equal(quantity_parse(str_of(c->name), &arena, &q, &err), -1);
    assert_non_null(strstr(err.text, c->why));
    arena_release(&arena);
}

/* ---- order and arithmetic ---- */

static const struct pair_case {
    const char *name;
    const char *a, *b;
    int order;
    const char *sum, *difference;
} pair_cases[] = {
    {"equal amounts of different spelling", "1Gi", "1024Mi", 0, "2Gi", "0"},
    {"a nano decides", "1", "1000000001n", -1, "2000000001n", "-1n"},
    {"scales far apart", "1e100", "1", 1,
     "10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
     "9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999"},
    {"signs", "-1Ki", "1Ki", -1, "0", "-2Ki"},
    {"beyond 64 bits", "9223372036854775807", "9223372036854775807", 0, "18446744073709551614", "0"},
    {"binary beyond 64 bits", "8Ei", "8Ei", 0, "18446744073709551614", "0"},
    {"the format of a zero gives way", "0", "1Ki", -1, "1Ki", "-1Ki"},
    {"thousandths", "500m", "500m", 0, "1", "0"},
    {"carry into a long row", "99999999999999999999", "1", 1, "100E", "99999999999999999998"},
};

static void test_quantity__pair(void **state)
{
    const struct pair_case *c = *state;
    struct arena arena = {0};
    struct quantity a = parsed(c->a, &arena), b = parsed(c->b, &arena);
    struct quantity sum = quantity_add(&a, &b, &arena), difference = quantity_sub(&a, &b, &arena);
    BUF text = {0};

    assert_int_equal(quantity_cmp(&a, &b), c->order);
    assert_int_equal(quantity_cmp(&b, &a), -c->order);
    quantity_format_to(&sum, &text);
    assert_string_equal(buf_str(&text), c->sum);
    buf_clear(&text);
    quantity_format_to(&difference, &text);
    assert_string_equal(buf_str(&text), c->difference);
    arena_release(&arena);
}

/* ---- the representation ---- */

static const struct identity_case {
    const char *name;
    const char *a, *b;
    bool identical;
} identity_cases[] = {
    {"the same text", "5", "5", true},
    {"a remembered sign", "5", "+5", false},
    {"other units", "1Gi", "1024Mi", false},
    {"other formats", "1k", "1e3", false},
    {"other scales", "1", "1000m", false},
    {"a spelling that is not remembered", "1024Mi", "1024Mi", true},
    {"the long form is never identical", "1.5Gi", "1.5Gi", false},
};

static void test_quantity__identity(void **state)
{
    const struct identity_case *c = *state;
    struct arena arena = {0};
    struct quantity a = parsed(c->a, &arena), b = parsed(c->b, &arena);

    assert_int_equal(quantity_identical(&a, &b), c->identical);
    arena_release(&arena);
}

static void test_quantity__a_computed_number_is_not_identical_to_a_spelt_one(void **state)
{
    struct arena arena = {0};
    struct quantity spelt = parsed("5", &arena), computed = quantity_of_int(5);

    (void)state;
    assert_int_equal(quantity_cmp(&spelt, &computed), 0);
    assert_false(quantity_identical(&spelt, &computed));
    arena_release(&arena);
}

/* ---- conversions ---- */

static void test_quantity__sums_keep_the_finer_scale(void **state)
{
    struct arena arena = {0};
    struct quantity half = parsed("500m", &arena), sum = quantity_add(&half, &half, &arena);
    int64_t n;

    (void)state;
    assert_true(quantity_to_int(&sum, &n));
    assert_int_equal(n, 1);
    assert_false(quantity_as_integer(&sum, &n));
    arena_release(&arena);
}

static const struct milli_case {
    const char *name; /* the text */
    bool fits, exact;
    int64_t milli;
} milli_cases[] = {
    {"1500m", true, true, 1500},
    {"1500u", true, false, 2},
    {"-1500u", true, false, -2},
    {"2Gi", true, true, 2147483648000},
    {"1.5Gi", true, true, 1610612736000},
    {"9223372036854775807", false, false, 0},
    {"100E", false, false, 0},
    {"9223372036854775.807", true, true, INT64_MAX},
    {"9223372036854775.808", false, false, 0},
    {"12345678901.234567891", true, false, 12345678901235},
};

static void test_quantity__milli(void **state)
{
    const struct milli_case *c = *state;
    struct arena arena = {0};
    struct quantity q = parsed(c->name, &arena);
    int64_t milli;

    assert_int_equal(quantity_to_milli(&q, &milli), c->fits);
    if (c->fits)
        assert_int_equal(milli, c->milli);
    assert_int_equal(quantity_is_milli_exact(&q), c->exact);
    arena_release(&arena);
}

static const struct double_case {
    const char *name; /* the text */
    double want;
} double_cases[] = {
    {"0.1", 0.1},
    {"1.5Gi", 1610612736.0},
    {"1e308", 1e308},
    {"1e400", (double)INFINITY},
    {"100Ti", 109951162777600.0},
    {"-2500m", -2.5},
};

static void test_quantity__double(void **state)
{
    const struct double_case *c = *state;
    struct arena arena = {0};
    struct quantity q = parsed(c->name, &arena);

    assert_true(quantity_as_double(&q) == c->want);
    arena_release(&arena);
}

static void test_quantity__common_texts_take_no_memory(void **state)
{
    const char *const texts[] = {"80Gi", "4", "1500m", "1.5", "10Ti", "1e3", "100Ti", "1.5Gi", "0.1n"};
    struct arena arena = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct quantity q = parsed(texts[i], &arena);

        assert_null(q.big);
    }
    assert_int_equal(arena.bytes, 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantity__a_computed_number_is_not_identical_to_a_spelt_one),
        cmocka_unit_test(test_quantity__sums_keep_the_finer_scale),
        cmocka_unit_test(test_quantity__common_texts_take_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_quantity__text, text_cases) +
           RUN_TABLE(test_quantity__refusal, refusal_cases) + RUN_TABLE(test_quantity__pair, pair_cases) +
           RUN_TABLE(test_quantity__identity, identity_cases) + RUN_TABLE(test_quantity__milli, milli_cases) +
           RUN_TABLE(test_quantity__double, double_cases);
}
