/* Recursive descent over the tokens. Above each function stands its line of the grammar.
 *
 * The real parser counts how deeply each grammar rule is entered (also for the right operand of an operator) and stops
 * at 250; it then walks the tree and counts selections, calls, relations and sums, again up to 250. Both counts are
 * kept here, so that the same texts are refused. */
#include "allocator/cel/ast.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/doublefmt.h"
#include "allocator/cel/lexer.h"
#include "allocator/cel/macro.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

enum rule { R_EXPR, R_OR, R_AND, R_RELATION, R_CALC, R_UNARY, R_MEMBER, R_PRIMARY, R_COUNT };

struct parser {
    struct cel_builder build;
    struct str text;
    const struct token *tok;
    const struct cel_parse_options *options;
    uint32_t depth[R_COUNT];
};

static struct ast *parse_expr(struct parser *p);
static struct ast *parse_unary(struct parser *p);

/* ---- small helpers ---- */

static struct str token_text(const struct parser *p, const struct token *tok)
{
    return (struct str){p->text.ptr + tok->pos, tok->len};
}

static struct ast *fail_at(struct parser *p, size_t pos, const char *words)
{
    cel_diagnose(p->build.diagnosis, pos, "%s", words);
    return NULL;
}

static struct ast *unexpected(struct parser *p, const char *wanted)
{
    struct str got = token_text(p, p->tok);

    if (p->tok->kind == TOK_END)
        cel_diagnose(p->build.diagnosis, p->tok->pos, "Syntax error: mismatched input '<EOF>' expecting %s", wanted);
    else
        cel_diagnose(p->build.diagnosis, p->tok->pos, "Syntax error: mismatched input '%.*s' expecting %s",
                     (int)(got.len > 80 ? 80 : got.len), got.ptr, wanted);
    return NULL;
}

static bool accept(struct parser *p, enum token_kind kind)
{
    if (p->tok->kind != kind)
        return false;
    p->tok++;
    return true;
}

static bool expect(struct parser *p, enum token_kind kind, const char *wanted)
{
    if (accept(p, kind))
        return true;
    unexpected(p, wanted);
    return false;
}

static bool enter(struct parser *p, enum rule rule)
{
    if (++p->depth[rule] <= CEL_MAX_NESTING)
        return true;
    cel_diagnose(p->build.diagnosis, SIZE_MAX, "expression recursion limit exceeded: %d", CEL_MAX_NESTING);
    return false;
}

static void leave(struct parser *p, enum rule rule)
{
    p->depth[rule]--;
}

/* ---- literals ---- */

static struct ast *parse_int(struct parser *p, const struct token *sign, const struct token *tok)
{
    struct str s = token_text(p, tok);
    bool is_hex = s.len > 2 && s.ptr[0] == '0' && s.ptr[1] == 'x', overflow = false;
    uint64_t v = 0, limit = (uint64_t)INT64_MAX + (sign ? 1 : 0);

    for (size_t i = is_hex ? 2 : 0; i < s.len; i++) {
        char c = s.ptr[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);

        overflow = overflow || __builtin_mul_overflow(v, is_hex ? 16u : 10u, &v) ||
                   __builtin_add_overflow(v, digit, &v) || v > limit;
    }
    if (overflow)
        return fail_at(p, sign ? sign->pos : tok->pos, "invalid int literal");
    return cel_new_literal(&p->build, sign ? sign->pos : tok->pos, cel_int(sign ? (int64_t)(0 - v) : (int64_t)v));
}

static struct ast *parse_uint(struct parser *p, const struct token *tok)
{
    struct str s = token_text(p, tok);
    bool is_hex = s.len > 3 && s.ptr[0] == '0' && s.ptr[1] == 'x', overflow = false;
    uint64_t v = 0;

    for (size_t i = is_hex ? 2 : 0; i < s.len - 1; i++) {
        char c = s.ptr[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);

        overflow =
            overflow || __builtin_mul_overflow(v, is_hex ? 16u : 10u, &v) || __builtin_add_overflow(v, digit, &v);
    }
    if (overflow)
        return fail_at(p, tok->pos, "invalid uint literal");
    return cel_new_literal(&p->build, tok->pos, cel_uint(v));
}

