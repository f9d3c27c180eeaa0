// Merging two populations: nothing is given back, the chains of both hold, and a second merge changes nothing.
#include "server/ledger/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "server/ledger/entries.h"
#include "server/ledger/testing/ledger_fixture.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kContext;
using testing::kDelta;
using testing::kPopulation;
using ::testing::Not;
using testing::Reason;

constexpr char kFrom[] = "tenants/acme/populations/a";
constexpr char kOther[] = "tenants/acme/populations/c";
using Entry = v1::LedgerEntry;

// kFrom is merged into kPopulation.
class MergeTest : public testing::LedgerFixture {
 protected:
  void SetUp() override {
    LedgerFixture::SetUp();
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "key", kContext.time));
                  return OpenBudget(t, kFrom, terms_, kContext);
                }).ok());
  }
  void Spend(const std::string& population, const std::string& job, double epsilon) {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(Reserve(t, population, job, PriceOf(epsilon), kContext).status());
                  return Post(t, population, job, 1, kContext).status();
                }).ok());
  }
  // A cancel of a job whose data was opened.
  absl::StatusOr<Settlement> CancelOpened(const std::string& population, const std::string& job) {
    Settlement settled = Settlement::kVoided;
    const absl::Status status = Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(Reserve(t, population, job, PriceOf(0.1), kContext).status());
      DPAR_ASSIGN_OR_RETURN(settled, VoidOrPost(t, population, job, 1, "cancelled", kContext));
      return absl::OkStatus();
    });
    return status.ok() ? absl::StatusOr<Settlement>(settled) : status;
  }
  absl::Status MergeNow(const std::string& from = kFrom, const std::string& into = kPopulation,
                        Closing closing = Closing::kRefused) {
    DPAR_ASSIGN_OR_RETURN(const MergePrices prices, PriceMerge(store_.database(), from, into));
    return Write([&](Transaction& t) { return Merge(t, from, into, prices, "the same people", kContext, closing); });
  }
  // kOther, at an order of its own.
  void OpenOther() {
    ASSERT_NE(other_.order, terms_.order);
    ASSERT_TRUE(Write([&](Transaction& t) { return OpenBudget(t, kOther, other_, kContext); }).ok());
  }
  absl::Status ReserveInOther() {
    const Price price = *MakePrice(PriceOf(0.01).event, 0.01, kDelta, other_);
    return Write([&](Transaction& t) { return Reserve(t, kOther, "j", price, kContext).status(); });
  }
  Account AccountOf(const std::string& population) {
    return ReadFrom(store_.database(), [&](Transaction& t) { return LoadAccount(t, population); }).value();
  }
  std::vector<Entry> EntriesOf(const std::string& population) {
    return ReadFrom(store_.database(), [&](Transaction& t) { return ListEntries(t, population, 0, 1000); }).value();
  }
  std::vector<Entry::Kind> KindsOf(const std::string& population) {
    std::vector<Entry::Kind> kinds;
    for (const Entry& entry : EntriesOf(population)) {
      kinds.push_back(entry.kind());
    }
    return kinds;
  }
  void ExpectIntact() {
    for (const std::string population : {kFrom, kPopulation}) {
      const auto chain = ReadFrom(store_.database(), [&](Transaction& t) { return VerifyChain(t, population, {}); });
      ASSERT_TRUE(chain.ok()) << chain.status();
      EXPECT_TRUE(chain->intact()) << population << ": " << chain->fault();
    }
  }
  void SetNodes(const std::string& population, int64_t nodes) {
    ASSERT_TRUE(Write([&](Transaction& t) { return AddVersion(t, population, nodes, kContext); }).ok());
  }
  const BudgetTerms other_ = *MakeBudgetTerms(1, kDelta);
};

