/* allocator/base/checked.h - arithmetic on foreign numbers: the result, or false when it does not fit.
 *
 * The three forms work on any integer types; *out holds the wrapped value when they return false and must not be used. */
#ifndef QUEUED_BASE_CHECKED_H
#define QUEUED_BASE_CHECKED_H

#define checked_add(a, b, out) (!__builtin_add_overflow((a), (b), (out)))
#define checked_sub(a, b, out) (!__builtin_sub_overflow((a), (b), (out)))
#define checked_mul(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))

#endif
