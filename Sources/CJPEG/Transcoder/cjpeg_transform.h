#ifndef CJPEG_TRANSFORM_H
#define CJPEG_TRANSFORM_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/// Whether the EXIF orientation, 1…8, exchanges rows and columns.
bool cjpeg_is_transposing(int orientation);

/// The place, in natural order, of the coefficient that transposing moves to `place`.
int cjpeg_transposed_place(int place);

/// Whether the orientation can be applied to whole blocks, as `jpegtran -perfect` requires. An edge
/// that becomes the left or top one must not cut through a block, or its padding would show. Edges
/// that stay right and bottom may. Call it after `jpeg_read_header`.
bool cjpeg_can_turn(j_decompress_ptr source, int orientation);

/// Requests an array of turned coefficients for each component, which `jpeg_read_coefficients`
/// allocates. May jump to the library's error handler.
void cjpeg_request_turned(j_decompress_ptr source, int orientation, jvirt_barray_ptr *turned);

/// Applies the orientation to the coefficients. Sets the target's size, density, sampling factors
/// and quantisation tables, after it was given the source's parameters. May jump to the library's
/// error handler, and when the source's session is interrupted.
///
/// Lossless: coefficients move and change signs.
void cjpeg_turn(
    j_decompress_ptr source, j_compress_ptr target, int orientation,
    jvirt_barray_ptr *coefficients, jvirt_barray_ptr *turned);

#endif
