/* test/fuzz/cel/fuzz.h - what the fuzz targets of the language share. */
#ifndef QUEUED_TEST_FUZZ_CEL_FUZZ_H
#define QUEUED_TEST_FUZZ_CEL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "allocator/base/str.h"
#include "allocator/cel/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes as text of an expression: those below 0x80 stand for themselves, the others for words of the language, so that
 * random bytes are often a valid expression. */
void fuzz_expand(const uint8_t *data, size_t size, struct buf *out);

/* A device with attributes of every kind, in the arena. */
const struct cel_device *fuzz_device(struct arena *arena);

#endif
