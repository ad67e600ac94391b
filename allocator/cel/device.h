/* allocator/cel/device.h - a device as the evaluator sees it: the value of the variable `device`. */
#ifndef QUEUED_CEL_DEVICE_H
#define QUEUED_CEL_DEVICE_H

#include "allocator/cel/value.h"

struct cel_device {
    struct cel_value value;
    const char *problem; /* an attribute that no evaluation survives, or NULL */
};

#endif
