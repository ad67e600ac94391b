#include "test/support/cmocka.h"

#include <pthread.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/regex.h"

static const struct find_case {
    const char *name; /* the pattern */
    const char *text;
    const char *want; /* all matches in brackets */
} find_cases[] = {
    {"[0-9]*", "a1b22", "[][1][22]"},
    {"a|ab", "abab", "[a][a]"},
    {"^H[0-9]+", "H100 H200", "[H100]"},
    {"(?i)nvidia", "NVIDIA nvidia", "[NVIDIA][nvidia]"},
    {"(?i)k", "kK\xE2\x84\xAA", "[k][K][\xE2\x84\xAA]"},
    {"(?i)[^k]", "kK\xE2\x84\xAAx", "[x]"},
    {"(?i)\\W", "s\xC5\xBF-", "[-]"},
    {"a$", "a\na", "[a]"},
    {"(?m)a$", "a\na", "[a][a]"},
    {"(?m)^", "a\n\nb\n", "[][][][]"},
    {".+", "a\nb", "[a][b]"},
    {"(?s).+", "a\nb", "[a\nb]"},
    {"a{,2}", "aa{,2}", "[a{,2}]"},
    {"a{2,}?", "aaaaa", "[aa][aa]"},
    {"(?U)a+", "aaa", "[a][a][a]"},
    {"\\Qa.b\\E+", "a.bb axb", "[a.bb]"},
    {"[[:word:]]+", "a_1-\xC3\xA9", "[a_1]"},
    {"[^[:^alpha:]]+", "ab1c", "[ab][c]"},
    {"\\pN+", "a12\xD9\xA3", "[12\xD9\xA3]"},
    {"\\p{Greek}", "a\xCE\xB1", "[\xCE\xB1]"},
    {"\\p{^greek}", "a\xCE\xB1", "[a]"},
    {"\\bx\\b", "x xx \xC3\xA9x", "[x][x]"},
    {"(?P<n>a)(?<m>b)", "ab", "[ab]"},
    {"\\x41\\x{e9}\\101",
     "A\xC3\xA9"
     "A",
     "[A\xC3\xA9"
     "A]"},
    {"[]a-]+", "]a-b", "[]a-]"},
    {"(a?|x)+", "axaxx", "[axaxx]"}, /* PCRE2 alone would stop at "a" */
    {"(|a)*", "aa", "[][][]"},
    {"(a*)*b", "aab", "[aab]"},
    {"^*a", "ba", "[a]"},
    {"(a(?i)b|c)d", "aBd Cd cD", "[aBd][Cd]"},
    {"a(?i:b)c", "aBc aBC", "[aBc]"},
    {"\\S", "\xC2\xA0", "[\xC2\xA0]"},
    {"", "ab", "[][][]"},
    {"x", "", ""},
};

static void test_regex__find_all(void **state)
{
    const struct find_case *c = *state;
    CLEANUP(regex) *regex = NULL;
    struct regex_iterator it;
    struct regex_match match;
    struct error err = {0};
    BUF found = {0};
    bool matches;
    int more;

    if (regex_compile(str_of(c->name), &regex, &err) < 0)
        fail_msg("%s", err.text);
    it = regex_iterate(regex, str_of(c->text));
    while ((more = regex_next(&it, &match, &err)) > 0)
        buf_addf(&found, "[%.*s]", (int)(match.end - match.start), c->text + match.start);
    assert_int_equal(more, 0);
    assert_string_equal(buf_str(&found), c->want);
    assert_int_equal(regex_search(regex, str_of(c->text), &matches, &err), 0);
    assert_int_equal(matches, c->want[0] != '\0');
}

