#include "ccolour_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/// A transform and its parts take some 5 MB, and three times the profile. But the library allocates
/// what a profile announces before it reads the data.
static const size_t most_bytes = 64 << 20;

/// The bytes that the current call of `ccolour_make` has allocated, whether released or not.
static _Thread_local size_t spent;

static void *allocate(cmsContext context, cmsUInt32Number size) {
    (void)context;
    if (size == 0 || size > most_bytes - spent) return NULL;
    spent += size;
    return malloc(size);
}

static void *reallocate(cmsContext context, void *pointer, cmsUInt32Number size) {
    (void)context;
    if (size == 0 || size > most_bytes - spent) return NULL;
    spent += size;
    return realloc(pointer, size);
}

static void release(cmsContext context, void *pointer) {
    (void)context;
    free(pointer);
}

struct ccolour_transform {
    cmsContext context;
    cmsHTRANSFORM transform;
};

/// A copy whose floating-point tables have names that the library does not know.
static uint8_t *copy_without_steps(const uint8_t *profile, size_t length) {
    uint8_t *copy = malloc(length);
    if (copy == NULL) return NULL;
    memcpy(copy, profile, length);
    for (size_t entry = 132; entry + 12 <= length; entry += 12) {
        size_t count = (size_t)profile[130] << 8 | profile[131];
        if ((entry - 132) / 12 >= count) break;
        if (memcmp(copy + entry, "D2B", 3) == 0) memcpy(copy + entry, "none", 4);
    }
    return copy;
}

/// Grey keeps one channel, by a grey profile with sRGB's curve (IEC 61966-2-1).
static cmsHPROFILE make_target(cmsContext context, ccolour_pixels pixels) {
    if (pixels != CCOLOUR_GREY) return ccolour_functions.Create_sRGBProfileTHR(context);
    static const double curve[] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
    static const cmsCIExyY daylight = {0.3127, 0.3290, 1};
    cmsToneCurve *made = ccolour_functions.BuildParametricToneCurve(context, 4, curve);
    if (made == NULL) return NULL;
    cmsHPROFILE profile = ccolour_functions.CreateGrayProfileTHR(context, &daylight, made);
    ccolour_functions.FreeToneCurve(made);
    return profile;
}

static cmsHTRANSFORM make_transform(
    cmsContext context, const uint8_t *profile, size_t length, ccolour_pixels pixels) {
    static const struct { cmsUInt32Number from, to; } formats[] = {
        [CCOLOUR_GREY] = {TYPE_GRAY_8, TYPE_GRAY_8},
        [CCOLOUR_RGB] = {TYPE_RGB_8, TYPE_RGB_8},
        [CCOLOUR_RGBA] = {TYPE_RGBA_8, TYPE_RGBA_8},
        [CCOLOUR_INKS] = {TYPE_CMYK_8_REV, TYPE_RGB_8},
    };
    cmsHPROFILE source =
        ccolour_functions.OpenProfileFromMemTHR(context, profile, (cmsUInt32Number)length);
    cmsHPROFILE target = make_target(context, pixels);
    cmsHTRANSFORM transform = NULL;
    if (source != NULL && target != NULL) {
        transform = ccolour_functions.CreateTransformTHR(
            context, source, formats[pixels].from, target, formats[pixels].to, INTENT_PERCEPTUAL,
            cmsFLAGS_BLACKPOINTCOMPENSATION);
    }
    if (source != NULL) ccolour_functions.CloseProfile(source);
    if (target != NULL) ccolour_functions.CloseProfile(target);
    return transform;
}

ccolour_status ccolour_make(
    const uint8_t *profile, size_t length, ccolour_pixels pixels, ccolour_transform **transform) {
    *transform = NULL;
    if (ccolour_load() != NULL) return CCOLOUR_NO_LIBRARY;
    static const cmsPluginMemHandler plugin = {
        .base = {
            .Magic = cmsPluginMagicNumber, .ExpectedVersion = 2000,
            .Type = cmsPluginMemHandlerSig,
        },
        .MallocPtr = allocate, .FreePtr = release, .ReallocPtr = reallocate,
    };
    // One at a time may take that much.
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    uint8_t *copy = length >= 132 ? copy_without_steps(profile, length) : NULL;
    ccolour_transform *made = calloc(1, sizeof *made);
    spent = 0;
    // A context of its own is silent: it has no handler of errors.
    cmsPluginMemHandler memory = plugin;
    if (copy != NULL && made != NULL) {
        made->context = ccolour_functions.CreateContext(&memory, NULL);
    }
    if (made != NULL && made->context != NULL) {
        made->transform = make_transform(made->context, copy, length, pixels);
    }
    free(copy);
    spent = 0;
    pthread_mutex_unlock(&mutex);
    if (made == NULL || made->transform == NULL) {
        ccolour_free(made);
        return CCOLOUR_BROKEN;
    }
    *transform = made;
    return CCOLOUR_OK;
}

void ccolour_convert(
    const ccolour_transform *transform, const uint8_t *from, uint8_t *to, size_t count) {
    ccolour_functions.DoTransform(transform->transform, from, to, (cmsUInt32Number)count);
}

void ccolour_free(ccolour_transform *transform) {
    if (transform == NULL) return;
    if (transform->transform != NULL) ccolour_functions.DeleteTransform(transform->transform);
    if (transform->context != NULL) ccolour_functions.DeleteContext(transform->context);
    free(transform);
}
