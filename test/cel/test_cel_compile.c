/* What is refused, and where the problem is shown. */
#include <string.h>

#include "allocator/cel/internal.h"
#include "test/support/cmocka.h"

#include "test/cel/fixture.h"

static const struct place_case {
    const char *name, *text;
    int line, column;
    const char *words;
} place_cases[] = {
    {"an unknown name", "devices.driver == \"x\"", 1, 1, "undeclared reference to 'devices' (in container '')"},
    {"an unknown field, at its dot", "device.name == \"x\"", 1, 7, "undefined field 'name'"},
    {"an operator without an overload", "1 + \"a\" == 2", 1, 3,
     "found no matching overload for '_+_' applied to '(int, string)'"},
    {"a method without an overload", "device.driver.add(1)", 1, 18, "applied to 'string.(int)'"},
    {"a condition that is no bool", "true && 1", 1, 9, "expected type 'bool' but found 'int'"},
    {"a mixed list", "1 in [1, \"a\"]", 1, 10, "expected type 'int' but found 'string'"},
    {"the second line", "true &&\n  nothing", 2, 3, "undeclared reference to 'nothing'"},
    {"columns count code points", "\"\xc3\xbc\xc3\xbc\" == x", 1, 9, "undeclared reference to 'x'"},
    {"the first of two problems", "[1].existsOne(x, x == 1)", 1, 14, "undeclared reference to 'existsOne'"},
    {"a text that ends early", "device.driver ==", 1, 17, "mismatched input '<EOF>'"},
    {"a stray token", "true true", 1, 6, "mismatched input 'true' expecting <EOF>"},
    {"a character of no token", "device.driver = \"x\"", 1, 15, "token recognition error at: '='"},
    {"an open string", "\"abc", 1, 1, "token recognition error"},
    {"a reserved word", "package == 1", 1, 1, "reserved identifier: package"},
    {"an int too large", "9223372036854775808 == 1", 1, 1, "invalid int literal"},
    {"a bad code point", "\"\\ud800\" == \"\"", 1, 1, "invalid unicode code point"},
    {"has without a field", "has(device)", 1, 5, "invalid argument to has() macro"},
    {"a bad duration", "duration(\"1d\") == duration(\"1h\")", 1, 10, "invalid duration argument"},
    {"a bad pattern", "device.driver.matches(\"(\")", 1, 23, "invalid matches argument"},
    {"a result that is no bool", "device.driver", 1, 1, "must evaluate to bool or the unknown type, not string"},
    {"a folded conversion", "int(\"x\") == 1 || true", 1, 4, "program instantiation failed: type conversion error"},
    {"an impossible range", "device.driver.all(x, true)", 1, 7, "cannot be range of a comprehension"},
};

static void test_compile__place(void **state)
{
    const struct place_case *c = *state;
    struct cel_problem problem = fixture_refused(c->text);

    assert_non_null(strstr(problem.text, c->words));
    assert_int_equal(problem.line, c->line);
    assert_int_equal(problem.column, c->column);
}

static void test_compile__caret_stands_under_the_place(void **state)
{
    (void)state;
    assert_string_equal(fixture_refused("device.driver == nobody").excerpt,
                        "ERROR: <input>:1:18: undeclared reference to 'nobody' (in container '')\n"
                        " | device.driver == nobody\n"
                        " | .................^");
}

static void test_compile__long_line_is_cut_around_the_place(void **state)
{
    char text[4000];
    struct cel_problem problem;

    (void)state;
    memset(text, ' ', sizeof(text));
    memcpy(text, "true && nobody", 4);
    memcpy(text + 2000, "&& nobody && true", 17);
    text[3000] = '\0';
    problem = fixture_refused(text);
    assert_int_equal(problem.column, 2004);
    assert_non_null(strstr(problem.excerpt, "nobody"));
    assert_true(strlen(problem.excerpt) < sizeof(problem.excerpt) - 1);
}

/* `open` n times, the kernel, `close` n times. */
static struct str nested(struct buf *out, const char *open, const char *kernel, const char *close, int n)
{
    for (int i = 0; i < n; i++)
        buf_adds(out, open);
    buf_adds(out, kernel);
    for (int i = 0; i < n; i++)
        buf_adds(out, close);
    return (struct str){out->data, out->len};
}

static const struct depth_case {
    const char *name, *open, *kernel, *close;
    int most;
} depth_cases[] = {
    {"parentheses", "(", "true", ")", 249},
    {"calls", "dyn(", "true", ")", 249},
    {"ternaries", "true ? true : ", "true", "", 249},
    {"macros", "[1].all(x, ", "true", ")", 249},
    {"sums on the right", "1 == 1 && (", "true", ")", 249},
};

static void test_compile__depth(void **state)
{
    const struct depth_case *c = *state;
    struct cel_expr *expr = NULL;
    BUF fits = {0};
    BUF deep = {0};

    assert_int_equal(cel_compile(nested(&fits, c->open, c->kernel, c->close, c->most), NULL, &expr, NULL), 0);
    cel_expr_free(expr);
    assert_non_null(
        strstr(fixture_refused_for(0, nested(&deep, c->open, c->kernel, c->close, c->most + 1)).text, "recursion"));
}

