/// The boundary to openjpeg, 2.3 or later, which is loaded on first use.
#pragma once

#include "ccodec_decoding.h"

#pragma clang assume_nonnull begin

/// Decodes files and bare codestreams of grey, RGB, YCC, inks and palettes.
extern const ccodec_library copenjpeg_library;

#pragma clang assume_nonnull end
