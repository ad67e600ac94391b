#include "queued/cluster/kube/skim.h"

#include <stdbool.h>
#include <string.h>

#include "allocator/base/banned.h"

static const char member[] = "\"managedFields\":[";
#define MEMBER_LEN (sizeof(member) - 1)

/* Behind the string that begins at `at`; `len` when it has no end. */
static size_t string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < len ? at + 1 : len;
}

static bool is_member(const char *text, size_t len, size_t at)
{
    return len - at >= MEMBER_LEN && memcmp(text + at, member, MEMBER_LEN) == 0;
}

/* Walk on from `at` until brackets are back at depth 0, or (`wanted` above 0) the member begins at that depth. `len`
 * when neither comes. */
static size_t walk(const char *text, size_t len, size_t at, size_t wanted)
{
    size_t depth = 0;

    while (at < len) {
        char c = text[at];

        if (c == '"') {
            if (wanted && depth == wanted && is_member(text, len, at))
                return at;
            at = string_end(text, len, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && (depth == 0 || --depth == 0))
            return wanted ? len : at;
    }
    return len;
}

size_t skim_managed_fields(char *text, size_t len, size_t depth)
{
    size_t begin, end;

    if (!memmem(text, len, member, MEMBER_LEN))
        return len;
    begin = walk(text, len, 0, depth);
    if (begin == len)
        return len;
    end = walk(text, len, begin + MEMBER_LEN - 1, 0);
    if (end == len)
        return len; /* broken: the parser will say so */
    if (text[begin - 1] == ',')
        begin--;
    else if (text[end] == ',')
        end++;
    memmove(text + begin, text + end, len - end);
    return len - (end - begin);
}
