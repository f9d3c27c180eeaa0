#include "core/train/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/fault.h"
#include "core/pace.h"

namespace dpar {
namespace {

void AppendIdentity(int32_t slot, int32_t label, RowList& rows) {
  rows.labels.push_back(label);
  rows.slots.push_back(slot);
  rows.weights.push_back(1);
  rows.offsets.push_back(static_cast<int64_t>(rows.slots.size()));
}

void AppendStructureRow(const GraphView& graph, const ApprRows& appr, size_t index, RowList& rows) {
  const auto first = static_cast<std::ptrdiff_t>(appr.offsets[index]);
  const auto last = static_cast<std::ptrdiff_t>(appr.offsets[index + 1]);
  rows.labels.push_back(graph.labels[static_cast<size_t>(appr.seeds[index])]);
  rows.slots.insert(rows.slots.end(), appr.columns.begin() + first, appr.columns.begin() + last);
  rows.weights.insert(rows.weights.end(), appr.values.begin() + first, appr.values.begin() + last);
  rows.offsets.push_back(static_cast<int64_t>(rows.slots.size()));
}

// Columns ascend.
double SparseDot(std::span<const int32_t> a_columns, std::span<const float> a, std::span<const int32_t> b_columns,
                 std::span<const float> b) {
  double dot = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a_columns[i] == b_columns[j]) {
      dot += static_cast<double>(a[i]) * static_cast<double>(b[j]);
    }
    const bool advance_a = a_columns[i] <= b_columns[j];
    const bool advance_b = b_columns[j] <= a_columns[i];
    i += advance_a ? 1 : 0;
    j += advance_b ? 1 : 0;
  }
  return dot;
}

}  // namespace

RowList IdentityRows(const GraphView& graph) {
  RowList rows;
  const auto count = static_cast<size_t>(graph.sizes.node_count);
  rows.labels.reserve(count);
  rows.offsets.reserve(count + 1);
  rows.slots.reserve(count);
  rows.weights.reserve(count);
  for (int32_t slot = 0; slot < static_cast<int32_t>(graph.sizes.node_count); ++slot) {
    AppendIdentity(slot, graph.labels[static_cast<size_t>(slot)], rows);
  }
  return rows;
}

RowList StructureRows(const GraphView& graph, const ApprRows& appr, v1::RowSet set) {
  RowList rows;
  if (set == v1::APPR_ONLY) {
    for (size_t i = 0; i < appr.seeds.size(); ++i) {
      AppendStructureRow(graph, appr, i, rows);
    }
    return rows;
  }
  constexpr size_t kNoSeed = SIZE_MAX;
  std::vector<size_t> seed_at(static_cast<size_t>(graph.sizes.node_count), kNoSeed);
  for (size_t i = 0; i < appr.seeds.size(); ++i) {
    seed_at[static_cast<size_t>(appr.seeds[i])] = i;
  }
  for (size_t slot = 0; slot < seed_at.size(); ++slot) {
    if (seed_at[slot] == kNoSeed) {
      AppendIdentity(static_cast<int32_t>(slot), graph.labels[slot], rows);
    } else {
      AppendStructureRow(graph, appr, seed_at[slot], rows);
    }
  }
  return rows;
}

void ApplyNullRule(const GraphView& graph, RowList& rows) {
  DPAR_FAULT_DO(kNoNullRule, return );
  for (size_t row = 0; row < rows.labels.size(); ++row) {
    const auto first = rows.slots.begin() + static_cast<std::ptrdiff_t>(rows.offsets[row]);
    const auto last = rows.slots.begin() + static_cast<std::ptrdiff_t>(rows.offsets[row + 1]);
    if (std::any_of(first, last, [&](int32_t slot) { return graph.IsNull(slot); })) {
      rows.labels[row] = kUnlabelled;
    }
  }
}

