#ifndef CPLACEHOLDER_PICTURE_H
#define CPLACEHOLDER_PICTURE_H

#include "cplaceholder.h"

/// Pictures of at most so many pixels a side are taken as they are.
#define CPLACEHOLDER_MOST_SIDE 48
/// The longer side of larger ones in small.
#define CPLACEHOLDER_REDUCED_SIDE 32
/// The shorter side has as many pixels as it has where the longer one has 100, up to so many: three cosines want three.
#define CPLACEHOLDER_SHORT_SIDE 8

/// Rows from the top without gaps, red, green, blue and straight alpha of 8 bits a pixel.
typedef struct {
    uint32_t width;
    uint32_t height;
    /// Of the picture that it was made of: what is reduced has the proportions of it only nearly.
    double full_width;
    double full_height;
    uint8_t pixels[CPLACEHOLDER_MOST_SIDE * CPLACEHOLDER_MOST_SIDE * 4];
} cplaceholder_picture;

/// Makes the picture in small.
void cplaceholder_reduce(const cplaceholder_rows *rows, cplaceholder_picture *picture);

/// Turns a picture as EXIF's orientation says, 1 to 8.
void cplaceholder_turn(cplaceholder_picture *picture, int orientation);

/// As `cplaceholder_thumbhash`, with as many cosines as pictures of these proportions have.
size_t cplaceholder_hash_picture(
    const uint8_t *rgba, uint32_t width, uint32_t height, double full_width, double full_height,
    uint8_t hash[CPLACEHOLDER_MOST_HASH]);

#endif
