// Uploads of data that the store does not know, and the witness directory does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/store/read_from.h"
#include "server/uploads/testing/uploads_fixture.h"
#include "server/witness/rollback.h"

namespace dpar {
namespace {

using testing::ExpectError;
using testing::UploadsTest;

// As after a store from before the upload was restored: it does not know the data, and the witness does.
TEST_P(UploadsTest, DataThatSpentSomethingTheStoreDoesNotKnowComesUpFrozenUnderItsOldBudget) {
  Mark mark{{"tenants/acme", ""}, "the-old-id", {3, 1e-6, 17, 100}, {{5, std::string(64, '5'), 40}}};
  // What the content's digest is, the first upload shows.
  ASSERT_TRUE(Upload("first").ok());
  const auto content = ReadFrom(*database_, [&](Transaction& t) { return ContentOf(t, BudgetOf("first")); });
  ASSERT_TRUE(content.ok()) << content.status();
  mark.content = *content;
  ASSERT_TRUE(
      database_->Write([&](Transaction& t) -> absl::Status { return t.Execute("DELETE FROM contents", {}).status(); })
          .ok());
  ASSERT_TRUE(MakeParentDirectory(marks_->File(mark.content)).ok());
  ASSERT_TRUE(marks_->Write(mark).ok());
  const auto again = Upload("again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->budget_shared());
  EXPECT_EQ(BudgetOf("again"), "the-old-id");
  const auto budget = ReadFrom(*database_, [](Transaction& t) { return GetBudget(t, "the-old-id"); });
  EXPECT_THAT(budget.value().frozen_reason(), ::testing::HasSubstr("results were released up to entry 5"));
  // With the order that its units are of, and the lower of both caps.
  const auto account = ReadFrom(*database_, [](Transaction& t) { return LoadAccount(t, "the-old-id"); });
  EXPECT_EQ(account.value().terms.order, 17);
  EXPECT_EQ(account->terms.cap_delta, 1e-6);
  EXPECT_EQ(account->terms.cap_epsilon, 3);
  EXPECT_EQ(account->terms.cap_units, 100);
  v1::OpenUploadRequest open = Declaration("public", "open-public");
  open.set_is_public(true);
  ExpectError(Upload(open, bytes_).status(), absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_BUDGET");
}

TEST_P(UploadsTest, DataWhoseMarkCannotBeReadComesUpFrozenAndIsNotPublic) {
  ASSERT_TRUE(Upload("first").ok());
  const auto content = ReadFrom(*database_, [&](Transaction& t) { return ContentOf(t, BudgetOf("first")); });
  ASSERT_TRUE(
      database_->Write([&](Transaction& t) -> absl::Status { return t.Execute("DELETE FROM contents", {}).status(); })
          .ok());
  ASSERT_TRUE(MakeParentDirectory(marks_->File(*content)).ok());
  ASSERT_TRUE(WriteFileDurably(marks_->File(*content), "garbled", 0600).ok());
  v1::OpenUploadRequest open = Declaration("public", "open-public");
  open.set_is_public(true);
  ExpectError(Upload(open, bytes_).status(), absl::StatusCode::kFailedPrecondition, "CONTENT_HAS_BUDGET");
  ASSERT_TRUE(Upload("again").ok());
  const auto budget = ReadFrom(*database_, [&](Transaction& t) { return GetBudget(t, BudgetOf("again")); });
  EXPECT_THAT(budget.value().frozen_reason(), ::testing::HasSubstr("cannot be read"));
}

INSTANTIATE_TEST_SUITE_P(Engines, UploadsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
