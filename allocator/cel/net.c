#include "allocator/cel/net.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/utf8.h"

#include "allocator/base/banned.h"

#define V4_BYTES 4
#define V6_BYTES 16

/* ---- reading addresses ---- */

/* Where reading stopped: the reason and, where Go shows it, the text from there on. */
struct fault {
    const char *why;
    bool shows_place;
    struct str place;
};

static bool fail(struct fault *fault, const char *why)
{
    *fault = (struct fault){.why = why};
    return false;
}

static bool fail_at(struct fault *fault, const char *why, struct str place)
{
    *fault = (struct fault){why, true, place};
    return false;
}

static struct str from(struct str s, size_t i)
{
    return (struct str){s.ptr + i, s.len - i};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Four decimal fields, which are all of s. */
static bool read_v4(struct str s, uint8_t out[V4_BYTES], struct fault *fault)
{
    unsigned value = 0, digits = 0, field = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (is_digit(c)) {
            if (digits == 1 && value == 0)
                return fail(fault, "IPv4 field has octet with leading zero");
            value = value * 10 + (unsigned)(c - '0');
            digits++;
            if (value > 255)
                return fail(fault, "IPv4 field has value >255");
        } else if (c == '.') {
            if (i == 0 || i == s.len - 1 || s.ptr[i - 1] == '.')
                return fail_at(fault, "IPv4 field must have at least one digit", from(s, i));
            if (field == V4_BYTES - 1)
                return fail(fault, "IPv4 address too long");
            out[field++] = (uint8_t)value;
            value = digits = 0;
        } else {
            return fail_at(fault, "unexpected character", from(s, i));
        }
    }
    if (field < V4_BYTES - 1)
        return fail(fault, "IPv4 address too short");
    out[field] = (uint8_t)value;
    return true;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The state of reading an IPv6 address: what is left, bytes written, where the double colon stood. */
struct v6_reading {
    struct str rest;
    size_t n;
    int gap; /* byte position, -1 without one */
};

/* A dotted quad in place of the last two groups; `s` is from the number before the first dot. */
static bool read_v6_tail(struct v6_reading *r, uint8_t out[V6_BYTES], struct str whole, struct fault *fault)
{
    struct fault inner;

    if (r->gap < 0 && r->n != V6_BYTES - V4_BYTES)
        return fail_at(fault, "embedded IPv4 address must replace the final 2 fields of the address", whole);
    if (r->n + V4_BYTES > V6_BYTES)
        return fail_at(fault, "too many hex fields to fit an embedded IPv4 at the end of the address", whole);
    if (!read_v4(r->rest, out + r->n, &inner))
        return inner.shows_place ? fail_at(fault, inner.why, inner.place) : fail(fault, inner.why);
    r->n += V4_BYTES;
    r->rest = (struct str){0};
    return true;
}

/* One group of hex digits and what may follow it; *done when the address ends here. */
static bool read_v6_group(struct v6_reading *r, uint8_t out[V6_BYTES], struct str whole, bool *done,
                          struct fault *fault)
{
    size_t digits = 0;
    unsigned value = 0;

