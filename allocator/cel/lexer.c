#include "allocator/cel/lexer.h"

#include <string.h>

#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

struct lexer {
    struct str text;
    size_t at;
};

static char peek(const struct lexer *lx, size_t ahead)
{
    return lx->at + ahead < lx->text.len ? lx->text.ptr[lx->at + ahead] : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c);
}

static bool is_at_end(const struct lexer *lx)
{
    return lx->at >= lx->text.len;
}

static void skip_blank(struct lexer *lx)
{
    while (!is_at_end(lx)) {
        if (strchr(" \t\r\n\f", peek(lx, 0)) && peek(lx, 0)) {
            lx->at++;
        } else if (peek(lx, 0) == '/' && peek(lx, 1) == '/') {
            while (!is_at_end(lx) && peek(lx, 0) != '\n')
                lx->at++;
        } else {
            return;
        }
    }
}

/* Length of an escape sequence that starts with the backslash at `at`, or 0. */
static size_t escape_length(const struct lexer *lx, size_t ahead)
{
    char c = peek(lx, ahead + 1);
    size_t digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;

    if (digits) {
        for (size_t i = 0; i < digits; i++)
            if (!is_hex(peek(lx, ahead + 2 + i)))
                return 0;
        return digits + 2;
    }
    if (c >= '0' && c <= '3') {
        char second = peek(lx, ahead + 2), third = peek(lx, ahead + 3);

        return second >= '0' && second <= '7' && third >= '0' && third <= '7' ? 4 : 0;
    }
    return c && strchr("abfnrtv\"'\\?`", c) ? 2 : 0;
}

/* Length of a quoted literal whose opening quote is `ahead` bytes away, quotes included, or 0. */
static size_t quoted_length(const struct lexer *lx, size_t ahead, size_t n_quotes, bool is_raw)
{
    char quote = peek(lx, ahead);
    size_t i = ahead + n_quotes;

    for (size_t q = 0; q < n_quotes; q++)
        if (peek(lx, ahead + q) != quote)
            return 0;
    while (lx->at + i < lx->text.len) {
        char c = peek(lx, i);

        if (c == quote && (n_quotes == 1 || (peek(lx, i + 1) == quote && peek(lx, i + 2) == quote)))
            return i + n_quotes;
        if (n_quotes == 1 && (c == '\n' || c == '\r'))
            return 0;
        if (c == '\\' && !is_raw) {
            size_t n = escape_length(lx, i);

            if (!n)
                return 0;
            i += n;
        } else {
            i++;
        }
    }
    return 0;
}

/* A string or bytes literal with its prefix, or false. */
static bool lex_quoted(struct lexer *lx, struct token *tok)
{
    size_t ahead = 0;
    bool is_bytes = false, is_raw = false;
    size_t n;

    if (peek(lx, ahead) == 'b' || peek(lx, ahead) == 'B') {
        is_bytes = true;
        ahead++;
    }
    if (peek(lx, ahead) == 'r' || peek(lx, ahead) == 'R') {
        is_raw = true;
        ahead++;
    }
    if (peek(lx, ahead) != '"' && peek(lx, ahead) != '\'')
        return false;
    n = quoted_length(lx, ahead, 3, is_raw);
    if (!n)
        n = quoted_length(lx, ahead, 1, is_raw);
    if (!n)
        return false;
    tok->kind = is_bytes ? TOK_BYTES : TOK_STRING;
    lx->at += n;
    return true;
}

static size_t digits_length(const struct lexer *lx, size_t ahead)
{
    size_t n = 0;

    while (is_digit(peek(lx, ahead + n)))
        n++;
    return n;
}

static size_t exponent_length(const struct lexer *lx, size_t ahead)
{
    size_t sign, n;

    if (peek(lx, ahead) != 'e' && peek(lx, ahead) != 'E')
        return 0;
    sign = peek(lx, ahead + 1) == '+' || peek(lx, ahead + 1) == '-';
    n = digits_length(lx, ahead + 1 + sign);
    return n ? 1 + sign + n : 0;
}

static bool lex_number(struct lexer *lx, struct token *tok)
{
    size_t n = digits_length(lx, 0), fraction = 0, exponent;

    if (peek(lx, n) == '.')
        fraction = digits_length(lx, n + 1);
    if (!n && !fraction)
        return false;
    if (peek(lx, 0) == '0' && peek(lx, 1) == 'x' && is_hex(peek(lx, 2)) && n == 1) {
        for (n = 2; is_hex(peek(lx, n));)
            n++;
        tok->kind = TOK_INT;
    } else {
        n += fraction ? 1 + fraction : 0;
        exponent = exponent_length(lx, n);
        n += exponent;
        tok->kind = fraction || exponent ? TOK_DOUBLE : TOK_INT;
    }
    if (tok->kind == TOK_INT && (peek(lx, n) == 'u' || peek(lx, n) == 'U')) {
        tok->kind = TOK_UINT;
        n++;
    }
    lx->at += n;
    return true;
}

static bool lex_name(struct lexer *lx, struct token *tok)
{
    static const struct {
        const char *word;
        enum token_kind kind;
    } keywords[] = {{"true", TOK_TRUE}, {"false", TOK_FALSE}, {"null", TOK_NULL}, {"in", TOK_IN}};
    size_t n = 0;

    if (!is_name_start(peek(lx, 0)))
        return false;
    while (is_name(peek(lx, n)))
        n++;
    tok->kind = TOK_IDENT;
    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
        if (str_is((struct str){lx->text.ptr + lx->at, n}, keywords[i].word))
            tok->kind = keywords[i].kind;
    lx->at += n;
    return true;
}

