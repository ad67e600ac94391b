/* The redo log by itself: cut anywhere, damaged anywhere, and what it then gives back. */
#include "queued/cluster/embedded/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"

#include "test/support/cmocka.h"

struct place {
    char folder[64];
    int dir;
};

static int setup(void **state)
{
    struct place *place = mem_new(struct place);

    snprintf(place->folder, sizeof(place->folder), "%s/test-journal-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(place->folder))
        return -1;
    place->dir = open(place->folder, O_RDONLY | O_DIRECTORY);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    (void)unlinkat(place->dir, "log", 0);
    close(place->dir);
    (void)rmdir(place->folder);
    free(place);
    return 0;
}

static void put(const struct place *place, const char *bytes, size_t n)
{
    int fd = openat(place->dir, "log", O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static struct journal *open_journal(const struct place *place)
{
    struct journal *journal;
    struct error err = {0};

    if (journal_open(place->dir, "log", &journal, &err) < 0)
        fail_msg("%s", err.text);
    return journal;
}

static int add_record(void *ctx, const char *bytes, size_t n, struct error *err)
{
    struct buf *all = ctx;

    (void)err;
    buf_add(all, bytes, n);
    buf_addc(all, '|');
    return 0;
}

/* "one|two|" and, where there are gaps, " 1 damaged". */
static void replay(const struct place *place, struct buf *out)
{
    struct journal *journal = open_journal(place);
    size_t n_damaged;

    buf_clear(out);
    assert_int_equal(journal_replay(journal, add_record, out, &n_damaged, NULL), 0);
    if (n_damaged > 0)
        buf_addf(out, " %zu damaged", n_damaged);
    journal_close(journal);
}

/* The records as text, and the bytes of the file. */
static void make(const struct place *place, const char *const *records, size_t n, struct buf *file)
{
    struct journal *journal = open_journal(place);
    char bytes[4096];
    ssize_t got;
    int fd;

    assert_int_equal(journal_empty(journal, NULL), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(journal_append(journal, 7 + i, records[i], strlen(records[i]), NULL), 0);
    fd = openat(place->dir, "log", O_RDONLY);
    got = read(fd, bytes, sizeof(bytes));
    assert_int_equal(got, journal_size(journal));
    buf_add(file, bytes, (size_t)got);
    close(fd);
    journal_close(journal);
}

static const char *const three[] = {"one", "", "three\n"};

static void test_journal__what_was_appended_comes_back(void **state)
{
    BUF file = {0};
    BUF out = {0};

    make(*state, three, 3, &file);
    replay(*state, &out);
    assert_string_equal(buf_str(&out), "one||three\n|");
}

static void test_journal__cut_at_any_byte(void **state)
{
    static const char *const want[] = {"", "one|", "one||", "one||three\n|"};
    size_t ends[4] = {0};
    BUF file = {0};
    BUF out = {0};

    for (size_t i = 1; i <= 3; i++) {
        file.len = 0;
        make(*state, three, i, &file);
        ends[i] = file.len;
    }
    for (size_t n = 0; n <= file.len; n++) {
        size_t whole = 0;

        while (whole < 3 && ends[whole + 1] <= n)
            whole++;
        put(*state, file.data, n);
        replay(*state, &out);
        assert_string_equal(buf_str(&out), want[whole]);
    }
}

/* One bit of any byte: its record is lost, and no other. */
static void test_journal__damaged_at_any_byte(void **state)
{
    static const char *const want[] = {"|three\n| 1 damaged", "one|three\n| 1 damaged", "one||"};
    size_t end[3] = {0};
    BUF file = {0};
    BUF out = {0};

    for (size_t i = 0; i < 3; i++) {
        file.len = 0;
        make(*state, three, i + 1, &file);
        end[i] = file.len;
    }
    for (size_t n = 0; n < file.len; n++)
        for (int bit = 0; bit < 8; bit++) {
            size_t record = n < end[0] ? 0 : n < end[1] ? 1 : 2;

            file.data[n] = (char)(file.data[n] ^ 1 << bit);
            put(*state, file.data, file.len);
            replay(*state, &out);
            if (strcmp(buf_str(&out), want[record]) != 0)
                fail_msg("byte %zu bit %d: %s", n, bit, buf_str(&out));
            file.data[n] = (char)(file.data[n] ^ 1 << bit);
        }
}

/* After a crash an older, longer log may lie behind what was written since it was emptied. */
static void test_journal__an_older_rest_is_no_part_of_it(void **state)
{
    static const char *const newer[] = {"a", "b", "c", "d"};
    BUF old = {0};
    BUF file = {0};
    BUF out = {0};

    make(*state, three, 3, &old);
    make(*state, newer, 4, &file); /* its last version is 10, above all of the old ones */
    buf_add(&file, old.data, old.len);
    put(*state, file.data, file.len);
    replay(*state, &out);
    assert_string_equal(buf_str(&out), "a|b|c|d|");
}

static int refuse(void *ctx, const char *bytes, size_t n, struct error *err)
{
    (void)bytes, (void)n;
    ++*(size_t *)ctx;
    return error_set(err, ERR_IO, "the disk is full");
}

static void test_journal__a_record_that_cannot_be_carried_out_ends_the_replay(void **state)
{
    struct journal *journal;
    size_t n_damaged, n_calls = 0;
    struct error err = {0};
    BUF file = {0};

    make(*state, three, 3, &file);
    journal = open_journal(*state);
    assert_int_equal(journal_replay(journal, refuse, &n_calls, &n_damaged, &err), -1);
    assert_int_equal(n_calls, 1);
    assert_string_equal(err.text, "the disk is full");
    assert_int_equal(journal_size(journal), file.len); /* all is still there */
    journal_close(journal);
}

static void test_journal__any_bytes_do_no_harm(void **state)
{
    static const char header[] = "\1turn 00000000000000000001 000000000099 0000000000000000\n";
    BUF file = {0};
    BUF out = {0};
    uint64_t seed = 1;

    for (int i = 0; i < 3000; i++)
        buf_add(&file, header, sizeof(header) - 1);
    put(*state, file.data, file.len);
    replay(*state, &out);
    assert_string_equal(buf_str(&out), "");
    for (size_t k = 0; k < 200; k++) {
        for (size_t i = 0; i < file.len && i < 200; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            file.data[i] = "\1\1turn 0123456789abc\n"[(seed >> 33) % 21];
        }
        put(*state, file.data, 200);
        replay(*state, &out);
        assert_string_equal(buf_str(&out), "");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_journal__what_was_appended_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal__cut_at_any_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal__damaged_at_any_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal__an_older_rest_is_no_part_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal__a_record_that_cannot_be_carried_out_ends_the_replay, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_journal__any_bytes_do_no_harm, setup, teardown),
    };

    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
