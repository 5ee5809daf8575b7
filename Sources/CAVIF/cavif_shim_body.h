// The whole of a shim. Included by one file for each binary interface, which defines its number,
// `CAVIF_ABI`, its library and versions, and two names.
#pragma once

#include "cavif_declarations.h"
#include "cavif_shim.h"
#include "cloader.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Written by `load` only, which runs before anything creates a decoder, an encoder or an image.
static struct lib_functions lib;

/// Refuses libraries with another interface, and without the two codecs in use: the carried library
/// has both.
static const char *refusal(void) {
    char codecs[256] = "";
    bool is_known = strncmp(lib.Version(), CAVIF_VERSION, strlen(CAVIF_VERSION)) == 0;
    if (!is_known) return "has an unknown interface";
    lib.CodecVersions(codecs);
    if (!strstr(codecs, "dav1d [dec")) return "has no decoder (dav1d)";
    return strstr(codecs, "aom [enc") ? NULL : "has no encoder (aom)";
}

#define DEFINE(load) CLOADER_LOAD_UNLESS(load, CAVIF_LIBRARY, "avif", LIB_FUNCTIONS, lib, refusal)
const char *CAVIF_LOAD(void) __attribute__((visibility("hidden")));
DEFINE(CAVIF_LOAD)
#undef DEFINE

#include "cavif_decoding.h"
#include "cavif_encoding.h"

static const char *library_version(void) { return lib.Version(); }

static void *handle(void) {
    void *function;
    memcpy(&function, &lib.Version, sizeof function);
    Dl_info info;
    return dladdr(function, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static void codec_versions(char text[256]) { lib.CodecVersions(text); }

const cavif_shim CAVIF_SHIM = {
    .load = CAVIF_LOAD,
    .library_version = library_version,
    .handle = handle,
    .codec_versions = codec_versions,
    .read_header = shim_read_header,
    .open = shim_open,
    .next = shim_next,
    .close = shim_close,
    .copy_profile = shim_copy_profile,
    .encode = shim_encode,
};
