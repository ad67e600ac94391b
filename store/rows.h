/* store/rows.h - what the tables hold, as plain values, and the typed functions of each aggregate.
 *
 * Rows handed to a callback are borrowed for its call; rows handed in are borrowed for the call. JSON travels as text.
 * Time is milliseconds UTC, 0 where it has not come yet. Writes follow store.h: they join the turn's transaction and a
 * failure sticks until store_commit(). */
#ifndef QUEUED_STORE_ROWS_H
#define QUEUED_STORE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "allocator/base/error.h"

struct store;

/* ---- jobs ---- */

/* The part of a job that changes. */
struct job_status {
    const char *state;
    const char *ending; /* the state it goes to when its attempt is gone; NULL: nobody ends it */
    const char *reason; /* one sentence, or "" */
    int64_t priority, attempt, retries_left, failures, not_before_ms, started_ms, ended_ms;
    int64_t exit_code; /* -1: unknown */
};

struct job_row {
    int64_t id;
    const char *name, *ns, *queue, *user, *spec;
    int64_t submitted_ms;
    struct job_status status;
};

/* Add a job; the id is chosen here and never used again. Returns it, or 0 when the transaction has failed. */
int64_t store_job_insert(struct store *store, const struct job_row *row);
/* Save the changing part; `from` is the state that the caller believes stored (ERR_CONFLICT at commit if not). */
void store_job_save(struct store *store, int64_t id, const char *from, const struct job_status *status);
void store_job_delete(struct store *store, int64_t id);
/* All jobs, ascending by id. */
MUST_CHECK int store_jobs_each(struct store *store, void (*each)(void *ctx, const struct job_row *row), void *ctx,
                               struct error *err);

void store_dependency_add(struct store *store, int64_t job, int64_t depends_on);
/* Nobody waits for `depends_on` any more. */
void store_dependency_met(struct store *store, int64_t depends_on);
MUST_CHECK int store_dependencies_each(struct store *store, void (*each)(void *ctx, int64_t job, int64_t depends_on),
                                       void *ctx, struct error *err);

/* ---- attempts and what they create ---- */

struct attempt_row {
    int64_t job, number, shape, created_ms;
    const char *placement, *chosen, *charges; /* JSON */
    const char *effective;                    /* JSON; NULL: planned by a version that did not record it */
};
struct object_row {
    int64_t position; /* in the order of creation, from 0 */
    const char *kind, *ns, *name, *body;
    const char *planned; /* JSON, or NULL */
};
void store_attempt_insert(struct store *store, const struct attempt_row *row);
void store_attempt_recharge(struct store *store, int64_t job, int64_t number, const char *charges);
void store_attempt_place(struct store *store, int64_t job, int64_t number, const char *placement);
void store_object_insert(struct store *store, int64_t job, int64_t attempt, const struct object_row *row);
/* The attempt is gone from the cluster: forget its objects; its own row stays with the job. */
void store_objects_delete(struct store *store, int64_t job, int64_t attempt);
/* One attempt: `attempt` is called once if it exists, then `object` for each of its objects in order. */
MUST_CHECK int store_attempt_load(struct store *store, int64_t job, int64_t number,
                                  void (*attempt)(void *ctx, const struct attempt_row *row),
                                  void (*object)(void *ctx, const struct object_row *row), void *ctx,
                                  struct error *err);

/* ---- events ---- */

struct event_row {
    int64_t id, job, at_ms;
    const char *type, *from, *to, *detail; /* from and to are "" for events that move nothing */
};
void store_event_insert(struct store *store, const struct event_row *row); /* row->id is not read */
/* Events of a job (0: of all) with an id above `after`, ascending, at most `limit`. */
MUST_CHECK int store_events_each(struct store *store, int64_t job, int64_t after, size_t limit,
                                 void (*each)(void *ctx, const struct event_row *row), void *ctx, struct error *err);

/* ---- queues, quotas, resources, priority classes ---- */

#define STORE_UNLIMITED INT64_MAX

struct queue_row {
    const char *name, *parent; /* parent NULL: below the root */
    int64_t weight;
    const char *state;     /* open, held, drained */
    const char *placement; /* fragmentation, pack, spread; NULL: as the queue above says */
};
struct quota_row {
    const char *queue, *resource;
    int64_t nominal, borrowing, lending; /* limits may be STORE_UNLIMITED */
};
struct resource_row {
    const char *name, *device_class, *selector, *capacity; /* the last three may be NULL */
};
struct priority_row {
    const char *name;
    int64_t value;
};
/* Each puts: added, or replaced when the name is there already. */
void store_queue_put(struct store *store, const struct queue_row *row);
void store_queue_delete(struct store *store, const char *name); /* its quotas go too */
void store_quota_put(struct store *store, const struct quota_row *row);
void store_quotas_delete(struct store *store, const char *queue);
void store_resource_put(struct store *store, const struct resource_row *row);
void store_priority_put(struct store *store, const struct priority_row *row);
/* All rows, each kind in the order of its key. */
struct queue_visitor {
    void *ctx;
    void (*queue)(void *ctx, const struct queue_row *row);
    void (*quota)(void *ctx, const struct quota_row *row);
    void (*resource)(void *ctx, const struct resource_row *row);
    void (*priority)(void *ctx, const struct priority_row *row);
};
MUST_CHECK int store_queues_each(struct store *store, const struct queue_visitor *visitor, struct error *err);

/* ---- usage ---- */

struct usage_row {
    int64_t job, attempt;
    const char *resource, *queue, *user;
    int64_t amount, from_ms, to_ms; /* to_ms 0: still held */
};
/* Open, or change the amount of what is open; since when it is held stays. to_ms is not read. */
void store_usage_put(struct store *store, const struct usage_row *row);
void store_usage_close(struct store *store, int64_t job, int64_t attempt, int64_t to_ms);
/* Rows that overlap [from_ms, to_ms), by job, attempt, resource. */
MUST_CHECK int store_usage_each(struct store *store, int64_t from_ms, int64_t to_ms,
                                void (*each)(void *ctx, const struct usage_row *row), void *ctx, struct error *err);

/* ---- access ---- */

#define STORE_HASH_BYTES 32

/* SHA-256, for tokens and for recognizing a repeated request. */
void store_hash(const void *bytes, size_t len, unsigned char out[STORE_HASH_BYTES]);

struct token_row {
    int64_t id;
    const char *name, *role, *queues; /* queues: JSON array, or NULL for all */
    unsigned char hash[STORE_HASH_BYTES];
    int64_t created_ms;
};
/* Returns the id, or 0 when the transaction has failed. row->id is not read. */
int64_t store_token_insert(struct store *store, const struct token_row *row);
void store_token_delete(struct store *store, int64_t id);
MUST_CHECK int store_tokens_each(struct store *store, void (*each)(void *ctx, const struct token_row *row), void *ctx,
                                 struct error *err);

struct key_row {
    const char *user, *key;
    unsigned char request[STORE_HASH_BYTES];
    const char *jobs; /* JSON array of ids */
    int64_t created_ms;
};
void store_key_insert(struct store *store, const struct key_row *row);
/* Calls `found` once if this user has used this key. */
MUST_CHECK int store_key_find(struct store *store, const char *user, const char *key,
                              void (*found)(void *ctx, const struct key_row *row), void *ctx, struct error *err);
void store_keys_expire(struct store *store, int64_t before_ms);

#endif
