#include "cjpeg_halving.h"

#include <string.h>

#include "cjpeg_tables.h"
#include "cjpeg_transcode.h"

// Results must be the same on every processor.
#pragma STDC FP_CONTRACT OFF

/// Half the coefficients of a block's row or column: all that halving keeps.
enum { KEPT = DCTSIZE / 2 };

bool cjpeg_has_whole_chroma(j_decompress_ptr source) {
    if (source->jpeg_color_space != JCS_YCbCr || source->num_components != 3) return false;
    const jpeg_component_info *luma = &source->comp_info[0];
    for (int index = 1; index < 3; index++) {
        const jpeg_component_info *chroma = &source->comp_info[index];
        if (chroma->h_samp_factor != luma->h_samp_factor
            || chroma->v_samp_factor != luma->v_samp_factor) return false;
    }
    return true;
}

static const UINT16 *steps_of(cjpeg_session *s, int index) {
    const JQUANT_TBL *table = s->decompress.comp_info[index].quant_table;
    if (table == NULL) cjpeg_fail(s, CCODEC_CORRUPT, "no quantisation table");
    return table->quantval;
}

static JBLOCKROW row_of(cjpeg_session *s, jvirt_barray_ptr array, JDIMENSION y, boolean is_written) {
    j_common_ptr source = (j_common_ptr)&s->decompress;
    return s->decompress.mem->access_virt_barray(source, array, y, 1, is_written)[0];
}

// MARK: - Judging

/// Adds the squares of the coefficients that halving drops, 0 in `steps` for the others. Columns
/// are added apart, so all widths of registers give the same sums.
FOR_EACH_WIDTH static void add_losses(
    const JCOEF *restrict row, size_t blocks, const float *restrict steps, float *restrict losses) {
    for (size_t block = 0; block < blocks; block++, row += DCTSIZE2) {
        float sums[DCTSIZE] = {0};
        for (int first = 0; first < DCTSIZE2; first += DCTSIZE) {
            for (int column = 0; column < DCTSIZE; column++) {
                float value = (float)row[first + column] * steps[first + column];
                sums[column] += value * value;
            }
        }
        for (int half = DCTSIZE / 2; half > 0; half /= 2) {
            for (int column = 0; column < half; column++) sums[column] += sums[column + half];
        }
        losses[block] += sums[0];
    }
}

/// Photographs lose a mean square of up to 24, of both chroma components together, and at most 10
/// blocks of them lose more than 324. Letters and lines in strong colours lose 300 to 5,000, even
/// if they take a small part of a picture.
bool cjpeg_halves_well(cjpeg_session *s, jvirt_barray_ptr *coefficients) {
    const double most_mean = 25, most_of_block = 324, most_blocks = 16, most_share = 1.0 / 400;
    float steps[2][DCTSIZE2];
    for (int index = 0; index < 2; index++) {
        const UINT16 *table = steps_of(s, index + 1);
        for (int place = 0; place < DCTSIZE2; place++) {
            bool is_kept = place % DCTSIZE < KEPT && place / DCTSIZE < KEPT;
            steps[index][place] = is_kept ? 0 : table[place];
        }
    }
    JDIMENSION width = s->decompress.comp_info[1].width_in_blocks;
    JDIMENSION height = s->decompress.comp_info[1].height_in_blocks;
    double all = (double)width * height, sum = 0, strong = 0;
    float *losses = s->decompress.mem->alloc_large(
        (j_common_ptr)&s->decompress, JPOOL_IMAGE, width * sizeof *losses);
    for (JDIMENSION y = 0; y < height; y++) {
        cjpeg_check_interruption(s, (uint64_t)width * DCTSIZE2);
        memset(losses, 0, width * sizeof *losses);
        for (int index = 0; index < 2; index++) {
            const JCOEF *row = row_of(s, coefficients[index + 1], y, FALSE)[0];
            add_losses(row, width, steps[index], losses);
        }
        for (JDIMENSION x = 0; x < width; x++) {
            sum += losses[x];
            strong += losses[x] > most_of_block * DCTSIZE2;
        }
        if (strong > most_blocks || strong > most_share * all) return false;
    }
    return sum <= most_mean * DCTSIZE2 * all;
}

// MARK: - Halving

/// Row k makes coefficient k of a halved row from the lowest four of its left block. The right
/// block adds the same, with the sign of k + place, since it is mirrored.
///
/// Four coefficients make four samples, by the inverse of the shorter transform. The samples of two
/// blocks make eight coefficients.
static const float halving[DCTSIZE][KEPT] = {
    {0.50000000f, 0, 0, 0},
    {0.45306372f, 0.20786740f, -0.03732892f, 0.01144366f},
    {0, 0.50000000f, 0, 0},
    {-0.15909482f, 0.39553254f, 0.25663998f, -0.04877258f},
    {0, 0, 0.50000000f, 0},
    {0.10630376f, -0.17622148f, 0.38408888f, 0.24519632f},
    {0, 0, 0, 0.50000000f},
    {-0.09011998f, 0.13889256f, -0.18766514f, 0.43286146f},
};

typedef struct {
    /// By the place in two blocks' lowest coefficients, then by the coefficient that it adds to.
    float shares[DCTSIZE][DCTSIZE];
    /// The source's steps, and the inverses of the target's.
    float steps[DCTSIZE2], inverses[DCTSIZE2];
} cjpeg_halver;

