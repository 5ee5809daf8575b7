#ifndef CJPEG_SCALES_H
#define CJPEG_SCALES_H

#include "cjpeg_session.h"

/// Makes pixels at so many scales, at most four, of a source of which the header has been read, where our decoder reads it
/// and is faster. The bytes are libjpeg's.
///
/// Returns false on doubt; the decompressor is as before then, and libjpeg is to be asked. May jump when it is interrupted.
bool cjpeg_decode_baseline(
    cjpeg_session *s, size_t spare_bytes, const unsigned *denominators, size_t count, cjpeg_result *results);

#endif
