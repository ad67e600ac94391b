/* How the bytes are cut: a scanner that knows strings, escapes and brackets finds the end of one JSON value, whatever
 * pieces it comes in. A watch is a row of such values. Of a list the members of the top-level object are walked by a
 * small machine:
 *
 *   BEGIN '{' ─► KEY "…" ─► COLON ':' ─► VALUE ─────────────────────────► NEXT ',' ─► KEY    '}' ─► AFTER
 *                                          └─ "items": '[' ─► ITEM ─► ITEM_NEXT ',' ─► ITEM    ']' ─► NEXT
 *
 * Only an item, the metadata and a key are kept, each until it is complete; whatever else a list holds passes by.
 * jansson is the judge of what was kept; the scanner itself only has to find the same end for every valid text. */
#include "queued/cluster/kube/split.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/mem.h"
#include "allocator/base/str.h"
#include "queued/cluster/kube/mend.h"
#include "queued/cluster/kube/skim.h"

#include "allocator/base/banned.h"

#define DEFAULT_ITEM_BYTES ((size_t)4 << 20)
#define DEFAULT_DEPTH      64
#define MAX_KEY_BYTES      1024
#define MAX_METADATA_BYTES ((size_t)64 << 10) /* holds a continue token */
#define MAX_SCALAR_BYTES   4096

enum at {
    AT_BEGIN,
    AT_KEY_OR_END,
    AT_KEY,
    AT_COLON,
    AT_VALUE,
    AT_NEXT,
    AT_ITEM_OR_END,
    AT_ITEM,
    AT_ITEM_NEXT,
    AT_AFTER,
    AT_COUNT
};

/* What the value at hand is to us. */
enum part { PART_KEY, PART_ITEM, PART_METADATA, PART_OTHER, PART_COUNT };

/* The inside of one value. */
struct scanner {
    size_t depth;
    char *closers; /* what closes each open bracket, for max_depth of them */
    size_t len;    /* bytes of a scalar */
    bool is_begun, in_string, is_escaped, is_scalar, is_too_deep;
};

struct split {
    struct split_options options;
    enum at at;
    enum part part; /* of the value at hand, while `scanning` */
    bool is_scanning, has_failed, has_items, has_metadata;
    struct scanner scan;
    struct buf kept;
    struct error why; /* code set: the item at hand is passed over, for this reason */
    char key[16];     /* of the member at hand; "" when it is none that we know */
    json_t *metadata;
};

struct split *split_new(const struct split_options *options)
{
    struct split *split = mem_new(struct split);

    split->options = *options;
    if (!split->options.max_item_bytes)
        split->options.max_item_bytes = DEFAULT_ITEM_BYTES;
    if (!split->options.max_depth)
        split->options.max_depth = DEFAULT_DEPTH;
    split->scan.closers = mem_array(char, split->options.max_depth);
    split->at = options->form == SPLIT_LIST ? AT_BEGIN : AT_ITEM;
    return split;
}

void split_free(struct split *split)
{
    if (!split)
        return;
    buf_release(&split->kept);
    json_decref(split->metadata);
    free(split->scan.closers);
    free(split);
}

const json_t *split_metadata(const struct split *split)
{
    return split->metadata;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* ---- one value ---- */

/* One item that is too large, too deep or unreadable is its owner's doing, and no reason to lose all others: when the
 * caller takes note of such, it is passed over. */
static int give_up_on_value(struct split *split, const struct error *why, struct error *err)
{
    if (split->part == PART_ITEM && split->options.refused) {
        split->why = *why;
        buf_clear(&split->kept);
        return 0;
    }
    if (err)
        *err = *why;
    return -1;
}

static int open_bracket(struct split *split, char c, struct error *err)
{
    struct scanner *scan = &split->scan;
    size_t depth = scan->depth++;

    if (depth < split->options.max_depth)
        scan->closers[depth] = c == '{' ? '}' : ']';
    else if (split->part == PART_ITEM && split->options.refused)
        scan->is_too_deep = true; /* to be mended */
    else
        return error_set(err, ERR_LIMIT, "nested deeper than %zu", split->options.max_depth);
    return 0;
}

static int close_bracket(struct split *split, char c, struct error *err)
{
    struct scanner *scan = &split->scan;

    scan->depth--;
    if (scan->depth < split->options.max_depth && scan->closers[scan->depth] != c)
        return error_set(err, ERR_INVALID, "'%c' closes what it did not open", c);
    return 0;
}

/* The bytes of a string up to and with its closing quote, as far as they are here. */
static size_t scan_string(struct scanner *scan, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (scan->is_escaped)
            scan->is_escaped = false;
        else if (bytes[i] == '\\')
            scan->is_escaped = true;
        else if (bytes[i] == '"') {
            scan->in_string = false;
            return i + 1;
        }
    }
    return len;
}

