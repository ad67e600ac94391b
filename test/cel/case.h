/* test/cel/case.h - one line of the conformance data, decoded. */
#ifndef QUEUED_TEST_CEL_CASE_H
#define QUEUED_TEST_CEL_CASE_H

#include <jansson.h>

#include "allocator/base/arena.h"
#include "allocator/cel/cel.h"
#include "allocator/cel/spec.h"

enum case_verdict { CASE_PASSED, CASE_FAILED, CASE_SKIPPED };

/* Why a case is not run, by file, section and name ("" matches every one); NULL when it is. */
const char *case_skip_reason(const char *file, const char *section, const char *name);

/* Run one case. A failure says why in `why`. `release` 34 .. 37; 0 is the newest that the case holds for. */
enum case_verdict case_run(const json_t *line, int release, struct buf *why);

/* The device of a DRA case, in the arena; texts borrow from the JSON. */
struct cel_device_spec case_device(const json_t *device, struct arena *arena);

#endif
