/* Escapes and character classes of Go's expressions, read and written out again for PCRE2. */
#include "allocator/cel/regex_internal.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define LONG_S      0x17F
#define KELVIN_SIGN 0x212A

int regex_refuse(const struct regex_reader *in, const char *why, size_t from, size_t to)
{
    return error_set(in->err, ERR_INVALID, "error parsing regexp: %s: `%.*s`", why, (int)(to - from),
                     in->text.ptr + from);
}

bool regex_looking_at(const struct regex_reader *in, const char *word)
{
    size_t n = strlen(word);

    return in->text.len - in->at >= n && memcmp(in->text.ptr + in->at, word, n) == 0;
}

void regex_add_code(struct regex_reader *in, uint32_t code)
{
    if (regex_is_alnum(code))
        buf_addc(in->out, (char)code);
    else
        buf_addf(in->out, "\\x{%X}", code);
}

/* ---- escapes ---- */

static int hex_value(uint32_t c)
{
    if (c >= '0' && c <= '9')
        return (int)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (int)(c - 'a' + 10) : -1;
}

static int bad_escape(struct regex_reader *in, size_t from)
{
    return regex_refuse(in, "invalid escape sequence", from, in->at);
}

/* "{" hex { hex } "}", behind \x */
static int read_braced_hex(struct regex_reader *in, size_t from, uint32_t *out)
{
    uint32_t c;
    int n = 0;

    for (*out = 0;; n++) {
        if (regex_at_end(in))
            return bad_escape(in, from);
        c = utf8_next(in->text, &in->at);
        if (c == '}')
            return n > 0 ? 0 : bad_escape(in, from);
        if (hex_value(c) < 0)
            return bad_escape(in, from);
        *out = *out * 16 + (uint32_t)hex_value(c);
        if (*out > UTF8_MAX)
            return bad_escape(in, from);
    }
}

static int read_hex(struct regex_reader *in, size_t from, uint32_t *out)
{
    uint32_t high, low;

    if (regex_at_end(in))
        return bad_escape(in, from);
    high = utf8_next(in->text, &in->at);
    if (high == '{')
        return read_braced_hex(in, from, out);
    low = regex_at_end(in) ? UTF8_REPLACEMENT : utf8_next(in->text, &in->at);
    if (hex_value(high) < 0 || hex_value(low) < 0)
        return bad_escape(in, from);
    *out = (uint32_t)(hex_value(high) * 16 + hex_value(low));
    return 0;
}

/* Up to three octal digits, the first of which is c. */
static uint32_t read_octal(struct regex_reader *in, uint32_t c)
{
    uint32_t value = c - '0';

    for (int i = 1; i < 3 && regex_peek(in, 0) >= '0' && regex_peek(in, 0) <= '7'; i++, in->at++)
        value = value * 8 + (uint32_t)(regex_peek(in, 0) - '0');
    return value;
}

/* "\" and what names one code point. */
int regex_read_escape(struct regex_reader *in, uint32_t *out)
{
    static const char letters[] = "abfnrtv", values[] = "\a?\f\n\r\t\v"; /* \b is no backspace */
    size_t from = in->at++;
    uint32_t c;
    const char *letter;

    if (regex_at_end(in))
        return regex_refuse(in, "trailing backslash at end of expression", in->at, in->at);
    c = utf8_next(in->text, &in->at);
    if (c == 'x')
        return read_hex(in, from, out);
    letter = c < 0x80 && c != 'b' && c != '\0' ? strchr(letters, (int)c) : NULL;
    if (letter) {
        *out = (uint32_t)values[letter - letters];
        return 0;
    }
    if (c == '0' || (c >= '1' && c <= '7' && regex_peek(in, 0) >= '0' && regex_peek(in, 0) <= '7')) {
        *out = read_octal(in, c);
        return 0;
    }
    if (c >= 0x80 || regex_is_alnum(c))
        return bad_escape(in, from);
    *out = c;
    return 0;
}

