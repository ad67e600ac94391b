/* allocator/cel/net.h - IP addresses and CIDR ranges as Kubernetes' CEL library knows them.
 *
 * The syntax is that of Go's netip without zones and without IPv4-mapped IPv6 addresses. Plain values; pure; any
 * thread. */
#ifndef QUEUED_CEL_NET_H
#define QUEUED_CEL_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct error;

struct ip {
    uint8_t family;    /* 4 or 6 */
    uint8_t bytes[16]; /* network order; the first four for family 4, the rest then 0 */
};

struct cidr {
    struct ip ip; /* as written, host bits included */
    uint8_t prefix_length;
};

/* Returns 0, or -1 with ERR_INVALID and the words of the library
 * ("IP Address \"x\" parse error during conversion from string: ParseAddr(\"x\"): unable to parse IP"). */
MUST_CHECK int ip_parse(struct str text, struct ip *out, struct error *err);
/* Canonical text: lower case, the longest run of zeros compressed. */
void ip_format_to(const struct ip *ip, struct buf *out);
/* Whether text, which must be an address, is its canonical spelling. Fails as ip_parse. */
MUST_CHECK int ip_is_canonical(struct str text, bool *out, struct error *err);

bool ip_eq(const struct ip *a, const struct ip *b);
bool ip_is_unspecified(const struct ip *ip);
bool ip_is_loopback(const struct ip *ip);
bool ip_is_link_local_multicast(const struct ip *ip);
bool ip_is_link_local_unicast(const struct ip *ip);
bool ip_is_global_unicast(const struct ip *ip); /* private ranges too */

/* Go's netip.ParseAddr alone, which takes zones and mapped addresses: what stands in the brackets of a URL's host. On
 * failure the reason is appended to `why`. */
bool ip_is_go_address(struct str text, bool *out_is_v4, struct buf *why);

/* Host bits may be set. Returns 0, or -1 with ERR_INVALID and the words of the library. */
MUST_CHECK int cidr_parse(struct str text, struct cidr *out, struct error *err);
void cidr_format_to(const struct cidr *cidr, struct buf *out);
bool cidr_eq(const struct cidr *a, const struct cidr *b); /* address as written and length */
struct cidr cidr_masked(const struct cidr *cidr);         /* host bits cleared */
bool cidr_contains_ip(const struct cidr *cidr, const struct ip *ip);
bool cidr_contains_cidr(const struct cidr *cidr, const struct cidr *other);

#endif
