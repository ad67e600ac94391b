/* YAML through libyaml's events. One function per kind of event builds a value and its mark, and everything that is
 * counted is counted before it is built:
 *
 *   document = value
 *   value    = scalar | alias | sequence of values | mapping of (scalar key, value)
 *
 * An alias is a copy of what its anchor named, so that nobody who changes a document changes it in two places; copies
 * count as values and as depth. `<<` merges mappings below the keys that the mapping itself sets. */
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"
#include "queued/manifest/yaml_internal.h"

#include "allocator/base/banned.h"

/* libyaml compares each %TAG directive with all before it. */
#define TAG_DIRECTIVES_MAX 16

struct anchor {
    json_t *value; /* own reference */
    struct mark *mark;
    size_t n_nodes, height;
    bool open; /* its value is still being read: an alias now would contain itself */
};

struct yaml_reader {
    yaml_parser_t parser;
    struct manifest *manifest;
    const struct manifest_limits *limits;
    json_t *names; /* of anchors: name to index in `anchors` */
    struct anchor *anchors;
    size_t n_anchors, cap_anchors;
    struct error *err;
};

static int read_value(struct yaml_reader *r, yaml_event_t *event, size_t depth, struct node *out);

/* ---- failures ---- */

static int fail_at(const struct yaml_reader *r, enum err_code code, const yaml_mark_t *mark, const char *words,
                   const char *what)
{
    return manifest_fail(r->manifest, code, mark->line + 1, mark->column + 1, r->err, "%s%.80s", words, what);
}

/* What libyaml says, in the form of the other messages. */
static int fail_parser(const struct yaml_reader *r, const char *bytes)
{
    const yaml_parser_t *parser = &r->parser;
    const char *problem = parser->problem ? parser->problem : "cannot be read";
    size_t line = 1;

    if (parser->error != YAML_READER_ERROR) {
        if (parser->context)
            return manifest_fail(r->manifest, ERR_INVALID, parser->problem_mark.line + 1,
                                 parser->problem_mark.column + 1, r->err, "%s %s (from line %zu)", problem,
                                 parser->context, parser->context_mark.line + 1);
        return fail_at(r, ERR_INVALID, &parser->problem_mark, problem, "");
    }
    for (size_t i = 0; i < parser->problem_offset; i++)
        line += bytes[i] == '\n';
    return manifest_fail(r->manifest, ERR_INVALID, line, 1, r->err, "%s (byte %zu of the text)", problem,
                         parser->problem_offset);
}

/* ---- anchors ---- */

static void anchors_clear(struct yaml_reader *r)
{
    for (size_t i = 0; i < r->n_anchors; i++)
        json_decref(r->anchors[i].value);
    r->n_anchors = 0;
    json_object_clear(r->names);
}

/* Returns the anchor's index; a name may be used again and then means the later value. */
static int anchor_open(struct yaml_reader *r, const yaml_char_t *name, const yaml_mark_t *mark, size_t *out)
{
    *out = r->n_anchors;
    mem_grow(r->anchors, r->n_anchors, r->cap_anchors);
    r->anchors[r->n_anchors++] = (struct anchor){.open = true};
    if (json_object_set_new(r->names, (const char *)name, json_integer((json_int_t)*out)) < 0)
        return fail_at(r, ERR_INVALID, mark, "an anchor cannot have this name", "");
    return 0;
}

static void anchor_close(struct yaml_reader *r, size_t index, const struct node *node, size_t n_nodes)
{
    r->anchors[index] = (struct anchor){json_incref(node->value), node->mark, n_nodes, node->height, false};
}

