/* allocator/cel/zone.h - the rules of the IANA time zones, without files.
 *
 * Source: the public-domain time zone database (tz) in the version that zone_data.c names; zone_data.py writes that
 * file. Pure; any thread. */
#ifndef QUEUED_CEL_ZONE_H
#define QUEUED_CEL_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/str.h"

/* The offset from UTC, in seconds east, of the zone with exactly that name ("America/New_York", links included) at an
 * instant in seconds since 1970. Before the first known change it is the local mean time; behind the last, the zone's
 * yearly rule goes on for ever. False when there is no such zone. */
bool zone_rules_offset(struct str name, int64_t seconds, int64_t *out_offset);

#endif
