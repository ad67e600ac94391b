#include "queued/cluster/embedded/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "allocator/base/banned.h"

static json_t *walk(const json_t *object, va_list keys)
{
    const json_t *at = object;
    const char *key;

    while (at && (key = va_arg(keys, const char *)))
        at = json_object_get(at, key);
    return (json_t *)(uintptr_t)at;
}

json_t *field_get(const json_t *object, ...)
{
    va_list keys;
    json_t *found;

    va_start(keys, object);
    found = walk(object, keys);
    va_end(keys);
    return found;
}

const char *field_text(const json_t *object, ...)
{
    va_list keys;
    const json_t *found;

    va_start(keys, object);
    found = walk(object, keys);
    va_end(keys);
    return json_string_value(found);
}

json_t *field_object(json_t *object, const char *key)
{
    json_t *child = json_object_get(object, key);

    if (json_is_object(child))
        return child;
    child = json_object();
    json_object_set_new(object, key, child);
    return child;
}

json_t *field_array(json_t *object, const char *key)
{
    json_t *child = json_object_get(object, key);

    if (json_is_array(child))
        return child;
    child = json_array();
    json_object_set_new(object, key, child);
    return child;
}

bool texts_have(const json_t *array, const char *text)
{
    size_t i;
    json_t *item;

    json_array_foreach (array, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

bool texts_drop(json_t *array, const char *text)
{
    size_t i;
    json_t *item;

    json_array_foreach (array, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return json_array_remove(array, i) == 0;
    return false;
}

/* ---- time ---- */

json_t *when_json(int64_t ms)
{
    time_t seconds = ms / 1000;
    int rest = (int)(ms % 1000);
    struct tm tm;
    char text[80], fraction[16] = "";

    if (rest < 0) {
        rest += 1000;
        seconds--;
    }
    if (!gmtime_r(&seconds, &tm))
        return json_null();
    if (rest)
        snprintf(fraction, sizeof(fraction), ".%03d", rest);
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d%sZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
    return json_string(text);
}

/* "+02:00" or "-02:00" to seconds; 'Z' is 0. */
static bool read_zone(const char *text, int64_t *out)
{
    int hours, minutes, end = 0;

    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        *out = 0;
        return true;
    }
    if ((text[0] != '+' && text[0] != '-') || sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &end) != 2 ||
        text[1 + end] != '\0' || hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *out = (text[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

int64_t when_read(const json_t *value, int64_t otherwise)
{
    const char *text = json_string_value(value);
    struct tm tm = {0};
    int64_t zone_s, ms = 0, unit = 100;
    int end = 0;

    if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                        &tm.tm_min, &tm.tm_sec, &end) != 6)
        return otherwise;
    text += end;
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
            ms += (*text - '0') * unit;
    if (!read_zone(text, &zone_s))
        return otherwise;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return ((int64_t)timegm(&tm) - zone_s) * 1000 + ms;
}

uint64_t fnv64(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;

    if (hash == 0)
        hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}
