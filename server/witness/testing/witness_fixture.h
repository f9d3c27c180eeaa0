// A private dataset with a budget, jobs on it, and a ledger that can be rolled back as a restored backup would.
#ifndef DPAR_SERVER_WITNESS_TESTING_WITNESS_FIXTURE_H_
#define DPAR_SERVER_WITNESS_TESTING_WITNESS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/ledger/testing/ledger_fixture.h"
#include "server/queue/queue.h"
#include "server/store/data_directory.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/store/testing/temporary_store.h"
#include "server/witness/rollback.h"
#include "server/witness/witness.h"

namespace dpar::testing {

inline const absl::Time kWitnessTime = absl::FromUnixSeconds(1'800'000'000);

class WitnessFixture : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/witness_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    const auto made = Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", std::string(32, 'k'), kWitnessTime));
      DPAR_RETURN_IF_ERROR(OpenBudget(t, kPopulation, terms_, {"server", kWitnessTime}));
      DPAR_RETURN_IF_ERROR(RememberContent(t, "tenants/acme", std::string(64, 'a'), kPopulation));
      v1::Dataset dataset;
      dataset.set_name("tenants/acme/datasets/d");
      dataset.set_content_digest(std::string(64, 'c'));
      dataset.set_population(kPopulation);
      return InsertDataset(t, dataset, 10);
    });
    ASSERT_TRUE(made.ok()) << made;
    Restart();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // Another server on the same store.
  std::unique_ptr<Witness> NewWitness() {
    return std::make_unique<Witness>(store_.database(), root_ + "/witness", [this] { ++failures_; });
  }
  void Restart() {
    witness_ = NewWitness();
    const absl::Status begun = witness_->Begin();
    EXPECT_TRUE(begun.ok()) << begun;
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  static std::string Name(const std::string& job) { return "tenants/acme/jobs/" + job; }
  Price PriceOf(double epsilon) const {
    return *MakePrice(*MakeGaussianEvent(1, 1 / *GaussianMu(epsilon, kDelta), 1), epsilon, kDelta, terms_);
  }
  // Reserves and queues.
  absl::Status Submit(const std::string& job, double epsilon = 0.5) {
    return Write([&](Transaction& t) -> absl::Status {
      StoredJob stored;
      stored.job.set_name(Name(job));
      stored.job.mutable_spec()->set_dataset("tenants/acme/datasets/d");
      stored.job.mutable_plan()->set_steps(1);
      stored.population = kPopulation;
      DPAR_RETURN_IF_ERROR(Reserve(t, kPopulation, Name(job), PriceOf(epsilon), {"token", kWitnessTime}).status());
      return Enqueue(t, stored);
    });
  }
  // Posts and ends it, as a worker does after a failure that is charged.
  absl::Status Finish(const std::string& job) {
    return Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(Post(t, kPopulation, Name(job), 1, {"worker", kWitnessTime}).status());
      return End(t, Name(job), v1::Job::FAILED, "it failed", kWitnessTime);
    });
  }
  void Spend(const std::string& job, double epsilon = 0.5) {
    ASSERT_TRUE(Submit(job, epsilon).ok());
    ASSERT_TRUE(Finish(job).ok());
  }
  absl::Status Cover(const std::string& job) { return witness_->CoverJobs({Name(job)}); }

  Account AccountNow() {
    return ReadFrom(store_.database(), [](Transaction& t) { return LoadAccount(t, kPopulation); }).value();
  }
  v1::Job Job(const std::string& job) {
    return ReadFrom(store_.database(), [&](Transaction& t) { return GetJob(t, Name(job)); }).value().job;
  }
  std::optional<Mark> MarkNow() { return witness_->marks().Read(kPopulation).value(); }

  // Makes the store what it was when the account was `then`, as far as the ledger goes: later entries vanish, and jobs
  // that posted since are queued again.
  void RollBackTo(const Account& then) {
    const absl::Status status = Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(
          t.Execute("UPDATE jobs SET state = 1, end_time = NULL, failure = '' WHERE name IN (SELECT job "
                    "FROM ledger_entries WHERE population = $1 AND kind IN (3, 4) AND sequence > $2)",
                    {kPopulation, then.head_sequence})
              .status());
      DPAR_RETURN_IF_ERROR(
          t.Execute("DELETE FROM jobs WHERE name IN (SELECT job FROM ledger_entries WHERE population = "
                    "$1 AND kind = 2 AND sequence > $2)",
                    {kPopulation, then.head_sequence})
              .status());
      DPAR_RETURN_IF_ERROR(t.Execute("DELETE FROM ledger_entries WHERE population = $1 AND sequence > $2",
                                     {kPopulation, then.head_sequence})
                               .status());
      return t
          .Execute(
              "UPDATE populations SET cap_epsilon = $2, cap_units = $3, posted_units = $4, reserved_units = $5, "
              "live_events = $6, head_sequence = $7, head_hash = $8, frozen_reason = '', closed_reason = $9, "
              "merged_into = $10 WHERE name = $1",
              {kPopulation, then.terms.cap_epsilon, then.terms.cap_units, then.posted_units, then.reserved_units,
               then.live_events, then.head_sequence, then.head_hash, then.closed_reason, then.merged_into})
          .status();
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<Thawed> ThawNow() {
    return Thaw(store_.database(), witness_->marks(), kPopulation, "restored a backup", {"server", kWitnessTime});
  }
  void ExpectIntact() {
    const auto chain = ReadFrom(store_.database(), [](Transaction& t) { return VerifyChain(t, kPopulation, {}); });
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_TRUE(chain->intact()) << chain->fault();
  }
  std::string root_;
  int failures_ = 0;
  const BudgetTerms terms_ = *MakeBudgetTerms(4, kDelta);
  TemporaryStore store_{GetParam()};
  std::unique_ptr<Witness> witness_;
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_WITNESS_TESTING_WITNESS_FIXTURE_H_