TEST_P(MergeTest, WhatBothHaveSpentIsSpentOfOneUnderTheSmallerCap) {
  Spend(kFrom, "a1", 1);
  Spend(kFrom, "a2", 0.5);
  Spend(kPopulation, "b1", 0.7);
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kFrom, 77, "a pilot", kContext).status(); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return SetCap(t, kFrom, 3, "less", kContext); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return NarrowToDegree(t, kFrom, 40); }).ok());
  const int64_t spent = AccountOf(kFrom).posted_units + AccountOf(kPopulation).posted_units;
  ASSERT_TRUE(MergeNow().ok());
  const Account account = AccountOf(kPopulation);
  EXPECT_EQ(account.posted_units, spent);
  EXPECT_EQ(account.live_events, 3);
  EXPECT_EQ(account.terms.cap_epsilon, 3);
  EXPECT_EQ(account.terms.cap_units, *CapUnits(3, kDelta, terms_.order));
  EXPECT_EQ(account.max_degree, 40);
  EXPECT_EQ(account.closed_reason, "");
  EXPECT_THAT(KindsOf(kPopulation), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST, Entry::MERGE, Entry::INHERIT,
                                                Entry::INHERIT, Entry::DEBIT));
  const std::vector<Entry> entries = EntriesOf(kPopulation);
  EXPECT_THAT(entries[3].reason(), HasSubstr("from tenants/acme/populations/a at entry 7 ("));
  EXPECT_THAT(entries[3].reason(), HasSubstr("): the same people"));
  EXPECT_EQ(entries[4].job(), "a1");
  EXPECT_EQ(entries[4].units(), PriceOf(1).cost.units);
  EXPECT_EQ(entries[4].epsilon(), 1);
  EXPECT_EQ(entries[4].reason(), "entry 3 of tenants/acme/populations/a");
  EXPECT_EQ(entries[6].reason(), "entry 6 of tenants/acme/populations/a: a pilot");
  EXPECT_EQ(KindsOf(kFrom).back(), Entry::CLOSE);
  EXPECT_EQ(AccountOf(kFrom).merged_into, kPopulation);
  EXPECT_EQ(AccountOf(kFrom).closed_reason, "merged into tenants/acme/populations/b: the same people");
  ExpectIntact();
}

TEST_P(MergeTest, TheEquivalentEpsilonIsOfTheEventsOfBoth) {
  Spend(kFrom, "a1", 1);
  Spend(kPopulation, "b1", 1);
  ASSERT_TRUE(MergeNow().ok());
  const double both = Budget().equivalent_epsilon();
  EXPECT_GT(both, 1.2);
  EXPECT_LT(both, 2);
}

TEST_P(MergeTest, WhatEndedTakesNothingMoreAndASecondMergeChangesNothing) {
  Spend(kFrom, "a1", 1);
  ASSERT_TRUE(MergeNow().ok());
  const Account after = AccountOf(kPopulation);
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(AccountOf(kPopulation).head_hash, after.head_hash);
  const auto refused = [&](const std::function<absl::Status(Transaction&)>& body) { return Reason(Write(body)); };
  EXPECT_EQ(refused([&](Transaction& t) { return Reserve(t, kFrom, "j", PriceOf(0.1), kContext).status(); }),
            "POPULATION_CLOSED");
  EXPECT_EQ(refused([&](Transaction& t) { return SetCap(t, kFrom, 8, "more", kContext); }), "POPULATION_CLOSED");
  EXPECT_EQ(refused([&](Transaction& t) { return AddVersion(t, kFrom, 10, kContext); }), "POPULATION_CLOSED");
  EXPECT_EQ(refused([&](Transaction& t) { return Debit(t, kFrom, 1, "late", kContext).status(); }), "STORE_CORRUPT");
  // A cycle, and a third population.
  EXPECT_EQ(Reason(MergeNow(kPopulation, kFrom)), "POPULATION_CLOSED");
  constexpr char kThird[] = "tenants/acme/populations/c";
  ASSERT_TRUE(Write([&](Transaction& t) { return OpenBudget(t, kThird, terms_, kContext); }).ok());
  EXPECT_EQ(Reason(MergeNow(kFrom, kThird)), "POPULATION_CLOSED");
  // What was merged goes on when it is merged again itself.
  ASSERT_TRUE(MergeNow(kPopulation, kThird).ok());
  EXPECT_EQ(AccountOf(kThird).posted_units, after.posted_units);
  EXPECT_EQ(AccountOf(kThird).live_events, 1);
  ExpectIntact();
}

