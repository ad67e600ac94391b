#include "test/cel/fixture.h"

#include "test/support/cmocka.h"

const struct cel_device *fixture_device(struct arena *arena)
{
    static const union cel_attribute_value values[] = {
        {.s = {"gpu", 3}}, {.s = {"A100", 4}}, {.i = 3}, {.b = true}, {.s = {"1.2.3", 5}}, {.i = 400},
    };
    static const union cel_attribute_value links[] = {{.s = {"nv", 2}}, {.s = {"ib", 2}}};
    static const struct cel_attribute attributes[] = {
        {{"type", 4}, CEL_ATTR_STRING, false, 1, &values[0]},
        {{"model", 5}, CEL_ATTR_STRING, false, 1, &values[1]},
        {{"index", 5}, CEL_ATTR_INT, false, 1, &values[2]},
        {{"fast", 4}, CEL_ATTR_BOOL, false, 1, &values[3]},
        {{"firmware", 8}, CEL_ATTR_VERSION, false, 1, &values[4]},
        {{"links", 5}, CEL_ATTR_STRING, true, 2, links},
        {{"nic.example.org/speed", 21}, CEL_ATTR_INT, false, 1, &values[5]},
    };
    struct cel_capacity memory = {.name = STR("memory")};
    struct cel_device_spec spec = {STR("gpu.example.com"), attributes, ARRAY_SIZE(attributes), &memory, 1, false};

    assert_int_equal(quantity_parse(STR("80Gi"), arena, &memory.value, NULL), 0);
    return cel_device_prepare(&spec, NULL, arena);
}

struct cel_expr *fixture_compile_for(int release, const char *text)
{
    struct cel_options options = {.release = release};
    struct cel_problem problem = {0};
    struct cel_expr *expr = NULL;

    if (cel_compile(str_of(text), &options, &expr, &problem) < 0)
        fail_msg("%s", problem.excerpt);
    return expr;
}

struct cel_expr *fixture_compile(const char *text)
{
    return fixture_compile_for(0, text);
}

struct cel_problem fixture_refused_for(int release, struct str text)
{
    struct cel_options options = {.release = release};
    struct cel_problem problem = {0};
    struct cel_expr *expr = NULL;

    if (cel_compile(text, &options, &expr, &problem) == 0) {
        cel_expr_free(expr);
        fail_msg("compiled: %.*s", (int)(text.len > 200 ? 200 : text.len), text.ptr);
    }
    return problem;
}

struct cel_problem fixture_refused(const char *text)
{
    return fixture_refused_for(0, str_of(text));
}
