#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/cel/utf8.h"

static const struct count_case {
    const char *name; /* the text */
    size_t points;
    bool valid;
} count_cases[] = {
    {"plain ascii text of some length", 31, true},
    {"na\xC3\xAFve", 5, true},
    {"\xE6\x97\xA5\xE6\x9C\xAC", 2, true},
    {"\xF0\x9F\x98\x80", 1, true},
    {"cut \xE6\x97", 6, false},
    {"overlong \xC0\xAF", 11, false},
    {"surrogate \xED\xA0\x80", 13, false},
    {"beyond \xF4\x90\x80\x80", 11, false},
    {"stray \x80", 7, false},
};

static void test_utf8__count(void **state)
{
    const struct count_case *c = *state;
    struct str s = str_of(c->name);

    assert_int_equal(utf8_count(s), c->points);
    assert_int_equal(utf8_is_valid(s), c->valid);
    assert_int_equal(utf8_offset(s, c->points), s.len);
    assert_int_equal(utf8_offset(s, c->points + 1), SIZE_MAX);
}

static void test_utf8__walking_back_visits_the_same_points(void **state)
{
    struct str s = STR("a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80\xFFz");
    uint32_t forward[8], back[8];
    size_t n = 0, m = 0;

    (void)state;
    for (size_t at = 0; at < s.len; n++)
        forward[n] = utf8_next(s, &at);
    for (size_t at = s.len; at > 0; m++)
        back[m] = utf8_previous(s, &at);
    assert_int_equal(n, 6);
    assert_int_equal(m, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(forward[i], back[n - 1 - i]);
    assert_int_equal(forward[4], UTF8_REPLACEMENT);
}

static void test_utf8__encoding_and_decoding_round_trip(void **state)
{
    const uint32_t codes[] = {0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, UTF8_MAX};
    char bytes[4];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        struct str s = {bytes, utf8_encode(codes[i], bytes)};
        size_t at = 0;

        assert_int_equal(utf8_next(s, &at), codes[i]);
        assert_int_equal(at, s.len);
    }
    assert_int_equal(utf8_encode(0xD800, bytes), 3);
    assert_memory_equal(bytes, "\xEF\xBF\xBD", 3);
}

static const struct quote_case {
    const char *name, *text, *quoted;
} quote_cases[] = {
    {"control characters have letters", "\a\b\f\n\r\t\v", "\"\\a\\b\\f\\n\\r\\t\\v\""},
    {"quotes and backslashes", "a\"b\\c", "\"a\\\"b\\\\c\""},
    {"printable text stays", "na\xC3\xAFve \xE6\x97\xA5", "\"na\xC3\xAFve \xE6\x97\xA5\""},
    {"other controls in hex", "\x01\x7F", "\"\\x01\\x7f\""},
    {"unprintable points", "\xE2\x80\x8B\xC2\xA0", "\"\\u200b\\u00a0\""},
    {"invalid bytes", "\xFF", "\"\\xff\""},
};

static void test_utf8__quote(void **state)
{
    const struct quote_case *c = *state;
    BUF out = {0};

    utf8_quote_to(str_of(c->text), &out);
    assert_string_equal(buf_str(&out), c->quoted);
}

static const struct trim_case {
    const char *name, *text, *trimmed;
} trim_cases[] = {
    {"nothing to do", "a b", "a b"},
    {"blanks and lines", " \t\r\n a \v\f", "a"},
    {"wide spaces", "\xC2\xA0\xE3\x80\x80x\xE2\x80\x83", "x"},
    {"a zero width space is none", "\xE2\x80\x8Bx", "\xE2\x80\x8Bx"},
    {"only white space", " \n ", ""},
    {"empty", "", ""},
};

static void test_utf8__trim(void **state)
{
    const struct trim_case *c = *state;

    assert_true(str_is(utf8_trim(str_of(c->text)), c->trimmed));
}

static void test_utf8__ascii_case_leaves_other_letters(void **state)
{
    struct arena arena = {0};
    struct str same = STR("already lower 1");

    (void)state;
    assert_true(str_is(utf8_lower_ascii(STR("AbC\xC3\x89"), &arena), "abc\xC3\x89"));
    assert_true(str_is(utf8_upper_ascii(STR("AbC\xC3\xA9"), &arena), "ABC\xC3\xA9"));
    assert_ptr_equal(utf8_lower_ascii(same, &arena).ptr, same.ptr);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8__walking_back_visits_the_same_points),
        cmocka_unit_test(test_utf8__encoding_and_decoding_round_trip),
        cmocka_unit_test(test_utf8__ascii_case_leaves_other_letters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_utf8__count, count_cases) +
           RUN_TABLE(test_utf8__quote, quote_cases) + RUN_TABLE(test_utf8__trim, trim_cases);
}
