#include "core/train/engine.h"

#include <cstddef>
#include <cstdint>

namespace dpar {
namespace {

// Largest N x d for two copies of the stored entries. Public, unlike their number: engines do not sum to the same bits.
constexpr int64_t kMaxCopiedMatrix = 300'000'000;

bool AreIdentityRows(const RowList& rows) {
  bool identity = rows.slots.size() == rows.labels.size();
  for (size_t i = 0; identity && i < rows.slots.size(); ++i) {
    identity =
        rows.offsets[i] == static_cast<int64_t>(i) && rows.slots[i] == static_cast<int32_t>(i) && rows.weights[i] == 1;
  }
  return identity;
}

}  // namespace

std::unique_ptr<GradientEngine> MakeEngine(const PreparedRows& rows, const WeightShape& shape, bool full_batch,
                                           const std::string& device, int threads,
                                           const std::function<bool()>& keep_going) {
  if (device != "cpu") {
    return MakeTorchEngine(rows, shape, device, keep_going);
  }
  const PublicSizes& sizes = rows.graph().sizes;
  const bool small =
      sizes.node_count <= kMaxCopiedMatrix / sizes.feature_count && sizes.feature_count <= kMaxFullBatchColumns;
  if (full_batch && small && shape.hidden == 0 && AreIdentityRows(rows.rows())) {
    return MakeFullBatchEngine(rows, shape, threads, keep_going);
  }
  return MakeCpuEngine(rows, shape, threads, keep_going);
}

}  // namespace dpar
