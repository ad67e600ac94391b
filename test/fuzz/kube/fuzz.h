/* test/fuzz/kube/fuzz.h - the entry point that libFuzzer and the replay share. */
#ifndef QUEUED_FUZZ_KUBE_H
#define QUEUED_FUZZ_KUBE_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
