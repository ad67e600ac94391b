/* allocator/cel/regex_internal.h - shared by the files of regex only. */
#ifndef QUEUED_CEL_REGEX_INTERNAL_H
#define QUEUED_CEL_REGEX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct error;

/* The pattern being read and what is written beside it. */
struct regex_reader {
    struct str text;
    size_t at;
    struct buf *out;
    struct error *err;
    bool fold; /* whether case folding is in force */
};

static inline bool regex_at_end(const struct regex_reader *in)
{
    return in->at >= in->text.len;
}

/* The byte `ahead` of the reading position; NUL behind the end. */
static inline char regex_peek(const struct regex_reader *in, size_t ahead)
{
    return in->at + ahead < in->text.len ? in->text.ptr[in->at + ahead] : '\0';
}

static inline bool regex_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool regex_is_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool regex_looking_at(const struct regex_reader *in, const char *word);
/* Go's error about the bytes from .. to of the pattern. Returns -1. */
int regex_refuse(const struct regex_reader *in, const char *why, size_t from, size_t to);
/* Append one code point as PCRE2 reads it, in a class or outside. */
void regex_add_code(struct regex_reader *in, uint32_t code);

/* "\\" and what names one code point. */
MUST_CHECK int regex_read_escape(struct regex_reader *in, uint32_t *out);
/* "[" ... "]" */
MUST_CHECK int regex_read_class(struct regex_reader *in);
/* \d \pN ... outside of brackets: whether one stands here, and reading it. */
bool regex_is_class_escape(const struct regex_reader *in);
MUST_CHECK int regex_read_class_escape(struct regex_reader *in);

/* Append the property that Go calls `name` in \p{name} as PCRE2 writes it inside a class; false when Go knows none. */
bool regex_add_property(struct str name, bool negated, bool fold, struct buf *out);

/* Translate for finding (exact) or for searching only. The two differ only when *has_captures is set for the exact one.
 */
MUST_CHECK int regex_translate_for(struct str pattern, bool exact, struct buf *out, bool *has_captures,
                                   struct error *err);

#endif