static int read_alias(struct yaml_reader *r, const yaml_event_t *event, size_t depth, struct node *out)
{
    const char *name = (const char *)event->data.alias.anchor;
    const json_t *index = json_object_get(r->names, name);
    const yaml_mark_t *mark = &event->start_mark;
    const struct anchor *anchor;

    if (!index)
        return fail_at(r, ERR_INVALID, mark, "no anchor named &", name);
    anchor = &r->anchors[json_integer_value(index)];
    if (anchor->open)
        return fail_at(r, ERR_INVALID, mark, "an alias inside of its own anchor &", name);
    if (anchor->height > depth + 1)
        return fail_at(r, ERR_LIMIT, mark, "nested too deep through alias *", name);
    if (manifest_count(r->manifest, r->limits, anchor->n_nodes, mark->line + 1, mark->column + 1, r->err) < 0)
        return -1;
    out->value = json_deep_copy(anchor->value);
    out->mark->children = anchor->mark->children;
    out->mark->last = anchor->mark->last;
    out->height = anchor->height;
    INVARIANT(out->value);
    return 0;
}

/* ---- scalars ---- */

static const struct tag {
    const char *tag;
    bool types[SCALAR_UNFIT + 1]; /* what its text may resolve to */
    bool text;                    /* the text itself */
} tags[] = {
    {YAML_NULL_TAG, {[SCALAR_NULL] = true}, false},
    {YAML_BOOL_TAG, {[SCALAR_BOOL] = true}, false},
    {YAML_INT_TAG, {[SCALAR_INT] = true}, false},
    {YAML_FLOAT_TAG, {[SCALAR_INT] = true, [SCALAR_REAL] = true}, false},
    {YAML_STR_TAG, {false}, true},
    {YAML_TIMESTAMP_TAG, {false}, true},
    {"!", {false}, true},
};

static json_t *scalar_json(const struct scalar *scalar, const char *text, size_t len)
{
    switch (scalar->type) {
    case SCALAR_NULL:
        return json_null();
    case SCALAR_BOOL:
        return json_boolean(scalar->boolean);
    case SCALAR_INT:
        return json_integer(scalar->integer);
    case SCALAR_REAL:
        return json_real(scalar->real);
    case SCALAR_STRING:
    case SCALAR_UNFIT:
        break;
    }
    return manifest_text(text, len);
}

static int scalar_tagged(const struct yaml_reader *r, const yaml_event_t *event, struct scalar *scalar)
{
    const char *name = (const char *)event->data.scalar.tag;

    for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
        if (strcmp(tags[i].tag, name) != 0)
            continue;
        if (tags[i].text)
            scalar->type = SCALAR_STRING;
        else if (!tags[i].types[scalar->type])
            return fail_at(r, ERR_INVALID, &event->start_mark, "the value does not have the type of its tag ", name);
        if (scalar->type == SCALAR_INT && strcmp(name, YAML_FLOAT_TAG) == 0)
            *scalar = (struct scalar){.type = SCALAR_REAL, .real = (double)scalar->integer};
        return 0;
    }
    return fail_at(r, ERR_INVALID, &event->start_mark, "unknown tag ", name);
}

static int read_scalar(struct yaml_reader *r, const yaml_event_t *event, struct node *out)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    struct scalar scalar = {.type = SCALAR_STRING};

    if (event->data.scalar.tag) {
        scalar = scalar_resolve(text, len);
        if (scalar_tagged(r, event, &scalar) < 0)
            return -1;
    } else if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        scalar = scalar_resolve(text, len);
    }
    if (scalar.type == SCALAR_UNFIT)
        return fail_at(r, ERR_INVALID, &event->start_mark, "JSON has no such number: ", text);
    out->value = scalar_json(&scalar, text, len);
    if (!out->value)
        return fail_at(r, ERR_INVALID, &event->start_mark, "text with NUL or invalid UTF-8", "");
    return 0;
}

/* ---- containers ---- */

static int next_event(struct yaml_reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? 0 : fail_parser(r, (const char *)r->parser.input.string.start);
}

static int check_tag(const struct yaml_reader *r, const yaml_char_t *tag, const char *want, const yaml_mark_t *mark)
{
    if (!tag || strcmp((const char *)tag, want) == 0 || strcmp((const char *)tag, "!") == 0)
        return 0;
    return fail_at(r, ERR_INVALID, mark, "unknown tag ", (const char *)tag);
}

