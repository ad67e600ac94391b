/* test/support/relay.h - a cluster in front of a cluster: it outlives the core that talks to it, and fails on demand.
 *
 * The cluster behind is started once. Each core that comes gets the whole stream from the relay's memory, as a
 * restarted server gets it from a real cluster; what was on its way to the core before is lost. So it is when the
 * stream is lost (relay_cut, or the cluster behind says so). Changes and answers may be told later than they happen,
 * each for itself: a watch and a request have no order between them. */
#ifndef QUEUED_TEST_RELAY_H
#define QUEUED_TEST_RELAY_H

#include <stdbool.h>

#include <jansson.h>

#include "queued/clock.h"
#include "queued/cluster/cluster.h"

enum relay_fault {
    RELAY_REFUSE, /* the call is not carried out, and the caller is told `code` */
    RELAY_LOSE,   /* the call is carried out, and the caller is told `code` all the same */
    RELAY_LATE,   /* the caller is told `code`, and the call is carried out after late_ms all the same */
};

struct relay_later;

struct relay {
    struct cluster port; /* first: this is what the core gets */
    struct cluster *behind;
    struct clock *clock;
    struct clock_timer *replay;
    struct cluster_listener *to_behind;
    struct cluster_listener listener; /* of the present core */
    bool is_attached, is_behind_synced, is_core_synced;
    unsigned generation; /* of cores: an answer for an older one is dropped */
    json_t *objects;     /* "Kind/ns/name" -> object */
    size_t n_calls;      /* creations, removals, ungatings, allocations, gets so far */
    size_t fail_nth;     /* 0: none */
    enum relay_fault fault;
    enum err_code code;
    int64_t late_ms;
    json_t *created;                      /* "Kind/name" -> how often a creation succeeded */
    int64_t stream_lag_ms, answer_lag_ms; /* 0: at once */
    json_t *said;                         /* laid over what the cluster behind says that it is */
    struct relay_later *later;            /* what is still to be told, or carried out; by time */
    struct clock_timer *later_timer;
};

/* Takes the cluster behind. */
void relay_init(struct relay *relay, struct cluster *behind, struct clock *clock);
/* The core hears that the stream is lost, and after `ms` everything anew. */
void relay_cut(struct relay *relay, int64_t ms);
/* The cluster describes itself otherwise from now on (see describe() of the port), and the core hears of it. Takes the
 * value. */
void relay_say(struct relay *relay, const char *key, json_t *value);
/* Whether the core has been told everything. */
static inline bool relay_is_current(const struct relay *relay)
{
    return relay->is_core_synced && !relay->later;
}
/* The core is gone. */
void relay_detach(struct relay *relay);
void relay_release(struct relay *relay);

/* How many objects with our labels exist. */
size_t relay_n_ours(const struct relay *relay);

#endif
