#ifndef CJPEG_KEPT_H
#define CJPEG_KEPT_H

// Tables that a thread keeps from picture to picture.

#include "cjpeg_bits.h"
#include "cjpeg_blocks.h"
#include "cjpeg_values.h"

/// What Huffman and quantisation tables were made into, by their slots in the file. Most pictures of a list have those of the
/// one before, of their camera or their encoder, and to make them takes 10 µs, as long as reading 15 000 pixels.
struct cjpeg_kept;

/// Gives a session tables, which nobody else uses until it gives them back at its end. Returns false without memory. A thread
/// keeps those of one picture, 164 KB, until it ends.
bool cjpeg_take_kept(cjpeg_session *s);

/// Does nothing where a session has none.
void cjpeg_give_back_kept(cjpeg_session *s);

/// A slot's codes; NULL for a table that is not one (see `cjpeg_make_codes`).
const cjpeg_codes *cjpeg_kept_codes(cjpeg_kept *kept, const JHUFF_TBL *table, bool is_dc, int slot);

/// What is read with the AC codes of a slot, where coefficients are wanted and where they are stepped over. The codes are there.
const cjpeg_values *cjpeg_kept_values(cjpeg_kept *kept, int slot);
const cjpeg_steps *cjpeg_kept_steps(cjpeg_kept *kept, int slot);

/// A slot's requantisation, of steps that are not 0.
const cjpeg_requantisation *cjpeg_kept_requantisation(
    cjpeg_kept *kept, const JQUANT_TBL *from, const JQUANT_TBL *wanted, int slot);

#endif
