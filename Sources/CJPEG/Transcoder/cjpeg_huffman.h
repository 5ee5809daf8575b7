#ifndef CJPEG_HUFFMAN_H
#define CJPEG_HUFFMAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

/// Gives the target Huffman tables made from a sample of the coefficients, which belong to the
/// source; `is_transposed` where their rows are its columns. Every symbol that the encoder may need
/// has a code. May jump to the library's error handler.
void cjpeg_choose_huffman_tables(
    j_decompress_ptr source, j_compress_ptr target, jvirt_barray_ptr *coefficients,
    bool is_transposed);

/// Makes the best table for symbols that come so often each, by symbol: those that come at all, at least one.
void cjpeg_make_best_table(const uint32_t counts[256], JHUFF_TBL *table);

#endif
