/* queued/cluster/kube/skim.h - takes out of the text of an object what nobody reads, before it is parsed.
 *
 * metadata.managedFields is half of the bytes of a pod, and most of its JSON values. Pure. */
#ifndef QUEUED_KUBE_SKIM_H
#define QUEUED_KUBE_SKIM_H

#include <stddef.h>

/* Cut the first member "managedFields" that is an array and stands `depth` objects deep (2: in the metadata of an
 * object), written without white space as API servers do. Returns the new length. Of text that is no JSON nothing is
 * promised but to stay within its bounds. */
size_t skim_managed_fields(char *text, size_t len, size_t depth);

#endif
