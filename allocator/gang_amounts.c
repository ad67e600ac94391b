/* Amounts of capacities and counters as whole billionths, the finest that a quantity can state. 128 bits hold every
 * amount below 10^29; anything larger is cut there, which keeps "does not fit" true. */
#include <string.h>

#include "allocator/gang_internal.h"

#include "allocator/base/banned.h"

static gs_amount amount_limit(void)
{
    return (gs_amount)1 << 110;
}

gs_amount gang_amount(const struct quantity *quantity)
{
    gs_amount amount = quantity->value;
    int32_t scale = quantity->scale + 9;

    if (quantity->big)
        return quantity_sign(quantity) < 0 ? -amount_limit() : amount_limit();
    for (; scale > 0 && amount != 0; scale--) {
        amount *= 10;
        if (amount > amount_limit() || amount < -amount_limit())
            return amount < 0 ? -amount_limit() : amount_limit();
    }
    for (; scale < 0 && amount != 0; scale++)
        amount = (amount + (amount > 0 ? 9 : -9)) / 10;
    return amount;
}
