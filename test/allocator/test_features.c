/* Features by release, and changes to them as administrators write them. */
#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/features.h"

static const struct change_case {
    const char *name;
    const char *changes;
    enum err_code want_err;
    bool has_lists, has_taints; /* afterwards; without changes false and true in release 37 */
} cases[] = {
    {"nothing", "", ERR_NONE, false, true},
    {"one on, by key", "+listAttributes", ERR_NONE, true, true},
    {"one off, by gate", "-DRADeviceTaints", ERR_NONE, false, false},
    {"several", "+listAttributes,-deviceTaints", ERR_NONE, true, false},
    {"the last one counts", "+listAttributes,-listAttributes", ERR_NONE, false, true},
    {"no sign", "listAttributes", ERR_INVALID, false, true},
    {"no name", "+", ERR_INVALID, false, true},
    {"an empty change", "+listAttributes,,-deviceTaints", ERR_INVALID, false, true},
    {"nobody knows it, and nothing is changed", "+listAttributes,+warpDrive", ERR_NOT_FOUND, false, true},
};

static void test_features__change(void **state)
{
    const struct change_case *c = *state;
    struct features features = features_default(37);
    struct error err = {0};

    assert_int_equal(features_change(&features, c->changes, &err), c->want_err ? -1 : 0);
    assert_int_equal(err.code, c->want_err);
    assert_int_equal(feature_on(&features, FEATURE_LIST_ATTRIBUTES), c->has_lists);
    assert_int_equal(feature_on(&features, FEATURE_DEVICE_TAINTS), c->has_taints);
}

int main(void)
{
    return RUN_TABLE(test_features__change, cases);
}
