/* Any bytes as what a client sends: head, target, chunks, body. Whatever is accepted must hold its promises: all text
 * of a head lies within it, decoded text is free of control characters, and the pieces in which bytes arrive change
 * nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/compiler.h"
#include "allocator/base/invariant.h"
#include "api/body.h"
#include "api/http.h"
#include "api/routes.h"
#include "api/uri.h"
#include "queued/manifest/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lies_within(struct str text, struct str bytes)
{
    return text.ptr >= bytes.ptr && text.len <= bytes.len && text.ptr <= bytes.ptr + bytes.len - text.len;
}

static void check_text(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        INVARIANT(*c >= 0x20 && *c != 0x7f);
}

static void try_target(struct str target)
{
    const char *args[ROUTE_ARGS_MAX];
    struct arena arena = {0};
    struct error err = {0};
    struct uri uri;
    BUF allow = {0};

    if (uri_parse(target, &arena, &uri, &err) == 0) {
        for (size_t i = 0; i < uri.n_segments; i++)
            check_text(uri.segments[i]);
        for (size_t i = 0; i < uri.n_params; i++) {
            check_text(uri.params[i].name);
            check_text(uri.params[i].value);
            INVARIANT(uri_param_find(&uri, uri.params[i].name) == uri.params[i].value);
        }
        (void)route_find(STR("GET"), &uri, args, &allow);
    } else {
        INVARIANT(err.code == ERR_NOT_FOUND || err.code == ERR_INVALID);
    }
    arena_release(&arena);
}

static size_t try_head(struct str bytes)
{
    size_t scanned = 0, whole = http_head_length(bytes, &scanned), stepped = 0;
    struct http_refusal why = {0};
    struct http_head head;

    scanned = 0;
    for (size_t n = 0; n < bytes.len && !stepped; n++)
        stepped = http_head_length((struct str){bytes.ptr, n + 1}, &scanned);
    INVARIANT(stepped == whole);
    if (whole == 0)
        return 0;
    if (http_head_parse((struct str){bytes.ptr, whole}, &head, &why) < 0) {
        INVARIANT(why.status >= 400 && why.detail);
        return whole;
    }
    INVARIANT(lies_within(head.method, bytes) && head.target.len > 0);
    INVARIANT(!head.is_chunked || head.content_length == 0);
    for (size_t i = 0; i < head.n_headers; i++)
        INVARIANT(lies_within(head.headers[i].name, bytes) && lies_within(head.headers[i].value, bytes));
    try_target(head.target);
    return whole;
}

static enum http_progress decode(struct str bytes, size_t piece, struct buf *out)
{
    enum http_progress progress = HTTP_MORE;
    struct http_chunks chunks = {0};
    struct http_refusal why = {0};
    size_t used;

    for (size_t at = 0; at < bytes.len && progress == HTTP_MORE; at += used) {
        size_t n = bytes.len - at < piece ? bytes.len - at : piece;

        progress = http_chunks_decode(&chunks, (struct str){bytes.ptr + at, n}, 4096, out, &used, &why);
        INVARIANT(used > 0 && used <= n);
    }
    INVARIANT(out->len <= 4096);
    return progress;
}

static void try_chunks(struct str bytes)
{
    BUF whole = {0};
    BUF single = {0};

    INVARIANT(decode(bytes, SIZE_MAX, &whole) == decode(bytes, 1, &single));
    INVARIANT(strcmp(buf_str(&whole), buf_str(&single)) == 0);
}

static void try_body(struct str bytes, enum body_type type)
{
    struct manifest *manifest = NULL;
    json_t *documents = NULL;
    struct error err = {0};

    if (body_parse_documents(bytes, type, &documents, &manifest, &err) == 0)
        INVARIANT(json_array_size(documents) > 0);
    else
        INVARIANT(!documents && !manifest && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
    json_decref(documents);
    manifest_free(manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    size_t head;

    if (size == 0)
        return 0;
    head = try_head(bytes);
    bytes.ptr += head;
    bytes.len -= head;
    if (bytes.len == 0)
        return 0;
    try_target(bytes);
    try_chunks(bytes);
    try_body(bytes, BODY_TYPE_JSON);
    try_body(bytes, BODY_TYPE_YAML);
    return 0;
}
