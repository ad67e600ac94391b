/* Evaluation beyond what the data says: limits, memory, threads, devices that cannot be used. */
#include <pthread.h>
#include <string.h>

#include "test/support/cmocka.h"

#include "test/cel/fixture.h"

/* ---- counting what is taken from the heap (the linker wraps these) ---- */

static _Atomic size_t n_taken;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
    n_taken++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_taken++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    n_taken++;
    return __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    n_taken++;
    return __real_aligned_alloc(align, size);
}

/* ---- results ---- */

static const struct result_case {
    const char *name, *text;
    enum cel_outcome outcome;
    uint64_t cost;
    const char *message;
} result_cases[] = {
    {"an attribute", "device.attributes[\"gpu.example.com\"].model == \"A100\"", CEL_TRUE, 5, NULL},
    {"another value", "device.attributes[\"gpu.example.com\"].model == \"H100\"", CEL_FALSE, 5, NULL},
    {"a missing id", "device.attributes[\"gpu.example.com\"].modle == \"A100\"", CEL_ERROR, 5, "no such key: modle"},
    {"a missing domain is empty", "size(device.attributes[\"nowhere\"]) == 0", CEL_TRUE, 5, NULL},
    {"an error is absorbed", "device.attributes[\"x\"].y > 1 || true", CEL_TRUE, 5, NULL},
    {"a version against a text", "device.attributes[\"gpu.example.com\"].firmware == \"1.2.3\"", CEL_ERROR, 5,
     "no such overload"},
    {"a crash of the real evaluator", "device.attributes[\"gpu.example.com\"].firmware in [\"1.2.3\"] || true",
     CEL_ERROR, 4, "unhashable"},
    {"a result that is no bool", "device.attributes[\"gpu.example.com\"].model", CEL_ERROR, 4,
     "could not be converted"},
    {"the limit itself passes", "lists.range(999987).size() > 0", CEL_TRUE, 1000000, NULL},
    {"one more does not", "lists.range(999988).size() > 0 || true", CEL_ERROR, 1000001, "cost limit exceeded"},
};

static void test_evaluate__result(void **state)
{
    const struct result_case *c = *state;
    CLEANUP(cel_expr) *expr = fixture_compile(c->text);
    struct arena arena = {0}, scratch = {0};
    struct cel_result result = cel_evaluate(expr, fixture_device(&arena), &scratch);

    assert_int_equal(result.outcome, c->outcome);
    assert_int_equal(result.cost, c->cost);
    assert_true(c->message ? strstr(result.message, c->message) != NULL : !result.message);
    arena_release(&scratch);
    arena_release(&arena);
}

static void test_evaluate__limit_is_an_option(void **state)
{
    struct cel_options options = {.max_cost = 4};
    struct arena arena = {0}, scratch = {0};
    CLEANUP(cel_expr) *expr = NULL;

    (void)state;
    assert_int_equal(
        cel_compile(STR("device.attributes[\"gpu.example.com\"].model == \"A100\""), &options, &expr, NULL), 0);
    assert_int_equal(cel_evaluate(expr, fixture_device(&arena), &scratch).outcome, CEL_ERROR);
    arena_release(&scratch);
    arena_release(&arena);
}

static void test_evaluate__order_of_a_map_makes_the_cost_uncertain(void **state)
{
    CLEANUP(cel_expr) *some = fixture_compile("device.attributes.exists(d, d == \"gpu.example.com\")");
    CLEANUP(cel_expr) *all = fixture_compile("device.attributes.all(d, d != \"\")");
    struct arena arena = {0}, scratch = {0};
    const struct cel_device *device = fixture_device(&arena);

    (void)state;
    assert_false(cel_evaluate(some, device, &scratch).cost_is_certain);
    assert_true(cel_evaluate(all, device, &scratch).cost_is_certain);
    arena_release(&scratch);
    arena_release(&arena);
}

static const struct bomb_case {
    const char *name, *text;
} bomb_cases[] = {
    {"texts that double", "cel.bind(a, \"xxxxxxxx\".replace(\"\", \"xxxxxxxx\"), cel.bind(b, a.replace(\"\", a), "
                          "cel.bind(c, b.replace(\"\", b), c.replace(\"\", c).size() > 0)))"},
    {"lists that double and are compared",
     "cel.bind(a, [1, 1], cel.bind(b, [a, a], cel.bind(c, [b, b], cel.bind(d, [c, c], cel.bind(e, [d, d], "
     "cel.bind(f, [e, e], cel.bind(g, [f, f], cel.bind(h, [g, g], cel.bind(i, [h, h], cel.bind(j, [i, i], "
     "cel.bind(k, [j, j], cel.bind(l, [k, k], cel.bind(m, [l, l], cel.bind(n, [m, m], cel.bind(o, [n, n], "
     "cel.bind(p, [o, o], cel.bind(q, [p, p], cel.bind(r, [q, q], cel.bind(s, [r, r], cel.bind(t, [s, s], "
     "cel.bind(u, [t, t], cel.bind(v, [u, u], cel.bind(w, [v, v], [w, w] == [w, w])))))))))))))))))))))))"},
    {"loops in loops", "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))"},
    {"distinct of many", "lists.range(900000).distinct().size() > 0"},
};

static void test_evaluate__bomb_is_stopped(void **state)
{
    const struct bomb_case *c = *state;
    CLEANUP(cel_expr) *expr = fixture_compile(c->text);
    struct arena arena = {0}, scratch = {0};
    struct cel_result result = cel_evaluate(expr, fixture_device(&arena), &scratch);

    assert_int_equal(result.outcome, CEL_ERROR);
    assert_non_null(strstr(result.message, "operation cancelled"));
    arena_release(&scratch);
    arena_release(&arena);
}

