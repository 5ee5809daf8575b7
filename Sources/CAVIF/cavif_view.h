/// The file as libavif 0.11 should see it.
///
/// The library refuses files with a track of sound, takes any auxiliary track for alpha, and does
/// not know that a box of length 0 extends to the end of the file (ISO/IEC 14496-12, 4.2).
#ifndef CAVIF_VIEW_H
#define CAVIF_VIEW_H

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// Returns a copy in which the tracks that are neither picture nor alpha are free space and every
/// box has its length, for the caller to release with `free`.
///
/// NULL if the file can stay as it is, or without memory; the two differ in `needs_copy`.
uint8_t *_Nullable cavif_view(const uint8_t *bytes, size_t length, int *needs_copy)
    __attribute__((visibility("hidden")));

#pragma clang assume_nonnull end

#endif
