#include <openssl/sha.h>

#include "store/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

void store_hash(const void *bytes, size_t len, unsigned char out[STORE_HASH_BYTES])
{
    SHA256(bytes, len, out);
}

int64_t store_token_insert(struct store *store, const struct token_row *row)
{
    int n = write_row(store, TOKEN_INSERT, "ttthi", row->name, row->role, row->queues, row->hash, row->created_ms);

    return n ? sqlite3_last_insert_rowid(store->db) : 0;
}

void store_token_delete(struct store *store, int64_t id)
{
    write_row(store, TOKEN_DELETE, "i", id);
}

int store_tokens_each(struct store *store, void (*each)(void *ctx, const struct token_row *row), void *ctx,
                      struct error *err)
{
    struct read read = read_begin(store, TOKENS, "");

    while (read_next(&read)) {
        struct token_row row = {
            .id = column_int(&read, 0),
            .name = column_text(&read, 1),
            .role = column_text(&read, 2),
            .queues = column_text(&read, 3),
            .created_ms = column_int(&read, 5),
        };

        column_hash(&read, 4, row.hash);
        each(ctx, &row);
    }
    return read_end(&read, err);
}
