#include "test/support/cmocka.h"

#include <string.h>

#include "allocator/base/arena.h"
#include "allocator/cel/namedformat.h"

#define SIXTY_FOUR "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct format_case {
    const char *name;
    const char *format, *text;
    const char *reasons[2]; /* parts of the expected ones */
} format_cases[] = {
    {"a label", "dns1123Label", "my-name", {NULL, NULL}},
    {"a label that begins with a digit", "dns1123Label", "1a", {NULL, NULL}},
    {"dots in a label", "dns1123Label", "a.b", {"must not contain dots", NULL}},
    {"capitals in a label", "dns1123Label", "My", {"a lowercase RFC 1123 label must consist of", NULL}},
    {"a long label", "dns1123Label", SIXTY_FOUR, {"must be no more than 63 characters", NULL}},
    {"long and wrong", "dns1123Label", SIXTY_FOUR "-", {"must be no more than 63 characters", "RFC 1123 label"}},
    {"a prefix may end in a dash", "dns1123LabelPrefix", "a-", {NULL, NULL}},
    {"a label may not", "dns1123Label", "a-", {"RFC 1123 label", NULL}},
    {"a subdomain", "dns1123Subdomain", "a.b-c.d", {NULL, NULL}},
    {"an empty part", "dns1123Subdomain", "a..b", {"RFC 1123 subdomain", NULL}},
    {"a prefix of a subdomain", "dns1123SubdomainPrefix", "a.b-", {NULL, NULL}},
    {"an old label", "dns1035Label", "a1-b", {NULL, NULL}},
    {"an old label with a digit first", "dns1035Label", "1a", {"a DNS-1035 label must consist of", NULL}},
    {"its prefix", "dns1035LabelPrefix", "a-", {NULL, NULL}},
    {"a qualified name", "qualifiedName", "example.com/MyName", {NULL, NULL}},
    {"no name", "qualifiedName", "a/", {"name part must be non-empty", "name part must consist of"}},
    {"no prefix", "qualifiedName", "/a", {"prefix part must be non-empty", NULL}},
    {"two slashes", "qualifiedName", "a/b/c", {"a valid label key must consist of", NULL}},
    {"a bad prefix", "qualifiedName", "A/b", {"prefix part a lowercase RFC 1123 subdomain", NULL}},
    {"an empty label value", "labelValue", "", {NULL, NULL}},
    {"a bad label value", "labelValue", "a b", {"a valid label must be an empty string", NULL}},
    {"a URI", "uri", "http://h/p", {NULL, NULL}},
    {"a relative URI", "uri", "p", {"parse \"p\": invalid URI for request", NULL}},
    {"a UUID", "uuid", "123e4567-E89B-12d3-a456-426614174000", {NULL, NULL}},
    {"a UUID without dashes", "uuid", "123e4567e89b12d3a456426614174000", {NULL, NULL}},
    {"a short UUID", "uuid", "123e4567", {"does not match the UUID format", NULL}},
    {"base64", "byte", "aGk=", {NULL, NULL}},
    {"no base64 without padding", "byte", "aGk", {"invalid base64", NULL}},
    {"no empty base64", "byte", "", {"invalid base64", NULL}},
    {"a date", "date", "2024-02-29", {NULL, NULL}},
    {"a date of the year 0", "date", "0000-02-29", {NULL, NULL}},
    {"no such date", "date", "2023-02-29", {"invalid date", NULL}},
    {"a date and time", "datetime", "2024-01-01t00:00:00.5z", {NULL, NULL}},
    {"any character before the fraction", "datetime", "2024-01-01T00:00:00x5Z", {NULL, NULL}},
    {"what follows a second T", "datetime", "2024-01-01T00:00:00ZTrest", {NULL, NULL}},
    {"no zone", "datetime", "2024-01-01T00:00:00", {"invalid datetime", NULL}},
};

static void test_namedformat__reasons(void **state)
{
    const struct format_case *c = *state;
    const struct named_format *format = named_format_find(str_of(c->format));
    struct arena arena = {0};
    const struct str *reasons;
    size_t n, want = 0;

    assert_non_null(format);
    n = named_format_validate(format, str_of(c->text), &arena, &reasons);
    while (want < 2 && c->reasons[want])
        want++;
    assert_int_equal(n, want);
    for (size_t i = 0; i < n; i++)
        assert_non_null(memmem(reasons[i].ptr, reasons[i].len, c->reasons[i], strlen(c->reasons[i])));
    arena_release(&arena);
}

static void test_namedformat__all_are_found_by_name(void **state)
{
    size_t n;
    const struct named_format *all = named_format_all(&n);

    (void)state;
    assert_int_equal(n, 13);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(named_format_find(str_of(all[i].name)), &all[i]);
    assert_null(named_format_find(STR("nope")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_namedformat__all_are_found_by_name)};

    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_TABLE(test_namedformat__reasons, format_cases);
}
