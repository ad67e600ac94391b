/* allocator/cel/doublefmt.h - doubles to text and back, in Go's spelling.
 *
 * Pure and independent of the locale; any thread. */
#ifndef QUEUED_CEL_DOUBLEFMT_H
#define QUEUED_CEL_DOUBLEFMT_H

#include <stddef.h>

#include "allocator/base/compiler.h"
#include "allocator/base/str.h"

struct error;

#define DOUBLE_MAX_PRECISION 1074 /* more digits behind the point are zeros */

/* Go's ParseFloat: decimal, hexadecimal with an exponent ("0x1p-2"), "Inf", "Infinity" and "NaN" in any case; no
 * underscores but where Go takes them. Rounds to nearest even. Returns 0, or -1 with ERR_INVALID: malformed ("invalid
 * syntax") or too large ("value out of range"). */
MUST_CHECK int double_parse(struct str text, double *out, struct error *err);

/* %g of Go with the fewest digits that read back as the same number: "1e+06", "0.0001", "+Inf", "NaN". This is what
 * string(double) of CEL gives. */
void double_format_to(double value, struct buf *out);
/* The same digits without an exponent ("%f" with shortest precision): "1000000", "0.000000002". */
void double_format_plain_to(double value, struct buf *out);
/* Exactly `precision` digits behind the point, halves of the exact value to even; "+Inf", "-Inf", "NaN". */
void double_format_fixed_to(double value, int precision, struct buf *out);

/* "-1.234560e+07" with exactly `precision` digits (at most 40) behind the point of a finite number; `size` at least 64.
 */
void double_format_exponent(double value, int precision, char *out, size_t size);

/* The fewest decimal digits that read back as |value|, which must be finite and not 0, and where the point goes: the
 * value is 0.digits * 10^point. Returns their number, at most 17. */
int double_digits(double value, char digits[18], int *point);

#endif
