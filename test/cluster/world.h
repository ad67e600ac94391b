/* test/cluster/world.h - an embedded cluster on a virtual clock, and everything that it tells, as text. */
#ifndef QUEUED_TEST_WORLD_H
#define QUEUED_TEST_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"
#include "queued/clock.h"
#include "queued/cluster/cluster.h"
#include "queued/cluster/embedded/embedded.h"

#define WORLD_START_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

struct world {
    char folder[64]; /* holds "manifests" and "state" */
    bool keeps_state;
    struct clock *clock;
    struct cluster *cluster;
    struct cluster_listener listener;
    json_t *objects;   /* "Kind/ns/name": object, as the stream tells it */
    struct buf stream; /* one line per change: "PUT Pod/ns/p Running@n1" */
    struct buf warnings;
    size_t n_synced, n_lost, n_warnings;
    struct embedded_options options;
    void (*each)(struct world *world); /* after every change, may be NULL */
    void *ctx;
};

/* Two nodes n1 and n2 with four GPUs each (two of a, two of b), the classes gpu and any, and 16 CPUs per node. */
extern const char world_two_nodes[];

/* Begin with these manifests; started and synced. */
void world_open(struct world *world, const char *yaml, bool keeps_state);
/* The server dies and comes again: everything in memory is lost. */
void world_restart(struct world *world);
void world_close(struct world *world);
/* Take the server away and bring it back; time may pass in between. */
void world_stop(struct world *world);
void world_resume(struct world *world);
void world_run(struct world *world, int64_t ms);
int64_t world_ms(const struct world *world); /* since WORLD_START_MS */

/* Requests, answered before they return. Text is JSON with ' for ". The code of the answer; `err` may be NULL. */
enum err_code world_create(struct world *world, struct error *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
enum err_code world_create_json(struct world *world, const json_t *object, struct error *err);
enum err_code world_delete(struct world *world, const char *kind, const char *ns, const char *name, const char *uid);
enum err_code world_ungate(struct world *world, const char *ns, const char *pod);
/* Write a claim's allocation. */
enum err_code world_allocate(struct world *world, struct error *err, const char *ns, const char *claim, const char *fmt,
                             ...) PRINTF_LIKE(5, 6);
/* The same in the namespace "default", reserved at once: the text is [allocation, consumers]; uid may be NULL. */
enum err_code world_allocate_for(struct world *world, struct error *err, const char *claim, const char *uid,
                                 const char *fmt, ...) PRINTF_LIKE(5, 6);
enum err_code world_bind(struct world *world, const char *pod, const char *uid, const char *node);
enum err_code world_get(struct world *world, const char *kind, const char *ns, const char *name, json_t **out);
enum err_code world_command(struct world *world, struct error *err, const char *fmt, ...) PRINTF_LIKE(3, 4);
json_t *world_json(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* What is told of an object: "Running@n1", "n1/gpu-0 n1/gpu-1 for p1", "there", or "none". Valid until the next call.
 */
const char *world_state(struct world *world, const char *key);
const json_t *world_object(struct world *world, const char *key); /* NULL: none */
/* Every object but namespaces, nodes, classes and slices, one per line, sorted. To free(). */
char *world_summary(struct world *world);

/* A gated or free pod with one claim (NULL: none), and a claim for n devices of a class. */
enum err_code world_pod(struct world *world, const char *name, const char *claim, bool gated, const char *duration);
enum err_code world_claim(struct world *world, const char *name, const char *class, int count);

#endif
