/* allocator/cel/regex_internal.h - shared by the files of regex only. */
#ifndef QUEUED_CEL_REGEX_INTERNAL_H
#define QUEUED_CEL_REGEX_INTERNAL_H

#include <stdbool.h>

#include "allocator/base/str.h"

/* Append the property that Go calls `name` in \p{name} as PCRE2 writes it inside a class; false when Go knows none. */
bool regex_add_property(struct str name, bool negated, bool fold, struct buf *out);

#endif
