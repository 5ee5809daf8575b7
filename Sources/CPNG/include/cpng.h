/// The boundary to libpng (1.6.39, the full read interface) and to libdeflate.
///
/// libpng reports errors by `longjmp`. Every reading function here sets its own jump target, and
/// creates and destroys the library's state itself. It calls nothing outside C, so no jump ever
/// crosses a Swift frame. The functions keep no state and are thread-safe.
#pragma once

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/// The layout of pixels in image data.
typedef struct {
    /// 1 to 2³¹ − 1, like the height.
    uint32_t width;
    uint32_t height;
    /// 1 to 64.
    uint32_t bits_a_pixel;
    bool is_interlaced;
} cpng_form;

typedef struct {
    uint64_t maximum_pixels;
    /// The most warnings without loss of data; any other warning is an error.
    int maximum_warnings;
    /// Memory for unpacking image data in one call, which takes half the time: rows and joined
    /// chunks, in bytes. 0 unpacks row by row. Decoding functions hold all rows either way.
    uint64_t maximum_whole_bytes;
    /// Checked about every 65,536 bytes, but not during an unpacking call; NULL for none.
    cinterruption *_Nullable interruption;
    /// Whether the file ends behind its image data and before the end of its end chunk, which is
    /// taken as read.
    bool lacks_end;
    /// The size and kind of the pixels if `cpng_check_rows` found image data without an end: the
    /// library then gets a complete stream of the same rows. Other data has a width of 0.
    cpng_form unended;
} cpng_limits;

/// Decoded rows from the top. Each row is one spare byte, the place for a filter type, and
/// `row_bytes` bytes. Samples are packed and ordered as in a PNG without interlacing. `rows` is
/// owned by the caller, who releases it with `cpng_image_free`.
///
/// Every function that works on the rows checks `interruption`, then returns `CCODEC_INTERRUPTED`.
/// A function without a status ends early; its result and the rows are then undefined, so the
/// caller checks the cause before using them.
typedef struct {
    uint8_t *_Nullable rows;
    uint32_t width;
    uint32_t height;
    int bit_depth;
    /// PNG's: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha.
    int color_type;
    /// Without the spare byte.
    size_t row_bytes;
    /// Distance between pixels in whole bytes, at least 1 (PNG section 9.2).
    int filter_distance;
    /// Whether the library read a tRNS and found it valid.
    bool has_transparency;
    /// Whether image data was unpacked in one call; it makes no other difference.
    bool is_whole;
    /// Whether unpacking in one call may have failed because of the data, or its end is missing.
    bool is_unusual;
    uint64_t nanoseconds;
    /// The interruption of the limits used for reading; NULL for none.
    cinterruption *_Nullable interruption;
} cpng_image;

/// The most bytes of rows, and of image data, that are unpacked in one call, which cannot be
/// interrupted.
#define CPNG_MOST_BYTES_AT_ONCE (40 << 20)
#define CPNG_MOST_STREAM_AT_ONCE (8 << 20)

/// Decodes all rows and the end chunk, keeping none of them; `image->rows` stays NULL.
ccodec_status cpng_verify(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    char *message);

/// The meaning of an image's samples, as far as the library accepted it.
typedef struct {
    /// Colours of indices, 0xRRGGBBAA; opaque black beyond the file's own entries.
    uint32_t palette[256];
    /// The number of the file's own entries.
    int entries;
    /// The samples of grey or RGB pixels that are fully transparent; only the bits of the depth
    /// count.
    bool has_key;
    uint16_t key[3];
} cpng_colours;

/// Decodes to rows in the file's own colour type and bit depth.
///
/// - `colours`: receives the meaning of samples.
ccodec_status cpng_decode(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    cpng_colours *_Nullable colours, char *message);

/// Makes 8-bit grey or RGB, with the same interruption. Palettes are expanded, and 16 bits are
/// scaled to 8, as libpng does. Transparency is blended over the background (red, green, blue) in
/// the file's own encoding of light. Transparent grey becomes RGB over a background that is not
/// grey. `opaque` is written with `CCODEC_OK` only.
ccodec_status cpng_make_opaque(
    const cpng_image *image, const cpng_colours *colours, const uint8_t background[_Nonnull 3],
    cpng_image *opaque);

/// Does the same with alpha, if it is wanted, in place of a background: a transparent colour
/// becomes alpha, and unwanted alpha is dropped.
ccodec_status cpng_make_plain(
    const cpng_image *image, const cpng_colours *colours, bool has_colour, bool has_alpha,
    cpng_image *plain);

/// Undoes the filters of rows that begin with known filter types (PNG section 9). The spare bytes
/// keep the types.
///
/// - `is_portable`: whether to use no vector instructions; the result is the same.
ccodec_status cpng_unfilter(cpng_image *image, bool is_portable);

/// A part of compressed image data, shorter than 4 GiB.
typedef struct {
    const uint8_t *bytes;
    size_t length;
} cpng_part;

typedef enum {
    /// One complete zlib stream with the right checksum, of exactly the image's rows.
    CPNG_DATA_WHOLE,
    /// All rows, and then no end: more data, the end of the parts inside a block, a last block that
    /// is not marked as such, or a part of the checksum.
    CPNG_DATA_UNENDED,
    /// Damaged or cut, or left to the decoder.
    CPNG_DATA_OTHER,
} cpng_data;

