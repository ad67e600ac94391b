/* Why a selector does not hold on a device.
 *
 * The program is taken apart along && and ||, every part is evaluated by itself, and each part that is false or fails
 * becomes a finding: what its operands really are, which step of a path is missing, which names come close. Loops are
 * not entered: their variables have no value outside. */
#include "allocator/cel/cel.h"

#include <stdio.h>
#include <string.h>

#include "allocator/cel/device.h"
#include "allocator/cel/internal.h"
#include "allocator/cel/lexer.h"

#include "allocator/base/banned.h"

#define MAX_FINDINGS 16
#define MAX_DEPTH    64
#define SHOWN        120 /* bytes of a value */

struct explainer {
    const struct cel_expr *expr;
    const struct cel_device *device;
    struct cel_eval *eval; /* for the values of parts, or NULL */
    const struct token *tokens;
    size_t n_tokens;
    struct arena *arena;
    struct cel_finding *findings;
    size_t n;
};

/* ---- the text of a part ---- */

static const struct ast *find_ast(const struct ast *node, uint32_t id)
{
    struct ast *child;

    if (node->id == id)
        return node;
    for (size_t i = 0; (child = ast_child(node, i)); i++) {
        const struct ast *found = find_ast(child, id);

        if (found)
            return found;
    }
    return NULL;
}

static size_t token_at(const struct explainer *x, uint32_t pos)
{
    size_t i = 0;

    while (i + 1 < x->n_tokens && x->tokens[i].pos < pos)
        i++;
    return i;
}

/* The first and last token that the tree below a node names. */
static void token_range(const struct explainer *x, const struct ast *node, size_t *first, size_t *last)
{
    size_t at = token_at(x, node->pos);
    struct ast *child;

    if (node->kind == AST_SELECT && node->as.select.test_only && at > 0)
        at--; /* has */
    if (node->kind == AST_CALL && !node->as.call.target && x->tokens[at].kind == TOK_LPAREN && at > 0) {
        at--; /* the name of a plain function */
        while (at >= 2 && x->tokens[at - 1].kind == TOK_DOT && x->tokens[at - 2].kind == TOK_IDENT)
            at -= 2;
    }
    *first = at < *first ? at : *first;
    at = token_at(x, node->pos);
    if (node->kind == AST_SELECT || x->tokens[at].kind == TOK_DOT)
        at += x->tokens[at + 1].kind == TOK_QUESTION ? 2 : 1;
    *last = at > *last ? at : *last;
    for (size_t i = 0; (child = ast_child(node, i)); i++)
        token_range(x, child, first, last);
}

static int bracket(enum token_kind kind)
{
    if (kind == TOK_LPAREN || kind == TOK_LBRACKET || kind == TOK_LBRACE)
        return 1;
    return kind == TOK_RPAREN || kind == TOK_RBRACKET || kind == TOK_RBRACE ? -1 : 0;
}

static struct str text_of(const struct explainer *x, uint32_t id)
{
    const struct ast *node = find_ast(x->expr->root, id);
    size_t first = SIZE_MAX, last = 0, end;
    int depth = 0;

    if (!node)
        return x->expr->text;
    token_range(x, node, &first, &last);
    for (end = first; end < x->n_tokens && x->tokens[end].kind != TOK_END && (end <= last || depth > 0); end++)
        depth += bracket(x->tokens[end].kind);
    if (end == first)
        return x->expr->text;
    return (struct str){x->expr->text.ptr + x->tokens[first].pos,
                        x->tokens[end - 1].pos + x->tokens[end - 1].len - x->tokens[first].pos};
}

/* ---- values ---- */

static struct cel_eval *begin(struct explainer *x)
{
    if (x->eval) {
        cel_eval_again(x->eval);
        return x->eval;
    }
    x->eval = arena_new(x->arena, struct cel_eval);
    cel_eval_begin(x->eval, x->arena, x->expr->program.n_slots, x->expr->program.n_ids,
                   x->expr->options.max_cost ? x->expr->options.max_cost : CEL_MAX_COST);
    x->eval->device = x->device;
    return x->eval;
}

static struct cel_value value_of(struct explainer *x, const struct cel_node *node)
{
    struct cel_eval *e = begin(x);
    struct cel_value v = cel_eval_node(e, node);

    return e->fatal ? cel_error(e->fatal_words) : v;
}

static bool path_value(struct explainer *x, const struct cel_path *path, struct cel_value *out)
{
    struct cel_eval *e = begin(x);

    return cel_eval_path(e, path, out) && !e->fatal;
}