    for (; digits < r->rest.len && hex_value(r->rest.ptr[digits]) >= 0; digits++) {
        value = value << 4 | (unsigned)hex_value(r->rest.ptr[digits]);
        if (digits > 3)
            return fail_at(fault, "each group must have 4 or less digits", r->rest);
    }
    if (digits == 0)
        return fail_at(fault, "each colon-separated field must have at least one digit", r->rest);
    if (digits < r->rest.len && r->rest.ptr[digits] == '.') {
        *done = true;
        return read_v6_tail(r, out, whole, fault);
    }
    out[r->n] = (uint8_t)(value >> 8);
    out[r->n + 1] = (uint8_t)value;
    r->n += 2;
    r->rest = from(r->rest, digits);
    *done = r->rest.len == 0;
    if (*done)
        return true;
    if (r->rest.ptr[0] != ':')
        return fail_at(fault, "unexpected character, want colon", r->rest);
    if (r->rest.len == 1)
        return fail_at(fault, "colon must be followed by more characters", r->rest);
    r->rest = from(r->rest, 1);
    if (r->rest.ptr[0] == ':') {
        if (r->gap >= 0)
            return fail_at(fault, "multiple :: in address", r->rest);
        r->gap = (int)r->n;
        r->rest = from(r->rest, 1);
        *done = r->rest.len == 0;
    }
    return true;
}

static bool read_v6(struct str s, uint8_t out[V6_BYTES], struct fault *fault)
{
    struct v6_reading r = {s, 0, -1};
    bool done = false;

    if (s.len >= 2 && s.ptr[0] == ':' && s.ptr[1] == ':') {
        r.gap = 0;
        r.rest = from(s, 2);
        done = r.rest.len == 0;
    }
    while (!done && r.n < V6_BYTES)
        if (!read_v6_group(&r, out, r.rest, &done, fault))
            return false;
    if (r.rest.len != 0)
        return fail_at(fault, "trailing garbage after address", r.rest);
    if (r.n == V6_BYTES)
        return r.gap < 0 || fail(fault, "the :: must expand to at least one field of zeros");
    if (r.gap < 0)
        return fail(fault, "address string too short");
    memmove(out + V6_BYTES - (r.n - (size_t)r.gap), out + r.gap, r.n - (size_t)r.gap);
    memset(out + r.gap, 0, V6_BYTES - r.n);
    return true;
}

/* Go's netip.ParseAddr; a zone is cut off and reported. */
static bool read_address(struct str s, struct ip *out, bool *has_zone, struct fault *fault)
{
    const char *percent;

    *out = (struct ip){0};
    *has_zone = false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '.') {
            out->family = 4;
            return read_v4(s, out->bytes, fault);
        }
        if (s.ptr[i] == '%')
            return fail(fault, "missing IPv6 address");
        if (s.ptr[i] == ':')
            break;
        if (i == s.len - 1)
            return fail(fault, "unable to parse IP");
    }
    if (s.len == 0)
        return fail(fault, "unable to parse IP");
    out->family = 6;
    percent = memchr(s.ptr, '%', s.len);
    *has_zone = percent != NULL;
    if (percent && percent == s.ptr + s.len - 1)
        return fail(fault, "zone must be a non-empty string");
    return read_v6(percent ? (struct str){s.ptr, (size_t)(percent - s.ptr)} : s, out->bytes, fault);
}

static bool is_mapped(const struct ip *ip)
{
    static const uint8_t prefix[12] = {[10] = 0xFF, [11] = 0xFF};

    return ip->family == 6 && memcmp(ip->bytes, prefix, sizeof(prefix)) == 0;
}

/* ParseAddr("x"): why (at "place") */
static void add_fault(struct str text, const struct fault *fault, struct buf *out)
{
    buf_adds(out, "ParseAddr(");
    utf8_quote_to(text, out);
    buf_addf(out, "): %s", fault->why);
    if (fault->shows_place) {
        buf_adds(out, " (at ");
        utf8_quote_to(fault->place, out);
        buf_addc(out, ')');
    }
}

bool ip_is_go_address(struct str text, bool *out_is_v4, struct buf *why)
{
    struct fault fault;
    struct ip ip;
    bool has_zone, is_read = read_address(text, &ip, &has_zone, &fault);

    *out_is_v4 = ip.family == 4;
    if (!is_read)
        add_fault(text, &fault, why);
    return is_read;
}

int ip_parse(struct str text, struct ip *out, struct error *err)
{
    BUF quoted = {0};
    BUF why = {0};
    struct fault fault;
    struct ip ip;
    bool has_zone, is_read = read_address(text, &ip, &has_zone, &fault);

    if (is_read && !has_zone && !is_mapped(&ip)) {
        *out = ip;
        return 0;
    }
    utf8_quote_to(text, &quoted);
    if (is_read && has_zone)
        return error_set(err, ERR_INVALID, "IP address %s with zone value is not allowed", buf_str(&quoted));
    if (is_read)
        return error_set(err, ERR_INVALID, "IPv4-mapped IPv6 address %s is not allowed", buf_str(&quoted));
    add_fault(text, &fault, &why);
    return error_set(err, ERR_INVALID, "IP Address %s parse error during conversion from string: %s", buf_str(&quoted),
                     buf_str(&why));
}

