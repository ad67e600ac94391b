#include "test/support/cmocka.h"

#include "allocator/base/bitset.h"

static void test_bitset__next_walks_all_members_in_order(void **state)
{
    uint64_t set[3] = {0};
    const size_t members[] = {0, 63, 64, 130, 191};
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        bitset_put(set, members[i]);
    for (size_t i = 0; i < ARRAY_SIZE(members); i++, at++) {
        at = bitset_next(set, 3, at);
        assert_int_equal(at, members[i]);
    }
    assert_int_equal(bitset_next(set, 3, at), SIZE_MAX);
    assert_int_equal(bitset_count(set, 3), ARRAY_SIZE(members));
}

static void test_bitset__andnot_removes(void **state)
{
    uint64_t a[2] = {0xff, 1}, b[2] = {0x0f, 1};

    (void)state;
    bitset_andnot(a, b, 2);
    assert_int_equal(a[0], 0xf0);
    assert_int_equal(a[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bitset__next_walks_all_members_in_order),
        cmocka_unit_test(test_bitset__andnot_removes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
