#ifndef CJPEG_MCUS_H
#define CJPEG_MCUS_H

// The units of a baseline scan (ITU-T T.81, A.2, B.2.3 and E.2): what both of our readers go by, that of symbols
// (`cjpeg_transcode_read.c`) and that of coefficients (`cjpeg_coefficients.c`).

#include "cjpeg_bits.h"
#include "cjpeg_session.h"

/// Blocks in a unit.
enum { CJPEG_MOST_BLOCKS = 10 };

/// Whether the scan that follows the header is of the kind that is read here, with all components in it, in their order,
/// and the Huffman tables of each.
bool cjpeg_is_baseline(const j_decompress_ptr cinfo);

/// Blocks of a component in a unit, across and down. A single component is coded block by block, whatever its sampling
/// factors (T.81, A.2.2).
int cjpeg_blocks_across(const j_decompress_ptr cinfo, int index);

int cjpeg_blocks_down(const j_decompress_ptr cinfo, int index);

/// Units in a row, and rows of them.
void cjpeg_count_mcus(const j_decompress_ptr cinfo, size_t *columns, size_t *rows);

/// Begins with the data behind the header. Returns false on doubt.
bool cjpeg_begin_scan(const cjpeg_session *s, cjpeg_window *window, cjpeg_bits *bits);

/// The restart marker of that number ends the segment, and another begins (T.81, E.2.4). Returns false on doubt.
bool cjpeg_restart(cjpeg_window *window, cjpeg_bits *bits, unsigned number);

/// The end of the image is next: then the source goes on behind it. Returns false on doubt.
bool cjpeg_end_scan(cjpeg_session *s, const cjpeg_window *window, const cjpeg_bits *bits);

#endif
