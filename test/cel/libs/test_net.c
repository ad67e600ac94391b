#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/error.h"
#include "allocator/cel/net.h"

#define UNSPECIFIED BIT(0)
#define LOOPBACK    BIT(1)
#define MULTICAST   BIT(2)
#define LINK_LOCAL  BIT(3)
#define GLOBAL      BIT(4)

static const struct ip_case {
    const char *name; /* the text */
    const char *canonical;
    unsigned kinds;
} ip_cases[] = {
    {"10.0.0.1", "10.0.0.1", GLOBAL},
    {"0.0.0.0", "0.0.0.0", UNSPECIFIED},
    {"127.1.2.3", "127.1.2.3", LOOPBACK},
    {"224.0.0.9", "224.0.0.9", MULTICAST},
    {"239.0.0.9", "239.0.0.9", 0},
    {"169.254.0.1", "169.254.0.1", LINK_LOCAL},
    {"255.255.255.255", "255.255.255.255", 0},
    {"::", "::", UNSPECIFIED},
    {"::1", "::1", LOOPBACK},
    {"2001:DB8::1", "2001:db8::1", GLOBAL},
    {"2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1", GLOBAL},
    {"1:0:0:2:0:0:0:3", "1:0:0:2::3", GLOBAL},
    {"1:2:3:4:5:6:0:8", "1:2:3:4:5:6:0:8", GLOBAL},
    {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", GLOBAL},
    {"fe80::1", "fe80::1", LINK_LOCAL},
    {"ff02::1", "ff02::1", MULTICAST},
    {"ff05::1", "ff05::1", 0},
    {"64:ff9b::1.2.3.4", "64:ff9b::102:304", GLOBAL},
};

static void test_net__ip(void **state)
{
    const struct ip_case *c = *state;
    struct ip ip;
    BUF text = {0};
    bool canonical;

    assert_int_equal(ip_parse(str_of(c->name), &ip, NULL), 0);
    ip_format_to(&ip, &text);
    assert_string_equal(buf_str(&text), c->canonical);
    assert_int_equal(ip_is_canonical(str_of(c->name), &canonical, NULL), 0);
    assert_int_equal(canonical, strcmp(c->name, c->canonical) == 0);
    assert_int_equal(ip.family, strchr(c->name, ':') ? 6 : 4);
    assert_int_equal(ip_is_unspecified(&ip), (c->kinds & UNSPECIFIED) != 0);
    assert_int_equal(ip_is_loopback(&ip), (c->kinds & LOOPBACK) != 0);
    assert_int_equal(ip_is_link_local_multicast(&ip), (c->kinds & MULTICAST) != 0);
    assert_int_equal(ip_is_link_local_unicast(&ip), (c->kinds & LINK_LOCAL) != 0);
    assert_int_equal(ip_is_global_unicast(&ip), (c->kinds & GLOBAL) != 0);
}

static const struct refusal_case {
    const char *name; /* the text */
    const char *why;
} ip_refusals[] = {
    {"", "ParseAddr(\"\"): unable to parse IP"},
    {"localhost", "unable to parse IP"},
    {"010.0.0.1", "IPv4 field has octet with leading zero"},
    {"10.0.0.256", "IPv4 field has value >255"},
    {"10.0.0", "IPv4 address too short"},
    {"1.2.3.4.5", "IPv4 address too long"},
    {"10..0.1", "IPv4 field must have at least one digit (at \".0.1\")"},
    {" 10.0.0.1", "unexpected character (at \" 10.0.0.1\")"},
    {"1::2::3", "multiple :: in address (at \":3\")"},
    {"1:2", "address string too short"},
    {"1:2:3:4:5:6:7:8:9", "trailing garbage after address"},
    {"12345::", "each group must have 4 or less digits"},
    {"1:", "colon must be followed by more characters"},
    {":1", "each colon-separated field must have at least one digit"},
    {"1:2:3:4::5:6:7:8", "the :: must expand to at least one field of zeros"},
    {"fe80::1%eth0", "IP address \"fe80::1%eth0\" with zone value is not allowed"},
    {"fe80::1%", "zone must be a non-empty string"},
    {"::ffff:1.2.3.4", "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"},
};

static void test_net__ip_refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct error err = {0};
    struct ip ip;

    assert_int_equal(ip_parse(str_of(c->name), &ip, &err), -1);
    assert_non_null(strstr(err.text, c->why));
}

static const struct refusal_case cidr_refusals[] = {
    {"10.0.0.0", "netip.ParsePrefix(\"10.0.0.0\"): no '/'"},
    {"10.0.0.0/33", "prefix length out of range"},
    {"::/129", "prefix length out of range"},
    {"10.0.0.0/08", "bad bits after slash: \"08\""},
    {"10.0.0.0/-1", "bad bits after slash: \"-1\""},
    {"10.0.0.0/", "bad bits after slash: \"\""},
    {"10.0.0/8", "ParseAddr(\"10.0.0\"): IPv4 address too short"},
    {"fe80::1%a/64", "IPv6 zones cannot be present in a prefix"},
    {"::ffff:10.0.0.0/104", "IPv4-mapped IPv6 address \"::ffff:10.0.0.0/104\" is not allowed"},
};

static void test_net__cidr_refusal(void **state)
{
    const struct refusal_case *c = *state;
    struct error err = {0};
    struct cidr cidr;

    assert_int_equal(cidr_parse(str_of(c->name), &cidr, &err), -1);
    assert_non_null(strstr(err.text, c->why));
}

static const struct contains_case {
    const char *name;
    const char *outer, *inner;
    bool contains, contains_address;
    const char *masked; /* the outer one */
} contains_cases[] = {
    {"a network in a wider one", "10.0.0.0/8", "10.1.0.0/16", true, true, "10.0.0.0/8"},
    {"host bits do not matter", "10.9.9.9/8", "10.1.2.3/16", true, true, "10.0.0.0/8"},
    {"not the wider one in the narrow", "10.1.0.0/16", "10.1.0.0/8", false, true, "10.1.0.0/16"},
    {"a neighbour", "10.0.0.0/9", "10.128.0.0/9", false, false, "10.0.0.0/9"},
    {"itself", "2001:db8::/33", "2001:db8:7fff::1/33", true, true, "2001:db8::/33"},
    {"all of it", "::/0", "fe80::/10", true, true, "::/0"},
    {"families do not mix", "0.0.0.0/0", "::/0", false, false, "0.0.0.0/0"},
};

static void test_net__contains(void **state)
{
    const struct contains_case *c = *state;
    struct cidr outer, inner, masked;
    BUF text = {0};

    assert_int_equal(cidr_parse(str_of(c->outer), &outer, NULL), 0);
    assert_int_equal(cidr_parse(str_of(c->inner), &inner, NULL), 0);
    assert_int_equal(cidr_contains_cidr(&outer, &inner), c->contains);
    assert_int_equal(cidr_contains_ip(&outer, &inner.ip), c->contains_address);
    masked = cidr_masked(&outer);
    cidr_format_to(&masked, &text);
    assert_string_equal(buf_str(&text), c->masked);
}

int main(void)
{
    return RUN_TABLE(test_net__ip, ip_cases) + RUN_TABLE(test_net__ip_refusal, ip_refusals) +
           RUN_TABLE(test_net__cidr_refusal, cidr_refusals) + RUN_TABLE(test_net__contains, contains_cases);
}
