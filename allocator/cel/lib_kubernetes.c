/* Quantities, versions, addresses, URLs and named formats. The modules behind them know nothing of the language. */
#include "allocator/cel/lib.h"

#include "allocator/base/checked.h"
#include "allocator/base/error.h"
#include "allocator/base/quantity.h"
#include "allocator/cel/namedformat.h"
#include "allocator/cel/net.h"
#include "allocator/cel/semver.h"
#include "allocator/cel/url.h"

#include "allocator/base/banned.h"

static struct cel_value error_of(struct cel_eval *e, const struct error *err)
{
    return cel_errorf(e, "%s", err->text);
}

static struct cel_value text_of(struct cel_eval *e, const struct buf *text)
{
    return cel_text_copy(e, (struct str){text->data, text->len});
}

/* ---- quantities ---- */

static struct cel_value new_quantity(struct cel_eval *e, struct quantity q, enum cel_quantity_form form)
{
    struct quantity *place = cel_alloc(e, 1, sizeof(*place));

    *place = q;
    return (struct cel_value){.kind = CEL_V_QUANTITY, .form = (uint8_t)form, .as.quantity = place};
}

struct cel_value cel_fn_quantity(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct error err = {0};
    struct quantity q;

    (void)n_args;
    if (quantity_parse(cel_str(args[0]), e->arena, &q, &err) < 0)
        return error_of(e, &err);
    return new_quantity(e, q, CEL_QUANTITY_PARSED);
}

struct cel_value cel_fn_is_quantity(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct quantity q;

    (void)n_args;
    return cel_bool(quantity_parse(cel_str(args[0]), e->arena, &q, NULL) == 0);
}

struct cel_value cel_fn_sign(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int(quantity_sign(args[0].as.quantity));
}

static struct quantity operand(struct cel_value v)
{
    struct quantity q;

    if (v.kind == CEL_V_QUANTITY)
        return *v.as.quantity;
    q = quantity_of_int(v.as.i);
    q.format = QUANTITY_DECIMAL_EXPONENT;
    return q;
}

struct cel_value cel_fn_quantity_add(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct quantity b = operand(args[1]);

    (void)n_args;
    return new_quantity(e, quantity_add(args[0].as.quantity, &b, e->arena), CEL_QUANTITY_COMPUTED);
}

/* The real library subtracts by adding the negated int64, and the smallest one stays what it is when negated: where the
 * sum fits, q - min is q + min. */
static bool adds_the_smallest(const struct quantity *a, struct cel_value b)
{
    int64_t value = a->value;

    if (b.kind != CEL_V_INT || b.as.i != INT64_MIN || a->big || a->is_dec || a->scale < 0 || value < 0)
        return false;
    for (int32_t i = 0; i < a->scale && value; i++)
        if (!checked_mul(value, 10, &value))
            return false;
    return true;
}

struct cel_value cel_fn_quantity_sub(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct quantity b = operand(args[1]);

    if (adds_the_smallest(args[0].as.quantity, args[1]))
        return cel_fn_quantity_add(e, args, n_args);
    return new_quantity(e, quantity_sub(args[0].as.quantity, &b, e->arena), CEL_QUANTITY_COMPUTED);
}

struct cel_value cel_fn_quantity_greater(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_bool(quantity_cmp(args[0].as.quantity, args[1].as.quantity) > 0);
}

struct cel_value cel_fn_quantity_less(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_bool(quantity_cmp(args[0].as.quantity, args[1].as.quantity) < 0);
}

struct cel_value cel_fn_quantity_compare(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int(quantity_cmp(args[0].as.quantity, args[1].as.quantity));
}

struct cel_value cel_fn_as_float(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_double(quantity_as_double(args[0].as.quantity));
}

struct cel_value cel_fn_as_integer(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    int64_t i;

    (void)e, (void)n_args;
    return quantity_as_integer(args[0].as.quantity, &i) ? cel_int(i) : cel_error("cannot convert value to integer");
}

struct cel_value cel_fn_is_integer(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    int64_t i;

    (void)e, (void)n_args;
    return cel_bool(quantity_as_integer(args[0].as.quantity, &i));
}

/* ---- versions ---- */

