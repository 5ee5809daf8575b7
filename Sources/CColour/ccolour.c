#include "ccolour_kernels.h"
#include "ccolour_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/// The most memory for making a transform. Usually it takes about 5 MB and three times the profile.
/// But the library allocates the sizes that a profile states before it reads the data.
static const size_t most_bytes = 64 << 20;

/// The bytes that the current call of `ccolour_make` has allocated, whether released or not.
static _Thread_local size_t spent;

static void *allocate(cmsContext context, cmsUInt32Number size) {
    if (size == 0 || size > most_bytes - spent) return NULL;
    spent += size;
    return malloc(size);
}

static void *reallocate(cmsContext context, void *pointer, cmsUInt32Number size) {
    if (size == 0 || size > most_bytes - spent) return NULL;
    spent += size;
    return realloc(pointer, size);
}

static void release(cmsContext context, void *pointer) {
    free(pointer);
}

// MARK: - Tables

/// At most one member is set.
typedef struct {
    /// The sample for each of 256.
    uint8_t *_Nullable grey;
    /// The same for each of 65536, big-endian.
    uint8_t (*_Nullable deep_grey)[2];
    ccolour_node *_Nullable nodes;
    ccolour_sums *_Nullable sums;
} ccolour_table;

static const cmsUInt32Number exact = cmsFLAGS_NOOPTIMIZE | cmsFLAGS_NOCACHE;

/// IEC 61966-2-1, in the order of the library's fourth kind of curve.
static const double curve_of_srgb[] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
static const cmsCIExyY white_of_srgb = {0.3127, 0.3290, 1};

/// Whether the profile shows sample 0 lighter than mid-grey, for instance a negative's profile. Up
/// to 2.14 the library takes such a black for mid-grey, and shadows lose their detail.
static bool has_light_black(cmsContext context, cmsHPROFILE source, cmsUInt32Number from) {
    if (T_COLORSPACE(from) == PT_CMYK) return false;
    cmsHPROFILE target = ccolour_functions.Create_sRGBProfileTHR(context);
    if (target == NULL) return false;
    cmsHTRANSFORM transform = ccolour_functions.CreateTransformTHR(
        context, source, T_COLORSPACE(from) == PT_GRAY ? TYPE_GRAY_8 : TYPE_RGB_8, target,
        TYPE_RGB_8, INTENT_RELATIVE_COLORIMETRIC, cmsFLAGS_NOCACHE);
    ccolour_functions.CloseProfile(target);
    if (transform == NULL) return false;
    // L* 50 is sample 119 of sRGB.
    uint8_t black[3] = {0, 0, 0}, shown[3] = {0, 0, 0};
    ccolour_functions.DoTransform(transform, black, shown, 1);
    ccolour_functions.DeleteTransform(transform);
    return shown[1] > 119;
}

static cmsHTRANSFORM make_transform(
    cmsContext context, cmsHPROFILE source, cmsUInt32Number from, cmsHPROFILE target,
    cmsUInt32Number to, cmsUInt32Number flags) {
    if (target == NULL) return NULL;
    bool is_light = has_light_black(context, source, from);
    // The perceptual intent compensates whatever the flags say.
    cmsHTRANSFORM transform = ccolour_functions.CreateTransformTHR(
        context, source, from, target, to,
        is_light ? INTENT_RELATIVE_COLORIMETRIC : INTENT_PERCEPTUAL,
        is_light ? flags : cmsFLAGS_BLACKPOINTCOMPENSATION | flags);
    ccolour_functions.CloseProfile(target);
    return transform;
}

static cmsHTRANSFORM make_srgb(
    cmsContext context, cmsHPROFILE source, cmsUInt32Number from, cmsUInt32Number to,
    cmsUInt32Number flags) {
    return make_transform(
        context, source, from, ccolour_functions.Create_sRGBProfileTHR(context), to, flags);
}

// MARK: grey