static struct ast *parse_double(struct parser *p, const struct token *sign, const struct token *tok)
{
    double v;

    if (double_parse(token_text(p, tok), &v, NULL) < 0)
        return fail_at(p, sign ? sign->pos : tok->pos, "invalid double literal");
    return cel_new_literal(&p->build, sign ? sign->pos : tok->pos, cel_double(sign ? -v : v));
}

static struct ast *parse_text(struct parser *p, const struct token *tok)
{
    bool is_bytes = tok->kind == TOK_BYTES;
    const char *why = "";
    struct str s;

    if (cel_unquote(token_text(p, tok), is_bytes, p->build.arena, &s, &why) < 0)
        return fail_at(p, tok->pos, why);
    return cel_new_literal(&p->build, tok->pos, is_bytes ? cel_octets(s) : cel_text(s));
}

/* literal = ["-"] INT | UINT | ["-"] DOUBLE | STRING | BYTES | "true" | "false" | "null" */
static struct ast *parse_literal(struct parser *p)
{
    const struct token *sign = p->tok->kind == TOK_MINUS ? p->tok : NULL;
    const struct token *tok = sign ? p->tok + 1 : p->tok;

    p->tok = tok + 1;
    if (tok->kind == TOK_INT)
        return parse_int(p, sign, tok);
    if (tok->kind == TOK_DOUBLE)
        return parse_double(p, sign, tok);
    if (tok->kind == TOK_UINT)
        return parse_uint(p, tok);
    if (tok->kind == TOK_STRING || tok->kind == TOK_BYTES)
        return parse_text(p, tok);
    if (tok->kind == TOK_NULL)
        return cel_new_literal(&p->build, tok->pos, CEL_NULL);
    return cel_new_literal(&p->build, tok->pos, cel_bool(tok->kind == TOK_TRUE));
}

static bool at_literal(const struct parser *p)
{
    switch (p->tok->kind) {
    case TOK_INT:
    case TOK_UINT:
    case TOK_DOUBLE:
    case TOK_STRING:
    case TOK_BYTES:
    case TOK_TRUE:
    case TOK_FALSE:
    case TOK_NULL:
        return true;
    case TOK_MINUS:
        return p->tok[1].kind == TOK_INT || p->tok[1].kind == TOK_DOUBLE;
    default:
        return false;
    }
}

/* ---- primary ---- */

struct item_list {
    struct ast_item *items;
    size_t n, cap;
};

static struct ast_item *add_item(struct parser *p, struct item_list *list)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 4;
        struct ast_item *items = arena_array(p->build.arena, struct ast_item, cap);

        if (list->n)
            memcpy(items, list->items, list->n * sizeof(*items));
        list->items = items;
        list->cap = cap;
    }
    return &list->items[list->n++];
}

static struct ast *new_items(struct parser *p, enum ast_kind kind, uint32_t pos, const struct item_list *list)
{
    struct ast *node = cel_new_node(&p->build, kind, pos);

    if (!node)
        return NULL;
    node->as.list.items = list->items;
    node->as.list.n = list->n;
    for (size_t i = 0; i < list->n; i++) {
        cel_adopt(node, list->items[i].key, false);
        cel_adopt(node, list->items[i].value, false);
    }
    return node;
}

/* "[" [ ["?"] expr { "," ["?"] expr } ] [","] "]" */
static struct ast *parse_list(struct parser *p)
{
    uint32_t pos = p->tok++->pos;
    struct item_list list = {0};

    while (p->tok->kind != TOK_RBRACKET) {
        bool is_optional;
        struct ast *value;

        if (list.n && !expect(p, TOK_COMMA, "{',', ']'}"))
            return NULL;
        if (list.n && p->tok->kind == TOK_RBRACKET)
            break;
        if (!list.n && p->tok->kind == TOK_COMMA && p->tok[1].kind == TOK_RBRACKET) {
            p->tok++;
            break;
        }
        is_optional = accept(p, TOK_QUESTION);
        value = parse_expr(p);
        if (!value)
            return NULL;
        *add_item(p, &list) = (struct ast_item){.value = value, .is_optional = is_optional};
    }
    p->tok++;
    return new_items(p, AST_LIST, pos, &list);
}

