/* allocator/cel/device.h - a device as the evaluator sees it: the value of the variable `device`. */
#ifndef QUEUED_CEL_DEVICE_H
#define QUEUED_CEL_DEVICE_H

#include "allocator/cel/env.h"

struct cel_device {
    const char *problem; /* an attribute that no evaluation survives, or NULL */
    struct cel_value fields[DEVICE_FIELDS];
    struct cel_value value; /* the fields as a map, for who takes the device as a whole */
};

#endif
