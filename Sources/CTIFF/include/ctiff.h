/// The boundary to libtiff, 4.3 or later, which is loaded on first use.
#pragma once

#include "ccodec_decoding.h"

#pragma clang assume_nonnull begin

/// Decodes the first page: grey, RGB, palettes, inks and the rest that libtiff converts, of whole
/// numbers. A preview in the place of the first page, as in raw files of cameras, is refused.
extern const ccodec_library ctiff_library;

#pragma clang assume_nonnull end
