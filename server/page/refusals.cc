#include "server/page/refusals.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dpar {

void Refusals::Note(const std::string& tenant, Refusal refusal) {
  const MutexLock lock(&mutex_);
  refusals_[tenant].Add(std::move(refusal));
}

Refusals::Summary Refusals::Summarise(const std::string& tenant, absl::Time since) const {
  Summary summary;
  const MutexLock lock(&mutex_);
  for (const auto& [name, refusals] : refusals_) {
    if (!tenant.empty() && name != tenant) {
      continue;
    }
    summary.count += refusals.CountSince(since);
    std::copy_if(refusals.items().begin(), refusals.items().end(), std::back_inserter(summary.newest),
                 [&](const Refusal& refusal) { return refusal.time >= since; });
  }
  std::stable_sort(summary.newest.begin(), summary.newest.end(),
                   [](const Refusal& a, const Refusal& b) { return a.time > b.time; });
  summary.newest.resize(std::min(summary.newest.size(), kMaxNewest));
  return summary;
}

}  // namespace dpar
