/// Counts the memory that a thread allocates. In programs that link this, glibc's allocation
/// functions also count, for all libraries. Under a sanitizer nothing is counted.
#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

/// Starts counting the calling thread's allocations.
void callocations_begin(void);

/// Stops counting.
///
/// - Returns: the most bytes that were allocated at once since the start; 0 if nothing is counted.
long callocations_end(void);

#endif
