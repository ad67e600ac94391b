/* test/cluster/kube/fake_stream.h - discovery.h and reflector.h by hand: what is served is said by the test, and so is
 * what the streams tell. Stands in for the library's when it is linked before it. */
#ifndef QUEUED_TEST_KUBE_FAKE_STREAM_H
#define QUEUED_TEST_KUBE_FAKE_STREAM_H

#include "queued/cluster/kube/discovery.h"
#include "queued/cluster/kube/reflector.h"

enum { FAKE_STREAMS_MAX = 32 };

struct reflector {
    struct reflector_options options;
    bool is_synced;
};

/* What the test sees and says; one at a time. */
struct fake_streams {
    struct clock *clock;
    const char *dra; /* the version of resource.k8s.io */
    const char *features;
    bool has_no_claims; /* resource.k8s.io is not served */
    bool is_away;       /* discovery fails */
    int n_discoveries;
    struct reflector *open[FAKE_STREAMS_MAX]; /* NULL where one was freed */
    size_t n_open;                            /* so far */
};
extern struct fake_streams fake_streams; /* of the running test */

/* Those that are open now say that they have told everything. */
void fake_streams_sync(void);
size_t fake_streams_n_alive(void);
/* The first that is open, or NULL. */
struct reflector *fake_streams_first(void);

#endif
