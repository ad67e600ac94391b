/* queued/cluster/kube/reflector.h - one list and watch: tells what exists, then each change, for as long as it lives.
 *
 * Lists page by page, watches from there with bookmarks, goes on after a broken connection from the last version seen,
 * and lists again when that is too old (410, as a status or as an event): then it tells what is gone by itself. Waits
 * between failures grow, with jitter, and honour Retry-After. Objects are not kept, only their names and versions: what
 * a new listing shows unchanged is not told again. Loop thread only. */
#ifndef QUEUED_KUBE_REFLECTOR_H
#define QUEUED_KUBE_REFLECTOR_H

#include <jansson.h>

#include "queued/clock.h"
#include "queued/cluster/cluster.h"
#include "queued/cluster/kube/http.h"
#include "queued/cluster/kube/kinds.h"

struct reflector;

struct reflector_options {
    struct http *http;
    struct clock *clock;
    const struct source *source;
    const char *version; /* that the server has; lives as long as the reflector */
    uint64_t seed;       /* of the jitter */
    size_t page;         /* objects per page; 0: 500 */
    int64_t stale_ms;    /* without a working watch for so long, `stale` is told; 0: 60,000 */
    void *ctx;
    /* CLUSTER_PUT: trimmed (kind_trim). CLUSTER_GONE: kind and metadata with name, namespace, uid and, of what is ours,
     * labels. An object that was replaced by another of its name is told GONE before the new one is PUT. */
    void (*changed)(void *ctx, enum cluster_change change, const json_t *object);
    /* Everything that exists has been told for the first time. A kind that is optional and that this server does not
     * have, or does not let us read, has nothing; it is asked for again every five minutes. */
    void (*synced)(void *ctx);
    /* Nothing reached us for stale_ms (and again never until it works). What is told meanwhile may be old. */
    void (*stale)(void *ctx, const struct error *err);
};
/* Begins at once; the listener is called from the loop only. */
struct reflector *reflector_new(const struct reflector_options *options);
/* May be called from inside the listener too: nothing is told any more. */
void reflector_free(struct reflector *reflector);
bool reflector_is_synced(const struct reflector *reflector);

/* Measurements: lists and watches begun, failures, objects that were passed over because nobody can read them; and of
 * now: objects known, and bytes held for them. */
struct reflector_counts {
    uint64_t lists, watches, failures, refused;
    size_t known, bytes;
};
struct reflector_counts reflector_counts(const struct reflector *reflector);

#endif
