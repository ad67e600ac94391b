#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

void store_key_insert(struct store *store, const struct key_row *row)
{
    write_row(store, KEY_INSERT, "tthti", row->user, row->key, row->request, row->jobs, row->created_ms);
}

int store_key_find(struct store *store, const char *user, const char *key,
                   void (*found)(void *ctx, const struct key_row *row), void *ctx, struct error *err)
{
    struct read read = read_begin(store, KEY_GET, "tt", user, key);

    if (read_next(&read)) {
        struct key_row row = {
            .user = column_text(&read, 0),
            .key = column_text(&read, 1),
            .jobs = column_text(&read, 3),
            .created_ms = column_int(&read, 4),
        };

        column_hash(&read, 2, row.request);
        found(ctx, &row);
    }
    return read_end(&read, err);
}

void store_keys_expire(struct store *store, int64_t before_ms)
{
    write_row(store, KEYS_EXPIRE, "i", before_ms);
}
