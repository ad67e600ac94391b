/* allocator/cel/namedformat.h - the named text formats of Kubernetes: format.dns1123Label(), format.named("uuid"), ...
 *
 * A format says what is wrong with a text, in Kubernetes' words; nothing wrong means valid. Static tables; pure; any
 * thread. */
#ifndef QUEUED_CEL_NAMEDFORMAT_H
#define QUEUED_CEL_NAMEDFORMAT_H

#include <stddef.h>

#include "allocator/base/str.h"

struct arena;
struct format_problems;

struct named_format {
    const char *name;    /* "dns1123Label": as in format.dns1123Label() and format.named() */
    const char *title;   /* "DNS1123Label": equal formats have equal titles */
    unsigned regex_size; /* what the cost model counts for one validation */
    void (*check)(struct str text, struct format_problems *problems); /* use named_format_validate */
};

/* NULL when there is no such format. */
const struct named_format *named_format_find(struct str name);
/* All of them, n of them, in a fixed order: for declaring the functions. */
const struct named_format *named_format_all(size_t *out_n);

/* What is wrong with the text: n reasons in the arena, or 0 for a valid text. */
size_t named_format_validate(const struct named_format *format, struct str text, struct arena *arena,
                             const struct str **out_reasons);

#endif
