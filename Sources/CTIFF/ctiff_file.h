/// A file in memory, opened by libtiff.
#pragma once

#include "ctiff.h"
#include "ctiff_declarations.h"

struct lib_functions {
#define MEMBER(name, result, parameters) result(*name) parameters;
    LIB_FUNCTIONS(MEMBER)
#undef MEMBER
};

/// Written by `ctiff_load` only, which runs before anything is opened.
extern struct lib_functions lib __attribute__((visibility("hidden")));

/// How the samples of a page become rows.
typedef enum {
    CTIFF_GREY,
    CTIFF_INVERTED_GREY,
    CTIFF_RGB,
    CTIFF_PALETTE,
    CTIFF_INKS,
    /// CIE L*a*b* with signed colours, and with 128 for none.
    CTIFF_LAB,
    CTIFF_ICC_LAB,
    /// By libtiff, with 8 bits.
    CTIFF_CONVERTED,
} ctiff_kind;

typedef struct {
    const uint8_t *bytes;
    uint64_t length;
    uint64_t position;
    lib_tiff *tiff;
    /// The first error of libtiff; empty without one.
    char error[CCODEC_MESSAGE_BYTES];
    /// Whether some warnings are errors.
    bool is_decoding;
    ctiff_kind kind;
    uint16_t bits;
    /// Samples a pixel of the file.
    uint16_t samples;
    bool is_planar;
    /// The place of alpha among the samples; 0 for none.
    uint16_t alpha;
    bool is_multiplied;
} ctiff_file;

const char *ctiff_load(void) __attribute__((visibility("hidden")));

/// Opens the first page, and describes its rows.
ccodec_status ctiff_open(
    ctiff_file *file, const uint8_t *bytes, size_t length, ccodec_header *header,
    char *message) __attribute__((visibility("hidden")));

void ctiff_close(ctiff_file *file) __attribute__((visibility("hidden")));

/// Decodes the page that `ctiff_open` has opened.
ccodec_status ctiff_decode_page(
    ctiff_file *file, const ccodec_header *header, const ccodec_inks *inks,
    cinterruption *interruption, uint8_t *rows,
    char *message) __attribute__((visibility("hidden")));
