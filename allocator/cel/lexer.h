/* allocator/cel/lexer.h - the text of an expression as tokens. */
#ifndef QUEUED_CEL_LEXER_H
#define QUEUED_CEL_LEXER_H

#include "allocator/cel/ast.h"

enum token_kind {
    TOK_END,
    TOK_IDENT,
    TOK_QUOTED, /* `quoted field` */
    TOK_INT,
    TOK_UINT,
    TOK_DOUBLE,
    TOK_STRING,
    TOK_BYTES,
    TOK_TRUE,
    TOK_FALSE,
    TOK_NULL,
    TOK_IN,
    TOK_EQ,
    TOK_NE,
    TOK_LE,
    TOK_LT,
    TOK_GE,
    TOK_GT,
    TOK_AND,
    TOK_OR,
    TOK_LBRACKET,
    TOK_RBRACKET,
    TOK_LBRACE,
    TOK_RBRACE,
    TOK_LPAREN,
    TOK_RPAREN,
    TOK_DOT,
    TOK_COMMA,
    TOK_MINUS,
    TOK_NOT,
    TOK_QUESTION,
    TOK_COLON,
    TOK_PLUS,
    TOK_STAR,
    TOK_SLASH,
    TOK_PERCENT,
};

struct token {
    enum token_kind kind;
    uint32_t pos, len; /* bytes of the text */
};

/* All tokens of a text, closed by TOK_END, in the arena; NULL with the diagnosis. The text must be valid UTF-8. */
const struct token *cel_lex(struct str text, struct arena *arena, struct cel_diagnosis *d);

/* The value of a TOK_STRING or TOK_BYTES: escapes resolved, line ends normalized. 0, or -1 with *out_why. */
int cel_unquote(struct str token, bool is_bytes, struct arena *arena, struct str *out, const char **out_why);

#endif
