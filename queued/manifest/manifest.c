#include "queued/manifest/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/manifest/yaml_internal.h"

#include "allocator/base/banned.h"

/* ---- filled by the readers ---- */

int manifest_fail(const struct manifest *manifest, enum err_code code, size_t line, size_t column, struct error *err,
                  const char *fmt, ...)
{
    char words[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    if (line == 0)
        return error_set(err, code, "%s: %s", manifest->name, words);
    return error_set(err, code, "%s:%zu:%zu: %s", manifest->name, line, column, words);
}

int manifest_count(struct manifest *manifest, const struct manifest_limits *limits, size_t n, size_t line,
                   size_t column, struct error *err)
{
    if (n > limits->max_nodes || manifest->n_nodes > limits->max_nodes - n)
        return manifest_fail(manifest, ERR_LIMIT, line, column, err, "more than %zu values", limits->max_nodes);
    manifest->n_nodes += n;
    return 0;
}

struct mark *mark_new(struct manifest *manifest, size_t line, size_t column)
{
    struct mark *mark = arena_new(&manifest->arena, struct mark);

    mark->line = line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
    mark->column = column > UINT32_MAX ? UINT32_MAX : (uint32_t)column;
    return mark;
}

void mark_add(struct mark *parent, struct mark *child)
{
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->children = child;
    parent->last = child;
}

static const struct mark *mark_member(const struct mark *parent, const char *key, size_t len)
{
    for (const struct mark *child = parent->children; child; child = child->next)
        if (child->key && strlen(child->key) == len && memcmp(child->key, key, len) == 0)
            return child;
    return NULL;
}

int manifest_member(struct manifest *manifest, struct node *object, const char *key, struct node *member,
                    struct error *err)
{
    if (json_object_get(object->value, key)) {
        const struct mark *first = mark_member(object->mark, key, strlen(key));

        json_decref(TAKE(member->value));
        manifest->duplicate = true;
        return manifest_fail(manifest, ERR_INVALID, member->mark->line, member->mark->column, err,
                             "key \"%.80s\" is set twice, first in line %u", key, first ? first->line : 0);
    }
    member->mark->key = arena_strdup(&manifest->arena, key);
    mark_add(object->mark, member->mark);
    if (member->height + 1 > object->height)
        object->height = member->height + 1;
    INVARIANT(json_object_set_new_nocheck(object->value, key, TAKE(member->value)) == 0);
    return 0;
}

int manifest_add(struct manifest *manifest, const struct manifest_limits *limits, struct node *document,
                 struct error *err)
{
    json_t *value = TAKE(document->value);

    if (json_is_null(value)) {
        json_decref(value);
        return 0;
    }
    if (manifest->n_entries >= limits->max_documents) {
        json_decref(value);
        return manifest_fail(manifest, ERR_LIMIT, document->mark->line, document->mark->column, err,
                             "more than %zu documents", limits->max_documents);
    }
    mem_grow(manifest->entries, manifest->n_entries, manifest->cap_entries);
    manifest->entries[manifest->n_entries++] = (struct manifest_entry){value, document->mark};
    return 0;
}

json_t *manifest_text(const char *bytes, size_t len)
{
    return memchr(bytes, '\0', len) ? NULL : json_stringn(bytes, len);
}

static void manifest_clear(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->n_entries; i++)
        json_decref(manifest->entries[i].value);
    manifest->n_entries = 0;
    manifest->n_nodes = 0;
    arena_release(&manifest->arena);
}

/* ---- parsing ---- */

/* JSON first where the text looks like it: its keys and escapes go beyond what the YAML reader takes (surrogate pairs,
 * long keys). What is no JSON after all may be flow-style YAML, whose message then counts. */
static int manifest_fill(struct manifest *manifest, const char *bytes, size_t len, const struct manifest_limits *limits,
                         struct error *err)
{
    const char *start = bytes, *end = bytes + len;
    struct error json_err = {0};

    while (start < end && strchr(" \t\r\n", *start) && *start)
        start++;
    if (start < end && (*start == '{' || *start == '[')) {
        if (json_stream_read(manifest, bytes, len, limits, &json_err) == 0)
            return 0;
        if (json_err.code == ERR_LIMIT || manifest->duplicate) {
            if (err)
                *err = json_err;
            return -1;
        }
        manifest_clear(manifest);
    }
    return yaml_stream_read(manifest, bytes, len, limits, err);
}

/* The readers recurse. */
#define DEPTH_MAX 1000

int manifest_parse(const char *name, const char *bytes, size_t len, const struct manifest_limits *limits,
                   struct manifest **out, struct error *err)
{
    CLEANUP(manifest) *manifest = mem_new(struct manifest);
    struct manifest_limits safe = *limits;