static int read_sequence(struct yaml_reader *r, const yaml_event_t *start, size_t depth, struct node *out)
{
    yaml_event_t event;
    int rc = 0;

    if (check_tag(r, start->data.sequence_start.tag, YAML_SEQ_TAG, &start->start_mark) < 0)
        return -1;
    out->value = json_array();
    while (rc == 0) {
        struct node element = {0};

        if (next_event(r, &event) < 0)
            return -1;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return 0;
        }
        rc = read_value(r, &event, depth, &element);
        yaml_event_delete(&event);
        if (rc < 0)
            break;
        mark_add(out->mark, element.mark);
        if (element.height + 1 > out->height)
            out->height = element.height + 1;
        INVARIANT(json_array_append_new(out->value, TAKE(element.value)) == 0);
    }
    return -1;
}

/* The members of one merged mapping, where the target has none of that key. */
static void merge_mapping(struct yaml_reader *r, struct node *target, const json_t *source,
                          const struct mark *source_mark)
{
    for (const struct mark *from = source_mark->children; from; from = from->next) {
        json_t *value = json_object_get(source, from->key);
        struct mark *mark;

        if (json_object_get(target->value, from->key))
            continue;
        mark = mark_new(r->manifest, from->line, from->column);
        mark->key = from->key;
        mark->children = from->children;
        mark->last = from->last;
        mark_add(target->mark, mark);
        INVARIANT(json_object_set_nocheck(target->value, from->key, value) == 0);
    }
}

/* `merges` holds, in their order, what `<<` named: mappings, or lists of them. */
static int merge_all(struct yaml_reader *r, struct node *target, const struct node *merges)
{
    const struct mark *mark = merges->mark->children;

    for (size_t i = 0; i < json_array_size(merges->value); i++, mark = mark->next) {
        const json_t *source = json_array_get(merges->value, i);
        const struct mark *entry = mark->children;

        if (json_is_object(source)) {
            merge_mapping(r, target, source, mark);
            continue;
        }
        for (size_t j = 0; j < json_array_size(source); j++, entry = entry->next) {
            if (!json_is_object(json_array_get(source, j)))
                return manifest_fail(r->manifest, ERR_INVALID, entry->line, entry->column, r->err,
                                     "only mappings can be merged");
            merge_mapping(r, target, json_array_get(source, j), entry);
        }
        if (!json_is_array(source))
            return manifest_fail(r->manifest, ERR_INVALID, mark->line, mark->column, r->err,
                                 "only mappings can be merged");
    }
    return 0;
}

static bool is_merge_key(const yaml_event_t *key)
{
    return key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp((const char *)key->data.scalar.value, "<<") == 0;
}

static int add_merge(struct node *target, struct node *merges, struct node *value)
{
    if (value->height > target->height)
        target->height = value->height;
    mark_add(merges->mark, value->mark);
    INVARIANT(json_array_append_new(merges->value, TAKE(value->value)) == 0);
    return 0;
}

/* Keys are text whatever they look like. */
static int check_key(const struct yaml_reader *r, const yaml_event_t *key)
{
    json_t *text;

    if (key->type != YAML_SCALAR_EVENT)
        return fail_at(r, ERR_INVALID, &key->start_mark, "a key must be plain text", "");
    text = manifest_text((const char *)key->data.scalar.value, key->data.scalar.length);
    if (!text)
        return fail_at(r, ERR_INVALID, &key->start_mark, "a key with NUL or invalid UTF-8", "");
    json_decref(text);
    return 0;
}

static int read_member(struct yaml_reader *r, const yaml_event_t *key, size_t depth, struct node *object,
                       struct node *merges)
{
    struct node member = {0};
    yaml_event_t event;
    int rc;

    if (check_key(r, key) < 0 || next_event(r, &event) < 0)
        return -1;
    rc = read_value(r, &event, depth, &member);
    yaml_event_delete(&event);
    if (rc < 0)
        return -1;
    if (is_merge_key(key))
        return add_merge(object, merges, &member);
    member.mark->line = (uint32_t)key->start_mark.line + 1;
    member.mark->column = (uint32_t)key->start_mark.column + 1;
    return manifest_member(r->manifest, object, (const char *)key->data.scalar.value, &member, r->err);
}

