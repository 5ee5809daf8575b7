#ifndef CJPEG_TABLE_CACHE_H
#define CJPEG_TABLE_CACHE_H

// Decoding tables that a thread reuses from picture to picture.

#include "cjpeg_bits.h"
#include "cjpeg_magnitudes.h"
#include "cjpeg_requantisation.h"
#include "cjpeg_session.h"

/// Tables derived from Huffman and quantisation tables, by slot. Most pictures of a list share the
/// tables of their camera or encoder. Building them takes 10 µs, as long as reading 15,000 pixels.
struct cjpeg_table_cache;

/// Gives the session the thread's tables, which no other session uses until `cjpeg_end` returns
/// them. Returns false without memory. A thread keeps the tables of one picture, 164 KB, until it
/// ends.
bool cjpeg_take_tables(cjpeg_session *s);

/// A slot's codes; NULL for an invalid table (see `cjpeg_make_codes`).
const cjpeg_codes *cjpeg_cached_codes(cjpeg_table_cache *cache, const JHUFF_TBL *table, bool is_dc, int slot);

/// Derived tables for the AC codes of a slot: to decode coefficients, and to skip them. The codes
/// must have been requested before.
const cjpeg_magnitudes *cjpeg_cached_magnitudes(cjpeg_table_cache *cache, int slot);
const cjpeg_steps *cjpeg_cached_steps(cjpeg_table_cache *cache, int slot);

/// A slot's requantisation; no step is 0.
const cjpeg_requantisation *cjpeg_cached_requantisation(
    cjpeg_table_cache *cache, const JQUANT_TBL *from, const JQUANT_TBL *wanted, int slot);

#endif
