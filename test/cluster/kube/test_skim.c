/* What is cut out of the text of objects before it is parsed: managedFields, and never anything else. */
#include "queued/cluster/kube/skim.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "allocator/base/mem.h"
#include "allocator/base/rng.h"
#include "allocator/base/str.h"
#include "test/support/cmocka.h"

#define FIELDS                                                                                                         \
    "\"managedFields\":[{\"manager\":\"a\",\"fieldsV1\":{\"f:spec\":{\"k:{\\\"a\\\":\\\"]}\\\"}\":{\".\":{}}}}},{}]"

static const struct skim_case {
    const char *name, *text, *want;
    size_t depth;
} skim_cases[] = {
    {"last", "{\"metadata\":{\"name\":\"a\"," FIELDS "},\"spec\":{}}", "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}",
     2},
    {"first", "{\"metadata\":{" FIELDS ",\"name\":\"a\"}}", "{\"metadata\":{\"name\":\"a\"}}", 2},
    {"in the middle", "{\"metadata\":{\"a\":1," FIELDS ",\"b\":2}}", "{\"metadata\":{\"a\":1,\"b\":2}}", 2},
    {"alone", "{\"metadata\":{" FIELDS "}}", "{\"metadata\":{}}", 2},
    {"of an event", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"a\":1," FIELDS "}}}",
     "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"a\":1}}}", 3},
    {"elsewhere", "{\"spec\":{\"parameters\":{" FIELDS "}},\"metadata\":{\"a\":1," FIELDS "}}",
     "{\"spec\":{\"parameters\":{" FIELDS "}},\"metadata\":{\"a\":1}}", 2},
    {"as text", "{\"metadata\":{\"a\":\"\\\"managedFields\\\":[1]\",\"b\":\"\\\\\"," FIELDS "}}",
     "{\"metadata\":{\"a\":\"\\\"managedFields\\\":[1]\",\"b\":\"\\\\\"}}", 2},
    {"none", "{\"metadata\":{\"name\":\"a\"}}", "{\"metadata\":{\"name\":\"a\"}}", 2},
    {"no array", "{\"metadata\":{\"managedFields\":{}}}", "{\"metadata\":{\"managedFields\":{}}}", 2},
    {"cut off", "{\"metadata\":{\"a\":1,\"managedFields\":[{\"b\":[",
     "{\"metadata\":{\"a\":1,\"managedFields\":[{\"b\":[", 2},
    {"too many ends", "}}]\"managedFields\":[]", "}}]\"managedFields\":[]", 2},
    {"nothing", "", "", 2},
};

static void test_skim__cuts_managed_fields_alone(void **state)
{
    const struct skim_case *c = *state;
    size_t len = strlen(c->text);
    char *text = mem_strndup(c->text, len);

    len = skim_managed_fields(text, len, c->depth);
    assert_int_equal(len, strlen(c->want));
    assert_memory_equal(text, c->want, len);
    free(text);
}

/* Bytes of all kinds, in a buffer of just that size: the sanitizers tell of a step too far. */
static void test_skim__any_bytes(void **state)
{
    static const char alphabet[] = "{}[]\",:\\a";
    struct rng rng = {20261129};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t len = rng_below(&rng, 60), at = rng_below(&rng, 20);
        char *text = malloc(len + 18), *exact;

        for (size_t i = 0; i < len; i++)
            text[i] = alphabet[rng_below(&rng, sizeof(alphabet) - 1)];
        if (at < len) {
            memmove(text + at + 17, text + at, len - at);
            memcpy(text + at, "\"managedFields\":[", 17);
            len += 17;
        }
        exact = malloc(len ? len : 1);
        memcpy(exact, text, len);
        assert_true(skim_managed_fields(exact, len, 1 + rng_below(&rng, 3)) <= len);
        free(exact);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_skim__any_bytes)};

    return RUN_TABLE(test_skim__cuts_managed_fields_alone, skim_cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
