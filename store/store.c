#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

/* How long a statement waits for another connection (a backup, a reader of history) before it gives up. */
#define BUSY_MS 2000

static const char settings[] = "pragma journal_mode = wal;"
                               "pragma synchronous = full;"
                               "pragma foreign_keys = on;"
                               "pragma trusted_schema = off;"
                               "pragma temp_store = memory;";

static int open_beside(const char *path, const char *suffix, int *out_fd, struct error *err)
{
    char name[4096];

    if ((size_t)snprintf(name, sizeof(name), "%s%s", path, suffix) >= sizeof(name))
        return error_set(err, ERR_LIMIT, "the path is too long");
    *out_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return *out_fd < 0 ? error_set(err, ERR_IO, "open %s: %m", name) : 0;
}

/* One server per database. The lock is the kernel's and goes with the process, however that ends. */
static int take_lock(const char *path, int *out_fd, struct error *err)
{
    if (open_beside(path, ".lock", out_fd, err) < 0)
        return -1;
    if (flock(*out_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return error_set(err, ERR_IO, "lock %s.lock: %m", path);
    return error_set(err, ERR_CONFLICT, "another server has this database open");
}

int store_want(const char *path)
{
    int fd = -1;

    if (open_beside(path, ".wanted", &fd, NULL) < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -1;
}

bool store_is_wanted(const struct store *store)
{
    bool is_wanted;
    int fd;

    if (open_beside(sqlite3_db_filename(store->db, "main"), ".wanted", &fd, NULL) < 0)
        return false;
    is_wanted = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd);
    return is_wanted;
}

/* SQLite gives its companion files (-wal, -shm) the mode of the main file, so that one has to be right before. */
static int make_private(const char *path, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int status;

    if (fd < 0)
        return error_set(err, ERR_IO, "open %s: %m", path);
    status = fchmod(fd, 0600);
    close(fd);
    return status == 0 ? 0 : error_set(err, ERR_IO, "chmod %s: %m", path);
}

static int open_database(struct store *store, const char *path, int version, struct error *err)
{
    int64_t found;

    if (take_lock(path, &store->lock_fd, err) < 0 || migrate_check_file(path, err) < 0 || make_private(path, err) < 0)
        return -1;
    if (sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return sqlite_error(store->db, err);
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    if (migrate_check(store->db, &found, err) < 0) /* before the settings: the first of them writes */
        return -1;
    if (sqlite3_exec(store->db, settings, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_error(store->db, err);
    return migrate(store->db, version, err);
}

int store_open_at(const char *path, int version, struct store **out, struct error *err)
{
    struct store *store = mem_new(struct store);

    store->lock_fd = -1;
    if (open_database(store, path, version, err) < 0 || (version == 0 && statements_prepare(store, err) < 0)) {
        store_close(store);
        return error_wrap(err, "open database %s", path);
    }
    *out = store;
    return 0;
}

int store_open(const char *path, struct store **out, struct error *err)
{
    return store_open_at(path, 0, out, err);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    if (store->db)
        store_rollback(store);
    statements_finalize(store);
    sqlite3_close(store->db);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store);
}

int store_version(const struct store *store)
{
    struct error err;
    int64_t version = 0;

    return migrate_check(store->db, &version, &err) < 0 ? -1 : (int)version;
}

int store_server_id(struct store *store, char out[STORE_SERVER_ID_SIZE], struct error *err)
{
    struct read read = read_begin(store, SERVER_ID, "");

    out[0] = '\0';
    if (read_next(&read))
        snprintf(out, STORE_SERVER_ID_SIZE, "%s", column_text(&read, 0));
    if (read_end(&read, err) < 0)
        return -1;
    return out[0] ? 0 : error_set(err, ERR_IO, "the database has lost its id");
}

bool store_is_dirty(const struct store *store)
{
    return store->in_transaction || store->failure.code;
}

void store_rollback(struct store *store)
{
    sqlite3_stmt *rollback = store->statements[TX_ROLLBACK];

    if (store->in_transaction && !sqlite3_get_autocommit(store->db)) { /* SQLite may have rolled back by itself */
        sqlite3_step(rollback);
        sqlite3_reset(rollback);
    }
    store->in_transaction = false;
    store->failure = (struct error){0};
}

int store_commit(struct store *store, struct error *err)
{
    sqlite3_stmt *commit = store->statements[TX_COMMIT];

    if (store->in_transaction && !store->failure.code) {
        if (sqlite3_step(commit) != SQLITE_DONE)
            sqlite_error(store->db, &store->failure);
        sqlite3_reset(commit);
    }
    if (!store->failure.code) {
        store->in_transaction = false;
        return 0;
    }
    if (err)
        *err = store->failure;
    store_rollback(store);
    return -1;
}

int store_probe(struct store *store, struct error *err)
{
    write_row(store, PROBE_PUT, "");
    write_row(store, PROBE_DELETE, "");
    return store_commit(store, err);
}
