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

// Releases one hop: for every slot, null or not, the sum of its neighbours' rows, scaled to norm at most R =
// plan.aggregation.clip, with lattice noise of standard deviation plan.aggregation.noise_stddev in every entry. Rows
// have norm at most 1. Without noise nothing is clipped either. What it costs, under a degree promise, and why:
// core/plan/plan_event.h. The result is the release itself, N x h doubles by rows; ScaleToUnit of its rows is
// post-processing.
//
// A sum is taken in the order of the slot's list, so that slots whose lists and rows are the same on two graphs have
// the same sums to the bit. Does not depend on the number of threads. Time O(E h + N h), memory the result. Asks
// `keep_going` at the pace of core/pace.h; CANCELLED once it says no.
absl::StatusOr<std::vector<double>> AggregateHop(const v1::Plan& plan, const EdgesView& edges, const NodeMatrix& rows,
                                                 int threads, RandomSource& random,
                                                 const std::function<bool()>& keep_going);

// The rows that GAP's classifier reads, hop by hop: `encoded` first, then each hop's release scaled to length 1.
absl::StatusOr<std::vector<NodeMatrix>> AggregateHops(const v1::Plan& plan, const EdgesView& edges, NodeMatrix encoded,
                                                      int threads, RandomSource& random,
                                                      const std::function<bool()>& keep_going);

// Lists of neighbours.
struct NeighbourLists {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> neighbours;

  operator EdgesView() const { return {offsets, neighbours}; }  // NOLINT(google-explicit-constructor)
};

// Up to `count` of each slot's neighbours, uniformly and independently from slot to slot. A slot's choice follows its
// own list alone, so that on two neighbouring graphs only the removed node's neighbours choose differently.
NeighbourLists SampleNeighbours(const EdgesView& edges, int64_t count, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_AGGREGATION_H_
