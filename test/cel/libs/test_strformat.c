#include "test/support/cmocka.h"

#include <math.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/strformat.h"

#define INT(x)                                                                                                         \
    {                                                                                                                  \
        .kind = FORMAT_INT, .as.i = (x)                                                                                \
    }
#define UINT(x)                                                                                                        \
    {                                                                                                                  \
        .kind = FORMAT_UINT, .as.u = (x)                                                                               \
    }
#define DOUBLE(x)                                                                                                      \
    {                                                                                                                  \
        .kind = FORMAT_DOUBLE, .as.d = (x)                                                                             \
    }
#define TEXT(x)                                                                                                        \
    {                                                                                                                  \
        .kind = FORMAT_STRING, .as.s = STR(x)                                                                          \
    }
#define BYTES(x)                                                                                                       \
    {                                                                                                                  \
        .kind = FORMAT_BYTES, .as.s = STR(x)                                                                           \
    }
#define BOOL(x)                                                                                                        \
    {                                                                                                                  \
        .kind = FORMAT_BOOL, .as.b = (x)                                                                               \
    }
#define OTHER(x)                                                                                                       \
    {                                                                                                                  \
        .kind = FORMAT_OTHER, .as.s = STR(x)                                                                           \
    }
#define LIST(x)                                                                                                        \
    {                                                                                                                  \
        .kind = FORMAT_LIST, .as.c = {(x), ARRAY_SIZE(x) }                                                             \
    }
#define MAP(x)                                                                                                         \
    {                                                                                                                  \
        .kind = FORMAT_MAP, .as.c = {(x), ARRAY_SIZE(x) / 2 }                                                          \
    }
#define NIL                                                                                                            \
    {                                                                                                                  \
        .kind = FORMAT_NULL                                                                                            \
    }
#define INF ((double)INFINITY)
#define TIMES_TEN                                                                                                      \
    "\xC3\x97"                                                                                                         \
    "10"
#define SUPER_0     "\xE2\x81\xB0"
#define SUPER_4     "\xE2\x81\xB4"
#define SUPER_MINUS "\xE2\x81\xBB"

/* Lists are arrays of values; maps are arrays of keys and values by turns. */
static void read_element(void *context, const void *list, size_t i, struct format_value *out)
{
    const struct format_value *values = list;

    (void)context;
    *out = values[i];
}

static void read_entry(void *context, const void *map, size_t i, struct format_value *key, struct format_value *value)
{
    const struct format_value *values = map;

    (void)context;
    *key = values[2 * i];
    *value = values[2 * i + 1];
}

static const struct format_reader reader = {NULL, read_element, read_entry};

static const struct format_value mixed[] = {
    TEXT("a\"b"),
    DOUBLE(1.5),
    NIL,
    INT(-3),
    BYTES("x"),
    BOOL(true),
    {.kind = FORMAT_TIMESTAMP, .as.t = {.seconds = 0}},
    {.kind = FORMAT_DURATION, .as.i = 1500000000},
    DOUBLE(-INF),
    {.kind = FORMAT_TYPE, .as.s = STR("int")},
};
static const struct format_value nested[] = {LIST(mixed), TEXT("x")};
static const struct format_value entries[] = {TEXT("k"), INT(1), INT(10), TEXT("v"), BOOL(true), NIL, UINT(9), NIL};
static const struct format_value double_key[] = {DOUBLE(1.5), INT(1)};
static const struct format_value odd[] = {OTHER("kubernetes.Quantity")};

