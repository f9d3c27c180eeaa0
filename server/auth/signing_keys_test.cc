#include "server/auth/signing_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "core/error.h"
#include "server/auth/key_commands.h"
#include "server/directory_lock.h"
#include "server/files.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const absl::Time kFirst = absl::FromUnixSeconds(1'700'000'000);
const absl::Time kSecond = absl::FromUnixSeconds(1'800'000'000);
const absl::Time kThird = absl::FromUnixSeconds(1'900'000'000);

class SigningKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/keys_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory_ = std::make_unique<DataDirectory>(root_ + "/data");
    const SigningKey key = SigningKey::Generate().value();
    first_ = key.verifying_key().key_id();
    ASSERT_TRUE(MakeParentDirectory(directory_->SigningKey()).ok());
    ASSERT_TRUE(WriteFileDurably(directory_->SigningKey(), key.private_pem(), 0600).ok());
    ASSERT_TRUE(WriteFileDurably(directory_->SigningPublicKey(), key.verifying_key().pem(), 0644).ok());
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string CurrentId() const { return ReadSigningKey(*directory_).value().verifying_key().key_id(); }
  std::vector<KnownKey> Keys() const { return ReadSigningKeys(*directory_).value(); }
  static unsigned ModeOf(const std::string& path) {
    struct stat file = {};
    EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
    return file.st_mode & 0777U;
  }

  std::string root_;
  std::unique_ptr<DataDirectory> directory_;
  std::string first_;
};

TEST_F(SigningKeysTest, AFirstKeyIsListedThoughNoListWasWritten) {
  const std::vector<KnownKey> keys = Keys();
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].key.key_id(), first_);
  EXPECT_TRUE(keys[0].create_time.has_value());
  EXPECT_FALSE(keys[0].retire_time.has_value());
  EXPECT_FALSE(fs::exists(directory_->SigningKeyList()));
}

TEST_F(SigningKeysTest, RotationSignsWithANewKeyAndKeepsThePublicHalfOfTheOldOne) {
  const std::string old_private = ReadWholeFile(directory_->SigningKey()).value();
  const std::string second = RotateSigningKey(*directory_, kSecond).value();
  EXPECT_NE(second, first_);
  EXPECT_EQ(CurrentId(), second);
  EXPECT_EQ(VerifyingKey::FromPem(ReadWholeFile(directory_->SigningPublicKey()).value())->key_id(), second);
  const std::vector<KnownKey> keys = Keys();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key.key_id(), second);
  EXPECT_EQ(keys[0].create_time, kSecond);
  EXPECT_FALSE(keys[0].retire_time.has_value());
  EXPECT_EQ(keys[1].key.key_id(), first_);
  EXPECT_EQ(keys[1].retire_time, kSecond);
  // The private half is nowhere any more.
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_regular_file()) {
      EXPECT_THAT(ReadWholeFile(entry.path()).value(), Not(HasSubstr(old_private)));
    }
  }
}

TEST_F(SigningKeysTest, FilesHaveTightPermissions) {
  ASSERT_TRUE(RotateSigningKey(*directory_, kSecond).ok());
  EXPECT_EQ(ModeOf(directory_->SigningKey()), 0600U);
  EXPECT_EQ(ModeOf(fs::path(directory_->SigningKey()).parent_path()), 0700U);
}

TEST_F(SigningKeysTest, AKeyThatOthersMayReadIsNotUsed) {
  for (const fs::perms more : {fs::perms::group_read, fs::perms::others_read, fs::perms::others_write}) {
    fs::permissions(directory_->SigningKey(), fs::perms::owner_read | more);
    const absl::Status status = ReadSigningKey(*directory_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600"));
  }
}

TEST_F(SigningKeysTest, AMissingOrDamagedKeyIsReported) {
  ASSERT_TRUE(WriteFileDurably(directory_->SigningKey(), "secret", 0600).ok());
  const absl::Status damaged = ReadSigningKey(*directory_).status();
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), Not(HasSubstr("secret")));
  fs::remove(directory_->SigningKey());
  EXPECT_EQ(ReadSigningKey(*directory_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(RotateSigningKey(*directory_, kSecond).status().message()), HasSubstr("dpard init"));
}

TEST_F(SigningKeysTest, AnotherUserDoesNotChangeKeysThatServersCouldThenNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(directory_->SigningKey().c_str(), 12345, 12345), 0);
  const absl::Status status = RotateSigningKey(*directory_, kSecond).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("belongs to user 12345"));
  EXPECT_EQ(RevokeSigningKey(*directory_, first_, "why", kSecond).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CurrentId(), first_);
  std::ostringstream out;
  EXPECT_EQ(RotateKey(*directory_, kSecond, out).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(fs::exists(directory_->SigningKeyLock())) << "it would keep the right user out";
}

