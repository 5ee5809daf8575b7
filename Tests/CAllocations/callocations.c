#include "callocations.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>

static __thread struct {
    bool is_counting;
    long now;
    long most;
} thread;

void callocations_begin(void) {
    thread.now = 0;
    thread.most = 0;
    thread.is_counting = true;
}

long callocations_end(void) {
    thread.is_counting = false;
    return thread.most;
}

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#else

// The functions behind glibc's own.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *counted(void *block) {
    if (thread.is_counting && block != NULL) {
        thread.now += (long)malloc_usable_size(block);
        if (thread.now > thread.most) thread.most = thread.now;
    }
    return block;
}

static void uncount(void *block) {
    if (thread.is_counting && block != NULL) thread.now -= (long)malloc_usable_size(block);
}

void *malloc(size_t size) {
    return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
    long before = block == NULL ? 0 : (long)malloc_usable_size(block);
    void *made = __libc_realloc(block, size);
    // Without memory the old block stays.
    if (thread.is_counting && (made != NULL || size == 0)) thread.now -= before;
    return counted(made);
}

void free(void *block) {
    uncount(block);
    __libc_free(block);
}

void *memalign(size_t alignment, size_t size) {
    return counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *made = memalign(alignment, size);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

#endif
