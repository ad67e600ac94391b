/* test/store/scratch.h - a folder of its own for each test program, with a database path in it. */
#ifndef QUEUED_TEST_SCRATCH_H
#define QUEUED_TEST_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scratch {
    char folder[64];
    char path[96];
};

static inline void scratch_init(struct scratch *scratch)
{
    snprintf(scratch->folder, sizeof(scratch->folder), "/tmp/queued-store-XXXXXX");
    if (!mkdtemp(scratch->folder))
        abort();
    snprintf(scratch->path, sizeof(scratch->path), "%s/queued.db", scratch->folder);
}

static inline void scratch_release(struct scratch *scratch)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    char name[128];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", scratch->path, suffixes[i]);
        unlink(name);
    }
    rmdir(scratch->folder);
}

#endif