/* ---- classes ---- */

struct set {
    const char *name, *ranges; /* pairs of first and last */
};

static const struct set perl_sets[] = {{"d", "09"}, {"s", "\t\n\f\r  "}, {"w", "09AZ__az"}};

static const struct set posix_sets[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"ascii", "\0\x7F"},  {"blank", "\t\t  "},  {"cntrl", "\0\x1F\x7F\x7F"},
    {"digit", "09"},     {"graph", "!~"},   {"lower", "az"},      {"print", " ~"},      {"punct", "!/:@[`{~"},
    {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZaz__"}, {"xdigit", "09AFaf"},
};

static bool set_has(const struct set *set, uint32_t c)
{
    const char *r = set->ranges;

    do {
        if (c >= (uint8_t)r[0] && c <= (uint8_t)r[1])
            return true;
        r += 2;
    } while (*r != '\0');
    return false;
}

/* With folding, a letter is in a set when its other case is. */
static bool folded_has(const struct regex_reader *in, const struct set *set, uint32_t c)
{
    if (set_has(set, c))
        return true;
    return in->fold && regex_is_alnum(c) && !regex_is_digit((char)c) && set_has(set, c ^ 0x20);
}

static void add_range(struct regex_reader *in, uint32_t first, uint32_t last)
{
    regex_add_code(in, first);
    if (last > first) {
        buf_addc(in->out, '-');
        regex_add_code(in, last);
    }
}

/* The ranges of a set of ASCII characters or of its complement. Folding is applied before the complement is taken, and
 * what PCRE2 folds again must not bring characters back: outside ASCII only two characters fold into it. */
static void add_set(struct regex_reader *in, const struct set *set, bool negated)
{
    uint32_t from = 0x80;
    bool fold = in->fold;

    for (uint32_t c = 0, first = 0; c <= 0x80; c++) {
        bool has = c < 0x80 && folded_has(in, set, c) != negated;
        bool before = c > 0 && folded_has(in, set, c - 1) != negated;

        if (has && !before)
            first = c;
        if (!has && before)
            add_range(in, first, c - 1);
    }
    if (!negated)
        return;
    if (fold && folded_has(in, set, 's')) {
        add_range(in, from, LONG_S - 1);
        from = LONG_S + 1;
    }
    if (fold && folded_has(in, set, 'k')) {
        add_range(in, from, KELVIN_SIGN - 1);
        from = KELVIN_SIGN + 1;
    }
    add_range(in, from, UTF8_MAX);
}

/* \d \D \s \S \w \W; false, and nothing read, for anything else. */
static bool read_perl_class(struct regex_reader *in)
{
    for (size_t i = 0; regex_peek(in, 0) == '\\' && i < ARRAY_SIZE(perl_sets); i++) {
        if ((regex_peek(in, 1) | 0x20) != perl_sets[i].name[0])
            continue;
        add_set(in, &perl_sets[i], regex_peek(in, 1) < 'a');
        in->at += 2;
        return true;
    }
    return false;
}

/* "[:" [ "^" ] name ":]"; 1 when read, 0 when this is no such thing, -1 for an unknown name. */
static int read_posix_class(struct regex_reader *in)
{
    struct str rest = {in->text.ptr + in->at, in->text.len - in->at}, name;
    const char *end = rest.len > 2 ? memmem(rest.ptr + 2, rest.len - 2, ":]", 2) : NULL;
    size_t from = in->at;
    bool negated;

    if (!regex_looking_at(in, "[:") || !end)
        return 0;
    name = (struct str){rest.ptr + 2, (size_t)(end - rest.ptr) - 2};
    in->at += name.len + 4;
    negated = name.len > 0 && name.ptr[0] == '^';
    if (negated)
        name = (struct str){name.ptr + 1, name.len - 1};
    for (size_t i = 0; i < ARRAY_SIZE(posix_sets); i++) {
        if (!str_is(name, posix_sets[i].name))
            continue;
        add_set(in, &posix_sets[i], negated);
        return 1;
    }
    return regex_refuse(in, "invalid character class range", from, in->at);
}

