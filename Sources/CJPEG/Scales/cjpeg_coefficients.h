#ifndef CJPEG_COEFFICIENTS_H
#define CJPEG_COEFFICIENTS_H

// The coefficients of a baseline scan (ITU-T T.81, annex F.2), for pixels: `cjpeg_scales.c` has libjpeg make these of
// them, so that they are libjpeg's. On photographs this reads 1.4 times as fast as libjpeg does, and twice as fast where
// only means are wanted, as at an eighth of the size: then all other symbols are stepped over, several at once.
//
// Whatever is odd is a doubt, as in `cjpeg_transcode.h`: then libjpeg is to read all of it.

#include "cjpeg_mcus.h"

/// Readies the scan behind the header. Of the components that `wants_means` names the DC coefficients are read, and what
/// else is in a block stays as it is.
///
/// Returns false on doubt. What it needs is the session's.
bool cjpeg_begin_coefficients(cjpeg_session *s, const bool wants_means[MAX_COMPONENTS]);

/// Reads as many rows of blocks as a component has for a row of units of interleaved ones, into the rows of blocks that
/// each has; of a single component fewer where they end. Blocks that fill up a unit are read like others. Returns false on
/// doubt.
bool cjpeg_read_coefficients(cjpeg_session *s, const JBLOCKARRAY rows[MAX_COMPONENTS]);

/// Returns false where the scan, of which all rows have been read, does not end with the image. Otherwise the source goes
/// on behind it.
bool cjpeg_end_coefficients(cjpeg_session *s);

#endif
