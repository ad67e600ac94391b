/* test/api/fake_core.h - a core of canned state behind core.h, so that the API is tested alone.
 *
 * It keeps core.h's promises about order: replies to commands come from core_end_turn, the watch is told there too. */
#ifndef QUEUED_TEST_FAKE_CORE_H
#define QUEUED_TEST_FAKE_CORE_H

#include <stdbool.h>

#include <jansson.h>

#include "queued/core.h"

enum { FAKE_REPLIES_MAX = 64 };

struct core {
    json_t *jobs;   /* array of jobs: {"id", "name", "state", ...} */
    json_t *events; /* array of events */
    bool is_ready;
    bool holds_replies;   /* answer no command until it is cleared */
    struct error failure; /* of every command and query while code is set */
    json_t *problems;     /* beside it */

    /* the last command */
    char command[64];
    char caller[64];
    json_t *documents;
    char ns[64], queue[64], key[64];
    bool one_job, dry_run;
    struct job_filter filter;
    char filter_state[32];

    struct fake_reply {
        core_reply_fn *reply;
        void *ctx;
        json_t *body;
    } replies[FAKE_REPLIES_MAX];
    size_t n_replies;
    bool is_changed;
    struct core_watch *watch;
};

/* Tokens that it knows are the names of roles: "viewer", "submitter", "queue-admin", "admin". */
struct core *fake_core_new(void);
json_t *fake_core_add_job(struct core *core, int id, const char *name, const char *state); /* borrowed */
void fake_core_set_state(struct core *core, int id, const char *state);
void fake_core_add_event(struct core *core, int id, int job, const char *type);

#endif