/* "h100", version 1.2.3, 80Gi, [1, 2]. */
static const char *shown(struct explainer *x, struct cel_value v)
{
    BUF text = {0};

    if (v.kind == CEL_V_STRING)
        buf_addc(&text, '"');
    else if (v.kind == CEL_V_SEMVER)
        buf_adds(&text, "version ");
    cel_value_show(v, &text, SHOWN);
    if (v.kind == CEL_V_STRING)
        buf_addc(&text, '"');
    return arena_strdup(x->arena, buf_str(&text));
}

/* A value with its type where the type is the point. */
static const char *shown_with_type(struct explainer *x, struct cel_value v)
{
    return arena_printf(x->arena, "%s (%s)", shown(x, v), cel_kind_name(v));
}

static void add(struct explainer *x, uint32_t id, const char *text)
{
    if (x->n < MAX_FINDINGS)
        x->findings[x->n++] = (struct cel_finding){text_of(x, id), text};
}

/* ---- names that come close ---- */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

#define MAX_NAME 64

/* Edits between two names, letters of either case alike; SIZE_MAX for long ones. */
static size_t distance(struct str a, struct str b)
{
    size_t row[MAX_NAME + 1];

    if (a.len > MAX_NAME || b.len > MAX_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t cost = (a.ptr[i - 1] | 0x20) != (b.ptr[j - 1] | 0x20), above = row[j];

            row[j] = min3(row[j] + 1, row[j - 1] + 1, diagonal + cost);
            diagonal = above;
        }
    }
    return row[b.len];
}

/* One name is the beginning of the other. */
static bool is_short_for(struct str a, struct str b)
{
    size_t n = a.len < b.len ? a.len : b.len;

    return n >= 2 && memcmp(a.ptr, b.ptr, n) == 0;
}

static const struct cel_entry *nearest(const struct cel_map *map, struct str name)
{
    const struct cel_entry *best = NULL;
    size_t best_distance = name.len / 3 + 2;

    for (size_t i = 0; i < map->n; i++) {
        struct str other = cel_str(map->entries[i].key);
        size_t d = is_short_for(other, name) ? 1 : distance(other, name);

        if (d < best_distance) {
            best = &map->entries[i];
            best_distance = d;
        }
    }
    return best;
}

static void list_names(const struct cel_map *map, struct buf *out)
{
    for (size_t i = 0; i < map->n && out->len < 400; i++) {
        buf_adds(out, i ? ", " : "");
        cel_value_show(map->entries[i].key, out, 400);
    }
}

/* Where else the name is, when not in this domain. */
static void other_domains(const struct cel_map *domains, struct str id, struct str domain, struct buf *out)
{
    struct cel_value v;

    for (size_t i = 0; i < domains->n && out->len < 400; i++) {
        struct str other = cel_str(domains->entries[i].key);

        if (!str_eq(other, domain) &&
            cel_map_lookup_text(domains->entries[i].value.as.map, id, cel_fingerprint(id), &v))
            buf_addf(out, "; domain \"%.*s\" has one", STR_FMT(other));
    }
}

/* The device has no `id` in `domain`. */
static void explain_missing(struct explainer *x, uint32_t part, int field, struct str domain, struct str id)
{
    const struct cel_map *domains = x->device->fields[field].as.map, *ids = NULL;
    const char *kind = field == DEVICE_CAPACITY ? "capacity" : "attribute";
    const struct cel_entry *near;
    BUF text = {0};

    for (size_t i = 0; i < domains->n; i++)
        if (str_eq(cel_str(domains->entries[i].key), domain))
            ids = domains->entries[i].value.as.map;
    if (!ids) {
        near = nearest(domains, domain);
        buf_addf(&text, "the device has no domain \"%.*s\" with an %s \"%.*s\"", STR_FMT(domain), kind, STR_FMT(id));
        if (near)
            buf_addf(&text, "; did you mean \"%.*s\"?", STR_FMT(cel_str(near->key)));
        buf_adds(&text, domains->n ? "; its domains are " : "; it has none at all");
        list_names(domains, &text);
    } else {
        near = nearest(ids, id);
        buf_addf(&text, "the device has no %s \"%.*s\" in domain \"%.*s\"", kind, STR_FMT(id), STR_FMT(domain));
        if (near)
            buf_addf(&text, "; did you mean \"%.*s\", which is %s?", STR_FMT(cel_str(near->key)),
                     shown_with_type(x, near->value));
        buf_adds(&text, "; it has ");
        list_names(ids, &text);
    }
    other_domains(domains, id, domain, &text);
    add(x, part, arena_strdup(x->arena, buf_str(&text)));
}