TEST_P(MergeTest, MalformedMergesChangeNothing) {
  EXPECT_EQ(Reason(MergeNow(kFrom, kFrom)), "INVALID_FIELD");
  EXPECT_EQ(Reason(MergeNow(kFrom, "tenants/acme/populations/none")), "RESOURCE_NOT_FOUND");
  EXPECT_EQ(Reason(MergeNow("tenants/acme/populations/none", kPopulation)), "RESOURCE_NOT_FOUND");
  for (const std::string population : {kFrom, kPopulation}) {
    ASSERT_TRUE(Write([&](Transaction& t) { return Reserve(t, population, "j", PriceOf(1), kContext).status(); }).ok());
    EXPECT_EQ(Reason(MergeNow()), "POPULATION_IN_USE");
    ASSERT_TRUE(
        Write([&](Transaction& t) { return VoidOrPost(t, population, "j", 0, "cancelled", kContext).status(); }).ok());
    ASSERT_TRUE(Write([&](Transaction& t) { return SetFrozen(t, population, "why"); }).ok());
    EXPECT_EQ(Reason(MergeNow()), "BUDGET_FROZEN");
    ASSERT_TRUE(Write([&](Transaction& t) { return SetFrozen(t, population, ""); }).ok());
  }
  EXPECT_EQ(AccountOf(kFrom).merged_into, "");
  EXPECT_EQ(KindsOf(kPopulation), std::vector<Entry::Kind>({Entry::OPEN, Entry::RESERVE, Entry::VOID}));
}

TEST_P(MergeTest, AnAlteredEntryIsNotInherited) {
  Spend(kFrom, "a1", 1);
  ASSERT_TRUE(
      Write([](Transaction& t) {
        return t.Execute("UPDATE ledger_entries SET units = 1 WHERE kind = 3 AND population = $1", {kFrom}).status();
      }).ok());
  EXPECT_EQ(Reason(MergeNow()), "STORE_CORRUPT");
  EXPECT_EQ(AccountOf(kPopulation).head_sequence, 1);
}

TEST_P(MergeTest, ASumBeyondTheCapLeavesNothing) {
  Spend(kFrom, "a1", 3);
  Spend(kPopulation, "b1", 3);
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(Budget().left_units(), 0);
  EXPECT_GT(Budget().posted_percent(), 100);
  EXPECT_EQ(Reason(ReserveJob("more", 0.01)), "PRIVACY_BUDGET_EXHAUSTED");
  ExpectIntact();
}

TEST_P(MergeTest, AnEmptyPopulationInheritsAnEventAndIsNotUntouched) {
  // Its own epsilon is the cap's, and its units exceed it: admitted as the only event.
  Spend(kFrom, "a1", 4);
  ASSERT_GT(AccountOf(kFrom).posted_units, terms_.cap_units);
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(Reason(ReserveJob("whole", 4)), "PRIVACY_BUDGET_EXHAUSTED");
}

TEST_P(MergeTest, VoidsAfterTheDataWasOpenedCountTogether) {
  ASSERT_EQ(*CancelOpened(kFrom, "a1"), Settlement::kVoided);
  ASSERT_EQ(*CancelOpened(kFrom, "a2"), Settlement::kVoided);
  ASSERT_EQ(*CancelOpened(kPopulation, "b1"), Settlement::kVoided);
  ASSERT_EQ(*CancelOpened(kPopulation, "b2"), Settlement::kVoided);
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(EntriesOf(kPopulation)[5].attempt(), 2);
  ExpectIntact();
  // Four are more than one population may have: the next is posted, and a cancel in the queue is not.
  EXPECT_EQ(*CancelOpened(kPopulation, "b3"), Settlement::kPosted);
  ASSERT_TRUE(ReserveJob("b4", 0.1).ok());
  ASSERT_TRUE(VoidJob("b4").ok());
  ExpectIntact();
}

