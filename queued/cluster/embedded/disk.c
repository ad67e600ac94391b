/* The state folder: one file per object, "<Kind>_<namespace>_<name>.json", `version`, the counter behind uids and
 * resourceVersions, and the redo log (journal.h).
 *
 * What a turn has changed becomes durable as one: the new contents of all its files go into one record of the log,
 * which is synced once; from that moment on the turn has happened. Then the files themselves are replaced, each at once
 * in the eyes of a reader; they reach the disk whenever the kernel likes. Only when the log has grown large, everything
 * is synced and the log emptied. A server that comes up carries out again all that stands in the log. Nobody is told of
 * a change before its turn is in the log and in its files.
 *
 * The counter is only written when something is removed: otherwise the newest file knows it. */
#include "queued/cluster/embedded/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/embedded/journal.h"

#include "allocator/base/banned.h"

#define MAX_FILE_BYTES ((off_t)64 << 20)
#define MAX_NAME       200 /* of a file; longer keys are hashed */
#define VERSION_FILE   "version"
#define LOG_FILE       "log"
#define SPARE_FILE     "spare.tmp"
#define MAX_LOG        ((size_t)16 << 20) /* then the log is emptied */

struct note {
    char *key;
    json_t *json; /* NULL: remove */
    UT_hash_handle hh;
};
struct disk {
    char *folder;
    int dir, lock;
    struct note *notes; /* in the order of their first mention */
    struct journal *journal;
    bool is_logged; /* the notes are in the log, but could not be carried out yet */
};

/* ---- opening ---- */

static int io_error(struct error *err, const char *what, const char *name)
{
    return error_set(err, ERR_IO, "%s %s: %s", what, name, strerror(errno));
}

int disk_open(const char *folder, struct disk **out, struct error *err)
{
    struct disk *disk;

    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return io_error(err, "make the state folder", folder);
    disk = mem_new(struct disk);
    disk->folder = mem_strdup(folder);
    disk->lock = -1;
    disk->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk->dir >= 0)
        disk->lock = openat(disk->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (disk->lock < 0) {
        io_error(err, "open the state folder", folder);
        disk_close(disk);
        return -1;
    }
    if (flock(disk->lock, LOCK_EX | LOCK_NB) < 0) {
        error_set(err, ERR_CONFLICT, "the state folder %s is in use by another server", folder);
        disk_close(disk);
        return -1;
    }
    if (journal_open(disk->dir, LOG_FILE, &disk->journal, err) < 0) {
        disk_close(disk);
        return error_wrap(err, "state folder %s", folder);
    }
    *out = disk;
    return 0;
}

static void forget_notes(struct disk *disk)
{
    struct note *note, *next;

    HASH_ITER (hh, disk->notes, note, next) {
        HASH_DEL(disk->notes, note);
        json_decref(note->json);
        free(note->key);
        free(note);
    }
}

void disk_close(struct disk *disk)
{
    if (!disk)
        return;
    forget_notes(disk);
    journal_close(disk->journal);
    if (disk->lock >= 0)
        close(disk->lock);
    if (disk->dir >= 0)
        close(disk->dir);
    free(disk->folder);
    free(disk);
}

/* ---- names ---- */

/* '_' occurs in no name of Kubernetes. */
static void file_name(const char *key, char out[256])
{
    size_t n = strlen(key);

    if (n <= MAX_NAME)
        snprintf(out, 256, "%s.json", key);
    else
        snprintf(out, 256, "%.*s_%016llx.json", (int)strcspn(key, "/"), key, (unsigned long long)fnv64(0, key, n));
    for (char *c = out; *c; c++)
        if (*c == '/')
            *c = '_';
}

/* `name` with something behind it. */
static void name_with(const char *name, const char *suffix, char out[300])
{
    snprintf(out, 300, "%s%s", name, suffix);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = strlen(suffix);

    return n > k && strcmp(name + n - k, suffix) == 0;
}

/* ---- carrying out a turn ---- */

