#include "allocator/cel/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/base/invariant.h"

#include "allocator/base/banned.h"

/* ---- decoding ---- */

/* What a first byte announces: length of the sequence, its own payload, and the range of the second byte, which is
 * where overlong forms, surrogates and numbers above U+10FFFF show. */
static const struct lead {
    uint8_t first, last;
    uint8_t length, mask;
    uint8_t second_min, second_max;
} leads[] = {
    {0xC2, 0xDF, 2, 0x1F, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0x0F, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x0F, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x0F, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x0F, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x07, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x07, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x07, 0x80, 0x8F},
};

static const struct lead *lead_of(uint8_t byte)
{
    for (size_t i = 0; i < ARRAY_SIZE(leads); i++)
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    return NULL;
}

/* Decode n > 0 bytes; the length of the sequence, or 0 when the first byte begins no valid one. */
static size_t decode(const uint8_t *bytes, size_t n, uint32_t *out)
{
    const struct lead *lead;
    uint32_t code;

    if (bytes[0] < 0x80) {
        *out = bytes[0];
        return 1;
    }
    lead = lead_of(bytes[0]);
    if (!lead || n < lead->length || bytes[1] < lead->second_min || bytes[1] > lead->second_max)
        return 0;
    code = bytes[0] & lead->mask;
    for (size_t i = 1; i < lead->length; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    *out = code;
    return lead->length;
}

uint32_t utf8_next(struct str s, size_t *at)
{
    uint32_t code;
    size_t length;

    INVARIANT(*at < s.len);
    length = decode((const uint8_t *)s.ptr + *at, s.len - *at, &code);
    *at += length ? length : 1;
    return length ? code : UTF8_REPLACEMENT;
}

uint32_t utf8_previous(struct str s, size_t *at)
{
    uint32_t code;

    INVARIANT(*at > 0 && *at <= s.len);
    for (size_t length = 1; length <= 4 && length <= *at; length++) {
        if (decode((const uint8_t *)s.ptr + *at - length, length, &code) == length) {
            *at -= length;
            return code;
        }
    }
    *at -= 1;
    return UTF8_REPLACEMENT;
}

size_t utf8_encode(uint32_t code, char out[4])
{
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length;

    if (code > UTF8_MAX || (code >= 0xD800 && code <= 0xDFFF))
        code = UTF8_REPLACEMENT;
    length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(length == 1 ? code : marks[length] | code);
    return length;
}

/* ---- counting ---- */

/* How many leading bytes are ASCII. */
static size_t ascii_prefix(struct str s)
{
    size_t i = 0;
    uint64_t word;

    for (; i + sizeof(word) <= s.len; i += sizeof(word)) {
        memcpy(&word, s.ptr + i, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < s.len && (uint8_t)s.ptr[i] < 0x80)
        i++;
    return i;
}

bool utf8_is_valid(struct str s)
{
    size_t at = ascii_prefix(s), length = 1;
    uint32_t code;

    for (; at < s.len && length != 0; at += length)
        length = decode((const uint8_t *)s.ptr + at, s.len - at, &code);
    return length != 0;
}

size_t utf8_count(struct str s)
{
    size_t at = ascii_prefix(s), n = at;

    for (; at < s.len; n++)
        utf8_next(s, &at);
    return n;
}

size_t utf8_offset(struct str s, size_t n)
{
    size_t at = ascii_prefix(s);

    if (n <= at)
        return n;
    for (size_t i = at; i < n; i++) {
        if (at == s.len)
            return SIZE_MAX;
        utf8_next(s, &at);
    }
    return at;
}

/* ---- white space and case ---- */

bool utf8_is_space(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } spaces[] = {
        {0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
    };

    for (size_t i = 0; i < ARRAY_SIZE(spaces) && code >= spaces[i].first; i++)
        if (code <= spaces[i].last)
            return true;
    return false;
}

struct str utf8_trim(struct str s)
{
    size_t from = 0, to = s.len;

    for (size_t at = 0; at < s.len && utf8_is_space(utf8_next(s, &at));)
        from = at;
    for (size_t at = to; at > from && utf8_is_space(utf8_previous(s, &at));)
        to = at;
    return (struct str){s.ptr ? s.ptr + from : NULL, to - from};
}

/* The letters first .. first + 25 become the others. */
static struct str change_case(struct str s, char first, struct arena *arena)
{
    char *copy = NULL;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < first || s.ptr[i] > first + 25)
            continue;
        if (!copy)
            copy = arena_strndup(arena, s.ptr, s.len);
        copy[i] = (char)(s.ptr[i] ^ 0x20);
    }
    return copy ? (struct str){copy, s.len} : s;
}

struct str utf8_lower_ascii(struct str s, struct arena *arena)
{
    return change_case(s, 'A', arena);
}

struct str utf8_upper_ascii(struct str s, struct arena *arena)
{
    return change_case(s, 'a', arena);
}

/* ---- quoting ---- */

/* Which code points above ASCII can be printed is a large table; PCRE2 has it. */
struct printable {
    pcre2_code *code;
    pcre2_match_data *data;
};

static void printable_release(struct printable *p)
{
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
}

static bool is_printable(struct printable *p, uint32_t code)
{
    static const unsigned char pattern[] = "[\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}]";
    char bytes[4];
    size_t n = utf8_encode(code, bytes), offset;
    int number;

    if (code < 0x80)
        return code >= 0x20 && code < 0x7F;
    if (!p->code) {
        p->code = pcre2_compile(pattern, sizeof(pattern) - 1, PCRE2_UTF | PCRE2_ANCHORED, &number, &offset, NULL);
        INVARIANT(p->code != NULL);
        p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
        INVARIANT(p->data != NULL);
    }
    return pcre2_match(p->code, (PCRE2_SPTR)bytes, n, 0, 0, p->data, NULL) > 0;
}

static void add_escaped(uint32_t code, struct buf *out)
{
    static const char controls[] = "abtnvfr"; /* 7 .. 13 */

    if (code == '"' || code == '\\')
        buf_addf(out, "\\%c", (char)code);
    else if (code >= 7 && code <= 13)
        buf_addf(out, "\\%c", controls[code - 7]);
    else
        buf_addf(out, code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
}

void utf8_quote_to(struct str s, struct buf *out)
{
    __attribute__((cleanup(printable_release))) struct printable printable = {0};
    uint32_t code;
    size_t length;

    buf_addc(out, '"');
    for (size_t at = 0; at < s.len; at += length ? length : 1) {
        length = decode((const uint8_t *)s.ptr + at, s.len - at, &code);
        if (length == 0)
            buf_addf(out, "\\x%02x", (uint8_t)s.ptr[at]);
        else if (code != '"' && code != '\\' && is_printable(&printable, code))
            buf_add(out, s.ptr + at, length);
        else
            add_escaped(code, out);
    }
    buf_addc(out, '"');
}