/* ---- writing addresses ---- */

static unsigned group(const struct ip *ip, int i)
{
    return (unsigned)ip->bytes[2 * i] << 8 | ip->bytes[2 * i + 1];
}

/* The first of the longest runs of two or more zero groups; length 0 when there is none. */
static int longest_zeros(const struct ip *ip, int *start)
{
    int best = 0;

    for (int i = 0; i < 8;) {
        int n = 0;

        while (i + n < 8 && group(ip, i + n) == 0)
            n++;
        if (n > best && n > 1) {
            best = n;
            *start = i;
        }
        i += n ? n : 1;
    }
    return best;
}

void ip_format_to(const struct ip *ip, struct buf *out)
{
    int gap = -1, n_zeros;

    if (ip->family == 4) {
        buf_addf(out, "%d.%d.%d.%d", ip->bytes[0], ip->bytes[1], ip->bytes[2], ip->bytes[3]);
        return;
    }
    n_zeros = longest_zeros(ip, &gap);
    for (int i = 0; i < 8; i++) {
        if (n_zeros > 0 && i == gap) {
            buf_adds(out, "::");
            i += n_zeros;
            if (i == 8)
                break;
        } else if (i > 0) {
            buf_addc(out, ':');
        }
        buf_addf(out, "%x", group(ip, i));
    }
}

int ip_is_canonical(struct str text, bool *out, struct error *err)
{
    BUF canonical = {0};
    struct ip ip;

    if (ip_parse(text, &ip, err) < 0)
        return -1;
    ip_format_to(&ip, &canonical);
    *out = str_is(text, buf_str(&canonical));
    return 0;
}

/* ---- kinds of addresses ---- */