/* ---- devices ---- */

static void test_evaluate__unusable_attribute_fails_every_expression(void **state)
{
    static const union cel_attribute_value bad = {.s = {"1.2", 3}};
    static const struct cel_attribute attributes[] = {{{"fw", 2}, CEL_ATTR_VERSION, false, 1, &bad}};
    struct cel_device_spec spec = {.driver = STR("d"), .attributes = attributes, .n_attributes = 1};
    CLEANUP(cel_expr) *expr = fixture_compile("true");
    struct arena arena = {0}, scratch = {0};
    struct cel_result result = cel_evaluate(expr, cel_device_prepare(&spec, NULL, &arena), &scratch);

    (void)state;
    assert_int_equal(result.outcome, CEL_ERROR);
    assert_int_equal(result.cost, 0);
    assert_non_null(strstr(result.message, "attribute fw: parse semantic version"));
    arena_release(&scratch);
    arena_release(&arena);
}

static void test_evaluate__empty_device(void **state)
{
    struct cel_device_spec spec = {0};
    CLEANUP(cel_expr) *expr = fixture_compile("device.driver == \"\" && size(device.attributes) == 0 && "
                                              "!device.allowMultipleAllocations");
    struct arena arena = {0}, scratch = {0};

    (void)state;
    assert_int_equal(cel_evaluate(expr, cel_device_prepare(&spec, NULL, &arena), &scratch).outcome, CEL_TRUE);
    arena_release(&scratch);
    arena_release(&arena);
}

/* ---- memory and threads ---- */

static const struct steady_case {
    const char *name, *text;
} steady_cases[] = {
    {"attribute", "device.attributes[\"gpu.example.com\"].model == \"A100\""},
    {"capacity", "device.capacity[\"gpu.example.com\"].memory.isGreaterThan(quantity(\"40Gi\"))"},
    {"version", "device.attributes[\"gpu.example.com\"].firmware.isLessThan(semver(\"2.0.0\"))"},
    {"membership", "device.attributes[\"gpu.example.com\"].model in [\"A100\", \"H100\"]"},
    {"presence",
     "has(device.attributes[\"gpu.example.com\"].model) && \"model\" in device.attributes[\"gpu.example.com\"]"},
    {"pattern", "device.attributes[\"gpu.example.com\"].model.matches(\"^A[0-9]+$\")"},
    {"loop", "device.attributes[\"gpu.example.com\"].links.exists(l, l == \"ib\")"},
    {"texts", "(device.driver + \"/\" + device.attributes[\"gpu.example.com\"].type).startsWith(\"gpu.\")"},
    {"variable", "cel.bind(a, device.attributes[\"gpu.example.com\"], a.index > 2 && a.fast)"},
    {"optional", "device.attributes[\"gpu.example.com\"].?absent.orValue(1) == 1"},
};

static void test_evaluate__steady_state_takes_nothing_from_the_heap(void **state)
{
    const struct steady_case *c = *state;
    CLEANUP(cel_expr) *expr = fixture_compile(c->text);
    struct arena arena = {0}, scratch = {0};
    const struct cel_device *device = fixture_device(&arena);
    size_t before;

    for (int i = 0; i < 3; i++)
        assert_int_equal(cel_evaluate(expr, device, &scratch).outcome, CEL_TRUE);
    before = n_taken;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(cel_evaluate(expr, device, &scratch).outcome, CEL_TRUE);
    assert_int_equal(n_taken, before);
    assert_int_equal(scratch.bytes, 0);
    arena_release(&scratch);
    arena_release(&arena);
}

struct worker {
    pthread_t thread;
    const struct cel_expr *const *exprs;
    size_t n_exprs;
    const struct cel_device *device;
    size_t n_wrong;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct arena scratch = {0};

    for (int i = 0; i < 2000; i++)
        for (size_t j = 0; j < w->n_exprs; j++)
            w->n_wrong += cel_evaluate(w->exprs[j], w->device, &scratch).outcome != CEL_TRUE;
    arena_release(&scratch);
    return NULL;
}

static void test_evaluate__threads_share_an_expression(void **state)
{
    const struct cel_expr *exprs[ARRAY_SIZE(steady_cases)];
    struct worker workers[4];
    struct arena arena = {0};
    const struct cel_device *device = fixture_device(&arena);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(exprs); i++)
        exprs[i] = fixture_compile(steady_cases[i].text);
    for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
        workers[i] = (struct worker){.exprs = exprs, .n_exprs = ARRAY_SIZE(exprs), .device = device};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].n_wrong, 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(exprs); i++)
        cel_expr_free((struct cel_expr *)(uintptr_t)exprs[i]);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluate__limit_is_an_option),
        cmocka_unit_test(test_evaluate__order_of_a_map_makes_the_cost_uncertain),
        cmocka_unit_test(test_evaluate__unusable_attribute_fails_every_expression),
        cmocka_unit_test(test_evaluate__empty_device),
        cmocka_unit_test(test_evaluate__threads_share_an_expression),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    failed += RUN_TABLE(test_evaluate__result, result_cases);
    failed += RUN_TABLE(test_evaluate__bomb_is_stopped, bomb_cases);
    failed += RUN_TABLE(test_evaluate__steady_state_takes_nothing_from_the_heap, steady_cases);
    return failed;
}
