#define _GNU_SOURCE
#include "FaultyJPEG.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

static int holds(j_decompress_ptr input, const char *mark) {
    return memmem(
        input->src->next_input_byte, input->src->bytes_in_buffer, mark, strlen(mark)) != NULL;
}

static _Thread_local int is_slow;

int jpeg_read_header(j_decompress_ptr input, boolean require_image) {
    if (holds(input, FAULTY_JPEG_ABORT)) abort();
    if (holds(input, FAULTY_JPEG_SEGMENT)) *(volatile char *)NULL = 1;
    is_slow = holds(input, FAULTY_JPEG_SLOW);
    int (*next)(j_decompress_ptr, boolean);
    *(void **)&next = dlsym(RTLD_NEXT, "jpeg_read_header");
    return next(input, require_image);
}

JDIMENSION jpeg_read_scanlines(j_decompress_ptr input, JSAMPARRAY rows, JDIMENSION count) {
    if (is_slow) {
        if (input->output_scanline == 0) fputs(FAULTY_JPEG_SLOW, stderr);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    JDIMENSION (*next)(j_decompress_ptr, JSAMPARRAY, JDIMENSION);
    *(void **)&next = dlsym(RTLD_NEXT, "jpeg_read_scanlines");
    return next(input, rows, count);
}
