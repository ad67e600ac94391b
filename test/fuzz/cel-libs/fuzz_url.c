/* URLs, addresses, ranges and named formats: a URL that is parsed passes the check too; addresses are printed
 * canonically. */
#include "test/fuzz/cel-libs/fuzz.h"

#include "allocator/base/arena.h"
#include "allocator/base/error.h"
#include "allocator/cel/namedformat.h"
#include "allocator/cel/net.h"
#include "allocator/cel/url.h"

static void check_url(struct str text, struct arena *arena)
{
    struct error err;
    struct url url;
    struct url_query query;

    if (url_parse(text, arena, &url, &err) < 0)
        return;
    INVARIANT(url_check(text, arena, &err) == 0);
    query = url_query(&url, arena);
    for (size_t i = 0; i < query.n_parameters; i++)
        INVARIANT(query.parameters[i].n_values > 0);
    INVARIANT(url_hostname(&url).len + url_port(&url).len <= url.host.len);
}

static void check_address(struct str text)
{
    struct error err;
    struct ip ip;
    struct cidr cidr, masked;
    bool canonical = false;
    BUF printed = {0};

    if (ip_parse(text, &ip, &err) == 0) {
        ip_format_to(&ip, &printed);
        INVARIANT(ip_is_canonical(fuzz_str(&printed), &canonical, NULL) == 0 && canonical);
    }
    if (cidr_parse(text, &cidr, &err) == 0) {
        masked = cidr_masked(&cidr);
        INVARIANT(cidr_contains_cidr(&cidr, &masked) && cidr_contains_ip(&masked, &cidr.ip));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena arena = {0};
    const struct str *reasons;
    size_t n;
    const struct named_format *formats = named_format_all(&n);

    check_url(text, &arena);
    check_address(text);
    for (size_t i = 0; i < n; i++)
        (void)named_format_validate(&formats[i], text, &arena, &reasons);
    arena_release(&arena);
    return 0;
}
