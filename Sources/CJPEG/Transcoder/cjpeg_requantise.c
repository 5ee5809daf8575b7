#include "cjpeg_session.h"

#include <stdlib.h>
#include <string.h>

#include "cjpeg_halving.h"
#include "cjpeg_huffman.h"
#include "cjpeg_preview.h"
#include "cjpeg_tables.h"
#include "cjpeg_transcode.h"

// MARK: - Turning

/// Whether the EXIF orientation, 1…8, exchanges rows and columns.
static bool cjpeg_is_transposing(int orientation) { return orientation >= 5; }

/// The place, in natural order, of the coefficient that transposing moves to `place`.
static int cjpeg_transposed_place(int place) { return place % DCTSIZE * DCTSIZE + place / DCTSIZE; }

/// Whether columns are counted from the source's right edge.
static bool flips_x(int orientation) {
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

/// Whether rows are counted from the source's bottom edge.
static bool flips_y(int orientation) {
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

/// Whether the orientation can be applied to whole blocks, as `jpegtran -perfect` requires. The
/// edge that becomes the left or top edge must not cut through a block, since the block's padding
/// would show there. `horizontal` and `vertical` are the largest sampling factors.
static bool cjpeg_can_turn(
    j_decompress_ptr source, int orientation, int horizontal, int vertical) {
    // A single component is coded block by block, with any sampling factors (ITU-T T.81, A.2.2).
    bool is_single = source->num_components == 1;
    JDIMENSION width = DCTSIZE * (JDIMENSION)(is_single ? 1 : horizontal);
    JDIMENSION height = DCTSIZE * (JDIMENSION)(is_single ? 1 : vertical);
    return (!flips_x(orientation) || source->image_width % width == 0)
        && (!flips_y(orientation) || source->image_height % height == 0);
}

static JDIMENSION rounded_up(JDIMENSION value, int step) {
    JDIMENSION size = (JDIMENSION)step;
    return (value + size - 1) / size * size;
}

/// Makes an array for a component's turned coefficients.
static jvirt_barray_ptr make_turned(j_decompress_ptr source, int index, int orientation) {
    const jpeg_component_info *component = &source->comp_info[index];
    JDIMENSION columns = component->width_in_blocks, rows = component->height_in_blocks;
    int horizontal = component->h_samp_factor, vertical = component->v_samp_factor;
    if (cjpeg_is_transposing(orientation)) {
        columns = component->height_in_blocks;
        rows = component->width_in_blocks;
        horizontal = component->v_samp_factor;
        vertical = component->h_samp_factor;
    }
    // The encoder needs whole MCUs. Blocks beyond the picture are zeroed and not coded.
    jvirt_barray_ptr turned = source->mem->request_virt_barray(
        (j_common_ptr)source, JPOOL_IMAGE, TRUE, rounded_up(columns, horizontal),
        rounded_up(rows, vertical), (JDIMENSION)vertical);
    source->mem->realize_virt_arrays((j_common_ptr)source);
    return turned;
}

/// For each coefficient of a turned block, its place in the source block and its sign. Mirroring
/// negates coefficients of odd frequency, since their cosines are odd about the block's middle.
typedef struct {
    JCOEF factor[DCTSIZE2];
    unsigned char place[DCTSIZE2];
} block_map;

static block_map make_map(int orientation) {
    block_map map;
    for (int index = 0; index < DCTSIZE2; index++) {
        int place = cjpeg_is_transposing(orientation) ? cjpeg_transposed_place(index) : index;
        bool is_odd_x = place % DCTSIZE % 2 == 1, is_odd_y = place / DCTSIZE % 2 == 1;
        bool changes_sign =
            (flips_x(orientation) && is_odd_x) != (flips_y(orientation) && is_odd_y);
        map.place[index] = (unsigned char)place;
        map.factor[index] = changes_sign ? -1 : 1;
    }
    return map;
}

static void turn_component(
    j_decompress_ptr source, int index, int orientation, jvirt_barray_ptr *coefficients) {
    jvirt_barray_ptr from = coefficients[index], to = make_turned(source, index, orientation);
    coefficients[index] = to;
    const jpeg_component_info *component = &source->comp_info[index];
    JDIMENSION width = component->width_in_blocks, height = component->height_in_blocks;
    bool is_transposing = cjpeg_is_transposing(orientation);
    bool mirrors_x = flips_x(orientation), mirrors_y = flips_y(orientation);
    JDIMENSION rows = is_transposing ? width : height, columns = is_transposing ? height : width;
    block_map map = make_map(orientation);
    // From the top: arrays can only be written in that order.
    for (JDIMENSION y = 0; y < rows; y++) {
        cjpeg_check_interruption(source->client_data, (uint64_t)columns * DCTSIZE2);
        JBLOCKROW target = source->mem->access_virt_barray((j_common_ptr)source, to, y, 1, TRUE)[0];
        JBLOCKROW line = NULL;
        for (JDIMENSION x = 0; x < columns; x++) {
            JDIMENSION source_x = is_transposing ? y : x, source_y = is_transposing ? x : y;
            if (mirrors_x) source_x = width - 1 - source_x;
            if (mirrors_y) source_y = height - 1 - source_y;
            if (is_transposing || line == NULL) {
                line = source->mem->access_virt_barray(
                    (j_common_ptr)source, from, source_y, 1, FALSE)[0];
            }
            const JCOEF *block = line[source_x];
            JCOEF *result = target[x];
            if (is_transposing) {
                for (int place = 0; place < DCTSIZE2; place++) {
                    result[place] = (JCOEF)(block[map.place[place]] * map.factor[place]);
                }
            } else {
                for (int place = 0; place < DCTSIZE2; place++) {
                    result[place] = (JCOEF)(block[place] * map.factor[place]);
                }
            }
        }
    }
}

static void transpose_parameters(j_compress_ptr target) {
    JDIMENSION width = target->image_width;
    target->image_width = target->image_height;
    target->image_height = width;
    UINT16 density = target->X_density;
    target->X_density = target->Y_density;
    target->Y_density = density;
    for (int index = 0; index < target->num_components; index++) {
        jpeg_component_info *component = &target->comp_info[index];
        int horizontal = component->h_samp_factor;
        component->h_samp_factor = component->v_samp_factor;
        component->v_samp_factor = horizontal;
    }
    for (int slot = 0; slot < NUM_QUANT_TBLS; slot++) {
        if (target->quant_tbl_ptrs[slot] == NULL) continue;
        UINT16 *values = target->quant_tbl_ptrs[slot]->quantval;
        for (int place = 0; place < DCTSIZE2; place++) {
            int other = cjpeg_transposed_place(place);
            if (other <= place) continue;
            UINT16 value = values[place];
            values[place] = values[other];
            values[other] = value;
        }
    }
}

/// Replaces the arrays of coefficients by turned ones. Sets the target's size, density, sampling
/// factors and quantisation tables, after it was given the source's parameters. May jump to the
/// library's error handler, and when the source's session is interrupted.
///
/// Lossless: coefficients move and change signs.
static void cjpeg_turn(
    j_decompress_ptr source, j_compress_ptr target, int orientation,
    jvirt_barray_ptr *coefficients) {
    for (int index = 0; index < source->num_components; index++) {
        turn_component(source, index, orientation, coefficients);
    }
    if (cjpeg_is_transposing(orientation)) transpose_parameters(target);
}

// MARK: - Quantising

/// The quantisation tables to write, by slot, and which of them become coarser.
typedef struct {
    JQUANT_TBL tables[NUM_QUANT_TBLS];
    bool is_coarser[NUM_QUANT_TBLS];
    bool is_any_coarser;
} target_tables;

/// Returns libjpeg's two tables at a quality, in natural order, scaled as by
/// `jpeg_add_quant_table`.
static void standard_tables(cjpeg_session *s, int quality, UINT16 luma[64], UINT16 chroma[64]) {
    struct jpeg_compress_struct *cinfo = &s->compress;
    jpeg_set_quality(cinfo, quality, TRUE);
    memcpy(luma, cinfo->quant_tbl_ptrs[0]->quantval, 64 * sizeof(UINT16));
    memcpy(chroma, cinfo->quant_tbl_ptrs[1]->quantval, 64 * sizeof(UINT16));
}

static bool is_chroma(const j_decompress_ptr cinfo, int index) {
    return (cinfo->jpeg_color_space == JCS_YCbCr || cinfo->jpeg_color_space == JCS_YCCK)
        && (index == 1 || index == 2);
}

/// Chooses tables in the source's layout. If the result is transposed, so are the quality's tables:
/// the written file then has exactly those, and another run does not coarsen it again.
///
/// Returns false while a table is unknown.
static bool choose_tables(
    cjpeg_session *s, int quality, bool is_transposed, target_tables *targets) {
    j_decompress_ptr cinfo = &s->decompress;
    UINT16 luma[64], chroma[64];
    memset(targets, 0, sizeof *targets);
    standard_tables(s, quality, luma, chroma);
    bool is_used[NUM_QUANT_TBLS] = {false};
    for (int index = 0; index < cinfo->num_components; index++) {
        int slot = cinfo->comp_info[index].quant_tbl_no;
        if (slot < 0 || slot >= NUM_QUANT_TBLS || cinfo->quant_tbl_ptrs[slot] == NULL) {
            return false;  // Defined later, if at all: the library finds out.
        }
        const UINT16 *wanted = is_chroma(cinfo, index) ? chroma : luma;
        UINT16 *values = targets->tables[slot].quantval;
        for (int position = 0; position < 64; position++) {
            UINT16 value = wanted[is_transposed ? cjpeg_transposed_place(position) : position];
            // Components that share a table get the finer target.
            if (!is_used[slot] || value < values[position]) values[position] = value;
        }
        is_used[slot] = true;
    }
    for (int slot = 0; slot < NUM_QUANT_TBLS; slot++) {
        if (!is_used[slot]) continue;
        const UINT16 *source = cinfo->quant_tbl_ptrs[slot]->quantval;
        UINT16 *values = targets->tables[slot].quantval;
        for (int position = 0; position < 64; position++) {
            if (values[position] > source[position]) {
                targets->is_coarser[slot] = true;
                targets->is_any_coarser = true;
            } else {
                values[position] = source[position];
            }
        }
    }
    return true;
}

/// Whether a coefficient may be too large for a code; `has_codes` decides.
FOR_EACH_WIDTH static bool is_suspicious(const JCOEF *coefficients, size_t blocks) {
    JCOEF low = 0, high = 0;
    for (size_t index = 0; index < blocks * DCTSIZE2; index++) {
        JCOEF value = coefficients[index];
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    return low < -1023 || high > 1023;
}

FOR_EACH_WIDTH static void requantise_row(
    JCOEF *restrict coefficients, size_t blocks, const float *restrict ratio) {
    for (size_t block = 0; block < blocks; block++, coefficients += DCTSIZE2) {
        for (int position = 0; position < DCTSIZE2; position++) {
            coefficients[position] = (JCOEF)cjpeg_requantised(coefficients[position], ratio[position]);
        }
    }
}

/// Whether every coefficient has a code in 8-bit baseline JPEG (ITU-T T.81, tables F.1 and F.2): 10
/// bits, and 11 for DC differences. Decoders accept up to 15, and the library's encoder does not
/// check.
static bool has_codes(const JCOEF *coefficients, size_t blocks) {
    for (size_t index = 0; index < blocks * DCTSIZE2; index++) {
        int value = coefficients[index];
        int least = index % DCTSIZE2 == 0 ? -1024 : -1023;
        if (value < least || value > 1023) return false;
    }
    return true;
}

/// Requantises the first `components`.
static void requantise(
    cjpeg_session *s, int components, jvirt_barray_ptr *coefficients,
    const target_tables *targets) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < components; index++) {
        jpeg_component_info *component = &cinfo->comp_info[index];
        int slot = component->quant_tbl_no;
        bool is_coarser = targets->is_coarser[slot];
        if (component->quant_table == NULL) cjpeg_fail(s, CCODEC_CORRUPT, "no quantisation table");
        float ratio[DCTSIZE2];
        for (int position = 0; is_coarser && position < DCTSIZE2; position++) {
            ratio[position] = (float)component->quant_table->quantval[position]
                / (float)targets->tables[slot].quantval[position];
        }
        JDIMENSION width = component->width_in_blocks;
        for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
            JCOEF *row = cinfo->mem->access_virt_barray(
                (j_common_ptr)cinfo, coefficients[index], y, 1, TRUE)[0][0];
            cjpeg_check_interruption(s, (uint64_t)width * DCTSIZE2);
            if (is_coarser) requantise_row(row, width, ratio);
            if (is_suspicious(row, width) && !has_codes(row, width)) {
                cjpeg_fail(s, CCODEC_FAILED, "a coefficient too large for a baseline file");
            }
        }
    }
}

