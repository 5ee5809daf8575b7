#include "cpixels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Only sums, products, quotients and their rounding, so every processor computes the same.
#pragma STDC FP_CONTRACT OFF

enum {
    /// Light ranges up to 1 << LIGHT_BITS. Two tables encode it: one for each step of dark light,
    /// where the curve is steep, one for every 64th of the rest.
    LIGHT_BITS = 22,
    DARK_BITS = 16,
    REST_SHIFT = 6,
    DARK = 1 << DARK_BITS,
    REST = (1 << (LIGHT_BITS - REST_SHIFT)) + 1,
    FACTOR_BITS = 20,
};

/// The natural logarithm for above 0 up to 1: by the series of the inverse hyperbolic tangent.
static double logarithm(double x) {
    static const double of_two = 0.69314718055994530942;
    double shift = 0, sum = 0;
    for (; x < 0.7; x *= 2) shift -= of_two;
    double term = (x - 1) / (x + 1), square = term * term;
    for (int k = 1; k < 30; k += 2, term *= square) sum += term / k;
    return shift + 2 * sum;
}

/// e to the power `x`, for 0 and below: by its series near 0, then by squaring.
static double exponential(double x) {
    // Less than half a step of light.
    if (x < -40) return 0;
    int squarings = 0;
    for (; x < -0.5; x /= 2) squarings++;
    double sum = 1, term = 1;
    for (int k = 1; k < 16; k++) sum += term *= x / k;
    for (; squarings > 0; squarings--) sum *= sum;
    return sum;
}

/// `x` to a power above 0, for 0 to 1.
static double power(double x, double exponent) {
    return x <= 0 ? 0 : x >= 1 ? 1 : exponential(exponent * logarithm(x));
}

/// Returns the light of a sample, both from 0 to 1.
static double light_of(double sample, cpixels_curve curve) {
    switch (curve.kind) {
    case CPIXELS_CURVE_POWER: return power(sample, curve.exponent);
    // SMPTE ST 240 (ITU-T H.273, transfer characteristics 7).
    case CPIXELS_CURVE_240M:
        return sample < 4 * 0.0228 ? sample / 4 : power((sample + 0.1115) / 1.1115, 20.0 / 9);
    // IEC 61966-2-1, section 5.2.
    case CPIXELS_CURVE_SRGB: break;
    }
    return sample <= 0.04045 ? sample / 12.92 : power((sample + 0.055) / 1.055, 2.4);
}

typedef struct { double m[3][3]; } matrix;

static matrix product(matrix a, matrix b) {
    matrix result;
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) {
            result.m[row][column] = a.m[row][0] * b.m[0][column] + a.m[row][1] * b.m[1][column]
                + a.m[row][2] * b.m[2][column];
        }
    }
    return result;
}

static matrix inverse(matrix a) {
    matrix result;
    double determinant = 0;
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) {
            // From the transposed matrix; cyclic indices supply the signs.
            int r1 = (column + 1) % 3, r2 = (column + 2) % 3, c1 = (row + 1) % 3, c2 = (row + 2) % 3;
            result.m[row][column] = a.m[r1][c1] * a.m[r2][c2] - a.m[r1][c2] * a.m[r2][c1];
        }
    }
    for (int column = 0; column < 3; column++) determinant += a.m[0][column] * result.m[column][0];
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) result.m[row][column] /= determinant;
    }
    return result;
}

/// A colour of luminance 1 by its chromaticity.
static void xyz_of(const double xy[2], double xyz[3]) {
    xyz[0] = xy[0] / xy[1];
    xyz[1] = 1;
    xyz[2] = (1 - xy[0] - xy[1]) / xy[1];
}

static void applied(matrix a, const double from[3], double to[3]) {
    for (int row = 0; row < 3; row++) {
        to[row] = a.m[row][0] * from[0] + a.m[row][1] * from[1] + a.m[row][2] * from[2];
    }
}

/// Converts light of these primaries to CIE XYZ, with luminance 1 for white (SMPTE RP 177).
static matrix to_xyz(const cpixels_primaries *primaries) {
    matrix columns;
    const double *each[] = {primaries->red, primaries->green, primaries->blue};
    for (int column = 0; column < 3; column++) {
        double xyz[3];
        xyz_of(each[column], xyz);
        for (int row = 0; row < 3; row++) columns.m[row][column] = xyz[row];
    }
    double white[3], amounts[3];
    xyz_of(primaries->white, white);
    applied(inverse(columns), white, amounts);
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) columns.m[row][column] *= amounts[column];
    }
    return columns;
}