/* A number, true, false or null: it ends before the first byte that cannot be its own. */
static size_t scan_scalar(struct scanner *scan, const char *bytes, size_t len, bool *out_ended, struct error *err)
{
    size_t i = 0;

    while (i < len && !is_space(bytes[i]) && !strchr(",:]}[{\"", bytes[i]))
        i++;
    *out_ended = i < len;
    scan->len += i;
    if (scan->len > MAX_SCALAR_BYTES)
        return error_set(err, ERR_LIMIT, "a number of more than %d digits", MAX_SCALAR_BYTES), SIZE_MAX;
    return i;
}

static int scan_begin(struct split *split, char c, struct error *err)
{
    struct scanner *scan = &split->scan;

    scan->is_begun = true;
    if (c == '{' || c == '[')
        return open_bracket(split, c, err);
    if (c == '"')
        scan->in_string = true;
    else if (strchr("-0123456789tfn", c) && c)
        scan->is_scalar = true;
    else
        return error_set(err, ERR_INVALID, "no JSON value begins with byte 0x%02x", (unsigned char)c);
    return 0;
}

/* How many of the bytes belong to the value, and whether it ended with them; SIZE_MAX with err. */
static size_t scan_value(struct split *split, const char *bytes, size_t len, bool *out_ended, struct error *err)
{
    struct scanner *scan = &split->scan;
    size_t i = 0;

    *out_ended = false;
    if (!scan->is_begun) {
        if (scan_begin(split, bytes[0], err) < 0)
            return SIZE_MAX;
        i = !scan->is_scalar;
    }
    if (scan->is_scalar)
        return scan_scalar(scan, bytes, len, out_ended, err);
    while (i < len) {
        char c = bytes[i];
        int result = 0;

        if (scan->in_string) {
            i += scan_string(scan, bytes + i, len - i);
            if (scan->in_string)
                break;
        } else {
            i++;
            if (c == '"')
                scan->in_string = true;
            else if (c == '{' || c == '[')
                result = open_bracket(split, c, err);
            else if (c == '}' || c == ']')
                result = close_bracket(split, c, err);
        }
        if (result < 0)
            return SIZE_MAX;
        if (!scan->in_string && scan->depth == 0) {
            *out_ended = true;
            break;
        }
    }
    return i;
}

static void begin_value(struct split *split, enum part part)
{
    char *closers = split->scan.closers;

    split->part = part;
    split->is_scanning = true;
    split->scan = (struct scanner){.closers = closers};
    split->why.code = ERR_NONE;
    buf_clear(&split->kept);
}

/* ---- what a complete value is for ---- */

