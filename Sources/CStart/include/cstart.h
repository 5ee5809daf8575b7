/// The arguments of the process, and functions of newer C libraries that its archives use.
#pragma once

#pragma clang assume_nonnull begin

/// The number of arguments, with the name of the program.
int cstart_argument_count(void);

/// Returns an argument; `index` is less than the count.
const char *cstart_argument(int index);

#pragma clang assume_nonnull end