static const struct format_case {
    const char *name;
    const char *format;
    struct format_value value;
    const char *want; /* the text, or a part of the reason */
    bool fails;
} format_cases[] = {
    {"text around", "<%s%%>", TEXT("x"), "<x%>", false},
    {"decimal", "%d", INT(INT64_MIN), "-9223372036854775808", false},
    {"unsigned", "%d", UINT(UINT64_MAX), "18446744073709551615", false},
    {"binary", "%b", INT(-5), "-101", false},
    {"binary of a bool", "%b", BOOL(true), "1", false},
    {"octal", "%o", UINT(8), "10", false},
    {"hex", "%x", INT(-255), "-ff", false},
    {"large hex", "%X", INT(255), "FF", false},
    {"hex of text", "%x", TEXT("hi"), "6869", false},
    {"hex of bytes", "%X", BYTES("\xAB"), "AB", false},
    {"a precision that does not matter", "%.3d", INT(5), "5", false},
    {"fixed groups digits", "%.2f", DOUBLE(1234.5), "1,234.50", false},
    {"fixed rounds halves to even", "%.0f", DOUBLE(2.5), "2", false},
    {"fixed default", "%f", DOUBLE(-1234567.0), "-1,234,567.000000", false},
    {"zero has no sign", "%.1f", DOUBLE(-0.0), "0.0", false},
    {"fixed infinity", "%f", DOUBLE(-INF), "-\xE2\x88\x9E", false},
    {"fixed by word", "%f", TEXT("NaN"), "NaN", false},
    {"scientific", "%e", DOUBLE(2.71828), "2.718280" TIMES_TEN SUPER_0 SUPER_0, false},
    {"scientific ignores the precision", "%.2e", DOUBLE(-0.00012), "-1.200000" TIMES_TEN SUPER_MINUS SUPER_0 SUPER_4,
     false},
    {"scientific infinity is padded", "%e", DOUBLE(INF), "     \xE2\x88\x9E", false},
    {"double as text", "%s", DOUBLE(1e6), "1e+06", false},
    {"null", "%s", NIL, "null", false},
    {"list", "%s", LIST(nested),
     "[[\"a\\\"b\", 1.500000, null, -3, b\"x\", true, timestamp(\"1970-01-01T00:00:00Z\"), duration(\"1.5s\"), "
     "\"-Inf\", int], \"x\"]",
     false},
    {"map by the text of keys", "%s", MAP(entries), "{\"k\":1, 10:\"v\", 9:null, true:null}", false},
    {"not a number", "%d", TEXT("x"),
     "error during formatting: decimal clause can only be used on integers, was given "
     "string",
     true},
    {"text that is no special number", "%f", TEXT("x"),
     "fixed-point clause can only be used on doubles, was given string", true},
    {"a strange value", "%s", OTHER("net.IP"), "string clause can only be used on", true},
    {"a strange value in a list", "%s", LIST(odd), "no formatting function for kubernetes.Quantity", true},
    {"a double as key", "%s", MAP(double_key), "no formatting function for map key of type double", true},
    {"bytes that are no text", "%s", BYTES("\xFF"), "invalid UTF-8 in bytes", true},
    {"an unknown clause", "%a", INT(1), "could not parse formatting clause: unrecognized formatting clause \"a\"",
     true},
    {"a width", "%5d", INT(1), "unrecognized formatting clause \"5\"", true},
    {"an open end", "%", INT(1), "unexpected end of string", true},
    {"an open precision", "%.2", INT(1), "could not find end of precision specifier", true},
    {"an empty precision", "%.f", DOUBLE(1), "strconv.Atoi: parsing \"\"", true},
    {"a missing argument", "%s %s", TEXT("x"), "index 1 out of range", true},
    {"a precision without bounds", "%.1000001f", DOUBLE(1), "precision", true},
};

static void test_strformat__format(void **state)
{
    const struct format_case *c = *state;
    struct error err = {0};
    BUF out = {0};

    assert_int_equal(strformat(str_of(c->format), &c->value, 1, &reader, &out, &err), c->fails ? -1 : 0);
    if (c->fails)
        assert_non_null(strstr(err.text, c->want));
    else
        assert_string_equal(buf_str(&out), c->want);
}

static void test_strformat__depth_is_limited(void **state)
{
    struct format_value chain[FORMAT_MAX_DEPTH + 2] = {{.kind = FORMAT_NULL}};
    struct error err = {0};
    BUF out = {0};

    (void)state;
    for (size_t i = 1; i < ARRAY_SIZE(chain); i++)
        chain[i] = (struct format_value){.kind = FORMAT_LIST, .as.c = {&chain[i - 1], 1}};
    assert_int_equal(strformat(STR("%s"), &chain[FORMAT_MAX_DEPTH], 1, &reader, &out, &err), 0);
    assert_int_equal(strformat(STR("%s"), &chain[FORMAT_MAX_DEPTH + 1], 1, &reader, &out, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

static void test_strformat__clauses_can_be_walked(void **state)
{
    struct str format = STR("a %d %% %.2f");
    struct format_clause clause;
    struct error err = {0};
    size_t at = 0;

    (void)state;
    assert_int_equal(format_next_clause(format, &at, 0, 2, &clause, &err), 1);
    assert_true(clause.letter == 'd' && clause.kinds == (BIT(FORMAT_INT) | BIT(FORMAT_UINT)));
    assert_int_equal(format_next_clause(format, &at, 1, 2, &clause, &err), 1);
    assert_true(clause.letter == 'f' && clause.precision == 2);
    assert_int_equal(format_next_clause(format, &at, 2, 2, &clause, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strformat__depth_is_limited),
        cmocka_unit_test(test_strformat__clauses_can_be_walked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_strformat__format, format_cases);
}
