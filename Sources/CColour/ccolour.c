#include "ccolour_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/// The most memory for making a transform. Usually it takes about 5 MB and three times the profile.
/// But the library allocates the sizes that a profile states before it reads the data.
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
        ccolour_make_table(made->context, source, made->pixels, &made->table, &made->direct);
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
    ccolour_free_table(&transform->table);
    free(transform);
}
