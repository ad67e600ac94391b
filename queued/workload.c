/* What the jobs of this cluster look like, for the fragmentation score: the groups of all jobs that wait or run, by how
 * many members ask for the same. Jobs that ask for exactly the same (twins) are one entry; of many kinds the commonest
 * count. Made anew only when the mix changed. */
#include <stdlib.h>

#include "allocator/base/mem.h"
#include "queued/internal.h"

#include "allocator/base/banned.h"

#define MAX_KINDS   64  /* of jobs */
#define MAX_TYPICAL 128 /* groups of them */

struct workload {
    unsigned refs; /* the loop alone counts */
    uint64_t mix;
    struct gang_workload *gangs; /* NULL: nothing is known */
};

struct job_kind {
    const struct blueprint *blueprint;
    uint64_t n;
};

static int by_twin(const void *a, const void *b)
{
    const struct job_kind *x = a, *y = b;

    return x->blueprint->twin < y->blueprint->twin ? -1 : x->blueprint->twin > y->blueprint->twin;
}

static int by_count(const void *a, const void *b)
{
    const struct job_kind *x = a, *y = b;

    return x->n > y->n ? -1 : x->n < y->n ? 1 : by_twin(a, b);
}

/* Kinds in a fixed order, the commonest first. Jobs whose twins are not known are left out. */
static struct job_kind *find_kinds(const struct job_list *jobs, size_t *out_n)
{
    struct job_kind *kinds = mem_array(struct job_kind, jobs->n + 1);
    size_t n = 0, n_kinds = 0;

    for (size_t i = 0; i < jobs->n; i++)
        if ((jobs->items[i]->state == JOB_PENDING || jobs->items[i]->live) && jobs->items[i]->blueprint->twin)
            kinds[n++] = (struct job_kind){jobs->items[i]->blueprint, 1};
    qsort(kinds, n, sizeof(*kinds), by_twin);
    for (size_t i = 0; i < n; i++) {
        if (n_kinds && by_twin(&kinds[n_kinds - 1], &kinds[i]) == 0)
            kinds[n_kinds - 1].n++;
        else
            kinds[n_kinds++] = kinds[i];
    }
    qsort(kinds, n_kinds, sizeof(*kinds), by_count);
    *out_n = n_kinds < MAX_KINDS ? n_kinds : MAX_KINDS;
    return kinds;
}

static uint64_t mix_of(const struct job_kind *kinds, size_t n)
{
    uint64_t mix = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++) {
        mix = (mix ^ kinds[i].blueprint->twin) * UINT64_C(0x100000001b3);
        mix = (mix ^ kinds[i].n) * UINT64_C(0x100000001b3);
    }
    return mix;
}

static const json_t *first_template(const struct job_group *group)
{
    for (size_t c = 0; c < group->n_claims; c++)
        if (group->claims[c].source == JOB_CLAIM_OWN)
            return group->claims[c].object;
    return NULL;
}

/* A group that cannot be read counts for nothing: the plan of its own job says what is wrong with it. */
static bool is_readable(const struct gang_typical *typical, const struct features *features)
{
    struct gang_workload *alone = gang_workload_new(typical, 1, features, NULL);

    gang_workload_free(alone);
    return alone != NULL;
}

static struct gang_workload *gangs_of(const struct job_kind *kinds, size_t n_kinds, const struct features *features)
{
    struct gang_typical typical[MAX_TYPICAL];
    size_t n = 0;

    for (size_t k = 0; k < n_kinds; k++) {
        const struct job_shape *shape = &kinds[k].blueprint->spec.shapes[0];

        for (size_t g = 0; g < shape->n_groups && n < MAX_TYPICAL; g++) {
            typical[n] = (struct gang_typical){(double)kinds[k].n * (double)shape->groups[g].replicas,
                                               shape->groups[g].pod, first_template(&shape->groups[g])};
            n += is_readable(&typical[n], features);
        }
    }
    return n ? gang_workload_new(typical, n, features, NULL) : NULL;
}

struct workload *workload_now(struct core *core, const struct features *features)
{
    size_t n;
    struct job_kind *kinds = find_kinds(lifecycle_jobs(core->lifecycle), &n);
    uint64_t mix = mix_of(kinds, n);

    if (!core->workload || core->workload->mix != mix) {
        workload_unref(core->workload);
        core->workload = mem_new(struct workload);
        *core->workload = (struct workload){.refs = 1, .mix = mix, .gangs = gangs_of(kinds, n, features)};
    }
    free(kinds);
    core->workload->refs++;
    return core->workload;
}

void workload_unref(struct workload *workload)
{
    if (!workload || --workload->refs)
        return;
    gang_workload_free(workload->gangs);
    free(workload);
}

const struct gang_workload *workload_gangs(const struct workload *workload)
{
    return workload->gangs;
}
