#include "queued/manifest/duration.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "allocator/base/checked.h"
#include "allocator/base/compiler.h"

#include "allocator/base/banned.h"

static const struct {
    const char *name;
    int64_t ns;
} duration_units[] = {
    /* longer names before their beginnings */
    {"ns", 1},       {"us", 1000},      {"\xc2\xb5s", 1000},      {"\xce\xbcs", 1000},
    {"ms", 1000000}, {"s", 1000000000}, {"m", 60 * 1000000000LL}, {"h", 3600 * 1000000000LL},
};

/* part = digit* [ "." digit* ] unit, with at least one digit; adds it to *ns and moves *s behind it */
static bool duration_part(const char **s, int64_t *ns)
{
    int64_t whole = 0, part;
    double fraction = 0, scale = 1;
    const char *start = *s;
    size_t digits = 0;

    for (; isdigit((unsigned char)**s); (*s)++, digits++)
        if (!checked_mul(whole, 10, &whole) || !checked_add(whole, **s - '0', &whole))
            return false;
    if (**s == '.')
        for ((*s)++; isdigit((unsigned char)**s); (*s)++, digits++) {
            scale /= 10;
            fraction += scale * (**s - '0');
        }
    if (digits == 0 || *s == start)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(duration_units); i++) {
        size_t len = strlen(duration_units[i].name);

        if (strncmp(*s, duration_units[i].name, len) != 0)
            continue;
        *s += len;
        return checked_mul(whole, duration_units[i].ns, &part) && checked_add(*ns, part, ns) &&
               checked_add(*ns, (int64_t)(fraction * (double)duration_units[i].ns), ns);
    }
    return false;
}

/* duration = "0" | part+ ; a sign makes no sense here */
bool duration_parse(const char *text, int64_t *out_ms)
{
    int64_t ns = 0;

    if (strcmp(text, "0") == 0) {
        *out_ms = 0;
        return true;
    }
    if (*text == '\0')
        return false;
    while (*text)
        if (!duration_part(&text, &ns))
            return false;
    *out_ms = ns / 1000000 + (ns % 1000000 > 0);
    return true;
}
