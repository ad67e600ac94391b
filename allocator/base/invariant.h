/* allocator/base/invariant.h - what cannot happen ends the process, in release builds too.
 *
 * Restart after a crash is a tested path of the product; going on with broken state is not. */
#ifndef QUEUED_BASE_INVARIANT_H
#define QUEUED_BASE_INVARIANT_H

#include "allocator/base/compiler.h"

#define INVARIANT(cond) ((cond) ? (void)0 : invariant_failed(#cond, __FILE__, __LINE__, __func__))

/* Prints the broken condition and its place to standard error and aborts. */
NORETURN void invariant_failed(const char *cond, const char *file, int line, const char *func);

#endif
