/* queued/admission/bind.h - which claims queued allocates itself (bind mode).
 *
 * An administrator may give queued device classes that nobody else allocates devices of. A claim all of whose chosen
 * requests are of those classes is not left to kube-scheduler: queued writes its allocation, exactly as planned. So
 * gangs can start that steering could not hold, because their devices look alike. Pure. */
#ifndef QUEUED_ADMISSION_BIND_H
#define QUEUED_ADMISSION_BIND_H

#include <stdbool.h>
#include <stddef.h>

#include "allocator/base/arena.h"
#include "allocator/gang.h"

struct bind_classes {
    const char *const *names;
    size_t n;
};

/* Whether queued writes this allocation: it has devices, and all of them were asked for by these classes. `object` is
 * the ResourceClaim or ResourceClaimTemplate, in any of its versions. */
bool bind_covers(const struct bind_classes *classes, const json_t *object, const struct allocation *allocation);

/* What stands against writing all allocations of a placement: NULL for nothing, else words for the administrator, in
 * `arena`. Claims that exist already, and those that kube-scheduler makes for extended resources, are others'. */
const char *bind_obstacle(const struct bind_classes *classes, const struct gang_spec *question,
                          const struct placement *placement, struct arena *arena);

#endif
