#include "cinterruption.h"

#include <time.h>

void cinterruption_set(cinterruption_flag *flag) {
    __atomic_store_n(&flag->is_set, 1, __ATOMIC_RELAXED);
}

bool cinterruption_is_set(const cinterruption_flag *flag) {
    return __atomic_load_n(&flag->is_set, __ATOMIC_RELAXED) != 0;
}

static uint64_t nanoseconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t cinterruption_processor_time(void) { return nanoseconds_of(CLOCK_THREAD_CPUTIME_ID); }

static uint64_t later(uint64_t time, uint64_t nanoseconds) {
    return time > UINT64_MAX - nanoseconds ? UINT64_MAX : time + nanoseconds;
}

void cinterruption_begin(cinterruption *interruption, uint64_t nanoseconds) {
    if (nanoseconds == 0) return;
    interruption->deadline_nanoseconds = later(cinterruption_processor_time(), nanoseconds);
    interruption->earliest_nanoseconds = later(nanoseconds_of(CLOCK_MONOTONIC), nanoseconds);
}

bool cinterruption_look(cinterruption *interruption) {
    interruption->unseen_bytes = 0;
    if (interruption->cause != CINTERRUPTION_NONE) return true;
    const cinterruption_flag *flag = interruption->flag;
    // The flag publishes no other memory.
    if (flag != NULL && __atomic_load_n(&flag->is_set, __ATOMIC_RELAXED) != 0) {
        interruption->cause = CINTERRUPTION_CANCELLED;
        return true;
    }
    if (interruption->deadline_nanoseconds == 0) return false;
    if (nanoseconds_of(CLOCK_MONOTONIC) < interruption->earliest_nanoseconds) return false;
    if (cinterruption_processor_time() <= interruption->deadline_nanoseconds) return false;
    interruption->cause = CINTERRUPTION_LATE;
    return true;
}
