/// The boundary to libpng (1.6.39, the full read interface) and to libdeflate.
///
/// libpng reports errors by `longjmp`. Every reading function here sets its own jump target,
/// creates and destroys the library's state itself and calls nothing outside C, so no jump ever
/// crosses a Swift frame. No function keeps state; all may run on several threads at once.
#ifndef CPNG_H
#define CPNG_H

#include "cinterruption.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CPNG_OK = 0,
    /// The data is damaged: an error, or a warning that means lost data.
    CPNG_CORRUPT,
    /// The data ends before the image does.
    CPNG_TRUNCATED,
    /// A limit of the caller was passed.
    CPNG_LIMIT,
    CPNG_OUT_OF_MEMORY,
    /// The interruption has the cause.
    CPNG_INTERRUPTED,
} cpng_status;

typedef struct {
    uint64_t maximum_pixels;
    /// Largest chunk that the library holds in memory, in bytes.
    uint64_t maximum_chunk_bytes;
    /// Ancillary chunks that the library keeps.
    uint32_t maximum_cached_chunks;
    /// Warnings without loss of data; any other warning is an error at once.
    int maximum_warnings;
    /// Bytes that may be taken so that image data is unpacked as a whole, for all rows and the chunks
    /// put together, which takes half the time; 0 for row by row. Where rows are asked for, they are
    /// there in either case.
    uint64_t maximum_whole_bytes;
    /// Looked at every 65 536 bytes or so, but for what is unpacked at once; NULL for none.
    cinterruption *_Nullable interruption;
} cpng_limits;

/// Ancillary chunks that the library read and found valid.
enum {
    CPNG_HAS_GAMA = 1,
    CPNG_HAS_CHRM = 2,
    CPNG_HAS_SRGB = 4,
    CPNG_HAS_SBIT = 8,
    CPNG_HAS_TRNS = 16,
};

/// Decoded rows from the top. Each row is one spare byte, the place for a filter type, followed by
/// `row_bytes` bytes; samples are packed and ordered as in a PNG without interlacing.
/// `rows` is owned by the caller, who releases it with `cpng_image_free`.
///
/// Every function that works on the rows looks at `interruption`. Interrupted, it answers
/// `CPNG_INTERRUPTED`; one that has no status ends early, and what it answers and what it leaves
/// in the rows mean nothing. So the caller looks at the cause before it goes by them.
typedef struct {
    uint8_t *_Nullable rows;
    uint32_t width;
    uint32_t height;
    int bit_depth;
    /// PNG's: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha.
    int color_type;
    /// Without the spare byte.
    size_t row_bytes;
    /// Distance from a pixel to the next in whole bytes, at least 1 (PNG section 9.2).
    int filter_distance;
    unsigned chunks;
    /// Whether image data was unpacked as a whole, which makes no other difference.
    bool is_whole;
    uint64_t nanoseconds;
    /// That of the limits with which they were read; NULL for none.
    cinterruption *_Nullable interruption;
} cpng_image;

#define CPNG_MESSAGE_BYTES 256

/// Rows of more bytes are not unpacked all at once, which nothing could interrupt, nor is image data
/// of more.
#define CPNG_MOST_BYTES_AT_ONCE (40 << 20)
#define CPNG_MOST_STREAM_AT_ONCE (8 << 20)

/// Decodes all rows and the end chunk, and keeps nothing of them; `image->rows` stays NULL.
cpng_status cpng_verify(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    char *message);

/// Decodes to rows in the file's own colour type and bit depth.
cpng_status cpng_decode(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    char *message);

/// Decodes to 8-bit grey or RGB: palettes are expanded, 16 bits scaled to 8, and transparency is
/// blended over the background (red, green, blue) in the file's own encoding of light. Grey with
/// transparency becomes RGB over a background that is not grey. The rows have the spare byte too.
cpng_status cpng_decode_opaque(
    const uint8_t *source, size_t length, const cpng_limits *limits,
    const uint8_t background[_Nonnull 3], cpng_image *image, char *message);

