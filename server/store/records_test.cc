// Tenants, datasets, tokens and remembered answers.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"
#include "server/store/testing/store_fixture.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

using ::dpar::testing::kNow;
using ::dpar::testing::Reason;
using ::dpar::testing::StoreTest;

TEST_P(StoreTest, ATenantIdIsTakenOnce) {
  AddTenant("acme");
  const absl::Status again = Write([](Transaction& t) { return InsertTenant(t, "acme", "k", kNow); });
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Reason(again), "RESOURCE_EXISTS");
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const std::string key, TenantContentKey(t, "tenants/acme"));
                EXPECT_EQ(key, std::string("\x00\xff", 2));
                EXPECT_EQ(TenantContentKey(t, "tenants/other").status().code(), absl::StatusCode::kNotFound);
                return absl::OkStatus();
              }).ok());
}

TEST_P(StoreTest, PagesJoinUpWithoutGapsOrRepeats) {
  for (int i = 0; i < 7; ++i) {
    AddTenant(absl::StrCat("t", i));
  }
  std::vector<std::string> names;
  std::string token;
  do {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const TenantPage page, ListTenants(t, 3, token));
                  for (const v1::Tenant& tenant : page.tenants) {
                    names.push_back(tenant.name());
                  }
                  token = page.next_page_token;
                  return absl::OkStatus();
                }).ok());
  } while (!token.empty());
  EXPECT_THAT(names, ::testing::ElementsAre("tenants/t0", "tenants/t1", "tenants/t2", "tenants/t3", "tenants/t4",
                                            "tenants/t5", "tenants/t6"));
}

TEST(PageToken, MustComeFromAPage) {
  EXPECT_EQ(ParsePageToken(MakePageToken({12, "a:b"}))->name, "a:b");
  for (const char* bad : {"x", "1", "1:", ":a", "1.5:a"}) {
    EXPECT_EQ(ParsePageToken(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

v1::Dataset PublicDataset(const std::string& name) {
  v1::Dataset stored;
  stored.set_name(name);
  stored.set_node_count(10);
  stored.set_feature_count(3);
  stored.set_class_count(2);
  stored.set_is_public(true);
  stored.set_content_digest("ab");
  *stored.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(kNow));
  return stored;
}

TEST_P(StoreTest, ADatasetsIdIsNeverUsedAgain) {
  AddTenant("acme");
  const v1::Dataset stored = PublicDataset("tenants/acme/datasets/d");
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertDataset(t, stored, 5); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return MarkDatasetDeleted(t, stored.name(), kNow); }).ok());
  const absl::Status again = Write([&](Transaction& t) { return InsertDataset(t, stored, 5); });
  EXPECT_EQ(Reason(again), "RESOURCE_EXISTS");
  const absl::Status get = Write([&](Transaction& t) { return GetDataset(t, stored.name()).status(); });
  EXPECT_EQ(get.code(), absl::StatusCode::kNotFound);
  const absl::Status twice = Write([&](Transaction& t) { return MarkDatasetDeleted(t, stored.name(), kNow); });
  EXPECT_EQ(twice.code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, OneDatasetPastTheLimitIsRefusedWithTheLimit) {
  AddTenant("acme");
  ASSERT_TRUE(Write([](Transaction& t) { return InsertDataset(t, PublicDataset("tenants/acme/datasets/a"), 1); }).ok());
  const absl::Status over =
      Write([](Transaction& t) { return InsertDataset(t, PublicDataset("tenants/acme/datasets/b"), 1); });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("limit"), "max_datasets");
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("maximum"), "1");
}

TEST_P(StoreTest, APrivateDatasetWithoutAPopulationIsCorruption) {
  AddTenant("acme");
  v1::Dataset stored = PublicDataset("tenants/acme/datasets/d");
  stored.set_is_public(false);
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertDataset(t, stored, 5); }).ok());
  const absl::Status get = Write([&](Transaction& t) { return GetDataset(t, stored.name()).status(); });
  EXPECT_EQ(Reason(get), "STORE_CORRUPT");
}

