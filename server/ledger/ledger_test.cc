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
#include "server/ledger/entries.h"
#include "server/ledger/testing/ledger_fixture.h"
#include "server/store/datasets.h"

namespace dpar {
namespace {

using testing::kContext;
using testing::kDelta;
using testing::kPopulation;
using testing::Reason;

class LedgerTest : public testing::LedgerFixture {
 protected:
  // The job of PriceOf as two stages, of 36% and 64% of it.
  Price StagedPriceOf(double epsilon) const {
    const double stddev = PriceOf(epsilon).event.gaussian().noise_stddev();
    const v1::PrivacyEvent appr = *MakeStageEvent("dp-appr", *MakeGaussianEvent(0.6, stddev, 1));
    const v1::PrivacyEvent sgd = *MakeStageEvent("dp-sgd", *MakeGaussianEvent(0.8, stddev, 1));
    return *MakePrice(*MakeCompositionEvent({appr, sgd}), epsilon, kDelta, terms_);
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, LedgerTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

TEST_P(LedgerTest, AFreshBudgetHasItsCapAndOneEntry) {
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

TEST_P(LedgerTest, ReserveThenPostMovesTheExactUnits) {
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

TEST_P(LedgerTest, EquivalentEpsilonComposesWhatWasPosted) {
  for (const char* job : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(ReserveJob(job, 1).ok());
    ASSERT_TRUE(PostJob(job).ok());
  }
  const double mu = 2 * *GaussianMu(1, kDelta);
  EXPECT_NEAR(Budget().equivalent_epsilon(), *GaussianEpsilon(mu, kDelta), 1e-9);
}

TEST_P(LedgerTest, ListsWhatEachStageOfAJobCosts) {
  const Price price = StagedPriceOf(1);
  const int64_t units = *EventUnits(price.event, terms_.order);
  ASSERT_TRUE(ReserveJob("plain", 1).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return Reserve(t, kPopulation, "j", price, kContext).status(); }).ok());
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

TEST_P(LedgerTest, AStageOnASampleIsPricedOnTheSample) {
  const Price price = *MakePrice(*MakeNodeSamplingEvent(0.5, StagedPriceOf(1).event), 1, kDelta, terms_);
  ASSERT_TRUE(Write([&](Transaction& t) { return Reserve(t, kPopulation, "j", price, kContext).status(); }).ok());
  const v1::LedgerEntry entry = Entries().back();
  ASSERT_EQ(entry.stages_size(), 2);
  const v1::PrivacyEvent& inner = price.event.node_sampling().event().composition().events(0).stage().event();
  EXPECT_EQ(entry.stages(0).units(), *EventUnits(*MakeNodeSamplingEvent(0.5, inner), terms_.order));
}

TEST_P(LedgerTest, AVoidGivesEverythingBack) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(VoidJob("j").ok());
  const v1::Budget budget = Budget();
  EXPECT_EQ(budget.left_units(), terms_.cap_units);
  EXPECT_EQ(budget.live_events(), 0);
  ASSERT_TRUE(ReserveJob("next", 4).ok()) << "the next job is again the only one";
  EXPECT_TRUE(Verify().intact());
}

TEST_P(LedgerTest, AReservationIsResolvedOnce) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(PostJob("j").ok());
  const v1::Budget before = Budget();
  EXPECT_EQ(PostJob("j").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(VoidJob("j").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReserveJob("j", 1).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(PostJob("never reserved").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Budget().SerializeAsString(), before.SerializeAsString());
}

TEST_P(LedgerTest, AfterTheDataWasOpenedAPriceIsGivenBackThreeTimesAndThenPosted) {
  const auto settle = [&](const std::string& job, int openings) {
    Settlement settlement = Settlement::kVoided;
    EXPECT_TRUE(ReserveJob(job, 0.1).ok());
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(settlement, VoidOrPost(t, kPopulation, job, openings, "cancelled", kContext));
                  return absl::OkStatus();
                }).ok());
    return settlement;
  };
  EXPECT_EQ(kFreeVoids, 3);
  for (const std::string job : {"a", "b", "c"}) {
    EXPECT_EQ(settle(job, 1), Settlement::kVoided);
    EXPECT_EQ(settle(absl::StrCat(job, " unopened"), 0), Settlement::kVoided) << "does not count";
  }
  EXPECT_EQ(Budget().posted_units(), 0);
  EXPECT_EQ(settle("d", 2), Settlement::kPosted);
  EXPECT_EQ(Budget().posted_units(), PriceOf(0.1).cost.units);
  EXPECT_EQ(Budget().reserved_units(), 0);
  EXPECT_EQ(settle("never opened", 0), Settlement::kVoided) << "a job that did not run is always given back";
  EXPECT_TRUE(Verify().intact()) << Verify().fault();
}

TEST_P(LedgerTest, AReservationThatWasAlteredIsNeitherPostedNorVoided) {
  const std::vector<std::string> alterations = {
      "UPDATE ledger_entries SET units = 1 WHERE job = 'j'",
      "UPDATE ledger_entries SET epsilon = epsilon / 2 WHERE job = 'j'",
      "UPDATE ledger_entries SET event = '{}' WHERE job = 'j'",
      "UPDATE ledger_entries SET actor = 'somebody' WHERE job = 'j'",
      "UPDATE ledger_entries SET hash = 'no hash' WHERE job = 'before'",
      "DELETE FROM ledger_entries WHERE job = 'before'",
  };
  ASSERT_TRUE(ReserveJob("before", 0.5).ok());
  ASSERT_TRUE(ReserveJob("j", 0.5).ok());
  const v1::Budget before = Budget();
  for (const std::string& alteration : alterations) {
    absl::Status posted;
    absl::Status voided;
    EXPECT_TRUE(absl::IsCancelled(Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(t.Execute(alteration, {}).status());
      posted = Post(t, kPopulation, "j", 1, kContext).status();
      voided = VoidOrPost(t, kPopulation, "j", 1, "cancelled", kContext).status();
      return absl::CancelledError("the next alteration is of what was there before");
    })));
    EXPECT_EQ(posted.code(), absl::StatusCode::kDataLoss) << alteration;
    EXPECT_EQ(Reason(posted), "STORE_CORRUPT") << alteration;
    EXPECT_EQ(voided.code(), absl::StatusCode::kDataLoss) << alteration;
  }
  EXPECT_EQ(Budget().SerializeAsString(), before.SerializeAsString());
  EXPECT_TRUE(PostJob("j").ok()) << "as it was, it is posted";
}

