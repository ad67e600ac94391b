#include "api/auth.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/internal.h"
#include "queued/log.h"

#include "allocator/base/banned.h"

enum { TOKEN_MAX = 512 };

static struct auth_bucket *bucket_for(struct auth_failures *failures, const char *address)
{
    struct auth_bucket *oldest = &failures->buckets[0];

    for (size_t i = 0; i < AUTH_ADDRESSES; i++) {
        struct auth_bucket *bucket = &failures->buckets[i];

        if (strcmp(bucket->address, address) == 0)
            return bucket;
        if (bucket->mono_ms < oldest->mono_ms)
            oldest = bucket;
    }
    *oldest = (struct auth_bucket){0};
    snprintf(oldest->address, sizeof(oldest->address), "%s", address);
    return oldest;
}

bool auth_failure_allowed(struct auth_failures *failures, const char *address, int64_t mono_ms)
{
    struct auth_bucket *bucket = bucket_for(failures, address);
    int64_t passed = mono_ms - bucket->mono_ms;

    bucket->level = bucket->level > passed ? bucket->level - passed : 0;
    bucket->mono_ms = mono_ms;
    if (bucket->level > (AUTH_BURST - 1) * AUTH_REFILL_MS)
        return false;
    bucket->level += AUTH_REFILL_MS;
    return true;
}

static int64_t mono_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static const char *user_name(struct request *request, uid_t uid)
{
    char bytes[4096];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(uid, &entry, bytes, sizeof(bytes), &found) == 0 && found)
        return arena_strdup(&request->arena, found->pw_name);
    return arena_printf(&request->arena, "uid-%lu", (unsigned long)uid);
}

/* Who may open the socket's file is an administrator: the file's mode is the check. */
static int local_administrator(struct request *request)
{
    const struct peer *peer = exchange_peer(request->exchange);

    request->caller = (struct caller){.role = ROLE_ADMIN, .name = user_name(request, peer->uid)};
    return 0;
}

static int refuse(struct request *request, struct error *err)
{
    const char *address = exchange_peer(request->exchange)->address;

    if (!auth_failure_allowed(&request->api->failures, address, mono_ms())) {
        error_set(err, ERR_LIMIT, "too many failed attempts from this address");
        return 429;
    }
    log_warn("auth.failed", LOG_STR("peer", address), LOG_STR("request", exchange_id(request->exchange)));
    return 401;
}

/* credentials = "Bearer" 1*SP token */
static const char *bearer_token(struct request *request, struct str header)
{
    static const char scheme[] = "bearer ";

    if (header.len < sizeof(scheme) || header.len > TOKEN_MAX ||
        !http_text_is((struct str){header.ptr, sizeof(scheme) - 1}, scheme))
        return NULL;
    header.ptr += sizeof(scheme) - 1;
    header.len -= sizeof(scheme) - 1;
    while (header.len && header.ptr[0] == ' ')
        header.ptr++, header.len--;
    return arena_strndup(&request->arena, header.ptr, header.len);
}

/* The caller's strings live until the token changes, a waiting request may live longer: it gets copies. */
static void keep_caller(struct request *request, const struct caller *caller)
{
    request->queues = caller->queues ? json_deep_copy(caller->queues) : NULL;
    request->caller =
        (struct caller){caller->role, arena_strdup(&request->arena, caller->name ? caller->name : ""), request->queues};
}

int request_authenticate(struct request *request, struct error *err)
{
    struct str header = http_header_find(exchange_head(request->exchange), "authorization");
    struct caller caller = {0};
    const char *token;

    if (!header.ptr && exchange_peer(request->exchange)->is_unix)
        return local_administrator(request);
    if (!header.ptr) {
        error_set(err, ERR_DENIED, "a bearer token is needed");
        return 401; /* not a guess: browsers and scanners begin like this */
    }
    token = bearer_token(request, header);
    if (!token) {
        error_set(err, ERR_DENIED, "Authorization must be: Bearer TOKEN");
        return refuse(request, err);
    }
    if (core_authenticate(request->api->core, token, &caller, err) < 0)
        return refuse(request, err);
    keep_caller(request, &caller);
    return 0;
}
