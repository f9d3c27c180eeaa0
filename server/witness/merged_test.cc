// Marks of merged populations: a backup from before a merge gives nothing back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/files.h"
#include "server/ledger/merge.h"
#include "server/witness/testing/witness_fixture.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using testing::kPopulation;
using testing::kWitnessTime;
using testing::Reason;
using ::testing::StartsWith;

constexpr char kInto[] = "tenants/acme/populations/other";

// kPopulation is merged into kInto.
class MergedTest : public testing::WitnessFixture {
 protected:
  void SetUp() override {
    WitnessFixture::SetUp();
    ASSERT_TRUE(Write([&](Transaction& t) { return OpenBudget(t, kInto, terms_, {"server", kWitnessTime}); }).ok());
    Spend("first");
    ASSERT_TRUE(Cover("first").ok());
    before_ = AccountNow();
  }
  void MergeNow() {
    const MergePrices prices = PriceMerge(store_.database(), kPopulation, kInto).value();
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return Merge(t, kPopulation, kInto, prices, "the same people", {"token", kWitnessTime});
                }).ok());
  }
  int64_t MarkedSequence(const std::string& population) {
    const std::optional<Mark> mark = witness_->marks().Read(population).value();
    return mark.has_value() ? mark->last().sequence : 0;
  }
  Account AccountOf(const std::string& population) {
    return ReadFrom(store_.database(), [&](Transaction& t) { return LoadAccount(t, population); }).value();
  }

  Account before_;
};

TEST_P(MergedTest, AServerThatDiedBeforeItMarkedAMergeMarksItWhenItStarts) {
  MergeNow();
  EXPECT_EQ(MarkedSequence(kPopulation), before_.head_sequence);
  Restart();
  EXPECT_EQ(MarkedSequence(kPopulation), AccountNow().head_sequence);
  EXPECT_TRUE(MarkNow()->terms.closed);
  EXPECT_EQ(MarkedSequence(kInto), AccountOf(kInto).head_sequence) << "it has spend, and had no mark";
}

TEST_P(MergedTest, AMarkThatTheOtherHadBeforeTheMergeIsRenewedAtTheStartToo) {
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(Reserve(t, kInto, Name("j"), PriceOf(0.5), {"token", kWitnessTime}).status());
                return Post(t, kInto, Name("j"), 1, {"worker", kWitnessTime}).status();
              }).ok());
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  const int64_t before = MarkedSequence(kInto);
  MergeNow();
  ASSERT_GT(AccountOf(kInto).head_sequence, before);
  Restart();
  EXPECT_EQ(MarkedSequence(kInto), AccountOf(kInto).head_sequence) << "else a backup gives back what it inherited";
  EXPECT_EQ(MarkedSequence(kPopulation), AccountNow().head_sequence);
}

TEST_P(MergedTest, NothingThatTheResultPaidForLeavesBeforeTheEndOfTheOtherIsMarked) {
  MergeNow();
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(Reserve(t, kInto, Name("j"), PriceOf(0.5), {"token", kWitnessTime}).status());
                return Post(t, kInto, Name("j"), 1, {"worker", kWitnessTime}).status();
              }).ok());
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  EXPECT_EQ(MarkedSequence(kPopulation), AccountNow().head_sequence);
}

TEST_P(MergedTest, ABackupFromBeforeTheMergeGivesNothingBack) {
  MergeNow();
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  RollBackTo(before_);  // what became of kInto is left as it is
  ASSERT_GT(AccountNow().left_units(), 0);
  Restart();
  EXPECT_THAT(AccountNow().frozen_reason, StartsWith("results were released up to entry 4"));
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  EXPECT_TRUE(thawed->closed);
  EXPECT_EQ(AccountNow().left_units(), 0);
  EXPECT_EQ(Reason(Submit("second")), "POPULATION_CLOSED");
  EXPECT_THAT(AccountNow().closed_reason, HasSubstr("nobody knows how much was spent"));
  Restart();
  EXPECT_EQ(AccountNow().frozen_reason, "");
  ExpectIntact();
}