/// Grey keeps one channel, by a grey profile with sRGB's curve.
static cmsHPROFILE make_grey_target(cmsContext context) {
    cmsToneCurve *curve =
        ccolour_functions.BuildParametricToneCurve(context, 4, curve_of_srgb);
    if (curve == NULL) return NULL;
    cmsHPROFILE profile = ccolour_functions.CreateGrayProfileTHR(context, &white_of_srgb, curve);
    ccolour_functions.FreeToneCurve(curve);
    return profile;
}

static ccolour_status make_grey(cmsContext context, cmsHPROFILE source, ccolour_table *table) {
    cmsHTRANSFORM transform = make_transform(
        context, source, TYPE_GRAY_8, make_grey_target(context), TYPE_GRAY_8, 0);
    if (transform == NULL) return CCOLOUR_BROKEN;
    table->grey = malloc(256);
    for (int sample = 0; table->grey != NULL && sample < 256; sample++) {
        table->grey[sample] = (uint8_t)sample;
    }
    if (table->grey != NULL) {
        ccolour_functions.DoTransform(transform, table->grey, table->grey, 256);
    }
    ccolour_functions.DeleteTransform(transform);
    return table->grey != NULL ? CCOLOUR_OK : CCOLOUR_BROKEN;
}

static ccolour_status make_deep_grey(cmsContext context, cmsHPROFILE source, ccolour_table *table) {
    enum { COUNT = 1 << 16 };
    cmsHTRANSFORM transform = make_transform(
        context, source, TYPE_GRAY_16_SE, make_grey_target(context), TYPE_GRAY_16_SE, exact);
    if (transform == NULL) return CCOLOUR_BROKEN;
    table->deep_grey = malloc(COUNT * sizeof *table->deep_grey);
    for (int sample = 0; table->deep_grey != NULL && sample < COUNT; sample++) {
        table->deep_grey[sample][0] = (uint8_t)(sample >> 8);
        table->deep_grey[sample][1] = (uint8_t)sample;
    }
    if (table->deep_grey != NULL) {
        ccolour_functions.DoTransform(transform, table->deep_grey, table->deep_grey, COUNT);
    }
    ccolour_functions.DeleteTransform(transform);
    return table->deep_grey != NULL ? CCOLOUR_OK : CCOLOUR_BROKEN;
}

// MARK: grids

/// The position of a node, as 16 bits.
static uint16_t place(int node, int nodes) {
    return (uint16_t)((node * 65535 + (nodes - 1) / 2) / (nodes - 1));
}

static int8_t node_value(uint16_t sample) {
    return (int8_t)((sample + 128) / 257 - 128);
}

static ccolour_status make_inks(cmsContext context, cmsHPROFILE source, ccolour_table *table) {
    enum { N = CCOLOUR_INK_NODES, PLANE = N * N * N };
    cmsHTRANSFORM transform =
        make_srgb(context, source, TYPE_CMYK_16_REV, TYPE_RGB_16, exact);
    if (transform == NULL) return CCOLOUR_BROKEN;
    table->nodes = malloc(CCOLOUR_ALL_INK_NODES * sizeof *table->nodes);
    uint16_t from[N][4], to[N][3];
    for (int row = 0; table->nodes != NULL && row < N * N * N; row++) {
        int cyan = row / (N * N);
        for (int black = 0; black < N; black++) {
            from[black][0] = place(cyan, N);
            from[black][1] = place(row / N % N, N);
            from[black][2] = place(row % N, N);
            from[black][3] = place(black, N);
        }
        ccolour_functions.DoTransform(transform, from, to, N);
        for (int black = 0; black < N; black++) {
            ccolour_node *node = table->nodes + (row * N + black);
            for (int channel = 0; channel < 3; channel++) {
                int8_t value = node_value(to[black][channel]);
                if (cyan < N - 1) node[0][2 * channel] = value;
                if (cyan > 0) node[-PLANE][2 * channel + 1] = value;
            }
            if (cyan < N - 1) node[0][6] = node[0][7] = 0;
        }
    }
    ccolour_functions.DeleteTransform(transform);
    return table->nodes != NULL ? CCOLOUR_OK : CCOLOUR_BROKEN;
}

