#include "core/certificate/unverified.h"

#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/certificate/testing/example_statement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

std::string Envelope(const std::string& statement) { return "{\"payload\":\"" + Base64Encode(statement) + "\"}"; }

TEST(UnverifiedTest, ReadsWhatACertificateSays) {
  const Statement statement = ExampleStatement();
  const std::string envelope = SignStatement(statement, SigningKey::Generate().value()).value();
  EXPECT_EQ(DatasetDigest(envelope).value(), statement.dataset_digest);
  EXPECT_THAT(SubjectNames(envelope).value(), ElementsAre("model.npz", "model.pt"));
}

TEST(UnverifiedTest, LeavesOutNamesThatLeadElsewhere) {
  const std::string envelope = Envelope(R"({"subject":[{"name":"../model.npz"},{"name":"model.pt"}]})");
  EXPECT_THAT(SubjectNames(envelope).value(), ElementsAre("model.pt"));
}

TEST(UnverifiedTest, RefusesWhatIsNoCertificate) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string(R"({"payload":"!"})"), Envelope("[]"),
        Envelope(R"({"subject":{},"predicate":{"dataset":{"digest":1}}})"), Envelope(R"({"subject":[{"name":1}]})")}) {
    EXPECT_EQ(SubjectNames(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(DatasetDigest(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace dpar
