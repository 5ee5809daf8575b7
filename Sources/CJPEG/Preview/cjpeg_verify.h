#ifndef CJPEG_VERIFY_H
#define CJPEG_VERIFY_H

#include "cjpeg_session.h"

/// Decodes a single-scan file at an eighth of its size: reads all codes, keeps little in memory.
void cjpeg_drain_single_scan(cjpeg_session *s);

#endif