TEST_F(SigningKeysTest, ADamagedListIsReportedAndNotOverwritten) {
  ASSERT_TRUE(RotateSigningKey(*directory_, kSecond).ok());
  const std::string list = ReadWholeFile(directory_->SigningKeyList()).value();
  for (const std::string& damaged : {std::string("x"), list.substr(0, list.size() - 5), std::string("\n")}) {
    ASSERT_TRUE(WriteFileDurably(directory_->SigningKeyList(), damaged, 0644).ok());
    EXPECT_EQ(RotateSigningKey(*directory_, kThird).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReadWholeFile(directory_->SigningKeyList()).value(), damaged);
  }
}

TEST_F(SigningKeysTest, ARetiredKeyIsRevokedWhereItStands) {
  const std::string second = RotateSigningKey(*directory_, kSecond).value();
  EXPECT_EQ(RevokeSigningKey(*directory_, first_.substr(0, 8), "the tape was stolen", kThird).value(), first_);
  EXPECT_EQ(CurrentId(), second);
  const std::vector<KnownKey> keys = Keys();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_FALSE(keys[0].revoke_time.has_value());
  EXPECT_EQ(keys[1].revoke_time, kThird);
  EXPECT_EQ(keys[1].revoke_reason, "the tape was stolen");
  EXPECT_EQ(keys[1].retire_time, kSecond);
  EXPECT_EQ(RevokeSigningKey(*directory_, first_, "again", kThird).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(SigningKeysTest, TheKeyThatSignsIsReplacedBeforeItIsRevoked) {
  EXPECT_EQ(RevokeSigningKey(*directory_, first_, "the tape was stolen", kSecond).value(), first_);
  const std::vector<KnownKey> keys = Keys();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(CurrentId(), keys[0].key.key_id());
  EXPECT_FALSE(keys[0].revoke_time.has_value());
  EXPECT_EQ(keys[1].key.key_id(), first_);
  EXPECT_EQ(keys[1].revoke_time, kSecond);
}

TEST_F(SigningKeysTest, RefusesToRevokeWhatIsNotThereOrNotMeant) {
  const auto code = [&](const std::string& id, const std::string& reason) {
    return RevokeSigningKey(*directory_, id, reason, kSecond).status().code();
  };
  EXPECT_EQ(code(std::string(64, '0'), "why"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(first_.substr(0, 7), "why"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(first_, ""), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(first_, "two\nlines"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(first_, " padded"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CurrentId(), first_);
  EXPECT_FALSE(Keys()[0].revoke_time.has_value());
}

// What a crash leaves after the list was written, and after the key was.
TEST_F(SigningKeysTest, ARotationThatWasCutShortLosesNothing) {
  const std::string old_private = ReadWholeFile(directory_->SigningKey()).value();
  const std::string old_public = ReadWholeFile(directory_->SigningPublicKey()).value();
  const std::string second = RotateSigningKey(*directory_, kSecond).value();
  ASSERT_TRUE(WriteFileDurably(directory_->SigningPublicKey(), old_public, 0644).ok());
  EXPECT_TRUE(RepairPublicKey(*directory_).value());
  EXPECT_EQ(VerifyingKey::FromPem(ReadWholeFile(directory_->SigningPublicKey()).value())->key_id(), second);
  EXPECT_FALSE(RepairPublicKey(*directory_).value());

  ASSERT_TRUE(WriteFileDurably(directory_->SigningKey(), old_private, 0600).ok());
  ASSERT_TRUE(WriteFileDurably(directory_->SigningPublicKey(), old_public, 0644).ok());
  std::vector<KnownKey> keys = Keys();
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].key.key_id(), first_);
  EXPECT_FALSE(keys[0].retire_time.has_value());
  EXPECT_EQ(keys[1].key.key_id(), second);
  EXPECT_EQ(keys[1].retire_time, kSecond);
  const std::string third = RotateSigningKey(*directory_, kThird).value();
  keys = Keys();
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].key.key_id(), third);
  for (const KnownKey& known : keys) {
    EXPECT_EQ(known.retire_time.has_value(), known.key.key_id() != third);
  }
}

TEST_F(SigningKeysTest, APublicKeyOfNobodyIsReported) {
  const std::string stranger = SigningKey::Generate()->verifying_key().pem();
  ASSERT_TRUE(WriteFileDurably(directory_->SigningPublicKey(), stranger, 0644).ok());
  EXPECT_EQ(RepairPublicKey(*directory_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SigningKeysTest, ARunningServerSignsWithTheNewKey) {
  SigningKeys running(*directory_);
  EXPECT_EQ(running.Current()->verifying_key().key_id(), first_);
  const std::string second = RotateSigningKey(*directory_, kSecond).value();
  EXPECT_EQ(running.Current()->verifying_key().key_id(), second);
  EXPECT_EQ(running.List()->size(), 2U);
  fs::permissions(directory_->SigningKey(), fs::perms::owner_read);
  EXPECT_EQ(running.Current()->verifying_key().key_id(), second);
}

TEST_F(SigningKeysTest, ARunningServerWaitsForAKeyThatCannotBeRead) {
  SigningKeys running(*directory_);
  const std::string private_pem = ReadWholeFile(directory_->SigningKey()).value();
  for (const std::string bad : {"", "damaged"}) {
    ASSERT_TRUE(WriteFileDurably(directory_->SigningKey(), bad, 0600).ok());
    EXPECT_EQ(running.Current().status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(running.List().status().code(), absl::StatusCode::kUnavailable);
  }
  fs::remove(directory_->SigningKey());
  EXPECT_EQ(running.Current().status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(WriteFileDurably(directory_->SigningKey(), private_pem, 0600).ok());
  EXPECT_EQ(running.Current()->verifying_key().key_id(), first_);
}

// Whatever a server signs with while keys are rotated is in the list by then.
TEST_F(SigningKeysTest, AServerDoesNotSignWithAKeyThatCameBackFromABackupAfterItWasRevoked) {
  const std::string revoked = ReadWholeFile(directory_->SigningKey()).value();
  ASSERT_TRUE(RevokeSigningKey(*directory_, first_, "the tape was stolen", kSecond).ok());
  ASSERT_TRUE(WriteFileDurably(directory_->SigningKey(), revoked, 0600).ok());
  SigningKeys keys(*directory_);
  const absl::Status refused = keys.Current().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was revoked on"));
  const std::string next = RotateSigningKey(*directory_, kThird).value();
  EXPECT_EQ(keys.Current().value().verifying_key().key_id(), next);
}

TEST_F(SigningKeysTest, NoMoreKeysAreMadeThanAListHolds) {
  std::vector<KnownKey> keys;
  for (size_t i = 0; i + 1 < kMaxListedKeys; ++i) {
    KnownKey known(SigningKey::Generate().value().verifying_key());
    known.create_time = known.retire_time = kFirst;
    keys.push_back(std::move(known));
  }
  ASSERT_TRUE(WriteFileDurably(directory_->SigningKeyList(), FormatKeyList(keys), 0644).ok());
  const std::string list = ReadWholeFile(directory_->SigningKeyList()).value();
  EXPECT_EQ(Keys().size(), kMaxListedKeys);
  EXPECT_EQ(RotateSigningKey(*directory_, kSecond).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CurrentId(), first_);
  EXPECT_EQ(ReadWholeFile(directory_->SigningKeyList()).value(), list);
}

TEST_F(SigningKeysTest, EveryKeyThatSignsIsListedWhileKeysAreRotated) {
  SigningKeys running(*directory_);
  std::atomic<bool> done = false;
  std::thread rotating([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(RotateSigningKey(*directory_, kSecond + absl::Seconds(i)).ok());
    }
    done = true;
  });
  while (!done) {
    const absl::StatusOr<SigningKey> key = running.Current();
    ASSERT_TRUE(key.ok()) << key.status();
    std::set<std::string> listed;
    const absl::StatusOr<std::vector<KnownKey>> keys = running.List();
    ASSERT_TRUE(keys.ok()) << keys.status();
    for (const KnownKey& known : *keys) {
      listed.insert(known.key.key_id());
    }
    EXPECT_EQ(listed.count(key->verifying_key().key_id()), 1U);
  }
  rotating.join();
  EXPECT_EQ(Keys().size(), 21U);
}

TEST_F(SigningKeysTest, TheCommandsSayWhatTheyDid) {
  std::ostringstream rotated;
  ASSERT_TRUE(RotateKey(*directory_, kSecond, rotated).ok());
  const std::string second = CurrentId();
  EXPECT_THAT(rotated.str(), HasSubstr("signed with key " + second));
  std::ostringstream revoked;
  ASSERT_TRUE(RevokeKey(*directory_, second, "the tape was stolen", kThird, revoked).ok());
  EXPECT_THAT(revoked.str(), HasSubstr("Key " + second + " is revoked"));
  EXPECT_THAT(revoked.str(), HasSubstr("key " + CurrentId() + " does from now on"));
  std::ostringstream listed;
  ASSERT_TRUE(ListKeys(*directory_, listed).ok());
  EXPECT_THAT(listed.str(),
              HasSubstr(CurrentId() + "  made 2030-03-17T17:46:40Z  signs\n" + second +
                        "  made 2027-01-15T08:00:00Z  revoked 2030-03-17T17:46:40Z (the tape was stolen)"));
  std::ostringstream printed;
  ASSERT_TRUE(PrintKeys(*directory_, printed).ok());
  EXPECT_EQ(ParseKeyList(printed.str())->size(), 3U);
  EXPECT_THAT(printed.str(), Not(HasSubstr("PRIVATE")));
}

TEST_F(SigningKeysTest, OneProcessAtATimeChangesKeys) {
  const absl::StatusOr<DirectoryLock> lock = DirectoryLock::Acquire(directory_->SigningKeyLock());
  ASSERT_TRUE(lock.ok());
  std::ostringstream out;
  EXPECT_EQ(RotateKey(*directory_, kFirst, out).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RevokeKey(*directory_, first_, "why", kFirst, out).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CurrentId(), first_);
}

}  // namespace
}  // namespace dpar
