// The rows that training runs over. A row is a node (its owner, whose label it has) with the slots that are listed for
// it, each with a weight; the model sees the weighted sum of their inputs (without a hidden layer) or logits (with
// one).
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

// The identity row of every slot: itself, with weight 1.
RowList IdentityRows(const GraphView& graph);

// DP-APPR rows, and with APPR_AND_IDENTITY the identity row of every slot that is no seed.
RowList StructureRows(const GraphView& graph, const ApprRows& appr, v1::RowSet set);

// The null rule: a row contributes exactly 0 if its owner is null or unlabelled, or if any slot that it lists is null.
// So making a node null takes away the rows that are its own or list it, and changes no other: with the columns capped,
// at most r = 1 + max_occurrence clipped gradients vanish. Without it those rows would change instead of vanish, and
// the price of a step would not hold. A slot that was not sampled is null by then (core/graph/keep_slots.h).
void ApplyNullRule(const GraphView& graph, RowList& rows);

// Room in squared norms for the rounding of inner products, relative to the squared sum of absolute values: sums of up
// to 2^24 products in double are off by less.
inline constexpr double kSquareGuard = 0x1p-28;

// The rows with what does not change from step to step. Refers to the graph, the transform and the list, which outlive
// it. Memory O(N + rows), and K (K + 1) / 2 inner products for each row of K > 1 slots where a hidden layer needs them.
class PreparedRows {
 public:
  // Asks `keep_going` for every row of several slots, and otherwise at the pace of core/pace.h. Once the answer was no
  // the object is unfit for use: whoever passed it must ask again, and stop.
  PreparedRows(const GraphView& graph, const InputTransform& transform, const RowList& rows, bool hidden_layer,
               const std::function<bool()>& keep_going);

  [[nodiscard]] const GraphView& graph() const { return graph_; }
  [[nodiscard]] const InputTransform& transform() const { return transform_; }
  [[nodiscard]] const RowList& rows() const { return rows_; }
  [[nodiscard]] const InputScale& scale(int32_t slot) const { return scales_[static_cast<size_t>(slot)]; }

  // Feature entries of the slots that a row lists.
  [[nodiscard]] int64_t entries(int64_t row) const;

  // Of the weighted sum of a row's inputs: an upper bound of its norm in exact arithmetic, and of the sum of the
  // absolute values of what it consists of. Without a hidden layer only.
  struct Bound {
    double norm = 0;
    double magnitude = 0;
  };
  [[nodiscard]] const Bound& bound(int64_t row) const { return bounds_[static_cast<size_t>(row)]; }

  // z_k . z_l of the k-th and l-th slot of a row for l <= k, at k (k + 1) / 2 + l. With a hidden layer only.
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
