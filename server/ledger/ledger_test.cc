#include "server/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using ::dpar::testing::TemporaryStore;

constexpr double kDelta = 1e-5;
const EntryContext kContext = {"worker", absl::FromUnixSeconds(1'800'000'000)};

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

// One Gaussian job that costs exactly `epsilon` at kDelta.
Price PriceOf(double epsilon) {
  Price price;
  price.epsilon = epsilon;
  price.delta = kDelta;
  price.event.mutable_gaussian()->set_sensitivity(1);
  price.event.mutable_gaussian()->set_noise_stddev(1 / *GaussianMu(epsilon, kDelta));
  price.event.mutable_gaussian()->set_count(1);
  return price;
}

// The same event as two stages, of 36% and 64% of it.
Price StagedPriceOf(double epsilon) {
  Price price = PriceOf(epsilon);
  const double stddev = price.event.gaussian().noise_stddev();
  const v1::PrivacyEvent appr = *MakeStageEvent("dp-appr", *MakeGaussianEvent(0.6, stddev, 1));
  const v1::PrivacyEvent sgd = *MakeStageEvent("dp-sgd", *MakeGaussianEvent(0.8, stddev, 1));
  price.event = *MakeCompositionEvent({appr, sgd});
  return price;
}

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    terms_ = *MakeBudgetTerms(4, kDelta);
    ASSERT_TRUE(Write([&](Transaction& t) { return OpenBudget(t, "b", terms_, kContext); }).ok());
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  absl::Status ReserveJob(const std::string& job, double epsilon) {
    return Write([&](Transaction& t) { return Reserve(t, "b", job, PriceOf(epsilon), kContext); });
  }
  absl::Status PostJob(const std::string& job) {
    return Write([&](Transaction& t) { return Post(t, "b", job, 1, kContext).status(); });
  }
  absl::Status VoidJob(const std::string& job) {
    return Write([&](Transaction& t) { return Void(t, "b", job, 1, "cancelled", kContext); });
  }
  v1::Budget Budget() {
    v1::Budget budget;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(budget, GetBudget(t, "b"));
                  return absl::OkStatus();
                }).ok());
    return budget;
  }
  v1::VerifyChainResponse Verify() {
    v1::VerifyChainResponse response;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(response, VerifyChain(t, "b"));
                  return absl::OkStatus();
                }).ok());
    return response;
  }
  std::vector<v1::LedgerEntry> Entries() {
    std::vector<v1::LedgerEntry> entries;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(entries, ListEntries(t, "b", 0, 1000));
                  return absl::OkStatus();
                }).ok());
    return entries;
  }
  void Tamper(const std::string& sql) {
    ASSERT_TRUE(Write([&](Transaction& t) { return t.Execute(sql, {}).status(); }).ok()) << sql;
  }

  TemporaryStore store_;
  BudgetTerms terms_;
};

TEST_F(LedgerTest, AFreshBudgetHasItsCapAndOneEntry) {
  const v1::Budget budget = Budget();
  EXPECT_EQ(budget.cap_epsilon(), 4);
  EXPECT_EQ(budget.cap_units(), terms_.cap_units);
  EXPECT_EQ(budget.left_units(), terms_.cap_units);
  EXPECT_EQ(budget.equivalent_epsilon(), 0);
  EXPECT_NEAR(budget.largest_admissible_epsilon(), 4, 1e-6);
  const std::vector<v1::LedgerEntry> entries = Entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].kind(), v1::LedgerEntry::OPEN);
  EXPECT_EQ(entries[0].sequence(), 1);
  EXPECT_TRUE(Verify().intact());
}

TEST_F(LedgerTest, ReserveThenPostMovesTheExactUnits) {
  const int64_t units = *EventUnits(PriceOf(1).event, terms_.order);
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  EXPECT_EQ(Budget().reserved_units(), units);
  EXPECT_EQ(Budget().posted_units(), 0);
  ASSERT_TRUE(PostJob("j").ok());
  const v1::Budget budget = Budget();
  EXPECT_EQ(budget.reserved_units(), 0);
  EXPECT_EQ(budget.posted_units(), units);
  EXPECT_EQ(budget.left_units(), terms_.cap_units - units);
  EXPECT_EQ(budget.live_events(), 1);
  EXPECT_NEAR(budget.equivalent_epsilon(), 1, 1e-9);
  EXPECT_TRUE(Verify().intact());
}

TEST_F(LedgerTest, EquivalentEpsilonComposesWhatWasPosted) {
  for (const char* job : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(ReserveJob(job, 1).ok());
    ASSERT_TRUE(PostJob(job).ok());
  }
  const double mu = 2 * *GaussianMu(1, kDelta);
  EXPECT_NEAR(Budget().equivalent_epsilon(), *GaussianEpsilon(mu, kDelta), 1e-9);
}