TEST_P(MergedTest, AMarkOfAMergedPopulationThatCannotBeReadClosesWhereItsSpendWent) {
  MergeNow();
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  ASSERT_TRUE(WriteFileDurably(witness_->marks().File(kPopulation), "garbled", 0600).ok());
  Restart();
  EXPECT_NE(AccountNow().frozen_reason, "");
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  EXPECT_EQ(thawed->closed_end, kInto);
  EXPECT_EQ(AccountNow().frozen_reason, "");
  EXPECT_THAT(AccountOf(kInto).closed_reason, HasSubstr("of a population that was merged into it"));
  EXPECT_EQ(AccountOf(kInto).left_units(), 0);
}

TEST_P(MergedTest, AMergedPopulationWhoseMarkStandsAtItsEndIsThawedWithoutHarm) {
  MergeNow();
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return SetFrozen(t, kPopulation, "by mistake"); }).ok());
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  EXPECT_EQ(thawed->closed_end, "");
  EXPECT_EQ(AccountOf(kInto).closed_reason, "");
  EXPECT_EQ(AccountNow().frozen_reason, "");
}

TEST_P(MergedTest, ABackupFromBeforeTheThawOfAMergedPopulationDoesNotOpenWhatItClosed) {
  MergeNow();
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  ASSERT_TRUE(WriteFileDurably(witness_->marks().File(kPopulation), "garbled", 0600).ok());
  Restart();
  const Account open = AccountOf(kInto);
  ASSERT_TRUE(ThawNow().ok());
  const Account closed = AccountOf(kInto);
  const std::optional<Mark> mark = witness_->marks().Read(kInto).value();
  EXPECT_EQ(mark->last().sequence, closed.head_sequence);
  EXPECT_TRUE(mark->terms.closed);
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("DELETE FROM ledger_entries WHERE population = $1 AND sequence > $2",
                                               {kInto, open.head_sequence})
                                         .status());
                return t
                    .Execute(
                        "UPDATE populations SET closed_reason = '', head_sequence = $2, head_hash = $3 "
                        "WHERE name = $1",
                        {kInto, open.head_sequence, open.head_hash})
                    .status();
              }).ok());
  ASSERT_GT(AccountOf(kInto).left_units(), 0);
  Restart();
  EXPECT_NE(AccountOf(kInto).frozen_reason, "");
  const absl::StatusOr<Thawed> again =
      Thaw(store_.database(), witness_->marks(), kInto, "restored a backup", {"server", kWitnessTime});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->closed);
  EXPECT_EQ(AccountOf(kInto).left_units(), 0);
}

TEST_P(MergedTest, AnEndThatIsBehindItsMarkKeepsTheMarkAndIsMarkedAsClosed) {
  MergeNow();
  ASSERT_TRUE(witness_->CoverAll(kInto).ok());
  Mark ahead = *witness_->marks().Read(kInto).value();
  AddCheckpoint(ahead, {ahead.last().sequence + 1, std::string(64, '9'), ahead.last().spent_units + 7});
  ASSERT_TRUE(witness_->marks().Write(ahead).ok());
  ASSERT_TRUE(WriteFileDurably(witness_->marks().File(kPopulation), "garbled", 0600).ok());
  Restart();
  ASSERT_TRUE(ThawNow().ok());
  ahead.terms.closed = true;
  EXPECT_EQ(witness_->marks().Read(kInto).value(), ahead);
}

TEST_P(MergedTest, ADeltaThatARollbackLostIsLoweredAgain) {
  const auto add = [&] {
    return Write([&](Transaction& t) { return AddVersion(t, kPopulation, 100'000, {"token", kWitnessTime}); });
  };
  ASSERT_TRUE(add().ok());
  const Account lowered = AccountNow();
  ASSERT_EQ(lowered.terms.cap_delta, 1e-6);
  ASSERT_TRUE(witness_->CoverAll(kPopulation).ok());
  EXPECT_EQ(MarkNow()->terms.node_total, 100'000);
  RollBackTo(before_);
  ASSERT_TRUE(
      Write([&](Transaction& t) {
        return t.Execute("UPDATE populations SET cap_delta = $1, node_total = 0", {before_.terms.cap_delta}).status();
      }).ok());
  Restart();
  ASSERT_TRUE(ThawNow().ok());
  EXPECT_EQ(AccountNow().terms.cap_delta, 1e-6);
  EXPECT_EQ(AccountNow().node_total, 100'000) << "the next version is added to it";
  EXPECT_EQ(AccountNow().left_units(), lowered.left_units());
  ExpectIntact();
}

INSTANTIATE_TEST_SUITE_P(Engines, MergedTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
