#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

void store_queue_put(struct store *store, const struct queue_row *row)
{
    write_row(store, QUEUE_PUT, "ttitt", row->name, row->parent, row->weight, row->state, row->placement);
}

void store_queue_delete(struct store *store, const char *name)
{
    write_row(store, QUEUE_DELETE, "t", name);
}

void store_quota_put(struct store *store, const struct quota_row *row)
{
    write_row(store, QUOTA_PUT, "ttill", row->queue, row->resource, row->nominal, row->borrowing, row->lending);
}

void store_quotas_delete(struct store *store, const char *queue)
{
    write_row(store, QUOTAS_DELETE, "t", queue);
}

void store_resource_put(struct store *store, const struct resource_row *row)
{
    write_row(store, RESOURCE_PUT, "tttt", row->name, row->device_class, row->selector, row->capacity);
}

void store_priority_put(struct store *store, const struct priority_row *row)
{
    write_row(store, PRIORITY_PUT, "ti", row->name, row->value);
}

static void visit_queue(const struct queue_visitor *visitor, const struct read *read)
{
    visitor->queue(visitor->ctx, &(struct queue_row){column_text(read, 0), column_text(read, 1), column_int(read, 2),
                                                     column_text(read, 3), column_text(read, 4)});
}

static void visit_quota(const struct queue_visitor *visitor, const struct read *read)
{
    visitor->quota(visitor->ctx, &(struct quota_row){column_text(read, 0), column_text(read, 1), column_int(read, 2),
                                                     column_limit(read, 3), column_limit(read, 4)});
}

static void visit_resource(const struct queue_visitor *visitor, const struct read *read)
{
    visitor->resource(visitor->ctx, &(struct resource_row){column_text(read, 0), column_text(read, 1),
                                                           column_text(read, 2), column_text(read, 3)});
}

static void visit_priority(const struct queue_visitor *visitor, const struct read *read)
{
    visitor->priority(visitor->ctx, &(struct priority_row){column_text(read, 0), column_int(read, 1)});
}

int store_queues_each(struct store *store, const struct queue_visitor *visitor, struct error *err)
{
    static const struct {
        enum statement statement;
        void (*visit)(const struct queue_visitor *visitor, const struct read *read);
    } kinds[] = {
        {RESOURCES, visit_resource}, {PRIORITIES, visit_priority}, {QUEUES, visit_queue}, {QUOTAS, visit_quota}};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct read read = read_begin(store, kinds[i].statement, "");

        while (read_next(&read))
            kinds[i].visit(visitor, &read);
        if (read_end(&read, err) < 0)
            return -1;
    }
    return 0;
}
