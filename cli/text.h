/* cli/text.h - values as people read them. All append to a buffer; foreign text loses its control characters, so that
 * no answer can steer a terminal. */
#ifndef QUEUED_CLI_TEXT_H
#define QUEUED_CLI_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "allocator/base/str.h"

/* Text without control characters. */
void text_add(struct buf *out, const char *text);
/* Any JSON scalar; a list as its entries with commas; an object as compact JSON; nothing for NULL and null. */
void text_value(struct buf *out, const json_t *value);
/* The member `key`. */
void text_field(struct buf *out, const json_t *object, const char *key);
const char *field_text(const json_t *object, const char *key, const char *otherwise);
json_int_t field_int(const json_t *object, const char *key);

/* "12s", "5m", "3h12m", "2d4h". */
void text_duration(struct buf *out, int64_t ms);
/* RFC 3339 in UTC to milliseconds; false when it is none. */
bool time_parse(const char *text, int64_t *out_ms);
/* "2026-11-29 15:57:37" of an RFC 3339 text; the text itself when it is none. */
void text_time(struct buf *out, const char *text);

/* What quota counts of a resource: memory, which is counted in bytes, with a binary suffix where that loses nothing. */
void text_amount(struct buf *out, const char *resource, const json_t *amount);
/* Names in the way of Slurm's host lists, in their order: "gpu-[0-3,6] nic-0". */
void text_names(struct buf *out, const json_t *names);

/* An "effectivePlacement" of the server's: "pack, as queue research says", "fragmentation, the default"; nothing for NULL.
 */
void text_placement(struct buf *out, const json_t *effective);

/* "1 job", "3 jobs" */
void text_count(struct buf *out, json_int_t n, const char *one, const char *many);
/* How many characters; a character is one column here. */
size_t text_width(const char *text, size_t len);

#endif
