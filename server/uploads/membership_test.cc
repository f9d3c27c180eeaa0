// Which population an upload belongs to, and what it does to the cap's delta.
#include "server/uploads/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/ledger/merge.h"
#include "server/store/read_from.h"
#include "server/uploads/testing/uploads_fixture.h"

namespace dpar {
namespace {

using testing::ExpectError;
using ::testing::HasSubstr;
using testing::kNow;
using testing::Metadata;
using testing::SmallGraph;
using testing::UploadsTest;

constexpr char kFirst[] = "tenants/acme/populations/first";

class MembershipTest : public UploadsTest {
 protected:
  // Another month of the same three people.
  std::string Version(float value) const {
    Graph graph = SmallGraph();
    graph.features.values[0] = value;
    return BytesOf(graph);
  }
  v1::OpenUploadRequest Of(const std::string& dataset, const std::string& population) const {
    v1::OpenUploadRequest request = Declaration(dataset, "open-" + dataset);
    request.set_population(population);
    return request;
  }
  absl::Status OpenStatus(const v1::OpenUploadRequest& request) { return Open(request).status(); }
  Account AccountOf(const std::string& population) {
    return ReadFrom(*database_, [&](Transaction& t) { return LoadAccount(t, population); }).value();
  }
  absl::Status Ledger(const std::function<absl::Status(Transaction&)>& body) { return database_->Write(body); }
};

TEST_P(MembershipTest, AnUploadOpensAPopulationOfItsOwnIdAndVersionsJoinIt) {
  EXPECT_EQ(Upload("first")->dataset().population(), kFirst);
  const auto second = Upload(Of("second", kFirst), Version(2));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->budget_shared());
  EXPECT_EQ(second->dataset().population(), kFirst);
  EXPECT_EQ(BudgetOf("second"), kFirst);
  EXPECT_EQ(AccountOf(kFirst).node_total, 6);
  EXPECT_EQ(Upload(Declaration("third", "open-third"), Version(3))->dataset().population(),
            "tenants/acme/populations/third");
}

TEST_P(MembershipTest, EveryVersionLowersTheDeltaToThatOfTheSumOfSlots) {
  ASSERT_TRUE(Upload("first").ok());
  EXPECT_EQ(AccountOf(kFirst).terms.cap_delta, 0.03);
  ASSERT_TRUE(Upload(Of("second", kFirst), Version(2)).ok());
  const Account account = AccountOf(kFirst);
  EXPECT_EQ(account.terms.cap_delta, 0.01) << "1/(10 * 6), rounded down";
  EXPECT_EQ(account.terms.cap_units, CapUnits(8, 0.01, account.terms.order).value());
  const auto entries = ReadFrom(*database_, [](Transaction& t) { return ListEntries(t, kFirst, 1, 10); }).value();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].kind(), v1::LedgerEntry::ADJUST);
  EXPECT_EQ(entries[0].delta(), 0.01);
  EXPECT_EQ(entries[0].reason(), "delta lowered to 1/(10 N), rounded down, for N = 6 slots of all versions");
  EXPECT_TRUE(ReadFrom(*database_, [](Transaction& t) { return VerifyChain(t, kFirst, {}); })->intact());
}

// One node's data decides whether two versions are identical.
TEST_P(MembershipTest, ABudgetDoesNotTellWhetherTwoVersionsAreIdentical) {
  ASSERT_TRUE(Upload("first").ok());
  ASSERT_TRUE(Upload(Declaration("other", "open-other"), Version(2)).ok());
  ASSERT_TRUE(Upload(Of("different", kFirst), Version(3)).ok());
  constexpr char kOther[] = "tenants/acme/populations/other";
  ASSERT_TRUE(Upload(Of("same", kOther), Version(2)).ok());
  const Account different = AccountOf(kFirst);
  const Account same = AccountOf(kOther);
  EXPECT_EQ(same.node_total, 6);
  EXPECT_EQ(same.terms.cap_delta, 0.01);
  EXPECT_EQ(same.node_total, different.node_total);
  EXPECT_EQ(same.terms.cap_delta, different.terms.cap_delta);
  EXPECT_EQ(same.terms.cap_units, different.terms.cap_units);
  EXPECT_EQ(same.head_sequence, different.head_sequence);
}

