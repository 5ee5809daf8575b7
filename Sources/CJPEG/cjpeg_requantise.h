#ifndef CJPEG_REQUANTISE_H
#define CJPEG_REQUANTISE_H

#include "cjpeg_session.h"
#include "cjpeg_transform.h"

/// The quantisation tables to write, by slot, and whether a slot becomes coarser.
typedef struct {
    JQUANT_TBL tables[NUM_QUANT_TBLS];
    bool is_coarser[NUM_QUANT_TBLS];
    bool is_any_coarser;
} cjpeg_tables;

/// Chooses in the source's layout. Where the result is transposed, so are the tables that it is
/// asked for: what is written then has the quality's own, and is not coarsened by another run.
///
/// - Returns: false while a table is not known.
bool cjpeg_choose_tables(
    cjpeg_session *s, int quality, bool is_transposed, cjpeg_tables *targets);

/// Whether the picture is turned upright.
static inline bool cjpeg_turns(cjpeg_session *s, const cjpeg_rewriting *rewriting) {
    return rewriting->orientation != 1 && cjpeg_can_turn(&s->decompress, rewriting->orientation);
}

/// Opens a target of which the tables can be chosen; the parameters proper are copied later.
void cjpeg_open_target(cjpeg_session *s);

/// Writes the coefficients, which it changes, unless nothing would change. The target has been opened.
void cjpeg_write_again(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, jvirt_barray_ptr *coefficients,
    jvirt_barray_ptr *turned, cjpeg_result *result);

/// Reads the source, of which only the header has been, and writes it with the tables, of which one is coarser, without
/// making coefficients of it (`cjpeg_transcode.h`). The target has been opened. `begin` is when the reading began.
///
/// Returns false on any doubt: the session is as before then, and libjpeg is to be asked.
bool cjpeg_transcode(
    cjpeg_session *s, const cjpeg_rewriting *rewriting, const cjpeg_tables *tables, uint64_t begin,
    cjpeg_result *result);

#endif
