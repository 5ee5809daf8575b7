#ifndef CJPEG_PROCESSORS_H
#define CJPEG_PROCESSORS_H

// Macros for the hot loops over symbols.

// Shifts by variable counts are most of the work, and BMI2 does each in one operation. The clones
// are chosen before a sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define INLINED static inline __attribute__((always_inline))
#define IS_LIKELY(condition) __builtin_expect(condition, 1)
#define IS_UNLIKELY(condition) __builtin_expect(condition, 0)

#endif