/* "{" [ ["?"] expr ":" expr { "," ["?"] expr ":" expr } ] [","] "}" */
static struct ast *parse_map(struct parser *p)
{
    uint32_t pos = p->tok++->pos;
    struct item_list list = {0};

    while (p->tok->kind != TOK_RBRACE) {
        struct ast_item item = {0};

        if (list.n && !expect(p, TOK_COMMA, "{',', '}'}"))
            return NULL;
        if (list.n && p->tok->kind == TOK_RBRACE)
            break;
        if (!list.n && p->tok->kind == TOK_COMMA && p->tok[1].kind == TOK_RBRACE) {
            p->tok++;
            break;
        }
        item.is_optional = accept(p, TOK_QUESTION);
        if (!(item.key = parse_expr(p)) || !expect(p, TOK_COLON, "':'") || !(item.value = parse_expr(p)))
            return NULL;
        *add_item(p, &list) = item;
    }
    p->tok++;
    return new_items(p, AST_MAP, pos, &list);
}

/* FIELD = IDENT | quoted identifier (where the release has them) */
static bool parse_field(struct parser *p, struct str *out)
{
    struct str s = token_text(p, p->tok);

    if (p->tok->kind == TOK_QUOTED && !p->options->quoted_fields) {
        fail_at(p, p->tok->pos, "unsupported syntax: '`'");
        return false;
    }
    if (p->tok->kind != TOK_IDENT && p->tok->kind != TOK_QUOTED) {
        unexpected(p, "IDENTIFIER");
        return false;
    }
    *out = p->tok->kind == TOK_QUOTED ? (struct str){s.ptr + 1, s.len - 2} : s;
    p->tok++;
    return true;
}

/* T "{" [ ["?"] FIELD ":" expr { "," ... } ] [","] "}", with T read already */
static struct ast *parse_message(struct parser *p, struct str name)
{
    uint32_t pos = p->tok++->pos;
    struct item_list list = {0};
    struct ast *node;

    while (p->tok->kind != TOK_RBRACE) {
        struct ast_item item = {0};

        if (list.n && !expect(p, TOK_COMMA, "{',', '}'}"))
            return NULL;
        if (list.n && p->tok->kind == TOK_RBRACE)
            break;
        if (!list.n && p->tok->kind == TOK_COMMA && p->tok[1].kind == TOK_RBRACE) {
            p->tok++;
            break;
        }
        item.is_optional = accept(p, TOK_QUESTION);
        if (!parse_field(p, &item.field) || !expect(p, TOK_COLON, "':'") || !(item.value = parse_expr(p)))
            return NULL;
        *add_item(p, &list) = item;
    }
    p->tok++;
    node = new_items(p, AST_MESSAGE, pos, &list);
    if (node)
        node->name = name;
    return node;
}

struct arguments {
    struct ast **args;
    size_t n, cap;
};

/* [ expr { "," expr } ] ")" */
static bool parse_arguments(struct parser *p, struct arguments *out)
{
    *out = (struct arguments){0};
    while (p->tok->kind != TOK_RPAREN) {
        if (out->n && !expect(p, TOK_COMMA, "{',', ')'}"))
            return false;
        if (out->n == out->cap) {
            size_t cap = out->cap ? out->cap * 2 : 4;
            struct ast **args = arena_array(p->build.arena, struct ast *, cap);

            if (out->n)
                memcpy(args, out->args, out->n * sizeof(struct ast *));
            out->args = args;
            out->cap = cap;
        }
        if (!(out->args[out->n++] = parse_expr(p)))
            return false;
    }
    p->tok++;
    return true;
}

static bool is_reserved(struct str name)
{
    static const char *const words[] = {"as",       "break", "const",  "continue", "else",     "for",
                                        "function", "if",    "import", "let",      "loop",     "package",
                                        "return",   "var",   "void",   "while",    "namespace"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_is(name, words[i]))
            return true;
    return false;
}

/* The type name of a message literal that starts here (IDENT { "." IDENT } "{"), or false. */
static bool at_message(const struct parser *p, const struct token *first, const struct token **out_brace)
{
    const struct token *tok = first;

    while (tok->kind == TOK_IDENT && tok[1].kind == TOK_DOT && tok[2].kind == TOK_IDENT)
        tok += 2;
    if (tok->kind != TOK_IDENT || tok[1].kind != TOK_LBRACE)
        return false;
    (void)p;
    *out_brace = tok + 1;
    return true;
}

