#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/arena.h"

static void test_arena__memory_is_zeroed_and_aligned(void **state)
{
    struct arena arena = {0};

    (void)state;
    for (size_t align = 1; align <= 64; align *= 2) {
        unsigned char *p = arena_alloc(&arena, 33, align);

        assert_int_equal((uintptr_t)p % align, 0);
        for (size_t i = 0; i < 33; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, 33);
    }
    arena_release(&arena);
}

static void test_arena__rewind_gives_memory_back_and_reuses_it(void **state)
{
    struct arena arena = {0};
    struct arena_mark mark;
    char *kept, *first;

    (void)state;
    kept = arena_strdup(&arena, "kept");
    mark = arena_mark(&arena);
    first = arena_alloc(&arena, 100000, 8);
    for (int i = 0; i < 10; i++) {
        arena_rewind(&arena, mark);
        assert_ptr_equal(arena_alloc(&arena, 100000, 8), first);
    }
    assert_string_equal(kept, "kept");
    arena_release(&arena);
}

static void test_arena__printf_formats(void **state)
{
    struct arena arena = {0};

    (void)state;
    assert_string_equal(arena_printf(&arena, "%s-%d", "node", 7), "node-7");
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena__memory_is_zeroed_and_aligned),
        cmocka_unit_test(test_arena__rewind_gives_memory_back_and_reuses_it),
        cmocka_unit_test(test_arena__printf_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