static void make_halver(cjpeg_halver *halver, const UINT16 *steps, const UINT16 *wanted) {
    for (int place = 0; place < KEPT; place++) {
        for (int made = 0; made < DCTSIZE; made++) {
            float share = halving[made][place];
            halver->shares[place][made] = share;
            halver->shares[KEPT + place][made] = (made + place) % 2 == 0 ? share : -share;
        }
    }
    for (int place = 0; place < DCTSIZE2; place++) {
        halver->steps[place] = steps[place];
        halver->inverses[place] = 1 / (float)wanted[place];
    }
}

/// Copies the lowest coefficients of a block, or of its mirror image, to a quarter of `target`.
INLINED void take_lowest(
    const JCOEF *block, bool mirrors_x, bool mirrors_y, const float *steps,
    float target[][DCTSIZE], int column) {
    for (int y = 0; y < KEPT; y++) {
        for (int x = 0; x < KEPT; x++) {
            float value = (float)block[y * DCTSIZE + x] * steps[y * DCTSIZE + x];
            bool changes_sign = (mirrors_x && x % 2 == 1) != (mirrors_y && y % 2 == 1);
            target[y][column + x] = changes_sign ? -value : value;
        }
    }
}

/// Makes a row of blocks from two of `width` blocks; `lower` is NULL beyond the last one.
FOR_EACH_WIDTH static void halve_row(
    const JCOEF *upper, const JCOEF *lower, size_t width, const cjpeg_halver *halver,
    JCOEF *restrict to) {
    const JCOEF *rows[2] = {upper, lower != NULL ? lower : upper};
    for (size_t x = 0; x < width; x += 2, to += DCTSIZE2) {
        bool is_last = x + 1 == width;
        float from[DCTSIZE][DCTSIZE], half[DCTSIZE][DCTSIZE] = {{0}}, made[DCTSIZE2] = {0};
        for (int part = 0; part < 4; part++) {
            bool is_right = part % 2 == 1, is_lower = part / 2 == 1;
            const JCOEF *block = rows[is_lower] + (x + (is_right && !is_last)) * DCTSIZE2;
            take_lowest(
                block, is_right && is_last, is_lower && lower == NULL, halver->steps,
                from + (is_lower ? KEPT : 0), is_right ? KEPT : 0);
        }
        for (int y = 0; y < DCTSIZE; y++) {
            for (int place = 0; place < DCTSIZE; place++) {
                float share = halver->shares[place][y];
                for (int column = 0; column < DCTSIZE; column++) {
                    half[y][column] += share * from[place][column];
                }
            }
            for (int place = 0; place < DCTSIZE; place++) {
                float value = half[y][place];
                for (int column = 0; column < DCTSIZE; column++) {
                    made[y * DCTSIZE + column] += value * halver->shares[place][column];
                }
            }
        }
        for (int place = 0; place < DCTSIZE2; place++) {
            // Colours beyond the range of samples may get coefficients beyond that of codes.
            float value = made[place] * halver->inverses[place];
            value = value < -CJPEG_MOST_COEFFICIENT ? -CJPEG_MOST_COEFFICIENT : value;
            value = value > CJPEG_MOST_COEFFICIENT ? CJPEG_MOST_COEFFICIENT : value;
            to[place] = (JCOEF)cjpeg_rounded(value);
        }
    }
}

static jvirt_barray_ptr halved(
    cjpeg_session *s, int index, const UINT16 *wanted, jvirt_barray_ptr from) {
    j_decompress_ptr source = &s->decompress;
    const jpeg_component_info *component = &source->comp_info[index];
    JDIMENSION width = component->width_in_blocks, height = component->height_in_blocks;
    jvirt_barray_ptr to = source->mem->request_virt_barray(
        (j_common_ptr)source, JPOOL_IMAGE, FALSE, (width + 1) / 2, (height + 1) / 2, 1);
    source->mem->realize_virt_arrays((j_common_ptr)source);
    cjpeg_halver halver;
    make_halver(&halver, steps_of(s, index), wanted);
    for (JDIMENSION y = 0; y < height; y += 2) {
        cjpeg_check_interruption(s, (uint64_t)width * 2 * DCTSIZE2);
        const JCOEF *upper = row_of(s, from, y, FALSE)[0];
        const JCOEF *lower = y + 1 < height ? row_of(s, from, y + 1, FALSE)[0] : NULL;
        halve_row(upper, lower, width, &halver, row_of(s, to, y / 2, TRUE)[0]);
    }
    return to;
}

void cjpeg_halve_chroma(
    cjpeg_session *s, const JQUANT_TBL tables[NUM_QUANT_TBLS], jvirt_barray_ptr *coefficients) {
    j_decompress_ptr source = &s->decompress;
    for (int index = 0; index < 3; index++) {
        jpeg_component_info *component = &source->comp_info[index];
        int factor = index == 0 ? 2 : 1;
        component->h_samp_factor = component->v_samp_factor = factor;
        if (index == 0) continue;
        const UINT16 *wanted = tables[component->quant_tbl_no].quantval;
        coefficients[index] = halved(s, index, wanted, coefficients[index]);
        component->width_in_blocks = (component->width_in_blocks + 1) / 2;
        component->height_in_blocks = (component->height_in_blocks + 1) / 2;
    }
    source->max_h_samp_factor = source->max_v_samp_factor = 2;
}