/// Whether the picture is turned.
static bool turns_picture(cjpeg_session *s, const cjpeg_rewriting *rewriting) {
    j_decompress_ptr source = &s->decompress;
    return rewriting->orientation != 1
        && cjpeg_can_turn(
            source, rewriting->orientation, source->max_h_samp_factor, source->max_v_samp_factor);
}

/// Whether chroma may be halved: where that does not keep the picture from being turned.
static bool may_halve(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, const target_tables *tables) {
    j_decompress_ptr source = &s->decompress;
    return rewriting->may_halve_chroma && tables->is_any_coarser && cjpeg_has_whole_chroma(source)
        && (!turns_picture(s, rewriting) || cjpeg_can_turn(source, rewriting->orientation, 2, 2));
}

static void begin_encoding(cjpeg_session *s) {
    s->encode_begin = cinterruption_processor_time();
    s->is_encoding = true;
}

/// Gives the open target the source's parameters and the tables.
static void begin_writing(cjpeg_session *s, const cjpeg_rewriting *rewriting, const target_tables *tables) {
    j_decompress_ptr source = &s->decompress;
    j_compress_ptr target = &s->compress;
    jpeg_copy_critical_parameters(source, target);
    // The library would mark every CMYK file as Adobe's.
    if (source->jpeg_color_space == JCS_CMYK) {
        target->write_Adobe_marker = source->saw_Adobe_marker;
    }
    if (!rewriting->writes_own_segments) {
        target->write_JFIF_header = FALSE;
        target->write_Adobe_marker = FALSE;
    }
    for (int slot = 0; slot < NUM_QUANT_TBLS; slot++) {
        if (tables->is_coarser[slot]) {
            memcpy(
                target->quant_tbl_ptrs[slot]->quantval, tables->tables[slot].quantval,
                sizeof tables->tables[slot].quantval);
        }
    }
}