static int read_mapping(struct yaml_reader *r, const yaml_event_t *start, size_t depth, struct node *out)
{
    struct node merges = {.value = json_array(), .mark = mark_new(r->manifest, 0, 0)};
    yaml_event_t key;
    int rc = check_tag(r, start->data.mapping_start.tag, YAML_MAP_TAG, &start->start_mark);

    out->value = json_object();
    while (rc == 0) {
        rc = next_event(r, &key);
        if (rc < 0)
            break;
        if (key.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&key);
            rc = merge_all(r, out, &merges);
            break;
        }
        rc = read_member(r, &key, depth, out, &merges);
        yaml_event_delete(&key);
    }
    json_decref(merges.value);
    return rc;
}

/* ---- values, documents ---- */

static const yaml_char_t *event_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static int read_untracked(struct yaml_reader *r, yaml_event_t *event, size_t depth, struct node *out)
{
    bool container = event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;

    if (container && depth == 0)
        return fail_at(r, ERR_LIMIT, &event->start_mark, "nested too deep", "");
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(r, event, depth, out);
    if (manifest_count(r->manifest, r->limits, 1, out->mark->line, out->mark->column, r->err) < 0)
        return -1;
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(r, event, out);
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return read_sequence(r, event, depth - 1, out);
    return read_mapping(r, event, depth - 1, out);
}

/* On failure `out` holds nothing. */
static int read_value(struct yaml_reader *r, yaml_event_t *event, size_t depth, struct node *out)
{
    const yaml_char_t *name = event_anchor(event);
    size_t before = r->manifest->n_nodes, index = 0;
    int rc = 0;

    *out = (struct node){.mark = mark_new(r->manifest, event->start_mark.line + 1, event->start_mark.column + 1),
                         .height = 1};
    if (name)
        rc = anchor_open(r, name, &event->start_mark, &index);
    if (rc == 0)
        rc = read_untracked(r, event, depth, out);
    if (rc < 0)
        json_decref(TAKE(out->value));
    else if (name)
        anchor_close(r, index, out, r->manifest->n_nodes - before);
    return rc;
}

static int read_document(struct yaml_reader *r)
{
    struct node document;
    yaml_event_t event;
    int rc;

    if (next_event(r, &event) < 0)
        return -1;
    rc = read_value(r, &event, r->limits->max_depth, &document);
    yaml_event_delete(&event);
    anchors_clear(r);
    return rc < 0 ? rc : manifest_add(r->manifest, r->limits, &document, r->err);
}

static int read_stream(struct yaml_reader *r)
{
    yaml_event_type_t type;
    yaml_event_t event;

    do {
        if (next_event(r, &event) < 0)
            return -1;
        type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_DOCUMENT_START_EVENT && read_document(r) < 0)
            return -1;
    } while (type != YAML_STREAM_END_EVENT);
    return 0;
}

/* Wherever they stand: libyaml takes more than one character as the end of a line, and real files have none at all. */
static bool too_many_directives(const char *bytes, size_t len)
{
    const char *at = bytes, *end = bytes + len;
    size_t n = 0;

    while (n <= TAG_DIRECTIVES_MAX && (at = memmem(at, (size_t)(end - at), "%TAG", 4))) {
        n++;
        at += 4;
    }
    return n > TAG_DIRECTIVES_MAX;
}

int yaml_stream_read(struct manifest *manifest, const char *bytes, size_t len, const struct manifest_limits *limits,
                     struct error *err)
{
    struct yaml_reader r = {.manifest = manifest, .limits = limits, .err = err};
    int rc;

    if (too_many_directives(bytes, len))
        return manifest_fail(manifest, ERR_LIMIT, 0, 0, err, "more than %d %%TAG directives", TAG_DIRECTIVES_MAX);
    INVARIANT(yaml_parser_initialize(&r.parser));
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, len);
    r.names = json_object();
    rc = read_stream(&r);
    anchors_clear(&r);
    json_decref(r.names);
    free(r.anchors);
    yaml_parser_delete(&r.parser);
    return rc;
}
