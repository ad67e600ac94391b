#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

void store_attempt_insert(struct store *store, const struct attempt_row *row)
{
    write_row(store, ATTEMPT_INSERT, "iiitttit", row->job, row->number, row->shape, row->placement, row->chosen,
              row->charges, row->created_ms, row->effective);
}

void store_attempt_recharge(struct store *store, int64_t job, int64_t number, const char *charges)
{
    write_row(store, ATTEMPT_RECHARGE, "iit", job, number, charges);
}

void store_attempt_place(struct store *store, int64_t job, int64_t number, const char *placement)
{
    write_row(store, ATTEMPT_PLACE, "iit", job, number, placement);
}

void store_object_insert(struct store *store, int64_t job, int64_t attempt, const struct object_row *row)
{
    write_row(store, OBJECT_INSERT, "iiittttt", job, attempt, row->position, row->kind, row->ns, row->name, row->body,
              row->planned);
}

void store_objects_delete(struct store *store, int64_t job, int64_t attempt)
{
    write_row(store, OBJECTS_DELETE, "ii", job, attempt);
}

static int load_objects(struct store *store, int64_t job, int64_t number,
                        void (*object)(void *ctx, const struct object_row *row), void *ctx, struct error *err)
{
    struct read read = read_begin(store, OBJECTS, "ii", job, number);

    while (read_next(&read)) {
        struct object_row row = {
            .position = column_int(&read, 0),
            .kind = column_text(&read, 1),
            .ns = column_text(&read, 2),
            .name = column_text(&read, 3),
            .body = column_text(&read, 4),
            .planned = column_text(&read, 5),
        };

        object(ctx, &row);
    }
    return read_end(&read, err);
}

int store_attempt_load(struct store *store, int64_t job, int64_t number,
                       void (*attempt)(void *ctx, const struct attempt_row *row),
                       void (*object)(void *ctx, const struct object_row *row), void *ctx, struct error *err)
{
    struct read read = read_begin(store, ATTEMPT_GET, "ii", job, number);

    if (read_next(&read)) {
        struct attempt_row row = {
            .job = column_int(&read, 0),
            .number = column_int(&read, 1),
            .shape = column_int(&read, 2),
            .placement = column_text(&read, 3),
            .chosen = column_text(&read, 4),
            .charges = column_text(&read, 5),
            .created_ms = column_int(&read, 6),
            .effective = column_text(&read, 7),
        };

        attempt(ctx, &row);
    }
    if (read_end(&read, err) < 0)
        return -1;
    return load_objects(store, job, number, object, ctx, err);
}
