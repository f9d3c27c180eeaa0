#include "server/observe/refusals.h"

#include <algorithm>
#include <utility>

namespace dpar {
namespace {

constexpr size_t kMaxOfTenant = 20;
constexpr size_t kMaxShown = 20;

}  // namespace

void Refusals::Note(const std::string& tenant, Refusal refusal) {
  const absl::MutexLock lock(&mutex_);
  std::deque<Refusal>& of_tenant = refusals_[tenant];
  of_tenant.push_front(std::move(refusal));
  if (of_tenant.size() > kMaxOfTenant) {
    of_tenant.pop_back();
  }
}

Refusals::Summary Refusals::Summarise(const std::string& tenant, absl::Time since) const {
  Summary summary;
  const absl::MutexLock lock(&mutex_);
  for (const auto& [name, refusals] : refusals_) {
    if (!tenant.empty() && name != tenant) {
      continue;
    }
    std::copy_if(refusals.begin(), refusals.end(), std::back_inserter(summary.newest),
                 [&](const Refusal& refusal) { return refusal.time >= since; });
  }
  summary.count = static_cast<int64_t>(summary.newest.size());
  std::stable_sort(summary.newest.begin(), summary.newest.end(),
                   [](const Refusal& a, const Refusal& b) { return a.time > b.time; });
  summary.newest.resize(std::min(summary.newest.size(), kMaxShown));
  return summary;
}

}  // namespace dpar