/* What a record of the log says, one after the other:
 *   put <name> <length>\n<the file's bytes>\n
 *   del <name>\n                                                                                               */

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The new contents go into the spare file, which then changes places with the old one: nobody reads half of one.
 * (Renaming over the old one would be as good, but ext4 then begins to write at once, and a new file costs the search
 * for an inode: together that was most of a turn's time.) */
static int put_file(const struct disk *disk, const char *name, const char *bytes, size_t len, struct error *err)
{
    int fd = openat(disk->dir, SPARE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc;

    if (fd < 0)
        return io_error(err, "write", SPARE_FILE);
    rc = write_all(fd, bytes, len);
    if (rc == 0)
        rc = ftruncate(fd, (off_t)len);
    if (close(fd) < 0 || rc < 0)
        return io_error(err, "write", SPARE_FILE);
    if (renameat2(disk->dir, SPARE_FILE, disk->dir, name, RENAME_EXCHANGE) == 0)
        return 0;
    return renameat(disk->dir, SPARE_FILE, disk->dir, name) < 0 ? io_error(err, "write", name) : 0; /* a new one */
}

static int delete_file(const struct disk *disk, const char *name, struct error *err)
{
    return unlinkat(disk->dir, name, 0) < 0 && errno != ENOENT ? io_error(err, "remove", name) : 0;
}

static bool may_carry(const char *name)
{
    return !strchr(name, '/') && (ends_with(name, ".json") || strcmp(name, VERSION_FILE) == 0);
}

/* Carry out one line; *at moves behind it and what belongs to it. What cannot be read ends the record. */
static int carry_line(const struct disk *disk, const char **at, const char *end, struct error *err)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at)), *bytes = newline ? newline + 1 : end;
    char line[320], name[256];
    unsigned long long len = 0;
    bool is_put;

    snprintf(line, sizeof(line), "%.*s", (int)(newline && newline - *at < 319 ? newline - *at : 0), *at);
    *at = end;
    is_put = sscanf(line, "put %255s %llu", name, &len) == 2;
    if ((!is_put && sscanf(line, "del %255s", name) != 1) || !may_carry(name))
        return 0;
    if (!is_put) {
        *at = bytes;
        return delete_file(disk, name, err);
    }
    if (len >= (size_t)(end - bytes))
        return 0;
    *at = bytes + len + 1;
    return put_file(disk, name, bytes, (size_t)len, err);
}

/* Safe to repeat. */
static int carry_out(void *ctx, const char *bytes, size_t n, struct error *err)
{
    const char *end = bytes + n;

    while (bytes < end)
        if (carry_line(ctx, &bytes, end, err) < 0)
            return -1;
    return 0;
}

/* Everything that was carried out reaches the disk: then the log has done its work. */
static int empty_log(const struct disk *disk, struct error *err)
{
    if (journal_size(disk->journal) == 0)
        return 0;
    if (syncfs(disk->dir) < 0)
        return io_error(err, "sync the state folder", disk->folder);
    return journal_empty(disk->journal, err);
}

static int recover(struct disk *disk, void (*warn)(void *ctx, const struct error *err), void *warn_ctx,
                   struct error *err)
{
    struct error damage = {0};
    size_t n_damaged;

    if (journal_replay(disk->journal, carry_out, disk, &n_damaged, err) < 0)
        return error_wrap(err, "state folder %s", disk->folder);
    if (n_damaged > 0) {
        error_set(&damage, ERR_INVALID,
                  "the log of the state folder is damaged at %zu place%s: some of the last changes may be lost",
                  n_damaged, n_damaged == 1 ? "" : "s");
        warn(warn_ctx, &damage);
    }
    return empty_log(disk, err);
}

/* ---- reading ---- */

static char *read_all(int dir, const char *name, size_t *out_len, struct error *err)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char *bytes = NULL;
    ssize_t n;
    size_t len = 0;

    if (fd < 0 || fstat(fd, &st) < 0) {
        io_error(err, "read", name);
    } else if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES) {
        error_set(err, ERR_LIMIT, "read %s: no file of at most %lld bytes", name, (long long)MAX_FILE_BYTES);
    } else {
        bytes = mem_zalloc((size_t)st.st_size + 1, 1);
        while (len < (size_t)st.st_size && (n = read(fd, bytes + len, (size_t)st.st_size - len)) > 0)
            len += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    *out_len = len;
    return bytes;
}

/* The object of a file, or NULL when it is none or belongs under another name. */
static json_t *read_object(const struct disk *disk, const char *name, struct error *err)
{
    json_error_t problem;
    char expected[256];
    size_t len;
    char *bytes = read_all(disk->dir, name, &len, err);
    json_t *object = bytes ? json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &problem) : NULL;
    const char *kind = field_text(object, "kind", NULL), *object_name = field_text(object, "metadata", "name", NULL);
    const char *ns = field_text(object, "metadata", "namespace", NULL);
    BUF key = {0};

    if (bytes && !object)
        error_set(err, ERR_INVALID, "%s: %s", name, problem.text);
    free(bytes);
    if (!object)
        return NULL;
    if (kind && object_name && field_text(object, "metadata", "uid", NULL)) {
        buf_addf(&key, "%s/%s/%s", kind, ns ? ns : "", object_name);
        file_name(buf_str(&key), expected);
        if (strcmp(expected, name) == 0)
            return object;
    }
    error_set(err, ERR_INVALID, "%s: not the object that its name says", name);
    json_decref(object);
    return NULL;
}

void disk_set_aside(struct disk *disk, const char *key)
{
    char name[256], damaged[300];

    file_name(key, name);
    name_with(name, ".damaged", damaged);
    (void)renameat(disk->dir, name, disk->dir, damaged);
}

