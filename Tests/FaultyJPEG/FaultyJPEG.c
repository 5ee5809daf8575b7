#define _GNU_SOURCE
#include "FaultyJPEG.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

static int holds(j_decompress_ptr input, const char *mark) {
    char text[64];
    snprintf(text, sizeof text, "%s%s", FAULTY_JPEG_MARK, mark);
    return memmem(
        input->src->next_input_byte, input->src->bytes_in_buffer, text, strlen(text)) != NULL;
}

static _Thread_local int is_slow;
static volatile int never;

static void misbehave(j_decompress_ptr input) {
    if (holds(input, FAULTY_JPEG_ABORT)) abort();
    if (holds(input, FAULTY_JPEG_PRINT)) fputs("a message\n", stderr);
    if (holds(input, FAULTY_JPEG_FREE)) {
        // The compiler would see two calls of `free`.
        void (*volatile release)(void *) = free;
        void *volatile memory = malloc(64);
        release(memory);
        release(memory);
    }
    if (holds(input, FAULTY_JPEG_SEGMENT)) *(volatile char *)NULL = 1;
    if (holds(input, FAULTY_JPEG_EXIT)) _exit(7);
    if (holds(input, FAULTY_JPEG_LOOP)) while (!never) {}
    if (holds(input, FAULTY_JPEG_ALLOCATE)) {
        // The compiler would leave `malloc` out.
        void *memory;
        do {
            memory = mmap(
                NULL, 1 << 20, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        } while (memory != MAP_FAILED);
        abort();
    }
    if (holds(input, FAULTY_JPEG_OPEN)) open("/etc/passwd", O_RDONLY);
    if (holds(input, FAULTY_JPEG_CONNECT)) socket(AF_INET, SOCK_STREAM, 0);
    if (holds(input, FAULTY_JPEG_FORK) && fork() == 0) _exit(0);
    if (holds(input, FAULTY_JPEG_KILL)) kill(getppid(), SIGKILL);
    if (holds(input, FAULTY_JPEG_EXECUTE)) {
        mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (holds(input, FAULTY_JPEG_FORGE)) {
        // A result of 2^60 bytes, as the worker's protocol has it.
        int64_t message[8] = {9, 1ll << 60};
        ssize_t written = write(5, message, sizeof message);
        (void)written;
        while (!never) {}
    }
}

int jpeg_read_header(j_decompress_ptr input, boolean require_image) {
    misbehave(input);
    is_slow = holds(input, FAULTY_JPEG_SLOW);
    int (*next)(j_decompress_ptr, boolean);
    *(void **)&next = dlsym(RTLD_NEXT, "jpeg_read_header");
    return next(input, require_image);
}

JDIMENSION jpeg_read_scanlines(j_decompress_ptr input, JSAMPARRAY rows, JDIMENSION count) {
    if (is_slow) {
        if (input->output_scanline == 0) {
            fputs(FAULTY_JPEG_MARK FAULTY_JPEG_SLOW, stderr);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    JDIMENSION (*next)(j_decompress_ptr, JSAMPARRAY, JDIMENSION);
    *(void **)&next = dlsym(RTLD_NEXT, "jpeg_read_scanlines");
    return next(input, rows, count);
}
