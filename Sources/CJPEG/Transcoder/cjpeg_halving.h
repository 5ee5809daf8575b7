#pragma once

// Half the chroma of a picture that has as many chroma samples as luma samples.

#include "cjpeg_session.h"

/// Whether the source, after its header, is YCbCr without subsampling.
bool cjpeg_has_whole_chroma(j_decompress_ptr source);

/// Whether the picture looks nearly the same with one chroma sample for two by two pixels. May jump
/// when interrupted.
bool cjpeg_halves_well(cjpeg_session *s, jvirt_barray_ptr *coefficients);

/// Replaces the arrays of both chroma components by halved ones, quantised with `tables` (by slot,
/// in natural order), and changes the source's sampling factors to fit. May jump.
void cjpeg_halve_chroma(
    cjpeg_session *s, const JQUANT_TBL tables[NUM_QUANT_TBLS], jvirt_barray_ptr *coefficients);
