/// The part of libFuzzer's interface (LLVM, FuzzerInterface.h) that has no header in the toolchain.
#ifndef CLIBFUZZER_SHIM_H
#define CLIBFUZZER_SHIM_H

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef int (*clibfuzzer_callback)(const uint8_t *_Nullable bytes, size_t count);

/// libFuzzer's main, to be called once; it returns the exit status unless it exits itself.
int LLVMFuzzerRunDriver(
    int *count, char *_Nullable *_Nonnull *_Nonnull arguments, clibfuzzer_callback callback);

/// Changes the bytes in place at random and returns their new number, `maximum` at most.
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t count, size_t maximum);

#pragma clang assume_nonnull end

#endif
