/// The boundary to libheif, 1.13 or later, which is loaded on first use.
#pragma once

#include "ccodec_decoding.h"

#pragma clang assume_nonnull begin

/// Decodes the primary picture, with its clean aperture, rotation and mirror applied. Others, such
/// as gain maps, depths and thumbnails, are never decoded.
extern const ccodec_library cheif_library;

#pragma clang assume_nonnull end