/* The name from one token to another without blanks and comments. */
static struct str joined_name(struct parser *p, const struct token *first, const struct token *end)
{
    size_t n = 0;
    char *text;

    for (const struct token *tok = first; tok < end; tok++)
        n += tok->len;
    text = arena_alloc(p->build.arena, n + 1, 1);
    n = 0;
    for (const struct token *tok = first; tok < end; tok++) {
        memcpy(text + n, p->text.ptr + tok->pos, tok->len);
        n += tok->len;
    }
    return (struct str){text, n};
}

/* ["."] IDENT [ "(" arguments ")" ] | message */
static struct ast *parse_name(struct parser *p)
{
    const struct token *first = p->tok, *brace;
    bool is_root = accept(p, TOK_DOT);
    struct str name;
    struct ast *node;
    uint32_t pos;

    if (p->tok->kind != TOK_IDENT)
        return unexpected(p, "IDENTIFIER");
    if (at_message(p, p->tok, &brace)) {
        p->tok = brace;
        return parse_message(p, joined_name(p, is_root ? first + 1 : first, brace));
    }
    name = token_text(p, p->tok);
    pos = p->tok->pos;
    p->tok++;
    if (is_reserved(name)) {
        cel_diagnose(p->build.diagnosis, first->pos, "reserved identifier: %.*s", STR_FMT(name));
        return NULL;
    }
    if (p->tok->kind == TOK_LPAREN) {
        struct arguments args;

        pos = p->tok++->pos;
        if (!parse_arguments(p, &args))
            return NULL;
        if (is_root) /* no macro has such a name */
            return cel_new_call(&p->build, pos, joined_name(p, first, first + 2), NULL, args.args, args.n, false);
        return cel_new_call_or_macro(&p->build, pos, name, NULL, args.args, args.n);
    }
    node = cel_new_ident(&p->build, pos, name);
    if (node)
        node->is_root_name = is_root;
    return node;
}

/* primary = name | "(" expr ")" | list | map | message | literal */
static struct ast *parse_primary(struct parser *p)
{
    struct ast *node;

    if (!enter(p, R_PRIMARY))
        return NULL;
    if (at_literal(p)) {
        node = parse_literal(p);
    } else if (p->tok->kind == TOK_LBRACKET) {
        node = parse_list(p);
    } else if (p->tok->kind == TOK_LBRACE) {
        node = parse_map(p);
    } else if (p->tok->kind == TOK_LPAREN) {
        p->tok++;
        node = parse_expr(p);
        if (node && !expect(p, TOK_RPAREN, "')'"))
            node = NULL;
    } else if (p->tok->kind == TOK_IDENT || p->tok->kind == TOK_DOT) {
        node = parse_name(p);
    } else {
        node = unexpected(p, "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
                             "STRING, BYTES, IDENTIFIER}");
    }
    leave(p, R_PRIMARY);
    return node;
}

/* ---- member ---- */

/* "." ["?"] FIELD | "." IDENT "(" arguments ")" */
static struct ast *parse_select(struct parser *p, struct ast *operand)
{
    uint32_t dot = p->tok++->pos, pos;
    bool is_optional = accept(p, TOK_QUESTION);
    struct str field;

    pos = p->tok->pos;
    if (!is_optional && p->tok->kind == TOK_IDENT && p->tok[1].kind == TOK_LPAREN) {
        struct arguments args;

        field = token_text(p, p->tok);
        pos = p->tok[1].pos;
        p->tok += 2;
        if (!parse_arguments(p, &args))
            return NULL;
        return cel_new_call_or_macro(&p->build, pos, field, operand, args.args, args.n);
    }
    if (!parse_field(p, &field))
        return NULL;
    if (is_optional)
        return cel_new_call2(&p->build, dot, "_?._", operand, cel_new_literal(&p->build, pos, cel_text(field)), true);
    return cel_new_select(&p->build, dot, operand, field, false);
}

/* "[" ["?"] expr "]" */
static struct ast *parse_index(struct parser *p, struct ast *operand)
{
    uint32_t pos = p->tok++->pos;
    bool is_optional = accept(p, TOK_QUESTION);
    struct ast *index = parse_expr(p);

