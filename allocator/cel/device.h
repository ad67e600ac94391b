/* allocator/cel/device.h - a device as the evaluator sees it: the value of the variable `device`. */
#ifndef QUEUED_CEL_DEVICE_H
#define QUEUED_CEL_DEVICE_H

#include "allocator/cel/env.h"

/* device.attributes["domain"].id at one glance: all values of a device in one row. */
struct cel_shortcut {
    struct str domain, id;
    struct cel_value value;
};

struct cel_device {
    const char *problem; /* an attribute that no evaluation survives, or NULL */
    struct cel_value fields[DEVICE_FIELDS];
    uint32_t n_shortcuts;
    uint32_t *fingerprints; /* of the shortcuts */
    struct cel_shortcut *shortcuts;
    struct cel_value value; /* the fields as a map, for who takes the device as a whole */
};

/* The fingerprint of a domain and id within a field (DEVICE_ATTRIBUTES or DEVICE_CAPACITY). */
uint32_t cel_shortcut_fingerprint(int field, struct str domain, struct str id);

#endif