static void test_compile__chains_of_logic_are_unlimited(void **state)
{
    struct cel_expr *expr = NULL;
    BUF text = {0};

    (void)state;
    for (int i = 0; i < 6000; i++)
        buf_adds(&text, i ? " || false" : "true");
    assert_int_equal(cel_compile((struct str){text.data, text.len}, NULL, &expr, NULL), 0);
    cel_expr_free(expr);
}

static void test_compile__growth_of_macros_is_bounded(void **state)
{
    BUF text = {0};

    (void)state;
    buf_adds(&text, "optional.of(1)");
    for (int i = 0; i < 60; i++) /* each copies its target */
        buf_adds(&text, ".optMap(x, x)");
    buf_adds(&text, ".hasValue()");
    assert_non_null(strstr(fixture_refused_for(0, (struct str){text.data, text.len}).text, "too large"));
}

static void test_compile__types_that_explode_are_refused(void **state)
{
    BUF text = {0};

    (void)state;
    buf_adds(&text, "cel.bind(a, {1: 1}, ");
    for (int i = 0; i < 40; i++)
        buf_addf(&text, "cel.bind(%c, {%c: %c}, ", 'b' + i % 2, 'a' + (i ? 1 + (i + 1) % 2 : 0),
                 'a' + (i ? 1 + (i + 1) % 2 : 0));
    buf_adds(&text, "true");
    for (int i = 0; i < 41; i++)
        buf_adds(&text, ")");
    assert_non_null(strstr(fixture_refused_for(0, (struct str){text.data, text.len}).text, "too complex"));
}

/* Ten thousand constants are computed one after the other; none may take memory for all of them. */
static void test_compile__memory_grows_with_the_text_only(void **state)
{
    BUF text = {0};
    CLEANUP(cel_expr) *expr = NULL;

    (void)state;
    buf_adds(&text, "false");
    for (int i = 0; i < 3000; i++)
        buf_adds(&text, " || [] == [[]]");
    assert_int_equal(cel_compile((struct str){text.data, text.len}, NULL, &expr, NULL), 0);
    assert_true(expr->arena.bytes < 16u << 20);
}

static void test_compile__any_bytes_are_safe(void **state)
{
    (void)state;
    fixture_refused_for(0, (struct str){"\xff\xfe", 2});
    fixture_refused_for(0, (struct str){"true\0false", 10});
    fixture_refused_for(0, (struct str){"", 0});
    fixture_refused_for(0, (struct str){NULL, 0});
}

static const struct release_case {
    const char *name, *text;
    int first; /* release that takes it */
} release_cases[] = {
    {"lists have no includes before 1.36", "[1].includes(1)", 36},
    {"backtick names came in 1.37", "device.`driver` == \"x\"", 37},
    {"attributes are no range before 1.37", "device.attributes[\"d\"].x.all(i, true)", 37},
    {"an unknown result is dyn from 1.37", "dyn(true)", 37},
    {"formats of attributes", "\"%s\".format([device.attributes[\"d\"].x]) == \"\"", 37},
    {"sort is older than all of them", "[2, 1].sort() == [1, 2]", 34},
};

static void test_compile__release(void **state)
{
    const struct release_case *c = *state;

    for (int release = 34; release <= 37; release++) {
        if (release < c->first)
            fixture_refused_for(release, str_of(c->text));
        else
            cel_expr_free(fixture_compile_for(release, c->text));
    }
}

static void test_compile__list_attributes_gate_of_1_36(void **state)
{
    struct cel_options options = {.release = 36, .list_attributes = true};
    struct cel_expr *expr = NULL;

    (void)state;
    assert_int_equal(cel_compile(STR("device.attributes[\"d\"].x.all(i, true)"), &options, &expr, NULL), 0);
    cel_expr_free(expr);
}

static void test_compile__estimate_of_a_harmless_looking_one(void **state)
{
    CLEANUP(cel_expr) *expr = fixture_compile("device.attributes[\"d\"].links.exists(x, x.contains(\"h\"))");

    (void)state;
    assert_true(cel_estimated_cost(expr) > CEL_MAX_COST);
    assert_true(str_is(cel_expr_text(expr), "device.attributes[\"d\"].links.exists(x, x.contains(\"h\"))"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile__caret_stands_under_the_place),
        cmocka_unit_test(test_compile__long_line_is_cut_around_the_place),
        cmocka_unit_test(test_compile__chains_of_logic_are_unlimited),
        cmocka_unit_test(test_compile__growth_of_macros_is_bounded),
        cmocka_unit_test(test_compile__types_that_explode_are_refused),
        cmocka_unit_test(test_compile__memory_grows_with_the_text_only),
        cmocka_unit_test(test_compile__any_bytes_are_safe),
        cmocka_unit_test(test_compile__list_attributes_gate_of_1_36),
        cmocka_unit_test(test_compile__estimate_of_a_harmless_looking_one),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    failed += RUN_TABLE(test_compile__place, place_cases);
    failed += RUN_TABLE(test_compile__depth, depth_cases);
    failed += RUN_TABLE(test_compile__release, release_cases);
    return failed;
}
