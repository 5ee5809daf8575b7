/// Tables sampled from Little CMS, which holds the mathematics of colours.
#ifndef CCOLOUR_TABLE_H
#define CCOLOUR_TABLE_H

#include "ccolour_kernels.h"
#include "ccolour_library.h"

#pragma clang assume_nonnull begin

/// At most one member is set.
typedef struct {
    /// The sample for each of 256.
    uint8_t *_Nullable grey;
    /// The same for each of 65536, big-endian.
    uint8_t (*_Nullable deep_grey)[2];
    ccolour_node *_Nullable nodes;
    ccolour_sums *_Nullable sums;
} ccolour_table;

/// Makes the table for a profile, and for RGB without a table the transform `direct`.
ccolour_status ccolour_make_table(
    cmsContext context, cmsHPROFILE source, ccolour_pixels pixels, ccolour_table *table,
    cmsHTRANSFORM _Nullable *_Nonnull direct);

void ccolour_free_table(ccolour_table *table);

#pragma clang assume_nonnull end

#endif
