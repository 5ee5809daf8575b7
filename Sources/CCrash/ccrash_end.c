#include "ccrash.h"

#include <unistd.h>

// There in programs that are built for coverage, or with the leak sanitizer, only.
extern int __llvm_profile_write_file(void) __attribute__((weak));
extern void __lsan_do_leak_check(void) __attribute__((weak));

void ccrash_save_coverage(void) {
    if (__llvm_profile_write_file) __llvm_profile_write_file();
}

void ccrash_end(int status) {
    ccrash_save_coverage();
    // Ends the program with a status of its own when it finds something.
    if (__lsan_do_leak_check) __lsan_do_leak_check();
    _exit(status);
}
