/* test/allocator/gang/world.h - small clusters and gangs as plain numbers: what the tests draw at random, what the
 * reference search reads directly, and what becomes Kubernetes objects for the product. */
#ifndef QUEUED_TEST_GANG_WORLD_H
#define QUEUED_TEST_GANG_WORLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/rng.h"
#include "allocator/gang.h"

#define MAX_NODES    4
#define MAX_DEVICES  20
#define MAX_GROUPS   3
#define MAX_CLAIMS   2
#define MAX_REQUESTS 2
#define MAX_ALTS     2
#define MAX_MEMBERS  6
#define N_SETS       2 /* counter sets per node */

struct world_node {
    int cpu, zone;
    bool cordoned;
    int counters[N_SETS];
};
struct world_device {
    int node; /* -1: of the network */
    int zone; /* of the network: nodes of this zone reach it; -1: all do */
    int model, numa, memory;
    bool used, tainted, multi;
    int set, takes; /* counter set of its node and how much it takes; takes 0: none */
};
struct world_ask {
    int model; /* -1: any */
    int count;
    bool all, tolerates;
    int memory; /* 0: none asked */
};
struct world_request {
    int n_alts;
    struct world_ask alts[MAX_ALTS];
};
enum world_rule { RULE_NONE, RULE_MATCH_NUMA, RULE_DISTINCT_NUMA, RULE_MATCH_MODEL };
struct world_claim {
    int n_requests;
    struct world_request requests[MAX_REQUESTS];
    enum world_rule rule; /* over all requests */
    int rule_request;     /* -1: all requests, else only this one */
};
struct world_group {
    int members, cpu, port; /* port 0: none */
    int n_claims;
    struct world_claim claims[MAX_CLAIMS];
    bool shares; /* uses the shared claim */
};
struct world {
    int n_nodes, n_devices, n_groups;
    struct world_node nodes[MAX_NODES];
    struct world_device devices[MAX_DEVICES];
    struct world_group groups[MAX_GROUPS];
    bool has_shared;
    struct world_claim shared;
    enum world_rule gang_rule; /* over the claims of all members; RULE_NONE, MATCH_MODEL, DISTINCT_NUMA */
    bool same_zone;            /* all members on nodes of one zone */
    bool same_alternative;
    bool alike; /* devices have no attribute of their own: only model and numa, and amounts */
};

struct world world_random(struct rng *rng);

void world_print(const struct world *world);

/* The plain search. */
enum world_answer { WORLD_FITS, WORLD_DOES_NOT_FIT, WORLD_TOO_LARGE };
enum world_answer world_fits(const struct world *world);
/* Whether any order of members, each on any node, with any claims that say no more than its own and what devices look
 * like, ends with devices for all when kube-scheduler chooses. */
enum world_answer world_can_be_steered(const struct world *world);

/* As objects. */
struct snapshot *world_snapshot(const struct world *world);
/* The builder behind it, to change a node's objects and build again. */
struct snapshot_builder *world_builder(const struct world *world);
void world_put_node(struct snapshot_builder *builder, const struct world *world, int node);
struct world_question {
    struct arena arena;
    struct gang_spec spec;
    json_t *objects; /* keeps what the spec borrows */
};
void world_question_init(struct world_question *question, const struct world *world);
void world_question_release(struct world_question *question);

/* Check a placement against the numbers alone: NULL, or what is wrong. */
const char *world_check(const struct world *world, const struct placement *placement);

#endif
