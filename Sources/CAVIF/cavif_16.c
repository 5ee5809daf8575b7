#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define CAVIF_ABI 16
#define CAVIF_LIBRARY "libavif.so.16"
#define CAVIF_VERSION "1."
#define CAVIF_LOAD cavif_load_16
#define CAVIF_SHIM cavif_shim_16
#include "cavif_shim_body.h"
