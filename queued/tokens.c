/* Bearer tokens. The text is random, told once and never stored; what is kept is its SHA-256, and a token is recognized
 * by comparing hashes, all of them and each in constant time. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/internal.h"
#include "store/rows.h"

#include "allocator/base/banned.h"

#define TOKEN_PREFIX "qd_"
#define TOKEN_BYTES  32

void tokens_free(struct core *core)
{
    for (size_t i = 0; i < core->n_tokens; i++) {
        free(core->tokens[i].name);
        json_decref(core->tokens[i].queues);
    }
    free(core->tokens);
    core->tokens = NULL;
    core->n_tokens = 0;
}

static void load_token(void *ctx, const struct token_row *row)
{
    struct core *core = ctx;
    struct core_token token = {.id = row->id, .name = mem_strdup(row->name), .created_ms = row->created_ms};

    if (!role_find(row->role, &token.role))
        token.role = ROLE_NONE;
    token.queues = row->queues ? json_loads(row->queues, 0, NULL) : NULL;
    memcpy(token.hash, row->hash, sizeof(token.hash));
    core->tokens = mem_resize(core->tokens, core->n_tokens + 1, sizeof(*core->tokens));
    core->tokens[core->n_tokens++] = token;
}

int tokens_load(struct core *core, struct error *err)
{
    tokens_free(core);
    return store_tokens_each(core->options.store, load_token, core, err);
}

int core_authenticate(struct core *core, const char *token, struct caller *out, struct error *err)
{
    unsigned char hash[STORE_HASH_BYTES];
    const struct core_token *found = NULL;

    store_hash(token, strlen(token), hash);
    for (size_t i = 0; i < core->n_tokens; i++)
        if (CRYPTO_memcmp(core->tokens[i].hash, hash, sizeof(hash)) == 0)
            found = &core->tokens[i];
    if (!found)
        return error_set(err, ERR_DENIED, "the token is not known");
    *out = (struct caller){.role = found->role, .name = found->name, .queues = found->queues};
    return 0;
}

json_t *token_view(const struct core_token *token)
{
    return json_pack("{s:o, s:s, s:s, s:o, s:o}", "id", json_sprintf("%lld", (long long)token->id), "name", token->name,
                     "role", role_name(token->role), "queues", token->queues ? json_incref(token->queues) : json_null(),
                     "createdAt", when_view(token->created_ms));
}

json_t *core_tokens(struct core *core, const struct caller *caller, struct error *err)
{
    json_t *items;

    if (caller_needs(caller, ROLE_ADMIN, err) < 0)
        return NULL;
    items = json_array();
    for (size_t i = 0; i < core->n_tokens; i++)
        json_array_append_new(items, token_view(&core->tokens[i]));
    return json_pack("{s:o}", "items", items);
}

/* ---- commands ---- */

struct token_request {
    const char *name;
    enum role role;
    const json_t *queues;
};

static int check_queues(const struct core *core, const json_t *queues, struct error *err)
{
    const json_t *name;
    size_t i;

    if (queues && !json_is_array(queues))
        return error_field(err, "queues", "must be a list of queue names");
    json_array_foreach(queues, i, name) if (!json_is_string(name) ||
                                            book_find_queue(core->book, json_string_value(name)) == SIZE_MAX)
    {
        error_set(err, ERR_INVALID, "there is no such queue");
        return error_in(err, "queues[%zu]", i);
    }
    return 0;
}

static int read_request(const struct core *core, const json_t *request, struct token_request *out, struct error *err)
{
    const char *role = json_string_value(json_object_get(request, "role"));

    out->name = json_string_value(json_object_get(request, "name"));
    out->queues = json_object_get(request, "queues");
    if (json_is_null(out->queues))
        out->queues = NULL;
    if (!out->name || strlen(out->name) == 0 || strlen(out->name) > 200)
        return error_field(err, "name", "must be a text of 1 to 200 bytes: whom the token is for");
    if (!role || !role_find(role, &out->role) || out->role == ROLE_NONE)
        return error_field(err, "role", "must be viewer, submitter, queue-admin or admin");
    return check_queues(core, out->queues, err);
}

static char *random_text(void)
{
    unsigned char bytes[TOKEN_BYTES];
    BUF text = {0};

    INVARIANT(getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
    buf_adds(&text, TOKEN_PREFIX);
    for (size_t i = 0; i < sizeof(bytes); i++)
        buf_addf(&text, "%02x", bytes[i]);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return buf_take(&text);
}

static json_t *create(struct core *core, const struct token_request *request, struct error *err)
{
    char *text = random_text(), *queues = request->queues ? json_dumps(request->queues, JSON_COMPACT) : NULL;
    struct token_row row = {
        .name = request->name, .role = role_name(request->role), .queues = queues, .created_ms = core_now_ms(core)};
    json_t *view = NULL;

    store_hash(text, strlen(text), row.hash);
    row.id = store_token_insert(core->options.store, &row);
    if (row.id == 0) {
        error_set(err, ERR_UNAVAILABLE, "nothing can be recorded at present");
    } else {
        load_token(core, &row);
        view = token_view(&core->tokens[core->n_tokens - 1]);
        json_object_set_new(view, "token", json_string(text));
    }
    free(queues);
    OPENSSL_cleanse(text, strlen(text));
    free(text);
    return view;
}

void core_create_token(struct core *core, const struct caller *caller, const json_t *request, core_reply_fn *reply,
                       void *ctx)
{
    struct token_request wanted;
    struct error err = {0};
    json_t *view = NULL;

    if (caller_needs(caller, ROLE_ADMIN, &err) == 0 && core_check_writable(core, &err) == 0 &&
        read_request(core, request, &wanted, &err) == 0)
        view = create(core, &wanted, &err);
    if (view)
        reply_with(core, reply, ctx, view);
    else
        reply_error(core, reply, ctx, &err);
}

static struct core_token *find_token(struct core *core, const char *id, struct error *err)
{
    for (size_t i = 0; i < core->n_tokens; i++) {
        char text[24];

        snprintf(text, sizeof(text), "%lld", (long long)core->tokens[i].id);
        if (strcmp(text, id) == 0)
            return &core->tokens[i];
    }
    error_set(err, ERR_NOT_FOUND, "there is no token %.40s", id);
    return NULL;
}

void core_delete_token(struct core *core, const struct caller *caller, const char *id, core_reply_fn *reply, void *ctx)
{
    struct error err = {0};
    struct core_token *token = NULL;

    if (caller_needs(caller, ROLE_ADMIN, &err) == 0 && core_check_writable(core, &err) == 0)
        token = find_token(core, id, &err);
    if (!token) {
        reply_error(core, reply, ctx, &err);
        return;
    }
    store_token_delete(core->options.store, token->id);
    reply_with(core, reply, ctx, token_view(token));
    free(token->name);
    json_decref(token->queues);
    memmove(token, token + 1, (size_t)(&core->tokens[core->n_tokens] - (token + 1)) * sizeof(*token));
    core->n_tokens--;
}
