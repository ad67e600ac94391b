#include "allocator/mentions.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "allocator/base/banned.h"

enum token { TOKEN_END, TOKEN_NAME, TOKEN_TEXT, TOKEN_SIGN, TOKEN_ODD };

struct scanner {
    const char *at;
    enum token token;
    struct str text; /* of a name, or inside of the quotes of a text */
};

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A plain quoted text: one pair of quotes, no escapes, no line ends. */
static void scan_text(struct scanner *s)
{
    char quote = *s->at;
    const char *start = s->at + 1, *end = start;

    if (start[0] == quote && start[1] == quote) { /* triple quotes */
        s->token = TOKEN_ODD;
        return;
    }
    while (*end && *end != quote && *end != '\\' && *end != '\n')
        end++;
    s->token = *end == quote ? TOKEN_TEXT : TOKEN_ODD;
    s->text = (struct str){start, (size_t)(end - start)};
    s->at = end + 1;
}

static void scan_name(struct scanner *s)
{
    const char *end = s->at;

    while (is_name_char(*end))
        end++;
    s->text = (struct str){s->at, (size_t)(end - s->at)};
    s->at = end;
    /* r"..", b".." and the like */
    s->token = (*end == '"' || *end == '\'') ? TOKEN_ODD : TOKEN_NAME;
}

static void scan_next(struct scanner *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
    if (!*s->at) {
        s->token = TOKEN_END;
    } else if (*s->at == '"' || *s->at == '\'') {
        scan_text(s);
    } else if (is_name_char(*s->at)) {
        scan_name(s);
    } else if (*s->at == '`' || *s->at == '\\' || (s->at[0] == '/' && s->at[1] == '/')) {
        s->token = TOKEN_ODD;
    } else {
        s->token = TOKEN_SIGN;
        s->text = (struct str){s->at++, 1};
    }
}

static bool next_is_sign(struct scanner *s, char sign)
{
    scan_next(s);
    return s->token == TOKEN_SIGN && *s->text.ptr == sign;
}

static bool next_is_text(struct scanner *s, struct str *out)
{
    scan_next(s);
    *out = s->text;
    return s->token == TOKEN_TEXT;
}

static bool add_mention(struct mentions *out, struct symbols *symbols, bool is_capacity, struct str domain,
                        struct str id)
{
    char full[300], bare[64], dom[128];

    if (out->n == MAX_MENTIONS || domain.len >= sizeof(dom) || id.len >= sizeof(bare) || memchr(id.ptr, '/', id.len))
        return false;
    snprintf(full, sizeof(full), "%.*s/%.*s", STR_FMT(domain), STR_FMT(id));
    snprintf(bare, sizeof(bare), "%.*s", STR_FMT(id));
    snprintf(dom, sizeof(dom), "%.*s", STR_FMT(domain));
    out->items[out->n++] =
        (struct mention){is_capacity, symbol(symbols, full), symbol(symbols, bare), symbol(symbols, dom)};
    return true;
}

/* Behind `device`: one of the forms that are understood. */
static bool scan_use(struct scanner *s, struct symbols *symbols, struct mentions *out)
{
    struct str domain, id;
    bool is_capacity;
    struct scanner ahead;

    if (!next_is_sign(s, '.'))
        return false;
    scan_next(s);
    if (s->token != TOKEN_NAME)
        return false;
    if (str_is(s->text, "driver") || str_is(s->text, "allowMultipleAllocations"))
        return true;
    is_capacity = str_is(s->text, "capacity");
    if (!is_capacity && !str_is(s->text, "attributes"))
        return false;
    if (!next_is_sign(s, '[') || !next_is_text(s, &domain) || !next_is_sign(s, ']'))
        return false;
    scan_next(s);
    if (s->token != TOKEN_SIGN)
        return false;
    if (*s->text.ptr == '[')
        return next_is_text(s, &id) && next_is_sign(s, ']') && add_mention(out, symbols, is_capacity, domain, id);
    if (*s->text.ptr != '.')
        return false;
    scan_next(s);
    if (s->token != TOKEN_NAME || !add_mention(out, symbols, is_capacity, domain, s->text))
        return false;
    ahead = *s;
    return !next_is_sign(&ahead, '('); /* a method of the whole map */
}

void mentions_scan(const char *text, struct symbols *symbols, struct mentions *out)
{
    struct scanner s = {.at = text};
    bool after_dot = false;

    *out = (struct mentions){0};
    for (scan_next(&s); s.token != TOKEN_END; scan_next(&s)) {
        if (s.token == TOKEN_ODD ||
            (s.token == TOKEN_NAME && str_is(s.text, "device") && (after_dot || !scan_use(&s, symbols, out)))) {
            out->all = true;
            return;
        }
        after_dot = s.token == TOKEN_SIGN && *s.text.ptr == '.';
    }
}

static bool reads_key(const struct mentions *mentions, bool is_capacity, const char *driver, const char *key)
{
    for (size_t i = 0; i < mentions->n; i++) {
        const struct mention *m = &mentions->items[i];

        if (m->is_capacity == is_capacity && (key == m->full || (key == m->bare && driver == m->domain)))
            return true;
    }
    return false;
}

/* Versions, lists and attributes without a value always count: an unusable one fails every evaluation on its device. */
struct digest mentions_project(const struct mentions *mentions, const char *driver, const struct device *device)
{
    struct digest digest = {0};

    digest_add(&digest, (uint64_t)(uintptr_t)driver);
    if (mentions->all) {
        digest_add(&digest, device->digest.lo);
        digest_add(&digest, device->digest.hi);
        return digest;
    }
    digest_add(&digest, device->multi);
    for (size_t i = 0; i < device->n_attributes; i++) {
        const struct attribute *a = &device->attributes[i];

        if (a->kind != CEL_ATTR_NONE && a->kind != CEL_ATTR_VERSION && !a->is_list &&
            !reads_key(mentions, false, driver, a->key))
            continue;
        digest_add(&digest, (uint64_t)(uintptr_t)a->key);
        digest_add(&digest, a->hash);
    }
    for (size_t i = 0; i < device->n_capacities; i++)
        if (reads_key(mentions, true, driver, device->capacities[i].key))
            digest_add(&digest, device->capacities[i].hash);
    return digest;
}