/// Converts colours under one white to ones of equal appearance under another (Bradford;
/// ICC.1:2022, annex E).
static matrix adaptation(const double from[2], const double to[2]) {
    static const matrix cones = {
        {{0.8951, 0.2664, -0.1614}, {-0.7502, 1.7135, 0.0367}, {0.0389, -0.0685, 1.0296}}};
    double white[3], before[3], after[3];
    xyz_of(from, white);
    applied(cones, white, before);
    xyz_of(to, white);
    applied(cones, white, after);
    matrix scaled = cones;
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) scaled.m[row][column] *= after[row] / before[row];
    }
    return product(inverse(cones), scaled);
}

static const cpixels_primaries srgb = {
    .red = {0.64, 0.33}, .green = {0.30, 0.60}, .blue = {0.15, 0.06}, .white = {0.3127, 0.3290}};

static const cpixels_curve srgb_curve = {.kind = CPIXELS_CURVE_SRGB};

static int32_t rounded(double value) { return (int32_t)(value < 0 ? value - 0.5 : value + 0.5); }

/// In units of 1 << FACTOR_BITS; each row's sum is exactly 1, so grey stays grey.
static void make_factors(const cpixels_primaries *from, int32_t factors[3][3]) {
    matrix whole = product(
        inverse(to_xyz(&srgb)), product(adaptation(from->white, srgb.white), to_xyz(from)));
    for (int row = 0; row < 3; row++) {
        int32_t rest = 1 << FACTOR_BITS;
        for (int column = 0; column < 3; column++) {
            factors[row][column] = rounded(whole.m[row][column] * (1 << FACTOR_BITS));
            rest -= factors[row][column];
        }
        factors[row][row] += rest;
    }
}

/// Returns the light at which sRGB's encoding switches to `sample` from the one below.
static uint32_t threshold(uint32_t sample, uint32_t most) {
    double between = (sample - 0.5) / most;
    return (uint32_t)(light_of(between, srgb_curve) * (1 << LIGHT_BITS) + 0.5);
}

typedef struct {
    int32_t factors[3][3];
    uint32_t *light;
    uint16_t *dark;
    uint16_t *rest;
} conversion;

/// A walk over ascending light: the sRGB sample of the last step, and the light of the next sample.
typedef struct {
    uint32_t sample, most, next;
} sample_walk;

static uint16_t sample_of(sample_walk *walk, uint32_t light) {
    while (walk->sample < walk->most && light >= walk->next) {
        walk->sample++;
        if (walk->sample < walk->most) walk->next = threshold(walk->sample + 1, walk->most);
    }
    return (uint16_t)walk->sample;
}

/// Fills in the light of each sample by the curve, and the sRGB sample for each step of light.
/// Returns false without memory. `free_tables` must follow.
static bool make_tables(conversion *by, int bit_depth, cpixels_curve curve) {
    uint32_t most = (1u << bit_depth) - 1;
    by->light = malloc(((size_t)most + 1) * sizeof *by->light);
    by->dark = malloc(DARK * sizeof *by->dark);
    by->rest = malloc(REST * sizeof *by->rest);
    if (by->light == NULL || by->dark == NULL || by->rest == NULL) return false;
    for (uint32_t sample = 0; sample <= most; sample++) {
        by->light[sample] =
            (uint32_t)(light_of((double)sample / most, curve) * (1 << LIGHT_BITS) + 0.5);
    }
    sample_walk walk = {0, most, threshold(1, most)};
    for (uint32_t light = 0; light < DARK; light++) by->dark[light] = sample_of(&walk, light);
    for (uint32_t place = DARK >> REST_SHIFT; place < REST; place++) {
        // The middle of the steps that the entry represents.
        by->rest[place] = sample_of(&walk, (place << REST_SHIFT) + (1 << REST_SHIFT) / 2);
    }
    return true;
}

static void free_tables(conversion *by) {
    free(by->light);
    free(by->dark);
    free(by->rest);
}

