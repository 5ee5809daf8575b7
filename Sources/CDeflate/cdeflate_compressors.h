// libdeflate's compressors, which threads reuse from picture to picture.
#ifndef CDEFLATE_COMPRESSORS_H
#define CDEFLATE_COMPRESSORS_H

#include <libdeflate.h>

/// Returns a compressor for exclusive use until it is returned; NULL without memory.
///
/// Creating one takes 190,000 instructions, more than everything else for a small picture. So each
/// thread keeps one for every level up to 6, some 0.7 MB each, until it ends. At higher levels the
/// compressor is a small part of the cost.
///
/// - `level`: libdeflate's, 1…12.
struct libdeflate_compressor *cdeflate_take_compressor(int level);

/// Returns a compressor to the thread's cache, or frees it.
///
/// - `level`: the level it was taken for.
void cdeflate_return_compressor(struct libdeflate_compressor *compressor, int level);

#endif
