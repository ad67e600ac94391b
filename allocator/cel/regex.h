/* allocator/cel/regex.h - Go's regular expressions (RE2 syntax, leftmost-first) on top of PCRE2.
 *
 * The pattern is parsed and checked by ourselves, because what Go accepts and what PCRE2 accepts differ in both
 * directions, and is then written out as an equivalent PCRE2 pattern. Matching is bounded: a match that needs more than
 * REGEX_MATCH_LIMIT steps is tried again by PCRE2's other algorithm where only "is there a match" is asked, and is an
 * error (ERR_LIMIT) otherwise. Go never fails there; patterns of selectors do not come near the limit.
 *
 * A compiled expression is immutable; any number of threads may match with it at the same time. In the steady state
 * matching takes nothing from the heap: each expression keeps the working memory of one match and hands it to whichever
 * thread comes first.
 *
 * Departures from Go: groups nest at most 200 deep, not 1000; (?i) on \p{Lu}, \p{Ll}, \p{Lt} matches every letter that
 * has a case; Unicode tables are those of the PCRE2 library; a pattern whose expansion exceeds what PCRE2 can compile
 * (64 KiB) is refused with ERR_LIMIT; loops in loops over lazy or alternative things that can be empty may find a text
 * of another length in rare cases (whether something matches is never affected). */
#ifndef QUEUED_CEL_REGEX_H
#define QUEUED_CEL_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

#define REGEX_MAX_PATTERN 10240   /* bytes */
#define REGEX_MATCH_LIMIT 1000000 /* steps of one match attempt */

struct error;
struct regex;

/* Compile a pattern (borrowed for the call). Returns 0 and an expression to regex_free(), or -1 with ERR_INVALID and
 * Go's words ("error parsing regexp: missing closing ): `(`"), or ERR_LIMIT. Any bytes are safe. */
MUST_CHECK int regex_compile(struct str pattern, struct regex **out, struct error *err);
void regex_free(struct regex *regex);
static inline void regex_freep(struct regex **regex)
{
    regex_free(*regex);
}

/* Whether the pattern matches anywhere in the text. Returns 0, or -1 with ERR_LIMIT, or ERR_INVALID when the text is no
 * valid UTF-8. */
MUST_CHECK int regex_search(const struct regex *regex, struct str text, bool *out_found, struct error *err);

/* Byte range of a match in the text. */
struct regex_match {
    size_t start, end;
};

/* All matches from left to right, as Go's FindAllString: they do not overlap, and an empty match directly behind the
 * previous match does not count.
 *
 *     struct regex_iterator it = regex_iterate(regex, text);
 *     while ((found = regex_next(&it, &match, err)) > 0) ...
 *
 * The iterator borrows both. regex_next returns 1 and a match, 0 at the end, -1 on failure (as regex_search). */
struct regex_iterator {
    const struct regex *regex;
    struct str text;
    size_t at;       /* where the next search starts */
    size_t last_end; /* of the previous match; SIZE_MAX before the first */
    bool is_checked; /* the text is valid UTF-8 */
};
struct regex_iterator regex_iterate(const struct regex *regex, struct str text);
MUST_CHECK int regex_next(struct regex_iterator *it, struct regex_match *out, struct error *err);

/* The PCRE2 pattern that a Go pattern becomes; for tests. Same errors as regex_compile but for those of PCRE2. */
MUST_CHECK int regex_translate(struct str pattern, struct buf *out, struct error *err);

#endif
