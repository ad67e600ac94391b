/* The state folder: one file per object, "<Kind>_<namespace>_<name>.json", and `version`, the counter behind uids and
 * resourceVersions.
 *
 * What a turn has changed becomes durable as one. Every file is written under a temporary name, its pages are sent off
 * at once and then waited for one by one (most find nothing left to wait for). Then a list of what is to be renamed and
 * removed, `turn`, is put in place: from that moment on the turn has happened, and a server that comes up carries out
 * whatever of the list is left. Without the list nothing has happened, and the temporary files are swept. A turn with
 * one change needs no list. Nobody is told of a change before all this.
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

#include "allocator/base/banned.h"

#define MAX_FILE_BYTES ((off_t)64 << 20)
#define MAX_NAME       200 /* of a file; longer keys are hashed */
#define BATCH          128 /* files open at a time */
#define VERSION_FILE   "version"
#define TURN_FILE      "turn" /* lines "put NAME" and "del NAME" */

struct note {
    char *key;
    json_t *json; /* NULL: remove */
    UT_hash_handle hh;
};
struct disk {
    char *folder;
    int dir, lock;
    struct note *notes; /* in the order of their first mention */
    bool has_turn;      /* a list that could not be carried out */
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

/* Carry out what is left of a list; what is done already is not there any more. */
static void recover_turn(const struct disk *disk)
{
    size_t len;
    char *list = read_all(disk->dir, TURN_FILE, &len, NULL), *rest = list, *line, temporary[300];

    while (list && (line = strsep(&rest, "\n"))) {
        const char *name = strlen(line) > 4 ? line + 4 : "";

        if (!*name || strchr(name, '/') || strlen(name) > 255)
            continue;
        name_with(name, ".tmp", temporary);
        if (strncmp(line, "put ", 4) == 0)
            (void)renameat(disk->dir, temporary, disk->dir, name);
        else if (strncmp(line, "del ", 4) == 0)
            (void)unlinkat(disk->dir, name, 0);
    }
    if (list && fsync(disk->dir) == 0)
        (void)unlinkat(disk->dir, TURN_FILE, 0);
    free(list);
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

    recover_turn(disk);
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
}

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

/* Write the temporary file of `name` and send its pages off; the descriptor, or -1. */
static int write_begin(const struct disk *disk, const char *name, const char *bytes, size_t len, struct error *err)
{
    char temporary[300];
    int fd;

    name_with(name, ".tmp", temporary);
    fd = openat(disk->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0 && write_all(fd, bytes, len) == 0) {
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* only a hint: fsync decides */
        return fd;
    }
    io_error(err, "write", temporary);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int write_end(int fd, const char *name, struct error *err)
{
    int rc = fsync(fd);

    if (close(fd) < 0 || rc < 0)
        return io_error(err, "write", name);
    return 0;
}

static int write_whole(const struct disk *disk, const char *name, const char *bytes, size_t len, struct error *err)
{
    int fd = write_begin(disk, name, bytes, len, err);

    return fd < 0 ? -1 : write_end(fd, name, err);
}

static int begin_note(const struct disk *disk, const struct note *note, struct error *err)
{
    char name[256], *text = json_dumps(note->json, JSON_INDENT(1));
    int fd = -1;

    file_name(note->key, name);
    if (text)
        fd = write_begin(disk, name, text, strlen(text), err);
    else
        error_set(err, ERR_INVALID, "%s cannot be written as JSON", note->key);
    free(text);
    return fd;
}

/* Write the temporary files of up to BATCH objects from *at on; *at moves behind them. */
static int write_batch(const struct disk *disk, struct note **at, struct error *err)
{
    int fds[BATCH], rc = 0;
    size_t n = 0;

    for (; *at && n < BATCH && rc == 0; *at = (*at)->hh.next) {
        if (!(*at)->json)
            continue;
        fds[n] = begin_note(disk, *at, err);
        if (fds[n] < 0)
            rc = -1;
        else
            n++;
    }
    for (size_t i = 0; i < n; i++)
        if (write_end(fds[i], "an object", rc == 0 ? err : NULL) < 0)
            rc = -1;
    return rc;
}

static bool any_removal(const struct disk *disk)
{
    for (const struct note *note = disk->notes; note; note = note->hh.next)
        if (!note->json)
            return true;
    return false;
}

static int write_temporaries(const struct disk *disk, uint64_t version, struct error *err)
{
    struct note *at = disk->notes;
    char text[32];

    while (at)
        if (write_batch(disk, &at, err) < 0)
            return -1;
    snprintf(text, sizeof(text), "%llu\n", (unsigned long long)version);
    return any_removal(disk) ? write_whole(disk, VERSION_FILE, text, strlen(text), err) : 0;
}

static int rename_temporary(const struct disk *disk, const char *name, struct error *err)
{
    char temporary[300];

    name_with(name, ".tmp", temporary);
    return renameat(disk->dir, temporary, disk->dir, name) < 0 ? io_error(err, "rename", temporary) : 0;
}

static int sync_folder(const struct disk *disk, struct error *err)
{
    return fsync(disk->dir) < 0 ? io_error(err, "sync the state folder", disk->folder) : 0;
}

static int write_turn(struct disk *disk, struct error *err)
{
    char name[256];
    BUF list = {0};

    if (any_removal(disk))
        buf_adds(&list, "put " VERSION_FILE "\n");
    for (const struct note *note = disk->notes; note; note = note->hh.next) {
        file_name(note->key, name);
        buf_addf(&list, "%s %s\n", note->json ? "put" : "del", name);
    }
    if (write_whole(disk, TURN_FILE, list.data, list.len, err) < 0 || sync_folder(disk, err) < 0)
        return -1;
    disk->has_turn = true;
    return rename_temporary(disk, TURN_FILE, err) < 0 ? -1 : sync_folder(disk, err);
}

static int carry_out(const struct disk *disk, struct error *err)
{
    char name[256];

    if (any_removal(disk) && rename_temporary(disk, VERSION_FILE, err) < 0)
        return -1;
    for (const struct note *note = disk->notes; note; note = note->hh.next) {
        file_name(note->key, name);
        if (note->json && rename_temporary(disk, name, err) < 0)
            return -1;
        if (!note->json && unlinkat(disk->dir, name, 0) < 0 && errno != ENOENT)
            return io_error(err, "remove", name);
    }
    return sync_folder(disk, err);
}

/* A list that was not carried out whole must not meet the temporary files of the next try. */
static int drop_turn(struct disk *disk, struct error *err)
{
    if (!disk->has_turn)
        return 0;
    if (unlinkat(disk->dir, TURN_FILE, 0) < 0 && errno != ENOENT)
        return io_error(err, "remove", TURN_FILE);
    disk->has_turn = false;
    return 0;
}

static int flush(struct disk *disk, uint64_t version, struct error *err)
{
    bool is_single = HASH_COUNT(disk->notes) == 1;

    if (disk->has_turn && (drop_turn(disk, err) < 0 || sync_folder(disk, err) < 0))
        return -1;
    if (write_temporaries(disk, version, err) < 0)
        return -1;
    if (!is_single && write_turn(disk, err) < 0)
        return -1;
    if (carry_out(disk, err) < 0)
        return -1;
    return drop_turn(disk, err); /* reaches the disk with the next turn; until then it says what is so already */
}

int disk_flush(struct disk *disk, uint64_t version, struct error *err)
{
    if (!disk->notes)
        return 0;
    if (flush(disk, version, err) < 0)
        return error_wrap(err, "state folder %s", disk->folder);
    forget_notes(disk);
    return 0;
}
