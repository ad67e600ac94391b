#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

void store_usage_put(struct store *store, const struct usage_row *row)
{
    write_row(store, USAGE_PUT, "iititti", row->job, row->attempt, row->resource, row->amount, row->queue, row->user,
              row->from_ms);
}

void store_usage_close(struct store *store, int64_t job, int64_t attempt, int64_t to_ms)
{
    write_row(store, USAGE_CLOSE, "iii", job, attempt, to_ms);
}

int store_usage_each(struct store *store, int64_t from_ms, int64_t to_ms,
                     void (*each)(void *ctx, const struct usage_row *row), void *ctx, struct error *err)
{
    struct read read = read_begin(store, USAGE, "ii", from_ms, to_ms);

    while (read_next(&read)) {
        struct usage_row row = {
            .job = column_int(&read, 0),
            .attempt = column_int(&read, 1),
            .resource = column_text(&read, 2),
            .queue = column_text(&read, 3),
            .user = column_text(&read, 4),
            .amount = column_int(&read, 5),
            .from_ms = column_int(&read, 6),
            .to_ms = column_int(&read, 7),
        };

        each(ctx, &row);
    }
    return read_end(&read, err);
}
