/// The parts that both encoders share.
#ifndef CWEBP_ENCODE_H
#define CWEBP_ENCODE_H

#include "cwebp.h"

#include <webp/encode.h>

/// The library's settings of options.
///
/// - Returns: false for another version of the library.
bool cwebp_configure(const cwebp_options *options, WebPConfig *config);

/// Copies pixels into an initialised picture.
///
/// - Returns: false without memory.
bool cwebp_import(
    const cwebp_picture *pixels, bool is_argb, cinterruption *interruption, WebPPicture *picture);

#endif
