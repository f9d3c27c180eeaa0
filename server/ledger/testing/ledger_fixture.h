// A budget on a real store, and the verbs of the ledger on it.
#ifndef DPAR_SERVER_LEDGER_TESTING_LEDGER_FIXTURE_H_
#define DPAR_SERVER_LEDGER_TESTING_LEDGER_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/store/testing/temporary_store.h"

namespace dpar::testing {

inline constexpr double kDelta = 1e-5;
inline constexpr char kPopulation[] = "tenants/acme/populations/b";
inline const EntryContext kContext = {"worker", absl::FromUnixSeconds(1'800'000'000)};

inline std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

// Population "b" with a cap of epsilon 4.
class LedgerFixture : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Write([&](Transaction& t) { return OpenBudget(t, kPopulation, terms_, kContext); }).ok());
  }

  // One Gaussian job that costs exactly `epsilon` at kDelta.
  Price PriceOf(double epsilon) const {
    return *MakePrice(*MakeGaussianEvent(1, 1 / *GaussianMu(epsilon, kDelta), 1), epsilon, kDelta, terms_);
  }
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  absl::Status ReserveJob(const std::string& job, double epsilon) {
    return Write([&](Transaction& t) { return Reserve(t, kPopulation, job, PriceOf(epsilon), kContext).status(); });
  }
  absl::Status PostJob(const std::string& job) {
    return Write([&](Transaction& t) { return Post(t, kPopulation, job, 1, kContext).status(); });
  }
  absl::Status VoidJob(const std::string& job) {
    return Write([&](Transaction& t) { return VoidOrPost(t, kPopulation, job, 0, "cancelled", kContext).status(); });
  }
  absl::Status DebitUnits(int64_t units) {
    return Write([&](Transaction& t) { return Debit(t, kPopulation, units, "spent elsewhere", kContext).status(); });
  }
  v1::Budget Budget() {
    v1::Budget budget;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(budget, GetBudget(t, kPopulation));
                  return absl::OkStatus();
                }).ok());
    return budget;
  }
  v1::VerifyChainResponse Verify(const std::vector<EntryPosition>& checkpoints = {}) {
    v1::VerifyChainResponse response;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(response, VerifyChain(t, kPopulation, checkpoints));
                  return absl::OkStatus();
                }).ok());
    return response;
  }
  std::vector<v1::LedgerEntry> Entries() {
    std::vector<v1::LedgerEntry> entries;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(entries, ListEntries(t, kPopulation, 0, 1000));
                  return absl::OkStatus();
                }).ok());
    return entries;
  }

  TemporaryStore store_{GetParam()};
  const BudgetTerms terms_ = *MakeBudgetTerms(4, kDelta);
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_LEDGER_TESTING_LEDGER_FIXTURE_H_
