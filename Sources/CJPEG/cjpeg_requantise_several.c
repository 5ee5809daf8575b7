#include "cjpeg_requantise.h"

#include <stdlib.h>
#include <string.h>

#include "cjpeg_preview.h"

// Several results of one source. Those that need no coefficients are transcoded one by one, which takes less time than
// to read coefficients once and copy them for each; of the others coefficients are read once.

/// The source's coefficients, and what they are copied and turned into.
typedef struct {
    jvirt_barray_ptr *read;
    jvirt_barray_ptr copied[MAX_COMPONENTS];
    jvirt_barray_ptr turned[MAX_COMPONENTS];
} coefficient_arrays;

static void copy_coefficients(cjpeg_session *s, coefficient_arrays *arrays) {
    j_decompress_ptr cinfo = &s->decompress;
    for (int index = 0; index < cinfo->num_components; index++) {
        const jpeg_component_info *component = &cinfo->comp_info[index];
        JDIMENSION step = (JDIMENSION)component->v_samp_factor;
        size_t bytes = (size_t)component->width_in_blocks * sizeof(JBLOCK);
        for (JDIMENSION row = 0; row < component->height_in_blocks; row += step) {
            JBLOCKARRAY from = cinfo->mem->access_virt_barray(
                (j_common_ptr)cinfo, arrays->read[index], row, step, FALSE);
            JBLOCKARRAY to = cinfo->mem->access_virt_barray(
                (j_common_ptr)cinfo, arrays->copied[index], row, step, TRUE);
            cjpeg_check_interruption(s, bytes);
            for (JDIMENSION line = 0; line < step; line++) memcpy(to[line], from[line], bytes);
        }
    }
}

static cjpeg_status run_open(cjpeg_session *s) {
    if (setjmp(s->jump)) return s->status;
    cjpeg_open_source(s);
    return CJPEG_OK;
}

typedef enum { TO_BE_MADE, NOTHING_TO_MAKE, MADE } result_state;

/// Makes a result where that takes no coefficients.
static cjpeg_status run_transcode(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, result_state *state, cjpeg_result *result) {
    uint64_t begin = cjpeg_now();
    if (setjmp(s->jump)) {
        // Which is no error where the output was given up.
        if (s->status == CJPEG_OK) *state = MADE;
        return s->status;
    }
    if (cjpeg_turns(s, rewriting)) return CJPEG_OK;
    s->maximum_output = rewriting->maximum_output;
    cjpeg_open_target(s);
    cjpeg_tables tables;
    if (!cjpeg_choose_tables(s, rewriting->quality, false, &tables)) return CJPEG_OK;
    if (!tables.is_any_coarser) {
        *state = NOTHING_TO_MAKE;
    } else if (cjpeg_transcode(s, rewriting, &tables, begin, result)) {
        *state = MADE;
    }
    return CJPEG_OK;
}

static cjpeg_status run_read(
    cjpeg_session *s, int orientation, coefficient_arrays *arrays, cjpeg_result *result) {
    uint64_t begin = cjpeg_now();
    if (setjmp(s->jump)) return s->status;
    j_decompress_ptr source = &s->decompress;
    cjpeg_request_turned(source, 1, arrays->copied);
    if (orientation != 1 && cjpeg_can_turn(source, orientation)) {
        cjpeg_request_turned(source, orientation, arrays->turned);
    }
    arrays->read = jpeg_read_coefficients(source);
    cjpeg_require_all_components(s);
    cjpeg_note_source(s, result);
    if (cjpeg_wants_preview(s)) cjpeg_note_coefficients(s, arrays->read);
    result->decode_nanoseconds = cjpeg_now() - begin;
    return CJPEG_OK;
}

static cjpeg_status run_write(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, coefficient_arrays *arrays, bool is_last,
    cjpeg_result *result) {
    if (setjmp(s->jump)) return s->status;
    s->maximum_output = rewriting->maximum_output;
    cjpeg_open_target(s);
    // They are changed in place.
    if (!is_last) copy_coefficients(s, arrays);
    cjpeg_write_again(
        s, rewriting, is_last ? arrays->read : arrays->copied, arrays->turned, result);
    return CJPEG_OK;
}

/// Makes ready for another target.
static void close_target(cjpeg_session *s, cjpeg_result *result) {
    // Also when the output was given up.
    if (s->is_encoding) result->encode_nanoseconds = cjpeg_now() - s->encode_begin;
    s->is_encoding = false;
    jpeg_destroy_compress(&s->compress);
    free(s->output);
    free(s->symbols);
    s->output = NULL;
    s->symbols = NULL;
}

/// Makes what needs no coefficients. Once something has been made, all data was read, and nothing is left to do for those
/// that change nothing. Returns how many are to be made yet, or an error by `*status`.
static size_t transcode_all(
    cjpeg_session *s, const cjpeg_rewriting *rewritings, size_t count, result_state *states, cjpeg_result *results,
    cjpeg_status *status) {
    const struct jpeg_source_mgr begin = s->source;
    const cjpeg_result *made = NULL;
    size_t left = 0;
    for (size_t index = 0; index < count; index++) {
        *status = run_transcode(s, &rewritings[index], &states[index], &results[index]);
        close_target(s, &results[index]);
        s->source = begin;
        if (*status != CJPEG_OK) return count;
        if (states[index] == MADE) {
            made = &results[index];
        } else {
            left++;
        }
    }
    for (size_t index = 0; index < count && made != NULL; index++) {
        if (states[index] != NOTHING_TO_MAKE) continue;
        results[index] = (cjpeg_result){
            .source_end = made->source_end, .width = made->width, .height = made->height};
        states[index] = MADE;
        left--;
    }
    return left;
}

/// Makes the others of coefficients, which are read once.
static cjpeg_status write_rest(
    cjpeg_session *s, const cjpeg_rewriting *rewritings, size_t count, size_t left, result_state *states,
    cjpeg_result *results) {
    coefficient_arrays arrays;
    cjpeg_result read;
    memset(&read, 0, sizeof read);
    int orientation = 1;
    for (size_t index = 0; index < count; index++) {
        if (rewritings[index].orientation != 1) orientation = rewritings[index].orientation;
    }
    cjpeg_status status = run_read(s, orientation, &arrays, &read);
    for (size_t index = 0; index < count && status == CJPEG_OK; index++) {
        if (states[index] == MADE) continue;
        cjpeg_result *result = &results[index];
        *result = read;
        // The first of them has the time.
        read.decode_nanoseconds = 0;
        left--;
        status = run_write(s, &rewritings[index], &arrays, left == 0, result);
        close_target(s, result);
    }
    return status;
}

cjpeg_status cjpeg_requantise_several(
    const uint8_t *source, size_t length, const cjpeg_limits *limits,
    const cjpeg_rewriting *rewritings, size_t count, cjpeg_result *results, char *message) {
    cjpeg_session s;
    cjpeg_result unused;
    cjpeg_begin(&s, source, length, limits, &unused, message);
    memset(results, 0, count * sizeof *results);
    result_state *states = calloc(count > 0 ? count : 1, sizeof *states);
    cjpeg_status status = states != NULL ? run_open(&s) : CJPEG_OUT_OF_MEMORY;
    size_t left = count;
    if (status == CJPEG_OK) left = transcode_all(&s, rewritings, count, states, results, &status);
    if (status == CJPEG_OK && left > 0) status = write_rest(&s, rewritings, count, left, states, results);
    cjpeg_end(&s);
    free(states);
    for (size_t index = 0; index < count && status != CJPEG_OK; index++) {
        free(results[index].bytes);
        results[index].bytes = NULL;
    }
    return status;
}
