/* Regular expressions: nothing hangs, and there is a match to be found exactly when searching says so. */
#include "test/fuzz/cel-libs/fuzz.h"

#include "allocator/base/error.h"
#include "allocator/cel/regex.h"

#define MAX_MATCHES 200

static void check(const struct regex *regex, struct str text)
{
    struct regex_iterator it = regex_iterate(regex, text);
    struct regex_match match;
    bool found = false;
    size_t at = 0;
    int more = 0, n = 0;

    if (regex_search(regex, text, &found, NULL) < 0)
        return;
    while (n < MAX_MATCHES && (more = regex_next(&it, &match, NULL)) > 0) {
        INVARIANT(match.start >= at && match.end >= match.start && match.end <= text.len);
        at = match.end;
        n++;
    }
    INVARIANT(more < 0 || (n > 0) == found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str pattern, text;
    struct error err;
    struct regex *regex;

    fuzz_cut(data, size, &pattern, &text);
    if (regex_compile(pattern, &regex, &err) == 0) {
        check(regex, text);
        regex_free(regex);
    }
    return 0;
}
