#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/// Gives the target Huffman tables made from a sample of the source's coefficients.
/// `is_transposed`: their rows are the source's columns. Every symbol that the encoder may need has
/// a code. May jump to the library's error handler.
void cjpeg_choose_huffman_tables(
    j_decompress_ptr source, j_compress_ptr target, jvirt_barray_ptr *coefficients,
    bool is_transposed);

/// Makes the optimal table for symbol frequencies; at least one is nonzero.
void cjpeg_make_best_table(const uint32_t counts[256], JHUFF_TBL *table);
