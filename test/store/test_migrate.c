#include "test/support/cmocka.h"

#include <sqlite3.h>
#include <string.h>

#include "allocator/base/str.h"
#include "migrations/migrations.h"
#include "store/rows.h"
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

/* ---- what is in an older database stays ---- */

static void see_queue(void *ctx, const struct queue_row *row)
{
    buf_addf(ctx, "%s<%s*%d %s, placed %s\n", row->name, row->parent ? row->parent : "root", (int)row->weight,
             row->state, row->placement ? row->placement : "as above");
}
static void see_quota(void *ctx, const struct quota_row *row)
{
    buf_addf(ctx, "%s/%s=%d\n", row->queue, row->resource, (int)row->nominal);
}
static void see_resource(void *ctx, const struct resource_row *row)
{
    buf_addf(ctx, "%s\n", row->name);
}
static void see_priority(void *ctx, const struct priority_row *row)
{
    buf_addf(ctx, "%s\n", row->name);
}
static void see_attempt(void *ctx, const struct attempt_row *row)
{
    buf_addf(ctx, "attempt %d of job %d: %s, placed by %s\n", (int)row->number, (int)row->job, row->placement,
             row->effective ? row->effective : "what is not known");
}
static void see_object(void *ctx, const struct object_row *row)
{
    buf_addf(ctx, "%s %s\n", row->kind, row->name);
}

static const char filled[] =
    "insert into queue (name, weight, state) values ('research', 2, 'held');"
    "insert into queue (name, parent, weight, state) values ('vision', 'research', 3, 'open');"
    "insert into quota (queue, resource, nominal) values ('vision', 'pods', 7);"
    "insert into job (id, name, namespace, queue, user, priority, submitted_ms, spec, state, reason, attempt,"
    " retries_left, failures, not_before_ms, started_ms, ended_ms, exit_code)"
    " values (4, 'train', 'default', 'vision', 'ada', 0, 1, '{}', 'Running', '', 2, 0, 0, 0, 1, 0, -1);"
    "insert into attempt (job_id, number, shape, placement, chosen, charges, created_ms)"
    " values (4, 2, 0, '{\"members\":[]}', '[]', '{}', 1);"
    "insert into launch_object (job_id, attempt, position, kind, namespace, name, body)"
    " values (4, 2, 0, 'Pod', 'default', 'train-4-2-main-0', '{}')";

static void test_migrate__queues_and_attempts_of_older_versions_are_kept(void **state)
{
    (void)state;
    for (int version = 2; version < (int)n_migrations; version++) { /* queues came with the second */
        struct scratch scratch;
        struct store *store;
        BUF text = {0};
        struct queue_visitor visitor = {&text, see_queue, see_quota, see_resource, see_priority};

        scratch_init(&scratch);
        assert_int_equal(store_open_at(scratch.path, version, &store, NULL), 0);
        store_close(store);
        run_sql(scratch.path, filled);
        assert_int_equal(store_open(scratch.path, &store, NULL), 0);
        assert_int_equal(store_queues_each(store, &visitor, NULL), 0);
        assert_int_equal(store_attempt_load(store, 4, 2, see_attempt, see_object, &text, NULL), 0);
        assert_string_equal(buf_str(&text), "research<root*2 held, placed as above\n"
                                            "vision<research*3 open, placed as above\n"
                                            "vision/pods=7\n"
                                            "attempt 2 of job 4: {\"members\":[]}, placed by what is not known\n"
                                            "Pod train-4-2-main-0\n");
        store_close(store);
        scratch_release(&scratch);
    }
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
        cmocka_unit_test(test_migrate__queues_and_attempts_of_older_versions_are_kept),
        cmocka_unit_test(test_migrate__a_newer_schema_still_in_the_log_is_refused),
        cmocka_unit_test(test_migrate__any_other_file_is_refused),
    };

    return RUN_TABLE(test_migrate__refused_and_not_touched, refusals) + cmocka_run_group_tests(tests, NULL, NULL);
}