TEST_P(MembershipTest, AnIdenticalVersionIsRefusedUnderOpenReservationsAsAnotherOneIs) {
  ASSERT_TRUE(Upload("first").ok());
  v1::OpenUploadRequest sized = Of("copy", kFirst);
  sized.set_size_bytes(static_cast<int64_t>(bytes_.size()));
  const std::string upload = Open(sized)->name();
  ASSERT_TRUE(Write(upload, 0, bytes_).ok());
  const Account account = AccountOf(kFirst);
  const EntryContext context{"token", kNow};
  const Price price = *MakePrice(*MakeGaussianEvent(1, 100, 1), 0.1, 0.03, account.terms);
  ASSERT_TRUE(Ledger([&](Transaction& t) { return Reserve(t, kFirst, "j", price, context).status(); }).ok());
  ExpectError(Finish(upload, Sha256Hex(bytes_), "finish").status(), absl::StatusCode::kFailedPrecondition,
              "POPULATION_IN_USE");
  // Without a declaration nothing is counted, and nothing needs to be lowered.
  const auto again = Upload("again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->dataset().population(), kFirst);
  EXPECT_EQ(AccountOf(kFirst).node_total, 3);
}

TEST_P(MembershipTest, ADeltaIsNotLoweredUnderOpenReservationsAndTheUploadStaysOpen) {
  ASSERT_TRUE(Upload("first").ok());
  const v1::OpenUploadRequest request = Of("second", kFirst);
  const std::string bytes = Version(2);
  v1::OpenUploadRequest sized = request;
  sized.set_size_bytes(static_cast<int64_t>(bytes.size()));
  const std::string upload = Open(sized)->name();
  ASSERT_TRUE(Write(upload, 0, bytes).ok());
  const Account account = AccountOf(kFirst);
  const Price price = *MakePrice(*MakeGaussianEvent(1, 100, 1), 0.1, 0.03, account.terms);
  const EntryContext context{"token", kNow};
  ASSERT_TRUE(Ledger([&](Transaction& t) { return Reserve(t, kFirst, "j", price, context).status(); }).ok());
  ExpectError(Finish(upload, Sha256Hex(bytes), "finish").status(), absl::StatusCode::kFailedPrecondition,
              "POPULATION_IN_USE");
  ExpectError(OpenStatus(Of("third", kFirst)), absl::StatusCode::kFailedPrecondition, "POPULATION_IN_USE");
  EXPECT_EQ(AccountOf(kFirst).terms.cap_delta, 0.03);
  EXPECT_EQ(AccountOf(kFirst).node_total, 3);
  ASSERT_TRUE(Ledger([&](Transaction& t) { return Post(t, kFirst, "j", 1, context).status(); }).ok());
  const auto finished = Finish(upload, Sha256Hex(bytes), "finish");
  ASSERT_TRUE(finished.ok()) << finished.status();
  // What was planned at the delta before is planned again.
  const absl::Status stale = Ledger([&](Transaction& t) { return Reserve(t, kFirst, "k", price, context).status(); });
  EXPECT_EQ(stale.code(), absl::StatusCode::kUnavailable) << stale;
}

TEST_P(MembershipTest, AVersionThatWhatIsSpentLeavesNoDeltaForIsRefused) {
  ASSERT_TRUE(Upload("first").ok());
  const int64_t all = AccountOf(kFirst).left_units();
  ASSERT_TRUE(Ledger([&](Transaction& t) {
                return Debit(t, kFirst, all, "elsewhere", {"operator", kNow}).status();
              }).ok());
  const absl::Status refused = OpenStatus(Of("second", kFirst));
  ExpectError(refused, absl::StatusCode::kFailedPrecondition, "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("goes from 0.03 to 0.01"));
}

TEST_P(MembershipTest, VersionsThatTheMarkKnowsAndTheStoreLostStillCount) {
  ASSERT_TRUE(Upload("first").ok());
  ASSERT_TRUE(marks_->Write({kFirst, {8, 0.001, 17, 100, 0, 60}, {{5, std::string(64, '5'), 40}}}).ok());
  ASSERT_TRUE(Upload(Of("second", kFirst), Version(2)).ok());
  EXPECT_EQ(AccountOf(kFirst).node_total, 63);
  EXPECT_EQ(AccountOf(kFirst).terms.cap_delta, 0.001);
}

TEST_P(MembershipTest, TheSameContentBelongsToItsFirstPopulationAlone) {
  ASSERT_TRUE(Upload("first").ok());
  ASSERT_TRUE(Upload(Declaration("other", "open-other"), Version(2)).ok());
  const absl::Status refused = Upload(Of("again", "tenants/acme/populations/other"), bytes_).status();
  ExpectError(refused, absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_POPULATION");
  EXPECT_EQ(Metadata(refused, "population"), kFirst);
  EXPECT_EQ(uploads_->Get(last_)->state(), v1::Upload::REFUSED);
  EXPECT_EQ(DatasetStatus("again").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FilesBelow("datasets").size(), 2U) << "of the others";
  EXPECT_EQ(Upload(Of("named", kFirst), bytes_)->dataset().population(), kFirst);
}

TEST_P(MembershipTest, WhatCannotBeDeclaredIsRefusedBeforeAnyByte) {
  ASSERT_TRUE(Upload("first").ok());
  ExpectError(OpenStatus(Of("d", "tenants/acme/populations/none")), absl::StatusCode::kNotFound, "RESOURCE_NOT_FOUND");
  v1::OpenUploadRequest foreign = Of("d", kFirst);
  foreign.set_parent("tenants/other");
  ExpectError(OpenStatus(foreign), absl::StatusCode::kNotFound, "RESOURCE_NOT_FOUND");
  ExpectError(OpenStatus(Of("d", "first")), absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  ExpectError(OpenStatus(Of("d", "tenants/acme/datasets/first")), absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  v1::OpenUploadRequest open = Of("d", kFirst);
  open.set_is_public(true);
  ExpectError(OpenStatus(open), absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  open = Of("d", kFirst);
  open.set_cap_epsilon(1);
  ExpectError(OpenStatus(open), absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
}

TEST_P(MembershipTest, AMergedPopulationIsRefusedWithTheOneThatGoesOn) {
  ASSERT_TRUE(Upload("first").ok());
  ASSERT_TRUE(Upload(Declaration("other", "open-other"), Version(2)).ok());
  constexpr char kOther[] = "tenants/acme/populations/other";
  const MergePrices prices = *PriceMerge(*database_, kFirst, kOther);
  ASSERT_TRUE(Ledger([&](Transaction& t) { return Merge(t, kFirst, kOther, prices, "same", {"token", kNow}); }).ok());
  const absl::Status refused = OpenStatus(Of("d", kFirst));
  ExpectError(refused, absl::StatusCode::kFailedPrecondition, "POPULATION_CLOSED");
  EXPECT_EQ(Metadata(refused, "merged_into"), kOther);
  // Its content has followed.
  EXPECT_EQ(Upload("again")->dataset().population(), kOther);
  EXPECT_EQ(BudgetOf("first"), kOther);
  EXPECT_EQ(AccountOf(kOther).node_total, 6);
}

INSTANTIATE_TEST_SUITE_P(Engines, MembershipTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
