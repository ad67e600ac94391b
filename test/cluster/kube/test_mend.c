/* JSON that jansson refuses and an API server does not: what becomes of it. */
#include "queued/cluster/kube/mend.h"
#include "test/support/cmocka.h"

#include <string.h>

#include <jansson.h>

#include "allocator/base/rng.h"

#include "allocator/base/banned.h"

static const struct mend_case {
    const char *name, *text, *want;
} cases[] = {
    {"good JSON stays", "{\"a\":[1,-2.5e3,true,null,\"x\\\"\\\\\\n\\u00e4\"]}",
     "{\"a\":[1,-2.5e3,true,null,\"x\\\"\\\\\\n\\u00e4\"]}"},
    {"the largest whole number", "[9223372036854775807,999999999999999999]",
     "[9223372036854775807.0,999999999999999999]"},
    {"a longer one", "{\"a\":99999999999999999999}", "{\"a\":99999999999999999999.0}"},
    {"a negative one", "[-99999999999999999999]", "[-99999999999999999999.0]"},
    {"out of range", "[1e999,-1e999,1]", "[0,0,1]"},
    {"digits in strings stay", "[\"99999999999999999999\"]", "[\"99999999999999999999\"]"},
    {"NUL", "{\"a\\u0000b\":1}", "{\"a\\ufffdb\":1}"},
    {"a pair stays", "[\"\\ud83d\\ude00\"]", "[\"\\ud83d\\ude00\"]"},
    {"the first half", "[\"\\ud83d\",\"\\ud83dx\",\"\\uD83D\\u0041\"]",
     "[\"\\ufffd\",\"\\ufffdx\",\"\\ufffd\\u0041\"]"},
    {"the second half", "[\"\\ude00\\ud83d\"]", "[\"\\ufffd\\ufffd\"]"},
    {"an escaped backslash before a u", "[\"\\\\ud83d\"]", "[\"\\\\ud83d\"]"},
    {"too deep", "[[[[1,{\"]\":\"[\\\"\"}]],2]]", "[[[null],2]]"},
    {"as deep as may be", "[[[1]],[[2]]]", "[[[1]],[[2]]]"},
};

static void test_mend__case(void **state)
{
    const struct mend_case *c = *state;
    BUF out = {0};
    json_t *read;

    mend_json(str_of(c->text), 3, &out);
    assert_string_equal(buf_str(&out), c->want);
    read = json_loads(buf_str(&out), 0, NULL);
    assert_non_null(read);
    json_decref(read);
}

/* It ends, within its bytes, whatever they are. */
static void test_mend__any_bytes(void **state)
{
    static const char bytes[] = "{}[]\"\\ud8001e9-.,:\x80 ";

    (void)state;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        struct rng rng = {seed};
        size_t len = rng_below(&rng, 40);
        char *text = malloc(len + 1); /* without a NUL behind it */
        BUF out = {0};

        text = realloc(text, len ? len : 1);
        for (size_t i = 0; i < len; i++)
            text[i] = bytes[rng_below(&rng, sizeof(bytes))];
        mend_json((struct str){text, len}, rng_below(&rng, 4), &out);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mend__any_bytes)};
    int failed = RUN_TABLE(test_mend__case, cases);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
