#include "server/observe/store_probe.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/observe/gauge_family.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

// Older answers do not count. Far above the period of Refresh, also on a busy machine.
constexpr absl::Duration kMaxAge = absl::Seconds(30);

}  // namespace

void StoreProbe::Refresh() {
  const absl::StatusOr<Answer> answer = ReadFrom(database_, [](Transaction& transaction) -> absl::StatusOr<Answer> {
    Answer now;
    DPAR_ASSIGN_OR_RETURN(now.queue, GetQueueState(transaction, /*tenant=*/""));
    DPAR_ASSIGN_OR_RETURN(now.open_uploads, CountOpenUploads(transaction));
    DPAR_ASSIGN_OR_RETURN(now.frozen_budgets, CountFrozen(transaction));
    return now;
  });
  const MutexLock lock(&mutex_);
  if (!answer.ok()) {
    if (answer_.has_value()) {
      spdlog::error("observe: the store does not answer: {}", std::string(answer.status().message()));
    }
    answer_.reset();
    return;
  }
  answer_ = *answer;
  answer_->time = absl::Now();
}

std::optional<StoreProbe::Answer> StoreProbe::Current(absl::Time now) const {
  const MutexLock lock(&mutex_);
  return answer_.has_value() && now - answer_->time <= kMaxAge ? answer_ : std::nullopt;
}

bool StoreProbe::Answers(absl::Time now) const { return Current(now).has_value(); }

std::vector<prometheus::MetricFamily> StoreProbe::Collect(absl::Time now) const {
  const std::optional<Answer> answer = Current(now);
  std::vector<prometheus::MetricFamily> families;
  families.push_back(GaugeFamily("dpar_store_up", "1 while the store answers, 0 while it does not."));
  AddGauge({}, answer.has_value() ? 1 : 0, families.back());
  if (!answer.has_value()) {
    return families;
  }
  families.push_back(GaugeFamily("dpar_queue_jobs", "Jobs of all tenants that have not ended, on all servers."));
  AddGauge({{"state", "queued"}}, static_cast<double>(answer->queue.queued), families.back());
  AddGauge({{"state", "running"}}, static_cast<double>(answer->queue.running), families.back());
  families.push_back(GaugeFamily("dpar_queue_oldest_seconds", "Age of the oldest job that waits; 0 when none does."));
  const absl::Duration age =
      answer->queue.oldest_queued.has_value() ? now - *answer->queue.oldest_queued : absl::ZeroDuration();
  AddGauge({}, std::max(0.0, absl::ToDoubleSeconds(age)), families.back());
  families.push_back(GaugeFamily("dpar_uploads_open", "Uploads of all tenants that were opened and not finished."));
  AddGauge({}, static_cast<double>(answer->open_uploads), families.back());
  families.push_back(
      GaugeFamily("dpar_budgets_frozen", "Budgets that admit no job, because their ledger was rolled back."));
  AddGauge({}, static_cast<double>(answer->frozen_budgets), families.back());
  return families;
}

}  // namespace dpar
