#ifndef CJPEG_SCALES_H
#define CJPEG_SCALES_H

#include "cjpeg_session.h"

/// Decodes at up to four scales by our own decoder, if it supports the source and is faster there.
/// The header has been read. The pixels equal libjpeg's.
///
/// Returns false to fall back to libjpeg, with the decompressor unchanged. May jump when
/// interrupted.
bool cjpeg_decode_baseline(
    cjpeg_session *s, size_t spare_bytes, const unsigned *denominators, size_t count, cjpeg_result *results);

#endif