    if (!index || !expect(p, TOK_RBRACKET, "']'"))
        return NULL;
    return cel_new_call2(&p->build, pos, is_optional ? "_[?_]" : "_[_]", operand, index, true);
}

/* member = primary { select | index } */
static struct ast *parse_member(struct parser *p)
{
    struct ast *node;

    if (!enter(p, R_MEMBER))
        return NULL;
    node = parse_primary(p);
    while (node && (p->tok->kind == TOK_DOT || p->tok->kind == TOK_LBRACKET)) {
        node = p->tok->kind == TOK_DOT ? parse_select(p, node) : parse_index(p, node);
    }
    leave(p, R_MEMBER);
    return node;
}

/* ---- operators ---- */

/* unary = member | "!" { "!" } member | "-" { "-" } member. An even number of signs vanishes. */
static struct ast *parse_unary(struct parser *p)
{
    enum token_kind sign = p->tok->kind;
    uint32_t pos = p->tok->pos;
    size_t n = 0;
    struct ast *node;

    if (!enter(p, R_UNARY))
        return NULL;
    if (sign == TOK_NOT || (sign == TOK_MINUS && !at_literal(p)))
        for (; p->tok->kind == sign; p->tok++)
            n++;
    node = parse_member(p);
    leave(p, R_UNARY);
    if (!node || n % 2 == 0)
        return node;
    return cel_new_call1(&p->build, pos, sign == TOK_NOT ? "!_" : "-_", node);
}

struct operator_row {
    enum token_kind token;
    const char *name;
    int precedence;
};

static const struct operator_row *find_operator(const struct operator_row *ops, size_t n, enum token_kind kind)
{
    for (size_t i = 0; i < n; i++)
        if (ops[i].token == kind)
            return &ops[i];
    return NULL;
}

/* calc = unary | calc ("*" | "/" | "%") calc | calc ("+" | "-") calc */
static struct ast *parse_calc(struct parser *p, int precedence)
{
    static const struct operator_row ops[] = {
        {TOK_STAR, "_*_", 2}, {TOK_SLASH, "_/_", 2}, {TOK_PERCENT, "_%_", 2},
        {TOK_PLUS, "_+_", 1}, {TOK_MINUS, "_-_", 1},
    };
    const struct operator_row *op;
    struct ast *node;

    if (!enter(p, R_CALC))
        return NULL;
    node = parse_unary(p);
    while (node && (op = find_operator(ops, ARRAY_SIZE(ops), p->tok->kind)) && op->precedence >= precedence) {
        uint32_t pos = p->tok++->pos;
        struct ast *right;

        right = parse_calc(p, op->precedence + 1);
        node = right ? cel_new_call2(&p->build, pos, op->name, node, right, true) : NULL;
    }
    leave(p, R_CALC);
    return node;
}

/* relation = calc | relation ("<" | "<=" | ">=" | ">" | "==" | "!=" | "in") relation */
static struct ast *parse_relation(struct parser *p, bool is_right)
{
    static const struct operator_row ops[] = {
        {TOK_LT, "_<_", 1},  {TOK_LE, "_<=_", 1}, {TOK_GE, "_>=_", 1}, {TOK_GT, "_>_", 1},
        {TOK_EQ, "_==_", 1}, {TOK_NE, "_!=_", 1}, {TOK_IN, "@in", 1},
    };
    const struct operator_row *op;
    struct ast *node;

    if (!enter(p, R_RELATION))
        return NULL;
    node = parse_calc(p, 0);
    while (node && !is_right && (op = find_operator(ops, ARRAY_SIZE(ops), p->tok->kind))) {
        uint32_t pos = p->tok++->pos;
        struct ast *right;

        right = parse_relation(p, true);
        node = right ? cel_new_call2(&p->build, pos, op->name, node, right, true) : NULL;
    }
    leave(p, R_RELATION);
    return node;
}

/* Rows of && and || become a balanced tree, so that thousands of terms are no deep recursion. */
struct terms {
    struct ast **nodes;
    uint32_t *ops;
    size_t n, cap;
};

