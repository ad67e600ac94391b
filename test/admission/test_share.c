#include "test/support/cmocka.h"

#include "queued/admission/share.h"

/* Two children of a cluster with 10 gpus and 100 cpus: who is poorer? */
static const struct share_case {
    const char *name;
    int64_t a[2], b[2], weight_a, weight_b;
    int want; /* as share_cmp(a, b) */
} cases[] = {
    {"nothing used is a tie", {0, 0}, {0, 0}, 1, 1, 0},
    {"less of the one resource is poorer", {2, 0}, {3, 0}, 1, 1, -1},
    {"the dominant resource decides", {2, 0}, {1, 30}, 1, 1, -1},
    {"equal dominant shares of different resources tie", {3, 0}, {0, 30}, 1, 1, 0},
    {"twice the weight may have twice as much", {4, 0}, {2, 0}, 2, 1, 0},
    {"a little more than that is richer", {5, 0}, {2, 0}, 2, 1, 1},
    {"the largest amounts do not overflow", {INT64_MAX, 0}, {INT64_MAX, 0}, 1, SHARE_MAX_WEIGHT, 1},
    {"a third and a third tie exactly", {1, 0}, {0, 10}, 3, 3, 0},
};

static void test_share__case(void **state)
{
    static const int64_t capacity[] = {10, 100};
    const struct share_case *c = *state;
    struct share a = share_of(c->a, capacity, 2, c->weight_a), b = share_of(c->b, capacity, 2, c->weight_b);

    assert_int_equal(share_cmp(&a, &b), c->want);
    assert_int_equal(share_cmp(&b, &a), -c->want);
}

static void test_share__a_resource_that_the_cluster_lacks_is_not_compared(void **state)
{
    static const int64_t capacity[] = {0, 100}, used[] = {7, 10};
    struct share share = share_of(used, capacity, 2, 1);

    (void)state;
    assert_int_equal(share.dominant, 1);
    assert_float_equal(share_value(&share), 0.1, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share__a_resource_that_the_cluster_lacks_is_not_compared),
    };

    return RUN_TABLE(test_share__case, cases) + cmocka_run_group_tests(tests, NULL, NULL);
}
