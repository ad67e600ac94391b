#include "test/store/faulty_vfs.h"

#include <sqlite3.h>
#include <string.h>

/* A file of ours: SQLite's own file object follows behind it in the same memory. */
struct faulty_file {
    sqlite3_file base;
    struct faults *faults;
    sqlite3_io_methods methods; /* the real ones with three replaced */
};

static struct sqlite3_vfs vfs; /* the one mutable static: SQLite wants its file systems to live for ever */

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((struct faulty_file *)file + 1);
}

static bool fails(sqlite3_file *file)
{
    struct faults *faults = ((struct faulty_file *)file)->faults;

    if (faults->countdown < 0)
        return false;
    if (faults->countdown > 0) {
        faults->countdown--;
        return false;
    }
    if (!faults->stays)
        faults->countdown = -1;
    faults->n_failed++;
    return true;
}

static int failure(sqlite3_file *file)
{
    return ((struct faulty_file *)file)->faults->result;
}

static int faulty_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
    return fails(file) ? failure(file) : real_of(file)->pMethods->xWrite(real_of(file), bytes, n, at);
}
static int faulty_sync(sqlite3_file *file, int flags)
{
    return fails(file) ? failure(file) : real_of(file)->pMethods->xSync(real_of(file), flags);
}
static int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return fails(file) ? failure(file) : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

/* The rest is handed on as it is. */
static int pass_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}
static int pass_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}
static int pass_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}
static int pass_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}
static int pass_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}
static int pass_reserved(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}
static int pass_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static int pass_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}
static int pass_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}
static int pass_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}
static int pass_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
static void pass_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}
static int pass_shm_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static int faulty_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *file, int flags, int *out_flags)
{
    static const sqlite3_io_methods methods = {
        2,           pass_close,   pass_read,     faulty_write,     faulty_truncate, faulty_sync,
        pass_size,   pass_lock,    pass_unlock,   pass_reserved,    pass_control,    pass_sector,
        pass_traits, pass_shm_map, pass_shm_lock, pass_shm_barrier, pass_shm_unmap,  NULL,
        NULL,
    };
    struct faulty_file *ours = (struct faulty_file *)file;
    sqlite3_vfs *real = ((sqlite3_vfs **)self->pAppData)[0];
    int status = real->xOpen(real, name, real_of(file), flags, out_flags);

    ours->faults = ((void **)self->pAppData)[1];
    ours->methods = methods;
    file->pMethods = status == SQLITE_OK ? &ours->methods : NULL;
    return status;
}

void faulty_vfs_install(struct faults *faults)
{
    static void *data[2];
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);

    data[0] = real;
    data[1] = faults;
    vfs = *real;
    vfs.zName = "faulty";
    vfs.pNext = NULL;
    vfs.szOsFile = (int)sizeof(struct faulty_file) + real->szOsFile;
    vfs.pAppData = data;
    vfs.xOpen = faulty_open;
    sqlite3_vfs_register(&vfs, 1);
}
