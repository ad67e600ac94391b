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

#define MAX_OUTPUT (1 << 20) /* bytes */
#define MAX_DEPTH  200       /* of groups; Go allows 1000, PCRE2 recurses */
#define MAX_REPEAT 1000      /* counts, alone and multiplied when nested */
#define TOO_LARGE  (-1)      /* a count that no repetition may have */

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
    struct regex_reader in;
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
    t->item_start = t->in.out->len;
}

/* An item that case folding can touch. */
static void begin_folded_item(struct translation *t)
{
    bool fold = (t->flags & FOLD) != 0;

    if (fold != t->folds)
        buf_adds(t->in.out, fold ? "(?i)" : "(?-i)");
    t->folds = fold;
    t->in.fold = fold;
    begin_item(t, true);
}

static void add_literal(struct translation *t, uint32_t code)
{
    begin_folded_item(t);
    regex_add_code(&t->in, code);
}

static void add_anchor(struct translation *t, const char *text)
{
    begin_item(t, false);
    t->item_is_empty = true;
    buf_adds(t->in.out, text);
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
    if (!regex_is_digit(regex_peek(&t->in, 0)) ||
        (regex_peek(&t->in, 0) == '0' && regex_is_digit(regex_peek(&t->in, 1))))
        return false;
    for (*out = 0; regex_is_digit(regex_peek(&t->in, 0)); t->in.at++) {
        if (*out != TOO_LARGE)
            *out = *out * 10 + (regex_peek(&t->in, 0) - '0');
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
    size_t from = t->in.at;
    bool ok;

    *out = (struct counts){.is_valid = true, .is_counted = true};
    t->in.at++;
    ok = read_count(t, &out->min);
    out->max = out->min;
    if (ok && regex_peek(&t->in, 0) == ',') {
        t->in.at++;
        out->max = -1;
        if (regex_peek(&t->in, 0) != '}') {
            ok = read_count(t, &out->max);
            out->is_valid = out->max != TOO_LARGE && out->min <= out->max;
        }
    }
    if (!ok || regex_peek(&t->in, 0) != '}' || regex_at_end(&t->in)) {
        t->in.at = from;
        return false;
    }
    t->in.at++;
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
    insert(t->in.out, t->item_start, "(?:");
    buf_addc(t->in.out, ')');
    t->item_is_simple = true;
}

/* One round or more of an item that may prefer nothing: entry and round capture what is left of the text; a round that
 * moved nowhere counts only where the loop began. */
static void add_careful_loop(struct translation *t, bool lazy)
{
    int entry = ++t->n_captures, round = ++t->n_captures;
    char head[64];

    snprintf(head, sizeof(head), "(?=(?<c%d>.*))(?:(?=(?<c%d>.*))", entry, round);
    insert(t->in.out, t->item_start, head);
    buf_addf(t->in.out, "(?:(?!\\k<c%d>\\z)|(?=\\k<c%d>\\z)))+%s", round, entry, lazy ? "?" : "");
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
            buf_adds(t->in.out, lazy ? "??" : "?");
    } else if (!c->is_counted) {
        buf_addf(t->in.out, "%c%s", letter, lazy ? "?" : "");
    } else if (c->max < 0) {
        buf_addf(t->in.out, "{%d,}%s", c->min, lazy ? "?" : "");
    } else {
        buf_addf(t->in.out, "{%d,%d}%s", c->min, c->max, lazy ? "?" : "");
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
    char letter = t->in.text.ptr[from];

    if (regex_peek(&t->in, 0) == '?') {
        t->in.at++;
        lazy = !lazy;
    }
    if (previous != SIZE_MAX)
        return regex_refuse(&t->in, "invalid nested repetition operator", previous, t->in.at);
    if (!t->has_item)
        return regex_refuse(&t->in, "missing argument to repetition operator", from, t->in.at);
    if (!multiply(t, c))
        return regex_refuse(&t->in, "invalid repeat count", from, t->in.at);
    add_quantifier(t, letter, c, lazy);
    return 0;
}

/* ---- groups ---- */

static int open_group(struct translation *t, unsigned flags)
{
    struct group *group;

    if (t->n_groups > MAX_DEPTH)
        return error_set(t->in.err, ERR_LIMIT, "error parsing regexp: expression nests too deeply: `%.*s`",
                         STR_FMT(t->in.text));
    end_item(t);
    mem_grow(t->groups, t->n_groups, t->cap_groups);
    group = &t->groups[t->n_groups++];
    *group = (struct group){
        .flags = t->flags, .folds = t->folds, .start = t->in.out->len, .product = 1, .branch_is_empty = true};
    buf_adds(t->in.out, "(?:");
    t->flags = flags;
    return 0;
}

static int close_group(struct translation *t)
{
    const struct group *group = &t->groups[t->n_groups - 1];

    if (t->n_groups == 1)
        return regex_refuse(&t->in, "unexpected )", 0, t->in.text.len);
    end_item(t);
    t->in.at++;
    buf_addc(t->in.out, ')');
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
    const char *end = memchr(t->in.text.ptr + t->in.at, '>', t->in.text.len - t->in.at);
    size_t from = t->in.at, name_to = end ? (size_t)(end - t->in.text.ptr) : t->in.text.len;
    bool is_valid = end != NULL && name_to > name_from;

    for (size_t i = name_from; i < name_to; i++)
        is_valid = is_valid && (regex_is_alnum((uint8_t)t->in.text.ptr[i]) || t->in.text.ptr[i] == '_');
    if (!is_valid)
        return regex_refuse(&t->in, "invalid named capture", from, end ? name_to + 1 : t->in.text.len);
    t->in.at = name_to + 1;
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
    size_t from = t->in.at;
    unsigned flags = t->flags;
    bool negative = false, has_flag = false;

    for (t->in.at += 2; !regex_at_end(&t->in);) {
        uint32_t c = utf8_next(t->in.text, &t->in.at);

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
    return regex_refuse(&t->in, "invalid or unsupported Perl syntax", from, t->in.at);
}

static int read_group(struct translation *t)
{
    size_t left = t->in.text.len - t->in.at;

    if (regex_peek(&t->in, 1) != '?' || left < 2) {
        t->in.at++;
        return open_group(t, t->flags);
    }
    if (left > 4 && regex_looking_at(&t->in, "(?P<"))
        return open_named_group(t, t->in.at + 4);
    if (left > 3 && regex_looking_at(&t->in, "(?<"))
        return open_named_group(t, t->in.at + 3);
    return read_flags(t);
}

/* ---- the whole ---- */

/* "\Q" text [ "\E" ] */
static void read_quoted(struct translation *t)
{
    size_t from = t->in.at + 2;
    const char *end = memmem(t->in.text.ptr + from, t->in.text.len - from, "\\E", 2);
    size_t to = end ? (size_t)(end - t->in.text.ptr) : t->in.text.len;

    for (t->in.at = from; t->in.at < to;)
        add_literal(t, utf8_next(t->in.text, &t->in.at));
    t->in.at = end ? to + 2 : to;
}

/* Escapes that stand for a place between characters. */
static const struct {
    char letter;
    const char *text;
} anchors[] = {{'A', "\\A"}, {'b', "\\b"}, {'B', "\\B"}, {'z', "\\z"}};

static int read_backslash(struct translation *t)
{
    uint32_t code;

    for (size_t i = 0; i < ARRAY_SIZE(anchors); i++) {
        if (regex_peek(&t->in, 1) != anchors[i].letter)
            continue;
        add_anchor(t, anchors[i].text);
        t->in.at += 2;
        return 0;
    }
    if (regex_peek(&t->in, 1) == 'C')
        return regex_refuse(&t->in, "invalid escape sequence", t->in.at, t->in.at + 2);
    if (regex_peek(&t->in, 1) == 'Q') {
        read_quoted(t);
        return 0;
    }
    if (regex_is_class_escape(&t->in)) {
        begin_folded_item(t);
        return regex_read_class_escape(&t->in);
    }
    if (regex_read_escape(&t->in, &code) < 0)
        return -1;
    add_literal(t, code);
    return 0;
}

static void read_dot(struct translation *t)
{
    begin_item(t, true);
    buf_adds(t->in.out, t->flags & DOT_ALL ? "." : "\\N");
    t->in.at++;
}

static void read_bar(struct translation *t)
{
    struct group *group = &t->groups[t->n_groups - 1];

    end_item(t);
    group->is_empty = group->is_empty || group->branch_is_empty;
    group->branch_is_empty = true;
    group->is_hazard = true;
    buf_addc(t->in.out, '|');
    t->in.at++;
}

/* Anything but a repetition. */
static int read_item(struct translation *t)
{
    switch (regex_peek(&t->in, 0)) {
    case '(':
        return read_group(t);
    case ')':
        return close_group(t);
    case '|':
        read_bar(t);
        return 0;
    case '^':
        add_anchor(t, t->flags & MULTILINE ? "(?<![^\\n])" : "\\A");
        t->in.at++;
        return 0;
    case '$':
        add_anchor(t, t->flags & MULTILINE ? "(?![^\\n])" : "\\z");
        t->in.at++;
        return 0;
    case '.':
        read_dot(t);
        return 0;
    case '[':
        begin_folded_item(t);
        return regex_read_class(&t->in);
    case '\\':
        return read_backslash(t);
    default:
        add_literal(t, utf8_next(t->in.text, &t->in.at));
        return 0;
    }
}

static int translate(struct translation *t)
{
    size_t previous = SIZE_MAX; /* where a repetition began that ended just now */

    while (!regex_at_end(&t->in)) {
        size_t from = t->in.at;
        struct counts counts = {.is_valid = true};
        bool is_repetition =
            regex_peek(&t->in, 0) == '*' || regex_peek(&t->in, 0) == '+' || regex_peek(&t->in, 0) == '?';

        if (is_repetition)
            t->in.at++;
        else if (regex_peek(&t->in, 0) == '{')
            is_repetition = read_braces(t, &counts);
        if (is_repetition && !counts.is_valid)
            return regex_refuse(&t->in, "invalid repeat count", from, t->in.at);
        if (is_repetition ? read_repetition(t, &counts, from, previous) < 0 : read_item(t) < 0)
            return -1;
        if (t->in.out->len > MAX_OUTPUT)
            return error_set(t->in.err, ERR_LIMIT, "error parsing regexp: expression too large");
        previous = is_repetition ? from : SIZE_MAX;
    }
    if (t->n_groups != 1)
        return regex_refuse(&t->in, "missing closing )", 0, t->in.text.len);
    return 0;
}

int regex_translate_for(struct str pattern, bool exact, struct buf *out, bool *has_captures, struct error *err)
{
    struct translation t = {.in = {.text = pattern, .out = out, .err = err}, .exact = exact};
    int status;

    if (pattern.len > REGEX_MAX_PATTERN)
        return error_set(err, ERR_LIMIT, "a regular expression is longer than %d bytes", REGEX_MAX_PATTERN);
    if (!utf8_is_valid(pattern))
        return regex_refuse(&t.in, "invalid UTF-8", 0, pattern.len);
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
