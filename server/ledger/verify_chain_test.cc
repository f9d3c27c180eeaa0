// Whatever is changed in the ledger's tables is seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/ledger/testing/ledger_fixture.h"

namespace dpar {
namespace {

using testing::kContext;
using testing::kPopulation;

class VerifyChainTest : public testing::LedgerFixture {
 protected:
  // An entry of every kind.
  void SetUp() override {
    LedgerFixture::SetUp();
    ASSERT_TRUE(ReserveJob("tenants/a/jobs/first", 1).ok());
    ASSERT_TRUE(PostJob("tenants/a/jobs/first").ok());
    ASSERT_TRUE(ReserveJob("tenants/a/jobs/second", 0.5).ok());
    ASSERT_TRUE(VoidJob("tenants/a/jobs/second").ok());
    ASSERT_TRUE(Write([](Transaction& t) { return SetCap(t, kPopulation, 5, "agreed", kContext); }).ok());
    ASSERT_TRUE(DebitUnits(7).ok());
    ASSERT_TRUE(ReserveJob("tenants/a/jobs/third", 0.25).ok());
    ASSERT_TRUE(Verify().intact()) << Verify().fault();
  }

  // What the chain's check says after a change that is undone again; nothing when the store does not take the change
  // (a key or reference that it would break).
  std::optional<v1::VerifyChainResponse> After(const std::string& sql, const std::vector<Value>& parameters) {
    std::optional<v1::VerifyChainResponse> response;
    const absl::Status undone = Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(t.Execute(sql, parameters).status());
      DPAR_ASSIGN_OR_RETURN(response, VerifyChain(t, kPopulation, {}));
      return absl::CancelledError("undone");
    });
    if (absl::IsCancelled(undone)) {
      return response;
    }
    EXPECT_EQ(undone.code(), absl::StatusCode::kAlreadyExists) << undone;
    return std::nullopt;
  }

  std::vector<Row> Rows(const std::string& sql) {
    std::vector<Row> rows;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(rows, t.Query(sql, {}));
                  return absl::OkStatus();
                }).ok());
    return rows;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, VerifyChainTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

// The value with one bit of one byte changed, for every byte of it.
std::vector<Value> ByteChanges(const Value& value) {
  std::vector<Value> changes;
  if (const auto* text = std::get_if<std::string>(&value)) {
    for (size_t i = 0; i < text->size(); ++i) {
      std::string changed = *text;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      changes.emplace_back(changed);
    }
    changes.emplace_back(*text + " ");
    if (!text->empty()) {
      changes.emplace_back(text->substr(1));
    }
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    for (int byte = 0; byte < 8; ++byte) {
      changes.emplace_back(std::in_place_type<int64_t>, *integer ^ (int64_t{1} << (8 * byte)));
    }
  } else if (const auto* real = std::get_if<double>(&value)) {
    for (int byte = 0; byte < 8; ++byte) {
      uint64_t bits = 0;
      std::memcpy(&bits, real, sizeof(bits));
      bits ^= uint64_t{1} << (8 * byte);
      double changed = 0;
      std::memcpy(&changed, &bits, sizeof(changed));
      changes.emplace_back(changed);
    }
  } else {
    changes.emplace_back(std::string("something"));
  }
  return changes;
}

TEST_P(VerifyChainTest, NoChainGivesPricesBackMoreOftenThanABudgetMay) {
  // As a program without the limit would have written it: the entries after the third pretend that nothing was opened.
  std::vector<std::string> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(absl::StrCat("tenants/a/jobs/cancelled-", i));
    ASSERT_TRUE(ReserveJob(jobs.back(), 0.01).ok());
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return VoidOrPost(t, kPopulation, jobs.back(), i < 3 ? 1 : 0, "cancelled", kContext).status();
                }).ok());
  }
  ASSERT_TRUE(Verify().intact());
  v1::LedgerEntry last = Entries().back();
  const std::string previous = Entries()[Entries().size() - 2].hash();
  const std::vector<Row> rows =
      Rows(absl::StrCat("SELECT event FROM ledger_entries WHERE job = '", jobs.back(), "' AND kind = 4"));
  last.set_attempt(1);
  const std::string hash = EntryHash(kPopulation, previous, last, RowReader(rows.at(0)).Text());
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("UPDATE populations SET head_hash = $1", {hash}).status());
                return t
                    .Execute("UPDATE ledger_entries SET attempt = 1, hash = $1 WHERE job = $2 AND kind = 4",
                             {hash, jobs.back()})
                    .status();
              }).ok());
  EXPECT_FALSE(Verify().intact());
  EXPECT_EQ(Verify().first_bad_sequence(), last.sequence());
  EXPECT_EQ(Verify().fault(), "it gives a price back after the data was opened, more often than a population may");
}

