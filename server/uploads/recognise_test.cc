// Uploads of data that the store does not know, and the witness directory does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/store/read_from.h"
#include "server/uploads/testing/uploads_fixture.h"
#include "server/witness/rollback.h"

namespace dpar {
namespace {

using testing::ExpectError;
using testing::SmallGraph;
using testing::UploadsTest;

constexpr char kFirst[] = "tenants/acme/populations/first";

class RecogniseTest : public UploadsTest {
 protected:
  // As after a store from before the upload was restored: it does not know the data, nor its population.
  void ForgetData() {
    EXPECT_TRUE(Upload("first").ok());
    EXPECT_TRUE(database_
                    ->Write([&](Transaction& t) -> absl::Status {
                      for (const std::string table : {"contents", "datasets", "ledger_entries", "populations"}) {
                        DPAR_RETURN_IF_ERROR(t.Execute("DELETE FROM " + table, {}).status());
                      }
                      return absl::OkStatus();
                    })
                    .ok());
  }
  // The same, and the witness has a mark of the population.
  void ForgetMarkedData() {
    ForgetData();
    ASSERT_TRUE(marks_->Write({kFirst, {3, 1e-6, 17, 100}, {{5, std::string(64, '5'), 40}}}).ok());
  }
  Account OldAccount() {
    return ReadFrom(*database_, [](Transaction& t) { return LoadAccount(t, kFirst); }).value();
  }
};

TEST_P(RecogniseTest, DataThatSpentSomethingTheStoreDoesNotKnowComesUpFrozenInItsOldPopulation) {
  ForgetMarkedData();
  const auto again = Upload("again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->budget_shared());
  EXPECT_EQ(BudgetOf("again"), kFirst);
  const auto budget = ReadFrom(*database_, [](Transaction& t) { return GetBudget(t, kFirst); });
  EXPECT_THAT(budget.value().frozen_reason(), ::testing::HasSubstr("results were released up to entry 5"));
  // With the order that its units are of, and the lower of both caps.
  const Account account = OldAccount();
  EXPECT_EQ(account.terms.order, 17);
  EXPECT_EQ(account.terms.cap_delta, 1e-6);
  EXPECT_EQ(account.terms.cap_epsilon, 3);
  EXPECT_EQ(account.terms.cap_units, 100);
  v1::OpenUploadRequest open = Declaration("public", "open-public");
  open.set_is_public(true);
  ExpectError(Upload(open, bytes_).status(), absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_BUDGET");
}

TEST_P(RecogniseTest, ALowerCapThatItsOwnerDeclaresForRecognisedDataHolds) {
  ForgetMarkedData();
  v1::OpenUploadRequest open = Declaration("again", "open-again");
  open.set_cap_epsilon(1);
  ASSERT_TRUE(Upload(open, bytes_).ok());
  const Account account = OldAccount();
  EXPECT_EQ(account.terms.cap_epsilon, 1);
  EXPECT_EQ(account.terms.cap_units, CapUnits(1, 1e-6, 17).value());
  // Its units are of the order that was marked, and it is frozen all the same.
  EXPECT_EQ(account.terms.order, 17);
  EXPECT_NE(account.frozen_reason, "");
  const auto entries = ReadFrom(*database_, [](Transaction& t) { return ListEntries(t, kFirst, 0, 10); }).value();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].kind(), v1::LedgerEntry::OPEN);
  EXPECT_EQ(entries[1].kind(), v1::LedgerEntry::ADJUST);
  EXPECT_EQ(entries[1].reason(), "declared with the upload");
}

TEST_P(RecogniseTest, VersionsThatTheStoreLostStillCountAgainstTheDelta) {
  ForgetData();
  ASSERT_TRUE(marks_->Write({kFirst, {8, 0.001, 17, 100, 0, 60}, {{5, std::string(64, '5'), 40}}}).ok());
  ASSERT_TRUE(Upload("again").ok());
  EXPECT_EQ(OldAccount().node_total, 63);
  EXPECT_EQ(OldAccount().terms.cap_delta, 0.001);
  EXPECT_EQ(OldAccount().terms.cap_units, 100);
}

TEST_P(RecogniseTest, DataWhoseMarkCannotBeReadComesUpFrozenAndIsNotPublic) {
  ForgetData();
  ASSERT_TRUE(WriteFileDurably(marks_->File(kFirst), "garbled", 0600).ok());
  v1::OpenUploadRequest open = Declaration("public", "open-public");
  open.set_is_public(true);
  ExpectError(Upload(open, bytes_).status(), absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_BUDGET");
  ASSERT_TRUE(Upload("again").ok());
  const auto budget = ReadFrom(*database_, [&](Transaction& t) { return GetBudget(t, BudgetOf("again")); });
  EXPECT_THAT(budget.value().frozen_reason(), ::testing::HasSubstr("cannot be read"));
}

TEST_P(RecogniseTest, DataWhosePopulationTheStoreLostBelongsToItAgainAndToNoOther) {
  ASSERT_TRUE(Upload("first").ok());
  v1::OpenUploadRequest other = Declaration("other", "open-other");
  Graph graph = SmallGraph();
  graph.features.values[0] = 3;
  ASSERT_TRUE(Upload(other, BytesOf(graph)).ok());
  ASSERT_TRUE(database_
                  ->Write([&](Transaction& t) -> absl::Status {
                    return t.Execute("DELETE FROM contents WHERE population = $1", {kFirst}).status();
                  })
                  .ok());
  v1::OpenUploadRequest elsewhere = Declaration("again", "open-again");
  elsewhere.set_population("tenants/acme/populations/other");
  ExpectError(Upload(elsewhere, bytes_).status(), absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_POPULATION");
  const auto again = Upload(Declaration("again", "open-once-more"), bytes_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->dataset().population(), kFirst);
  EXPECT_TRUE(again->budget_shared());
}

TEST_P(RecogniseTest, NothingIsRecordedWithADirectoryThatWasReplaced) {
  const auto insert = [&](int64_t number, char digit) {
    return database_->Write([&](Transaction& t) {
      return t
          .Execute("INSERT INTO witness_ids (number, id, reason, time) VALUES ($1, $2, 'replaced', 1)",
                   {number, std::string(32, digit)})
          .status();
    });
  };
  ASSERT_TRUE(marks_->WriteIds({std::string(32, '1')}).ok());
  ASSERT_TRUE(insert(0, '1').ok());
  ASSERT_TRUE(Upload("first").ok());
  ASSERT_TRUE(insert(1, '2').ok());
  ExpectError(Upload("second").status(), absl::StatusCode::kUnavailable, "SERVER_UNAVAILABLE");
  EXPECT_EQ(DatasetStatus("second").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(marks_->WriteIds({std::string(32, '1'), std::string(32, '2')}).ok());
  EXPECT_TRUE(Upload("third").ok());
}

TEST_P(RecogniseTest, OtherDataUnderTheIdOfALostPopulationComesUpFrozen) {
  ForgetMarkedData();
  Graph graph = SmallGraph();
  graph.features.values[0] = 3;
  const auto other = Upload(Declaration("first", "open-other"), BytesOf(graph));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->dataset().population(), kFirst);
  EXPECT_NE(OldAccount().frozen_reason, "");
}

INSTANTIATE_TEST_SUITE_P(Engines, RecogniseTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
