#ifndef CPLACEHOLDER_PICTURE_H
#define CPLACEHOLDER_PICTURE_H

#include "cplaceholder.h"

/// Pictures of at most so many pixels a side are taken as they are.
#define CPLACEHOLDER_MOST_SIDE 48
/// The longer side of larger ones in small.
#define CPLACEHOLDER_REDUCED_SIDE 32
/// The shorter side has as many pixels as it has where the longer one has 100, up to so many: three cosines want three.
#define CPLACEHOLDER_SHORT_SIDE 8
/// The longest side of a picture in small: what the reference makes a hash of.
#define CPLACEHOLDER_LONGEST_SIDE 100
/// The most bytes from a row to the next.
#define CPLACEHOLDER_MOST_STRIDE 112

/// A picture in small, in planes of red, green, blue and straight alpha.
///
/// What is behind a row, up to the stride, is 0 in all planes, so that loops may take whole registers and count
/// pixels by their alpha.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// Bytes from a row to the next, a multiple of 16.
    uint32_t stride;
    /// Whether no pixel is transparent in the least.
    bool is_opaque;
    /// Of the picture that it was made of: what is reduced has the proportions of it only nearly.
    double full_width;
    double full_height;
    uint8_t planes[4][CPLACEHOLDER_LONGEST_SIDE * CPLACEHOLDER_MOST_STRIDE];
} cplaceholder_picture;

/// Sets the size of a picture, of which nothing else is known yet, and clears what is behind the rows.
void cplaceholder_begin(cplaceholder_picture *picture, uint32_t width, uint32_t height);

/// Makes the picture in small.
void cplaceholder_reduce(const cplaceholder_rows *rows, cplaceholder_picture *picture);

/// The same of planes.
void cplaceholder_reduce_planes(const cplaceholder_planes *planes, cplaceholder_picture *picture);

/// Turns a picture as EXIF's orientation says, 1 to 8.
void cplaceholder_turn(cplaceholder_picture *picture, int orientation);

/// As `cplaceholder_thumbhash`, with as many cosines as pictures of the full size's proportions have.
size_t cplaceholder_hash_picture(const cplaceholder_picture *picture, uint8_t hash[CPLACEHOLDER_MOST_HASH]);

/// As `cplaceholder_colour`.
bool cplaceholder_colour_of_picture(const cplaceholder_picture *picture, uint8_t colour[3]);

// Wider registers halve the time of loops over pixels; arm64 has but one kind. The clones are chosen before a
// sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#endif
