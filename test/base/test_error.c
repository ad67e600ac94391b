#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/error.h"

static void test_error__levels_prefix_words_and_fields(void **state)
{
    struct error err = {0};

    (void)state;
    assert_int_equal(error_field(&err, "count", "must be positive"), -1);
    error_in(&err, "requests[%d]", 2);
    error_in(&err, "spec");
    error_wrap(&err, "claim %s", "gpu");
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.field, "spec.requests[2].count");
    assert_string_equal(err.text, "claim gpu: must be positive");
}

static void test_error__an_index_follows_without_a_dot(void **state)
{
    struct error err = {0};

    (void)state;
    error_field(&err, "[3]", "no");
    error_in(&err, "items");
    assert_string_equal(err.field, "items[3]");
}

static void test_error__long_text_is_cut_not_overrun(void **state)
{
    struct error err = {0};
    char words[2000];

    (void)state;
    memset(words, 'x', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    error_set(&err, ERR_IO, "%s", words);
    error_wrap(&err, "%s", words);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void test_error__null_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, ERR_IO, "x"), -1);
    assert_int_equal(error_wrap(NULL, "x"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error__levels_prefix_words_and_fields),
        cmocka_unit_test(test_error__an_index_follows_without_a_dot),
        cmocka_unit_test(test_error__long_text_is_cut_not_overrun),
        cmocka_unit_test(test_error__null_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
