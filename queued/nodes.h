/* queued/nodes.h - which of the jobs that wait an autoscaler should be asked for nodes for. Pure. */
#ifndef QUEUED_NODES_H
#define QUEUED_NODES_H

#include "queued/admission/plan.h"
#include "queued/book.h"
#include "queued/lifecycle/ask.h"

/* What a round's outcome for a job that was not admitted means. The outcomes of a round are to be given in its order:
 * has_asked (one per queue, false at first) makes it one job of a queue at a time, the first that lacks nodes, since
 * each alone is within the quota and all of them together may not be. */
enum ask_wish nodes_wish(const struct plan_input *input, const struct book *book, const struct plan_outcome *outcome,
                         bool *has_asked);

#endif
