/* allocator/cel/strformat.h - "...".format([...]) of CEL, strings library version 2.
 *
 * The caller lends its values through struct format_value, so that this module knows nothing of the language. Source:
 * the CEL description, 10.1; the formatter of cel-go before the locale-free one. Pure; any thread. */
#ifndef QUEUED_CEL_STRFORMAT_H
#define QUEUED_CEL_STRFORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"
#include "allocator/cel/timefmt.h"

struct error;

#define FORMAT_MAX_DEPTH  256       /* nested lists and maps under %s */
#define FORMAT_MAX_OUTPUT (1 << 24) /* bytes */

enum format_kind {
    FORMAT_BOOL,
    FORMAT_INT,
    FORMAT_UINT,
    FORMAT_DOUBLE,
    FORMAT_STRING,
    FORMAT_BYTES,
    FORMAT_NULL,
    FORMAT_TYPE,
    FORMAT_TIMESTAMP,
    FORMAT_DURATION,
    FORMAT_LIST,
    FORMAT_MAP,
    FORMAT_OTHER, /* quantities, versions, addresses, ...: only named in errors */
};

struct format_value {
    enum format_kind kind;
    union {
        bool b;
        int64_t i; /* int, and duration in nanoseconds */
        uint64_t u;
        double d;
        struct str s; /* string, bytes, type (its name), other (the name of its type) */
        struct timestamp t;
        struct {
            const void *container; /* the caller's list or map */
            size_t n;              /* elements or entries */
        } c;
    } as;
};

/* How to look into the caller's lists and maps. `context` is the caller's. Element i < n of a list; entry i < n of a
 * map, in any order. The values live until the formatting ends. */
struct format_reader {
    void *context;
    void (*element)(void *context, const void *list, size_t i, struct format_value *out);
    void (*entry)(void *context, const void *map, size_t i, struct format_value *out_key,
                  struct format_value *out_value);
};

/* Format with the list's elements as arguments; surplus arguments are ignored. `reader` may be NULL when no value is a
 * list or map. Appends to out; on failure out holds a part of the text. Returns 0, or -1 with ERR_INVALID ("error
 * during formatting: ...", "index 2 out of range"), or ERR_LIMIT. */
MUST_CHECK int strformat(struct str format, const struct format_value *arguments, size_t n_arguments,
                         const struct format_reader *reader, struct buf *out, struct error *err);

/* ---- for the checker of literal formats ---- */

/* One clause of a format string, with the kinds of values that it takes as BIT(kind). */
struct format_clause {
    char letter;        /* s d f e b o x X */
    int precision;      /* -1 when none is written */
    unsigned kinds;     /* of the checker too; %f and %e take three special strings only, which shows at run time */
    const char *misfit; /* "decimal clause can only be used on integers" */
};

/* Walks the clauses of a format string: *at starts at 0. Returns 1 and the clause that takes argument `index`, 0 at the
 * end, -1 when the format is malformed or when a clause asks for an argument at or beyond n_arguments, as the reference
 * reports it ("index 2 out of range"). */
MUST_CHECK int format_next_clause(struct str format, size_t *at, size_t index, size_t n_arguments,
                                  struct format_clause *out, struct error *err);

/* The words of an argument that does not fit: fills err with "error during formatting: " and the misfit. Returns -1. */
int format_misfit(const struct format_clause *clause, struct str type_name, struct error *err);

#endif
