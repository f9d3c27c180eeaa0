#include "core/certificate/key_list.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;

VerifyingKey NewKey() { return SigningKey::Generate().value().verifying_key(); }

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_sec, text, &time, &error)) << error;
  return time;
}

std::vector<KnownKey> ThreeKeys() {
  std::vector<KnownKey> keys = {NewKey(), NewKey(), NewKey()};
  keys[0].create_time = At("2026-07-01T00:00:00Z");
  keys[1].create_time = At("2026-01-02T03:04:05Z");
  keys[1].retire_time = At("2026-07-01T00:00:00Z");
  keys[2].retire_time = At("2026-01-02T03:04:05Z");
  keys[2].revoke_time = At("2026-01-03T00:00:00Z");
  keys[2].revoke_reason = "the backup tape was stolen: all of it";
  return keys;
}

void ExpectRefused(const std::string& text, const std::string& message) {
  const absl::Status status = ParseKeyList(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
}

TEST(KeyListTest, ComesBackWithEverythingThatIsKnown) {
  const std::vector<KnownKey> keys = ThreeKeys();
  const std::string text = FormatKeyList(keys);
  const std::vector<KnownKey> again = ParseKeyList(text).value();
  ASSERT_EQ(again.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again[i].key.key_id(), keys[i].key.key_id());
    EXPECT_EQ(again[i].create_time, keys[i].create_time);
    EXPECT_EQ(again[i].retire_time, keys[i].retire_time);
    EXPECT_EQ(again[i].revoke_time, keys[i].revoke_time);
    EXPECT_EQ(again[i].revoke_reason, keys[i].revoke_reason);
  }
  EXPECT_EQ(FormatKeyList(again), text);
}

TEST(KeyListTest, ABareKeyIsAListOfOne) {
  const VerifyingKey key = NewKey();
  for (const std::string& text :
       {key.pem(), absl::StrCat("\n", key.pem(), "\n\n"), absl::StrReplaceAll(key.pem(), {{"\n", "\r\n"}})}) {
    const std::vector<KnownKey> keys = ParseKeyList(text).value();
    ASSERT_EQ(keys.size(), 1U);
    EXPECT_EQ(keys[0].key.key_id(), key.key_id());
    EXPECT_FALSE(keys[0].revoke_time.has_value());
  }
}

TEST(KeyListTest, RefusesWhatCouldHideARevocation) {
  const std::string pem = NewKey().pem();
  const std::string revoked = "Revoked: 2026-01-03T00:00:00Z\n";
  ExpectRefused(absl::StrCat("revoked: 2026-01-03T00:00:00Z\n", pem), "none of Key-Id");
  ExpectRefused(absl::StrCat("this key was revoked\n", pem), "none of Key-Id");
  ExpectRefused(absl::StrCat(revoked, pem), "Revoked without Reason");
  ExpectRefused(absl::StrCat("Reason: why\n", pem), "Reason without Revoked");
  ExpectRefused(absl::StrCat(revoked, "Reason: \n", pem), "none of Key-Id");
  ExpectRefused(absl::StrCat(revoked, revoked, "Reason: why\n", pem), "two lines Revoked");
  ExpectRefused(absl::StrCat("Revoked: yesterday\nReason: why\n", pem), "a time like");
  ExpectRefused(absl::StrCat("Revoked: 2026-01-03T00:00:00+01:00\nReason: why\n", pem), "a time like");
  ExpectRefused(absl::StrCat(pem, revoked, "Reason: why\n"), "its end is missing");
  ExpectRefused(absl::StrCat(pem, pem), "each key once");
  ExpectRefused(absl::StrCat("Key-Id: ", NewKey().key_id(), "\n", pem), "but its id is");
}

TEST(KeyListTest, RefusesWhatIsNoKey) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string("key"), NewKey().pem().substr(0, 80),
                                  SigningKey::Generate().value().private_pem()}) {
    EXPECT_EQ(ParseKeyList(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(KeyListTest, MergingKeepsEveryKeyOnceAndTheEarliestRevocation) {
  std::vector<KnownKey> keys = ThreeKeys();
  std::vector<KnownKey> more = {keys[1], keys[2], NewKey()};
  more[0].revoke_time = At("2026-08-01T00:00:00Z");
  more[0].revoke_reason = "lost";
  more[1].revoke_time = At("2026-09-01T00:00:00Z");
  more[1].revoke_reason = "later";
  MergeKeys(more, keys);
  ASSERT_EQ(keys.size(), 4U);
  EXPECT_FALSE(keys[0].revoke_time.has_value());
  EXPECT_EQ(keys[1].revoke_reason, "lost");
  EXPECT_EQ(keys[1].retire_time, At("2026-07-01T00:00:00Z"));
  EXPECT_EQ(keys[2].revoke_reason, "the backup tape was stolen: all of it");
  EXPECT_EQ(keys[3].key.key_id(), more[2].key.key_id());
}

}  // namespace
}  // namespace dpar
