/* allocator/features.h - which parts of Dynamic Resource Allocation a cluster has switched on.
 *
 * A feature set follows from the cluster's minor version (its default gates) and may be changed one by one. It decides
 * what the simulation accepts and, where releases differ, which behaviour it shows. */
#ifndef QUEUED_FEATURES_H
#define QUEUED_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/error.h"

/* X(name in the enum, key in files, name of the gate) */
#define FEATURES(X)                                                                                                    \
    X(ADMIN_ACCESS, "adminAccess", "DRAAdminAccess")                                                                   \
    X(PRIORITIZED_LIST, "prioritizedList", "DRAPrioritizedList")                                                       \
    X(PARTITIONABLE_DEVICES, "partitionableDevices", "DRAPartitionableDevices")                                        \
    X(DEVICE_TAINTS, "deviceTaints", "DRADeviceTaints")                                                                \
    X(DEVICE_TAINT_RULES, "deviceTaintRules", "DRADeviceTaintRules")                                                   \
    X(BINDING_CONDITIONS, "bindingConditions", "DRADeviceBindingConditions")                                           \
    X(DEVICE_STATUS, "deviceStatus", "DRAResourceClaimDeviceStatus")                                                   \
    X(CONSUMABLE_CAPACITY, "consumableCapacity", "DRAConsumableCapacity")                                              \
    X(FRACTIONAL_CAPACITY_RANGE, "fractionalCapacityRange", "DRAFractionalCapacityRange")                              \
    X(LIST_ATTRIBUTES, "listAttributes", "DRAListTypeAttributes")                                                      \
    X(EXTENDED_RESOURCES, "extendedResources", "DRAExtendedResource")                                                  \
    X(COMPATIBILITY_GROUPS, "compatibilityGroups", "DRADeviceCompatibilityGroups")                                     \
    X(DERIVED_ATTRIBUTES, "derivedAttributes", "DRADerivedAttributes")                                                 \
    X(OPTIONAL_NODE_OPERATIONS, "optionalNodeOperations", "DRAOptionalNodeOperations")

enum feature {
#define X(name, key, gate) FEATURE_##name,
    FEATURES(X)
#undef X
        FEATURE_COUNT
};

struct features {
    uint32_t on; /* BIT(enum feature) */
    int release; /* 34 .. 37: the minor version of Kubernetes 1.x, for behaviour that changed without a gate */
};

/* The default gates of Kubernetes 1.`release`; releases outside of 34 .. 37 get the nearest. */
struct features features_default(int release);
static inline bool feature_on(const struct features *features, enum feature feature)
{
    return (features->on >> feature) & 1;
}
/* Switch one feature by its key ("prioritizedList") or gate name ("DRAPrioritizedList"); ERR_NOT_FOUND if unknown. */
MUST_CHECK int features_switch(struct features *features, const char *name, bool on, struct error *err);
/* Switch several: "+listAttributes,-DRADeviceTaintRules", by key or gate; "" changes nothing. Returns 0, or -1 with
 * ERR_INVALID (no + or -) or ERR_NOT_FOUND; then `features` is as it was. */
MUST_CHECK int features_change(struct features *features, const char *changes, struct error *err);
const char *feature_key(enum feature feature);
const char *feature_gate(enum feature feature);

#endif
