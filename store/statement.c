#include <stdarg.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

static const char *const texts[] = {
#define S(name, sql) [name] = sql,
    STATEMENTS(S)
#undef S
};

int sqlite_error(sqlite3 *db, struct error *err)
{
    return error_set(err, ERR_IO, "database: %s", sqlite3_errmsg(db));
}

int statements_prepare(struct store *store, struct error *err)
{
    for (int i = 0; i < N_STATEMENTS; i++)
        if (sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i], NULL)) {
            sqlite_error(store->db, err);
            return error_wrap(err, "prepare \"%.60s\"", texts[i]);
        }
    return 0;
}

void statements_finalize(struct store *store)
{
    for (int i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    memset(store->statements, 0, sizeof(store->statements));
}

static int bind_limit(sqlite3_stmt *stmt, int i, int64_t value)
{
    return value == STORE_UNLIMITED ? sqlite3_bind_null(stmt, i) : sqlite3_bind_int64(stmt, i, value);
}

static void bind_all(sqlite3_stmt *stmt, const char *types, va_list args)
{
    int status = SQLITE_OK;

    for (int i = 0; types[i] != '\0' && status == SQLITE_OK; i++) {
        if (types[i] == 't')
            status = sqlite3_bind_text(stmt, i + 1, va_arg(args, const char *), -1, SQLITE_STATIC);
        else if (types[i] == 'i')
            status = sqlite3_bind_int64(stmt, i + 1, va_arg(args, int64_t));
        else if (types[i] == 'l')
            status = bind_limit(stmt, i + 1, va_arg(args, int64_t));
        else
            status = sqlite3_bind_blob(stmt, i + 1, va_arg(args, const void *), STORE_HASH_BYTES, SQLITE_STATIC);
    }
    INVARIANT(status == SQLITE_OK); /* the number and kinds of values are ours; sizes are limited at the edge */
}

/* Run a statement without rows; the failure sticks in the store. */
static bool step_once(struct store *store, sqlite3_stmt *stmt)
{
    bool is_done = sqlite3_step(stmt) == SQLITE_DONE;

    if (!is_done)
        sqlite_error(store->db, &store->failure);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return is_done;
}

static bool begin(struct store *store)
{
    if (store->in_transaction)
        return true;
    store->in_transaction = step_once(store, store->statements[TX_BEGIN]);
    return store->in_transaction;
}

int write_row(struct store *store, enum statement which, const char *types, ...)
{
    sqlite3_stmt *stmt = store->statements[which];
    va_list args;

    if (store->failure.code || !begin(store))
        return 0;
    va_start(args, types);
    bind_all(stmt, types, args);
    va_end(args);
    return step_once(store, stmt) ? sqlite3_changes(store->db) : 0;
}

struct read read_begin(struct store *store, enum statement which, const char *types, ...)
{
    struct read read = {.store = store, .stmt = store->statements[which]};
    va_list args;

    va_start(args, types);
    bind_all(read.stmt, types, args);
    va_end(args);
    return read;
}

bool read_next(struct read *read)
{
    read->status = sqlite3_step(read->stmt);
    return read->status == SQLITE_ROW;
}

int read_end(struct read *read, struct error *err)
{
    int failed = read->status == SQLITE_DONE || read->status == SQLITE_ROW ? 0 : sqlite_error(read->store->db, err);

    sqlite3_reset(read->stmt);
    sqlite3_clear_bindings(read->stmt);
    return failed;
}

const char *column_text(const struct read *read, int column)
{
    return (const char *)sqlite3_column_text(read->stmt, column);
}

int64_t column_int(const struct read *read, int column)
{
    return sqlite3_column_int64(read->stmt, column);
}

int64_t column_limit(const struct read *read, int column)
{
    return sqlite3_column_type(read->stmt, column) == SQLITE_NULL ? STORE_UNLIMITED : column_int(read, column);
}

void column_hash(const struct read *read, int column, unsigned char *out)
{
    const void *bytes = sqlite3_column_blob(read->stmt, column);

    INVARIANT(bytes && sqlite3_column_bytes(read->stmt, column) == STORE_HASH_BYTES); /* the schema checks it */
    memcpy(out, bytes, STORE_HASH_BYTES);
}
