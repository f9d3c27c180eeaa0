// The checker itself: every kind of damage that a crash could do is seen.
#include "tests/crash/store_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/files.h"
#include "server/store/database.h"
#include "tests/crash/crash_site.h"

namespace dpar::crash {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One sound store with a job that succeeded and one that was cancelled, and a damaged copy for each test.
class StoreCheckerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    site_ = new CrashSite(nullptr);
    ASSERT_TRUE(site_->Start());
    const CrashSite::Tenant tenant = site_->NewTenant(/*seed=*/8);
    succeeded_ = site_->Submit(tenant, QuickJob(tenant.dataset));
    cancelled_ = site_->Submit(tenant, LongJob(tenant.dataset));
    site_->promises().AsksToCancel(cancelled_);
    EXPECT_THAT(e2e::CancelJob(site_->ClientOf(tenant.access), cancelled_).status, e2e::IsOk());
    site_->Settle("before any damage");
  }
  static void TearDownTestSuite() { delete site_; }

  void SetUp() override {
    std::filesystem::copy(site_->server().data_directory(), copy_.File("data"),
                          std::filesystem::copy_options::recursive);
    std::filesystem::copy(site_->server().data_directory() + ".witness", copy_.File("data.witness"),
                          std::filesystem::copy_options::recursive);
    promised_ = site_->promises().all();
    ASSERT_THAT(Check(), IsEmpty());
  }
  // The only mark.
  std::string MarkFile() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(copy_.File("data.witness"))) {
      if (entry.path().extension() == ".mark") {
        return entry.path().string();
      }
    }
    ADD_FAILURE() << "there is no mark";
    return "";
  }

  std::vector<std::string> Check(Rest rest = Rest::kSettled) { return checker_.Check(promised_, rest); }

  // Runs statements on the copy, whatever they break.
  void Damage(const std::vector<std::string>& statements) {
    const absl::StatusOr<std::unique_ptr<Database>> database = OpenSqlite(copy_.File("data/dpar.sqlite"));
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)
                    ->Write([&](Transaction& transaction) -> absl::Status {
                      absl::Status status;
                      for (const std::string& statement : statements) {
                        status.Update(transaction.Execute(statement, {}).status());
                      }
                      return status;
                    })
                    .ok());
  }

  std::string Weights() const { return DataDirectory(copy_.File("data")).ModelFile(succeeded_, 1, kWeightsName); }

  static CrashSite* site_;
  static std::string succeeded_;
  static std::string cancelled_;
  const e2e::TemporaryDirectory copy_;
  StoreChecker checker_{copy_.File("data"), "", kMaxAttempts};
  Promised promised_;
};

CrashSite* StoreCheckerTest::site_ = nullptr;
std::string StoreCheckerTest::succeeded_;
std::string StoreCheckerTest::cancelled_;

// Numbers of v1::Job::State and v1::LedgerEntry::Kind in the statements below.
static_assert(v1::Job::QUEUED == 1 && v1::Job::SUCCEEDED == 3 && v1::Job::CANCELLED == 5);
static_assert(v1::LedgerEntry::POST == 3 && v1::LedgerEntry::VOID == 4);

TEST_F(StoreCheckerTest, ALostJobIsSeen) {
  promised_.jobs.insert("tenants/tenant-1/jobs/lost");
  EXPECT_THAT(Check(), Contains(HasSubstr("was accepted and is lost")));
}

TEST_F(StoreCheckerTest, AJobThatNoRequestStandsForIsSeen) {
  promised_.jobs.erase(succeeded_);
  EXPECT_THAT(Check(), Contains("there are 2 jobs for 1 requests"));
}

TEST_F(StoreCheckerTest, AnEndThatAClientSawAndThatIsAnotherNowIsSeen) {
  promised_.ended[succeeded_] = v1::Job::FAILED;
  EXPECT_THAT(Check(), Contains(HasSubstr("was seen as FAILED and is not any more")));
}

TEST_F(StoreCheckerTest, ACancelThatNobodyAskedForIsSeen) {
  promised_.cancels.clear();
  EXPECT_THAT(Check(), Contains(HasSubstr("nobody cancelled it")));
}

TEST_F(StoreCheckerTest, AModelWithoutItsPostedEntryIsSeen) {
  Damage({"DELETE FROM ledger_entries WHERE kind = 3"});
  const std::vector<std::string> faults = Check();
  EXPECT_THAT(faults, Contains(HasSubstr("0 posts, 0 voids: 1 is due")));
  EXPECT_THAT(faults, Contains(HasSubstr("does not name its posted entry")));
  EXPECT_THAT(faults, Contains(HasSubstr("the chain of budget")));
  EXPECT_THAT(faults, Contains(HasSubstr("lost entries that it had")));
}

