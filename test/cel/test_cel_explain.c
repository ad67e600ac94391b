/* What people read when a selector does not hold. */
#include <string.h>

#include "test/support/cmocka.h"

#include "test/cel/fixture.h"

#define GPU "device.attributes[\"gpu.example.com\"]"

static const struct explain_case {
    const char *name, *text;
    const char *part, *words; /* of the first finding; NULL: none */
    size_t n;
} explain_cases[] = {
    {"what holds needs no words", GPU ".model == \"A100\"", NULL, NULL, 0},
    {"the real value", GPU ".model == \"H100\"", GPU ".model == \"H100\"", GPU ".model is \"A100\", not \"H100\"", 1},
    {"only the part that is false", "device.driver == \"gpu.example.com\" && " GPU ".index > 5", GPU ".index > 5",
     GPU ".index is 3, not greater than 5", 1},
    {"every part of an or", GPU ".index > 5 || !" GPU ".fast", GPU ".index > 5", "is 3, not greater than 5", 2},
    {"types, where they differ", GPU ".index == \"3\"", GPU ".index == \"3\"", "is 3 (int), not \"3\" (string)", 1},
    {"the constant on the left", "\"H100\" == " GPU ".model", "\"H100\" == " GPU ".model", "is \"A100\", not \"H100\"",
     1},
    {"a name that comes close", GPU ".modle == \"A100\"", GPU ".modle",
     "did you mean \"model\", which is \"A100\" (string)?", 1},
    {"all names, when none comes close", GPU ".zzz == 1", GPU ".zzz",
     "it has type, model, index, fast, firmware, links", 1},
    {"a domain that comes close", "device.attributes[\"gpu.exmple.com\"].model == \"A100\"",
     "device.attributes[\"gpu.exmple.com\"].model", "did you mean \"gpu.example.com\"?", 1},
    {"the domain that has the name", GPU ".speed == 400", GPU ".speed", "domain \"nic.example.org\" has one", 1},
    {"absent, and asked for", "has(" GPU ".modle)", "has(" GPU ".modle)", "no attribute \"modle\"", 1},
    {"a missing capacity", "device.capacity[\"gpu.example.com\"].mem.isGreaterThan(quantity(\"1Gi\"))",
     "device.capacity[\"gpu.example.com\"].mem", "did you mean \"memory\", which is 80Gi", 1},
    {"a capacity too small", "device.capacity[\"gpu.example.com\"].memory.isGreaterThan(quantity(\"90Gi\"))", NULL,
     "memory is 80Gi, not greater than 90Gi", 1},
    {"operands that do not fit", GPU ".firmware > semver(\"1.0.0\") || false", NULL, NULL, 0},
    {"an overload that does not exist", GPU ".model + 1 == 2", GPU ".model + 1", "is \"A100\" (string)", 1},
    {"not in a list", GPU ".model in [\"H100\", \"H200\"]", NULL, "is \"A100\", not in [\"H100\", \"H200\"]", 1},
    {"a loop", GPU ".links.exists(l, l == \"eth\")", NULL, "links is [nv, ib]", 1},
    {"a choice", GPU ".fast ? " GPU ".index > 5 : true", NULL, "its condition " GPU ".fast is true", 1},
};

static void test_explain__case(void **state)
{
    const struct explain_case *c = *state;
    struct arena arena = {0};
    struct cel_explanation why;
    struct cel_expr *expr = NULL;

    if (cel_compile(str_of(c->text), NULL, &expr, NULL) < 0) {
        assert_int_equal(c->n, 0); /* refused by the checker already */
        return;
    }
    why = cel_explain(expr, fixture_device(&arena), &arena);
    assert_int_equal(why.n_findings, c->n);
    if (c->part)
        assert_string_equal(arena_strndup(&arena, why.findings[0].part.ptr, why.findings[0].part.len), c->part);
    if (c->words && !strstr(why.findings[0].text, c->words))
        fail_msg("\"%s\" does not say \"%s\"", why.findings[0].text, c->words);
    cel_expr_free(expr);
    arena_release(&arena);
}

static void test_explain__unusable_device(void **state)
{
    static const struct cel_attribute attributes[] = {{{"a", 1}, CEL_ATTR_NONE, false, 0, NULL}};
    struct cel_device_spec spec = {.driver = STR("d"), .attributes = attributes, .n_attributes = 1};
    CLEANUP(cel_expr) *expr = fixture_compile("true");
    struct arena arena = {0};
    struct cel_explanation why = cel_explain(expr, cel_device_prepare(&spec, NULL, &arena), &arena);

    (void)state;
    assert_int_equal(why.n_findings, 1);
    assert_string_equal(why.findings[0].text, "attribute a: unsupported attribute value");
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain__unusable_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_explain__case, explain_cases);
}
