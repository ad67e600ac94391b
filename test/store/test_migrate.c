#include "test/support/cmocka.h"

#include <sqlite3.h>
#include <string.h>

#include "allocator/base/str.h"
#include "migrations/migrations.h"
#include "store/store.h"
#include "test/store/scratch.h"

static int collect(void *ctx, int n, char **values, char **names)
{
    (void)n, (void)names;
    buf_addf(ctx, "%s\n", values[0] ? values[0] : "");
    return 0;
}

static char *schema_of(const char *path)
{
    BUF text = {0};
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "select sql from sqlite_schema order by name", collect, &text, NULL), SQLITE_OK);
    sqlite3_close(db);
    return buf_take(&text);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static char *fresh_schema(void)
{
    struct scratch scratch;
    struct store *store;
    char *schema;

    scratch_init(&scratch);
    assert_int_equal(store_open(scratch.path, &store, NULL), 0);
    store_close(store);
    schema = schema_of(scratch.path);
    scratch_release(&scratch);
    return schema;
}

static void test_migrate__every_older_version_becomes_the_newest(void **state)
{
    char *want = fresh_schema();

    (void)state;
    for (int version = 1; version <= (int)n_migrations; version++) {
        struct scratch scratch;
        struct store *store;
        char *schema;

        scratch_init(&scratch);
        assert_int_equal(store_open_at(scratch.path, version, &store, NULL), 0);
        assert_int_equal(store_version(store), version);
        store_close(store);
        assert_int_equal(store_open(scratch.path, &store, NULL), 0);
        assert_int_equal(store_version(store), n_migrations);
        store_close(store);
        schema = schema_of(scratch.path);
        assert_string_equal(schema, want);
        free(schema);
        scratch_release(&scratch);
    }
    free(want);
}

static size_t read_all(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    size_t n;

    assert_non_null(file);
    n = fread(out, 1, size, file);
    fclose(file);
    return n;
}

static const struct refusal {
    const char *name;
    const char *sql;
    const char *want;
} refusals[] = {
    {"a newer schema is refused", "pragma user_version = 99", "newer queued"},
    {"another program's database is refused", "pragma application_id = 7", "another program"},
    {"a database of nobody with a version is refused", "pragma application_id = 0", "not a database of queued"},
};

static void test_migrate__refused_and_not_touched(void **state)
{
    static char before[1 << 20], after[1 << 20];
    const struct refusal *c = *state;
    struct scratch scratch;
    struct store *store;
    struct error err = {0};
    size_t n;

    scratch_init(&scratch);
    assert_int_equal(store_open(scratch.path, &store, NULL), 0);
    store_close(store);
    run_sql(scratch.path, c->sql);
    n = read_all(scratch.path, before, sizeof(before));
    assert_int_equal(store_open(scratch.path, &store, &err), -1);
    assert_non_null(strstr(err.text, c->want));
    assert_int_equal(read_all(scratch.path, after, sizeof(after)), n);
    assert_memory_equal(before, after, n);
    scratch_release(&scratch);
}

static void test_migrate__a_newer_schema_still_in_the_log_is_refused(void **state)
{
    struct scratch scratch;
    struct store *store;
    struct error err = {0};
    sqlite3 *db;

    (void)state;
    scratch_init(&scratch);
    assert_int_equal(store_open(scratch.path, &store, NULL), 0);
    store_close(store);
    assert_int_equal(sqlite3_open(scratch.path, &db), SQLITE_OK);
    sqlite3_exec(db, "pragma wal_autocheckpoint = 0; pragma user_version = 99", NULL, NULL, NULL);
    assert_int_equal(store_open(scratch.path, &store, &err), -1);
    assert_non_null(strstr(err.text, "newer queued"));
    sqlite3_close(db);
    scratch_release(&scratch);
}

static void test_migrate__any_other_file_is_refused(void **state)
{
    struct scratch scratch;
    struct store *store;
    struct error err = {0};
    FILE *file;

    (void)state;
    scratch_init(&scratch);
    file = fopen(scratch.path, "wb");
    fputs("precious words of somebody else", file);
    fclose(file);
    assert_int_equal(store_open(scratch.path, &store, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    scratch_release(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_migrate__every_older_version_becomes_the_newest),
        cmocka_unit_test(test_migrate__a_newer_schema_still_in_the_log_is_refused),
        cmocka_unit_test(test_migrate__any_other_file_is_refused),
    };

    return RUN_TABLE(test_migrate__refused_and_not_touched, refusals) + cmocka_run_group_tests(tests, NULL, NULL);
}
