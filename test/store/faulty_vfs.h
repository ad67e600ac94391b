/* test/store/faulty_vfs.h - SQLite's default file system, but the N-th write fails, and every one after it while
 * `broken`. */
#ifndef QUEUED_TEST_FAULTY_VFS_H
#define QUEUED_TEST_FAULTY_VFS_H

#include <stdbool.h>

struct faults {
    int countdown; /* writes, syncs and truncations that still succeed; negative: no fault */
    bool stays;    /* once it has failed, everything fails until `countdown` is negative again */
    int result;    /* what the failing call returns: SQLITE_FULL, SQLITE_IOERR_FSYNC ... */
    int n_failed;
};

/* Make it the default file system of this process. `faults` must live as long as the process. */
void faulty_vfs_install(struct faults *faults);

#endif
