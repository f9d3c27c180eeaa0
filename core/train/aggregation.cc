#include "core/train/aggregation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "core/infer/edge_inputs.h"
#include "core/infer/neighbour_sum.h"
#include "core/pace.h"
#include "core/parallel.h"
#include "core/plan/plan_event.h"
#include "core/random/lattice.h"
#include "core/random/subsets.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// A fixed number of noise streams, each for a range of slots, so that the result does not depend on the threads.
constexpr int64_t kStreams = 16;

// In exact arithmetic the norm never exceeds R. A sum that is not finite becomes 0.
void ClipSum(double clip, std::span<double> sum) {
  const double norm = std::sqrt(std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0));
  const double bound = clip * kAggregationGuard;
  if (norm <= bound) {
    return;
  }
  const double scale = std::isfinite(norm) ? bound / norm : 0;
  std::transform(sum.begin(), sum.end(), sum.begin(), [scale](double entry) { return scale == 0 ? 0 : scale * entry; });
}

}  // namespace

absl::StatusOr<std::vector<double>> AggregateHop(const v1::Plan& plan, const EdgesView& edges, const NodeMatrix& rows,
                                                 int threads, RandomSource& random,
                                                 const std::function<bool()>& keep_going) {
  const v1::AggregationPlan& aggregation = plan.aggregation();
  const int64_t slots = rows.rows();
  const auto width = static_cast<size_t>(rows.cols());
  std::vector<double> sums(static_cast<size_t>(slots) * width, 0.0);
  std::vector<std::unique_ptr<RandomSource>> streams;
  for (int64_t i = 0; i < kStreams; ++i) {
    streams.push_back(random.Split());
  }
  KeepGoing until_told(keep_going);
  const std::function<bool()> ask = std::ref(until_told);
  ParallelFor(kStreams, threads, [&](int /*worker*/, int64_t stream) {
    Pace pace(ask);
    for (int64_t slot = slots * stream / kStreams; slot < slots * (stream + 1) / kStreams; ++slot) {
      const auto degree = edges.neighbours_of(slot).size();
      if (!pace.GoOn(static_cast<int64_t>((degree + 1) * width))) {
        return;
      }
      const std::span<double> sum = std::span(sums).subspan(static_cast<size_t>(slot) * width, width);
      AddNeighbours(edges, slot, rows, sum.data());
      if (!plan.non_private()) {
        ClipSum(aggregation.clip(), sum);
        AddLatticeNoise(*streams[static_cast<size_t>(stream)], aggregation.noise_stddev(), plan.lattice_bits(), sum);
      }
    }
  });
  if (until_told.stopped()) {
    return absl::CancelledError("training was cancelled");
  }
  return sums;
}

absl::StatusOr<std::vector<NodeMatrix>> AggregateHops(const v1::Plan& plan, const EdgesView& edges, NodeMatrix encoded,
                                                      int threads, RandomSource& random,
                                                      const std::function<bool()>& keep_going) {
  std::vector<NodeMatrix> hops;
  hops.push_back(std::move(encoded));
  for (int64_t hop = 0; hop < plan.aggregation().hops(); ++hop) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<double> sums,
                          AggregateHop(plan, edges, hops.back(), threads, random, keep_going));
    NodeMatrix next(hops.back().rows(), hops.back().cols());
    const auto width = static_cast<size_t>(next.cols());
    for (Eigen::Index slot = 0; slot < next.rows(); ++slot) {
      ScaleToUnit(std::span(sums).subspan(static_cast<size_t>(slot) * width, width), next.row(slot).data());
    }
    hops.push_back(std::move(next));
  }
  return hops;
}

NeighbourLists SampleNeighbours(const EdgesView& edges, int64_t count, RandomSource& random) {
  NeighbourLists lists;
  lists.offsets.reserve(edges.offsets.size());
  for (int64_t slot = 0; slot < edges.node_count(); ++slot) {
    const auto all = edges.neighbours_of(slot);
    if (static_cast<int64_t>(all.size()) <= count) {
      lists.neighbours.insert(lists.neighbours.end(), all.begin(), all.end());
    } else {
      std::vector<int64_t> chosen = SampleWithoutReplacement(random, static_cast<int64_t>(all.size()), count);
      std::sort(chosen.begin(), chosen.end());
      for (const int64_t place : chosen) {
        lists.neighbours.push_back(all[static_cast<size_t>(place)]);
      }
    }
    lists.offsets.push_back(static_cast<int64_t>(lists.neighbours.size()));
  }
  return lists;
}

}  // namespace dpar
