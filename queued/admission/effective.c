#include "queued/admission/effective.h"

#include "queued/admission/plan.h"

#include "allocator/base/banned.h"

struct effective_placement effective_placement_of(enum job_placement own, const struct plan_queue *queues, size_t queue)
{
    if (own != JOB_PLACEMENT_DEFAULT)
        return (struct effective_placement){.placement = own, .source = PLACEMENT_OF_JOB};
    for (; queue != PLAN_ROOT; queue = queues[queue].parent)
        if (queues[queue].placement != JOB_PLACEMENT_DEFAULT)
            return (struct effective_placement){queues[queue].placement, PLACEMENT_OF_QUEUE, queues[queue].name};
    return (struct effective_placement){.placement = JOB_PLACEMENT_FRAGMENTATION, .source = PLACEMENT_OF_DEFAULT};
}

const char *placement_source_name(enum placement_source source)
{
    static const char *const names[] = {
        [PLACEMENT_OF_DEFAULT] = "default", [PLACEMENT_OF_QUEUE] = "queue", [PLACEMENT_OF_JOB] = "job"};

    return names[source];
}
