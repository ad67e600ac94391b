/* queued/lifecycle/blueprint.h - a job's specification: a canonical GangJob and its parsed form, immutable and shared.
 *
 * The loop holds it with the job, a planning round on the worker holds it too: so it is reference-counted. References
 * are taken and given back on the loop thread only; reading is for any thread. */
#ifndef QUEUED_LIFECYCLE_BLUEPRINT_H
#define QUEUED_LIFECYCLE_BLUEPRINT_H

#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "queued/manifest/job.h"

struct blueprint {
    unsigned refs;
    struct arena arena;
    json_t *gangjob; /* never changed after parsing */
    struct job_spec spec;
    uint64_t twin; /* equal for jobs that ask for exactly the same: see plan_job */
};

/* Takes a reference to gangjob. Returns 0, or -1 with the field at fault. */
MUST_CHECK int blueprint_new(json_t *gangjob, struct blueprint **out, struct error *err);
struct blueprint *blueprint_ref(struct blueprint *blueprint);
void blueprint_unref(struct blueprint *blueprint); /* NULL is fine */
static inline void blueprint_freep(struct blueprint **blueprint)
{
    blueprint_unref(*blueprint);
}

#endif