static ccolour_node *make_rgb_nodes(cmsContext context, cmsHPROFILE source) {
    enum { N = CCOLOUR_RGB_NODES };
    cmsHTRANSFORM transform = make_srgb(context, source, TYPE_RGB_16, TYPE_RGB_16, exact);
    if (transform == NULL) return NULL;
    ccolour_node *nodes = calloc(CCOLOUR_ALL_RGB_NODES, sizeof *nodes);
    uint16_t from[N][3], to[N][3];
    for (int row = 0; nodes != NULL && row < N * N; row++) {
        for (int blue = 0; blue < N; blue++) {
            from[blue][0] = place(row / N, N);
            from[blue][1] = place(row % N, N);
            from[blue][2] = place(blue, N);
        }
        ccolour_functions.DoTransform(transform, from, to, N);
        for (int blue = 0; blue < N; blue++) {
            int8_t *node = nodes[row * N + blue];
            for (int channel = 0; channel < 3; channel++) {
                node[2 * channel] = node[2 * channel + 1] = node_value(to[blue][channel]);
            }
        }
    }
    ccolour_functions.DeleteTransform(transform);
    return nodes;
}

// MARK: sums of light

/// sRGB's primaries with linear light.
static cmsHPROFILE make_linear_target(cmsContext context) {
    static const cmsCIExyYTRIPLE primaries = {{0.64, 0.33, 1}, {0.30, 0.60, 1}, {0.15, 0.06, 1}};
    static const double one = 1;
    cmsToneCurve *line = ccolour_functions.BuildParametricToneCurve(context, 1, &one);
    if (line == NULL) return NULL;
    cmsToneCurve *lines[] = {line, line, line};
    cmsHPROFILE profile =
        ccolour_functions.CreateRGBProfileTHR(context, &white_of_srgb, &primaries, lines);
    ccolour_functions.FreeToneCurve(line);
    return profile;
}

/// Light as an integer, within the range of its type.
static int16_t integer_light(double light) {
    double scaled = light * CCOLOUR_LIGHT;
    if (!(scaled > INT16_MIN + 1)) return INT16_MIN;
    return scaled < INT16_MAX ? (int16_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5) : INT16_MAX;
}

static bool fill_encoding(cmsContext context, ccolour_sums *sums) {
    cmsToneCurve *curve =
        ccolour_functions.BuildParametricToneCurve(context, -4, curve_of_srgb);
    if (curve == NULL) return false;
    const int most = CCOLOUR_LIGHT;
    for (int light = 0; light <= most; light++) {
        float sample =
            ccolour_functions.EvalToneCurveFloat(curve, (float)light / (float)most) * 255 + 0.5f;
        sums->encoded[light] = sample > 0 ? sample < 255 ? (uint8_t)sample : 255 : 0;
    }
    ccolour_functions.FreeToneCurve(curve);
    return true;
}

/// The light of each sample of each primary, if the profile's light is their sum.
static ccolour_sums *make_sums(cmsContext context, cmsHPROFILE source) {
    cmsHTRANSFORM transform = make_transform(
        context, source, TYPE_RGB_FLT, make_linear_target(context), TYPE_RGB_FLT, exact);
    if (transform == NULL) return NULL;
    ccolour_sums *sums = calloc(1, sizeof *sums);
    if (sums != NULL && !fill_encoding(context, sums)) {
        free(sums);
        sums = NULL;
    }
    float black[3] = {0, 0, 0};
    ccolour_functions.DoTransform(transform, black, black, 1);
    for (int primary = 0; sums != NULL && primary < 3; primary++) {
        for (int sample = 0; sample < 256; sample++) {
            float from[3] = {0, 0, 0}, to[3];
            from[primary] = (float)sample / 255;
            ccolour_functions.DoTransform(transform, from, to, 1);
            for (int channel = 0; channel < 3; channel++) {
                double light = (double)to[channel] - (primary > 0 ? (double)black[channel] : 0);
                sums->light[primary][sample][channel] = integer_light(light);
            }
        }
    }
    ccolour_functions.DeleteTransform(transform);
    return sums;
}

// MARK: RGB

