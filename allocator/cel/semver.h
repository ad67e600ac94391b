/* allocator/cel/semver.h - semantic versions as Kubernetes reads and orders them.
 *
 * A version is a plain value that borrows pre-release and build metadata from its text. Source: the grammar of Semantic
 * Versioning 2.0.0 with the tolerance told in the CEL description, 11.2. Pure; any thread. */
#ifndef QUEUED_CEL_SEMVER_H
#define QUEUED_CEL_SEMVER_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct error;

struct semver {
    uint64_t major, minor, patch;
    struct str pre;   /* "rc.1" without the dash; empty when there is none */
    struct str build; /* "build.5" without the plus; ignored by the order */
};

/* Parse text; with `normalize` a leading "v" is dropped, leading zeros go and missing parts become 0. `out` borrows
 * from text and is written on success only. Returns 0, or -1 with ERR_INVALID and the reason in Kubernetes' words. */
MUST_CHECK int semver_parse(struct str text, bool normalize, struct semver *out, struct error *err);

/* -1, 0, 1 by precedence; build metadata does not count. Two versions are equal when this is 0. */
int semver_cmp(const struct semver *a, const struct semver *b);

/* Append the version as text; parsing it strictly gives the same version. */
void semver_format_to(const struct semver *version, struct buf *out);

#endif
