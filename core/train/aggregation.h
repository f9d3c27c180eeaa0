// GAP's noisy sums over neighbours, and the neighbours that SAGE samples.
#ifndef DPAR_CORE_TRAIN_AGGREGATION_H_
#define DPAR_CORE_TRAIN_AGGREGATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Releases one hop: for every slot, null or not, the sum of its neighbours' rows, of norm at most 1, scaled to norm at
// most R = plan.aggregation.clip, with lattice noise of standard deviation plan.aggregation.noise_stddev in every
// entry. Without noise nothing is clipped. Sensitivity and proof, under a degree promise: core/plan/plan_event.h. The
// release is N x h doubles by rows; ScaleToUnit of its rows is post-processing.
//
// Sums follow the order of the slot's list, so slots with the same list and rows on two graphs have the same bits. Does
// not depend on the number of threads. Time O(E h + N h), memory the result. Asks `keep_going` at the pace of
// core/pace.h; CANCELLED once it says no.
absl::StatusOr<std::vector<double>> AggregateHop(const v1::Plan& plan, const EdgesView& edges, const NodeMatrix& rows,
                                                 int threads, RandomSource& random,
                                                 const std::function<bool()>& keep_going);

// The classifier's rows, hop by hop: `encoded` first, then each hop's release scaled to length 1.
absl::StatusOr<std::vector<NodeMatrix>> AggregateHops(const v1::Plan& plan, const EdgesView& edges, NodeMatrix encoded,
                                                      int threads, RandomSource& random,
                                                      const std::function<bool()>& keep_going);

struct NeighbourLists {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> neighbours;

  operator EdgesView() const { return {offsets, neighbours}; }  // NOLINT(google-explicit-constructor)
};

// Up to `count` of each slot's neighbours, uniformly and independently of other slots. A choice depends on the slot's
// own list alone: on two neighbouring graphs only the removed node's neighbours choose differently.
NeighbourLists SampleNeighbours(const EdgesView& edges, int64_t count, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_AGGREGATION_H_
