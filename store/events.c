#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

void store_event_insert(struct store *store, const struct event_row *row)
{
    write_row(store, EVENT_INSERT, "iitttt", row->job, row->at_ms, row->type, row->from, row->to, row->detail);
}

int store_events_each(struct store *store, int64_t job, int64_t after, size_t limit,
                      void (*each)(void *ctx, const struct event_row *row), void *ctx, struct error *err)
{
    struct read read = job ? read_begin(store, EVENTS_OF_JOB, "iii", job, after, (int64_t)limit)
                           : read_begin(store, EVENTS, "ii", after, (int64_t)limit);

    while (read_next(&read)) {
        struct event_row row = {
            .id = column_int(&read, 0),
            .job = column_int(&read, 1),
            .at_ms = column_int(&read, 2),
            .type = column_text(&read, 3),
            .from = column_text(&read, 4),
            .to = column_text(&read, 5),
            .detail = column_text(&read, 6),
        };

        each(ctx, &row);
    }
    return read_end(&read, err);
}
