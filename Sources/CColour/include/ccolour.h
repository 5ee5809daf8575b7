/// The boundary to Little CMS (2.14): from the samples of an ICC profile to sRGB.
///
/// The library is loaded on first use. No function keeps other state; all may run on several
/// threads.
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef enum {
    CCOLOUR_OK = 0,
    /// The library makes nothing of the profile.
    CCOLOUR_BROKEN,
    /// Little CMS cannot be loaded; `ccolour_load` says why.
    CCOLOUR_NO_LIBRARY,
} ccolour_status;

/// Loads Little CMS, once in a process; the functions below call it automatically.
///
/// Returns NULL, or the reason for a failure: one line that names the missing library.
const char *_Nullable ccolour_load(void);

/// The loaded version, as 1000 × major + 10 × minor; 0 if it cannot be loaded.
int ccolour_library_version(void);

/// The kinds of pixels. "Deep" samples have 16 bits, big-endian, the others 8.
typedef enum {
    /// Grey, or equal red, green and blue; converted to samples with sRGB's curve. The last of 2 or
    /// 4 channels is kept.
    CCOLOUR_GREY,
    CCOLOUR_DEEP_GREY,
    /// Red, green, blue; a fourth channel is kept.
    CCOLOUR_RGB,
    CCOLOUR_DEEP_RGB,
    /// Cyan, magenta, yellow, black; 255 is no ink. Converted to red, green and blue.
    CCOLOUR_INKS,
} ccolour_pixels;

/// The code that converts pixels. All give the same bytes.
typedef enum {
    CCOLOUR_FASTEST,
    CCOLOUR_PORTABLE,
} ccolour_path;

typedef struct ccolour_transform ccolour_transform;

/// Makes the transform from a profile to sRGB: perceptual intent, with black point compensation.
///
/// Takes some 20 milliseconds for inks, and at most 64 MiB.
///
/// - `profile`: its size, its tags and its colour space were checked. Floating-point tables (`D2B0`
///   and similar) are ignored, since any number of steps may follow each other in them; a profile
///   also has others (ICC.1:2022, section 8.4.1).
/// - `transform`: for the caller to release with `ccolour_free`; NULL on failure.
ccolour_status ccolour_make(
    const uint8_t *profile, size_t length, ccolour_pixels pixels,
    ccolour_transform *_Nullable *_Nonnull transform);

/// Converts a row. Pixels of equal size may be converted in place.
///
/// 8-bit inks and RGB are interpolated in a table of the library's results. RGB differs from those
/// by at most 2 of 255; a profile for which it would differ by more is converted by the library.
///
/// - `channels`: of the pixels in `from`.
void ccolour_convert(
    const ccolour_transform *transform, ccolour_path path, int channels, const uint8_t *from,
    uint8_t *to, size_t count);

void ccolour_free(ccolour_transform *_Nullable transform);

#pragma clang assume_nonnull end