/// Requantises the coefficients in place and writes them, unless nothing would change. The target
/// is open.
static void write_again(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, jvirt_barray_ptr *coefficients,
    cjpeg_result *result) {
    j_decompress_ptr source = &s->decompress;
    j_compress_ptr target = &s->compress;
    int orientation = rewriting->orientation;
    bool turns = turns_picture(s, rewriting);
    bool transposes = turns && cjpeg_is_transposing(orientation);
    target_tables tables;
    // A multi-scan file may define tables between scans.
    bool is_known = choose_tables(s, rewriting->quality, transposes, &tables);
    bool changes = tables.is_any_coarser || turns || rewriting->is_unconditional;
    if (!is_known || !changes) return;

    begin_encoding(s);
    int components = source->num_components;
    bool halves = may_halve(s, rewriting, &tables) && cjpeg_halves_well(s, coefficients);
    if (halves) {
        cjpeg_halve_chroma(s, tables.tables, coefficients);
        components = 1;
    }
    begin_writing(s, rewriting, &tables);
    requantise(s, components, coefficients, &tables);
    if (turns) {
        cjpeg_turn(source, target, orientation, coefficients);
    } else if (halves) {
        // The encoder reads two rows of luma at a time, the decoder's array gives one.
        turn_component(source, 0, 1, coefficients);
    }
    if (tables.is_any_coarser) {
        // Baseline for progressive sources, too: their ten scans would cost as many passes. If
        // baseline is not smaller, the source's data stays.
        cjpeg_choose_huffman_tables(source, target, coefficients, transposes);
    } else {
        // No coefficient became smaller, so only the same kind of code with optimal tables is about
        // as small as the source. Sources that are only turned are rare.
        target->optimize_coding = TRUE;
        if (source->progressive_mode) jpeg_simple_progression(target);
    }
    jpeg_write_coefficients(target, coefficients);
    if (!turns) {
        cjpeg_write_segments(
            s, rewriting->orientation_segment, rewriting->orientation_segment_length);
    }
    cjpeg_write_segments(s, rewriting->segments, rewriting->segments_length);
    jpeg_finish_compress(target);
    cjpeg_take_output(s, result);
    result->was_turned = turns && result->bytes != NULL;
    if (result->was_turned) {
        result->width = target->image_width;
        result->height = target->image_height;
    }
}