/* \pN, \p{Greek}, \P{^L}, ...; 1 when read, 0 when this is no such thing. */
static int read_property(struct regex_reader *in)
{
    size_t from = in->at, name_from;
    struct str name;
    bool negated;
    const char *end;

    if (regex_peek(in, 0) != '\\' || (regex_peek(in, 1) | 0x20) != 'p')
        return 0;
    negated = regex_peek(in, 1) == 'P';
    in->at += 2;
    name_from = in->at;
    if (regex_peek(in, 0) != '{') {
        if (!regex_at_end(in))
            utf8_next(in->text, &in->at);
        name = (struct str){in->text.ptr + name_from, in->at - name_from};
    } else {
        end = memchr(in->text.ptr + in->at, '}', in->text.len - in->at);
        if (!end)
            return regex_refuse(in, "invalid character class range", from, in->text.len);
        in->at = (size_t)(end - in->text.ptr) + 1;
        name = (struct str){in->text.ptr + name_from + 1, in->at - name_from - 2};
    }
    if (name.len > 0 && name.ptr[0] == '^') {
        negated = !negated;
        name = (struct str){name.ptr + 1, name.len - 1};
    }
    if (!regex_add_property(name, negated, in->fold != 0, in->out))
        return regex_refuse(in, "invalid character class range", from, in->at);
    return 1;
}

static int read_class_code(struct regex_reader *in, size_t class_from, uint32_t *out)
{
    if (regex_at_end(in))
        return regex_refuse(in, "missing closing ]", class_from, in->text.len);
    if (regex_peek(in, 0) == '\\')
        return regex_read_escape(in, out);
    *out = utf8_next(in->text, &in->at);
    return 0;
}

/* code [ "-" code ] */
static int read_class_range(struct regex_reader *in, size_t class_from)
{
    size_t from = in->at;
    uint32_t first, last;

    if (read_class_code(in, class_from, &first) < 0)
        return -1;
    last = first;
    if (in->text.len - in->at >= 2 && regex_peek(in, 0) == '-' && regex_peek(in, 1) != ']') {
        in->at++;
        if (read_class_code(in, class_from, &last) < 0)
            return -1;
        if (last < first)
            return regex_refuse(in, "invalid character class range", from, in->at);
    }
    add_range(in, first, last);
    return 0;
}

/* "[" [ "^" ] { range | "[:" name ":]" | property | perl class } "]"; a "]" right at the start is a literal. */
int regex_read_class(struct regex_reader *in)
{
    size_t from = in->at++;
    bool first = true;
    int read;

    buf_addc(in->out, '[');
    if (regex_peek(in, 0) == '^') {
        buf_addc(in->out, '^');
        in->at++;
    }
    for (; regex_at_end(in) || regex_peek(in, 0) != ']' || first; first = false) {
        read = in->text.len - in->at > 2 ? read_posix_class(in) : 0;
        if (read == 0)
            read = read_property(in);
        if (read == 0)
            read = read_perl_class(in);
        if (read < 0 || (read == 0 && read_class_range(in, from) < 0))
            return -1;
    }
    buf_addc(in->out, ']');
    in->at++;
    return 0;
}

bool regex_is_class_escape(const struct regex_reader *in)
{
    char c = regex_peek(in, 1);

    return (c | 0x20) == 'p' || (c != '\0' && strchr("dDsSwW", c));
}

int regex_read_class_escape(struct regex_reader *in)
{
    int read;

    buf_addc(in->out, '[');
    read = read_property(in);
    if (read == 0)
        read_perl_class(in);
    buf_addc(in->out, ']');
    return read < 0 ? -1 : 0;
}
