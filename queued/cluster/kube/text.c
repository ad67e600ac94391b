#include "queued/cluster/kube/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "allocator/base/banned.h"

static void format(int64_t ms, const char *fraction, char out[KUBE_TIME_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char day[32];

    gmtime_r(&seconds, &tm);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, KUBE_TIME_SIZE, "%s%sZ", day, fraction);
}

void kube_time_format(int64_t ms, char out[KUBE_TIME_SIZE])
{
    format(ms, "", out);
}

void kube_micro_time_format(int64_t ms, char out[KUBE_TIME_SIZE])
{
    char fraction[16];

    snprintf(fraction, sizeof(fraction), ".%03d000", (int)(ms % 1000));
    format(ms, fraction, out);
}

void kube_escape(const char *text, struct buf *out)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (isalnum(*c) || strchr("-._~", *c))
            buf_addc(out, (char)*c);
        else
            buf_addf(out, "%%%02X", *c);
    }
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Bytes of the character that `s` begins with, or 0 when it begins with none (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *s, size_t len)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : 4;

    if (s[0] == 0 || n > len || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!is_continuation(s[i]))
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

json_t *kube_text(struct str bytes)
{
    BUF text = {0};

    while (bytes.len) {
        size_t n = utf8_length((const unsigned char *)bytes.ptr, bytes.len);

        if (n)
            buf_add(&text, bytes.ptr, n);
        else
            buf_adds(&text, "\xef\xbf\xbd");
        n = n ? n : 1;
        bytes.ptr += n;
        bytes.len -= n;
    }
    return json_stringn(buf_str(&text), text.len);
}
