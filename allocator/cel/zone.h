/* allocator/cel/zone.h - the rules of the IANA time zones, without files.
 *
 * No rules are compiled in so far: every name is unknown. Pure; any thread. */
#ifndef QUEUED_CEL_ZONE_H
#define QUEUED_CEL_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/str.h"

/* The offset from UTC, in seconds east, of the zone with that exact name ("America/New_York", links included) at an
 * instant in seconds since 1970. False when there is no such zone. */
bool zone_rules_offset(struct str name, int64_t seconds, int64_t *out_offset);

#endif
