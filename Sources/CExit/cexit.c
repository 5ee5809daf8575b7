#include "cexit.h"

#include <unistd.h>

// Present only in builds with coverage or the leak sanitizer.
extern int __llvm_profile_write_file(void) __attribute__((weak));
extern void __lsan_do_leak_check(void) __attribute__((weak));

void cexit_save_coverage(void) {
    if (__llvm_profile_write_file) __llvm_profile_write_file();
}

void cexit_end(int status) {
    cexit_save_coverage();
    // Exits with its own status if it finds a leak.
    if (__lsan_do_leak_check) __lsan_do_leak_check();
    _exit(status);
}
