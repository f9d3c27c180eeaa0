#include "server/admission/estimate.h"

#include <algorithm>
#include <limits>

#include "core/plan/plan_event.h"
#include "core/plan/structure_work.h"

namespace dpar {
namespace {

// A job's share of libraries, stacks and buffers.
constexpr double kFixed = 64 << 20;
// Rows, labels, norms and logits of a slot.
constexpr double kPerSlot = 60;
constexpr double kPerClass = 4;
// Sums in double, for each thread and once for all; weights and two moments of the optimizer in float.
constexpr double kSum = 8;
constexpr double kWeights = 12;
// A slot of a DP-APPR row with its weight, as drawn and as capped; and the product of two slots' rows.
constexpr double kPerListed = 48;
constexpr double kPerProduct = 8;
// Full batches copy the features where they fit into this many cells: 8 bytes an entry, twice that while copying.
constexpr double kCopiedCells = 3e8;
constexpr double kCopies = 2;
// Above this width, full batches hold no copies.
constexpr int64_t kCopiedFeatures = 16'384;

// An entry of GAP's rows (doubles with noise, floats, sparse rows); of SAGE's (column and value, twice as arrays grow).
constexpr double kPerHopEntry = 8 + 4 + 8;
constexpr double kPerNeighbourEntry = 16;
constexpr double kPerList = 8;
constexpr double kPerListedNeighbour = 4;

// Seconds on one core of an x86-64 server. kStart and kPerByte are guesses; tests/benchmark gave the others.
constexpr double kStart = 0.05;
constexpr double kPerByte = 1e-9;
constexpr double kPerEntry = 1.7e-9;
constexpr double kPerEntryAndClass = 0.06e-9;
constexpr double kPerEntryAndUnit = 0.6e-9;
constexpr double kPerWeight = 4.5e-9;
constexpr double kPerStructureRow = 40e-6;

// In a sealed file (core/graph/sealed_format.h): offsets and a label of a slot, an edge from both ends, column and
// value of a feature entry; the header and six sections end at full pages.
constexpr double kFileSlot = 2 * 8 + 4;
constexpr double kFileEdge = 2 * 4;
constexpr double kFileEntry = 4 + 4;
constexpr double kFilePages = 7 * 4096 + 2 * 8;

double Number(int64_t value) { return static_cast<double>(value); }

// The most that the sealed file takes.
double FileBytes(const PublicSizes& sizes, const SizeBounds& bounds) {
  return kFilePages + kFileSlot * Number(sizes.node_count) + kFileEdge * Number(bounds.edges) +
         kFileEntry * Number(bounds.feature_entries);
}

// Most entries of SAGE's rows: own and neighbours'. A node's features are in at most D other rows; a row has at most d.
double NeighbourEntries(const v1::Plan& plan, const PublicSizes& sizes, double own_entries) {
  const double by_width = Number(sizes.node_count) * Number(sizes.feature_count);
  const double by_promise = plan.has_max_degree() ? Number(plan.max_degree()) * own_entries : by_width;
  return own_entries + std::min(by_width, by_promise);
}

}  // namespace

int64_t EstimateJobBytes(const v1::Plan& plan, const PublicSizes& sizes, const SizeBounds& bounds, int threads) {
  const double file = FileBytes(sizes, bounds);
  const auto nodes = static_cast<double>(sizes.node_count);
  const auto parameters = static_cast<double>(ParameterCount(plan, sizes));
  double bytes = kFixed + file + nodes * (kPerSlot + kPerClass * static_cast<double>(sizes.class_count)) +
                 parameters * (kWeights + kSum * (1 + threads));
  if (nodes * static_cast<double>(sizes.feature_count) <= kCopiedCells) {
    bytes += kCopies * file;
  }
  if (plan.has_aggregation()) {
    bytes += nodes * static_cast<double>(InputCount(plan, sizes)) * kPerHopEntry +
             static_cast<double>(EncoderParameterCount(plan, sizes)) * (kWeights + kSum * (1 + threads));
  }
  if (plan.has_neighbours()) {
    // The rows, which full batches copy, and the lists of sampled neighbours.
    const bool copied = 2 * nodes * Number(sizes.feature_count) <= kCopiedCells;
    bytes += NeighbourEntries(plan, sizes, Number(bounds.feature_entries)) * kPerNeighbourEntry * (copied ? 2 : 1) +
             nodes * (kPerList + kPerListedNeighbour * Number(plan.neighbours()));
  }
  // The split for the evaluation, and the sample, are graphs of their own.
  bytes += (plan.has_evaluation() ? file : 0) + (plan.node_sampling_rate() < 1 ? file : 0);
  if (plan.has_structure()) {
    const auto rows = static_cast<double>(plan.structure().appr_nodes());
    const auto listed = static_cast<double>(plan.structure().top_k()) + 1;
    bytes += rows * listed * kPerListed + (plan.hidden_size() > 0 ? rows * listed * listed / 2 * kPerProduct : 0) +
             Number(WorkOfStructure(plan, threads).scratch_bytes);
  }
  constexpr double kMost = 0x1p62;
  return bytes < kMost ? static_cast<int64_t>(bytes) : std::numeric_limits<int64_t>::max();
}

absl::Duration EstimateJobTime(const v1::Plan& plan, const PublicSizes& sizes, const SizeBounds& bounds, int threads) {
  const double entries = Number(bounds.feature_entries);
  const double width = Number(plan.hidden_size() > 0 ? plan.hidden_size() : sizes.class_count);
  const bool copied = plan.sampling_rate() == 1 && plan.hidden_size() == 0 && !plan.has_structure() &&
                      sizes.feature_count <= kCopiedFeatures &&
                      Number(sizes.node_count) * Number(sizes.feature_count) <= kCopiedCells;
  const double rows = plan.sampling_rate() == 1 ? Number(RowCount(plan)) : plan.batch_size();
  const double listed = plan.has_structure() ? Number(plan.structure().top_k()) : 1;
  const double read = rows * listed * entries / Number(sizes.node_count);
  const double step = (copied ? read * (kPerEntry + kPerEntryAndClass * width) : read * width * kPerEntryAndUnit) +
                      Number(ParameterCount(plan, sizes)) * kPerWeight;
  double work = Number(plan.steps()) * step;
  if (plan.has_aggregation()) {
    // The encoder, which reads features, and the classifier, which reads hops, are both trained.
    work += Number(plan.steps()) * (rows * Number(InputCount(plan, sizes)) * width * kPerEntryAndUnit +
                                    Number(EncoderParameterCount(plan, sizes)) * kPerWeight);
  }
  if (plan.has_neighbours()) {
    work += Number(plan.steps()) * read * Number(plan.neighbours()) * width * kPerEntryAndUnit;
  }
  double earliest_end = 0;
  if (plan.has_structure() && plan.non_private()) {
    work += Number(plan.structure().appr_nodes()) * kPerStructureRow;
  } else if (plan.has_structure()) {
    earliest_end = WorkOfStructure(plan, threads).seconds;
  }
  if (plan.has_evaluation()) {
    work += entries * width * kPerEntryAndUnit;
  }
  return absl::Seconds(kStart + FileBytes(sizes, bounds) * kPerByte + work / threads + earliest_end);
}

}  // namespace dpar
