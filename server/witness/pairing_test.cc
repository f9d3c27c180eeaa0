// Stores and the witness directories that are, or are not, theirs.
#include "server/witness/pairing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "server/files.h"
#include "server/witness/testing/witness_fixture.h"

namespace dpar {
namespace {

using ::testing::AllOf;
using testing::Engine;
using ::testing::HasSubstr;
using testing::kPopulation;
using testing::kWitnessTime;
using testing::TemporaryStore;
namespace fs = std::filesystem;

using Ids = std::vector<std::string>;

Ids IdsIn(Database& database) {
  Ids ids;
  EXPECT_TRUE(database
                  .Read([&](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                                          t.Query("SELECT id FROM witness_ids ORDER BY number", {}));
                    for (const Row& row : rows) {
                      ids.push_back(RowReader(row).Text());
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  return ids;
}

// The fixture's server began, so that its store and directory belong together.
class PairingTest : public testing::WitnessFixture {
 protected:
  Ids StoreIds() { return IdsIn(store_.database()); }
  // Of the store to what it was with so many ids, as a restored backup would.
  void RollBackIdsTo(int64_t count) {
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return t.Execute("DELETE FROM witness_ids WHERE number >= $1", {count}).status();
                }).ok());
  }
  absl::Status BeginIn(const std::string& directory) {
    return Witness(store_.database(), root_ + "/" + directory).Begin();
  }
  absl::Status AdoptIn(const std::string& directory) {
    const MarkDirectory marks(root_ + "/" + directory);
    EXPECT_TRUE(marks.Make().ok());
    return Adopt(store_.database(), marks, "its disk died", kWitnessTime);
  }
  Ids KeptIn(const std::string& directory) { return MarkDirectory(root_ + "/" + directory).ReadIds().value(); }
  static void ExpectRefused(const absl::Status& status, const std::string& why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
};

TEST_P(PairingTest, TheFirstStartGivesBothTheSameIdAndAnotherStartChangesNothing) {
  const Ids ids = StoreIds();
  ASSERT_EQ(ids.size(), 1U);
  EXPECT_EQ(ids[0].size(), 32U);
  EXPECT_EQ(KeptIn("witness"), ids);
  Restart();
  EXPECT_EQ(StoreIds(), ids);
  EXPECT_EQ(KeptIn("witness"), ids);
}

TEST_P(PairingTest, AnEmptyDirectoryIsRefusedAndMarksNothing) {
  Spend("j");
  const absl::Status refused = BeginIn("empty");
  ExpectRefused(refused, "no store's id is there");
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("--witness-dir"), HasSubstr("dpard adopt-witness")));
  EXPECT_TRUE(MarkDirectory(root_ + "/empty").List().value().empty());
  EXPECT_TRUE(KeptIn("empty").empty());
  ExpectRefused(CheckPaired(store_.database(), MarkDirectory(root_ + "/empty")), "no store's id is there");
  EXPECT_TRUE(CheckPaired(store_.database(), witness_->marks()).ok());
}

TEST_P(PairingTest, TheDirectoryOfAnotherStoreIsRefused) {
  TemporaryStore other(GetParam());
  ASSERT_TRUE(Witness(other.database(), root_ + "/others").Begin().ok());
  ExpectRefused(BeginIn("others"), "belongs to another store");
  ExpectRefused(AdoptIn("others"), "belongs to another store");
}

TEST_P(PairingTest, ServersThatStartAtOnceAgree) {
  TemporaryStore fresh(GetParam());
  std::vector<absl::Status> statuses(4);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] { status = Witness(fresh.database(), root_ + "/fresh").Begin(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
  EXPECT_EQ(IdsIn(fresh.database()), KeptIn("fresh"));
  EXPECT_EQ(KeptIn("fresh").size(), 1U);
}

TEST_P(PairingTest, OfServersWithDirectoriesOfTheirOwnOneIsRefused) {
  TemporaryStore fresh(GetParam());
  ASSERT_TRUE(Witness(fresh.database(), root_ + "/one").Begin().ok());
  ExpectRefused(Witness(fresh.database(), root_ + "/two").Begin(), "no store's id is there");
}

TEST_P(PairingTest, ACrashBetweenDirectoryAndStoreIsMadeGoodAtTheNextStart) {
  const Ids ids = StoreIds();
  RollBackIdsTo(0);
  Restart();
  EXPECT_EQ(StoreIds(), ids);
}

TEST_P(PairingTest, AStoreAndADirectoryFromBeforeThereWereIdsArePairedAsTheyAre) {
  Spend("j");
  ASSERT_TRUE(Cover("j").ok());
  const auto mark = MarkNow();
  RollBackIdsTo(0);
  fs::remove(root_ + "/witness/store.ids");
  Restart();
  ASSERT_EQ(StoreIds().size(), 1U);
  EXPECT_EQ(KeptIn("witness"), StoreIds());
  EXPECT_EQ(MarkNow(), mark);
  EXPECT_EQ(AccountNow().frozen_reason, "");
}

TEST_P(PairingTest, ANewStoreBesideOldMarksTakesTheirId) {
  TemporaryStore fresh(GetParam());
  ASSERT_TRUE(Witness(fresh.database(), root_ + "/witness").Begin().ok());
  EXPECT_EQ(IdsIn(fresh.database()), StoreIds());
}

TEST_P(PairingTest, AStoreWithoutAnIdDoesNotTakeThatOfADirectoryThatDoesNotKnowItsTenants) {
  TemporaryStore other(GetParam());
  ASSERT_TRUE(other.database()
                  .Write([](Transaction& t) { return InsertTenant(t, "umbra", std::string(32, 'u'), kWitnessTime); })
                  .ok());
  const absl::Status refused = Witness(other.database(), root_ + "/witness").Begin();
  ExpectRefused(refused, "does not know tenants/umbra: it belongs to another store");
  EXPECT_TRUE(IdsIn(other.database()).empty());
  EXPECT_FALSE(witness_->marks().HasContentKey("tenants/umbra").value());
}

TEST_P(PairingTest, ALostDirectoryIsReplacedWhenAnOperatorSaysSo) {
  Spend("j");
  ASSERT_TRUE(Cover("j").ok());
  const Ids before = StoreIds();
  ASSERT_TRUE(AdoptIn("next").ok());
  const Ids after = StoreIds();
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[0]);
  EXPECT_EQ(KeptIn("next"), after);
  ASSERT_TRUE(BeginIn("next").ok());
  EXPECT_TRUE(MarkDirectory(root_ + "/next").Read(kPopulation).value().has_value());
  EXPECT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                                      t.Query("SELECT reason, time FROM witness_ids WHERE number = 1", {}));
                RowReader reader(rows.at(0));
                EXPECT_EQ(reader.Text(), "its disk died");
                EXPECT_EQ(reader.Int(), absl::ToUnixMicros(kWitnessTime));
                return reader.status();
              }).ok());
  // The old one, which lacks what is marked from now on, is not good any more.
  ExpectRefused(BeginIn("witness"), "was replaced by another one since");
  EXPECT_TRUE(AdoptIn("next").ok()) << "whoever is not sure says it again";
  EXPECT_EQ(StoreIds(), after);
  ExpectRefused(AdoptIn("witness"), "nothing was changed");
}

