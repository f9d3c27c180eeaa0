#include "server/upkeep/check_ledgers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "server/worker/testing/worker_fixture.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;

class CheckLedgersTest : public testing::WorkerFixture {
 protected:
  void SetUp() override {
    WorkerFixture::SetUp();
    ASSERT_TRUE(Submit(5).ok());
    ASSERT_TRUE(worker_.Start().ok());
    AwaitState(v1::Job::SUCCEEDED);
    worker_.Stop();
  }
  void Change(const std::string& sql) {
    ASSERT_TRUE(Write([&](Transaction& t) { return t.Execute(sql, {}).status(); }).ok()) << sql;
  }
  // What the check says, and how many ledgers are at fault.
  std::string Check(int64_t faults, const VerifyingKey& key) {
    std::ostringstream out;
    EXPECT_EQ(CheckLedgers(
                  store_.database(), [&] { return std::vector<KnownKey>{key}; }, out)
                  .value(),
              faults);
    return out.str();
  }
  std::string Check(int64_t faults) { return Check(faults, key_.verifying_key()); }
};

TEST_F(CheckLedgersTest, AnIntactLedgerIsOk) { EXPECT_EQ(Check(0), "ledgers: 1 ok, 0 broken\n"); }

TEST_F(CheckLedgersTest, AnAlteredEntryIsNamed) {
  Change("UPDATE ledger_entries SET units = units - 1 WHERE sequence = 3");
  EXPECT_THAT(Check(1), HasSubstr("ledger tenants/acme/populations/b: BROKEN, entry 3: "));
}

TEST_F(CheckLedgersTest, AModelWithoutItsPostedEntryIsSeenThoughTheRestAddsUp) {
  // The ledger as it was before the job, sums and head included.
  Change("DELETE FROM ledger_entries WHERE sequence > 1");
  Change(
      "UPDATE populations SET posted_units = 0, live_events = 0, head_sequence = 1, "
      "head_hash = (SELECT hash FROM ledger_entries WHERE sequence = 1)");
  EXPECT_THAT(Check(1), HasSubstr("a certificate was signed for an entry that is not there"));
}

TEST_F(CheckLedgersTest, ACertificateThatThisServerDidNotSignIsSeen) {
  EXPECT_THAT(Check(1, SigningKey::Generate()->verifying_key()), HasSubstr("a stored certificate cannot be read"));
}

}  // namespace
}  // namespace dpar
