/* queued/cluster/kube/text.h - small forms: times as the API writes them, escaped parts of a path, foreign bytes as
 * text. Pure. */
#ifndef QUEUED_KUBE_TEXT_H
#define QUEUED_KUBE_TEXT_H

#include <stdint.h>

#include <jansson.h>

#include "allocator/base/str.h"

#define KUBE_TIME_SIZE 40

/* metav1.Time: "2026-01-31T12:00:00Z". */
void kube_time_format(int64_t ms, char out[KUBE_TIME_SIZE]);
/* metav1.MicroTime: "2026-01-31T12:00:00.123000Z". */
void kube_micro_time_format(int64_t ms, char out[KUBE_TIME_SIZE]);
/* Percent-encoded, but for the unreserved characters of RFC 3986. */
void kube_escape(const char *text, struct buf *out);
/* A JSON string of any bytes: what is no UTF-8, or NUL, becomes U+FFFD. */
json_t *kube_text(struct str bytes);

#endif
