/* queued/log.h - one event per line on standard error: a dotted name that never changes, then keys and values.
 *
 *     log_info("job.admitted", LOG_INT("job", id), LOG_STR("queue", queue));
 *     2026-01-31T12:00:00.123Z info  job.admitted job=17 queue=team-a
 *     {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"job.admitted","job":17,"queue":"team-a"}
 *
 * error needs a person, warn was survived, info is one line per transition of a job, debug is the rest. Secrets
 * (tokens, request headers and bodies) are never given to it. Values of any bytes stay on their line: they are escaped.
 *
 * The level and the form are the only mutable statics of the server: a log that had to be handed through every function
 * would not be used. Set them before threads start; writing is safe from any thread (one write(2) per line). */
#ifndef QUEUED_LOG_H
#define QUEUED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/str.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

enum log_kind { LOG_KIND_STR, LOG_KIND_INT, LOG_KIND_BOOL };

struct log_value {
    const char *key;
    enum log_kind kind;
    const char *text; /* NULL: the key is left out */
    int64_t number;
};

#define LOG_STR(key, value)  ((struct log_value){(key), LOG_KIND_STR, (value), 0})
#define LOG_INT(key, value)  ((struct log_value){(key), LOG_KIND_INT, NULL, (int64_t)(value)})
#define LOG_BOOL(key, value) ((struct log_value){(key), LOG_KIND_BOOL, NULL, (value) ? 1 : 0})

/* Log `level` and everything graver, in this form. The start is LOG_INFO and LOG_TEXT. */
void log_setup(enum log_level level, enum log_format format);
/* Whether a line of this level is written; for values that cost something to make. */
bool log_is_on(enum log_level level);

/* Write one line. The macros below count the values. */
void log_write(enum log_level level, const char *event, const struct log_value *values, size_t n_values);

/* The line as it would be written at time_ms (UTC), with its newline; appended to `out`. For log_write and tests. */
void log_format_to(enum log_format format, int64_t time_ms, enum log_level level, const char *event,
                   const struct log_value *values, size_t n_values, struct buf *out);

/* The first element is a sentinel, so that an event without values is an array too. */
#define LOG_VALUES_(...) ((const struct log_value[]){{NULL, LOG_KIND_STR, NULL, 0}, __VA_ARGS__})
#define LOG_AT_(level, event, ...)                                                                                     \
    __extension__({                                                                                                    \
        if (log_is_on(level))                                                                                          \
            log_write((level), (event), LOG_VALUES_(__VA_ARGS__) + 1,                                                  \
                      sizeof(LOG_VALUES_(__VA_ARGS__)) / sizeof(struct log_value) - 1);                                \
    })
#define log_error(event, ...) LOG_AT_(LOG_ERROR, event, ##__VA_ARGS__)
#define log_warn(event, ...)  LOG_AT_(LOG_WARN, event, ##__VA_ARGS__)
#define log_info(event, ...)  LOG_AT_(LOG_INFO, event, ##__VA_ARGS__)
#define log_debug(event, ...) LOG_AT_(LOG_DEBUG, event, ##__VA_ARGS__)

#endif
