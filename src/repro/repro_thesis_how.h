/* How the thesis' figures are measured here: shared by its chapters. */
#ifndef WEFT_REPRO_THESIS_HOW_H
#define WEFT_REPRO_THESIS_HOW_H

#include "repro.h"

extern const struct repro_experiment repro_verbs_lat, repro_verbs_bw, repro_mpi_lat, repro_mpi_bw,
	repro_conns_lat, repro_conns_bw, repro_pairs_lat, repro_pairs_bw, repro_cache,
	repro_register, repro_buffers, repro_overlap, repro_progress, repro_exchange, repro_late,
	repro_copy, repro_search, repro_spectrum, repro_onesided, repro_memory;

#endif
