#include "cjpeg_transform.h"

#include "cjpeg_session.h"

#include <stddef.h>

bool cjpeg_is_transposing(int orientation) { return orientation >= 5; }

int cjpeg_transposed_place(int place) { return place % DCTSIZE * DCTSIZE + place / DCTSIZE; }

/// Whether columns are counted from the source's right edge.
static bool flips_x(int orientation) {
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

/// Whether rows are counted from the source's bottom edge.
static bool flips_y(int orientation) {
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

bool cjpeg_can_turn(j_decompress_ptr source, int orientation) {
    // A single component is coded block by block, with any sampling factors (ITU-T T.81, A.2.2).
    bool is_single = source->num_components == 1;
    JDIMENSION width = DCTSIZE * (JDIMENSION)(is_single ? 1 : source->max_h_samp_factor);
    JDIMENSION height = DCTSIZE * (JDIMENSION)(is_single ? 1 : source->max_v_samp_factor);
    return (!flips_x(orientation) || source->image_width % width == 0)
        && (!flips_y(orientation) || source->image_height % height == 0);
}

static JDIMENSION rounded_up(JDIMENSION value, int step) {
    JDIMENSION size = (JDIMENSION)step;
    return (value + size - 1) / size * size;
}

void cjpeg_request_turned(j_decompress_ptr source, int orientation, jvirt_barray_ptr *turned) {
    for (int index = 0; index < source->num_components; index++) {
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
        turned[index] = source->mem->request_virt_barray(
            (j_common_ptr)source, JPOOL_IMAGE, TRUE, rounded_up(columns, horizontal),
            rounded_up(rows, vertical), (JDIMENSION)vertical);
    }
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
    j_decompress_ptr source, int index, int orientation, jvirt_barray_ptr from,
    jvirt_barray_ptr to) {
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

void cjpeg_turn(
    j_decompress_ptr source, j_compress_ptr target, int orientation,
    jvirt_barray_ptr *coefficients, jvirt_barray_ptr *turned) {
    for (int index = 0; index < source->num_components; index++) {
        turn_component(source, index, orientation, coefficients[index], turned[index]);
    }
    if (cjpeg_is_transposing(orientation)) transpose_parameters(target);
}
