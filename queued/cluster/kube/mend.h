/* queued/cluster/kube/mend.h - JSON that an API server passes on and jansson refuses, made readable.
 *
 * In a few places (parameters of a driver, data of a device) an object holds whatever its owner wrote. An API server
 * takes there what jansson does not: whole numbers of more than 64 bits, half of a surrogate pair, NUL in a key,
 * nesting of any depth. Without this, such a claim would be invisible here while the scheduler allocates devices to it.
 * Pure. */
#ifndef QUEUED_KUBE_MEND_H
#define QUEUED_KUBE_MEND_H

#include "allocator/base/str.h"

/* Append one JSON value with: whole numbers that are too long as reals, reals out of range as 0, \u0000 and halves of
 * pairs as \ufffd, null for what is nested deeper than max_depth. What is no JSON at all stays so. */
void mend_json(struct str text, size_t max_depth, struct buf *out);

#endif
