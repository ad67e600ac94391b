/* How a schema comes up to date. A step is one transaction that ends with its number in user_version, so that a crash
 * leaves the database at one step or the next. A file made by a newer queued is recognized from the bytes of its
 * header, before SQLite opens it and could write a byte; after opening it is looked at once more, because with a
 * write-ahead log the header in the file may be older than the truth. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "migrations/migrations.h"
#include "store/internal.h"

#include "allocator/base/banned.h"

#define APPLICATION_ID 0x51554544 /* "QUED" */

/* Where the file format keeps them, as big-endian 32-bit numbers (SQLite file format, section 1.3). */
enum { HEADER_BYTES = 100, AT_USER_VERSION = 60, AT_APPLICATION_ID = 68 };

static int check(int64_t application_id, int64_t version, struct error *err)
{
    if (application_id != 0 && application_id != APPLICATION_ID)
        return error_set(err, ERR_INVALID, "this database belongs to another program (application id %08x)",
                         (unsigned)application_id);
    if (application_id == 0 && version != 0)
        return error_set(err, ERR_INVALID, "this is not a database of queued");
    if (version > (int64_t)n_migrations)
        return error_set(err, ERR_CONFLICT,
                         "this database has schema %d and this queued knows schemas up to %zu: it was made by a newer "
                         "queued; nothing was changed",
                         (int)version, n_migrations);
    return 0;
}

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int migrate_check_file(const char *path, struct error *err)
{
    unsigned char header[HEADER_BYTES];
    FILE *file = fopen(path, "rbe");
    size_t n;

    if (!file)
        return errno == ENOENT ? 0 : error_set(err, ERR_IO, "open %s: %m", path);
    n = fread(header, 1, sizeof(header), file);
    fclose(file);
    if (n == 0)
        return 0;
    if (n < sizeof(header) || memcmp(header, "SQLite format 3", 16) != 0)
        return error_set(err, ERR_INVALID, "not an SQLite database");
    return check(big_endian(header + AT_APPLICATION_ID), big_endian(header + AT_USER_VERSION), err);
}

static int exec(sqlite3 *db, const char *sql, struct error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_error(db, err);
}

static int pragma_number(sqlite3 *db, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *stmt;
    int status;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return sqlite_error(db, err);
    status = sqlite3_step(stmt);
    *out = status == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    return status == SQLITE_ROW ? 0 : sqlite_error(db, err);
}

static int run_step(sqlite3 *db, const struct migration *step, struct error *err)
{
    char mark[100];

    snprintf(mark, sizeof(mark), "pragma user_version = %d; pragma application_id = %d", step->version, APPLICATION_ID);
    if (exec(db, "begin immediate", err) == 0 && exec(db, step->sql, err) == 0 && exec(db, mark, err) == 0 &&
        exec(db, "commit", err) == 0)
        return 0;
    sqlite3_exec(db, "rollback", NULL, NULL, NULL);
    return error_wrap(err, "migration %s", step->name);
}

int migrate_check(sqlite3 *db, int64_t *out_version, struct error *err)
{
    int64_t application_id;

    if (pragma_number(db, "pragma application_id", &application_id, err) < 0 ||
        pragma_number(db, "pragma user_version", out_version, err) < 0)
        return -1;
    return check(application_id, *out_version, err);
}

int migrate(sqlite3 *db, int version, struct error *err)
{
    size_t target = version > 0 ? (size_t)version : n_migrations;
    int64_t now;

    if (migrate_check(db, &now, err) < 0)
        return -1;
    for (size_t i = (size_t)now; i < target; i++)
        if (run_step(db, &migrations[i], err) < 0)
            return -1;
    return 0;
}
