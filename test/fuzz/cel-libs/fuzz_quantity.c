/* Quantities: what is printed reads as the same amount; adding and taking away again changes nothing; order is
 * consistent. */
#include "test/fuzz/cel-libs/fuzz.h"

#include "allocator/base/arena.h"
#include "allocator/base/quantity.h"

static void check_text(const struct quantity *q, struct arena *arena)
{
    const struct quantity low = quantity_of_int(-INT64_MAX), high = quantity_of_int(INT64_MAX);
    struct quantity again;
    BUF text = {0};

    if (q->format == QUANTITY_BINARY_SI && (quantity_cmp(q, &low) < 0 || quantity_cmp(q, &high) > 0))
        return; /* a sum may be beyond what can be parsed */
    quantity_format_to(q, &text);
    if (quantity_parse(fuzz_str(&text), arena, &again, NULL) == 0)
        INVARIANT(quantity_cmp(q, &again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct str first, second;
    struct quantity a, b = quantity_of_int(3), sum, back;
    int64_t n;

    fuzz_cut(data, size, &first, &second);
    if (quantity_parse(first, &arena, &a, NULL) == 0) {
        (void)!quantity_parse(second, &arena, &b, NULL);
        check_text(&a, &arena);
        sum = quantity_add(&a, &b, &arena);
        back = quantity_sub(&sum, &b, &arena);
        INVARIANT(quantity_cmp(&a, &back) == 0);
        INVARIANT(quantity_cmp(&a, &b) == -quantity_cmp(&b, &a));
        INVARIANT(quantity_sign(&b) == quantity_cmp(&sum, &a));
        check_text(&sum, &arena);
        (void)quantity_to_int(&sum, &n);
        (void)quantity_to_milli(&sum, &n);
        (void)quantity_as_double(&sum);
        INVARIANT(!quantity_as_integer(&a, &n) || quantity_to_int(&a, &n));
    }
    arena_release(&arena);
    return 0;
}