static void add_term(struct parser *p, struct terms *terms, uint32_t pos, struct ast *node)
{
    if (terms->n == terms->cap) {
        size_t cap = terms->cap ? terms->cap * 2 : 4;
        struct ast **nodes = arena_array(p->build.arena, struct ast *, cap);
        uint32_t *ops = arena_array(p->build.arena, uint32_t, cap);

        if (terms->n) {
            memcpy(nodes, terms->nodes, terms->n * sizeof(struct ast *));
            memcpy(ops, terms->ops, terms->n * sizeof(*ops));
        }
        terms->nodes = nodes;
        terms->ops = ops;
        terms->cap = cap;
    }
    terms->nodes[terms->n] = node;
    terms->ops[terms->n++] = pos;
}

/* The tree over the operators lo .. hi; operator i joins term i and what follows. */
static struct ast *balance(struct parser *p, const struct terms *terms, const char *name, size_t lo, size_t hi)
{
    size_t mid = (lo + hi + 1) / 2;
    struct ast *left, *right;

    left = mid == lo ? terms->nodes[mid] : balance(p, terms, name, lo, mid - 1);
    right = mid == hi ? terms->nodes[mid + 1] : balance(p, terms, name, mid + 1, hi);
    if (!left || !right)
        return NULL;
    return cel_new_call2(&p->build, terms->ops[mid + 1], name, left, right, false);
}

static struct ast *parse_row(struct parser *p, enum rule rule)
{
    enum token_kind sign = rule == R_OR ? TOK_OR : TOK_AND;
    struct terms terms = {0};
    uint32_t pos = 0;

    if (!enter(p, rule))
        return NULL;
    do {
        struct ast *node;

        node = rule == R_OR ? parse_row(p, R_AND) : parse_relation(p, false);
        if (!node)
            return NULL;
        add_term(p, &terms, pos, node);
        pos = p->tok->pos;
    } while (accept(p, sign));
    leave(p, rule);
    return terms.n == 1 ? terms.nodes[0] : balance(p, &terms, rule == R_OR ? "_||_" : "_&&_", 0, terms.n - 2);
}

/* expr = or [ "?" or ":" expr ] */
static struct ast *parse_expr(struct parser *p)
{
    struct ast *node, *yes, *no;
    uint32_t pos;

    if (!enter(p, R_EXPR))
        return NULL;
    node = parse_row(p, R_OR);
    if (node && p->tok->kind == TOK_QUESTION) {
        pos = p->tok++->pos;
        if (!(yes = parse_row(p, R_OR)) || !expect(p, TOK_COLON, "':'") || !(no = parse_expr(p)))
            return NULL;
        node = cel_new_call3(&p->build, pos, "_?_:_", node, yes, no);
    }
    leave(p, R_EXPR);
    return node;
}

struct ast *cel_parse(struct str text, const struct cel_parse_options *options, struct arena *arena,
                      struct cel_diagnosis *d, uint32_t *out_n_ids)
{
    struct parser p = {.build = {.arena = arena, .diagnosis = d}, .options = options};
    struct ast *root;

    if (!text.ptr)
        text = STR("");
    p.text = text;
    if (text.len > 4 * (size_t)CEL_MAX_POINTS || utf8_count(text) > CEL_MAX_POINTS) {
        cel_diagnose(d, SIZE_MAX, "expression code point size exceeds limit: size: %zu, limit %d", utf8_count(text),
                     CEL_MAX_POINTS);
        return NULL;
    }
    if (!utf8_is_valid(text)) {
        cel_diagnose(d, SIZE_MAX, "Syntax error: the text is not valid UTF-8");
        return NULL;
    }
    p.tok = cel_lex(text, arena, d);
    if (!p.tok)
        return NULL;
    root = parse_expr(&p);
    if (root && p.tok->kind != TOK_END) {
        unexpected(&p, "<EOF>");
        return NULL;
    }
    if (root && root->depth > CEL_MAX_DEPTH) {
        cel_diagnose(d, SIZE_MAX, "the expression is nested too deeply");
        return NULL;
    }
    if (root && root->visit > CEL_MAX_NESTING) {
        cel_diagnose(d, SIZE_MAX, "max recursion depth exceeded");
        return NULL;
    }
    *out_n_ids = p.build.n_nodes + 1;
    return root;
}
