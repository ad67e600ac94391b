/* A record is a line of fixed width and the bytes:
 *
 *   \1turn <version, 20 digits> <length, 12 digits> <checksum of version, length and bytes, 16 hex digits>\n<bytes>
 *
 * '\1' occurs nowhere else, so that the next record is found again behind a damaged one, and no text of a user can look
 * like a record. Versions tell records from the rests of an older, longer log that a crash may bring back behind new
 * ones: there they decrease. */
#include "queued/cluster/embedded/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "queued/cluster/embedded/internal.h"

#include "allocator/base/banned.h"

#define MAGIC       "\1turn "
#define MAGIC_LEN   6
#define HEADER_LEN  (MAGIC_LEN + 20 + 1 + 12 + 1 + 16 + 1)
#define MAX_BYTES   ((size_t)999999999999u)
#define MAX_LOG     ((off_t)1 << 31)
#define MAX_DAMAGES 1000 /* after that many it is no log but something else */

struct journal {
    int dir, fd;
    size_t size; /* of the good records */
};

static int io_error(struct error *err, const char *what)
{
    return error_set(err, ERR_IO, "%s the log: %s", what, strerror(errno));
}

int journal_open(int dir, const char *name, struct journal **out, struct error *err)
{
    struct journal *journal = mem_new(struct journal);
    struct stat st;

    journal->dir = dir;
    journal->fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (journal->fd < 0 || fstat(journal->fd, &st) < 0 || (st.st_size == 0 && fsync(dir) < 0)) {
        io_error(err, "open");
        journal_close(journal);
        return -1;
    }
    if (!S_ISREG(st.st_mode) || st.st_size > MAX_LOG) {
        error_set(err, ERR_LIMIT, "the log is no file of at most %lld bytes", (long long)MAX_LOG);
        journal_close(journal);
        return -1;
    }
    journal->size = (size_t)st.st_size;
    *out = journal;
    return 0;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal);
}

size_t journal_size(const struct journal *journal)
{
    return journal->size;
}

/* ---- writing ---- */

static uint64_t checksum(uint64_t version, const char *bytes, size_t n)
{
    uint64_t length = n;

    return fnv64(fnv64(fnv64(0, &version, sizeof(version)), &length, sizeof(length)), bytes, n);
}

static bool write_at(int fd, const char *bytes, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t done = pwrite(fd, bytes, n, at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        bytes += done;
        n -= (size_t)done;
        at += done;
    }
    return true;
}

static void write_header(uint64_t version, uint64_t length, uint64_t sum, char out[HEADER_LEN + 1])
{
    snprintf(out, HEADER_LEN + 1, MAGIC "%020" PRIu64 " %012" PRIu64 " %016" PRIx64 "\n", version, length, sum);
}

int journal_append(struct journal *journal, uint64_t version, const char *bytes, size_t n, struct error *err)
{
    char header[HEADER_LEN + 1];
    off_t at = (off_t)journal->size;

    if (n > MAX_BYTES)
        return error_set(err, ERR_LIMIT, "a record of %zu bytes", n);
    write_header(version, n, checksum(version, bytes, n), header);
    if (write_at(journal->fd, header, HEADER_LEN, at) && write_at(journal->fd, bytes, n, at + HEADER_LEN) &&
        fdatasync(journal->fd) == 0) {
        journal->size += HEADER_LEN + n;
        return 0;
    }
    io_error(err, "write");
    (void)!ftruncate(journal->fd, at); /* the next one is written over it anyway */
    return -1;
}

int journal_empty(struct journal *journal, struct error *err)
{
    if (ftruncate(journal->fd, 0) < 0)
        return io_error(err, "empty");
    journal->size = 0;
    return 0;
}

/* ---- reading ---- */

struct record {
    uint64_t version;
    const char *bytes;
    size_t n;
};

/* The record that begins here, if it is whole: then its header, written again, is the same. */
static bool read_record(const char *at, const char *end, struct record *out)
{
    char header[HEADER_LEN + 1];
    uint64_t length, sum;

    if (end - at < HEADER_LEN || memcmp(at, MAGIC, MAGIC_LEN) != 0)
        return false;
    memcpy(header, at, HEADER_LEN);
    header[HEADER_LEN] = '\0';
    if (sscanf(header + MAGIC_LEN, "%20" SCNu64 " %12" SCNu64 " %16" SCNx64, &out->version, &length, &sum) != 3)
        return false;
    write_header(out->version, length, sum, header);
    out->bytes = at + HEADER_LEN;
    out->n = length;
    return memcmp(header, at, HEADER_LEN) == 0 && length <= (uint64_t)(end - out->bytes) &&
           checksum(out->version, out->bytes, out->n) == sum;
}

static char *read_whole(const struct journal *journal, struct error *err)
{
    char *bytes = mem_zalloc(journal->size + 1, 1);
    size_t n = 0;

    while (n < journal->size) {
        ssize_t done = pread(journal->fd, bytes + n, journal->size - n, (off_t)n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            io_error(err, "read");
            free(bytes);
            return NULL;
        }
        n += (size_t)done;
    }
    return bytes;
}

int journal_replay(struct journal *journal, int (*each)(void *ctx, const char *bytes, size_t n, struct error *err),
                   void *ctx, size_t *out_n_damaged, struct error *err)
{
    char *bytes = read_whole(journal, err);
    const char *at = bytes, *end = bytes + journal->size;
    struct record record = {0};
    uint64_t version = 0;
    size_t n_gaps = 0;
    bool is_gap = false;
    int rc = bytes ? 0 : -1;

    *out_n_damaged = 0;
    while (rc == 0 && at && at < end && n_gaps < MAX_DAMAGES) {
        if (!read_record(at, end, &record)) {
            n_gaps++;
            is_gap = true;
            at = memchr(at + 1, MAGIC[0], (size_t)(end - at - 1));
            continue;
        }
        if (record.version < version)
            break;
        *out_n_damaged += is_gap;
        is_gap = false;
        version = record.version;
        rc = each(ctx, record.bytes, record.n, err);
        at = record.bytes + record.n;
    }
    free(bytes);
    return rc;
}
