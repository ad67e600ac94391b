/* store/store.h - the truth about jobs, queues, usage and access: one SQLite file, one transaction per turn.
 *
 * Writes join the open transaction (the first write begins it) and return nothing: the first failure sticks, later
 * writes do nothing, and store_commit() tells it. So a turn is recorded whole or not at all, and no caller needs a
 * branch for a full disk in the middle of a decision. Reads return 0 or -1.
 *
 * WAL, synchronous=FULL: what store_commit() confirmed survives a power failure. The file and its companions have mode
 * 0600. One server at a time: a lock beside the file holds the second one off. Loop thread only. */
#ifndef QUEUED_STORE_H
#define QUEUED_STORE_H

#include <stdbool.h>

#include "allocator/base/error.h"

struct store;

/* Open, or create, the database at `path` and bring its schema up to date.
 * Fails with ERR_CONFLICT, before anything is written, when a newer queued made the file, and when another server has
 * it open; ERR_INVALID when it is not a database of queued; ERR_IO. */
MUST_CHECK int store_open(const char *path, struct store **out, struct error *err);
/* The same, but only up to schema `version`: for the tests of upgrades. */
MUST_CHECK int store_open_at(const char *path, int version, struct store **out, struct error *err);
/* Close; what was not committed is gone. */
void store_close(struct store *store);
static inline void store_closep(struct store **store)
{
    store_close(*store);
}

/* Another process wants the database that this one has, and says so by a lock beside it, also over a shared folder. The
 * holder decides: store_is_wanted() is asked by one that may have lost the right to it. store_want() gives a
 * descriptor; the wish ends when it is closed. -1: not now (somebody looked at this moment, or the folder knows no
 * locks). */
MUST_CHECK int store_want(const char *path);
bool store_is_wanted(const struct store *store);

/* The number of the schema, or -1 when it cannot be read. */
int store_version(const struct store *store);

/* Who the owner of this database is, for the labels of what it makes: random, made with the database. */
#define STORE_SERVER_ID_SIZE 64
MUST_CHECK int store_server_id(struct store *store, char out[STORE_SERVER_ID_SIZE], struct error *err);

/* Whether the open transaction holds writes. */
bool store_is_dirty(const struct store *store);
/* Make everything since the last commit durable. 0 also when there is nothing to do. On failure, of this or of any
 * write before, everything since the last commit is rolled back and -1 returned: ERR_IO for disk and database,
 * ERR_CONFLICT when a row was not as the writer believed. The store stays usable. */
MUST_CHECK int store_commit(struct store *store, struct error *err);
/* Drop everything since the last commit. */
void store_rollback(struct store *store);
/* Write some pages, take them back, commit: can the disk be written again? Nothing is in the open transaction. */
MUST_CHECK int store_probe(struct store *store, struct error *err);

#endif