TEST_P(StoreTest, AnAnswerIsRepeatedOnlyForTheSameRequest) {
  const std::string answer("\x00\x01", 2);
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const bool first, ClaimAnswer(t, "s", "id", "f", kNow));
                EXPECT_TRUE(first);
                return StoreAnswer(t, "s", "id", answer);
              }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const auto same, FindAnswer(t, "s", "id", "f"));
                EXPECT_EQ(same, answer);
                DPAR_ASSIGN_OR_RETURN(const auto other_scope, FindAnswer(t, "s2", "id", "f"));
                EXPECT_EQ(other_scope, std::nullopt);
                EXPECT_EQ(Reason(FindAnswer(t, "s", "id", "g").status()), "REQUEST_ID_REUSED");
                DPAR_ASSIGN_OR_RETURN(const bool again, ClaimAnswer(t, "s", "id", "f", kNow));
                EXPECT_FALSE(again);
                return absl::OkStatus();
              }).ok());
}

TEST_P(StoreTest, ATokenIsRevokedOnceAndKeepsItsFirstTime) {
  StoredToken stored;
  stored.token.set_name("operator/tokens/abc");
  stored.token.set_role(v1::OPERATOR);
  stored.salt = "00";
  stored.hash = "11";
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
  for (const int minutes : {1, 2}) {
    ASSERT_TRUE(Write([&](Transaction& t) { return RevokeToken(t, "abc", kNow + absl::Minutes(minutes)); }).ok());
  }
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const StoredToken read, GetToken(t, "abc"));
                EXPECT_EQ(ToMicroseconds(read.token.revoke_time()), absl::ToUnixMicros(kNow + absl::Minutes(1)));
                EXPECT_EQ(read.tenant, "");
                EXPECT_EQ(read.token.name(), "operator/tokens/abc");
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(Write([](Transaction& t) { return RevokeToken(t, "zzz", kNow); }).code(), absl::StatusCode::kNotFound);
}

StoredToken OperatorToken(const std::string& id) {
  StoredToken stored;
  stored.token.set_name("operator/tokens/" + id);
  stored.token.set_role(v1::OPERATOR);
  *stored.token.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(kNow));
  return stored;
}

TEST_P(StoreTest, ATokenComesBackWithItsScopesAndItsUri) {
  StoredToken stored = OperatorToken("abc");
  stored.token.add_scopes(v1::READ);
  stored.token.add_scopes(v1::ADMINISTER);
  stored.token.set_certificate_uri("spiffe://a/b");
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                EXPECT_EQ(GetToken(t, "abc").value().token.SerializeAsString(), stored.token.SerializeAsString());
                EXPECT_EQ(GetCertificateToken(t, "spiffe://a/b").value().token.name(), "operator/tokens/abc");
                EXPECT_EQ(GetCertificateToken(t, "spiffe://a/").status().code(), absl::StatusCode::kNotFound);
                EXPECT_EQ(GetCertificateToken(t, "").status().code(), absl::StatusCode::kNotFound);
                return absl::OkStatus();
              }).ok());
}

TEST_P(StoreTest, AScopeThatIsNotKnownIsCorruptionAndNotAllScopes) {
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, OperatorToken("abc")); }).ok());
  for (const char* scopes : {"'EVERYTHING'", "'READ,SCOPE_UNSPECIFIED'", "','", "'read'"}) {
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return t.Execute(absl::StrCat("UPDATE tokens SET scopes = ", scopes), {}).status();
                }).ok());
    EXPECT_EQ(Reason(Write([](Transaction& t) { return GetToken(t, "abc").status(); })), "STORE_CORRUPT") << scopes;
  }
}

TEST_P(StoreTest, AUriIsOfOneLiveTokenAtATime) {
  StoredToken first = OperatorToken("a");
  first.token.set_certificate_uri("spiffe://a/b");
  *first.token.mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(kNow + absl::Minutes(1)));
  StoredToken second = OperatorToken("b");
  second.token.set_certificate_uri("spiffe://a/b");
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, first); }).ok());
  const absl::Status taken = Write([&](Transaction& t) { return InsertToken(t, second); });
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Reason(taken), "RESOURCE_EXISTS");
  // Once the first token has expired, another may use its certificate.
  *second.token.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(kNow + absl::Minutes(1)));
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, second); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                EXPECT_EQ(GetCertificateToken(t, "spiffe://a/b").value().token.name(), "operator/tokens/b");
                return RevokeToken(t, "b", kNow);
              }).ok());
  StoredToken third = OperatorToken("c");
  third.token.set_certificate_uri("spiffe://a/b");
  EXPECT_TRUE(Write([&](Transaction& t) { return InsertToken(t, third); }).ok());
}

