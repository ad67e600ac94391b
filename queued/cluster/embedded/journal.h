/* queued/cluster/embedded/journal.h - the redo log of the state folder: what was decided, in one file, in order.
 *
 * A record is appended and synced once; it then outlives any crash, whole. What it says is carried out on other files
 * without syncing them, and the log is emptied after a later sync of everything. Whoever comes up reads the records
 * back and carries them out again: a record must be safe to repeat. A record that was cut off by a crash has never
 * happened.
 *
 * Source: write-ahead (redo) logging as in databases; here records hold whole files, so that no order of pages on the
 * disk matters. One thread. */
#ifndef QUEUED_EMBEDDED_JOURNAL_H
#define QUEUED_EMBEDDED_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "allocator/base/error.h"

struct journal;

/* Open (or make) `name` in the folder that `dir` is open on. Read what is in it (journal_replay) before the first
 * append. -1 with ERR_IO. */
MUST_CHECK int journal_open(int dir, const char *name, struct journal **out, struct error *err);
void journal_close(struct journal *journal); /* NULL is fine */

/* Append a record and wait until it is on the disk. Versions never decrease. The bytes hold no '\1'. On failure
 * (ERR_IO) it is as if nothing had been tried. */
MUST_CHECK int journal_append(struct journal *journal, uint64_t version, const char *bytes, size_t n,
                              struct error *err);

/* Call `each` (0: go on; else -1 with err filled, which ends it) for every whole record, in order; the bytes are valid
 * for the call. What comes after the last whole record is cut off and ignored; *out_n_damaged counts the gaps before
 * that, places where records were lost in another way. */
MUST_CHECK int journal_replay(struct journal *journal,
                              int (*each)(void *ctx, const char *bytes, size_t n, struct error *err), void *ctx,
                              size_t *out_n_damaged, struct error *err);

/* Forget all records. What they say must be durable. */
MUST_CHECK int journal_empty(struct journal *journal, struct error *err);
size_t journal_size(const struct journal *journal); /* in bytes */

#endif
