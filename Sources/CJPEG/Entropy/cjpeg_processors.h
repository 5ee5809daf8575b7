#pragma once

// Macros for hot loops.

// The clones are chosen before a sanitizer is set up, which the thread sanitizer does not survive.
#if defined(__x86_64__) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define CLONES(processor) __attribute__((target_clones(processor, "default")))
#else
#define CLONES(processor)
#endif

// For loops over symbols: shifts by variable counts are most of the work, and BMI2 does each in one
// operation.
#define FOR_EACH_PROCESSOR CLONES("arch=x86-64-v3")
// For loops over rows: wider registers halve the time; arm64 has only one kind.
#define FOR_EACH_WIDTH CLONES("avx2")

#define INLINED static inline __attribute__((always_inline))
#define IS_LIKELY(condition) __builtin_expect(condition, 1)
#define IS_UNLIKELY(condition) __builtin_expect(condition, 0)
