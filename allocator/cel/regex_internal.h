/* allocator/cel/regex_internal.h - shared by the files of regex only. */
#ifndef QUEUED_CEL_REGEX_INTERNAL_H
#define QUEUED_CEL_REGEX_INTERNAL_H

#include <stdbool.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct error;

/* Append the property that Go calls `name` in \p{name} as PCRE2 writes it inside a class; false when Go knows none. */
bool regex_add_property(struct str name, bool negated, bool fold, struct buf *out);

/* Translate for finding (exact) or for searching only. The two differ only when *has_captures is set for the exact one.
 */
MUST_CHECK int regex_translate_for(struct str pattern, bool exact, struct buf *out, bool *has_captures,
                                   struct error *err);

#endif