bool ip_eq(const struct ip *a, const struct ip *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* All bytes are 0 but the last, which is `last`. */
static bool is_only(const struct ip *ip, uint8_t last)
{
    size_t n = ip->family == 4 ? V4_BYTES : V6_BYTES;

    for (size_t i = 0; i < n - 1; i++)
        if (ip->bytes[i] != 0)
            return false;
    return ip->bytes[n - 1] == last;
}

bool ip_is_unspecified(const struct ip *ip)
{
    return is_only(ip, 0);
}

bool ip_is_loopback(const struct ip *ip)
{
    return ip->family == 4 ? ip->bytes[0] == 127 : is_only(ip, 1);
}

bool ip_is_link_local_multicast(const struct ip *ip)
{
    if (ip->family == 4)
        return ip->bytes[0] == 224 && ip->bytes[1] == 0 && ip->bytes[2] == 0;
    return ip->bytes[0] == 0xFF && (ip->bytes[1] & 0x0F) == 0x02;
}

bool ip_is_link_local_unicast(const struct ip *ip)
{
    if (ip->family == 4)
        return ip->bytes[0] == 169 && ip->bytes[1] == 254;
    return ip->bytes[0] == 0xFE && (ip->bytes[1] & 0xC0) == 0x80;
}

static bool is_multicast(const struct ip *ip)
{
    return ip->family == 4 ? (ip->bytes[0] & 0xF0) == 0xE0 : ip->bytes[0] == 0xFF;
}

bool ip_is_global_unicast(const struct ip *ip)
{
    static const uint8_t broadcast[V4_BYTES] = {255, 255, 255, 255};

    if (ip->family == 4 && memcmp(ip->bytes, broadcast, V4_BYTES) == 0)
        return false;
    return !ip_is_unspecified(ip) && !ip_is_loopback(ip) && !is_multicast(ip) && !ip_is_link_local_unicast(ip);
}

/* ---- ranges ---- */

static unsigned n_bits(const struct ip *ip)
{
    return ip->family == 4 ? 32 : 128;
}

static int refuse_prefix(struct error *err, struct str text, const char *why)
{
    BUF quoted = {0};

    utf8_quote_to(text, &quoted);
    return error_set(err, ERR_INVALID,
                     "network address parse error during conversion from string: network address parse error during "
                     "conversion from string: netip.ParsePrefix(%s): %s",
                     buf_str(&quoted), why);
}

/* Decimal without sign and leading zero. */
static bool read_bits(struct str digits, unsigned max, unsigned *out, bool *is_number)
{
    unsigned value = 0;

    *is_number = digits.len > 0 && (digits.len == 1 || (digits.ptr[0] >= '1' && digits.ptr[0] <= '9'));
    for (size_t i = 0; i < digits.len; i++) {
        if (!is_digit(digits.ptr[i]))
            *is_number = false;
        else if (value <= max)
            value = value * 10 + (unsigned)(digits.ptr[i] - '0');
    }
    *out = value;
    return *is_number && value <= max;
}

static int parse_prefix(struct str text, struct cidr *out, struct error *err)
{
    BUF why = {0};
    const char *slash = text.len ? memrchr(text.ptr, '/', text.len) : NULL;
    struct str address, bits;
    struct fault fault;
    bool has_zone, is_number;
    unsigned length;

    if (!slash)
        return refuse_prefix(err, text, "no '/'");
    address = (struct str){text.ptr, (size_t)(slash - text.ptr)};
    bits = from(text, address.len + 1);
    if (!read_address(address, &out->ip, &has_zone, &fault)) {
        add_fault(address, &fault, &why);
        return refuse_prefix(err, text, buf_str(&why));
    }
    if (has_zone)
        return refuse_prefix(err, text, "IPv6 zones cannot be present in a prefix");
    if (read_bits(bits, n_bits(&out->ip), &length, &is_number)) {
        out->prefix_length = (uint8_t)length;
        return 0;
    }
    if (is_number)
        return refuse_prefix(err, text, "prefix length out of range");
    buf_adds(&why, "bad bits after slash: ");
    utf8_quote_to(bits, &why);
    return refuse_prefix(err, text, buf_str(&why));
}

int cidr_parse(struct str text, struct cidr *out, struct error *err)
{
    BUF quoted = {0};
    struct cidr cidr;

    if (parse_prefix(text, &cidr, err) < 0)
        return -1;
    if (is_mapped(&cidr.ip)) {
        utf8_quote_to(text, &quoted);
        return error_set(err, ERR_INVALID,
                         "network address parse error during conversion from string: IPv4-mapped IPv6 address %s is "
                         "not allowed",
                         buf_str(&quoted));
    }
    *out = cidr;
    return 0;
}

void cidr_format_to(const struct cidr *cidr, struct buf *out)
{
    ip_format_to(&cidr->ip, out);
    buf_addf(out, "/%u", cidr->prefix_length);
}

bool cidr_eq(const struct cidr *a, const struct cidr *b)
{
    return a->prefix_length == b->prefix_length && ip_eq(&a->ip, &b->ip);
}

struct cidr cidr_masked(const struct cidr *cidr)
{
    struct cidr masked = *cidr;

    for (unsigned i = 0; i < n_bits(&cidr->ip) / 8; i++) {
        unsigned kept = cidr->prefix_length <= i * 8 ? 0 : cidr->prefix_length - i * 8;

        if (kept < 8)
            masked.ip.bytes[i] &= (uint8_t)(0xFF00u >> kept);
    }
    return masked;
}

/* Whether the first `length` bits of two addresses of the same family agree. */
static bool same_network(const struct ip *a, const struct ip *b, uint8_t length)
{
    struct cidr range_a = {*a, length}, range_b = {*b, length};

    range_a = cidr_masked(&range_a);
    range_b = cidr_masked(&range_b);
    return ip_eq(&range_a.ip, &range_b.ip);
}

bool cidr_contains_ip(const struct cidr *cidr, const struct ip *ip)
{
    return same_network(&cidr->ip, ip, cidr->prefix_length);
}

bool cidr_contains_cidr(const struct cidr *cidr, const struct cidr *other)
{
    return cidr->prefix_length <= other->prefix_length && same_network(&cidr->ip, &other->ip, cidr->prefix_length);
}