TEST_F(LedgerTest, ListsWhatEachStageOfAJobCosts) {
  const Price price = StagedPriceOf(1);
  const int64_t units = *EventUnits(price.event, terms_.order);
  ASSERT_TRUE(ReserveJob("plain", 1).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return Reserve(t, "b", "j", price, kContext); }).ok());
  ASSERT_TRUE(PostJob("j").ok());
  const std::vector<v1::LedgerEntry> entries = Entries();
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].stages_size(), 0) << "an entry without an event";
  EXPECT_EQ(entries[1].stages_size(), 0) << "an event without stages";
  for (const v1::LedgerEntry& entry : {entries[2], entries[3]}) {
    ASSERT_EQ(entry.stages_size(), 2);
    EXPECT_EQ(entry.stages(0).stage(), "dp-appr");
    EXPECT_EQ(entry.stages(1).stage(), "dp-sgd");
    EXPECT_NEAR(static_cast<double>(entry.stages(0).units()), 0.36 * static_cast<double>(units), 2);
    EXPECT_NEAR(static_cast<double>(entry.stages(1).units()), 0.64 * static_cast<double>(units), 2);
    EXPECT_EQ(entry.units(), units);
  }
  EXPECT_TRUE(Verify().intact()) << "stages are no part of what is stored or hashed";
}

TEST_F(LedgerTest, AStageOnASampleIsPricedOnTheSample) {
  Price price = StagedPriceOf(1);
  price.event = *MakeNodeSamplingEvent(0.5, price.event);
  ASSERT_TRUE(Write([&](Transaction& t) { return Reserve(t, "b", "j", price, kContext); }).ok());
  const v1::LedgerEntry entry = Entries().back();
  ASSERT_EQ(entry.stages_size(), 2);
  const v1::PrivacyEvent& inner = price.event.node_sampling().event().composition().events(0).stage().event();
  EXPECT_EQ(entry.stages(0).units(), *EventUnits(*MakeNodeSamplingEvent(0.5, inner), terms_.order));
}

TEST_F(LedgerTest, AVoidGivesEverythingBack) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(VoidJob("j").ok());
  const v1::Budget budget = Budget();
  EXPECT_EQ(budget.left_units(), terms_.cap_units);
  EXPECT_EQ(budget.live_events(), 0);
  ASSERT_TRUE(ReserveJob("next", 4).ok()) << "the next job is again the only one";
  EXPECT_TRUE(Verify().intact());
}

TEST_F(LedgerTest, AReservationIsResolvedOnce) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(PostJob("j").ok());
  const v1::Budget before = Budget();
  EXPECT_EQ(PostJob("j").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(VoidJob("j").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReserveJob("j", 1).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(PostJob("never reserved").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Budget().SerializeAsString(), before.SerializeAsString());
}

TEST_F(LedgerTest, AJobBeyondTheCapIsRefusedWithWhatIsLeft) {
  ASSERT_TRUE(ReserveJob("first", 2).ok());
  ASSERT_TRUE(PostJob("first").ok());
  ASSERT_TRUE(ReserveJob("second", 1).ok());
  const v1::Budget before = Budget();
  const absl::Status refused = ReserveJob("third", 3.9);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(refused), "PRIVACY_BUDGET_EXHAUSTED");
  const auto metadata = GetErrorInfo(refused)->metadata();
  EXPECT_EQ(metadata.at("asked_epsilon"), "3.9");
  EXPECT_EQ(metadata.at("posted_units"), absl::StrCat(before.posted_units()));
  EXPECT_EQ(metadata.at("reserved_units"), absl::StrCat(before.reserved_units()));
  EXPECT_EQ(metadata.at("left_units"), absl::StrCat(before.left_units()));
  EXPECT_EQ(Budget().SerializeAsString(), before.SerializeAsString()) << "a refusal changes nothing";
  double largest = 0;
  ASSERT_TRUE(absl::SimpleAtod(metadata.at("largest_admissible_epsilon"), &largest));
  EXPECT_TRUE(ReserveJob("fits", largest).ok());
}

TEST_F(LedgerTest, TheFirstJobMayTakeTheWholeCapByItsOwnEpsilonAndThenNothingFits) {
  ASSERT_TRUE(ReserveJob("all", 4).ok());
  EXPECT_EQ(Reason(ReserveJob("more", 0.001)), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(Budget().largest_admissible_epsilon(), 0);
}

TEST_F(LedgerTest, RacersAreAdmittedOnlyAsFarAsTheBudgetGoes) {
  const int64_t units = *EventUnits(PriceOf(1).event, terms_.order);
  const int64_t fits = terms_.cap_units / units;
  ASSERT_GT(fits, 1);
  ASSERT_LT(fits, 32);
  std::atomic<int64_t> admitted = 0;
  std::vector<std::thread> threads;
  threads.reserve(32);
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&, i] { admitted += ReserveJob(absl::StrCat("j", i), 1).ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(admitted, fits);
  EXPECT_TRUE(Verify().intact());
}

TEST_F(LedgerTest, AnOperatorRaisesTheCapWithAReasonAndTheOrderStays) {
  ASSERT_TRUE(ReserveJob("j", 2).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return SetCap(t, "b", 6, "ethics board 12", kContext); }).ok());
  const v1::Budget budget = Budget();
  EXPECT_EQ(budget.cap_epsilon(), 6);
  EXPECT_EQ(budget.order(), terms_.order);
  EXPECT_EQ(budget.cap_units(), *CapUnits(6, kDelta, terms_.order));
  EXPECT_EQ(Entries().back().kind(), v1::LedgerEntry::ADJUST);
  EXPECT_EQ(Entries().back().reason(), "ethics board 12");
  EXPECT_TRUE(Verify().intact());
}

