/* store/internal.h - what the files of this room share: the handle, running a statement, reading a row. */
#ifndef QUEUED_STORE_INTERNAL_H
#define QUEUED_STORE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "allocator/base/error.h"
#include "store/statements.h"

enum statement {
#define S(name, sql) name,
    STATEMENTS(S)
#undef S
        N_STATEMENTS
};

struct store {
    sqlite3 *db;
    int lock_fd; /* held for the store's life */
    sqlite3_stmt *statements[N_STATEMENTS];
    bool in_transaction;
    struct error failure; /* of the open transaction; code ERR_NONE while all is well */
};

/* migrate.c: is this ours, and not newer than we are? By the bytes of the file, and as SQLite sees it. */
MUST_CHECK int migrate_check_file(const char *path, struct error *err);
MUST_CHECK int migrate_check(sqlite3 *db, int64_t *out_version, struct error *err);
/* Bring the schema up to `version` (0: the newest). */
MUST_CHECK int migrate(sqlite3 *db, int version, struct error *err);

/* statement.c */
MUST_CHECK int statements_prepare(struct store *store, struct error *err);
void statements_finalize(struct store *store);
int sqlite_error(sqlite3 *db, struct error *err); /* ERR_IO with SQLite's words; always -1 */

/* A write. `types` has a letter for each value: t text (NULL is null), i int64_t, l int64_t where STORE_UNLIMITED is
 * null, h a hash. Begins the transaction if need be; a failure sticks. Returns the number of rows changed, 0 after a
 * failure. */
int write_row(struct store *store, enum statement which, const char *types, ...);

/* A read: bind as above, then while (read_next(&read)) use the column_ functions, then read_end(). */
struct read {
    struct store *store;
    sqlite3_stmt *stmt;
    int status;
};
struct read read_begin(struct store *store, enum statement which, const char *types, ...);
bool read_next(struct read *read);
MUST_CHECK int read_end(struct read *read, struct error *err);
const char *column_text(const struct read *read, int column); /* NULL is null; until the next row */
int64_t column_int(const struct read *read, int column);      /* null is 0 */
int64_t column_limit(const struct read *read, int column);    /* null is STORE_UNLIMITED */
void column_hash(const struct read *read, int column, unsigned char *out);

#endif
