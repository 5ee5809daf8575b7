#include "cinterruption.h"

#include <time.h>

void cinterruption_set(cinterruption_flag *flag) {
    __atomic_store_n(&flag->is_set, 1, __ATOMIC_RELAXED);
}

bool cinterruption_look(cinterruption *interruption) {
    interruption->unseen_bytes = 0;
    if (interruption->cause != CINTERRUPTION_NONE) return true;
    const cinterruption_flag *flag = interruption->flag;
    // No other memory is handed over by it.
    if (flag != NULL && __atomic_load_n(&flag->is_set, __ATOMIC_RELAXED) != 0) {
        interruption->cause = CINTERRUPTION_CANCELLED;
        return true;
    }
    if (interruption->deadline_nanoseconds == 0) return false;
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    uint64_t now = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    if (now <= interruption->deadline_nanoseconds) return false;
    interruption->cause = CINTERRUPTION_LATE;
    return true;
}
