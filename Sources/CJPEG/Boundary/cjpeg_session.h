#pragma once

// The state that every entry point of this target shares: errors, source and output of one call. A
// function that takes a session may jump; its caller has called `setjmp` on it.

#include "cjpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct cjpeg_session cjpeg_session;

/// See `cjpeg_scales.c`.
typedef struct cjpeg_scales cjpeg_scales;

/// See `cjpeg_tables.h`.
typedef struct cjpeg_table_cache cjpeg_table_cache;

/// One call's state. Everything that changes between `setjmp` and a jump lives here, in the frame
/// of the public function. That function never calls `setjmp` itself, so no value is indeterminate.
struct cjpeg_session {
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_destination_mgr destination;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct decompress;
    struct jpeg_compress_struct compress;
    jmp_buf jump;
    ccodec_status status;
    char *message;
    const cjpeg_limits *limits;
    const uint8_t *input;
    size_t input_length;
    uint8_t *output;
    size_t output_capacity;
    size_t maximum_output;
    bool is_encoding;
    uint64_t encode_begin;
    cinterruption *interruption;
    /// About how many pixels the library processes between two calls of its progress monitor.
    uint64_t pixels_a_step;
    bool has_seen_scan;
    /// Bytes that are no data stand between entropy-coded data and a marker.
    bool has_foreign_bytes;
    /// Bit n: component n was in a scan.
    unsigned components_seen;
    uint8_t *row;
    /// The state of decoding at several scales, or by our decoder, and the function that frees it.
    cjpeg_scales *scales;
    void (*free_scales)(cjpeg_session *s);
    /// The tables of our decoder, and the function that returns them to the thread's cache.
    cjpeg_table_cache *tables;
    void (*return_tables)(cjpeg_session *s);
    /// The state of our decoder while it reads.
    void *scan;
    /// Memory for the symbols of a transcoded file.
    void *symbols;
};

/// Ends the call with a status and a message.
_Noreturn void cjpeg_fail(cjpeg_session *s, ccodec_status status, const char *text);

/// Adds the pixels to the work done, and ends the call if it is interrupted.
static inline void cjpeg_check_interruption(cjpeg_session *s, uint64_t pixels) {
    if (cinterruption_after(s->interruption, pixels)) cjpeg_fail(s, CCODEC_INTERRUPTED, "");
}

/// Initialises a session and an empty result; `cjpeg_end` must follow however the call ends.
/// Neither jumps. Without a source, `input` and `limits` are NULL.
void cjpeg_begin(
    cjpeg_session *s, const uint8_t *input, size_t length, const cjpeg_limits *limits,
    cjpeg_result *result, char *message);

void cjpeg_end(cjpeg_session *s);

/// Initialises a zeroed decompressor and reads the header of `input`.
void cjpeg_open_header(cjpeg_session *s, j_decompress_ptr cinfo, struct jpeg_source_mgr *source);

/// Reads the header of `input` and checks it against the limits.
void cjpeg_open_source(cjpeg_session *s);

/// Notes the components of the current scan, and fails if there are too many scans.
void cjpeg_note_scan(cjpeg_session *s);

/// Fails unless every component was in some scan, DC coefficients included.
void cjpeg_require_all_components(cjpeg_session *s);

/// Fills in where the image data ends, and the size.
void cjpeg_note_source(const cjpeg_session *s, cjpeg_result *result);

/// Sets up the compressor to write into memory, up to `maximum_output`.
void cjpeg_open_destination(cjpeg_session *s);

/// Writes whole marker segments after the library's own.
void cjpeg_write_segments(cjpeg_session *s, const uint8_t *segments, size_t length);

/// Makes room for that many more bytes. `cjpeg_take_output` checks the largest output.
void cjpeg_reserve_output(cjpeg_session *s, size_t bytes);

/// Hands the written bytes to the result.
void cjpeg_take_output(cjpeg_session *s, cjpeg_result *result);
