/* allocator/cel/utf8.h - text as code points: iteration, positions, white space, ASCII case, quoting.
 *
 * Positions of CEL strings count code points. Any bytes are safe input: a byte that begins no valid sequence (overlong,
 * surrogate, above U+10FFFF, cut short) is one code point U+FFFD, as in Go's range loop. All functions are pure. */
#ifndef QUEUED_CEL_UTF8_H
#define QUEUED_CEL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/base/str.h"

struct arena;

#define UTF8_REPLACEMENT 0xFFFDu
#define UTF8_MAX         0x10FFFFu

/* The code point at byte *at, which must be below s.len; *at moves behind it. */
uint32_t utf8_next(struct str s, size_t *at);
/* The code point that ends before byte *at, which must be above 0; *at moves to its first byte. */
uint32_t utf8_previous(struct str s, size_t *at);
/* Write a code point (not a surrogate, at most UTF8_MAX; others become U+FFFD); returns 1 to 4, the bytes written. */
size_t utf8_encode(uint32_t code, char out[4]);

bool utf8_is_valid(struct str s);
/* How many code points; fast for ASCII. */
size_t utf8_count(struct str s);
/* The byte where code point number n begins; s.len for n equal to the count; SIZE_MAX beyond. */
size_t utf8_offset(struct str s, size_t n);

/* Unicode white space, as Go's unicode.IsSpace. */
bool utf8_is_space(uint32_t code);
/* Without white space at both ends; borrows from s. */
struct str utf8_trim(struct str s);

/* ASCII letters changed, all else as it is; s itself when nothing changes, else a copy in the arena. */
struct str utf8_lower_ascii(struct str s, struct arena *arena);
struct str utf8_upper_ascii(struct str s, struct arena *arena);

/* Append the text in double quotes as Go's %q writes it: \a \b \f \n \r \t \v \\ \" and \x, \u, \U for what cannot be
 * printed. */
void utf8_quote_to(struct str s, struct buf *out);

#endif
