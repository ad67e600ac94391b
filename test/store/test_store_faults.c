/* For N = 0, 1, 2, ... the N-th write to the disk fails, then all is well again. A turn is recorded whole or not at
 * all, a failed one says so, and the store goes on. */
#include "test/support/cmocka.h"

#include <sqlite3.h>

#include "store/rows.h"
#include "store/store.h"
#include "test/store/faulty_vfs.h"
#include "test/store/scratch.h"

static struct faults faults = {.countdown = -1};

static void write_turn(struct store *store, int turn)
{
    char name[16];
    struct job_row row = {.name = name,
                          .ns = "default",
                          .queue = "q",
                          .user = "u",
                          .spec = "{}",
                          .status = {.state = "Pending", .reason = "", .exit_code = -1}};

    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%d", turn);
        store_event_insert(store, &(struct event_row){0, store_job_insert(store, &row), 1, "Moved", "", "Pending", ""});
    }
}

static void count_jobs(void *ctx, const struct job_row *row)
{
    int *per_turn = ctx;

    per_turn[strtol(row->name, NULL, 10)]++;
}

static void check_whole_turns(struct store *store, const bool *is_committed, int n)
{
    int per_turn[8] = {0};

    assert_int_equal(store_jobs_each(store, count_jobs, per_turn, NULL), 0);
    for (int turn = 0; turn < n; turn++)
        assert_int_equal(per_turn[turn], is_committed[turn] ? 3 : 0);
}

/* Returns whether the fault was reached. */
static bool run_with_fault(int nth, int result)
{
    enum { N_TURNS = 4 };
    struct scratch scratch;
    struct store *store;
    bool is_committed[N_TURNS], reached;

    scratch_init(&scratch);
    assert_int_equal(store_open(scratch.path, &store, NULL), 0);
    faults = (struct faults){.countdown = nth, .result = result};
    for (int turn = 0; turn < N_TURNS; turn++) {
        struct error err = {0};

        write_turn(store, turn);
        is_committed[turn] = store_commit(store, &err) == 0;
        assert_true(is_committed[turn] || err.code == ERR_IO);
    }
    reached = faults.n_failed > 0;
    faults.countdown = -1;
    check_whole_turns(store, is_committed, N_TURNS);
    store_close(store);
    assert_int_equal(store_open(scratch.path, &store, NULL), 0);
    check_whole_turns(store, is_committed, N_TURNS);
    store_close(store);
    scratch_release(&scratch);
    return reached;
}

static void test_store__every_failing_write_leaves_whole_turns(void **state)
{
    static const int results[] = {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
        int n = 0;

        while (run_with_fault(n, results[i]))
            n++;
        assert_true(n > 5);
    }
}

static void test_store__a_full_disk_is_told_and_found_again(void **state)
{
    struct scratch scratch;
    struct store *store;
    struct error err = {0};

    (void)state;
    scratch_init(&scratch);
    assert_int_equal(store_open(scratch.path, &store, NULL), 0);
    faults = (struct faults){.countdown = 0, .stays = true, .result = SQLITE_FULL};
    assert_int_equal(store_probe(store, &err), -1);
    assert_int_equal(err.code, ERR_IO);
    faults.countdown = -1;
    assert_int_equal(store_probe(store, &err), 0);
    store_close(store);
    scratch_release(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store__every_failing_write_leaves_whole_turns),
        cmocka_unit_test(test_store__a_full_disk_is_told_and_found_again),
    };

    faulty_vfs_install(&faults);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
