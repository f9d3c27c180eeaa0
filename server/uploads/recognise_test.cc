// Uploads of data that the store does not know, and the witness directory does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/privacy/budget.h"
#include "server/files.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/store/read_from.h"
#include "server/uploads/testing/uploads_fixture.h"
#include "server/witness/rollback.h"

namespace dpar {
namespace {

using testing::ExpectError;
using testing::UploadsTest;

class RecogniseTest : public UploadsTest {
 protected:
  // As after a store from before the upload was restored: it does not know the data.
  Content ForgetData() {
    // What the content's digest is, the first upload shows.
    EXPECT_TRUE(Upload("first").ok());
    const auto content = ReadFrom(*database_, [&](Transaction& t) { return ContentOf(t, BudgetOf("first")); });
    EXPECT_TRUE(
        database_->Write([&](Transaction& t) -> absl::Status { return t.Execute("DELETE FROM contents", {}).status(); })
            .ok());
    EXPECT_TRUE(MakeParentDirectory(marks_->File(content.value())).ok());
    return *content;
  }
  // The same, and the witness does.
  void ForgetMarkedData() {
    ASSERT_TRUE(marks_->Write({ForgetData(), "the-old-id", {3, 1e-6, 17, 100}, {{5, std::string(64, '5'), 40}}}).ok());
  }
  Account OldAccount() {
    return ReadFrom(*database_, [](Transaction& t) { return LoadAccount(t, "the-old-id"); }).value();
  }
};

TEST_P(RecogniseTest, DataThatSpentSomethingTheStoreDoesNotKnowComesUpFrozenUnderItsOldBudget) {
  ForgetMarkedData();
  const auto again = Upload("again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->budget_shared());
  EXPECT_EQ(BudgetOf("again"), "the-old-id");
  const auto budget = ReadFrom(*database_, [](Transaction& t) { return GetBudget(t, "the-old-id"); });
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
  const auto entries = ReadFrom(*database_, [](Transaction& t) { return ListEntries(t, "the-old-id", 0, 10); }).value();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].kind(), v1::LedgerEntry::OPEN);
  EXPECT_EQ(entries[1].kind(), v1::LedgerEntry::ADJUST);
  EXPECT_EQ(entries[1].reason(), "declared with the upload");
}

TEST_P(RecogniseTest, DataWhoseMarkCannotBeReadComesUpFrozenAndIsNotPublic) {
  const Content content = ForgetData();
  ASSERT_TRUE(WriteFileDurably(marks_->File(content), "garbled", 0600).ok());
  v1::OpenUploadRequest open = Declaration("public", "open-public");
  open.set_is_public(true);
  ExpectError(Upload(open, bytes_).status(), absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_BUDGET");
  ASSERT_TRUE(Upload("again").ok());
  const auto budget = ReadFrom(*database_, [&](Transaction& t) { return GetBudget(t, BudgetOf("again")); });
  EXPECT_THAT(budget.value().frozen_reason(), ::testing::HasSubstr("cannot be read"));
}

INSTANTIATE_TEST_SUITE_P(Engines, RecogniseTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