/// Opens a target for choosing tables; its parameters are copied later.
static void open_target(cjpeg_session *s) {
    cjpeg_open_destination(s);
    s->compress.in_color_space = JCS_YCbCr;
    s->compress.input_components = 3;
    jpeg_set_defaults(&s->compress);
}

/// Transcodes the source, after its header, with tables that are partly coarser
/// (`cjpeg_transcode.h`). The target is open. `begin` is when reading began.
///
/// Returns false to fall back to libjpeg, with the session unchanged.
static bool transcode(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, const target_tables *tables, uint64_t begin,
    cjpeg_result *result) {
    if (rewriting->takes_coefficients) return false;
    cjpeg_symbols symbols;
    memset(&symbols, 0, sizeof symbols);
    for (int index = 0; index < s->decompress.num_components; index++) {
        // The same assignment as in the library's encoder.
        symbols.table_of[index] = is_chroma(&s->decompress, index) ? 1 : 0;
    }
    if (!cjpeg_read_symbols(s, tables->tables, &symbols)) return false;
    cjpeg_note_source(s, result);
    if (cjpeg_wants_preview(s)) cjpeg_note_blocks(s, &symbols.preview);
    result->decode_nanoseconds = cinterruption_processor_time() - begin;
    begin_encoding(s);
    begin_writing(s, rewriting, tables);
    // Writes the first segments and reads no coefficient; the rest is written here.
    jpeg_write_coefficients(&s->compress, NULL);
    cjpeg_write_segments(s, rewriting->orientation_segment, rewriting->orientation_segment_length);
    cjpeg_write_segments(s, rewriting->segments, rewriting->segments_length);
    cjpeg_write_symbols(s, &symbols, result);
    result->was_transcoded = true;
    return true;
}