TEST_P(MergeTest, AFreeVoidThatIsLeftAfterAMergeStillIsOne) {
  ASSERT_EQ(*CancelOpened(kFrom, "a1"), Settlement::kVoided);
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(*CancelOpened(kPopulation, "b1"), Settlement::kVoided);
  EXPECT_EQ(*CancelOpened(kPopulation, "b2"), Settlement::kVoided);
  EXPECT_EQ(*CancelOpened(kPopulation, "b3"), Settlement::kPosted);
  ExpectIntact();
}

TEST_P(MergeTest, PopulationsOfDifferentOrdersAreClosedTogetherWhereThatIsAllowed) {
  OpenOther();
  Spend(kFrom, "a1", 1);
  const absl::Status refused = MergeNow(kFrom, kOther);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(refused), "INVALID_FIELD");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("c would admit no further job, for good"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Merge tenants/acme/populations/c into"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("(--close)"));
  EXPECT_EQ(AccountOf(kOther).head_sequence, 1);
  EXPECT_EQ(AccountOf(kFrom).merged_into, "");
  ASSERT_TRUE(MergeNow(kFrom, kOther, Closing::kAllowed).ok());
  const Account account = AccountOf(kOther);
  EXPECT_EQ(account.posted_units, *EventUnits(PriceOf(1).event, other_.order));
  EXPECT_THAT(account.closed_reason, HasSubstr("no cap holds for a sum of both"));
  EXPECT_EQ(account.left_units(), 0);
  EXPECT_EQ(Reason(ReserveInOther()), "POPULATION_CLOSED");
  // A raised cap does not open it, and neither does a further merge.
  EXPECT_EQ(Reason(Write([&](Transaction& t) { return SetCap(t, kOther, 8, "more", kContext); })), "POPULATION_CLOSED");
  EXPECT_EQ(Reason(MergeNow(kOther, kPopulation)), "INVALID_FIELD") << "what is closed closes";
  ASSERT_TRUE(MergeNow(kOther, kPopulation, Closing::kAllowed).ok());
  EXPECT_NE(AccountOf(kPopulation).closed_reason, "");
  ExpectIntact();
}

TEST_P(MergeTest, APopulationThatReleasedNothingClosesNothingAtAnotherOrder) {
  OpenOther();
  // A cancel of what never ran shows nothing.
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(Reserve(t, kFrom, "a1", PriceOf(1), kContext).status());
                return VoidOrPost(t, kFrom, "a1", 0, "cancelled", kContext).status();
              }).ok());
  ASSERT_TRUE(MergeNow(kFrom, kOther, Closing::kAllowed).ok());
  EXPECT_EQ(AccountOf(kOther).closed_reason, "") << "allowed is not asked for";
  EXPECT_EQ(AccountOf(kOther).terms.order, other_.order);
  EXPECT_EQ(AccountOf(kOther).terms.cap_epsilon, 1);
  EXPECT_TRUE(ReserveInOther().ok());
  ExpectIntact();
}

TEST_P(MergeTest, TheOtherWayRoundAtAnotherOrderKeepsWhatIsSpent) {
  OpenOther();
  Spend(kFrom, "a1", 0.1);
  ASSERT_TRUE(MergeNow(kOther, kFrom).ok());
  EXPECT_EQ(AccountOf(kFrom).closed_reason, "");
  EXPECT_EQ(AccountOf(kFrom).terms.cap_epsilon, 1);
  EXPECT_EQ(AccountOf(kFrom).terms.order, terms_.order);
  EXPECT_EQ(AccountOf(kFrom).posted_units, PriceOf(0.1).cost.units);
  ExpectIntact();
}