static bool lex_quoted_name(struct lexer *lx, struct token *tok)
{
    size_t n = 1;

    if (peek(lx, 0) != '`')
        return false;
    while (is_name(peek(lx, n)) || (peek(lx, n) && strchr(".-/ ", peek(lx, n))))
        n++;
    if (n == 1 || peek(lx, n) != '`')
        return false;
    tok->kind = TOK_QUOTED;
    lx->at += n + 1;
    return true;
}

static bool lex_symbol(struct lexer *lx, struct token *tok)
{
    static const struct {
        const char *text;
        enum token_kind kind;
    } symbols[] = {
        {"==", TOK_EQ},    {"!=", TOK_NE},    {"<=", TOK_LE},    {">=", TOK_GE},      {"&&", TOK_AND},
        {"||", TOK_OR},    {"<", TOK_LT},     {">", TOK_GT},     {"[", TOK_LBRACKET}, {"]", TOK_RBRACKET},
        {"{", TOK_LBRACE}, {"}", TOK_RBRACE}, {"(", TOK_LPAREN}, {")", TOK_RPAREN},   {".", TOK_DOT},
        {",", TOK_COMMA},  {"-", TOK_MINUS},  {"!", TOK_NOT},    {"?", TOK_QUESTION}, {":", TOK_COLON},
        {"+", TOK_PLUS},   {"*", TOK_STAR},   {"/", TOK_SLASH},  {"%", TOK_PERCENT},
    };

    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        size_t n = strlen(symbols[i].text);

        if (peek(lx, 0) == symbols[i].text[0] && (n == 1 || peek(lx, 1) == symbols[i].text[1])) {
            tok->kind = symbols[i].kind;
            lx->at += n;
            return true;
        }
    }
    return false;
}

const struct token *cel_lex(struct str text, struct arena *arena, struct cel_diagnosis *d)
{
    struct lexer lx = {text, 0};
    size_t cap = 64, n = 0;
    struct token *tokens = arena_array(arena, struct token, cap);

    for (;;) {
        struct token tok = {TOK_END, 0, 0};

        if (n == cap) {
            struct token *more = arena_array(arena, struct token, cap * 2);

            memcpy(more, tokens, n * sizeof(*tokens));
            tokens = more;
            cap *= 2;
        }
        skip_blank(&lx);
        tok.pos = (uint32_t)lx.at;
        if (is_at_end(&lx)) {
            tokens[n] = tok;
            return tokens;
        }
        if (!lex_quoted(&lx, &tok) && !lex_number(&lx, &tok) && !lex_name(&lx, &tok) && !lex_quoted_name(&lx, &tok) &&
            !lex_symbol(&lx, &tok)) {
            size_t end = lx.at;

            utf8_next(text, &end);
            cel_diagnose(d, lx.at, "Syntax error: token recognition error at: '%.*s'", (int)(end - lx.at),
                         text.ptr + lx.at);
            return NULL;
        }
        tok.len = (uint32_t)(lx.at - tok.pos);
        tokens[n++] = tok;
    }
}

/* ---- literals ---- */

static uint32_t hex_value(const char *digits, size_t n)
{
    uint32_t v = 0;

    for (size_t i = 0; i < n; i++) {
        char c = digits[i];

        v = v * 16 + (uint32_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* Resolve one escape (already known to be well-formed); returns its length and writes 1 to 4 bytes. */
static size_t unescape(const char *p, bool is_bytes, char out[4], size_t *out_n, const char **why)
{
    static const char from[] = "abfnrtv\"'\\?`", to[] = "\a\b\f\n\r\t\v\"'\\?`";
    const char *simple = strchr(from, p[1]);
    uint32_t code;
    size_t n;

    *out_n = 1;
    if (simple) {
        out[0] = to[simple - from];
        return 2;
    }
    n = p[1] == 'u' ? 4 : p[1] == 'U' ? 8 : p[1] == 'x' || p[1] == 'X' ? 2 : 0;
    if (is_bytes && n > 2) {
        *why = "unable to unescape string";
        return 0;
    }
    if (n)
        code = hex_value(p + 2, n);
    else
        code = (uint32_t)(p[1] - '0') * 64 + (uint32_t)(p[2] - '0') * 8 + (uint32_t)(p[3] - '0');
    if (is_bytes) {
        out[0] = (char)code;
    } else if (code > UTF8_MAX || (code >= 0xD800 && code <= 0xDFFF)) {
        *why = "invalid unicode code point";
        return 0;
    } else {
        *out_n = utf8_encode(code, out);
    }
    return n ? n + 2 : 4;
}

int cel_unquote(struct str token, bool is_bytes, struct arena *arena, struct str *out, const char **out_why)
{
    size_t at = is_bytes ? 1 : 0, n_quotes, end, n = 0;
    bool is_raw = token.ptr[at] == 'r' || token.ptr[at] == 'R';
    char *text;

    at += is_raw;
    n_quotes = token.len - at >= 6 && token.ptr[at] == token.ptr[at + 1] && token.ptr[at] == token.ptr[at + 2] ? 3 : 1;
    at += n_quotes;
    end = token.len - n_quotes;
    text = arena_alloc(arena, end - at + 4, 1);
    while (at < end) {
        char c = token.ptr[at];

        if (c == '\r') {
            text[n++] = '\n';
            at += at + 1 < end && token.ptr[at + 1] == '\n' ? 2 : 1;
        } else if (c == '\\' && !is_raw) {
            char bytes[4];
            size_t n_bytes, used = unescape(token.ptr + at, is_bytes, bytes, &n_bytes, out_why);

            if (!used)
                return -1;
            memcpy(text + n, bytes, n_bytes);
            n += n_bytes;
            at += used;
        } else {
            text[n++] = c;
            at++;
        }
    }
    *out = (struct str){text, n};
    return 0;
}
