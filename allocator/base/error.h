/* allocator/base/error.h - why something failed: a code for programs, the field at fault, words for people.
 *
 * Functions that can fail return 0 or -1 and fill a caller's `struct error`. An expected answer ("does not fit") is a
 * result, never an error. Whoever gives up on the work logs it, once; libraries do not log. */
#ifndef QUEUED_BASE_ERROR_H
#define QUEUED_BASE_ERROR_H

#include "allocator/base/compiler.h"

enum err_code {
    ERR_NONE,
    ERR_INVALID,   /* the input breaks a rule; `field` says where */
    ERR_NOT_FOUND, /* the thing named does not exist */
    ERR_CONFLICT,  /* somebody else changed it first, or it exists already */
    ERR_LIMIT,     /* too large, too deep, too many, too costly; refused before any work */
    ERR_DENIED,    /* the caller may not do this */
    ERR_IO,        /* disk, database or socket */
    ERR_REMOTE,    /* another server answered with a failure */
    ERR_TIMEOUT,   /* no answer in time; the outcome is unknown */
    ERR_UNAVAILABLE, /* not now: the server is starting, stopping or degraded */
};

struct error {
    enum err_code code;
    char field[128]; /* "groups[1].claims[0].count", or empty */
    char text[512];  /* "launch job 17: create claim gpu-0: 409 already exists" */
};

/* Fill `err` (may be NULL) with a code and formatted words; clears the field. Always returns -1. */
int error_set(struct error *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Like error_set with ERR_INVALID, and the path of the field at fault. Always returns -1. */
int error_field(struct error *err, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Put "fmt: " before the words of `err`, keeping code and field. Always returns -1. */
int error_wrap(struct error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Put `prefix` before the field's path ("spec" + "groups[0]" is "spec.groups[0]", "a" + "[1]" is "a[1]").
 * An empty field becomes `prefix`. Always returns -1. */
int error_in(struct error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The code's name in lower case with dashes ("not-found"); never NULL. */
const char *err_code_name(enum err_code code);

#endif