TEST_P(StoreTest, OnlyLiveTokensOfTheParentCountAgainstTheLimit) {
  const auto check = [&](int64_t maximum, absl::Time now = kNow) {
    return Write([&](Transaction& t) { return CheckTokenCount(t, "operator", maximum, now); });
  };
  StoredToken expiring = OperatorToken("b");
  *expiring.token.mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(kNow + absl::Minutes(1)));
  StoredToken tenants = OperatorToken("c");
  tenants.token.set_role(v1::OWNER);
  tenants.tenant = "tenants/acme";
  for (const StoredToken& token : {OperatorToken("a"), expiring, tenants, OperatorToken("d")}) {
    ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, token); }).ok());
  }
  EXPECT_TRUE(check(3).ok());
  const absl::Status over = check(2);
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("limit"), "max_tokens");
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("maximum"), "2");
  EXPECT_TRUE(check(2, kNow + absl::Minutes(1)).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return RevokeToken(t, "a", kNow); }).ok());
  EXPECT_TRUE(check(2).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return ExpireToken(t, "d", kNow); }).ok());
  EXPECT_TRUE(check(1).ok());
}

TEST_P(StoreTest, ATokensEndIsOnlyBroughtForward) {
  ASSERT_TRUE(Write([](Transaction& t) { return InsertToken(t, OperatorToken("a")); }).ok());
  for (const int minutes : {5, 3, 4}) {
    ASSERT_TRUE(Write([&](Transaction& t) { return ExpireToken(t, "a", kNow + absl::Minutes(minutes)); }).ok());
  }
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                EXPECT_EQ(ToMicroseconds(GetToken(t, "a").value().token.expire_time()),
                          absl::ToUnixMicros(kNow + absl::Minutes(3)));
                return absl::OkStatus();
              }).ok());
}

TEST_P(StoreTest, OneTenantPastTheLimitIsRefusedWithTheLimit) {
  AddTenant("a");
  AddTenant("b");
  EXPECT_TRUE(Write([](Transaction& t) { return CheckTenantCount(t, 2); }).ok());
  const absl::Status over = Write([](Transaction& t) { return CheckTenantCount(t, 1); });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("limit"), "max_tenants");
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("maximum"), "1");
}

TEST_P(StoreTest, ATokenOfATenantWithTheOperatorsRoleIsCorruption) {
  StoredToken stored;
  stored.token.set_name("tenants/acme/tokens/abc");
  stored.tenant = "tenants/acme";
  stored.token.set_role(v1::OPERATOR);
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
  EXPECT_EQ(Reason(Write([](Transaction& t) { return GetToken(t, "abc").status(); })), "STORE_CORRUPT");
}

TEST_P(StoreTest, FilesAreWrittenWholeWithTheAskedMode) {
  const std::string path = store_.directory().root() + "/a/b/key";
  ASSERT_TRUE(MakeParentDirectory(path).ok());
  ASSERT_TRUE(WriteFileDurably(path, "first", 0600).ok());
  ASSERT_TRUE(WriteFileDurably(path, "second", 0600).ok());
  EXPECT_EQ(*ReadWholeFile(path), "second");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(stat((store_.directory().root() + "/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  const std::filesystem::directory_iterator files(std::filesystem::path(path).parent_path());
  EXPECT_EQ(std::distance(files, std::filesystem::directory_iterator()), 1);
}

TEST_P(StoreTest, ReadingOrWritingWhereNothingIsIsUnavailable) {
  EXPECT_EQ(ReadWholeFile("/nonexistent/file").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(WriteFileDurably("/nonexistent/file", "x", 0600).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(RemoveTree("/nonexistent/file").ok());
}

TEST(DataDirectory, ResourcesHaveTheirOwnPlaces) {
  const DataDirectory directory("/data");
  EXPECT_EQ(directory.UploadFile("tenants/t/uploads/u"), "/data/uploads/t/u");
  EXPECT_EQ(directory.DatasetFile("tenants/t/datasets/d"), "/data/datasets/t/d/graph.sealed");
  EXPECT_EQ(directory.ModelFile("tenants/t/jobs/j", 3, kWeightsName), "/data/jobs/t/j/3/model.npz");
}

}  // namespace
}  // namespace dpar
