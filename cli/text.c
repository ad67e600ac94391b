#include "cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

void text_add(struct buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == 0xc2 && (unsigned char)text[1] < 0xa0 && text[1]) { /* C1 controls */
            buf_addc(out, '?');
            text++;
        } else {
            buf_addc(out, c < 0x20 || c == 0x7f ? (c == '\n' || c == '\t' ? ' ' : '?') : (char)c);
        }
    }
}

void text_value(struct buf *out, const json_t *value)
{
    char real[MANIFEST_REAL_SIZE];
    const json_t *entry;
    char *dump;
    size_t i;

    if (json_is_string(value)) {
        text_add(out, json_string_value(value));
    } else if (json_is_integer(value)) {
        buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        manifest_format_real(json_real_value(value), real);
        buf_adds(out, real);
    } else if (json_is_boolean(value)) {
        buf_adds(out, json_is_true(value) ? "true" : "false");
    } else if (json_is_array(value)) {
        json_array_foreach (value, i, entry) {
            buf_adds(out, i > 0 ? "," : "");
            text_value(out, entry);
        }
    } else if (json_is_object(value)) {
        dump = json_dumps(value, JSON_COMPACT);
        text_add(out, dump ? dump : "");
        free(dump);
    }
}

void text_field(struct buf *out, const json_t *object, const char *key)
{
    text_value(out, json_object_get(object, key));
}

const char *field_text(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : otherwise;
}

json_int_t field_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

void text_duration(struct buf *out, int64_t ms)
{
    long long s = ms > 0 ? ms / 1000 : 0, d = s / 86400, h = s / 3600 % 24, m = s / 60 % 60;

    if (s < 60)
        buf_addf(out, "%llds", s);
    else if (s < 600)
        buf_addf(out, "%lldm%02llds", m, s % 60);
    else if (s < 3600)
        buf_addf(out, "%lldm", m);
    else if (d == 0)
        buf_addf(out, "%lldh%02lldm", h, m);
    else if (d < 100)
        buf_addf(out, "%lldd%lldh", d, h);
    else
        buf_addf(out, "%lldd", d);
}

bool time_parse(const char *text, int64_t *out_ms)
{
    struct tm tm = {0};
    double seconds;
    int used = 0;

    if (!text ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
               &seconds, &used) != 6 ||
        used == 0 || text[used] != '\0' || seconds < 0 || seconds > 61)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *out_ms = (int64_t)timegm(&tm) * 1000 + (int64_t)(seconds * 1000 + 0.5);
    return true;
}

void text_time(struct buf *out, const char *text)
{
    int64_t ms;

    if (time_parse(text, &ms))
        buf_addf(out, "%.10s %.8s", text, text + 11);
    else
        text_add(out, text);
}

void text_placement(struct buf *out, const json_t *effective)
{
    const char *from = field_text(effective, "from", "");

    text_field(out, effective, "placement");
    if (strcmp(from, "queue") == 0) {
        buf_adds(out, ", as queue ");
        text_field(out, effective, "queue");
        buf_adds(out, " says");
    } else if (strcmp(from, "job") == 0) {
        buf_adds(out, ", as the job says");
    } else if (strcmp(from, "default") == 0) {
        buf_adds(out, ", the default");
    }
}

void text_count(struct buf *out, json_int_t n, const char *one, const char *many)
{
    buf_addf(out, "%" JSON_INTEGER_FORMAT " %s", n, n == 1 ? one : many);
}

void text_amount(struct buf *out, const char *resource, const json_t *amount)
{
    static const char *const suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    json_int_t n = json_integer_value(amount);
    size_t i = 0;

    if (strcmp(resource, "memory") != 0 || !json_is_integer(amount) || n <= 0) {
        text_value(out, amount);
        return;
    }
    for (; n % 1024 == 0 && i + 1 < ARRAY_SIZE(suffixes); i++)
        n /= 1024;
    buf_addf(out, "%" JSON_INTEGER_FORMAT "%s", n, suffixes[i]);
}

/* ---- lists of names ---- */

/* How much of the name stands before its number, and the number; false when there is none that can be counted. */
static bool name_number(const char *name, size_t *prefix, unsigned *number)
{
    size_t len = strlen(name), at = len;

    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == 0 || at == len || len - at > 6 || (name[at] == '0' && len - at > 1))
        return false;
    *prefix = at;
    *number = (unsigned)strtoul(name + at, NULL, 10);
    return true;
}

/* The index behind the last name that has the prefix of the first. */
static size_t same_prefix(const json_t *names, size_t first, const char *name, size_t prefix)
{
    size_t end = first + 1, other_prefix;
    unsigned number;

    for (; end < json_array_size(names); end++) {
        const char *other = json_string_value(json_array_get(names, end));

        if (!other || !name_number(other, &other_prefix, &number) || other_prefix != prefix ||
            strncmp(name, other, prefix) != 0)
            break;
    }
    return end;
}

static unsigned number_at(const json_t *names, size_t i)
{
    unsigned number = 0;
    size_t prefix;

    (void)name_number(json_string_value(json_array_get(names, i)), &prefix, &number);
    return number;
}

static void add_ranges(struct buf *out, const json_t *names, size_t from, size_t end)
{
    for (size_t i = from; i < end;) {
        size_t last = i;

        while (last + 1 < end && number_at(names, last + 1) == number_at(names, last) + 1)
            last++;
        buf_addf(out, "%s%u", i > from ? "," : "", number_at(names, i));
        if (last > i)
            buf_addf(out, "-%u", number_at(names, last));
        i = last + 1;
    }
}

void text_names(struct buf *out, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names);) {
        const char *name = json_string_value(json_array_get(names, i));
        size_t prefix = 0, end = i + 1;
        unsigned number;
        BUF head = {0};

        buf_adds(out, i > 0 ? " " : "");
        if (name && name_number(name, &prefix, &number))
            end = same_prefix(names, i, name, prefix);
        if (end == i + 1) {
            text_value(out, json_array_get(names, i));
        } else {
            buf_add(&head, name, prefix);
            text_add(out, buf_str(&head));
            buf_addc(out, '[');
            add_ranges(out, names, i, end);
            buf_addc(out, ']');
        }
        i = end;
    }
}

size_t text_width(const char *text, size_t len)
{
    size_t width = 0;

    for (size_t i = 0; i < len; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}
