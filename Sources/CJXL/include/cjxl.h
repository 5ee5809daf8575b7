/// The boundary to libjxl, 0.7 to 0.11, which is loaded on first use.
#pragma once

#include "ccodec_decoding.h"

#pragma clang assume_nonnull begin

/// Decodes the first frame, and verifies the others. Inks are refused.
extern const ccodec_library cjxl_library;

#pragma clang assume_nonnull end
