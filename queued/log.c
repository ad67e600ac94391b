#include "queued/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "allocator/base/banned.h"

static struct {
    enum log_level level;
    enum log_format format;
} log_state = {LOG_INFO, LOG_TEXT};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_setup(enum log_level level, enum log_format format)
{
    log_state.level = level;
    log_state.format = format;
}

bool log_is_on(enum log_level level)
{
    return level <= log_state.level;
}

static void add_time(struct buf *out, int64_t time_ms)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    char text[32];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    buf_addf(out, "%s.%03dZ", text, (int)(time_ms % 1000));
}

/* Quoted with JSON's escapes, in both forms: a value can neither end its line nor colour the reader's terminal. Bytes
 * that are no ASCII are kept in valid UTF-8 only. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;

    if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
        (*s == 0xf4 && s[1] > 0x8f) || (*s == 0xc2 && s[1] < 0xa0)) /* too long a form, surrogate, C1 control */
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static void add_quoted(struct buf *out, const char *text)
{
    buf_addc(out, '"');
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        size_t n = *s < 0x80 ? 1 : utf8_length(s);

        if (*s == '"' || *s == '\\') {
            buf_addc(out, '\\');
            buf_addc(out, (char)*s);
        } else if (*s < 0x20 || *s == 0x7f || n == 0) {
            buf_addf(out, "\\u%04x", *s);
        } else {
            buf_add(out, (const char *)s, n);
            s += n - 1;
        }
    }
    buf_addc(out, '"');
}

static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+,%[]";

    return text[0] != '\0' && text[strspn(text, plain)] == '\0';
}

static void add_value(struct buf *out, enum log_format format, const struct log_value *value)
{
    switch (value->kind) {
    case LOG_KIND_STR:
        if (format == LOG_TEXT && is_plain(value->text))
            buf_adds(out, value->text);
        else
            add_quoted(out, value->text);
        break;
    case LOG_KIND_INT:
        buf_addf(out, "%" PRId64, value->number);
        break;
    case LOG_KIND_BOOL:
        buf_adds(out, value->number ? "true" : "false");
        break;
    }
}

void log_format_to(enum log_format format, int64_t time_ms, enum log_level level, const char *event,
                   const struct log_value *values, size_t n_values, struct buf *out)
{
    buf_adds(out, format == LOG_JSON ? "{\"time\":\"" : "");
    add_time(out, time_ms);
    if (format == LOG_JSON)
        buf_addf(out, "\",\"level\":\"%s\",\"event\":\"%s\"", level_names[level], event);
    else
        buf_addf(out, " %-5s %s", level_names[level], event);
    for (size_t i = 0; i < n_values; i++) {
        if (values[i].kind == LOG_KIND_STR && !values[i].text)
            continue;
        buf_addf(out, format == LOG_JSON ? ",\"%s\":" : " %s=", values[i].key);
        add_value(out, format, &values[i]);
    }
    buf_adds(out, format == LOG_JSON ? "}\n" : "\n");
}

void log_write(enum log_level level, const char *event, const struct log_value *values, size_t n_values)
{
    struct timespec now;
    BUF line = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    log_format_to(log_state.format, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, level, event, values, n_values,
                  &line);
    if (write(STDERR_FILENO, line.data, line.len) < 0)
        return; /* nowhere left to say so */
}