static inline __attribute__((always_inline)) unsigned encoded(const conversion *by, uint64_t light) {
    if (light < DARK) return by->dark[light];
    return by->rest[light >> REST_SHIFT < REST ? light >> REST_SHIFT : REST - 1];
}

static inline __attribute__((always_inline)) unsigned converted(
    const conversion *by, int row, uint32_t red, uint32_t green, uint32_t blue) {
    int64_t sum = (int64_t)by->factors[row][0] * red + (int64_t)by->factors[row][1] * green
        + (int64_t)by->factors[row][2] * blue + (1 << (FACTOR_BITS - 1));
    return sum < 0 ? 0 : encoded(by, (uint64_t)sum >> FACTOR_BITS);
}

static inline __attribute__((always_inline)) unsigned sample_at(const uint8_t *bytes, int bit_depth) {
    return bit_depth == 8 ? bytes[0] : (unsigned)bytes[0] << 8 | bytes[1];
}

static inline __attribute__((always_inline)) void write_sample(
    uint8_t *bytes, int bit_depth, unsigned sample) {
    if (bit_depth == 16) *bytes++ = (uint8_t)(sample >> 8);
    *bytes = (uint8_t)sample;
}

static inline __attribute__((always_inline)) void convert_row(
    uint8_t *pixel, uint32_t width, int channels, int bit_depth, const conversion *by) {
    int bytes = bit_depth / 8;
    for (uint32_t x = 0; x < width; x++, pixel += channels * bytes) {
        uint32_t red = by->light[sample_at(pixel, bit_depth)];
        // Every white becomes sRGB's, so grey needs no factors.
        if (channels < 3) {
            write_sample(pixel, bit_depth, encoded(by, red));
            continue;
        }
        uint32_t green = by->light[sample_at(pixel + bytes, bit_depth)];
        uint32_t blue = by->light[sample_at(pixel + 2 * bytes, bit_depth)];
        for (int row = 0; row < 3; row++) {
            write_sample(pixel + row * bytes, bit_depth, converted(by, row, red, green, blue));
        }
    }
}

ccodec_status cpixels_convert_to_srgb(
    const ccodec_picture *picture, int bit_depth, const cpixels_primaries *primaries,
    cpixels_curve curve, cinterruption *interruption) {
    conversion by;
    ccodec_status status =
        make_tables(&by, bit_depth, curve) ? CCODEC_OK : CCODEC_OUT_OF_MEMORY;
    make_factors(primaries, by.factors);
    for (uint32_t y = 0; status == CCODEC_OK && y < picture->height; y++) {
        if (cinterruption_after(interruption, (size_t)picture->width * (size_t)picture->channels)) {
            status = CCODEC_INTERRUPTED;
            break;
        }
        uint8_t *row = picture->pixels + (size_t)y * picture->stride;
        if (bit_depth == 8) {
            convert_row(row, picture->width, picture->channels, 8, &by);
        } else {
            convert_row(row, picture->width, picture->channels, 16, &by);
        }
    }
    free_tables(&by);
    return status;
}

/// ITU-R BT.709, section 3.2, in units of 1 << FACTOR_BITS. The sum is exactly 1.
static const int32_t luminance[3] = {222927, 749942, 75707};

ccodec_status cpixels_make_grey(const ccodec_picture *picture, cinterruption *interruption) {
    conversion by;
    ccodec_status status = make_tables(&by, 8, srgb_curve) ? CCODEC_OK : CCODEC_OUT_OF_MEMORY;
    memcpy(by.factors[0], luminance, sizeof luminance);
    for (uint32_t y = 0; status == CCODEC_OK && y < picture->height; y++) {
        if (cinterruption_after(interruption, (size_t)picture->width * (size_t)picture->channels)) {
            status = CCODEC_INTERRUPTED;
            break;
        }
        uint8_t *pixel = picture->pixels + (size_t)y * picture->stride;
        const uint32_t *light = by.light;
        for (uint32_t x = 0; x < picture->width; x++, pixel += picture->channels) {
            memset(
                pixel, (int)converted(&by, 0, light[pixel[0]], light[pixel[1]], light[pixel[2]]), 3);
        }
    }
    free_tables(&by);
    return status;
}