PreparedRows::PreparedRows(const GraphView& graph, const InputTransform& transform, const RowList& rows,
                           bool hidden_layer, const std::function<bool()>& keep_going)
    : graph_(graph), transform_(transform), rows_(rows), scales_(static_cast<size_t>(graph.sizes.node_count)) {
  Pace pace(keep_going);
  std::vector<float> phi;
  for (size_t slot = 0; slot < scales_.size(); ++slot) {
    const auto id = static_cast<int64_t>(slot);
    const auto values = graph.features.row_values(id);
    if (!pace.GoOn(static_cast<int64_t>(values.size()))) {
      return;
    }
    phi.resize(values.size());
    TransformEntries(transform.transform(), values, phi);
    scales_[slot] = transform.Scale(graph.features.row_columns(id), phi);
  }
  if (hidden_layer) {
    product_offsets_.reserve(rows.offsets.size());
    product_offsets_.push_back(0);
  } else {
    bounds_.reserve(rows.labels.size());
  }
  for (int64_t row = 0; row < rows.count(); ++row) {
    const bool several = rows.offsets[static_cast<size_t>(row) + 1] - rows.offsets[static_cast<size_t>(row)] > 1;
    if (!pace.GoOn(1) || (several && !keep_going())) {
      return;
    }
    const std::vector<double> products = InnerProducts(row);
    if (hidden_layer) {
      products_.insert(products_.end(), products.begin(), products.end());
      product_offsets_.push_back(static_cast<int64_t>(products_.size()));
    } else {
      bounds_.push_back(BoundOf(row, products));
    }
  }
}

PreparedRows::Bound PreparedRows::BoundOf(int64_t row, std::span<const double> products) const {
  const auto first = static_cast<size_t>(rows_.offsets[static_cast<size_t>(row)]);
  const auto count = static_cast<size_t>(rows_.offsets[static_cast<size_t>(row) + 1]) - first;
  double square = 0;
  Bound bound;
  for (size_t k = 0; k < count; ++k) {
    const double weight = rows_.weights[first + k];
    for (size_t l = 0; l <= k; ++l) {
      square += (l < k ? 2 : 1) * weight * rows_.weights[first + l] * products[k * (k + 1) / 2 + l];
    }
    bound.magnitude += std::fabs(weight) * scale(rows_.slots[first + k]).magnitude;
  }
  // fmax would hide a square that is not a number, or that overflowed downwards.
  bound.norm = std::isfinite(square)
                   ? std::sqrt(std::fmax(square, 0) + kSquareGuard * bound.magnitude * bound.magnitude)
                   : std::numeric_limits<double>::infinity();
  return bound;
}

int64_t PreparedRows::entries(int64_t row) const {
  int64_t entries = 0;
  for (auto at = static_cast<size_t>(rows_.offsets[static_cast<size_t>(row)]);
       at < static_cast<size_t>(rows_.offsets[static_cast<size_t>(row) + 1]); ++at) {
    entries += static_cast<int64_t>(graph_.features.row_columns(rows_.slots[at]).size());
  }
  return entries;
}

std::span<const double> PreparedRows::products(int64_t row) const {
  const auto first = static_cast<size_t>(product_offsets_[static_cast<size_t>(row)]);
  const auto last = static_cast<size_t>(product_offsets_[static_cast<size_t>(row) + 1]);
  return std::span(products_).subspan(first, last - first);
}

std::vector<double> PreparedRows::InnerProducts(int64_t row) const {
  const auto first = static_cast<size_t>(rows_.offsets[static_cast<size_t>(row)]);
  const auto last = static_cast<size_t>(rows_.offsets[static_cast<size_t>(row) + 1]);
  const std::span<const int32_t> slots = std::span(rows_.slots).subspan(first, last - first);
  if (slots.size() == 1) {
    const double norm = scale(slots[0]).norm;
    return {norm * norm};
  }
  std::vector<std::vector<float>> phi(slots.size());
  std::vector<double> center(slots.size());
  std::vector<double> products;
  products.reserve(slots.size() * (slots.size() + 1) / 2);
  for (size_t k = 0; k < slots.size(); ++k) {
    const InputScale& a = scale(slots[k]);
    const auto a_columns = graph_.features.row_columns(slots[k]);
    phi[k].resize(a_columns.size());
    TransformEntries(transform_.transform(), graph_.features.row_values(slots[k]), phi[k]);
    center[k] = transform_.CenterDot(a_columns, phi[k]);
    for (size_t l = 0; l <= k; ++l) {
      const InputScale& b = scale(slots[l]);
      const auto b_columns = graph_.features.row_columns(slots[l]);
      products.push_back(a.scale * b.scale * SparseDot(a_columns, phi[k], b_columns, phi[l]) -
                         a.scale * b.shift * center[k] - b.scale * a.shift * center[l] +
                         a.shift * b.shift * transform_.center_square() + kBiasInput * kBiasInput);
    }
  }
  return products;
}

}  // namespace dpar
