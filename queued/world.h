/* queued/world.h - the cluster as the simulation sees it: what the stream told, with our own plans counted as done.
 *
 * Objects come in one by one; a new snapshot is made only when something that matters to the simulation has changed (a
 * node's heartbeat does not). While a planning round is on its way, the world remembers what changed to the
 * disadvantage of a plan, so that the plan can be checked when it comes back. Loop thread only; snapshots are for any
 * thread. */
#ifndef QUEUED_WORLD_H
#define QUEUED_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/features.h"
#include "allocator/gang.h"
#include "allocator/snapshot.h"

struct world;

struct world *world_new(const struct features *features);
void world_free(struct world *world);

/* An object of the cluster, or ours as it must be seen. A refused one is logged and leaves its predecessor. is_planned:
 * a plan had it counted already, so that nobody's plan is disturbed by it. */
void world_put(struct world *world, const json_t *object, bool is_planned);
void world_remove(struct world *world, const char *kind, const char *ns, const char *name);

/* The stream begins anew / has told everything: what it did not tell again is removed. Objects put as planned stay. */
void world_stream_lost(struct world *world);
void world_stream_synced(struct world *world);

/* The snapshot of now, with a reference for the caller. */
struct snapshot *world_snapshot(struct world *world);
/* Grows with every change that matters. */
uint64_t world_version(const struct world *world);
bool world_has(const struct world *world, const char *kind, const char *ns, const char *name);

/* Objects that the simulation does not read and that policy does: as they were told last, by name, those in a namespace
 * by "namespace/name". An object, borrowed until the world changes. A change of them disturbs no plan. */
enum world_policy { WORLD_QUOTAS, WORLD_PRIORITY_CLASSES, WORLD_N_POLICIES };
const json_t *world_kept(const struct world *world, enum world_policy policy);
/* The namespaces in which a ResourceQuota changed without freeing anybody, since this was last asked: an object used as
 * a set, new reference. */
json_t *world_take_fuller(struct world *world);
/* Of a device that a result of an allocation names for itself alone: "namespace/name" of a claim other than this one
 * that has it too, or NULL. Valid until the next change. */
const char *world_other_holder(const struct world *world, const json_t *result, const char *ns, const char *name);

/* From now on remember what changes to the disadvantage of plans. */
void world_watch_begin(struct world *world);
/* Whether something that this placement relies on was taken or changed since. */
bool world_disturbs(const struct world *world, const struct placement *placement);

#endif
