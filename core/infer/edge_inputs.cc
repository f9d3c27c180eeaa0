#include "core/infer/edge_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/infer/input_rows.h"
#include "core/infer/logits.h"
#include "core/infer/neighbour_sum.h"
#include "core/pace.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Keeps a row's length at most 1 despite the rounding of its norm and of its entries to floats.
constexpr double kUnitGuard = 1 - 0x1p-22;

absl::Status Cancelled() { return absl::CancelledError("reading the graph was cancelled"); }

Model NetworkOf(const Model& model) {
  Model network;
  network.transform = v1::RAW;
  network.feature_count = model.input_count();
  network.class_count = model.class_count;
  network.hidden_size = model.hidden_size;
  network.weights = model.weights;
  network.output_weights = model.output_weights;
  return network;
}

class InputSum {
 public:
  InputSum(const SparseRowsView& features, int64_t feature_count, v1::Transform transform)
      : features_(features), transform_(transform, {}), sum_(static_cast<size_t>(feature_count), 0.0) {}

  void Add(int64_t node, double weight) {
    const auto columns = features_.row_columns(node);
    const auto values = features_.row_values(node);
    phi_.resize(values.size());
    TransformEntries(transform_.transform(), values, phi_);
    const double scale = weight * transform_.Scale(columns, phi_).scale;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto column = static_cast<size_t>(columns[i]);
      if (sum_[column] == 0) {
        touched_.push_back(columns[i]);
      }
      sum_[column] += scale * static_cast<double>(phi_[i]);
    }
  }

  void Take(int64_t first, SparseRows& rows) {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const int32_t column : touched_) {
      const auto value = static_cast<float>(sum_[static_cast<size_t>(column)]);
      sum_[static_cast<size_t>(column)] = 0;
      if (value != 0) {
        rows.columns.push_back(static_cast<int32_t>(first + column));
        rows.values.push_back(value);
      }
    }
    touched_.clear();
  }

 private:
  const SparseRowsView features_;
  const InputTransform transform_;
  std::vector<double> sum_;
  std::vector<int32_t> touched_;
  std::vector<float> phi_;
};

absl::StatusOr<SparseRows> HopRows(const Model& model, const GraphView& graph, int threads,
                                   const std::function<bool()>& keep_going) {
  std::vector<NodeMatrix> blocks;
  DPAR_ASSIGN_OR_RETURN(blocks.emplace_back(),
                        EncodeRows(graph.features, model.feature_count, model.transform, model.encoder_weights,
                                   model.encoder_size, threads, keep_going));
  KeepGoing until_told(keep_going);
  const std::function<bool()> ask = std::ref(until_told);
  for (int64_t hop = 0; hop < model.hops; ++hop) {
    const NodeMatrix& before = blocks.back();
    NodeMatrix sums(before.rows(), before.cols());
    ForRowBlocks(before.rows(), threads, [&](int64_t first, int64_t last) {
      std::vector<double> sum(static_cast<size_t>(model.encoder_size));
      Pace pace(ask);
      for (int64_t node = first; node < last; ++node) {
        const auto degree = static_cast<int64_t>(graph.edges.neighbours_of(node).size());
        if (!pace.GoOn(degree * model.encoder_size)) {
          return;
        }
        std::fill(sum.begin(), sum.end(), 0.0);
        AddNeighbours(graph.edges, node, before, sum.data());
        ScaleToUnit(sum, sums.row(node).data());
      }
    });
    if (until_told.stopped()) {
      return Cancelled();
    }
    blocks.push_back(std::move(sums));
  }
  return JoinBlocks(blocks);
}

}  // namespace

void ScaleToUnit(std::span<const double> row, float* out) {
  double square = 0;
  for (const double entry : row) {
    square += entry * entry;
  }
  constexpr double kLeastSquare = 1e-303;  // smaller squares keep too few bits: the row would be too long
  const double scale = square >= kLeastSquare && std::isfinite(square) ? kUnitGuard / std::sqrt(square) : 0;
  std::transform(row.begin(), row.end(), out,
                 [scale](double entry) { return scale == 0 ? 0.0F : static_cast<float>(scale * entry); });
}

absl::StatusOr<SparseRows> NeighbourMeanRows(const SparseRowsView& features, int64_t feature_count,
                                             const EdgesView& lists, v1::Transform transform,
                                             const std::function<bool()>& keep_going) {
  InputSum sum(features, feature_count, transform);
  SparseRows rows;
  rows.offsets.reserve(static_cast<size_t>(features.row_count()) + 1);
  Pace pace(keep_going);
  for (int64_t node = 0; node < features.row_count(); ++node) {
    sum.Add(node, 1);
    sum.Take(0, rows);
    const auto neighbours = lists.neighbours_of(node);
    for (const int32_t neighbour : neighbours) {
      if (!pace.GoOn(static_cast<int64_t>(features.row_columns(neighbour).size()))) {
        return Cancelled();
      }
      sum.Add(neighbour, 1 / static_cast<double>(neighbours.size()));
    }
    sum.Take(feature_count, rows);
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
  }
  return rows;
}

absl::StatusOr<NodeMatrix> EncodeRows(const SparseRowsView& features, int64_t feature_count, v1::Transform transform,
                                      const std::vector<float>& weights, int64_t encoder_size, int threads,
                                      const std::function<bool()>& keep_going) {
  Model encoder;
  encoder.transform = transform;
  encoder.feature_count = feature_count;
  encoder.class_count = encoder_size;
  encoder.weights = weights;
  DPAR_ASSIGN_OR_RETURN(NodeMatrix rows, Logits(encoder, features, threads, keep_going));
  std::vector<double> entries(static_cast<size_t>(encoder_size));
  for (Eigen::Index node = 0; node < rows.rows(); ++node) {
    float* const row = rows.row(node).data();
    std::transform(row, row + encoder_size, entries.begin(),
                   [](float entry) { return std::max(0.0, static_cast<double>(entry)); });
    ScaleToUnit(entries, row);
  }
  return rows;
}

SparseRows JoinBlocks(const std::vector<NodeMatrix>& blocks) {
  SparseRows rows;
  for (Eigen::Index node = 0; node < blocks.front().rows(); ++node) {
    int32_t column = 0;
    for (const NodeMatrix& block : blocks) {
      for (Eigen::Index i = 0; i < block.cols(); ++i, ++column) {
        if (block(node, i) != 0) {
          rows.columns.push_back(column);
          rows.values.push_back(block(node, i));
        }
      }
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
  }
  return rows;
}

absl::StatusOr<NodeMatrix> GraphLogits(const Model& model, const GraphView& graph, int threads,
                                       const std::function<bool()>& keep_going) {
  if (model.reads == ModelInputs::kFeatures) {
    return Logits(model, graph.features, threads, keep_going);
  }
  DPAR_ASSIGN_OR_RETURN(const SparseRows rows, model.reads == ModelInputs::kHops
                                                   ? HopRows(model, graph, threads, keep_going)
                                                   : NeighbourMeanRows(graph.features, model.feature_count, graph.edges,
                                                                       model.transform, keep_going));
  return Logits(NetworkOf(model), rows, threads, keep_going);
}

}  // namespace dpar