TEST_P(VerifyChainTest, EveryByteOfEveryEntryIsUnderTheChain) {
  const std::vector<std::string> columns = {"sequence", "time",  "kind",  "job",    "actor",   "units",
                                            "epsilon",  "delta", "event", "reason", "attempt", "hash"};
  int64_t seen = 0;
  for (size_t column = 0; column < columns.size(); ++column) {
    const std::vector<Row> rows =
        Rows(absl::StrCat("SELECT ", columns[column], " FROM ledger_entries ORDER BY sequence"));
    for (size_t row = 0; row < rows.size(); ++row) {
      for (const Value& change : ByteChanges(rows[row][0])) {
        const auto sequence = static_cast<int64_t>(row) + 1;
        const auto response =
            After(absl::StrCat("UPDATE ledger_entries SET ", columns[column], " = $1 WHERE sequence = $2"),
                  {change, sequence});
        if (!response.has_value()) {
          continue;
        }
        ++seen;
        ASSERT_FALSE(response->intact()) << columns[column] << " of entry " << sequence;
        if (column > 0) {
          ASSERT_EQ(response->first_bad_sequence(), sequence) << columns[column] << ": " << response->fault();
        }
      }
    }
  }
  EXPECT_GT(seen, 1500);
  EXPECT_TRUE(Verify().intact()) << "every change was undone";
}

TEST_P(VerifyChainTest, EveryByteOfTheBudgetIsChecked) {
  for (const std::string column : {"cap_epsilon", "cap_delta", "renyi_order", "cap_units", "posted_units",
                                   "reserved_units", "live_events", "head_sequence", "head_hash"}) {
    for (const Value& change : ByteChanges(Rows(absl::StrCat("SELECT ", column, " FROM populations"))[0][0])) {
      const auto response = After(absl::StrCat("UPDATE populations SET ", column, " = $1"), {change});
      if (response.has_value()) {
        ASSERT_FALSE(response->intact()) << column;
      }
    }
  }
  EXPECT_TRUE(Verify().intact());
}

TEST_P(VerifyChainTest, ARemovedEntryIsNamed) {
  for (int64_t sequence = 1; sequence <= 8; ++sequence) {
    const auto response = After("DELETE FROM ledger_entries WHERE sequence = $1", {sequence});
    ASSERT_TRUE(response.has_value());
    EXPECT_FALSE(response->intact());
    // The one that follows it does not fit; after the last, the budget's head does not.
    EXPECT_EQ(response->first_bad_sequence(), std::min<int64_t>(sequence + 1, 8)) << response->fault();
  }
}

TEST_P(VerifyChainTest, AnEntryThatIsInsertedIsNamed) {
  for (const int64_t sequence : {-1, 0, 9, 10, 1'000'000}) {
    const auto response = After(
        "INSERT INTO ledger_entries SELECT population, $1, time, kind, job || 'x', actor, units, epsilon, delta, "
        "event, reason, attempt, hash FROM ledger_entries WHERE sequence = 8",
        {sequence});
    ASSERT_TRUE(response.has_value());
    EXPECT_FALSE(response->intact());
    EXPECT_EQ(response->first_bad_sequence(), sequence > 0 ? sequence : 1) << response->fault();
  }
}

TEST_P(VerifyChainTest, ReorderedEntriesAreNamed) {
  for (int64_t sequence = 1; sequence < 8; ++sequence) {
    const absl::Status undone = Write([&](Transaction& t) -> absl::Status {
      const auto move = [&](int64_t from, int64_t to) {
        return t.Execute("UPDATE ledger_entries SET sequence = $2 WHERE sequence = $1", {from, to}).status();
      };
      DPAR_RETURN_IF_ERROR(move(sequence, -1));
      DPAR_RETURN_IF_ERROR(move(sequence + 1, sequence));
      DPAR_RETURN_IF_ERROR(move(-1, sequence + 1));
      DPAR_ASSIGN_OR_RETURN(const v1::VerifyChainResponse response, VerifyChain(t, kPopulation, {}));
      EXPECT_FALSE(response.intact());
      EXPECT_EQ(response.first_bad_sequence(), sequence);
      return absl::CancelledError("undone");
    });
    EXPECT_TRUE(absl::IsCancelled(undone));
  }
}

TEST_P(VerifyChainTest, AChainWrittenAnewIsSeenByACertificateThatWasSignedBefore) {
  const std::vector<v1::LedgerEntry> entries = Entries();
  EXPECT_TRUE(Verify({{3, entries[2].hash()}}).intact());
  const v1::VerifyChainResponse other = Verify({{3, entries[1].hash()}});
  EXPECT_FALSE(other.intact());
  EXPECT_EQ(other.first_bad_sequence(), 3);
  const v1::VerifyChainResponse later = Verify({{9, entries[1].hash()}});
  EXPECT_FALSE(later.intact());
  EXPECT_THAT(later.fault(), ::testing::HasSubstr("not there"));
  EXPECT_FALSE(Verify({{3, entries[2].hash()}, {3, entries[2].hash()}}).intact()) << "one entry, two models";
}

TEST_P(VerifyChainTest, ALongChainIsReadInPagesAndToItsEnd) {
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                for (int i = 0; i < 1100; ++i) {
                  DPAR_RETURN_IF_ERROR(Debit(t, kPopulation, 1, "spent elsewhere", kContext).status());
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_TRUE(Verify().intact());
  EXPECT_EQ(Verify().entry_count(), 1108);
  EXPECT_EQ(After("UPDATE ledger_entries SET units = 2 WHERE sequence = 1107", {})->first_bad_sequence(), 1107);
}

}  // namespace
}  // namespace dpar
