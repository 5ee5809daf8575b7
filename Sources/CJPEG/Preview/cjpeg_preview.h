#pragma once

#include "cjpeg_session.h"

/// Decodes a single-scan file at an eighth of its size: reads all codes, keeps little in memory,
/// and makes a preview if one is wanted.
void cjpeg_drain_single_scan(cjpeg_session *s);

/// Whether a preview is wanted, possible, and not yet made.
bool cjpeg_wants_preview(const cjpeg_session *s);

/// The scale of the preview, in eighths.
unsigned cjpeg_preview_eighths(const cjpeg_session *s);

/// Makes the preview from coefficients, quantised as in the source; all components have been read.
void cjpeg_note_coefficients(cjpeg_session *s, jvirt_barray_ptr *coefficients);

/// Coefficients kept for a preview, quantised as in the source.
typedef struct {
    /// By component, block after block: all in natural order, or only the DC coefficient of a large
    /// picture.
    const JCOEF *coefficients[MAX_COMPONENTS];
    size_t blocks_in_row[MAX_COMPONENTS];
    /// 64 or 1; 0 for none.
    size_t coefficients_a_block;
} cjpeg_preview_blocks;

/// Makes the preview from kept coefficients.
void cjpeg_note_blocks(cjpeg_session *s, const cjpeg_preview_blocks *blocks);

/// Allocates planes of the given size and returns the first.
uint8_t *cjpeg_begin_preview(cjpeg_session *s, uint32_t width, uint32_t height, int channels);

/// Stores a row of interleaved pixels into the planes.
void cjpeg_put_preview_row(cjpeg_session *s, uint32_t y, const uint8_t *row);