/* ---- parts that fail ---- */

static bool constant_text(const struct cel_qualifier *q, struct str *out)
{
    if (q->kind != QUAL_CONST || q->key.kind != CEL_V_STRING)
        return false;
    *out = cel_str(q->key);
    return true;
}

/* device.attributes[domain].id with names known beforehand. */
static bool is_attribute_path(const struct cel_path *path, int *field, struct str *domain, struct str *id)
{
    if (path->root != ROOT_DEVICE || path->n < 3)
        return false;
    *field = path->qualifiers[0].device_field;
    return (*field == DEVICE_ATTRIBUTES || *field == DEVICE_CAPACITY) && constant_text(&path->qualifiers[1], domain) &&
           constant_text(&path->qualifiers[2], id);
}

static bool attribute_is_missing(struct explainer *x, const struct cel_path *path)
{
    struct cel_path upto = *path;
    struct cel_value v;

    upto.n = 3;
    return !path_value(x, &upto, &v) || (v.kind == CEL_V_OPTIONAL && !v.as.content) ||
           (path->qualifiers[2].tests_presence && !cel_is_true(v));
}

/* Explain a path that leads nowhere; false when it is none of the device's. */
static bool explain_path(struct explainer *x, const struct cel_node *node)
{
    struct str domain, id;
    int field;

    if ((node->op != OP_PATH && node->op != OP_HAS) || !is_attribute_path(node->as.path, &field, &domain, &id) ||
        !attribute_is_missing(x, node->as.path))
        return false;
    explain_missing(x, node->id, field, domain, id);
    return true;
}

static void explain_failure(struct explainer *x, const struct cel_node *node, struct cel_value error, int depth);

static bool has_args(const struct cel_node *node)
{
    return node->op != OP_CONST && node->op != OP_PATH && node->op != OP_HAS && node->op != OP_FOLD;
}

/* A node fails: blame the first operand that does. */
static bool blame_operand(struct explainer *x, const struct cel_node *node, int depth)
{
    for (size_t i = 0; has_args(node) && i < node->n; i++) {
        struct cel_value v = value_of(x, node->as.call.args[i]);

        if (cel_is_error(v)) {
            explain_failure(x, node->as.call.args[i], v, depth + 1);
            return true;
        }
    }
    return false;
}

/* "f fails" with the operands that it was given. */
static void explain_operands(struct explainer *x, const struct cel_node *node, const char *words)
{
    BUF text = {0};

    buf_addf(&text, "fails: %.300s", words);
    for (size_t i = 0; has_args(node) && i < node->n && i < 4; i++) {
        struct str part = text_of(x, node->as.call.args[i]->id);

        if (node->as.call.args[i]->op != OP_CONST)
            buf_addf(&text, "; %.*s is %s", (int)(part.len > SHOWN ? SHOWN : part.len), part.ptr,
                     shown_with_type(x, value_of(x, node->as.call.args[i])));
    }
    add(x, node->id, arena_strdup(x->arena, buf_str(&text)));
}

static void explain_failure(struct explainer *x, const struct cel_node *node, struct cel_value error, int depth)
{
    if (depth > MAX_DEPTH || explain_path(x, node) || blame_operand(x, node, depth))
        return;
    explain_operands(x, node, error.as.s);
}

/* ---- parts that are false ---- */

/* How the operator reads when it does not hold. */
static const char *negated(const struct cel_node *node)
{
    static const struct {
        const char *name, *words;
    } names[] = {{"_<_", "not less than"},
                 {"_<=_", "not at most"},
                 {"_>_", "not greater than"},
                 {"_>=_", "not at least"},
                 {"@in", "not in"},
                 {"startsWith", "not starting with"},
                 {"endsWith", "not ending with"},
                 {"contains", "not containing"},
                 {"matches", "not matching"},
                 {"isGreaterThan", "not greater than"},
                 {"isLessThan", "not less than"},
                 {"includes", "not including"}};

    if (node->op == OP_EQUAL)
        return "not";
    if (node->op == OP_NOT_EQUAL)
        return "just what it must not be,";
    if (node->op == OP_IN_SET)
        return "not in";
    for (size_t i = 0; node->op == OP_CALL && node->as.call.function && i < ARRAY_SIZE(names); i++)
        if (strcmp(node->as.call.function->name, names[i].name) == 0)
            return names[i].words;
    return NULL;
}

