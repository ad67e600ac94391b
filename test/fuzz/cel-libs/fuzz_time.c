/* Timestamps, durations, doubles, format strings and plain text: what is printed reads as the same value. */
#include "test/fuzz/cel-libs/fuzz.h"

#include <math.h>

#include "allocator/base/error.h"
#include "allocator/cel/doublefmt.h"
#include "allocator/cel/strformat.h"
#include "allocator/cel/timefmt.h"
#include "allocator/cel/utf8.h"

static void check_timestamp(struct str text, struct str zone)
{
    struct timestamp t, again;
    struct error err;
    int64_t offset;
    BUF printed = {0};

    if (timestamp_parse(text, &t, &err) < 0)
        return;
    timestamp_format_to(&t, &printed);
    if (t.offset > -86400 && t.offset < 86400) { /* beyond, the text is not one that can be read */
        INVARIANT(timestamp_parse(fuzz_str(&printed), &again, &err) == 0);
        INVARIANT(timestamp_cmp(&t, &again) == 0);
    }
    if (zone_offset(zone, &t, &offset, &err) == 0)
        INVARIANT(timestamp_civil(&t, offset).month >= 1);
}

static void check_double(struct str text)
{
    struct error err;
    double value, again;
    BUF printed = {0};

    if (double_parse(text, &value, &err) < 0)
        return;
    double_format_to(value, &printed);
    INVARIANT(double_parse(fuzz_str(&printed), &again, &err) == 0);
    INVARIANT(value == again || (isnan(value) && isnan(again)));
}

static void check_format(struct str format, struct str argument)
{
    const struct format_value values[] = {
        {.kind = FORMAT_STRING, .as.s = argument},
        {.kind = FORMAT_INT, .as.i = -7},
        {.kind = FORMAT_DOUBLE, .as.d = 1234.5},
        {.kind = FORMAT_BYTES, .as.s = argument},
    };
    struct error err;
    BUF out = {0};

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        buf_clear(&out);
        (void)!strformat(format, &values[i], ARRAY_SIZE(values) - i, NULL, &out, &err);
    }
}

static void check_text(struct str text)
{
    size_t n = utf8_count(text), back = 0;
    struct str trimmed = utf8_trim(text);
    BUF quoted = {0};

    for (size_t at = text.len; at > 0; back++)
        utf8_previous(text, &at);
    INVARIANT(!utf8_is_valid(text) || n == back);
    INVARIANT(utf8_offset(text, n) == text.len);
    INVARIANT(trimmed.len <= text.len);
    utf8_quote_to(text, &quoted);
    INVARIANT(utf8_is_valid(fuzz_str(&quoted)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str first, second;
    struct error err;
    int64_t nanos;
    BUF printed = {0};

    fuzz_cut(data, size, &first, &second);
    check_timestamp(first, second);
    check_double(first);
    check_format(first, second);
    check_text(first);
    if (cel_duration_parse(first, &nanos, &err) == 0)
        duration_format_to(nanos, &printed);
    return 0;
}