TEST_F(StoreCheckerTest, SumsThatAreNotThoseOfTheEntriesAreSeen) {
  Damage({"UPDATE populations SET posted_units = posted_units - 1"});
  EXPECT_THAT(Check(), Contains(HasSubstr("do not add up to")));
}

TEST_F(StoreCheckerTest, AReservationThatNobodyHoldsIsSeen) {
  Damage({"UPDATE populations SET reserved_units = 7, live_events = 2"});
  EXPECT_THAT(Check(), Contains(HasSubstr("holds 7 units for jobs of 0")));
}

TEST_F(StoreCheckerTest, AJobThatIsLiveAgainAfterItsEndIsSeen) {
  Damage({"UPDATE jobs SET state = 1, end_time = NULL WHERE state = 5"});
  const std::vector<std::string> faults = Check(Rest::kInterrupted);
  EXPECT_THAT(faults, Contains(HasSubstr("had ended and is live again")));
  EXPECT_THAT(faults, Contains(HasSubstr("0 posts, 1 voids: 0 is due")));
}

TEST_F(StoreCheckerTest, AJobThatEndedASecondTimeIsSeen) {
  Damage({"UPDATE jobs SET end_time = end_time + 1 WHERE state = 3"});
  EXPECT_THAT(Check(), Contains(HasSubstr("ended a second time")));
}

TEST_F(StoreCheckerTest, AnOutputOfAJobThatDidNotSucceedIsSeen) {
  Damage({"UPDATE jobs SET state = 5 WHERE state = 3"});
  EXPECT_THAT(Check(), Contains(HasSubstr("it has an output")));
}

TEST_F(StoreCheckerTest, AnEndThatWasSeenAndIsNotMarkedIsSeen) {
  std::filesystem::remove(MarkFile());
  EXPECT_THAT(Check(), ::testing::ElementsAre(HasSubstr("was seen and is not marked")));
}

TEST_F(StoreCheckerTest, AMarkThatIsAheadOfItsLedgerOrCannotBeReadIsSeen) {
  Mark mark = ParseMark(e2e::ReadFile(MarkFile())).value();
  mark.checkpoints.push_back({mark.last().sequence + 1, mark.last().hash, mark.last().spent_units});
  e2e::WriteFile(MarkFile(), FormatMark(mark));
  EXPECT_THAT(Check(), ::testing::ElementsAre(HasSubstr("is ahead of its ledger")));
  e2e::WriteFile(MarkFile(), "garbled");
  EXPECT_THAT(Check(), ::testing::ElementsAre(HasSubstr("the marks cannot be read")));
}

TEST_F(StoreCheckerTest, ABudgetThatIsFrozenIsSeen) {
  Damage({"UPDATE populations SET frozen_reason = 'why'"});
  EXPECT_THAT(Check(), ::testing::ElementsAre(HasSubstr("is frozen: why")));
}

TEST_F(StoreCheckerTest, AModelFileThatIsGoneOrChangedIsSeen) {
  e2e::WriteFile(Weights(), "another model");
  EXPECT_THAT(Check(), Contains(HasSubstr("is missing or is not what was released")));
  std::filesystem::remove(Weights());
  EXPECT_THAT(Check(Rest::kInterrupted), Contains(HasSubstr("is missing or is not what was released")));
}

TEST_F(StoreCheckerTest, AModelFileThatWasNotSweptIsSeenOnceTheStoreHasSettled) {
  const std::string left = DataDirectory(copy_.File("data")).ModelFile(cancelled_, 1, kWeightsName);
  ASSERT_TRUE(MakeParentDirectory(left).ok());
  e2e::WriteFile(left, "a model");
  EXPECT_THAT(Check(Rest::kInterrupted), IsEmpty());
  EXPECT_THAT(Check(), Contains(HasSubstr("has no posted entry and was not swept")));
}

TEST_F(StoreCheckerTest, AFileThatAnUploadLeftBehindIsSeenOnceTheStoreHasSettled) {
  const std::string left = DataDirectory(copy_.File("data")).UploadFile("tenants/tenant-1/uploads/left");
  ASSERT_TRUE(MakeParentDirectory(left).ok());
  e2e::WriteFile(left, "private bytes");
  EXPECT_THAT(Check(Rest::kInterrupted), IsEmpty());
  EXPECT_THAT(Check(), Contains(HasSubstr("belongs to no dataset and was not swept")));
}

TEST_F(StoreCheckerTest, ADatasetThatIsLostOrDamagedIsSeen) {
  const std::string dataset = *promised_.datasets.begin();
  promised_.datasets.insert("tenants/tenant-1/datasets/lost");
  EXPECT_THAT(Check(), Contains(HasSubstr("was sealed and is lost")));
  std::filesystem::remove(DataDirectory(copy_.File("data")).DatasetFile(dataset));
  EXPECT_THAT(Check(), Contains(HasSubstr("the store cannot be read")));
}

}  // namespace
}  // namespace dpar::crash
