/* The cases of the DRA environment, and the table of functions. */
#include <stdio.h>
#include <string.h>

#include "test/support/cmocka.h"

#include "allocator/cel/functions.h"
#include "test/cel/case.h"

/* All cases of a file; the first failure is shown. */
static void run_file(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t cap = 0, passed = 0;
    char *line = NULL;
    ssize_t n;

    assert_non_null(file);
    while ((n = getline(&line, &cap, file)) > 0) {
        json_t *json = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        BUF why = {0};

        assert_non_null(json);
        if (case_run(json, 0, &why) == CASE_FAILED)
            fail_msg("%s: %s", json_string_value(json_object_get(json, "name")), buf_str(&why));
        passed++;
        json_decref(json);
    }
    assert_true(passed > 300);
    free(line);
    fclose(file);
}

static void test_data__dra(void **state)
{
    (void)state;
    run_file("test/cel/data/dra.jsonl");
}

static void test_data__dra_cost(void **state)
{
    (void)state;
    run_file("test/cel/data/dra-cost.jsonl");
}

static void test_data__corners(void **state)
{
    (void)state;
    run_file("test/cel/data/corners.jsonl");
}

static void test_functions__table_is_sorted_and_found(void **state)
{
    const struct cel_function *all;
    size_t n;

    (void)state;
    all = cel_function_all(&n);
    for (size_t i = 0; i < n; i++) {
        if (i)
            assert_true(strcmp(all[i - 1].name, all[i].name) <= 0);
        if (!all[i].releases)
            assert_ptr_equal(cel_function_find(str_of(all[i].name), 37), &all[i]);
    }
    assert_null(cel_function_find(STR("nothing"), 37));
    assert_null(cel_function_find(STR(""), 37));
}

static void test_functions__every_overload_can_be_called(void **state)
{
    const struct cel_function *all;
    size_t n;

    (void)state;
    all = cel_function_all(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < all[i].n_overloads; j++) {
            const struct cel_overload *o = &all[i].overloads[j];
            bool planned = all[i].id != FN_OTHER && all[i].id <= FN_OR_VALUE; /* nodes of their own */

            assert_true(o->eval || all[i].singleton || planned);
            assert_non_null(o->result);
            for (size_t k = 0; k < o->n_params; k++)
                assert_non_null(o->params[k]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data__dra),
        cmocka_unit_test(test_data__dra_cost),
        cmocka_unit_test(test_data__corners),
        cmocka_unit_test(test_functions__table_is_sorted_and_found),
        cmocka_unit_test(test_functions__every_overload_can_be_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
