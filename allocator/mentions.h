/* allocator/mentions.h - internal: which attributes and capacities an expression can possibly read. */
#ifndef QUEUED_ALLOCATOR_MENTIONS_H
#define QUEUED_ALLOCATOR_MENTIONS_H

#include "allocator/internal.h"

#define MAX_MENTIONS 16

struct mention {
    bool is_capacity;
    const char *full, *bare, *domain; /* symbols of "domain/id", "id" and "domain" */
};
struct mentions {
    bool all; /* anything may be read */
    size_t n;
    struct mention items[MAX_MENTIONS];
};

/* Look for `device` in the text: only the forms device.driver, device.allowMultipleAllocations,
 * device.attributes["d"].id, device.attributes["d"]["id"] and the same of device.capacity are understood; any other use
 * gives `all`. Careful rather than clever: a wrong answer here would be a wrong answer of the scheduler. */
void mentions_scan(const char *text, struct symbols *symbols, struct mentions *out);

/* The digest of everything the expression can see of the device. */
struct digest mentions_project(const struct mentions *mentions, const char *driver, const struct device *device);

#endif