TEST_P(PairingTest, AServerWithADirectoryThatWasReplacedMarksAndShowsNothingMore) {
  Spend("j");
  ASSERT_TRUE(AdoptIn("next").ok());
  EXPECT_EQ(Cover("j").code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(witness_->marks().Read(kPopulation).value().has_value());
}

TEST_P(PairingTest, AnAdoptionThatWasCutOffIsCompletedWithItsReason) {
  const MarkDirectory next(root_ + "/next");
  ASSERT_TRUE(next.Make().ok());
  Ids ids = StoreIds();
  ids.push_back(std::string(32, 'a'));
  ASSERT_TRUE(next.WriteIds(ids).ok());
  ASSERT_TRUE(AdoptIn("next").ok());
  EXPECT_EQ(StoreIds(), ids);
  EXPECT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                                      t.Query("SELECT reason FROM witness_ids WHERE number = 1", {}));
                EXPECT_EQ(RowReader(rows.at(0)).Text(), "its disk died");
                return absl::OkStatus();
              }).ok());
}

TEST_P(PairingTest, ATenantMayHaveTheNameOfAnything) {
  for (const char* tenant : {"ids", "store", "probe"}) {
    ASSERT_TRUE(
        Write([&](Transaction& t) { return InsertTenant(t, tenant, std::string(32, 'k'), kWitnessTime); }).ok());
  }
  Restart();
  EXPECT_TRUE(witness_->marks().HasContentKey("tenants/ids").value());
}

TEST_P(PairingTest, DamagedIdsUnderARunningServerSayNothingOfMarks) {
  Spend("j");
  ASSERT_TRUE(Cover("j").ok());
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness/store.ids", "damaged", 0600).ok());
  EXPECT_EQ(witness_->marks().Read(kPopulation).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(witness_->marks().TryWriting().ok());
}

TEST_P(PairingTest, ABackupFromBeforeTheDirectoryWasReplacedFindsTheNewOne) {
  ASSERT_TRUE(AdoptIn("next").ok());
  ASSERT_TRUE(BeginIn("next").ok());
  const Ids ids = StoreIds();
  RollBackIdsTo(1);
  EXPECT_TRUE(CheckPaired(store_.database(), MarkDirectory(root_ + "/next")).ok());
  ASSERT_TRUE(BeginIn("next").ok());
  EXPECT_EQ(StoreIds(), ids);
}

TEST_P(PairingTest, AStoreThatWasNeverServedHasNothingToReplace) {
  TemporaryStore fresh(GetParam());
  const MarkDirectory marks(root_ + "/fresh");
  ASSERT_TRUE(marks.Make().ok());
  ExpectRefused(Adopt(fresh.database(), marks, "why not", kWitnessTime), "no witness directory yet");
  EXPECT_TRUE(CheckPaired(fresh.database(), marks).ok());
}

TEST_P(PairingTest, IdsThatCannotBeReadEndTheStart) {
  for (const char* text : {"", "\n", "short\n", "0123456789abcdef0123456789abcdefg\n"}) {
    ASSERT_TRUE(WriteFileDurably(root_ + "/witness/store.ids", text, 0600).ok());
    EXPECT_EQ(NewWitness()->Begin().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST_P(PairingTest, ADirectoryThatVanishesUnderARunningServerIsNotBegunAnew) {
  Spend("j");
  fs::rename(root_ + "/witness", root_ + "/unmounted");
  fs::create_directory(root_ + "/witness");
  EXPECT_EQ(Cover("j").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(failures_, 1);
  EXPECT_FALSE(witness_->Writes());
  EXPECT_EQ(witness_->marks().Read(kPopulation).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(witness_->marks().KeepContentKey("tenants/new", "k").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(fs::is_empty(root_ + "/witness"));
  fs::remove(root_ + "/witness");
  fs::rename(root_ + "/unmounted", root_ + "/witness");
  EXPECT_TRUE(witness_->Writes());
  EXPECT_TRUE(Cover("j").ok());
}

INSTANTIATE_TEST_SUITE_P(Engines, PairingTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
