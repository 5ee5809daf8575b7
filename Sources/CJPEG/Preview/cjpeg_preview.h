#ifndef CJPEG_PREVIEW_H
#define CJPEG_PREVIEW_H

#include "cjpeg_session.h"

/// Whether the picture is to be noted in small, and has not been, and can be.
bool cjpeg_wants_preview(const cjpeg_session *s);

/// The eighths of its size that it is noted at.
unsigned cjpeg_preview_eighths(const cjpeg_session *s);

/// Notes it from coefficients, quantised as the source has them, of which every component has been read.
void cjpeg_note_coefficients(cjpeg_session *s, jvirt_barray_ptr *coefficients);

/// Coefficients that were kept for a preview, as the source has them.
typedef struct {
    /// By component, block after block: all in natural order, or of a large picture the first one only.
    const JCOEF *coefficients[MAX_COMPONENTS];
    size_t blocks_in_row[MAX_COMPONENTS];
    /// 64 or 1; 0 for none.
    size_t coefficients_a_block;
} cjpeg_preview_blocks;

/// Notes it from kept coefficients.
void cjpeg_note_blocks(cjpeg_session *s, const cjpeg_preview_blocks *blocks);

/// Makes room for planes of so many pixels and returns the first.
uint8_t *cjpeg_begin_preview(cjpeg_session *s, uint32_t width, uint32_t height, int channels);

/// Puts a row of whole pixels into the planes.
void cjpeg_put_preview_row(cjpeg_session *s, uint32_t y, const uint8_t *row);

#endif
