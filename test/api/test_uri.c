#include "test/support/cmocka.h"

#include <string.h>

#include "api/uri.h"

#include "allocator/base/banned.h"

static const struct uri_case {
    const char *name;
    const char *target;
    enum err_code want_code;
    const char *want; /* "segment|segment?name=value&" */
} uri_cases[] = {
    {"the root", "/", ERR_NONE, "?"},
    {"segments", "/v1/jobs", ERR_NONE, "v1|jobs|?"},
    {"an encoded slash stays in its segment", "/v1/jobs/default%2Ftrain", ERR_NONE, "v1|jobs|default/train|?"},
    {"a plus in a path is a plus", "/a+b", ERR_NONE, "a+b|?"},
    {"dots are names", "/../.", ERR_NONE, "..|.|?"},
    {"UTF-8", "/%C3%A4", ERR_NONE, "\xc3\xa4|?"},
    {"a query", "/a?b=c&d", ERR_NONE, "a|?b=c&d=&"},
    {"an empty query", "/a?", ERR_NONE, "a|?"},
    {"empty pairs", "/a?&&b=1&", ERR_NONE, "a|?b=1&"},
    {"a value with everything", "/a?b=c+d%26e=f?g", ERR_NONE, "a|?b=c d&e=f?g&"},
    {"an empty segment", "/a//b", ERR_NOT_FOUND, NULL},
    {"a slash at the end", "/a/", ERR_NOT_FOUND, NULL},
    {"two slashes", "//", ERR_NOT_FOUND, NULL},
    {"too many segments", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", ERR_NOT_FOUND, NULL},
    {"no slash", "a", ERR_NOT_FOUND, NULL},
    {"nothing", "", ERR_NOT_FOUND, NULL},
    {"half an escape", "/a%2", ERR_INVALID, NULL},
    {"no escape", "/a%zz", ERR_INVALID, NULL},
    {"a percent sign at the end", "/a%", ERR_INVALID, NULL},
    {"NUL", "/a%00", ERR_INVALID, NULL},
    {"a line end", "/a?b=%0a", ERR_INVALID, NULL},
    {"delete", "/a%7f", ERR_INVALID, NULL},
    {"no UTF-8", "/a%ff", ERR_INVALID, NULL},
    {"half a character", "/a%c3", ERR_INVALID, NULL},
    {"a longer form than needed", "/a%c0%af", ERR_INVALID, NULL},
    {"a longer form in three bytes", "/a%e0%80%af", ERR_INVALID, NULL},
    {"a surrogate", "/a%ed%a0%80", ERR_INVALID, NULL},
    {"beyond Unicode", "/a%f4%90%80%80", ERR_INVALID, NULL},
    {"a control character of Latin-1", "/a%c2%85", ERR_INVALID, NULL},
    {"a repeated parameter", "/a?b=1&b=2", ERR_INVALID, NULL},
    {"repeated in another spelling", "/a?b=1&%62=2", ERR_INVALID, NULL},
};

static void test_uri__parse(void **state)
{
    const struct uri_case *c = *state;
    struct arena arena = {0};
    struct uri uri;
    struct error err = {0};
    BUF text = {0};

    if (uri_parse(str_of(c->target), &arena, &uri, &err) == 0) {
        for (size_t i = 0; i < uri.n_segments; i++)
            buf_addf(&text, "%s|", uri.segments[i]);
        buf_addc(&text, '?');
        for (size_t i = 0; i < uri.n_params; i++)
            buf_addf(&text, "%s=%s&", uri.params[i].name, uri.params[i].value);
        assert_non_null(c->want);
        assert_string_equal(buf_str(&text), c->want);
    }
    assert_int_equal(err.code, c->want_code);
    arena_release(&arena);
}

static void test_uri__parameters_are_limited(void **state)
{
    struct arena arena = {0};
    struct uri uri;
    struct error err = {0};
    BUF target = {0};

    (void)state;
    buf_adds(&target, "/?");
    for (int i = 0; i <= URI_PARAMS_MAX; i++)
        buf_addf(&target, "p%d=1&", i);
    assert_int_equal(uri_parse((struct str){target.data, target.len}, &arena, &uri, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_uri__parameters_are_limited)};
    int failed = RUN_TABLE(test_uri__parse, uri_cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