static const struct refusal_case {
    const char *name; /* the pattern */
    const char *why;
} refusal_cases[] = {
    {"(", "missing closing ): `(`"},
    {")", "unexpected ): `)`"},
    {"[a", "missing closing ]: `[a`"},
    {"*", "missing argument to repetition operator: `*`"},
    {"a|*", "missing argument to repetition operator: `*`"},
    {"a**", "invalid nested repetition operator: `**`"},
    {"a++", "invalid nested repetition operator: `++`"},
    {"a{2}{3}", "invalid nested repetition operator: `{2}{3}`"},
    {"a{1001}", "invalid repeat count: `{1001}`"},
    {"a{2,1}", "invalid repeat count: `{2,1}`"},
    {"(a{100}){100}", "invalid repeat count: `{100}`"},
    {"((a{10}){10}){11}", "invalid repeat count: `{11}`"},
    {"[z-a]", "invalid character class range: `z-a`"},
    {"[[:nope:]]", "invalid character class range: `[:nope:]`"},
    {"\\p{Nope}", "invalid character class range: `\\p{Nope}`"},
    {"(?=a)", "invalid or unsupported Perl syntax: `(?=`"},
    {"(?<n", "invalid named capture: `(?<n`"},
    {"(?P<1-x>a)", "invalid named capture: `(?P<1-x>`"},
    {"\\1", "invalid escape sequence: `\\1`"},
    {"\\Z", "invalid escape sequence: `\\Z`"},
    {"\\C", "invalid escape sequence: `\\C`"},
    {"\\x{110000}", "invalid escape sequence: `\\x{110000`"},
    {"\\", "trailing backslash at end of expression"},
    {"a\xFF", "invalid UTF-8"},
};

static void test_regex__refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct error err = {0};
    struct regex *regex;

    assert_int_equal(regex_compile(str_of(c->name), &regex, &err), -1);
    assert_non_null(strstr(err.text, c->why));
}

static const char *const accepted[] = {"(a{500}){2}", "(a{0}){1000}",          "a{1000}", "[^\\x00-\\x{10FFFF}]",
                                       "\\x{D800}",   "[\\x{D800}-\\x{DFFF}]", "(?i-m:)", "(((((((((((a)))))))))))",
                                       "a{2}?"};

static void test_regex__accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
        CLEANUP(regex) *regex = NULL;

        assert_int_equal(regex_compile(str_of(accepted[i]), &regex, NULL), 0);
    }
}

/* Backtracking alone would take 2^40 steps. */
static void test_regex__search_survives_catastrophic_patterns(void **state)
{
    CLEANUP(regex) *regex = NULL;
    bool found = true;

    (void)state;
    assert_int_equal(regex_compile(STR("(a+)+(a+)+$"), &regex, NULL), 0);
    assert_int_equal(regex_search(regex, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), &found, NULL), 0);
    assert_false(found);
}

static void test_regex__depth_and_length_are_limited(void **state)
{
    struct regex *regex;
    struct error err = {0};
    BUF deep = {0};
    BUF large = {0};

    (void)state;
    for (int i = 0; i < 5000; i++)
        buf_addc(&deep, '(');
    assert_int_equal(regex_compile((struct str){buf_str(&deep), deep.len}, &regex, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    for (int i = 0; i < 9000; i++)
        buf_addc(&large, i == 0 ? '(' : 'a');
    buf_adds(&large, "){1000}");
    assert_int_equal(regex_compile((struct str){buf_str(&large), large.len}, &regex, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

static void test_regex__invalid_text_is_an_error(void **state)
{
    CLEANUP(regex) *regex = NULL;
    struct error err = {0};
    bool found;

    (void)state;
    assert_int_equal(regex_compile(STR("a"), &regex, NULL), 0);
    assert_int_equal(regex_search(regex, STR("\xFF"), &found, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void *search_often(void *arg)
{
    const struct regex *regex = arg;

    for (int i = 0; i < 2000; i++) {
        bool found = false;

        if (regex_search(regex, STR("xxxxab1"), &found, NULL) < 0 || !found)
            return arg;
    }
    return NULL;
}

static void test_regex__threads_share_an_expression(void **state)
{
    CLEANUP(regex) *regex = NULL;
    pthread_t threads[3];
    void *failed;

    (void)state;
    assert_int_equal(regex_compile(STR("(a|b)+[0-9]"), &regex, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search_often, regex), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regex__accepted),
        cmocka_unit_test(test_regex__search_survives_catastrophic_patterns),
        cmocka_unit_test(test_regex__depth_and_length_are_limited),
        cmocka_unit_test(test_regex__invalid_text_is_an_error),
        cmocka_unit_test(test_regex__threads_share_an_expression),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_regex__find_all, find_cases) +
           RUN_TABLE(test_regex__refusal, refusal_cases);
}
