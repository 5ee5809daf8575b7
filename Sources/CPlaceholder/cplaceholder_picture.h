#ifndef CPLACEHOLDER_PICTURE_H
#define CPLACEHOLDER_PICTURE_H

#include "cplaceholder.h"

/// The longest side of a small picture: the limit of ThumbHash's reference implementation.
#define CPLACEHOLDER_LONGEST_SIDE 100

/// A small picture.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// The size of the original, since the small sides have its proportions only approximately.
    double full_width;
    double full_height;
    /// Red, green, blue and straight alpha, row by row without gaps.
    uint8_t pixels[CPLACEHOLDER_LONGEST_SIDE * CPLACEHOLDER_LONGEST_SIDE][4];
} cplaceholder_picture;

/// Reduces rows to a small picture.
void cplaceholder_reduce(const cplaceholder_rows *rows, cplaceholder_picture *picture);

/// Reduces planes to a small picture.
void cplaceholder_reduce_planes(const cplaceholder_planes *planes, cplaceholder_picture *picture);

/// Writes the ThumbHash, with the number of cosines that the full size's proportions give, and
/// returns its length.
size_t cplaceholder_hash_picture(
    const cplaceholder_picture *picture, uint8_t hash[CPLACEHOLDER_MOST_HASH]);

/// Writes the dominant colour. Returns false where all of the picture is transparent.
bool cplaceholder_colour_of_picture(const cplaceholder_picture *picture, uint8_t colour[3]);

// Wider registers halve the time of loops over pixels; arm64 has only one kind. The clones are
// chosen before a sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#endif
