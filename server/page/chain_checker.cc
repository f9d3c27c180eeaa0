#include "server/page/chain_checker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "server/ledger/ledger.h"
#include "server/steady_time.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr absl::Duration kRound = absl::Hours(1);
constexpr absl::Duration kIdle = absl::Seconds(5);
constexpr int64_t kRestForOne = 9;
constexpr absl::Duration kListLife = absl::Seconds(5);

}  // namespace

void ChainChecker::Start() {
  verifying_ = std::make_unique<Periodic>([this] { return VerifyNext(absl::Now()); });
}

std::optional<BudgetHead> ChainChecker::Next(const std::vector<BudgetHead>& heads, absl::Time now) const {
  const MutexLock lock(&mutex_);
  const BudgetHead* next = nullptr;
  absl::Time next_time = now - kRound;
  for (const BudgetHead& head : heads) {
    const auto known = verified_.find(head.population);
    // A time in the future means that the clock was set back.
    const bool past = known != verified_.end() && known->second.time <= now;
    const absl::Time time = past ? known->second.time : absl::InfinitePast();
    if (time < next_time) {
      next = &head;
      next_time = time;
    }
  }
  return next == nullptr ? std::nullopt : std::optional<BudgetHead>(*next);
}

absl::Duration ChainChecker::VerifyNext(absl::Time now) {
  const absl::Time start = SteadyNow();
  if (absl::AbsDuration(now - heads_time_) >= kListLife) {
    absl::StatusOr<std::vector<BudgetHead>> heads =
        ReadFrom(database_, [](Transaction& transaction) { return ListBudgetHeads(transaction); });
    if (!heads.ok()) {
      return kIdle;
    }
    heads_ = *std::move(heads);
    heads_time_ = now;
  }
  const std::optional<BudgetHead> next = Next(heads_, now);
  if (!next.has_value()) {
    return kIdle;
  }
  const absl::StatusOr<v1::VerifyChainResponse> chain = ReadFrom(
      database_, [&](Transaction& transaction) { return VerifyChain(transaction, next->population, {}, &stop_); });
  if (absl::IsUnavailable(chain.status()) || absl::IsCancelled(chain.status())) {
    // The chain's state is unknown; the store is asked again later.
    return kIdle;
  }
  Verified verified{*next, now, 0, ""};
  if (!chain.ok()) {
    verified.fault = BudgetFaultText(chain.status());
    spdlog::error("observe: ledger {} cannot be read: {}", next->population, std::string(chain.status().message()));
  } else if (!chain->intact()) {
    verified.bad_sequence = chain->first_bad_sequence();
    verified.fault = chain->fault();
    spdlog::error("observe: ledger {} is broken at entry {}: {}", next->population, verified.bad_sequence,
                  verified.fault);
  }
  {
    const MutexLock lock(&mutex_);
    verified_[next->population] = std::move(verified);
  }
  return std::max(absl::ZeroDuration(), kRestForOne * (SteadyNow() - start));
}

ChainChecker::Summary ChainChecker::Summarise(const std::string& tenant) const {
  Summary summary;
  const MutexLock lock(&mutex_);
  for (const auto& [id, verified] : verified_) {
    if (!tenant.empty() && verified.head.tenant != tenant) {
      continue;
    }
    summary.verified += 1;
    summary.oldest = std::min(summary.oldest.value_or(absl::InfiniteFuture()), verified.time);
    if (!verified.fault.empty()) {
      summary.faults.push_back({verified.head.population, verified.time, verified.bad_sequence, verified.fault});
    }
  }
  return summary;
}

}  // namespace dpar
