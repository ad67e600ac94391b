/* The rules for names (section 1.5 of the DRA semantics; the label rules are those of Kubernetes objects). */
#include "allocator/internal.h"

#include <ctype.h>
#include <string.h>

#include "allocator/base/banned.h"

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* One DNS label of `len` bytes: alphanumeric ends, dashes inside. */
static bool is_label(const char *s, size_t len, bool any_case)
{
    if (len == 0 || len > 63)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool inner = i > 0 && i < len - 1;

        if (!(any_case ? is_alnum(s[i]) : is_lower_or_digit(s[i])) && !(inner && s[i] == '-'))
            return false;
    }
    return true;
}

/* Labels joined by dots. A subdomain's label may be longer than 63, only the whole is limited. */
static bool is_subdomain(const char *s, size_t len, size_t max, bool any_case)
{
    size_t start = 0;

    if (len == 0 || len > max)
        return false;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && s[i] != '.')
            continue;
        if (i == start)
            return false;
        for (size_t k = start; k < i; k++) {
            bool inner = k > start && k < i - 1;

            if (!(any_case ? is_alnum(s[k]) : is_lower_or_digit(s[k])) && !(inner && s[k] == '-'))
                return false;
        }
        start = i + 1;
    }
    return true;
}

static bool is_identifier(const char *s, size_t len)
{
    if (len == 0 || len > 32 || isdigit((unsigned char)s[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(s[i]) && s[i] != '_')
            return false;
    return true;
}

/* Alphanumeric ends; dashes, underscores and dots inside. */
static bool is_label_text(const char *s, size_t len)
{
    if (len == 0 || len > 63 || !is_alnum(s[0]) || !is_alnum(s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    return true;
}

const char *name_problem_label(const char *name)
{
    return is_label(name, strlen(name), false) ? NULL : "must be a DNS label of at most 63 characters";
}

const char *name_problem_subdomain(const char *name)
{
    return is_subdomain(name, strlen(name), 253, false) ? NULL : "must be a DNS subdomain of at most 253 characters";
}

const char *name_problem_driver(const char *name)
{
    return is_subdomain(name, strlen(name), 63, true) ? NULL : "must be a DNS subdomain of at most 63 characters";
}

const char *name_problem_pool(const char *name)
{
    static const char problem[] = "must be DNS subdomains joined by '/', at most 253 characters";

    if (strlen(name) > 253)
        return problem;
    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");

        if (!is_subdomain(part, len, 253, false))
            return problem;
        part += len;
        if (!*part)
            return NULL;
    }
}

static const char qualified_problem[] =
    "must be a C identifier of at most 32 characters, optionally after a domain and '/'";

const char *name_problem_qualified(const char *name)
{
    const char *slash = strchr(name, '/');
    const char *id = slash ? slash + 1 : name;

    if (slash && !is_subdomain(name, (size_t)(slash - name), 63, true))
        return qualified_problem;
    return is_identifier(id, strlen(id)) ? NULL : qualified_problem;
}

const char *name_problem_fully_qualified(const char *name)
{
    return strchr(name, '/') ? name_problem_qualified(name) : "must include a domain";
}

const char *name_problem_label_key(const char *name)
{
    const char *slash = strchr(name, '/');
    const char *id = slash ? slash + 1 : name;

    if ((slash && !is_subdomain(name, (size_t)(slash - name), 253, false)) || !is_label_text(id, strlen(id)))
        return "must be a label name, optionally after a DNS subdomain and '/'";
    return NULL;
}

const char *name_problem_label_value(const char *value)
{
    return !*value || is_label_text(value, strlen(value)) ? NULL : "must be a label value of at most 63 characters";
}

/* ---- semantic versions: MAJOR.MINOR.PATCH[-pre][+build], no leading zeros in numbers ---- */

static const char *skip_number(const char *s)
{
    const char *end = s;

    while (isdigit((unsigned char)*end))
        end++;
    return end == s || (*s == '0' && end - s > 1) ? NULL : end;
}

/* Dot-separated identifiers; numeric ones of a pre-release have no leading zeros. */
static const char *skip_identifiers(const char *s, bool pre_release)
{
    for (;; s++) {
        const char *start = s;
        bool digits = true;

        for (; is_alnum(*s) || *s == '-'; s++)
            digits = digits && isdigit((unsigned char)*s);
        if (s == start || (pre_release && digits && *start == '0' && s - start > 1))
            return NULL;
        if (*s != '.')
            return s;
    }
}

const char *name_problem_version(const char *text)
{
    static const char problem[] = "must be a semantic version like 1.2.3";
    const char *s = text;

    for (int part = 0; part < 3; part++) {
        s = skip_number(s);
        if (!s || (part < 2 && *s++ != '.'))
            return problem;
    }
    if (*s == '-')
        s = skip_identifiers(s + 1, true);
    if (s && *s == '+')
        s = skip_identifiers(s + 1, false);
    return s && !*s ? NULL : problem;
}

int name_check(const char *field, const char *name, const char *problem, struct error *err)
{
    if (!problem)
        return 0;
    return *name ? error_field(err, field, "\"%.80s\": %s", name, problem) : error_field(err, field, "is required");
}