/// Whether a table gives what the library does, within `tolerance` for each of many colours: all
/// greys, the corners, and 4,096 others.
static bool agrees(const ccolour_table *table, cmsHTRANSFORM transform, int tolerance) {
    enum { GREYS = 256, CORNERS = 8, OTHERS = 4096, COUNT = GREYS + CORNERS + OTHERS };
    uint8_t *colours = malloc(3 * COUNT * 3);
    if (colours == NULL) return false;
    uint8_t *wanted = colours + 3 * COUNT, *found = wanted + 3 * COUNT;
    uint32_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        uint8_t *colour = colours + 3 * i;
        if (i < GREYS) {
            memset(colour, i, 3);
        } else if (i < GREYS + CORNERS) {
            for (int bit = 0; bit < 3; bit++) colour[bit] = i >> bit & 1 ? 255 : 0;
        } else {
            // Numerical Recipes' generator.
            state = state * 1664525 + 1013904223;
            for (int channel = 0; channel < 3; channel++) {
                colour[channel] = (uint8_t)(state >> (8 + 8 * channel));
            }
        }
    }
    ccolour_functions.DoTransform(transform, colours, wanted, COUNT);
    if (table->sums != NULL) {
        ccolour_convert_sums(table->sums, 3, colours, found, COUNT);
    } else {
        ccolour_convert_rgb(table->nodes, CCOLOUR_PORTABLE, 3, colours, found, COUNT);
    }
    bool agrees = true;
    for (int i = 0; i < 3 * COUNT; i++) {
        if (abs(wanted[i] - found[i]) > tolerance) agrees = false;
    }
    free(colours);
    return agrees;
}

static ccolour_status make_rgb(
    cmsContext context, cmsHPROFILE source, ccolour_table *table, cmsHTRANSFORM *direct) {
    cmsHTRANSFORM transform = make_srgb(context, source, TYPE_RGB_8, TYPE_RGB_8, 0);
    if (transform == NULL) return CCOLOUR_BROKEN;
    table->sums = make_sums(context, source);
    if (table->sums == NULL || !agrees(table, transform, 1)) {
        free(table->sums);
        table->sums = NULL;
        table->nodes = make_rgb_nodes(context, source);
        if (table->nodes == NULL || !agrees(table, transform, 2)) {
            free(table->nodes);
            table->nodes = NULL;
            *direct = transform;
            return CCOLOUR_OK;
        }
    }
    ccolour_functions.DeleteTransform(transform);
    return CCOLOUR_OK;
}

/// Makes the table for a profile, and for RGB without a table the transform `direct`.
static ccolour_status make_table(
    cmsContext context, cmsHPROFILE source, ccolour_pixels pixels, ccolour_table *table,
    cmsHTRANSFORM *direct) {
    switch (pixels) {
    case CCOLOUR_GREY: return make_grey(context, source, table);
    case CCOLOUR_DEEP_GREY: return make_deep_grey(context, source, table);
    case CCOLOUR_RGB: return make_rgb(context, source, table, direct);
    case CCOLOUR_INKS: return make_inks(context, source, table);
    case CCOLOUR_DEEP_RGB: break;
    }
    *direct = make_srgb(context, source, TYPE_RGB_16_SE, TYPE_RGB_16_SE, exact);
    return *direct != NULL ? CCOLOUR_OK : CCOLOUR_BROKEN;
}

// MARK: - Transforms

struct ccolour_transform {
    ccolour_pixels pixels;
    ccolour_table table;
    /// Set only where the library converts each pixel itself.
    cmsContext _Nullable context;
    cmsHTRANSFORM _Nullable direct;
};

/// Returns a copy with the tags of floating-point tables renamed, so the library ignores them.
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