    if (safe.max_depth > DEPTH_MAX)
        safe.max_depth = DEPTH_MAX;
    manifest->name = mem_strdup(name);
    arena_init(&manifest->arena);
    if (len > limits->max_bytes)
        return manifest_fail(manifest, ERR_LIMIT, 0, 0, err, "larger than %zu bytes", limits->max_bytes);
    if (len >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return manifest_fail(manifest, ERR_INVALID, 0, 0, err, "is UTF-16; save it as UTF-8");
    if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
        bytes += 3;
        len -= 3;
    }
    if (manifest_fill(manifest, bytes, len, &safe, err) < 0)
        return -1;
    *out = TAKE(manifest);
    return 0;
}

static void file_closep(FILE **file)
{
    if (*file && *file != stdin)
        fclose(*file);
}

static int file_read(const char *path, const char *name, size_t max_bytes, struct buf *out, struct error *err)
{
    __attribute__((cleanup(file_closep))) FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char chunk[1 << 14];
    size_t n;

    if (!file)
        return error_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", name, strerror(errno));
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        buf_add(out, chunk, n);
        if (out->len > max_bytes)
            return error_set(err, ERR_LIMIT, "%s: larger than %zu bytes", name, max_bytes);
    }
    if (ferror(file))
        return error_set(err, ERR_IO, "%s: %s", name, strerror(errno));
    return 0;
}

int manifest_read_file(const char *path, const struct manifest_limits *limits, struct manifest **out, struct error *err)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    BUF text = {0};

    if (file_read(path, name, limits->max_bytes, &text, err) < 0)
        return -1;
    if (manifest_parse(name, buf_str(&text), text.len, limits, out, err) < 0)
        return -1;
    (*out)->text_len = text.len;
    (*out)->text = buf_take(&text);
    return 0;
}

void manifest_free(struct manifest *manifest)
{
    if (!manifest)
        return;
    manifest_clear(manifest);
    free(manifest->entries);
    free(manifest->name);
    free(manifest->text);
    free(manifest);
}

/* ---- reading ---- */

const char *manifest_name(const struct manifest *manifest)
{
    return manifest->name;
}

size_t manifest_n_documents(const struct manifest *manifest)
{
    return manifest->n_entries;
}

json_t *manifest_document(const struct manifest *manifest, size_t i)
{
    INVARIANT(i < manifest->n_entries);
    return manifest->entries[i].value;
}

static const struct mark *mark_index(const struct mark *parent, const char *digits, size_t len)
{
    const struct mark *child = parent->children;
    size_t index = 0;

    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9' || index > UINT32_MAX)
            return NULL;
        index = index * 10 + (size_t)(digits[i] - '0');
    }
    while (child && index-- > 0)
        child = child->next;
    return child && !child->key ? child : NULL;
}

/* "[3]", "[a.b/c]" or "[\"a.b/c\"]" */
static const struct mark *step_bracket(const struct mark *at, const char **path)
{
    const char *start = *path + 1, *end = strchr(start, ']');
    const struct mark *child;
    size_t len;

    if (!end)
        return NULL;
    *path = end + 1;
    len = (size_t)(end - start);
    if (len >= 2 && start[0] == '"' && start[len - 1] == '"')
        return mark_member(at, start + 1, len - 2);
    child = mark_index(at, start, len);
    return child ? child : mark_member(at, start, len);
}

/* A key may hold dots itself ("nvidia.com/gpu"): the longest one that fits wins. */
static const struct mark *step_key(const struct mark *at, const char **path)
{
    const struct mark *best = NULL;
    size_t best_len = 0;

    *path += **path == '.';
    for (const struct mark *child = at->children; child; child = child->next) {
        size_t len = child->key ? strlen(child->key) : 0;

        if (len == 0 || strncmp(*path, child->key, len) != 0 || !strchr(".[", (*path)[len]))
            continue; /* strchr also finds the end of the path */
        if (!best || len > best_len) {
            best = child;
            best_len = len;
        }
    }
    *path += best_len;
    return best;
}

struct manifest_position manifest_position(const struct manifest *manifest, size_t i, const char *path)
{
    const struct mark *at, *next;

    if (i >= manifest->n_entries)
        return (struct manifest_position){1, 1};
    at = manifest->entries[i].mark;
    while (*path) {
        next = *path == '[' ? step_bracket(at, &path) : step_key(at, &path);
        if (!next)
            break;
        at = next;
    }
    return (struct manifest_position){at->line, at->column};
}

size_t manifest_line(const struct manifest *manifest, size_t i, const char *path)
{
    return manifest_position(manifest, i, path).line;
}

struct str manifest_source_line(const struct manifest *manifest, size_t line)
{
    const char *start = manifest->text, *end = manifest->text + manifest->text_len, *stop;

    if (!start || line == 0)
        return (struct str){NULL, 0};
    while (--line > 0) {
        start = memchr(start, '\n', (size_t)(end - start));
        if (!start++)
            return (struct str){NULL, 0};
    }
    stop = memchr(start, '\n', (size_t)(end - start));
    if (!stop)
        stop = end;
    if (stop > start && stop[-1] == '\r')
        stop--;
    return (struct str){start, (size_t)(stop - start)};
}