TEST_F(LedgerTest, ACapBelowWhatIsSpentIsRefused) {
  ASSERT_TRUE(ReserveJob("j", 2).ok());
  const absl::Status refused = Write([](Transaction& t) { return SetCap(t, "b", 0.5, "less", kContext); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Budget().cap_epsilon(), 4);
}

TEST_F(LedgerTest, ABudgetThatIsNotThereIsNotFound) {
  const auto with = [&](const std::function<absl::Status(Transaction&)>& body) { return Write(body).code(); };
  EXPECT_EQ(with([](Transaction& t) { return GetBudget(t, "x").status(); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([](Transaction& t) { return VerifyChain(t, "x").status(); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([](Transaction& t) { return ListEntries(t, "x", 0, 10).status(); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([](Transaction& t) { return Reserve(t, "x", "j", PriceOf(1), kContext); }),
            absl::StatusCode::kNotFound);
}

TEST_F(LedgerTest, EveryColumnOfEveryEntryIsUnderTheChain) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(PostJob("j").ok());
  const char* changes[] = {"time = time + 1",       "kind = 4",          "job = 'k'",
                           "actor = 'x'",           "units = units - 1", "epsilon = epsilon / 2",
                           "delta = delta / 2",     "event = '{}'",      "reason = 'x'",
                           "attempt = attempt + 1", "hash = 'x'"};
  for (const char* change : changes) {
    for (const int sequence : {1, 2, 3}) {
      Tamper("CREATE TABLE copy AS SELECT * FROM ledger_entries");
      Tamper(absl::StrCat("UPDATE ledger_entries SET ", change, " WHERE sequence = ", sequence));
      const v1::VerifyChainResponse response = Verify();
      EXPECT_FALSE(response.intact()) << change << " at " << sequence;
      EXPECT_EQ(response.first_bad_sequence(), sequence) << change;
      Tamper("DELETE FROM ledger_entries");
      Tamper("INSERT INTO ledger_entries SELECT * FROM copy");
      Tamper("DROP TABLE copy");
    }
  }
  EXPECT_TRUE(Verify().intact());
}

TEST_F(LedgerTest, ARemovedEntryIsNamed) {
  ASSERT_TRUE(ReserveJob("a", 1).ok());
  ASSERT_TRUE(ReserveJob("b", 1).ok());
  Tamper("DELETE FROM ledger_entries WHERE sequence = 2");
  EXPECT_EQ(Verify().first_bad_sequence(), 3);
  EXPECT_THAT(Verify().fault(), ::testing::HasSubstr("entry 2 is missing"));
}

TEST_F(LedgerTest, ACutTailIsSeen) {
  ASSERT_TRUE(ReserveJob("a", 1).ok());
  Tamper("DELETE FROM ledger_entries WHERE sequence = 2");
  const v1::VerifyChainResponse response = Verify();
  EXPECT_FALSE(response.intact());
  EXPECT_EQ(response.first_bad_sequence(), 2);
}

TEST_F(LedgerTest, ReorderedEntriesAreSeen) {
  ASSERT_TRUE(ReserveJob("a", 1).ok());
  ASSERT_TRUE(ReserveJob("b", 1).ok());
  Tamper("UPDATE ledger_entries SET sequence = -1 WHERE sequence = 2");
  Tamper("UPDATE ledger_entries SET sequence = 2 WHERE sequence = 3");
  Tamper("UPDATE ledger_entries SET sequence = 3 WHERE sequence = -1");
  EXPECT_EQ(Verify().first_bad_sequence(), 2);
}

TEST_F(LedgerTest, CachedSumsThatDoNotMatchTheEntriesAreSeen) {
  ASSERT_TRUE(ReserveJob("a", 1).ok());
  for (const char* change : {"reserved_units = 0", "posted_units = 1", "live_events = 0", "cap_units = cap_units + 1",
                             "cap_epsilon = 5", "renyi_order = 2"}) {
    Tamper("CREATE TABLE copy AS SELECT * FROM budgets");
    Tamper(absl::StrCat("UPDATE budgets SET ", change));
    EXPECT_FALSE(Verify().intact()) << change;
    Tamper(
        "UPDATE budgets SET reserved_units = (SELECT reserved_units FROM copy), posted_units = (SELECT posted_units "
        "FROM copy), live_events = (SELECT live_events FROM copy), cap_units = (SELECT cap_units FROM copy), "
        "cap_epsilon = (SELECT cap_epsilon FROM copy), renyi_order = (SELECT renyi_order FROM copy)");
    Tamper("DROP TABLE copy");
  }
  EXPECT_TRUE(Verify().intact());
}

}  // namespace
}  // namespace dpar