struct cel_value cel_fn_semver(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct error err = {0};
    struct semver v, *place;

    if (semver_parse(cel_str(args[0]), n_args == 2 && args[1].as.b, &v, &err) < 0)
        return error_of(e, &err);
    place = cel_alloc(e, 1, sizeof(*place));
    *place = v;
    return (struct cel_value){.kind = CEL_V_SEMVER, .as.semver = place};
}

struct cel_value cel_fn_is_semver(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct semver v;

    (void)e;
    return cel_bool(semver_parse(cel_str(args[0]), n_args == 2 && args[1].as.b, &v, NULL) == 0);
}

struct cel_value cel_fn_major(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int((int64_t)args[0].as.semver->major);
}

struct cel_value cel_fn_minor(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int((int64_t)args[0].as.semver->minor);
}

struct cel_value cel_fn_patch(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int((int64_t)args[0].as.semver->patch);
}

struct cel_value cel_fn_semver_greater(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_bool(semver_cmp(args[0].as.semver, args[1].as.semver) > 0);
}

struct cel_value cel_fn_semver_less(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_bool(semver_cmp(args[0].as.semver, args[1].as.semver) < 0);
}

struct cel_value cel_fn_semver_compare(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int(semver_cmp(args[0].as.semver, args[1].as.semver));
}

/* ---- addresses ---- */

static struct cel_value new_ip(struct cel_eval *e, struct ip ip)
{
    struct ip *place = cel_alloc(e, 1, sizeof(*place));

    *place = ip;
    return (struct cel_value){.kind = CEL_V_IP, .as.ip = place};
}

static struct cel_value new_cidr(struct cel_eval *e, struct cidr cidr)
{
    struct cidr *place = cel_alloc(e, 1, sizeof(*place));

    *place = cidr;
    return (struct cel_value){.kind = CEL_V_CIDR, .as.cidr = place};
}

struct cel_value cel_fn_ip(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct error err = {0};
    struct ip ip;

    (void)n_args;
    return ip_parse(cel_str(args[0]), &ip, &err) < 0 ? error_of(e, &err) : new_ip(e, ip);
}

struct cel_value cel_fn_is_ip(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct ip ip;

    (void)e, (void)n_args;
    return cel_bool(ip_parse(cel_str(args[0]), &ip, NULL) == 0);
}

struct cel_value cel_fn_ip_canonical(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct error err = {0};
    bool canonical;

    (void)n_args;
    return ip_is_canonical(cel_str(args[0]), &canonical, &err) < 0 ? error_of(e, &err) : cel_bool(canonical);
}

#define IP_QUESTION(name, expression, make)                                                                            \
    struct cel_value cel_fn_ip_##name(struct cel_eval *e, const struct cel_value *args, size_t n_args)                 \
    {                                                                                                                  \
        const struct ip *ip = args[0].as.ip;                                                                           \
                                                                                                                       \
        (void)e, (void)n_args;                                                                                         \
        return make(expression);                                                                                       \
    }

IP_QUESTION(family, ip->family, cel_int)
IP_QUESTION(unspecified, ip_is_unspecified(ip), cel_bool)
IP_QUESTION(loopback, ip_is_loopback(ip), cel_bool)
IP_QUESTION(local_multicast, ip_is_link_local_multicast(ip), cel_bool)
IP_QUESTION(local_unicast, ip_is_link_local_unicast(ip), cel_bool)
IP_QUESTION(global_unicast, ip_is_global_unicast(ip), cel_bool)

struct cel_value cel_fn_ip_to_string(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    BUF text = {0};

    (void)n_args;
    ip_format_to(args[0].as.ip, &text);
    return text_of(e, &text);
}

struct cel_value cel_fn_cidr(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct error err = {0};
    struct cidr cidr;

    (void)n_args;
    return cidr_parse(cel_str(args[0]), &cidr, &err) < 0 ? error_of(e, &err) : new_cidr(e, cidr);
}

struct cel_value cel_fn_is_cidr(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cidr cidr;

    (void)e, (void)n_args;
    return cel_bool(cidr_parse(cel_str(args[0]), &cidr, NULL) == 0);
}

