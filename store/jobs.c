#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

int64_t store_job_insert(struct store *store, const struct job_row *row)
{
    const struct job_status *s = &row->status;
    int n = write_row(store, JOB_INSERT,
                      "tttti"
                      "ttttiiiiiiii",
                      row->name, row->ns, row->queue, row->user, row->submitted_ms, row->spec, s->state, s->ending,
                      s->reason, s->priority, s->attempt, s->retries_left, s->failures, s->not_before_ms, s->started_ms,
                      s->ended_ms, s->exit_code);

    return n ? sqlite3_last_insert_rowid(store->db) : 0;
}

void store_job_save(struct store *store, int64_t id, const char *from, const struct job_status *s)
{
    int n = write_row(store, JOB_SAVE,
                      "it"
                      "tttiiiiiiii",
                      id, from, s->state, s->ending, s->reason, s->priority, s->attempt, s->retries_left, s->failures,
                      s->not_before_ms, s->started_ms, s->ended_ms, s->exit_code);

    if (n == 0 && !store->failure.code)
        error_set(&store->failure, ERR_CONFLICT, "job %lld is not %s", (long long)id, from);
}

void store_job_delete(struct store *store, int64_t id)
{
    write_row(store, JOB_DELETE, "i", id);
}

static struct job_row job_row_of(const struct read *read)
{
    return (struct job_row){
        .id = column_int(read, 0),
        .name = column_text(read, 1),
        .ns = column_text(read, 2),
        .queue = column_text(read, 3),
        .user = column_text(read, 4),
        .submitted_ms = column_int(read, 5),
        .spec = column_text(read, 6),
        .status = {.state = column_text(read, 7),
                   .ending = column_text(read, 8),
                   .reason = column_text(read, 9),
                   .priority = column_int(read, 10),
                   .attempt = column_int(read, 11),
                   .retries_left = column_int(read, 12),
                   .failures = column_int(read, 13),
                   .not_before_ms = column_int(read, 14),
                   .started_ms = column_int(read, 15),
                   .ended_ms = column_int(read, 16),
                   .exit_code = column_int(read, 17)},
    };
}

int store_jobs_each(struct store *store, void (*each)(void *ctx, const struct job_row *row), void *ctx,
                    struct error *err)
{
    struct read read = read_begin(store, JOBS, "");

    while (read_next(&read)) {
        struct job_row row = job_row_of(&read);

        each(ctx, &row);
    }
    return read_end(&read, err);
}

void store_dependency_add(struct store *store, int64_t job, int64_t depends_on)
{
    write_row(store, DEPENDENCY_ADD, "ii", job, depends_on);
}

void store_dependency_met(struct store *store, int64_t depends_on)
{
    write_row(store, DEPENDENCY_MET, "i", depends_on);
}

int store_dependencies_each(struct store *store, void (*each)(void *ctx, int64_t job, int64_t depends_on), void *ctx,
                            struct error *err)
{
    struct read read = read_begin(store, DEPENDENCIES, "");

    while (read_next(&read))
        each(ctx, column_int(&read, 0), column_int(&read, 1));
    return read_end(&read, err);
}