/// What the samples of an image mean, as far as the library took it.
typedef struct {
    /// Of indices: 0xRRGGBBAA; opaque black beyond the file's own entries.
    uint32_t palette[256];
    /// The samples of grey or RGB pixels that are fully transparent. The bits of the depth count.
    bool has_key;
    uint16_t key[3];
} cpng_colours;

/// As `cpng_decode`, and says what the samples mean.
cpng_status cpng_decode_with_colours(
    const uint8_t *source, size_t length, const cpng_limits *limits, cpng_image *image,
    cpng_colours *colours, char *message);

/// Makes of rows, byte by byte, what `cpng_decode_opaque` makes of their file: an image of its own, with the
/// interruption of the other. `opaque` is written with `CPNG_OK` only.
cpng_status cpng_make_opaque(
    const cpng_image *image, const cpng_colours *colours, const uint8_t background[_Nonnull 3],
    cpng_image *opaque);

/// Makes 8-bit grey or RGB of rows, with alpha or without: palettes are expanded, 16 bits scaled to 8, a transparent
/// colour becomes alpha. Alpha that is not wanted is dropped. As `cpng_make_opaque` otherwise.
cpng_status cpng_make_plain(
    const cpng_image *image, const cpng_colours *colours, bool has_colour, bool has_alpha,
    cpng_image *plain);

/// Undoes the filters of rows that begin with their filter types, each of them a known one (PNG section
/// 9). The spare bytes keep them.
///
/// - `is_portable`: whether it goes without this machine's vectors, with the same result.
cpng_status cpng_unfilter(cpng_image *image, bool is_portable);

/// Of compressed image data; shorter than 4 GiB.
typedef struct {
    const uint8_t *bytes;
    size_t length;
} cpng_part;

/// How pixels lie in image data.
typedef struct {
    /// 1 to 2³¹ − 1, as the height.
    uint32_t width;
    uint32_t height;
    /// 1 to 64.
    uint32_t bits_a_pixel;
    bool is_interlaced;
} cpng_form;

/// Inflates image data, the parts in their order, and keeps nothing of it. `*is_whole` says whether
/// it is one whole zlib stream with the right checksum, of exactly the bytes that the image's rows
/// have, each row with a known filter type. Bytes behind the stream have no effect.
///
/// Of what is not whole the library takes some all the same: a stream with more than the rows, and
/// one that ends inside its checksum.
///
/// - `most_memory`: bytes for all rows at once, and for the parts put together. Where they have
///   room it takes half the time.
cpng_status cpng_check_rows(
    const cpng_part *parts, size_t count, const cpng_form *form, size_t most_memory,
    cinterruption *_Nullable interruption, bool *is_whole);

void cpng_image_free(cpng_image *image);

/// Turns the rows upright: `orientation` is that of EXIF, 1…8; 5…8 exchange width and height. The
/// rows stay as they were unless it returns `CPNG_OK`.
cpng_status cpng_turn(cpng_image *image, int orientation);

/// How rows are filtered (PNG section 9).
typedef enum {
    CPNG_FILTER_NONE,
    CPNG_FILTER_SUB,
    CPNG_FILTER_UP,
    CPNG_FILTER_AVERAGE,
    CPNG_FILTER_PAETH,
    /// Per row the one with the smallest sum of absolute differences: for photographs.
    CPNG_FILTER_SUMS,
    /// Per row the one with the fewest different pairs of neighbouring bytes: for graphics, where
    /// matches count. Five times as slow.
    CPNG_FILTER_PAIRS,
} cpng_filter;

typedef enum {
    /// libdeflate; the level is its own, 1…12.
    CPNG_LIBDEFLATE,
    /// Ours, for filtered photographs; the level is the number of places looked at for a match.
    CPNG_PHOTOGRAPH,
} cpng_compressor;

/// How rows become a zlib stream.
typedef struct {
    cpng_filter filter;
    cpng_compressor compressor;
    int level;
} cpng_strategy;

/// The bytes that the rows need when they are filtered and compressed; 0 when there is no memory,
/// and when interrupted.
/// The rows stay as they are.
size_t cpng_trial(const cpng_image *image, cpng_strategy strategy);

