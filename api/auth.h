/* api/auth.h - who asks: the local administrator on the Unix socket, or the owner of a bearer token. */
#ifndef QUEUED_API_AUTH_H
#define QUEUED_API_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/error.h"

struct request;

enum { AUTH_ADDRESSES = 64, AUTH_BURST = 10, AUTH_REFILL_MS = 1000 };

/* Failed attempts per address, as leaking buckets: AUTH_BURST at once, one more each AUTH_REFILL_MS. A table of fixed
 * size that forgets the address that was quiet for longest. A good token is never refused for somebody else's bad ones,
 * since many users may share an address; the limit keeps the log short and tells guessers to go away. */
struct auth_failures {
    struct auth_bucket {
        char address[64];
        int64_t level;   /* failures times AUTH_REFILL_MS */
        int64_t mono_ms; /* of the last failure */
    } buckets[AUTH_ADDRESSES];
};

/* Count a failure at `mono_ms` (monotonic, never the virtual clock). Returns whether it is within the limit. Pure. */
bool auth_failure_allowed(struct auth_failures *failures, const char *address, int64_t mono_ms);

/* Fill request->caller. Returns 0, or a status: 401 or 429, with the reason. */
int request_authenticate(struct request *request, struct error *err);

#endif
