/* test/fuzz/allocator/fuzz.h - the entry point that libFuzzer and the replay share. */
#ifndef QUEUED_FUZZ_ALLOCATOR_H
#define QUEUED_FUZZ_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
