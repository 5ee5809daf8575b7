// libdeflate's compressors, which are kept from picture to picture.
#ifndef CDEFLATE_COMPRESSORS_H
#define CDEFLATE_COMPRESSORS_H

#include <libdeflate.h>

/// A compressor that nobody else uses until it is given back; NULL without memory.
///
/// To make one takes 190 000 instructions, which is more than all else that is done for a small picture. So
/// each thread keeps those of the levels up to 6, some 0.7 MB each, until it ends: of what is written with more effort
/// the compressor is a small part.
///
/// - `level`: libdeflate's, 1…12.
struct libdeflate_compressor *cdeflate_take_compressor(int level);

/// - `level`: the one that it was taken for.
void cdeflate_return_compressor(struct libdeflate_compressor *compressor, int level);

#endif
