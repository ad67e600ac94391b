/* queued/cluster/kube/known.h - what a reflector has told: per object its name, uid, version, and the labels of what is
 * ours. One allocation each, some 200 bytes, so that 100,000 pods stay a small thing. */
#ifndef QUEUED_KUBE_KNOWN_H
#define QUEUED_KUBE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct known; /* the table */

struct known *known_new(void);
void known_free(struct known *known);
size_t known_count(const struct known *known);
size_t known_bytes(const struct known *known); /* of its own allocations; not of labels */

enum known_change { KNOWN_NEW, KNOWN_CHANGED, KNOWN_SAME, KNOWN_REPLACED };

/* Note an object as seen in `round`, and say what it is to us. KNOWN_REPLACED: another of this name was known;
 * *out_gone is that one as known_remove() tells it, a new reference, else NULL. */
enum known_change known_put(struct known *known, const json_t *object, uint64_t round, json_t **out_gone);
/* Forget one; returns what it was as {"metadata": {"name", "namespace", "uid", "labels"}}, a new reference, or NULL
 * when it was not known. */
json_t *known_remove(struct known *known, const json_t *object);
/* Forget one that was not seen in `round`, in the order in which they came; NULL when there is none left. */
json_t *known_sweep(struct known *known, uint64_t round);

#endif
