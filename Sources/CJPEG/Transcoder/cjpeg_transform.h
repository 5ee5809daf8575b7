#ifndef CJPEG_TRANSFORM_H
#define CJPEG_TRANSFORM_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/// Whether EXIF's orientation, 1…8, exchanges rows and columns.
bool cjpeg_is_transposing(int orientation);

/// The place in a block, in natural order, of the coefficient that transposing puts at `place`.
int cjpeg_transposed_place(int place);

/// Whether the orientation can be undone on whole blocks. An edge that becomes the left or the top
/// one must not go through a block, or its padding would show; edges that stay at the right and
/// the bottom may. That is what `jpegtran -perfect` asks for, too. After `jpeg_read_header`.
bool cjpeg_can_turn(j_decompress_ptr source, int orientation);

/// Asks for arrays of turned coefficients, one for each component, which `jpeg_read_coefficients`
/// allocates. May jump to the library's error handler.
void cjpeg_request_turned(j_decompress_ptr source, int orientation, jvirt_barray_ptr *turned);

/// Turns the coefficients upright and gives the target, which has the source's parameters, those
/// of the result: size, density, sampling factors and quantisation tables. May jump to the
/// library's error handler, and when the source's session is interrupted.
///
/// Nothing is lost: coefficients move and change signs.
void cjpeg_turn(
    j_decompress_ptr source, j_compress_ptr target, int orientation,
    jvirt_barray_ptr *coefficients, jvirt_barray_ptr *turned);

#endif