TEST_P(MergeTest, ADebitOrAnOpenedVoidIsARelease) {
  OpenOther();
  ASSERT_EQ(*CancelOpened(kFrom, "a1"), Settlement::kVoided);
  EXPECT_EQ(Reason(MergeNow(kFrom, kOther)), "INVALID_FIELD");
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kPopulation, 1, "a pilot", kContext).status(); }).ok());
  const absl::Status refused = MergeNow(kPopulation, kOther);
  EXPECT_EQ(Reason(refused), "INVALID_FIELD");
  // Where both have released something, there is no other way round.
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kOther, 1, "a pilot", kContext).status(); }).ok());
  EXPECT_THAT(std::string(MergeNow(kFrom, kOther).message()), Not(HasSubstr("instead")));
}

TEST_P(MergeTest, ADebitGrowsInProportionAtALargerOrderAndNeverShrinks) {
  OpenOther();
  ASSERT_GT(other_.order, terms_.order);
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kFrom, 1001, "a pilot", kContext).status(); }).ok());
  ASSERT_TRUE(MergeNow(kFrom, kOther, Closing::kAllowed).ok());
  const int64_t grown = (1001 * other_.order + terms_.order - 1) / terms_.order;
  EXPECT_GT(grown, 1001);
  EXPECT_EQ(AccountOf(kOther).posted_units, grown);
  ASSERT_TRUE(MergeNow(kOther, kPopulation, Closing::kAllowed).ok());
  EXPECT_EQ(AccountOf(kPopulation).posted_units, grown) << "at a smaller order as many as before";
  ExpectIntact();
}

TEST_P(MergeTest, ADebitThatGrowsBeyondALedgerIsRefused) {
  OpenOther();
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kFrom, kMaxUnits, "all", kContext).status(); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, kOther, 1, "a pilot", kContext).status(); }).ok());
  EXPECT_EQ(Reason(MergeNow(kFrom, kOther, Closing::kAllowed)), "INVALID_FIELD");
  EXPECT_EQ(AccountOf(kOther).posted_units, 1);
}

TEST_P(MergeTest, APriceOfTheOtherPopulationsEventsIsNeeded) {
  OpenOther();
  const MergePrices prices = *PriceMerge(store_.database(), kFrom, kOther);
  Spend(kFrom, "posted-meanwhile", 1);
  const absl::Status status =
      Write([&](Transaction& t) { return Merge(t, kFrom, kOther, prices, "why", kContext, Closing::kAllowed); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AccountOf(kOther).head_sequence, 1);
}

TEST_P(MergeTest, TheMergedDeltaIsForTheSlotsOfAllVersions) {
  SetNodes(kFrom, 6'000);
  SetNodes(kPopulation, 4'000);
  ASSERT_EQ(AccountOf(kFrom).terms.cap_delta, kDelta);
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(AccountOf(kPopulation).terms.cap_delta, 1e-5);
  EXPECT_EQ(AccountOf(kPopulation).node_total, 10'000);
  constexpr char kThird[] = "tenants/acme/populations/c";
  ASSERT_TRUE(Write([&](Transaction& t) { return OpenBudget(t, kThird, terms_, kContext); }).ok());
  SetNodes(kThird, 1);
  ASSERT_TRUE(MergeNow(kPopulation, kThird).ok());
  EXPECT_EQ(AccountOf(kThird).terms.cap_delta, 9e-6);
  EXPECT_EQ(AccountOf(kThird).terms.cap_units, *CapUnits(4, 9e-6, terms_.order));
  ExpectIntact();
}

TEST_P(MergeTest, DatasetsAndContentsFollow) {
  v1::Dataset dataset;
  dataset.set_name("tenants/acme/datasets/d");
  dataset.set_population(kFrom);
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(InsertDataset(t, dataset, 10));
                return RememberContent(t, "tenants/acme", "digest", kFrom);
              }).ok());
  ASSERT_TRUE(MergeNow().ok());
  EXPECT_EQ(ReadFrom(store_.database(), [&](Transaction& t) { return GetDataset(t, dataset.name()); })->population(),
            kPopulation);
  EXPECT_EQ(
      ReadFrom(store_.database(), [&](Transaction& t) { return FindPopulationByContent(t, "tenants/acme", "digest"); })
          .value(),
      kPopulation);
}

INSTANTIATE_TEST_SUITE_P(Engines, MergeTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