/* A text that is no address gives "no such overload", as in the real library. */
struct cel_value cel_fn_contains_ip(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct ip ip;

    (void)e, (void)n_args;
    if (args[1].kind == CEL_V_IP)
        ip = *args[1].as.ip;
    else if (ip_parse(cel_str(args[1]), &ip, NULL) < 0)
        return cel_no_overload();
    return cel_bool(cidr_contains_ip(args[0].as.cidr, &ip));
}

struct cel_value cel_fn_contains_cidr(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct cidr cidr;

    (void)e, (void)n_args;
    if (args[1].kind == CEL_V_CIDR)
        cidr = *args[1].as.cidr;
    else if (cidr_parse(cel_str(args[1]), &cidr, NULL) < 0)
        return cel_no_overload();
    return cel_bool(cidr_contains_cidr(args[0].as.cidr, &cidr));
}

struct cel_value cel_fn_cidr_ip(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return new_ip(e, args[0].as.cidr->ip);
}

struct cel_value cel_fn_prefix_length(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)n_args;
    return cel_int(args[0].as.cidr->prefix_length);
}

struct cel_value cel_fn_masked(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)n_args;
    return new_cidr(e, cidr_masked(args[0].as.cidr));
}

struct cel_value cel_fn_cidr_to_string(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    BUF text = {0};

    (void)n_args;
    cidr_format_to(args[0].as.cidr, &text);
    return text_of(e, &text);
}

/* ---- URLs ---- */

struct cel_value cel_fn_url(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct url *url = cel_alloc(e, 1, sizeof(*url));
    struct error err = {0};

    (void)n_args;
    if (url_parse(cel_str(args[0]), e->arena, url, &err) < 0)
        return cel_errorf(e, "URL parse error during conversion from string: %s", err.text);
    return (struct cel_value){.kind = CEL_V_URL, .as.url = url};
}

struct cel_value cel_fn_is_url(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct url url;

    (void)n_args;
    return cel_bool(url_parse(cel_str(args[0]), e->arena, &url, NULL) == 0);
}

#define URL_PART(name, expression)                                                                                     \
    struct cel_value cel_fn_url_##name(struct cel_eval *e, const struct cel_value *args, size_t n_args)                \
    {                                                                                                                  \
        const struct url *url = args[0].as.url;                                                                        \
                                                                                                                       \
        (void)e, (void)n_args;                                                                                         \
        return cel_text(expression);                                                                                   \
    }

URL_PART(scheme, url->scheme)
URL_PART(host, url->host)
URL_PART(hostname, url_hostname(url))
URL_PART(port, url_port(url))
URL_PART(path, url->escaped_path)

static struct cel_value text_list(struct cel_eval *e, const struct str *texts, size_t n)
{
    struct cel_value *items = cel_alloc(e, n, sizeof(*items));

    for (size_t i = 0; i < n; i++)
        items[i] = cel_text(texts[i]);
    return cel_list(items, n);
}

struct cel_value cel_fn_url_query(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    struct url_query query = url_query(args[0].as.url, e->arena);
    struct cel_map *map = cel_map_new(e->arena, query.n_parameters);

    (void)n_args;
    for (size_t i = 0; i < query.n_parameters; i++)
        cel_map_put(map, e->arena, cel_text(query.parameters[i].key),
                    text_list(e, query.parameters[i].values, query.parameters[i].n_values));
    return cel_map(map);
}

/* ---- named formats ---- */

struct cel_value cel_fn_named_format(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    const struct named_format *format = named_format_find(cel_str(args[0]));

    (void)n_args;
    return format ? cel_optional_of(e, (struct cel_value){.kind = CEL_V_FORMAT, .as.format = format})
                  : cel_optional(NULL);
}

struct cel_value cel_fn_validate(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    const struct str *reasons;
    size_t n = named_format_validate(args[0].as.format, cel_str(args[1]), e->arena, &reasons);

    (void)n_args;
    return n ? cel_optional_of(e, text_list(e, reasons, n)) : cel_optional(NULL);
}

/* ---- authorization ---- */

/* The authorizer library is declared in every environment of Kubernetes, but no selector can get hold of an authorizer:
 * its functions are never called with one. */
struct cel_value cel_fn_unreachable(struct cel_eval *e, const struct cel_value *args, size_t n_args)
{
    (void)e, (void)args, (void)n_args;
    return cel_no_overload();
}
