#ifndef CJPEG_PROCESSORS_H
#define CJPEG_PROCESSORS_H

// What tells the compiler how the loops over symbols are to be made.

// Shifts by a number of bits that is known late are most of the work, and BMI2 has them in one operation. The clones are chosen
// before a sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define INLINED static inline __attribute__((always_inline))
#define IS_LIKELY(condition) __builtin_expect(condition, 1)
#define IS_UNLIKELY(condition) __builtin_expect(condition, 0)

#endif