/// Writes a whole PNG file into `*output`, which the caller releases with `free`. It stays NULL
/// with `CPNG_OK` when the file would reach `maximum_output`.
///
/// - `chunks`: complete chunks (length, type, data, CRC) to write between header and image data.
/// - `keeps_rows`: whether the rows are filtered in a copy, and not where they are.
cpng_status cpng_encode(
    cpng_image *image, const uint8_t *_Nullable chunks, size_t chunks_length,
    cpng_strategy strategy, bool keeps_rows, size_t maximum_output,
    uint8_t *_Nullable *_Nonnull output, size_t *output_length);

// Fewer bits for the same pixels. Each function changes rows in place; none looks at chunks.

/// Whether both bytes of every 16-bit sample are equal: the sample is one of 8 bits, scaled (PNG
/// section 13.12).
bool cpng_is_eight_bit(const cpng_image *image);

/// From 16 bits to 8 where ``cpng_is_eight_bit``.
void cpng_make_eight_bit(cpng_image *image);

/// Whether every sample of the alpha channel is the largest; false without one, and with samples
/// of less than 8 bits.
bool cpng_is_opaque(const cpng_image *image);

/// Whether red, green and blue are equal in every pixel of RGB or RGBA.
bool cpng_is_grey(const cpng_image *image);

/// Keeps the first sample of a pixel's colour and drops the others, or drops its alpha, or both.
void cpng_drop_channels(cpng_image *image, bool drops_color, bool drops_alpha);

/// What pixels of at most 8 bits a sample mean. Colours are 0xRRGGBBAA.
typedef struct {
    /// Of a palette's indices; NULL without one.
    const uint32_t *_Nullable palette;
    int palette_count;
    /// The samples of pixels that are transparent (tRNS of grey and RGB).
    bool has_key;
    uint16_t key[3];
} cpng_meaning;

/// The different colours of all pixels, in order of a palette's indices, else as they come.
///
/// Answers their number; 0 when they are more than `most` (at most 256), or an index is beyond the
/// palette.
int cpng_colors(
    const cpng_image *image, const cpng_meaning *meaning, int most, uint32_t *colors);

/// Makes every pixel of colour `colors[n]` one sample, `values[n]`, of `bit_depth` bits, and the
/// rows grey or palette. All colours are listed, and pixels do not grow.
void cpng_make_indices(
    cpng_image *image, const cpng_meaning *meaning, const uint32_t *colors, const uint8_t *values,
    int count, int bit_depth, int color_type);

/// Copies `bands` bands of `band_rows` rows each, spread evenly from top to bottom, into an image
/// of their own; all rows when the image has no more.
cpng_status cpng_sample(
    const cpng_image *image, uint32_t bands, uint32_t band_rows, cpng_image *sample);

/// An image of 8-bit rows, 1 (grey), 3 (RGB) or 4 (RGB and alpha) channels, with a spare byte each, which it
/// owns from now on.
cpng_image cpng_image_of(
    uint8_t *rows, uint32_t width, uint32_t height, int channels,
    cinterruption *_Nullable interruption);

/// How many of the pixels in every eighth row equal their left neighbour, from 0 to 1. Pixels of
/// less than a byte are compared byte by byte.
double cpng_flatness(const cpng_image *image);

/// How far, on average, the chroma of a pixel of 8-bit RGB is from that of its left and its upper
/// neighbour, in every eighth row, from 0 to 255; chroma being blue and red less green. Of pixels with alpha those count
/// that can be seen. 0 for others.
double cpng_chroma_detail(const cpng_image *image);

/// The version of the libpng that is loaded.
const char *cpng_library_version(void);

/// CRC-32 of PNG section 5.4.
uint32_t cpng_crc(const uint8_t *_Nullable bytes, size_t length);

/// That of all bytes so far, whose checksum is given, and of these; it begins with 0.
uint32_t cpng_crc_continued(
    uint32_t checksum, const uint8_t *_Nullable bytes, size_t length);

#pragma clang assume_nonnull end

#endif