static uint64_t read_version(const struct disk *disk)
{
    size_t len;
    char *bytes = read_all(disk->dir, VERSION_FILE, &len, NULL);
    unsigned long long version = bytes ? strtoull(bytes, NULL, 10) : 0;

    free(bytes);
    return version;
}

static int by_uid(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;

    return strcmp(field_text(*x, "metadata", "uid", NULL), field_text(*y, "metadata", "uid", NULL));
}

struct reading {
    json_t **objects;
    size_t n, cap;
};

static void read_file(struct disk *disk, const char *name, struct reading *reading,
                      void (*warn)(void *ctx, const struct error *err), void *warn_ctx)
{
    struct error err = {0};
    char damaged[300];
    json_t *object;

    if (ends_with(name, ".tmp")) {
        (void)unlinkat(disk->dir, name, 0); /* of a turn that was not told */
        return;
    }
    if (!ends_with(name, ".json"))
        return;
    object = read_object(disk, name, &err);
    if (object) {
        mem_grow(reading->objects, reading->n, reading->cap);
        reading->objects[reading->n++] = object;
        return;
    }
    name_with(name, ".damaged", damaged);
    (void)renameat(disk->dir, name, disk->dir, damaged);
    error_wrap(&err, "state file set aside");
    warn(warn_ctx, &err);
}

int disk_read(struct disk *disk, void (*each)(void *ctx, json_t *object), void *ctx,
              void (*warn)(void *warn_ctx, const struct error *err), void *warn_ctx, uint64_t *out_version,
              struct error *err)
{
    struct reading reading = {0};
    struct dirent **names;
    int n;

    if (recover(disk, warn, warn_ctx, err) < 0)
        return -1;
    n = scandir(disk->folder, &names, NULL, alphasort);
    if (n < 0)
        return io_error(err, "read the state folder", disk->folder);
    for (int i = 0; i < n; i++) {
        read_file(disk, names[i]->d_name, &reading, warn, warn_ctx);
        free(names[i]);
    }
    free(names);
    if (reading.n > 0)
        qsort(reading.objects, reading.n, sizeof(*reading.objects), by_uid);
    for (size_t i = 0; i < reading.n; i++) {
        each(ctx, reading.objects[i]);
        json_decref(reading.objects[i]);
    }
    free(reading.objects);
    *out_version = read_version(disk);
    return 0;
}

/* ---- writing ---- */

void disk_note(struct disk *disk, const char *key, json_t *json)
{
    struct note *note;

    HASH_FIND_STR(disk->notes, key, note);
    if (!note) {
        note = mem_new(struct note);
        note->key = mem_strdup(key);
        HASH_ADD_KEYPTR(hh, disk->notes, note->key, strlen(note->key), note);
    }
    json_decref(note->json);
    note->json = json_incref(json);
    disk->is_logged = false;
}

static void add_file(struct buf *turn, const char *name, const char *bytes)
{
    size_t n = strlen(bytes);

    buf_addf(turn, "put %s %zu\n", name, n);
    buf_add(turn, bytes, n);
    buf_addc(turn, '\n');
}

static int add_note(struct buf *turn, const struct note *note, struct error *err)
{
    char name[256], *text;

    file_name(note->key, name);
    if (!note->json) {
        buf_addf(turn, "del %s\n", name);
        return 0;
    }
    text = json_dumps(note->json, JSON_INDENT(1));
    if (!text)
        return error_set(err, ERR_INVALID, "%s cannot be written as JSON", note->key);
    add_file(turn, name, text);
    free(text);
    return 0;
}

static int turn_of_notes(const struct disk *disk, uint64_t version, struct buf *turn, struct error *err)
{
    bool any_removal = false;
    char text[32];

    for (const struct note *note = disk->notes; note; note = note->hh.next) {
        if (add_note(turn, note, err) < 0)
            return -1;
        any_removal |= !note->json;
    }
    snprintf(text, sizeof(text), "%llu\n", (unsigned long long)version);
    if (any_removal)
        add_file(turn, VERSION_FILE, text);
    return 0;
}

static int flush(struct disk *disk, uint64_t version, struct error *err)
{
    BUF turn = {0};

    if (turn_of_notes(disk, version, &turn, err) < 0)
        return -1;
    /* A turn that could not be carried out is tried again; it stands in the log already, unless more came to it. */
    if (!disk->is_logged && journal_append(disk->journal, version, turn.data, turn.len, err) < 0)
        return -1;
    disk->is_logged = true;
    return carry_out(disk, turn.data, turn.len, err);
}

int disk_flush(struct disk *disk, uint64_t version, struct error *err)
{
    if (!disk->notes)
        return 0;
    if (flush(disk, version, err) < 0)
        return error_wrap(err, "state folder %s", disk->folder);
    forget_notes(disk);
    disk->is_logged = false;
    if (journal_size(disk->journal) > MAX_LOG)
        (void)!empty_log(disk, NULL); /* the turn is safe; the next one tries again */
    return 0;
}
