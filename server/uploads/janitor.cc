#include "server/uploads/janitor.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>

#include "core/status_macros.h"
#include "server/store/datasets.h"

namespace dpar {
namespace {

constexpr int64_t kAnswersAtOnce = 500;
constexpr int kBatchesInARound = 100;

}  // namespace

void Janitor::Start(absl::Duration period) {
  rounds_.emplace([this, period] {
    if (const absl::Status status = MakeRound(); !status.ok()) {
      spdlog::warn("janitor: a round was not finished: {}", std::string(status.message()));
    }
    return period;
  });
}

absl::Status Janitor::MakeRound() {
  const absl::Time now = clock_();
  DPAR_RETURN_IF_ERROR(uploads_.RefuseExpired("", now));
  const absl::Time before = now - absl::Hours(24 * limits_.request_memory_days);
  int64_t forgotten = kAnswersAtOnce;
  for (int batch = 0; batch < kBatchesInARound && forgotten == kAnswersAtOnce; ++batch) {
    DPAR_RETURN_IF_ERROR(database_.Write([&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(forgotten, ForgetAnswers(transaction, before, kAnswersAtOnce));
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

}  // namespace dpar
