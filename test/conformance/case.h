/* test/conformance/case.h - one conformance case of the allocator: what it asks, what came out, and the difference. */
#ifndef QUEUED_TEST_CASE_H
#define QUEUED_TEST_CASE_H

#include <jansson.h>
#include <stdbool.h>

#include "allocator/base/str.h"

enum case_result { CASE_PASSED, CASE_FAILED, CASE_SKIPPED };

/* Which features run beside those that a case names: a case holds for all of them. */
enum case_features { CASE_FEATURES_EXACT, CASE_FEATURES_DEFAULT, CASE_FEATURES_ALL };

struct case_options {
    enum case_features features; /* but never those in featuresOff */
    bool plain;                  /* answer with the plain search, without the cache */
    int release;                 /* 0: 37 */
};

/* Run a case (a JSON object as told in the conformance README) and compare. `why` gets one line when it does not pass.
 */
enum case_result case_run(const json_t *object, const struct case_options *options, struct buf *why);

/* Read a .yaml case file or the lines of a .jsonl file, or all of these of a folder in the order of their names, and
 * call `each` with every case. Returns 0, or -1 with words on standard error when a file cannot be read. */
int cases_read(const char *path, void (*each)(void *ctx, const char *file, const json_t *object), void *ctx);

#endif
