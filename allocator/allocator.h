/* allocator/allocator.h - device allocation as kube-scheduler does it, for programs outside of queued.
 *
 *   pkg-config --cflags --libs --static queued-allocator
 *
 * Feed Kubernetes objects as JSON to a snapshot builder, take snapshots, and ask: what would kube-scheduler give these
 * claims on that node (predict.h), may a pod run there (nodecheck.h), does a whole gang fit (gang.h), is this expression
 * true for that device (cel/cel.h). No input or output, no clock, no threads of its own. Everything is a value; errors
 * come by pointer. */
#ifndef QUEUED_ALLOCATOR_H
#define QUEUED_ALLOCATOR_H

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/base/quantity.h"
#include "allocator/cel/cel.h"
#include "allocator/features.h"
#include "allocator/gang.h"
#include "allocator/nodecheck.h"
#include "allocator/predict.h"
#include "allocator/snapshot.h"

#endif
