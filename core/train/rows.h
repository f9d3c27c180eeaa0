// The rows that training runs over. A row is a node (its owner, whose label it has) with weighted slots; the model sees
// the weighted sum of their inputs (without a hidden layer) or logits (with one).
#ifndef DPAR_CORE_TRAIN_ROWS_H_
#define DPAR_CORE_TRAIN_ROWS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/appr/private_rows.h"
#include "core/graph/graph.h"
#include "core/infer/input_rows.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

struct RowList {
  std::vector<int32_t> labels;         // of the owner; kUnlabelled: the row contributes exactly 0
  std::vector<int64_t> offsets = {0};  // into slots and weights
  std::vector<int32_t> slots;
  std::vector<double> weights;

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

RowList IdentityRows(const GraphView& graph);

// With APPR_AND_IDENTITY, also the identity row of every slot that is no seed.
RowList StructureRows(const GraphView& graph, const ApprRows& appr, v1::RowSet set);

// The null rule: a row contributes exactly 0 if its owner is null or unlabelled, or if any slot that it lists is null.
// So making a node null takes away its own rows and those that list it, at most r = 1 + max_occurrence with capped
// columns, and changes no other; the price relies on it. Unsampled slots are null (core/graph/keep_slots.h).
void ApplyNullRule(const GraphView& graph, RowList& rows);

// For the rounding of up to 2^24 products in double, relative to the squared sum of absolute values.
inline constexpr double kSquareGuard = 0x1p-28;

// What does not change from step to step. Refers to the graph, the transform and the list, which outlive it. Memory O(N
// + rows), and K (K + 1) / 2 inner products for each row of K > 1 slots with a hidden layer.
class PreparedRows {
 public:
  // Asks `keep_going` for every row of several slots, else at the pace of core/pace.h. After a no the object is
  // unusable: the caller must ask again, and stop.
  PreparedRows(const GraphView& graph, const InputTransform& transform, const RowList& rows, bool hidden_layer,
               const std::function<bool()>& keep_going);

  [[nodiscard]] const GraphView& graph() const { return graph_; }
  [[nodiscard]] const InputTransform& transform() const { return transform_; }
  [[nodiscard]] const RowList& rows() const { return rows_; }
  [[nodiscard]] const InputScale& scale(int32_t slot) const { return scales_[static_cast<size_t>(slot)]; }

  [[nodiscard]] int64_t entries(int64_t row) const;

  // Upper bounds, in exact arithmetic, on the norm of the weighted sum of a row's inputs and on the sum of its parts'
  // absolute values. Without a hidden layer only.
  struct Bound {
    double norm = 0;
    double magnitude = 0;
  };
  [[nodiscard]] const Bound& bound(int64_t row) const { return bounds_[static_cast<size_t>(row)]; }

  // z_k . z_l of a row's slots for l <= k, at k (k + 1) / 2 + l. With a hidden layer only.
  [[nodiscard]] std::span<const double> products(int64_t row) const;

 private:
  [[nodiscard]] std::vector<double> InnerProducts(int64_t row) const;
  [[nodiscard]] Bound BoundOf(int64_t row, std::span<const double> products) const;

  GraphView graph_;
  const InputTransform& transform_;
  const RowList& rows_;
  std::vector<InputScale> scales_;  // by slot
  std::vector<Bound> bounds_;       // by row
  std::vector<int64_t> product_offsets_;
  std::vector<double> products_;
};

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_ROWS_H_
