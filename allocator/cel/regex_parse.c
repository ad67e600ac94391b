/* How it works.
 *
 * One pass over the pattern checks it by Go's rules and writes the PCRE2 pattern beside it. Nobody sees capture groups,
 * so all groups become (?:...). Nothing is copied through: a literal is a letter, a digit or \x{...}, a class is a list
 * of code point ranges and properties, an anchor is spelt so that no option of PCRE2 changes it. A repetition needs the
 * text of the item before it, whose start in the output is remembered; items that are more than one character or class
 * are wrapped in a group first. Case folding is PCRE2's own, switched by (?i) and (?-i) whenever it changes; both
 * libraries let such a switch reach to the end of the enclosing group, alternatives included. */
#include "allocator/cel/regex.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/base/error.h"
#include "allocator/base/mem.h"
#include "allocator/cel/regex_internal.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define MAX_OUTPUT  (1 << 20) /* bytes */
#define MAX_DEPTH   200       /* of groups; Go allows 1000, PCRE2 recurses */
#define MAX_REPEAT  1000      /* counts, alone and multiplied when nested */
#define TOO_LARGE   (-1)      /* a count that no repetition may have */
#define LONG_S      0x17F
#define KELVIN_SIGN 0x212A

enum flag { FOLD = BIT(0), MULTILINE = BIT(1), DOT_ALL = BIT(2), UNGREEDY = BIT(3) };

/* What a group remembers of its surroundings, and what is known of its content so far. */
struct group {
    unsigned flags;       /* in force outside */
    bool folds;           /* how the output folds outside */
    size_t start;         /* in the output */
    int product;          /* the largest product of nested counts inside */
    bool branch_is_empty; /* the alternative so far can match nothing */
    bool is_empty;        /* an earlier alternative can */
    bool is_hazard;       /* it may prefer nothing to something: it has alternatives or lazy repetitions */
};

struct translation {
    struct str text;
    size_t at;
    struct buf *out;
    struct error *err;
    unsigned flags;
    bool folds;           /* what the output does at its end */
    struct group *groups; /* the open ones; the first is the whole pattern */
    size_t n_groups, cap_groups;
    bool has_item;       /* something stands before that can be repeated */
    bool item_is_simple; /* one character or class, or a group: needs no group to be repeated */
    bool item_is_empty;  /* it can match nothing */
    bool item_is_hazard; /* as in a group */
    size_t item_start;   /* in the output */
    int item_product;
    bool exact; /* what is matched has to be as long as in Go; else only whether something is */
    int n_captures;
};

static int refuse(const struct translation *t, const char *why, size_t from, size_t to)
{
    return error_set(t->err, ERR_INVALID, "error parsing regexp: %s: `%.*s`", why, (int)(to - from),
                     t->text.ptr + from);
}

static bool at_end(const struct translation *t)
{
    return t->at >= t->text.len;
}

/* The byte `ahead` of the reading position; NUL behind the end. */
static char peek(const struct translation *t, size_t ahead)
{
    return t->at + ahead < t->text.len ? t->text.ptr[t->at + ahead] : '\0';
}

