/* queued/admission/question.h - a job's shape as the question that the allocator answers.
 *
 * A job may have several shapes (whole-gang alternatives); each is a question of its own. The two rooms have their own
 * words for the same thing on purpose: a manifest knows users, the allocator knows kube-scheduler. Here they meet. */
#ifndef QUEUED_ADMISSION_QUESTION_H
#define QUEUED_ADMISSION_QUESTION_H

#include <stddef.h>

#include "allocator/base/arena.h"
#include "allocator/gang.h"
#include "queued/manifest/job.h"

/* Fill `out` for shape `shape` (below job->n_shapes) of the job, to be placed by `placement` (effective.h; that of the
 * job itself is not looked at). The budget and the excluded devices are left empty and now_ms is 0: the caller's
 * business. Arrays live in `arena`; strings and JSON are borrowed from what `job` borrows them from. Cannot fail: a
 * job_spec is checked already. Pure; any thread. */
void question_of_shape(const struct job_spec *job, size_t shape, enum job_placement placement, struct arena *arena,
                       struct gang_spec *out);

/* Groups whose minReplicas is below replicas may start smaller. A shape shrinks in steps, of a member or of one whole
 * job where a group consists of equal jobs (JobSet): the first group down to its least, then the next, in the
 * manifest's order. How many steps there are; 0: it starts whole or not at all. */
size_t shape_n_steps(const struct job_shape *shape);
/* Take `steps` (at most shape_n_steps) away from the question of that shape; in `arena`. */
void question_shrink(const struct job_shape *shape, size_t steps, struct arena *arena, struct gang_spec *question);

/* Leave alternatives of firstAvailable out of the question: of each claim those that the placement chose and that name
 * this device class. The last alternative of a request stays. Changed manifests are made in `keep`, an array that must
 * live as long as the question. Returns whether any was left out. */
bool question_without(struct gang_spec *question, const struct placement *placement, const char *device_class,
                      struct arena *arena, json_t *keep);

#endif