/// Makes the table or, where none is exact enough, the library's transform.
static ccolour_status make(ccolour_transform *made, const uint8_t *profile, size_t length) {
    cmsHPROFILE source = ccolour_functions.OpenProfileFromMemTHR(
        made->context, profile, (cmsUInt32Number)length);
    if (source == NULL) return CCOLOUR_BROKEN;
    ccolour_status status =
        make_table(made->context, source, made->pixels, &made->table, &made->direct);
    ccolour_functions.CloseProfile(source);
    if (made->direct == NULL) {
        ccolour_functions.DeleteContext(made->context);
        made->context = NULL;
    }
    return status;
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
    // One thread at a time, since each may take `most_bytes`.
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    uint8_t *copy = length >= 132 ? copy_without_steps(profile, length) : NULL;
    ccolour_transform *made = calloc(1, sizeof *made);
    ccolour_status status = CCOLOUR_BROKEN;
    spent = 0;
    // A context of its own has no error handler, so the library prints nothing.
    cmsPluginMemHandler memory = plugin;
    if (copy != NULL && made != NULL) {
        made->pixels = pixels;
        made->context = ccolour_functions.CreateContext(&memory, NULL);
    }
    if (made != NULL && made->context != NULL) status = make(made, copy, length);
    free(copy);
    spent = 0;
    pthread_mutex_unlock(&mutex);
    if (status != CCOLOUR_OK) {
        ccolour_free(made);
        return status;
    }
    *transform = made;
    return CCOLOUR_OK;
}

/// Converts by the library, in pixels of three samples.
static void convert_directly(
    cmsHTRANSFORM transform, size_t sample_bytes, int channels, const uint8_t *from, uint8_t *to,
    size_t count) {
    enum { CHUNK = 256 };
    uint8_t chunk[CHUNK * 3 * 2];
    size_t pixel = (size_t)channels * sample_bytes, colour = 3 * sample_bytes;
    for (size_t done = 0; done < count; done += CHUNK) {
        size_t pixels = count - done < CHUNK ? count - done : CHUNK;
        for (size_t i = 0; i < pixels; i++) {
            memcpy(chunk + i * colour, from + (done + i) * pixel, colour);
        }
        ccolour_functions.DoTransform(transform, chunk, chunk, (cmsUInt32Number)pixels);
        for (size_t i = 0; i < pixels; i++) {
            const uint8_t *rest = from + (done + i) * pixel + colour;
            uint8_t *target = to + (done + i) * pixel;
            memcpy(target, chunk + i * colour, colour);
            if (target != from + (done + i) * pixel) memcpy(target + colour, rest, pixel - colour);
        }
    }
}

/// Replaces big-endian samples by values of a table. The last of 2 or 4 channels is kept.
static void convert_deep_grey(
    const uint8_t (*table)[2], int channels, const uint8_t *from, uint8_t *to, size_t count) {
    for (size_t i = 0; i < count * (size_t)channels; i++, from += 2, to += 2) {
        bool is_kept = channels % 2 == 0 && (i + 1) % (size_t)channels == 0;
        memmove(to, is_kept ? from : table[from[0] << 8 | from[1]], 2);
    }
}

void ccolour_convert(
    const ccolour_transform *transform, ccolour_path path, int channels, const uint8_t *from,
    uint8_t *to, size_t count) {
    const ccolour_table *table = &transform->table;
    switch (transform->pixels) {
    case CCOLOUR_GREY:
        ccolour_convert_grey(table->grey, path, channels, from, to, count);
        break;
    case CCOLOUR_DEEP_GREY:
        convert_deep_grey(table->deep_grey, channels, from, to, count);
        break;
    case CCOLOUR_RGB:
        if (table->sums != NULL) {
            ccolour_convert_sums(table->sums, channels, from, to, count);
        } else if (table->nodes != NULL) {
            ccolour_convert_rgb(table->nodes, path, channels, from, to, count);
        } else {
            convert_directly(transform->direct, 1, channels, from, to, count);
        }
        break;
    case CCOLOUR_DEEP_RGB:
        convert_directly(transform->direct, 2, channels, from, to, count);
        break;
    case CCOLOUR_INKS:
        ccolour_convert_inks(table->nodes, path, from, to, count);
        break;
    }
}

void ccolour_free(ccolour_transform *transform) {
    if (transform == NULL) return;
    if (transform->direct != NULL) ccolour_functions.DeleteTransform(transform->direct);
    if (transform->context != NULL) ccolour_functions.DeleteContext(transform->context);
    free(transform->table.grey);
    free(transform->table.deep_grey);
    free(transform->table.nodes);
    free(transform->table.sums);
    free(transform);
}
