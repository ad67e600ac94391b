/* api/problem.h - what a failure looks like to a client: RFC 9457 problem documents. Pure. */
#ifndef QUEUED_API_PROBLEM_H
#define QUEUED_API_PROBLEM_H

#include <jansson.h>

#include "allocator/base/error.h"
#include "allocator/base/str.h"

#define PROBLEM_CONTENT_TYPE "application/problem+json"

/* The status that a code means to a client, when nobody knows better. */
int problem_status(enum err_code code);
/* The code that comes closest to a status. */
enum err_code problem_code(int status);

/* The document as text, to free(). field, detail and problems may be NULL (problems: array, borrowed). */
char *problem_format(int status, enum err_code code, const char *field, const char *detail, const json_t *problems);

#endif