static json_t *load(const struct buf *kept, struct error *err)
{
    json_error_t why;
    json_t *value = json_loadb(buf_str(kept), kept->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

    if (!value)
        error_set(err, ERR_INVALID, "not JSON: %s", why.text);
    return value;
}

/* An event holds its object, an item of a list is it. */
static void skim(struct split *split)
{
    size_t depth = split->options.form == SPLIT_WATCH ? 3 : 2;

    if (split->kept.len)
        split->kept.len = skim_managed_fields(split->kept.data, split->kept.len, depth);
}

static json_t *load_item(struct split *split, struct error *err)
{
    json_t *item;
    BUF mended = {0};

    skim(split);
    item = split->scan.is_too_deep ? NULL : load(&split->kept, err);
    if (item || !split->options.refused)
        return item;
    mend_json((struct str){split->kept.data, split->kept.len}, split->options.max_depth, &mended);
    return load(&mended, err);
}

static int take_key(struct split *split, struct error *err)
{
    json_t *key = load(&split->kept, err);

    if (!key)
        return -1;
    split->key[0] = '\0';
    if (json_string_length(key) < sizeof(split->key))
        memcpy(split->key, json_string_value(key), json_string_length(key) + 1);
    json_decref(key);
    split->at = AT_COLON;
    return 0;
}

static int take_item(struct split *split, struct error *err)
{
    struct error why = {0};
    json_t *item = NULL;
    int result;

    split->at = split->options.form == SPLIT_LIST ? AT_ITEM_NEXT : AT_ITEM;
    if (!split->why.code)
        item = load_item(split, &why);
    if (!item && !split->why.code && give_up_on_value(split, &why, err) < 0)
        return -1;
    if (!item) {
        split->options.refused(split->options.ctx, &split->why);
        return 0;
    }
    result = split->options.item(split->options.ctx, item, err);
    json_decref(item);
    return result;
}

static int take_metadata(struct split *split, struct error *err)
{
    json_t *metadata = load(&split->kept, err);

    split->at = AT_NEXT;
    if (!metadata)
        return error_wrap(err, "metadata of the list");
    if (json_is_null(metadata)) {
        json_decref(metadata);
        return 0;
    }
    split->metadata = metadata;
    return json_is_object(metadata) ? 0 : error_set(err, ERR_INVALID, "metadata of the list is no object");
}

static int take_other(struct split *split, struct error *err)
{
    (void)err;
    split->at = AT_NEXT;
    return 0;
}

static const struct {
    bool is_kept;
    int (*take)(struct split *split, struct error *err);
} parts[PART_COUNT] = {
    [PART_KEY] = {true, take_key},
    [PART_ITEM] = {true, take_item},
    [PART_METADATA] = {true, take_metadata},
    [PART_OTHER] = {false, take_other},
};

static size_t max_bytes(const struct split *split)
{
    if (split->part == PART_KEY)
        return MAX_KEY_BYTES;
    return split->part == PART_METADATA ? MAX_METADATA_BYTES : split->options.max_item_bytes;
}

/* How many of the next bytes may be kept; of what is not kept, all. */
static size_t room_for(const struct split *split, size_t len)
{
    size_t room = max_bytes(split) - split->kept.len;

    if (!parts[split->part].is_kept || split->why.code)
        return len;
    return len < room ? len : room;
}

static int too_large(struct split *split, struct error *err)
{
    struct error why = {0};

    error_set(&why, ERR_LIMIT, "larger than %zu bytes", max_bytes(split));
    return give_up_on_value(split, &why, err);
}

/* Goes on with the value at hand. Returns how many bytes it took, or SIZE_MAX. Looks at no byte beyond a limit before
 * it has said so: then the same is said whatever the pieces. */
static size_t feed_value(struct split *split, const char *bytes, size_t len, struct error *err)
{
    size_t room = room_for(split, len), n;
    bool is_ended;

    if (room == 0)
        return too_large(split, err) < 0 ? SIZE_MAX : 0;
    n = scan_value(split, bytes, room, &is_ended, err);
    if (n == SIZE_MAX)
        return SIZE_MAX;
    if (parts[split->part].is_kept && !split->why.code)
        buf_add(&split->kept, bytes, n);
    if (is_ended) {
        split->is_scanning = false;
        if (parts[split->part].take(split, err) < 0)
            return SIZE_MAX;
    }
    return n;
}

/* ---- between values ---- */

static int unexpected(char c, const char *wanted, struct error *err)
{
    return error_set(err, ERR_INVALID, "byte 0x%02x where %s should be", (unsigned char)c, wanted);
}

/* A member's value begins at `c`. Returns 1 when `c` is taken, 0 when it belongs to the value. */
static int begin_member(struct split *split, char c, struct error *err)
{
    bool *seen = strcmp(split->key, "items") == 0      ? &split->has_items
                 : strcmp(split->key, "metadata") == 0 ? &split->has_metadata
                                                       : NULL;

    if (seen && *seen)
        return error_set(err, ERR_INVALID, "%s stands twice", split->key);
    if (seen)
        *seen = true;
    if (seen == &split->has_items && c == '[') {
        split->at = AT_ITEM_OR_END;
        return 1;
    }
    if (seen == &split->has_items && c != 'n')
        return error_set(err, ERR_INVALID, "items is no array");
    begin_value(split, seen == &split->has_metadata ? PART_METADATA : PART_OTHER);
    return 0;
}

static int begin_item(struct split *split, char c, struct error *err)
{
    if (c != '{')
        return unexpected(c, "an object", err);
    begin_value(split, PART_ITEM);
    return 0;
}

static int begin_key(struct split *split, char c, struct error *err)
{
    if (c != '"')
        return unexpected(c, "a key", err);
    begin_value(split, PART_KEY);
    return 0;
}

/* Where one of two bytes leads on; anything else is `wanted` in vain. */
static const struct {
    char on, off;
    enum at on_at, off_at;
    const char *wanted;
} turns[AT_COUNT] = {
    [AT_BEGIN] = {'{', '{', AT_KEY_OR_END, AT_KEY_OR_END, "an object"},
    [AT_COLON] = {':', ':', AT_VALUE, AT_VALUE, "':'"},
    [AT_NEXT] = {',', '}', AT_KEY, AT_AFTER, "',' or '}'"},
    [AT_ITEM_NEXT] = {',', ']', AT_ITEM, AT_NEXT, "',' or ']'"},
};

/* Returns 1 when `c` is taken, 0 when it begins a value, -1 with err. `c` is no space. */
static int step(struct split *split, char c, struct error *err)
{
    enum at at = split->at;

    if ((at == AT_KEY_OR_END && c == '}') || (at == AT_ITEM_OR_END && c == ']')) {
        split->at = at == AT_KEY_OR_END ? AT_AFTER : AT_NEXT;
        return 1;
    }
    if (at == AT_KEY_OR_END || at == AT_KEY)
        return begin_key(split, c, err);
    if (at == AT_ITEM_OR_END || at == AT_ITEM)
        return begin_item(split, c, err);
    if (at == AT_VALUE)
        return begin_member(split, c, err);
    if (!turns[at].wanted || (c != turns[at].on && c != turns[at].off))
        return unexpected(c, turns[at].wanted ? turns[at].wanted : "the end", err);
    split->at = c == turns[at].on ? turns[at].on_at : turns[at].off_at;
    return 1;
}

static int feed(struct split *split, const char *bytes, size_t len, struct error *err)
{
    size_t i = 0;

    while (i < len) {
        if (split->is_scanning) {
            size_t n = feed_value(split, bytes + i, len - i, err);

            if (n == SIZE_MAX)
                return -1;
            i += n;
        } else if (is_space(bytes[i])) {
            i++;
        } else {
            int taken = step(split, bytes[i], err);

            if (taken < 0)
                return -1;
            i += (size_t)taken;
        }
    }
    return 0;
}

int split_feed(struct split *split, const char *bytes, size_t len, struct error *err)
{
    if (split->has_failed)
        return error_set(err, ERR_INVALID, "the stream has failed before");
    if (feed(split, bytes, len, err) == 0)
        return 0;
    split->has_failed = true;
    return -1;
}

int split_end(struct split *split, struct error *err)
{
    enum at good = split->options.form == SPLIT_LIST ? AT_AFTER : AT_ITEM;

    if (split->has_failed)
        return error_set(err, ERR_INVALID, "the stream has failed before");
    if (split->is_scanning || split->at != good)
        return error_set(err, ERR_REMOTE, "the answer was cut off");
    return 0;
}