/// Inflates image data, part by part, and keeps none of it. Each row begins with a known filter
/// type, unless it is `CPNG_DATA_OTHER`. Bytes after the stream have no effect.
///
/// libpng accepts some streams that are not whole: with more data than the rows, or ending inside
/// the checksum.
///
/// - `most_memory`: bytes for all rows together and for joined parts. If they fit, it takes half
///   the time.
ccodec_status cpng_check_rows(
    const cpng_part *parts, size_t count, const cpng_form *form, size_t most_memory,
    cinterruption *_Nullable interruption, cpng_data *data);

void cpng_image_free(cpng_image *image);

/// Applies the EXIF orientation, 1…8; 5…8 exchange width and height. The rows are unchanged unless
/// it returns `CCODEC_OK`.
ccodec_status cpng_turn(cpng_image *image, int orientation);

/// How rows are filtered (PNG section 9).
typedef enum {
    CPNG_FILTER_NONE,
    CPNG_FILTER_SUB,
    CPNG_FILTER_UP,
    CPNG_FILTER_AVERAGE,
    CPNG_FILTER_PAETH,
    /// Per row the filter with the smallest sum of absolute differences: for photographs.
    CPNG_FILTER_SUMS,
    /// Per row the filter with the fewest distinct pairs of neighbouring bytes: for graphics, which
    /// depend on matches. Five times as slow.
    CPNG_FILTER_PAIRS,
} cpng_filter;

typedef enum {
    /// libdeflate at its own levels, 1…12.
    CPNG_LIBDEFLATE,
    /// Our own, for filtered photographs; the level is the number of places searched for a match.
    CPNG_PHOTOGRAPH,
} cpng_compressor;

/// How to turn rows into a zlib stream.
typedef struct {
    cpng_filter filter;
    cpng_compressor compressor;
    int level;
} cpng_strategy;

/// Returns the size of the rows filtered and compressed; 0 without memory, and when interrupted.
/// The rows are unchanged.
size_t cpng_trial(const cpng_image *image, cpng_strategy strategy);

/// Writes a whole PNG file into `*output`, which the caller releases with `free`. It stays NULL
/// with `CCODEC_OK` if the file would reach `maximum_output`.
///
/// - `chunks`: complete chunks (length, type, data, CRC) to write between header and image data.
/// - `keeps_rows`: whether to filter a copy, not the rows themselves.
ccodec_status cpng_encode(
    cpng_image *image, const uint8_t *_Nullable chunks, size_t chunks_length,
    cpng_strategy strategy, bool keeps_rows, size_t maximum_output,
    uint8_t *_Nullable *_Nonnull output, size_t *output_length);

// Fewer bits for the same pixels. Each function changes rows in place; none reads chunks.

/// Whether both bytes of every 16-bit sample are equal, so it is a scaled 8-bit one (PNG
/// section 13.12).
bool cpng_is_eight_bit(const cpng_image *image);

/// Converts 16 bits to 8 where ``cpng_is_eight_bit``.
void cpng_make_eight_bit(cpng_image *image);

/// Whether all samples of the alpha channel are opaque; false without one, and below 8 bits.
bool cpng_is_opaque(const cpng_image *image);

/// Whether red, green and blue are equal in every pixel of RGB or RGBA.
bool cpng_is_grey(const cpng_image *image);

/// Keeps the first sample of a pixel's colour and drops the others, or drops its alpha, or both.
void cpng_drop_channels(cpng_image *image, bool drops_color, bool drops_alpha);

/// Lists the distinct colours, 0xRRGGBBAA, of pixels with at most 8 bits a sample. They are in the
/// order of the palette, or without one in the order of their first pixels.
///
/// - `meaning`: its key has no bits beyond the depth, here and below.
///
/// Returns their number; 0 if there are more than `most` (at most 256), or an index is beyond the
/// palette.
int cpng_colors(const cpng_image *image, const cpng_colours *meaning, int most, uint32_t *colors);

/// Replaces every pixel of colour `colors[n]` by a sample `values[n]` of `bit_depth` bits, and
/// makes the rows grey or palette. All colours are listed, and pixels do not grow.
void cpng_make_indices(
    cpng_image *image, const cpng_colours *meaning, const uint32_t *colors, const uint8_t *values,
    int count, int bit_depth, int color_type);

/// Copies `bands` bands of `band_rows` rows each, spread evenly from top to bottom, into another
/// image; all rows if the image has no more.
ccodec_status cpng_sample(
    const cpng_image *image, uint32_t bands, uint32_t band_rows, cpng_image *sample);

/// Returns an image of 8-bit rows, which it owns from now on: grey or RGB, with or without alpha,
/// and a spare byte each.
cpng_image cpng_image_of(
    uint8_t *rows, uint32_t width, uint32_t height, int channels,
    cinterruption *_Nullable interruption);

/// The share of pixels, in every eighth row, that equal their left neighbour, from 0 to 1. Pixels
/// of less than a byte are compared byte by byte.
double cpng_flatness(const cpng_image *image);

/// The mean difference in chroma, from 0 to 255, between 8-bit RGB pixels and their left and upper
/// neighbours, in every eighth row. Chroma is blue and red less green. Transparent pixels do not
/// count. 0 for other images.
double cpng_chroma_detail(const cpng_image *image);

/// The version of the libpng that is loaded.
const char *cpng_library_version(void);

/// CRC-32 of PNG section 5.4.
uint32_t cpng_crc(const uint8_t *_Nullable bytes, size_t length);

/// Continues a CRC-32 with more bytes; the first checksum is 0.
uint32_t cpng_crc_continued(uint32_t checksum, const uint8_t *_Nullable bytes, size_t length);

#pragma clang assume_nonnull end
