#include "test/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "queued/lifecycle/states.h"

/* Every pair, written down once more: a row is a state, a column where it may go.
 *                                        Hel Pen Adm Lau Run Pre Suc Fai Can */
static const char legal[JOB_STATE_COUNT][JOB_STATE_COUNT + 1] = {
    [JOB_HELD] = ".P......C",      [JOB_PENDING] = "H.A.....C", [JOB_ADMITTED] = ".P.L.P.FC",
    [JOB_LAUNCHING] = ".P..RP.FC", [JOB_RUNNING] = ".P...PSFC", [JOB_PREEMPTING] = ".P.....FC",
    [JOB_SUCCEEDED] = ".........", [JOB_FAILED] = ".........",  [JOB_CANCELLED] = ".........",
};

static void test_states__every_pair(void **state)
{
    (void)state;
    for (enum job_state from = 0; from < JOB_STATE_COUNT; from++)
        for (enum job_state to = 0; to < JOB_STATE_COUNT; to++)
            if (state_may(from, to) != (legal[from][to] != '.'))
                fail_msg("%s -> %s", state_name(from), state_name(to));
}

static void test_states__nothing_leads_to_or_from_no_state(void **state)
{
    (void)state;
    for (enum job_state any = 0; any <= JOB_STATE_COUNT; any++) {
        assert_false(state_may(any, JOB_STATE_COUNT));
        assert_false(state_may(JOB_STATE_COUNT, any));
    }
    assert_null(state_name(JOB_STATE_COUNT));
}

static void test_states__names_are_found_in_any_case(void **state)
{
    enum job_state found;

    (void)state;
    for (enum job_state each = 0; each < JOB_STATE_COUNT; each++) {
        char lower[32];

        snprintf(lower, sizeof(lower), "%s", state_name(each));
        lower[0] = (char)(lower[0] | 0x20);
        assert_true(state_find(lower, &found));
        assert_int_equal(found, each);
    }
    assert_false(state_find("running ", &found));
    assert_false(state_find("", &found));
}

static void test_states__live_final_and_waiting_are_all(void **state)
{
    int n_live = 0, n_final = 0;

    (void)state;
    for (enum job_state each = 0; each < JOB_STATE_COUNT; each++) {
        n_live += state_is_live(each);
        n_final += state_is_final(each);
        assert_false(state_is_live(each) && state_is_final(each));
        assert_true(state_is_final(each) || state_may(each, JOB_CANCELLED));
    }
    assert_int_equal(n_live, 4);
    assert_int_equal(n_final, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states__every_pair),
        cmocka_unit_test(test_states__nothing_leads_to_or_from_no_state),
        cmocka_unit_test(test_states__names_are_found_in_any_case),
        cmocka_unit_test(test_states__live_final_and_waiting_are_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
