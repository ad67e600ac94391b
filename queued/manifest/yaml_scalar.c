/* What a plain scalar means.
 *
 * The rules are those of the YAML reader behind kubectl (sigs.k8s.io/yaml on go-yaml v2), because the same file must
 * mean the same here and there: YAML 1.1 words for true and false, octal with a leading 0, underscores in numbers; no
 * base-60 numbers; dates are text. Departure: a whole number beyond int64 is a real here (jansson has no uint64), and
 * what JSON has no word for (.inf, .nan) is an error of its own instead of a failure in a later step. */
#include "queued/manifest/yaml_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/banned.h"

static const struct word {
    const char *text;
    enum scalar_type type;
    bool boolean;
} words[] = {
    {"y", SCALAR_BOOL, true},       {"Y", SCALAR_BOOL, true},       {"yes", SCALAR_BOOL, true},
    {"Yes", SCALAR_BOOL, true},     {"YES", SCALAR_BOOL, true},     {"true", SCALAR_BOOL, true},
    {"True", SCALAR_BOOL, true},    {"TRUE", SCALAR_BOOL, true},    {"on", SCALAR_BOOL, true},
    {"On", SCALAR_BOOL, true},      {"ON", SCALAR_BOOL, true},      {"n", SCALAR_BOOL, false},
    {"N", SCALAR_BOOL, false},      {"no", SCALAR_BOOL, false},     {"No", SCALAR_BOOL, false},
    {"NO", SCALAR_BOOL, false},     {"false", SCALAR_BOOL, false},  {"False", SCALAR_BOOL, false},
    {"FALSE", SCALAR_BOOL, false},  {"off", SCALAR_BOOL, false},    {"Off", SCALAR_BOOL, false},
    {"OFF", SCALAR_BOOL, false},    {"", SCALAR_NULL, false},       {"~", SCALAR_NULL, false},
    {"null", SCALAR_NULL, false},   {"Null", SCALAR_NULL, false},   {"NULL", SCALAR_NULL, false},
    {".nan", SCALAR_UNFIT, false},  {".NaN", SCALAR_UNFIT, false},  {".NAN", SCALAR_UNFIT, false},
    {".inf", SCALAR_UNFIT, false},  {".Inf", SCALAR_UNFIT, false},  {".INF", SCALAR_UNFIT, false},
    {"+.inf", SCALAR_UNFIT, false}, {"+.Inf", SCALAR_UNFIT, false}, {"+.INF", SCALAR_UNFIT, false},
    {"-.inf", SCALAR_UNFIT, false}, {"-.Inf", SCALAR_UNFIT, false}, {"-.INF", SCALAR_UNFIT, false},
};

/* No number is longer; longer digits are text, so that no input costs much. */
#define NUMBER_MAX 128

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* integer = [ "+" | "-" ] ( "0x" hex+ | "0o" octal+ | "0b" binary+ | "0" octal* | decimal+ ) ; false for anything else
 */
static bool resolve_integer(const char *text, struct scalar *out)
{
    const char *s = text;
    bool negative = *text == '-', overflow = false;
    uint64_t magnitude = 0;
    double wide = 0;
    int base = 10;

    s += *s == '-' || *s == '+';
    if (s[0] == '0' && s[1] != '\0') {
        char letter = (char)(s[1] | 0x20);

        base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
        s += letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1;
    }
    if (*s == '\0')
        return false;
    for (; *s; s++) {
        int digit = digit_value(*s);

        if (digit >= base)
            return false;
        overflow = overflow || __builtin_mul_overflow(magnitude, (uint64_t)base, &magnitude) ||
                   __builtin_add_overflow(magnitude, (uint64_t)digit, &magnitude);
        wide = wide * base + digit;
    }
    if (overflow || magnitude > (uint64_t)INT64_MAX + negative) {
        *out = (struct scalar){.type = SCALAR_REAL, .real = base == 10 ? strtod(text, NULL) : negative ? -wide : wide};
        return true;
    }
    *out = (struct scalar){.type = SCALAR_INT, .integer = (int64_t)(negative ? 0 - magnitude : magnitude)};
    return true;
}

static const char *skip_digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* real = [ "+" | "-" ] ( "." digit+ | digit+ [ "." digit* ] ) [ ( "e" | "E" ) [ "+" | "-" ] digit+ ] */
static bool resolve_real(const char *text, struct scalar *out)
{
    const char *s = text + (*text == '-' || *text == '+');
    const char *whole = s, *fraction;
    bool plain = true;

    s = skip_digits(s);
    if (*s == '.') {
        fraction = ++s;
        s = skip_digits(s);
        plain = false;
        if (fraction == whole + 1 && s == fraction)
            return false;
    } else if (s == whole) {
        return false;
    }
    if (*s == 'e' || *s == 'E') {
        const char *exponent;

        s++;
        exponent = s + (*s == '-' || *s == '+');
        plain = false;
        s = skip_digits(exponent);
        if (s == exponent)
            return false;
    }
    if (*s != '\0')
        return false;
    *out = (struct scalar){.type = SCALAR_REAL, .real = strtod(text, NULL)};
    if (!isfinite(out->real))
        return false;                    /* 1e999 is text, as it is for kubectl */
    if (plain && fabs(out->real) < 9e15) /* 08: no octal number, so kubectl takes it as 8.0, which JSON shows as 8 */
        *out = (struct scalar){.type = SCALAR_INT, .integer = (int64_t)out->real};
    return true;
}

struct scalar scalar_resolve(const char *text, size_t len)
{
    struct scalar scalar = {.type = SCALAR_STRING};
    char plain[NUMBER_MAX + 1];
    size_t n = 0;

    if (len > NUMBER_MAX || memchr(text, '\0', len))
        return scalar;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strlen(words[i].text) == len && memcmp(words[i].text, text, len) == 0)
            return (struct scalar){.type = words[i].type, .boolean = words[i].boolean};
    if (!strchr("0123456789+-.", text[0]))
        return scalar;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '_')
            plain[n++] = text[i];
    plain[n] = '\0';
    if (text[0] == '.' ? resolve_real(plain, &scalar) : resolve_integer(plain, &scalar) || resolve_real(plain, &scalar))
        return scalar;
    return (struct scalar){.type = SCALAR_STRING};
}

void manifest_format_real(double value, char out[MANIFEST_REAL_SIZE])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, MANIFEST_REAL_SIZE, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    if (!strpbrk(out, ".e")) {
        size_t len = strlen(out);

        memcpy(out + len, ".0", 3);
    }
}
