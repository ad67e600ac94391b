/* allocator/base/compiler.h - the few compiler features that the whole tree relies on (gcc and clang).
 *
 * CLEANUP(type) declares a pointer that is freed when its scope ends; it needs a `type_freep(struct type **)`.
 * TAKE(p) hands the object on: it yields the pointer and leaves NULL behind, so that the cleanup does nothing. */
#ifndef QUEUED_BASE_COMPILER_H
#define QUEUED_BASE_COMPILER_H

#define MUST_CHECK          __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, a) __attribute__((format(printf, fmt, a)))
#define NORETURN            __attribute__((noreturn))
#define CLEANUP(type)       __attribute__((cleanup(type##_freep))) struct type
#define TAKE(p)                                                                                                        \
    __extension__({                                                                                                    \
        __typeof__(p) taken_ = (p);                                                                                    \
        (p) = NULL;                                                                                                    \
        taken_;                                                                                                        \
    })

#define BIT(n)        (1u << (n))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
