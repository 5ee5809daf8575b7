#include "cavif.h"

#include "cavif_shim.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const cavif_shim *shim;
static char failure[1024];

/// Prefers the newer library. The reasons of both failures are told.
static void load_once(void) {
    static const cavif_shim *const shims[] = {&cavif_shim_16, &cavif_shim_15};
    for (size_t index = 0; index < sizeof shims / sizeof *shims; index++) {
        const char *reason = shims[index]->load();
        if (reason == NULL) {
            shim = shims[index];
            failure[0] = 0;
            return;
        }
        // One untrusted file refuses both.
        if (strstr(failure, reason)) continue;
        size_t end = strlen(failure);
        snprintf(failure + end, sizeof failure - end, "%s%s", end > 0 ? "; " : "", reason);
    }
}

const char *cavif_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    return shim != NULL ? NULL : failure;
}

const cavif_shim *cavif_loaded_shim(void) { return shim; }

static bool is_missing(char *message) {
    const char *missing = cavif_load();
    snprintf(message, CCODEC_MESSAGE_BYTES, "%s", missing ? missing : "");
    return missing != NULL;
}

ccodec_status cavif_read_header(
    const uint8_t *bytes, size_t length, uint32_t maximum_frames, cavif_header *header,
    char message[CCODEC_MESSAGE_BYTES]) {
    memset(header, 0, sizeof *header);
    if (is_missing(message)) return CCODEC_NO_LIBRARY;
    return shim->read_header(bytes, length, maximum_frames, header, message);
}

ccodec_status cavif_open(
    const uint8_t *bytes, size_t length, const cavif_limits *limits, const cavif_header *header,
    char message[CCODEC_MESSAGE_BYTES], cavif_reader **reader) {
    *reader = NULL;
    if (is_missing(message)) return CCODEC_NO_LIBRARY;
    return shim->open(bytes, length, limits, header, message, reader);
}

ccodec_status cavif_next(
    cavif_reader *reader, bool wants_rows, cavif_frame *frame,
    char message[CCODEC_MESSAGE_BYTES]) {
    return shim->next(reader, wants_rows, frame, message);
}

void cavif_close(cavif_reader *reader) {
    if (reader != NULL) shim->close(reader);
}

uint8_t *cavif_copy_profile(const uint8_t *bytes, size_t length, size_t *count) {
    *count = 0;
    return cavif_load() == NULL ? shim->copy_profile(bytes, length, count) : NULL;
}

ccodec_status cavif_encode(
    const ccodec_picture *picture, const uint8_t *profile, size_t profile_length,
    const uint8_t *exif, size_t exif_length, const uint8_t *xmp, size_t xmp_length,
    const cavif_options *options, cinterruption *interruption, uint8_t **bytes, size_t *length,
    char message[CCODEC_MESSAGE_BYTES]) {
    *bytes = NULL;
    *length = 0;
    if (is_missing(message)) return CCODEC_NO_LIBRARY;
    return shim->encode(
        picture, profile, profile_length, exif, exif_length, xmp, xmp_length, options, interruption,
        bytes, length, message);
}

void cavif_library_versions(char text[64]) {
    text[0] = 0;
    if (cavif_load() != NULL) return;
    char codecs[256] = "";
    shim->codec_versions(codecs);
    // For example `dav1d [dec]:1.0.0-0-g…, aom […`.
    const char *name = strstr(codecs, "dav1d");
    const char *colon = name == NULL ? NULL : strchr(name, ':');
    int count = colon == NULL ? 0 : (int)strcspn(colon + 1, ",-");
    snprintf(text, 64, "%s %.*s", shim->library_version(), count, colon == NULL ? "" : colon + 1);
}