static bool looking_at(const struct translation *t, const char *word)
{
    size_t n = strlen(word);

    return t->text.len - t->at >= n && memcmp(t->text.ptr + t->at, word, n) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- items ---- */

/* The item before is complete: its group takes note of it. */
static void end_item(struct translation *t)
{
    struct group *group = &t->groups[t->n_groups - 1];

    if (!t->has_item)
        return;
    group->branch_is_empty = group->branch_is_empty && t->item_is_empty;
    group->is_hazard = group->is_hazard || t->item_is_hazard;
    if (t->item_product > group->product)
        group->product = t->item_product;
    t->has_item = false;
}

static void begin_item(struct translation *t, bool is_simple)
{
    end_item(t);
    t->has_item = true;
    t->item_is_simple = is_simple;
    t->item_is_empty = false;
    t->item_is_hazard = false;
    t->item_product = 1;
    t->item_start = t->out->len;
}

/* An item that case folding can touch. */
static void begin_folded_item(struct translation *t)
{
    bool fold = (t->flags & FOLD) != 0;

    if (fold != t->folds)
        buf_adds(t->out, fold ? "(?i)" : "(?-i)");
    t->folds = fold;
    begin_item(t, true);
}

static void add_code(struct translation *t, uint32_t code)
{
    if (is_alnum(code))
        buf_addc(t->out, (char)code);
    else
        buf_addf(t->out, "\\x{%X}", code);
}

static void add_literal(struct translation *t, uint32_t code)
{
    begin_folded_item(t);
    add_code(t, code);
}

static void add_anchor(struct translation *t, const char *text)
{
    begin_item(t, false);
    t->item_is_empty = true;
    buf_adds(t->out, text);
}

/* ---- repetitions ---- */

static void insert(struct buf *out, size_t at, const char *text)
{
    size_t n = strlen(text);

    buf_adds(out, text);
    memmove(out->data + at + n, out->data + at, out->len - n - at);
    memcpy(out->data + at, text, n);
}

/* Digits without a leading zero; false when there are none. */
static bool read_count(struct translation *t, int *out)
{
    if (!is_digit(peek(t, 0)) || (peek(t, 0) == '0' && is_digit(peek(t, 1))))
        return false;
    for (*out = 0; is_digit(peek(t, 0)); t->at++) {
        if (*out != TOO_LARGE)
            *out = *out * 10 + (peek(t, 0) - '0');
        if (*out > MAX_REPEAT)
            *out = TOO_LARGE;
    }
    return true;
}

struct counts {
    int min, max; /* max -1: without end */
    bool is_valid;
    bool is_counted; /* written in braces */
};

/* "{n}", "{n,}" or "{n,m}"; false, and nothing read, when the brace is a literal one. */
static bool read_braces(struct translation *t, struct counts *out)
{
    size_t from = t->at;
    bool ok;

    *out = (struct counts){.is_valid = true, .is_counted = true};
    t->at++;
    ok = read_count(t, &out->min);
    out->max = out->min;
    if (ok && peek(t, 0) == ',') {
        t->at++;
        out->max = -1;
        if (peek(t, 0) != '}') {
            ok = read_count(t, &out->max);
            out->is_valid = out->max != TOO_LARGE && out->min <= out->max;
        }
    }
    if (!ok || peek(t, 0) != '}' || at_end(t)) {
        t->at = from;
        return false;
    }
    t->at++;
    out->is_valid = out->is_valid && out->min != TOO_LARGE;
    return true;
}

/* Go multiplies the counts along each path of nested repetitions; one that allows no round at all hides what is in it.
 */
static bool multiply(struct translation *t, const struct counts *c)
{
    int times = c->max < 0 ? c->min : c->max;

    if (!c->is_counted)
        return true;
    t->item_product *= times > 1 ? times : 1;
    if ((c->min >= 2 || c->max >= 2) && t->item_product > MAX_REPEAT)
        return false;
    if (c->max == 0)
        t->item_product = 1;
    return true;
}

/* "(?:" item ")" */
static void wrap_item(struct translation *t)
{
    insert(t->out, t->item_start, "(?:");
    buf_addc(t->out, ')');
    t->item_is_simple = true;
}

/* One round or more of an item that may prefer nothing: entry and round capture what is left of the text; a round that
 * moved nowhere counts only where the loop began. */
static void add_careful_loop(struct translation *t, bool lazy)
{
    int entry = ++t->n_captures, round = ++t->n_captures;
    char head[64];

    snprintf(head, sizeof(head), "(?=(?<c%d>.*))(?:(?=(?<c%d>.*))", entry, round);
    insert(t->out, t->item_start, head);
    buf_addf(t->out, "(?:(?!\\k<c%d>\\z)|(?=\\k<c%d>\\z)))+%s", round, entry, lazy ? "?" : "");
    wrap_item(t);
}

/* A loop without end that begins with no round or one. */
static bool is_loop(const struct counts *c, char letter, bool *from_zero)
{
    *from_zero = c->is_counted ? c->min == 0 : letter == '*';
    return c->is_counted ? c->max < 0 && c->min < 2 : letter != '?';
}

static void add_quantifier(struct translation *t, char letter, const struct counts *c, bool lazy)
{
    bool from_zero;

    if (!t->item_is_simple)
        wrap_item(t);
    if (t->exact && t->item_is_empty && t->item_is_hazard && is_loop(c, letter, &from_zero)) {
        add_careful_loop(t, lazy);
        if (from_zero)
            buf_adds(t->out, lazy ? "??" : "?");
    } else if (!c->is_counted) {
        buf_addf(t->out, "%c%s", letter, lazy ? "?" : "");
    } else if (c->max < 0) {
        buf_addf(t->out, "{%d,}%s", c->min, lazy ? "?" : "");
    } else {
        buf_addf(t->out, "{%d,%d}%s", c->min, c->max, lazy ? "?" : "");
    }
    t->item_is_simple = false;
    t->item_is_empty = t->item_is_empty || letter == '*' || letter == '?' || (c->is_counted && c->min == 0);
    t->item_is_hazard = t->item_is_hazard || lazy;
}

/* ( "*" | "+" | "?" | braces ) [ "?" ]; `after` is where the previous repetition began when one stands directly before.
 */
static int read_repetition(struct translation *t, const struct counts *c, size_t from, size_t previous)
{
    bool lazy = (t->flags & UNGREEDY) != 0;
    char letter = t->text.ptr[from];

    if (peek(t, 0) == '?') {
        t->at++;
        lazy = !lazy;
    }
    if (previous != SIZE_MAX)
        return refuse(t, "invalid nested repetition operator", previous, t->at);
    if (!t->has_item)
        return refuse(t, "missing argument to repetition operator", from, t->at);
    if (!multiply(t, c))
        return refuse(t, "invalid repeat count", from, t->at);
    add_quantifier(t, letter, c, lazy);
    return 0;
}

/* ---- escapes ---- */

static int hex_value(uint32_t c)
{
    if (c >= '0' && c <= '9')
        return (int)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (int)(c - 'a' + 10) : -1;
}

static int bad_escape(struct translation *t, size_t from)
{
    return refuse(t, "invalid escape sequence", from, t->at);
}

/* "{" hex { hex } "}", behind \x */
static int read_braced_hex(struct translation *t, size_t from, uint32_t *out)
{
    uint32_t c;
    int n = 0;

    for (*out = 0;; n++) {
        if (at_end(t))
            return bad_escape(t, from);
        c = utf8_next(t->text, &t->at);
        if (c == '}')
            return n > 0 ? 0 : bad_escape(t, from);
        if (hex_value(c) < 0)
            return bad_escape(t, from);
        *out = *out * 16 + (uint32_t)hex_value(c);
        if (*out > UTF8_MAX)
            return bad_escape(t, from);
    }
}

static int read_hex(struct translation *t, size_t from, uint32_t *out)
{
    uint32_t high, low;

    if (at_end(t))
        return bad_escape(t, from);
    high = utf8_next(t->text, &t->at);
    if (high == '{')
        return read_braced_hex(t, from, out);
    low = at_end(t) ? UTF8_REPLACEMENT : utf8_next(t->text, &t->at);
    if (hex_value(high) < 0 || hex_value(low) < 0)
        return bad_escape(t, from);
    *out = (uint32_t)(hex_value(high) * 16 + hex_value(low));
    return 0;
}

/* Up to three octal digits, the first of which is c. */
static uint32_t read_octal(struct translation *t, uint32_t c)
{
    uint32_t value = c - '0';

    for (int i = 1; i < 3 && peek(t, 0) >= '0' && peek(t, 0) <= '7'; i++, t->at++)
        value = value * 8 + (uint32_t)(peek(t, 0) - '0');
    return value;
}

/* "\" and what names one code point. */
static int read_escape(struct translation *t, uint32_t *out)
{
    static const char letters[] = "abfnrtv", values[] = "\a?\f\n\r\t\v"; /* \b is no backspace */
    size_t from = t->at++;
    uint32_t c;
    const char *letter;

    if (at_end(t))
        return refuse(t, "trailing backslash at end of expression", t->at, t->at);
    c = utf8_next(t->text, &t->at);
    if (c == 'x')
        return read_hex(t, from, out);
    letter = c < 0x80 && c != 'b' && c != '\0' ? strchr(letters, (int)c) : NULL;
    if (letter) {
        *out = (uint32_t)values[letter - letters];
        return 0;
    }
    if (c == '0' || (c >= '1' && c <= '7' && peek(t, 0) >= '0' && peek(t, 0) <= '7')) {
        *out = read_octal(t, c);
        return 0;
    }
    if (c >= 0x80 || is_alnum(c))
        return bad_escape(t, from);
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
static bool folded_has(const struct translation *t, const struct set *set, uint32_t c)
{
    if (set_has(set, c))
        return true;
    return (t->flags & FOLD) && is_alnum(c) && !is_digit((char)c) && set_has(set, c ^ 0x20);
}

static void add_range(struct translation *t, uint32_t first, uint32_t last)
{
    add_code(t, first);
    if (last > first) {
        buf_addc(t->out, '-');
        add_code(t, last);
    }
}

/* The ranges of a set of ASCII characters or of its complement. Folding is applied before the complement is taken, and
 * what PCRE2 folds again must not bring characters back: outside ASCII only two characters fold into it. */
static void add_set(struct translation *t, const struct set *set, bool negated)
{
    uint32_t from = 0x80;
    bool fold = (t->flags & FOLD) != 0;

    for (uint32_t c = 0, first = 0; c <= 0x80; c++) {
        bool in = c < 0x80 && folded_has(t, set, c) != negated;
        bool before = c > 0 && folded_has(t, set, c - 1) != negated;

        if (in && !before)
            first = c;
        if (!in && before)
            add_range(t, first, c - 1);
    }
    if (!negated)
        return;
    if (fold && folded_has(t, set, 's')) {
        add_range(t, from, LONG_S - 1);
        from = LONG_S + 1;
    }
    if (fold && folded_has(t, set, 'k')) {
        add_range(t, from, KELVIN_SIGN - 1);
        from = KELVIN_SIGN + 1;
    }
    add_range(t, from, UTF8_MAX);
}

/* \d \D \s \S \w \W; false, and nothing read, for anything else. */
static bool read_perl_class(struct translation *t)
{
    for (size_t i = 0; peek(t, 0) == '\\' && i < ARRAY_SIZE(perl_sets); i++) {
        if ((peek(t, 1) | 0x20) != perl_sets[i].name[0])
            continue;
        add_set(t, &perl_sets[i], peek(t, 1) < 'a');
        t->at += 2;
        return true;
    }
    return false;
}

/* "[:" [ "^" ] name ":]"; 1 when read, 0 when this is no such thing, -1 for an unknown name. */
static int read_posix_class(struct translation *t)
{
    struct str rest = {t->text.ptr + t->at, t->text.len - t->at}, name;
    const char *end = rest.len > 2 ? memmem(rest.ptr + 2, rest.len - 2, ":]", 2) : NULL;
    size_t from = t->at;
    bool negated;

    if (!looking_at(t, "[:") || !end)
        return 0;
    name = (struct str){rest.ptr + 2, (size_t)(end - rest.ptr) - 2};
    t->at += name.len + 4;
    negated = name.len > 0 && name.ptr[0] == '^';
    if (negated)
        name = (struct str){name.ptr + 1, name.len - 1};
    for (size_t i = 0; i < ARRAY_SIZE(posix_sets); i++) {
        if (!str_is(name, posix_sets[i].name))
            continue;
        add_set(t, &posix_sets[i], negated);
        return 1;
    }
    return refuse(t, "invalid character class range", from, t->at);
}

/* \pN, \p{Greek}, \P{^L}, ...; 1 when read, 0 when this is no such thing. */
static int read_property(struct translation *t)
{
    size_t from = t->at, name_from;
    struct str name;
    bool negated;
    const char *end;

    if (peek(t, 0) != '\\' || (peek(t, 1) | 0x20) != 'p')
        return 0;
    negated = peek(t, 1) == 'P';
    t->at += 2;
    name_from = t->at;
    if (peek(t, 0) != '{') {
        if (!at_end(t))
            utf8_next(t->text, &t->at);
        name = (struct str){t->text.ptr + name_from, t->at - name_from};
    } else {
        end = memchr(t->text.ptr + t->at, '}', t->text.len - t->at);
        if (!end)
            return refuse(t, "invalid character class range", from, t->text.len);
        t->at = (size_t)(end - t->text.ptr) + 1;
        name = (struct str){t->text.ptr + name_from + 1, t->at - name_from - 2};
    }
    if (name.len > 0 && name.ptr[0] == '^') {
        negated = !negated;
        name = (struct str){name.ptr + 1, name.len - 1};
    }
    if (!regex_add_property(name, negated, (t->flags & FOLD) != 0, t->out))
        return refuse(t, "invalid character class range", from, t->at);
    return 1;
}

static int read_class_code(struct translation *t, size_t class_from, uint32_t *out)
{
    if (at_end(t))
        return refuse(t, "missing closing ]", class_from, t->text.len);
    if (peek(t, 0) == '\\')
        return read_escape(t, out);
    *out = utf8_next(t->text, &t->at);
    return 0;
}

/* code [ "-" code ] */
static int read_class_range(struct translation *t, size_t class_from)
{
    size_t from = t->at;
    uint32_t first, last;

    if (read_class_code(t, class_from, &first) < 0)
        return -1;
    last = first;
    if (t->text.len - t->at >= 2 && peek(t, 0) == '-' && peek(t, 1) != ']') {
        t->at++;
        if (read_class_code(t, class_from, &last) < 0)
            return -1;
        if (last < first)
            return refuse(t, "invalid character class range", from, t->at);
    }
    add_range(t, first, last);
    return 0;
}

/* "[" [ "^" ] { range | "[:" name ":]" | property | perl class } "]"; a "]" right at the start is a literal. */
static int read_class(struct translation *t)
{
    size_t from = t->at++;
    bool first = true;
    int read;

    begin_folded_item(t);
    buf_addc(t->out, '[');
    if (peek(t, 0) == '^') {
        buf_addc(t->out, '^');
        t->at++;
    }
    for (; at_end(t) || peek(t, 0) != ']' || first; first = false) {
        read = t->text.len - t->at > 2 ? read_posix_class(t) : 0;
        if (read == 0)
            read = read_property(t);
        if (read == 0)
            read = read_perl_class(t);
        if (read < 0 || (read == 0 && read_class_range(t, from) < 0))
            return -1;
    }
    buf_addc(t->out, ']');
    t->at++;
    return 0;
}

/* A class escape outside of brackets. */
static int read_lone_class(struct translation *t)
{
    int read;

    if ((peek(t, 1) | 0x20) != 'p' && !(peek(t, 1) != '\0' && strchr("dDsSwW", peek(t, 1))))
        return 0;
    begin_folded_item(t);
    buf_addc(t->out, '[');
    read = read_property(t);
    if (read == 0)
        read = read_perl_class(t);
    buf_addc(t->out, ']');
    return read;
}

/* ---- groups ---- */

static int open_group(struct translation *t, unsigned flags)
{
    struct group *group;

    if (t->n_groups > MAX_DEPTH)
        return error_set(t->err, ERR_LIMIT, "error parsing regexp: expression nests too deeply: `%.*s`",
                         STR_FMT(t->text));
    end_item(t);
    mem_grow(t->groups, t->n_groups, t->cap_groups);
    group = &t->groups[t->n_groups++];
    *group = (struct group){
        .flags = t->flags, .folds = t->folds, .start = t->out->len, .product = 1, .branch_is_empty = true};
    buf_adds(t->out, "(?:");
    t->flags = flags;
    return 0;
}

static int close_group(struct translation *t)
{
    const struct group *group = &t->groups[t->n_groups - 1];

    if (t->n_groups == 1)
        return refuse(t, "unexpected )", 0, t->text.len);
    end_item(t);
    t->at++;
    buf_addc(t->out, ')');
    t->n_groups--;
    t->flags = group->flags;
    t->folds = group->folds;
    t->has_item = true;
    t->item_is_simple = true; /* it has its own parentheses */
    t->item_is_empty = group->is_empty || group->branch_is_empty;
    t->item_is_hazard = group->is_hazard;
    t->item_start = group->start;
    t->item_product = group->product;
    return 0;
}

/* "(?P<name>" or "(?<name>" */
static int open_named_group(struct translation *t, size_t name_from)
{
    const char *end = memchr(t->text.ptr + t->at, '>', t->text.len - t->at);
    size_t from = t->at, name_to = end ? (size_t)(end - t->text.ptr) : t->text.len;
    bool is_valid = end != NULL && name_to > name_from;

    for (size_t i = name_from; i < name_to; i++)
        is_valid = is_valid && (is_alnum((uint8_t)t->text.ptr[i]) || t->text.ptr[i] == '_');
    if (!is_valid)
        return refuse(t, "invalid named capture", from, end ? name_to + 1 : t->text.len);
    t->at = name_to + 1;
    return open_group(t, t->flags);
}

static unsigned flag_of(uint32_t letter)
{
    switch (letter) {
    case 'i':
        return FOLD;
    case 'm':
        return MULTILINE;
    case 's':
        return DOT_ALL;
    case 'U':
        return UNGREEDY;
    default:
        return 0;
    }
}

/* "(?" { flag } [ "-" flag { flag } ] ( ":" | ")" ): the first opens a group, the second changes the flags from here
 * on. */
static int read_flags(struct translation *t)
{
    size_t from = t->at;
    unsigned flags = t->flags;
    bool negative = false, has_flag = false;

    for (t->at += 2; !at_end(t);) {
        uint32_t c = utf8_next(t->text, &t->at);

        if (flag_of(c)) {
            flags = negative ? flags & ~flag_of(c) : flags | flag_of(c);
            has_flag = true;
        } else if (c == '-' && !negative) {
            negative = true;
            has_flag = false;
        } else if ((c == ':' || c == ')') && (!negative || has_flag)) {
            if (c == ':')
                return open_group(t, flags);
            t->flags = flags;
            return 0;
        } else {
            break;
        }
    }
    return refuse(t, "invalid or unsupported Perl syntax", from, t->at);
}

static int read_group(struct translation *t)
{
    size_t left = t->text.len - t->at;

    if (peek(t, 1) != '?' || left < 2) {
        t->at++;
        return open_group(t, t->flags);
    }
    if (left > 4 && looking_at(t, "(?P<"))
        return open_named_group(t, t->at + 4);
    if (left > 3 && looking_at(t, "(?<"))
        return open_named_group(t, t->at + 3);
    return read_flags(t);
}

/* ---- the whole ---- */

/* "\Q" text [ "\E" ] */
static void read_quoted(struct translation *t)
{
    size_t from = t->at + 2;
    const char *end = memmem(t->text.ptr + from, t->text.len - from, "\\E", 2);
    size_t to = end ? (size_t)(end - t->text.ptr) : t->text.len;

    for (t->at = from; t->at < to;)
        add_literal(t, utf8_next(t->text, &t->at));
    t->at = end ? to + 2 : to;
}

/* Escapes that stand for a place between characters. */
static const struct {
    char letter;
    const char *text;
} anchors[] = {{'A', "\\A"}, {'b', "\\b"}, {'B', "\\B"}, {'z', "\\z"}};

static int read_backslash(struct translation *t)
{
    uint32_t code;
    int read;

    for (size_t i = 0; i < ARRAY_SIZE(anchors); i++) {
        if (peek(t, 1) != anchors[i].letter)
            continue;
        add_anchor(t, anchors[i].text);
        t->at += 2;
        return 0;
    }
    if (peek(t, 1) == 'C')
        return refuse(t, "invalid escape sequence", t->at, t->at + 2);
    if (peek(t, 1) == 'Q') {
        read_quoted(t);
        return 0;
    }
    read = read_lone_class(t);
    if (read != 0)
        return read < 0 ? -1 : 0;
    if (read_escape(t, &code) < 0)
        return -1;
    add_literal(t, code);
    return 0;
}

static void read_dot(struct translation *t)
{
    begin_item(t, true);
    buf_adds(t->out, t->flags & DOT_ALL ? "." : "\\N");
    t->at++;
}

static void read_bar(struct translation *t)
{
    struct group *group = &t->groups[t->n_groups - 1];

    end_item(t);
    group->is_empty = group->is_empty || group->branch_is_empty;
    group->branch_is_empty = true;
    group->is_hazard = true;
    buf_addc(t->out, '|');
    t->at++;
}

/* Anything but a repetition. */
static int read_item(struct translation *t)
{
    switch (peek(t, 0)) {
    case '(':
        return read_group(t);
    case ')':
        return close_group(t);
    case '|':
        read_bar(t);
        return 0;
    case '^':
        add_anchor(t, t->flags & MULTILINE ? "(?<![^\\n])" : "\\A");
        t->at++;
        return 0;
    case '$':
        add_anchor(t, t->flags & MULTILINE ? "(?![^\\n])" : "\\z");
        t->at++;
        return 0;
    case '.':
        read_dot(t);
        return 0;
    case '[':
        return read_class(t);
    case '\\':
        return read_backslash(t);
    default:
        add_literal(t, utf8_next(t->text, &t->at));
        return 0;
    }
}

static int translate(struct translation *t)
{
    size_t previous = SIZE_MAX; /* where a repetition began that ended just now */

    while (!at_end(t)) {
        size_t from = t->at;
        struct counts counts = {.is_valid = true};
        bool is_repetition = peek(t, 0) == '*' || peek(t, 0) == '+' || peek(t, 0) == '?';

        if (is_repetition)
            t->at++;
        else if (peek(t, 0) == '{')
            is_repetition = read_braces(t, &counts);
        if (is_repetition && !counts.is_valid)
            return refuse(t, "invalid repeat count", from, t->at);
        if (is_repetition ? read_repetition(t, &counts, from, previous) < 0 : read_item(t) < 0)
            return -1;
        if (t->out->len > MAX_OUTPUT)
            return error_set(t->err, ERR_LIMIT, "error parsing regexp: expression too large");
        previous = is_repetition ? from : SIZE_MAX;
    }
    if (t->n_groups != 1)
        return refuse(t, "missing closing )", 0, t->text.len);
    return 0;
}

int regex_translate_for(struct str pattern, bool exact, struct buf *out, bool *has_captures, struct error *err)
{
    struct translation t = {.text = pattern, .out = out, .err = err, .exact = exact};
    int status;

    if (pattern.len > REGEX_MAX_PATTERN)
        return error_set(err, ERR_LIMIT, "a regular expression is longer than %d bytes", REGEX_MAX_PATTERN);
    if (!utf8_is_valid(pattern))
        return refuse(&t, "invalid UTF-8", 0, pattern.len);
    mem_grow(t.groups, t.n_groups, t.cap_groups);
    t.groups[t.n_groups++] = (struct group){.product = 1, .branch_is_empty = true};
    status = translate(&t);
    free(t.groups);
    *has_captures = t.n_captures > 0;
    return status;
}

int regex_translate(struct str pattern, struct buf *out, struct error *err)
{
    bool has_captures;

    return regex_translate_for(pattern, true, out, &has_captures, err);
}
