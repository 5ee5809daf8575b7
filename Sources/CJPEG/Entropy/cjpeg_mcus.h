#pragma once

// The MCUs of a baseline scan (ITU-T T.81, A.2, B.2.3 and E.2), for both of our readers: of
// symbols (`cjpeg_transcode_read.c`) and of coefficients (`cjpeg_coefficients.c`).

#include "cjpeg_bits.h"
#include "cjpeg_session.h"

/// The most blocks in an MCU.
enum { CJPEG_MOST_BLOCKS = 10 };

/// Whether our readers support the scan after the header: baseline, all components in order, and
/// the Huffman tables of each.
bool cjpeg_is_baseline(const j_decompress_ptr cinfo);

/// Blocks of a component in an MCU, across and down. A single component is coded block by block,
/// with any sampling factors (T.81, A.2.2).
int cjpeg_blocks_across(const j_decompress_ptr cinfo, int index);

int cjpeg_blocks_down(const j_decompress_ptr cinfo, int index);

/// Counts the MCUs of a row, and the rows.
void cjpeg_count_mcus(const j_decompress_ptr cinfo, size_t *columns, size_t *rows);

/// Starts reading after the header. Returns false to fall back to libjpeg.
bool cjpeg_begin_scan(const cjpeg_session *s, cjpeg_window *window, cjpeg_bits *bits);

/// Ends the segment at the restart marker with that number, and starts the next (T.81, E.2.4).
/// Returns false to fall back to libjpeg.
bool cjpeg_restart(
    cjpeg_session *s, cjpeg_window *window, cjpeg_bits *bits, unsigned number);

/// Expects the end of the image, and moves the source behind it. Returns false to fall back to
/// libjpeg.
bool cjpeg_end_scan(cjpeg_session *s, const cjpeg_window *window, const cjpeg_bits *bits);
