/* traces/muon.h - the update of matrices by Muon */
#ifndef TRACES_MUON_H
#define TRACES_MUON_H

#include "traces/stage.h"

/* Under Muon: of each matrix of a stage's layers a segment, before the update of all else. */
void muon_updates(struct stage *st);

/* Under ddp a rank has its part of the matrices alone, and gets the others' updates. */
bool shares_matrices(const struct builder *b);

/* Parameters that it updates, of all or of a rank's share: matrices of layers, and experts, which are such, too. */
double muon_numbers(const struct builder *b, struct held of, bool shared);

/* Of a layer's weights but routed experts, those in matrices: as a tensor rank has them. */
double matrix_parameters(const struct builder *b, int64_t layer);

#endif
