/* allocator/base/quantity.h - Kubernetes quantities: exact decimal amounts with their spelling's form.
 *
 * Source: resource.Quantity of Kubernetes as told in the DRA semantics, section 2, and the CEL description, 11.1.
 * Numbers are exact, never double. A quantity is a plain value: copy it freely; `big` points into the arena given to
 * the parser (NULL for every amount that fits 64 bits times a power of ten, which is all that hardware has). */
#ifndef QUEUED_BASE_QUANTITY_H
#define QUEUED_BASE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "allocator/base/str.h"

struct arena;
struct quantity_big;
struct error;

enum quantity_format { QUANTITY_DECIMAL_SI, QUANTITY_BINARY_SI, QUANTITY_DECIMAL_EXPONENT };

struct quantity {
    int64_t value; /* times 10^scale; ignored when big is set */
    int32_t scale;
    enum quantity_format format;
    const struct quantity_big *big;
    /* What follows is the form in which Kubernetes would hold the amount. It never changes the amount; it matters to
     * quantity_as_integer, _as_double, _identical and _format_to only. All zero is the common form. */
    const char *text;  /* the spelling, where Kubernetes prints it instead of the canonical text; else NULL */
    int32_t dec_scale; /* the scale of the arbitrary-precision form, when is_dec */
    bool is_dec;       /* held in the arbitrary-precision form: written with many digits, "100Ti", "1.5Gi" */
    bool keeps_text;   /* a parsed number whose spelling Kubernetes remembers ("5", "1Gi", but not "1024Mi") */
};

/* Bounds of what quantity_parse accepts. */
#define QUANTITY_MAX_TEXT     4096 /* bytes */
#define QUANTITY_MAX_EXPONENT 4096 /* of a decimal exponent, either sign */

/* Parse text as Kubernetes does ("1.5Gi", "100m", "1e3"). More than nine fraction digits round away from zero to nano;
 * binary-SI numbers are capped at 2^63-1. Text and exponent are limited so that no input costs unbounded time or memory
 * (ERR_LIMIT). `text` is borrowed for the call; the arena is touched only by amounts beyond 64 bits and by spellings
 * such as "+5" and "05", which Kubernetes prints as they were written. Returns 0, or -1 with the reason Kubernetes
 * gives. */
MUST_CHECK int quantity_parse(struct str text, struct arena *arena, struct quantity *out, struct error *err);

/* The same amount with all its memory in `arena`. */
struct quantity quantity_copy(const struct quantity *q, struct arena *arena);

struct quantity quantity_of_int(int64_t value); /* decimal SI, scale 0 */

/* -1, 0, 1: a against b, exactly. Never allocates. Amounts of the same unit are compared in place. */
static inline int quantity_cmp(const struct quantity *a, const struct quantity *b);
/* The general case of quantity_cmp. */
int quantity_cmp_any(const struct quantity *a, const struct quantity *b);
int quantity_sign(const struct quantity *q);
/* Whether Kubernetes would find the two equal when it compares them as structs: same number and scale, same format,
 * same remembered spelling. "1Gi" and "1024Mi" differ; amounts in the arbitrary-precision form are never identical,
 * because there Kubernetes compares addresses. */
bool quantity_identical(const struct quantity *a, const struct quantity *b);

/* Exact sum and difference; the format is a's, or b's when a is zero, as Kubernetes does. The arena is touched only by
 * results beyond 64 bits, which live in it. */
struct quantity quantity_add(const struct quantity *a, const struct quantity *b, struct arena *arena);
struct quantity quantity_sub(const struct quantity *a, const struct quantity *b, struct arena *arena);
struct quantity quantity_neg(const struct quantity *q, struct arena *arena);

/* The whole number (Value) or thousandths (MilliValue), rounded away from zero; false when beyond int64. */
bool quantity_to_int(const struct quantity *q, int64_t *out);
bool quantity_to_milli(const struct quantity *q, int64_t *out);
/* Whether the amount is exactly a whole number of thousandths that fits int64. */
bool quantity_is_milli_exact(const struct quantity *q);
struct quantity quantity_of_milli(int64_t milli, enum quantity_format format);

/* What CEL's asInteger does: depends on the spelling (CEL description 11.1); false where it fails. */
bool quantity_as_integer(const struct quantity *q, int64_t *out);
/* CEL's asApproximateFloat: the number times a power of ten, in floating point. Infinite when too large. */
double quantity_as_double(const struct quantity *q);

/* The text that Kubernetes prints, canonical unless a spelling was remembered; the buffer is appended to. Departure:
 * beyond the largest suffix Kubernetes prints digits without any suffix, a wrong number; here the exponent form is
 * used. */
void quantity_format_to(const struct quantity *q, struct buf *out);

static inline int quantity_cmp(const struct quantity *a, const struct quantity *b)
{
    if (a->scale == b->scale && !a->big && !b->big)
        return (a->value > b->value) - (a->value < b->value);
    return quantity_cmp_any(a, b);
}

#endif
