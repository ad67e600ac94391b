/* test/allocator/cluster.h - clusters written as YAML, for tests of the allocator. */
#ifndef QUEUED_TEST_CLUSTER_H
#define QUEUED_TEST_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>

#include "allocator/base/str.h"
#include "allocator/predict.h"
#include "allocator/snapshot.h"

/* A node and a slice with devices, in flow style: SLICE("n1", "{name: a}, {name: b}"). */
#define NODE(name)                    "---\n{apiVersion: v1, kind: Node, metadata: {name: " name "}}\n"
#define SLICE(node, devices)          POOL(node, node, "1", "devices: [" devices "]")
#define POOL(name, node, count, rest) SLICE_OF(name, name, "nodeName: " node, count, rest)
#define SLICE_OF(slice, pool, where, count, rest)                                                                      \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: " slice "}, spec: {driver: d.x, "     \
    "pool: {name: " pool ", generation: 1, resourceSliceCount: " count "}, " where ", " rest "}}\n"
#define CLASS(name) "---\n{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: " name "}, spec: {}}\n"
#define HELD(name, pool, device)                                                                                       \
    "---\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: " name                                \
    ", namespace: ns, labels: {queue.dra/job: job-" name "}}, spec: {devices: {}}, status: {allocation: {devices: "    \
    "{results: [{request: r, driver: d.x, pool: " pool ", device: " device "}]}}}}\n"
#define CLAIM(devices)                                                                                                 \
    "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c, namespace: ns}, spec: {devices: "       \
    "{" devices "}}}"
#define REQUEST(name, more) "{name: " name ", exactly: {deviceClassName: c" more "}}"

/* The documents of a YAML text; fails the test when it cannot be read. New reference to an array. */
json_t *yaml_documents(const char *yaml);
/* Put all documents; fails the test unless each is accepted. */
void put_yaml(struct snapshot_builder *builder, const char *yaml);
struct snapshot *cluster_of(const char *yaml, int release);
/* "r=n1/a s=n1/b" for the results, or the verdict in brackets: "[no fit]". The text is to free(). */
char *predicted(const struct snapshot *snapshot, const char *node, const char *claim_yaml);

#endif
