/* queued/manifest/duration.h - lengths of time as people write them in manifests and on the command line. */
#ifndef QUEUED_MANIFEST_DURATION_H
#define QUEUED_MANIFEST_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Go's duration text ("1h30m", "90s", "1.5h", "0") as milliseconds, rounded up; false when it is none, negative or out
 * of range. Source: the documentation of time.ParseDuration. */
bool duration_parse(const char *text, int64_t *out_ms);

#endif
