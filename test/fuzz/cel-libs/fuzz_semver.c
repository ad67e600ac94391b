/* Versions: what is printed reads as the same version; order is consistent. */
#include "test/fuzz/cel-libs/fuzz.h"

#include "allocator/base/error.h"
#include "allocator/cel/semver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str first, second;
    struct semver a, b, again;
    struct error err;
    BUF text = {0};

    fuzz_cut(data, size, &first, &second);
    for (int normalize = 0; normalize < 2; normalize++) {
        if (semver_parse(first, normalize, &a, &err) < 0)
            continue;
        buf_clear(&text);
        semver_format_to(&a, &text);
        INVARIANT(semver_parse(fuzz_str(&text), false, &again, NULL) == 0);
        INVARIANT(semver_cmp(&a, &again) == 0);
        if (semver_parse(second, normalize, &b, &err) == 0)
            INVARIANT(semver_cmp(&a, &b) == -semver_cmp(&b, &a));
    }
    return 0;
}