/* "model is "A100", not "H100"". */
static void explain_comparison(struct explainer *x, const struct cel_node *node, const char *words)
{
    const struct cel_node *left = node->as.call.args[0], *right = node->as.call.args[1];
    struct cel_value a, b = value_of(x, right);
    struct str part;

    if (left->op == OP_CONST && right->op != OP_CONST && node->op == OP_EQUAL) {
        left = right; /* speak of what varies */
        b = value_of(x, node->as.call.args[0]);
    }
    a = value_of(x, left);
    part = text_of(x, left->id);
    add(x, node->id,
        arena_printf(x->arena, "%.*s is %s, %s %s", STR_FMT(part),
                     a.kind != b.kind ? shown_with_type(x, a) : shown(x, a), words,
                     a.kind != b.kind ? shown_with_type(x, b) : shown(x, b)));
}

static void explain_false(struct explainer *x, const struct cel_node *node, int depth);

/* One part of a row of && or ||. */
static void explain_part(struct explainer *x, const struct cel_node *node, int depth)
{
    struct cel_value v = value_of(x, node);

    if (depth > MAX_DEPTH || cel_is_true(v))
        return;
    if (cel_is_error(v) && node->op != OP_AND && node->op != OP_OR)
        explain_failure(x, node, v, depth);
    else
        explain_false(x, node, depth);
}

static bool explain_choice(struct explainer *x, const struct cel_node *node)
{
    const struct cel_path *path = node->as.path;
    struct str part;
    struct cel_value v;

    if (node->op != OP_PATH || path->root != ROOT_CHOICE)
        return false;
    part = text_of(x, path->node->id);
    v = value_of(x, path->node);
    add(x, node->id, arena_printf(x->arena, "is false; its condition %.*s is %s", STR_FMT(part), shown(x, v)));
    return true;
}

static void explain_fold(struct explainer *x, const struct cel_node *node)
{
    const struct cel_node *range = node->as.fold->range;
    struct str part = text_of(x, range->id);

    if (range->op == OP_CONST)
        add(x, node->id, "is false");
    else
        add(x, node->id, arena_printf(x->arena, "is false; %.*s is %s", STR_FMT(part), shown(x, value_of(x, range))));
}

static void explain_false(struct explainer *x, const struct cel_node *node, int depth)
{
    const char *words = negated(node);
    struct cel_value v;

    if (node->op == OP_AND || node->op == OP_OR) {
        for (size_t i = 0; i < node->n; i++)
            explain_part(x, node->as.call.args[i], depth + 1);
        return;
    }
    if (words && node->n >= 1 && node->op == OP_IN_SET) {
        struct str part = text_of(x, node->as.call.args[0]->id), list = text_of(x, node->as.call.args[1]->id);

        add(x, node->id,
            arena_printf(x->arena, "%.*s is %s, not in %.*s", STR_FMT(part),
                         shown(x, value_of(x, node->as.call.args[0])), STR_FMT(list)));
    } else if (words && node->n >= 2) {
        explain_comparison(x, node, words);
    } else if (explain_path(x, node) || explain_choice(x, node)) {
        return;
    } else if (node->op == OP_FOLD) {
        explain_fold(x, node);
    } else {
        v = value_of(x, node);
        add(x, node->id, arena_printf(x->arena, "is %s", v.kind == CEL_V_BOOL ? shown(x, v) : shown_with_type(x, v)));
    }
}

struct cel_explanation cel_explain(const struct cel_expr *expr, const struct cel_device *device, struct arena *arena)
{
    struct cel_diagnosis none = {.text = expr->text};
    struct explainer x = {.expr = expr, .device = device, .arena = arena};

    x.findings = arena_array(arena, struct cel_finding, MAX_FINDINGS);
    if (device->problem) {
        x.findings[x.n++] = (struct cel_finding){expr->text, device->problem};
        return (struct cel_explanation){x.findings, x.n};
    }
    x.tokens = cel_lex(expr->text, arena, &none);
    while (x.tokens && x.tokens[x.n_tokens].kind != TOK_END)
        x.n_tokens++;
    x.n_tokens++;
    if (x.tokens)
        explain_part(&x, expr->program.root, 0);
    return (struct cel_explanation){x.findings, x.n};
}
