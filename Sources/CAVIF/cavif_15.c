#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define CAVIF_ABI 15
#define CAVIF_LIBRARY "libavif.so.15"
#define CAVIF_VERSION "0.11."
#define CAVIF_LOAD cavif_load_15
#define CAVIF_SHIM cavif_shim_15
#include "cavif_shim_body.h"
