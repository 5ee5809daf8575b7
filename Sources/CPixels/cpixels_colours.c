#include "cpixels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Only sums, products, quotients, square roots and their rounding, so every processor computes the
// same.
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

/// The light of a sample by the perceptual quantiser, 1 for 10,000 cd/m² (SMPTE ST 2084; ITU-R
/// BT.2100, table 4).
static double pq_light_of(double sample) {
    double root = power(sample, 32 / 2523.0);
    double light = root - 107 / 128.0;
    return light <= 0 ? 0 : power(light / (2413 / 128.0 - 2392 / 128.0 * root), 16384 / 2610.0);
}

/// The scene's light of a sample by hybrid log-gamma (ITU-R BT.2100, table 5).
static double hlg_light_of(double sample) {
    static const double a = 0.17883277, b = 0.28466892, c = 0.55991073;
    if (sample <= 0.5) return sample * sample / 3;
    // The exponents are at most 0.
    double most = (1 - c) / a;
    return (exponential((sample - 1) / a) / exponential(-most) + b) / 12;
}

/// Returns the light of a sample, both from 0 to 1.
static double light_of(double sample, cpixels_curve curve) {
    switch (curve.kind) {
    case CPIXELS_CURVE_POWER: return power(sample, curve.exponent);
    // SMPTE ST 240 (ITU-T H.273, transfer characteristics 7).
    case CPIXELS_CURVE_240M:
        return sample < 4 * 0.0228 ? sample / 4 : power((sample + 0.1115) / 1.1115, 20.0 / 9);
    case CPIXELS_CURVE_PQ: return pq_light_of(sample);
    case CPIXELS_CURVE_HLG: return hlg_light_of(sample);
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

/// Converts light of these primaries to that of others, adapted to their white.
static matrix between(const cpixels_primaries *from, const cpixels_primaries *to) {
    return product(inverse(to_xyz(to)), product(adaptation(from->white, to->white), to_xyz(from)));
}

/// In units of 1 << FACTOR_BITS; each row's sum is exactly 1, so grey stays grey.
static void make_factors(const cpixels_primaries *from, int32_t factors[3][3]) {
    matrix whole = between(from, &srgb);
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

/// Fills in the sRGB sample for each step of light. Returns false without memory. `free_tables`
/// must follow, as after `make_tables`.
static bool make_samples(conversion *by, uint32_t most) {
    by->dark = malloc(DARK * sizeof *by->dark);
    by->rest = malloc(REST * sizeof *by->rest);
    if (by->dark == NULL || by->rest == NULL) return false;
    sample_walk walk = {0, most, threshold(1, most)};
    for (uint32_t light = 0; light < DARK; light++) by->dark[light] = sample_of(&walk, light);
    for (uint32_t place = DARK >> REST_SHIFT; place < REST; place++) {
        // The middle of the steps that the entry represents.
        by->rest[place] = sample_of(&walk, (place << REST_SHIFT) + (1 << REST_SHIFT) / 2);
    }
    return true;
}

/// Fills in the light of each sample by the curve as well.
static bool make_tables(conversion *by, int bit_depth, cpixels_curve curve) {
    uint32_t most = (1u << bit_depth) - 1;
    by->light = malloc(((size_t)most + 1) * sizeof *by->light);
    if (!make_samples(by, most) || by->light == NULL) return false;
    for (uint32_t sample = 0; sample <= most; sample++) {
        by->light[sample] =
            (uint32_t)(light_of((double)sample / most, curve) * (1 << LIGHT_BITS) + 0.5);
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
    conversion by = {0};
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

// MARK: High dynamic range

static const cpixels_primaries wide = {
    .red = {0.708, 0.292}, .green = {0.170, 0.797}, .blue = {0.131, 0.046},
    .white = {0.3127, 0.3290}};

enum { ROOTS = 4096 };

/// The reference white in cd/m², the unit of the light that is mapped.
static const double reference_white = 203;

/// The operator's parabola of the light above the reference white: from (1, `white`) for `t` = 0 to
/// (`peak`, 1) for `t` = 1, light being 1 + `t` (`x[0]` + `t` `x[1]`), the result
/// `white` + `t` (`y[0]` + `t` `y[1]`).
typedef struct {
    float peak, white, x[2], y[2];
} tone_curve;

/// SMPTE ST 2094-50, reference white tone mapping operator, for a screen without headroom.
static tone_curve tone_curve_of(double peak) {
    peak = peak < 64 * reference_white ? peak / reference_white : 64;
    // Nothing is above the reference white, or it is clipped like colours outside sRGB.
    if (peak <= 1) return (tone_curve){.white = 1};
    double share = logarithm(1 / peak) / logarithm(reference_white / 1000);
    double white = share < 1 ? 1 - 0.5 * share : 0.5;
    // The middle control point lies at this share of the way to the corner.
    static const double sharpness = 0.65;
    double x = 1 + sharpness * (1 / white - 1), y = white + sharpness * (1 - white);
    return (tone_curve){
        .peak = (float)peak,
        .white = (float)white,
        .x = {(float)(2 * x - 2), (float)(1 - 2 * x + peak)},
        .y = {(float)(2 * y - 2 * white), (float)(white - 2 * y + 1)},
    };
}

static inline float square_root(float x) { return __builtin_sqrtf(x); }

/// The factor for a colour by the light of its brightest component.
static inline float tone_factor(const tone_curve *curve, float light) {
    if (light <= 1 || curve->white == 1) return curve->white;
    if (light >= curve->peak) return 1 / light;
    float b = curve->x[0], a = curve->x[1];
    float t = (square_root(b * b + 4 * a * (light - 1)) - b) / (2 * a);
    return (curve->white + t * (curve->y[0] + t * curve->y[1])) / light;
}

typedef struct {
    conversion samples;
    tone_curve curve;
    float to_wide[3][3];
    float to_srgb[3][3];
    /// The weights of luminance (ITU-R BT.2100, table 5) for the source's primaries.
    float luminance[3];
    /// The light of each sample; 1 for the reference white.
    float *light;
    /// HLG's factor of system gamma, luminance to the power of 0.2, at each square root of
    /// luminance. PQ has none: null.
    float *gamma;
    /// The light for which luminance is 1.
    float brightest;
} tone_mapping;

static void narrow(matrix from, float to[3][3]) {
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 3; column++) to[row][column] = (float)from.m[row][column];
    }
}

/// Returns false without memory. `free_tone_mapping` must follow.
static bool make_tone_mapping(
    tone_mapping *by, int bit_depth, const cpixels_primaries *primaries, cpixels_curve curve,
    double peak) {
    uint32_t most = (1u << bit_depth) - 1;
    bool is_hlg = curve.kind == CPIXELS_CURVE_HLG;
    memset(by, 0, sizeof *by);
    by->light = malloc(((size_t)most + 1) * sizeof *by->light);
    if (is_hlg) by->gamma = malloc((ROOTS + 2) * sizeof *by->gamma);
    if (!make_samples(&by->samples, most) || by->light == NULL || (is_hlg && by->gamma == NULL)) {
        return false;
    }
    by->brightest = (float)((is_hlg ? 1000 : 10000) / reference_white);
    for (uint32_t sample = 0; sample <= most; sample++) {
        by->light[sample] = (float)light_of((double)sample / most, curve) * by->brightest;
    }
    for (int root = 0; is_hlg && root < ROOTS + 2; root++) {
        by->gamma[root] = (float)power((double)root / ROOTS, 0.4);
    }
    matrix to_wide = between(primaries, &wide);
    narrow(to_wide, by->to_wide);
    narrow(between(&wide, &srgb), by->to_srgb);
    static const double weights[3] = {0.2627, 0.6780, 0.0593};
    for (int column = 0; column < 3; column++) {
        double weight = 0;
        for (int row = 0; row < 3; row++) weight += weights[row] * to_wide.m[row][column];
        by->luminance[column] = (float)weight;
    }
    by->curve = tone_curve_of(peak);
    return true;
}

static void free_tone_mapping(tone_mapping *by) {
    free_tables(&by->samples);
    free(by->light);
    free(by->gamma);
}

/// HLG's factor from the scene's light to that of the screen.
static inline float system_gamma(const tone_mapping *by, float luminance) {
    if (by->gamma == NULL) return 1;
    float share = luminance / by->brightest;
    float place = square_root(share < 0 ? 0 : share > 1 ? 1 : share) * ROOTS;
    int below = (int)place;
    return by->gamma[below] + (by->gamma[below + 1] - by->gamma[below]) * (place - (float)below);
}

static inline unsigned encoded_light(const tone_mapping *by, float light) {
    if (!(light > 0)) return 0;
    return encoded(
        &by->samples, light >= 1 ? 1 << LIGHT_BITS : (uint64_t)(light * (1 << LIGHT_BITS) + 0.5f));
}

static inline void tone_map_pixel(
    const tone_mapping *by, const float light[3], unsigned mapped[3]) {
    float wide_light[3], brightest = 0;
    float gamma = system_gamma(
        by, by->luminance[0] * light[0] + by->luminance[1] * light[1] + by->luminance[2] * light[2]);
    for (int row = 0; row < 3; row++) {
        const float *factors = by->to_wide[row];
        wide_light[row] =
            (factors[0] * light[0] + factors[1] * light[1] + factors[2] * light[2]) * gamma;
        if (wide_light[row] > brightest) brightest = wide_light[row];
    }
    float factor = tone_factor(&by->curve, brightest);
    for (int row = 0; row < 3; row++) {
        const float *factors = by->to_srgb[row];
        mapped[row] = encoded_light(
            by, (factors[0] * wide_light[0] + factors[1] * wide_light[1] + factors[2] * wide_light[2])
                    * factor);
    }
}

static void tone_map_row(
    uint8_t *pixel, uint32_t width, int channels, int bit_depth, const tone_mapping *by) {
    int bytes = bit_depth / 8, colours = channels < 3 ? 1 : 3;
    for (uint32_t x = 0; x < width; x++, pixel += channels * bytes) {
        float light[3];
        for (int colour = 0; colour < colours; colour++) {
            light[colour] = by->light[sample_at(pixel + colour * bytes, bit_depth)];
        }
        unsigned mapped[3];
        if (colours == 1 || (light[0] == light[1] && light[1] == light[2])) {
            // Without the rounding of factors, so grey stays grey.
            float grey = light[0] * system_gamma(by, light[0]);
            mapped[0] = encoded_light(by, grey * tone_factor(&by->curve, grey));
            mapped[1] = mapped[2] = mapped[0];
        } else {
            tone_map_pixel(by, light, mapped);
        }
        for (int colour = 0; colour < colours; colour++) {
            write_sample(pixel + colour * bytes, bit_depth, mapped[colour]);
        }
    }
}

ccodec_status cpixels_tone_map_to_srgb(
    const ccodec_picture *picture, int bit_depth, const cpixels_primaries *primaries,
    cpixels_curve curve, double peak, cinterruption *interruption) {
    tone_mapping by;
    ccodec_status status = make_tone_mapping(&by, bit_depth, primaries, curve, peak)
        ? CCODEC_OK
        : CCODEC_OUT_OF_MEMORY;
    for (uint32_t y = 0; status == CCODEC_OK && y < picture->height; y++) {
        if (cinterruption_after(interruption, (size_t)picture->width * (size_t)picture->channels)) {
            status = CCODEC_INTERRUPTED;
            break;
        }
        uint8_t *row = picture->pixels + (size_t)y * picture->stride;
        tone_map_row(row, picture->width, picture->channels, bit_depth, &by);
    }
    free_tone_mapping(&by);
    return status;
}

/// ITU-R BT.709, section 3.2, in units of 1 << FACTOR_BITS. The sum is exactly 1.
static const int32_t luminance[3] = {222927, 749942, 75707};

ccodec_status cpixels_make_grey(const ccodec_picture *picture, cinterruption *interruption) {
    conversion by = {0};
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
