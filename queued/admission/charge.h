/* queued/admission/charge.h - what a job is charged for: what its placement really uses, whichever fallback that was.
 */
#ifndef QUEUED_ADMISSION_CHARGE_H
#define QUEUED_ADMISSION_CHARGE_H

#include "queued/admission/plan.h"

/* One amount per resource of the input; in `arena`. */
const int64_t *charge_of(const struct plan_input *input, const struct job_spec *job, size_t shape,
                         const struct placement *placement, struct arena *arena);

/* The least that a shape is charged for, wherever it may run: its cpu, memory and pods with the fewest members that may
 * start. Which devices it would take is not known without a placement: they count as 0. */
const int64_t *charge_least(const struct plan_input *input, const struct job_shape *shape, struct arena *arena);

/* What the cluster has: for plan_resource.total. `nodes` is snapshot_nodes_json(). */
int64_t resource_total(const struct plan_resource *resource, const struct snapshot *snapshot, const json_t *nodes);

#endif
