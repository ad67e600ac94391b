/* test/support/cmocka.h - cmocka with the headers it wants, for every test. */
#ifndef QUEUED_TEST_CMOCKA_H
#define QUEUED_TEST_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>

#include <cmocka.h>

#include "allocator/base/compiler.h"
#include "allocator/base/mem.h"

/* Run one function over an array of rows that start with `const char *name`; every row is a test of its own and fails
 * under its own name. Evaluates to the number of failed rows. */
#define RUN_TABLE(function, rows) run_table((function), (rows), ARRAY_SIZE(rows), sizeof((rows)[0]), #function)

static inline int run_table(void (*function)(void **), const void *rows, size_t n, size_t size, const char *group)
{
    struct CMUnitTest *tests = mem_array(struct CMUnitTest, n);
    int failed;

    for (size_t i = 0; i < n; i++) {
        const char *const *row = (const void *)((const char *)rows + i * size);

        tests[i] = (struct CMUnitTest){*row, function, NULL, NULL, (void *)(uintptr_t)row};
    }
    failed = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    free(tests);
    return failed;
}

#endif