TEST_P(LedgerTest, AJobBeyondTheCapIsRefusedWithWhatIsLeft) {
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

TEST_P(LedgerTest, TheFirstJobMayTakeTheWholeCapByItsOwnEpsilonAndThenNothingFits) {
  ASSERT_TRUE(ReserveJob("all", 4).ok());
  EXPECT_EQ(Reason(ReserveJob("more", 0.001)), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(Budget().largest_admissible_epsilon(), 0);
}

TEST_P(LedgerTest, RacersAreAdmittedOnlyAsFarAsTheBudgetGoes) {
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

TEST_P(LedgerTest, AnOperatorRaisesTheCapWithAReasonAndTheOrderStays) {
  ASSERT_TRUE(ReserveJob("j", 2).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return SetCap(t, kPopulation, 6, "ethics board 12", kContext); }).ok());
  const v1::Budget budget = Budget();
  EXPECT_EQ(budget.cap_epsilon(), 6);
  EXPECT_EQ(budget.order(), terms_.order);
  EXPECT_EQ(budget.cap_units(), *CapUnits(6, kDelta, terms_.order));
  EXPECT_EQ(Entries().back().kind(), v1::LedgerEntry::ADJUST);
  EXPECT_EQ(Entries().back().reason(), "ethics board 12");
  EXPECT_TRUE(Verify().intact());
}

TEST_P(LedgerTest, ACapBelowWhatIsSpentIsRefused) {
  ASSERT_TRUE(ReserveJob("j", 2).ok());
  const absl::Status refused = Write([](Transaction& t) { return SetCap(t, kPopulation, 0.5, "less", kContext); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Budget().cap_epsilon(), 4);
}

TEST_P(LedgerTest, ABudgetThatIsNotThereIsNotFound) {
  const auto with = [&](const std::function<absl::Status(Transaction&)>& body) { return Write(body).code(); };
  EXPECT_EQ(with([](Transaction& t) { return GetBudget(t, "x").status(); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([](Transaction& t) { return VerifyChain(t, "x", {}).status(); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([](Transaction& t) { return ListEntries(t, "x", 0, 10).status(); }), absl::StatusCode::kNotFound);
  EXPECT_EQ(with([&](Transaction& t) { return Reserve(t, "x", "j", PriceOf(1), kContext).status(); }),
            absl::StatusCode::kNotFound);
}

TEST_P(LedgerTest, ADebitIsSpendWithoutAnEventAlsoBeyondTheCap) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(PostJob("j").ok());
  const int64_t units = Budget().posted_units();
  ASSERT_TRUE(DebitUnits(1000).ok());
  EXPECT_EQ(Budget().posted_units(), units + 1000);
  EXPECT_EQ(Budget().live_events(), 1);
  EXPECT_EQ(Entries().back().kind(), v1::LedgerEntry::DEBIT);
  EXPECT_EQ(Entries().back().reason(), "spent elsewhere");
  EXPECT_EQ(Budget().equivalent_epsilon(), *EpsilonOfUnits(terms_, units + 1000));
  ASSERT_TRUE(DebitUnits(terms_.cap_units).ok());
  const v1::Budget over = Budget();
  EXPECT_EQ(over.left_units(), 0);
  EXPECT_EQ(over.largest_admissible_epsilon(), 0);
  EXPECT_GT(over.posted_percent(), 100);
  EXPECT_EQ(Reason(ReserveJob("k", 0.01)), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_TRUE(Verify().intact());
}

TEST_P(LedgerTest, ADebitOfNothingOrTooMuchIsRefused) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  const v1::Budget before = Budget();
  EXPECT_EQ(Reason(DebitUnits(0)), "INVALID_FIELD");
  EXPECT_EQ(Reason(DebitUnits(-1)), "INVALID_FIELD");
  EXPECT_EQ(Reason(DebitUnits(kMaxUnits - before.reserved_units() + 1)), "INVALID_FIELD");
  EXPECT_EQ(Budget().SerializeAsString(), before.SerializeAsString());
  ASSERT_TRUE(DebitUnits(kMaxUnits - before.reserved_units()).ok());
  EXPECT_TRUE(PostJob("j").ok()) << "what is reserved can be posted whatever was debited";
  EXPECT_TRUE(Verify().intact());
}

TEST_P(LedgerTest, AnyDebitClosesTheSingleEventRule) {
  ASSERT_TRUE(DebitUnits(1).ok());
  EXPECT_EQ(Reason(ReserveJob("all", 4)), "PRIVACY_BUDGET_EXHAUSTED");
}

TEST_P(LedgerTest, APriceOfAnotherOrderOrDeltaIsToBePlannedAgain) {
  Price order = PriceOf(1);
  order.order += 1;
  Price delta = PriceOf(1);
  delta.cap_delta *= 2;
  for (const Price& price : {order, delta}) {
    const absl::Status refused =
        Write([&](Transaction& t) { return Reserve(t, kPopulation, "j", price, kContext).status(); });
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Reason(refused), "SERVER_UNAVAILABLE");
  }
  EXPECT_EQ(Entries().size(), 1U);
}

TEST_P(LedgerTest, AClosedPopulationAdmitsNothingWhateverItsCap) {
  ASSERT_TRUE(Write([](Transaction& t) { return Close(t, kPopulation, "nobody knows", kContext); }).ok());
  EXPECT_EQ(Reason(ReserveJob("j", 0.1)), "POPULATION_CLOSED");
  EXPECT_EQ(Reason(Write([](Transaction& t) { return SetCap(t, kPopulation, 8, "more", kContext); })),
            "POPULATION_CLOSED");
  EXPECT_EQ(Budget().left_units(), 0);
  EXPECT_EQ(Budget().largest_admissible_epsilon(), 0);
  EXPECT_EQ(Budget().closed_reason(), "nobody knows");
  ASSERT_TRUE(Write([](Transaction& t) { return Close(t, kPopulation, "twice", kContext); }).ok());
  EXPECT_EQ(Entries().size(), 2U);
  EXPECT_TRUE(Verify().intact());
}

TEST_P(LedgerTest, PerCentsAreOfTheCap) {
  ASSERT_TRUE(ReserveJob("a", 1).ok());
  ASSERT_TRUE(PostJob("a").ok());
  ASSERT_TRUE(ReserveJob("b", 0.5).ok());
  const v1::Budget budget = Budget();
  const auto cap = static_cast<double>(terms_.cap_units);
  EXPECT_DOUBLE_EQ(budget.posted_percent(), 100 * static_cast<double>(budget.posted_units()) / cap);
  EXPECT_DOUBLE_EQ(budget.reserved_percent(), 100 * static_cast<double>(budget.reserved_units()) / cap);
}

TEST_P(LedgerTest, BudgetsAreListedByPopulationWithTheFullest) {
  constexpr char kSecond[] = "tenants/acme/populations/c";
  constexpr char kThird[] = "tenants/zebra/populations/d";
  const auto later = [&](int64_t seconds) { return EntryContext{"server", kContext.time + absl::Seconds(seconds)}; };
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(OpenBudget(t, kSecond, terms_, later(1)));
                return OpenBudget(t, kThird, *MakeBudgetTerms(1, kDelta), later(2));
              }).ok());
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kThird, 1, "all but nothing", kContext).status(); }).ok());
  const auto list = [&](const std::string& tenant, int64_t page_size, const std::string& token) {
    BudgetPage page;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(page, ListBudgets(t, tenant, page_size, token));
                  return absl::OkStatus();
                }).ok());
    return page;
  };
  const BudgetPage all = list("", 10, "");
  ASSERT_EQ(all.budgets.size(), 3U);
  EXPECT_EQ(all.budgets[0].name(), kPopulation);
  EXPECT_EQ(all.budgets[1].name(), kSecond);
  EXPECT_EQ(all.budgets[2].name(), kThird);
  EXPECT_GT(all.budgets[0].reserved_units(), 0);
  EXPECT_EQ(all.next_page_token, "");
  EXPECT_EQ(all.fullest->name(), kPopulation);
  const BudgetPage first = list("tenants/acme", 1, "");
  ASSERT_EQ(first.budgets.size(), 1U);
  const BudgetPage second = list("tenants/acme", 1, first.next_page_token);
  ASSERT_EQ(second.budgets.size(), 1U);
  EXPECT_EQ(second.budgets[0].name(), kSecond);
  EXPECT_EQ(second.next_page_token, "");
  EXPECT_EQ(second.fullest->name(), kPopulation) << "of all pages";
  EXPECT_FALSE(list("tenants/none", 10, "").fullest.has_value());
}

TEST_P(LedgerTest, AListOfSumsNeedsNoAccountant) {
  ASSERT_TRUE(ReserveJob("j", 1).ok());
  ASSERT_TRUE(PostJob("j").ok());
  const auto list = [&](Equivalents equivalents) {
    BudgetPage page;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(page, ListBudgets(t, "", 10, "", equivalents));
                  return absl::OkStatus();
                }).ok());
    return page;
  };
  const BudgetPage with = list(Equivalents::kWith);
  BudgetPage without = list(Equivalents::kWithout);
  ASSERT_EQ(without.budgets.size(), 1U);
  EXPECT_GT(with.budgets[0].equivalent_epsilon(), 0);
  EXPECT_EQ(without.budgets[0].equivalent_epsilon(), 0);
  EXPECT_EQ(without.fullest->equivalent_epsilon(), 0);
  without.budgets[0].set_equivalent_epsilon(with.budgets[0].equivalent_epsilon());
  EXPECT_EQ(without.budgets[0].SerializeAsString(), with.budgets[0].SerializeAsString());
}

}  // namespace
}  // namespace dpar