static ccodec_status run_requantise(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, cjpeg_result *result) {
    uint64_t begin = cinterruption_processor_time();
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    j_decompress_ptr source = &s->decompress;
    open_target(s);
    target_tables tables;
    int orientation = rewriting->orientation;
    bool turns = turns_picture(s, rewriting);
    bool transposes = turns && cjpeg_is_transposing(orientation);
    bool is_known = choose_tables(s, rewriting->quality, transposes, &tables);
    bool changes = tables.is_any_coarser || turns || rewriting->is_unconditional;
    if (is_known && !changes && !jpeg_has_multiple_scans(source)) {
        cjpeg_drain_single_scan(s);
        cjpeg_note_source(s, result);
        result->decode_nanoseconds = cinterruption_processor_time() - begin;
        return CCODEC_OK;
    }
    if (is_known && tables.is_any_coarser && !turns && !may_halve(s, rewriting, &tables)
        && transcode(s, rewriting, &tables, begin, result)) {
        return CCODEC_OK;
    }
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(source);
    cjpeg_require_all_components(s);
    cjpeg_note_source(s, result);
    // Before requantisation changes them.
    if (cjpeg_wants_preview(s)) cjpeg_note_coefficients(s, coefficients);
    result->decode_nanoseconds = cinterruption_processor_time() - begin;
    write_again(s, rewriting, coefficients, result);
    return CCODEC_OK;
}

ccodec_status cjpeg_requantise(
    const uint8_t *source, size_t length, const cjpeg_limits *limits,
    const cjpeg_rewriting *rewriting, cjpeg_result *result, char *message) {
    cjpeg_session s;
    cjpeg_begin(&s, source, length, limits, result, message);
    s.maximum_output = rewriting->maximum_output;
    ccodec_status status = run_requantise(&s, rewriting, result);
    // Also if the output was given up.
    if (s.is_encoding) result->encode_nanoseconds = cinterruption_processor_time() - s.encode_begin;
    cjpeg_end(&s);
    return status;
}
