#define _GNU_SOURCE
#include "FaultyJPEG.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static int holds(j_decompress_ptr input, const char *mark) {
    return memmem(
        input->src->next_input_byte, input->src->bytes_in_buffer, mark, strlen(mark)) != NULL;
}

int jpeg_read_header(j_decompress_ptr input, boolean require_image) {
    if (holds(input, FAULTY_JPEG_ABORT)) abort();
    if (holds(input, FAULTY_JPEG_SEGMENT)) *(volatile char *)NULL = 1;
    int (*next)(j_decompress_ptr, boolean);
    *(void **)&next = dlsym(RTLD_NEXT, "jpeg_read_header");
    return next(input, require_image);
}
