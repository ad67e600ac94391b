#include "allocator/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/banned.h"

static void put(struct error *err, enum err_code code, const char *field, const char *fmt, va_list args)
{
    if (!err)
        return;
    err->code = code;
    snprintf(err->field, sizeof(err->field), "%s", field);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
}

int error_set(struct error *err, enum err_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(err, code, "", fmt, args);
    va_end(args);
    return -1;
}

int error_field(struct error *err, const char *field, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    put(err, ERR_INVALID, field, fmt, args);
    va_end(args);
    return -1;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    size_t n;
    va_list args;

    if (!err)
        return -1;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    n = strlen(text);
    snprintf(text + n, sizeof(text) - n, ": %s", err->text);
    memcpy(err->text, text, sizeof(text));
    return -1;
}

int error_in(struct error *err, const char *fmt, ...)
{
    char field[sizeof(err->field)];
    size_t n;
    va_list args;

    if (!err)
        return -1;
    va_start(args, fmt);
    vsnprintf(field, sizeof(field), fmt, args);
    va_end(args);
    n = strlen(field);
    if (err->field[0] != '\0')
        snprintf(field + n, sizeof(field) - n, "%s%s", err->field[0] == '[' ? "" : ".", err->field);
    memcpy(err->field, field, sizeof(field));
    return -1;
}

const char *err_code_name(enum err_code code)
{
    static const char *const names[] = {
        [ERR_NONE] = "none",         [ERR_INVALID] = "invalid", [ERR_NOT_FOUND] = "not-found",
        [ERR_CONFLICT] = "conflict", [ERR_LIMIT] = "limit",     [ERR_DENIED] = "denied",
        [ERR_IO] = "io",             [ERR_REMOTE] = "remote",   [ERR_TIMEOUT] = "timeout",
        [ERR_UNAVAILABLE] = "unavailable",
    };

    return (size_t)code < ARRAY_SIZE(names) ? names[code] : "unknown";
}
