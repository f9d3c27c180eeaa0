// Every answer carries the request's id, and so does the line about it in the log.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kKey[] = "x-request-id";

// The one id in an answer's initial metadata.
std::string AnsweredId(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerInitialMetadata();
  EXPECT_EQ(metadata.count(kKey), 1U);
  const auto found = metadata.find(kKey);
  return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
}

// The id that WhoAmI answers with when these were sent.
std::string IdOfWhoAmI(const Client& client, const std::vector<std::string>& sent) {
  const auto context = MakeContext(client.token());
  for (const std::string& id : sent) context->AddMetadata(kKey, id);
  v1::Identity identity;
  client.stub<v1::ServerService::Stub>().WhoAmI(context.get(), {}, &identity);
  return AnsweredId(*context);
}

class RequestIdTest : public SharedServerTest {};

TEST_F(RequestIdTest, ACallersIdComesBackAndIsInTheLog) {
  const std::string longest(128, 'x');
  for (const std::string& id : {std::string("caller.id_1-Z"), longest}) {
    EXPECT_EQ(IdOfWhoAmI(server().Operator(), {id}), id);
    EXPECT_THAT(server().log(), HasSubstr(absl::StrCat(" request_id=", id, " ms=")));
  }
}

TEST_F(RequestIdTest, AnIdThatMayNotStandInALogIsReplaced) {
  const Client client = server().Operator();
  const std::string made = IdOfWhoAmI(client, {});
  EXPECT_THAT(made, ::testing::MatchesRegex("[0-9a-f]{16}-[0-9]+"));
  std::string last = made;
  for (const std::vector<std::string>& sent : std::vector<std::vector<std::string>>{
           {""}, {std::string(129, 'y')}, {"with space"}, {"quo\"te"}, {"semi;colon"}, {"first", "second"}}) {
    const std::string id = IdOfWhoAmI(client, sent);
    EXPECT_THAT(id, ::testing::MatchesRegex("[0-9a-f]{16}-[0-9]+"));
    EXPECT_NE(id, last);
    last = id;
    EXPECT_THAT(server().log(), HasSubstr(absl::StrCat(" request_id=", id, " ")));
  }
  for (const char* bad : {"yyyy", "with space", "quo\"te", "semi;colon", "second"}) {
    EXPECT_THAT(server().log(), Not(HasSubstr(bad)));
  }
}

TEST_F(RequestIdTest, ErrorsAndStreamsCarryItToo) {
  const auto refused = MakeContext("");
  refused->AddMetadata(kKey, "refused-1");
  v1::Identity identity;
  EXPECT_THAT(server().Operator().stub<v1::ServerService::Stub>().WhoAmI(refused.get(), {}, &identity),
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING));
  EXPECT_EQ(AnsweredId(*refused), "refused-1");
  EXPECT_THAT(server().log(), HasSubstr("code=UNAUTHENTICATED reason=TOKEN_MISSING token=- request_id=refused-1 "));

  const Client owner = server().Owner(server().NewTenant());
  const auto missing = MakeContext(owner.token());
  missing->AddMetadata(kKey, "stream-1");
  v1::DownloadModelRequest request;
  request.set_name("tenants/tenant-1/jobs/none");
  const auto reader = owner.stub<v1::TrainingService::Stub>().DownloadModel(missing.get(), request);
  v1::DownloadModelResponse message;
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_THAT(reader->Finish(), IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_EQ(AnsweredId(*missing), "stream-1");
  EXPECT_THAT(server().log(), HasSubstr("request_id=stream-1 "));
}

TEST(JsonLogTest, EveryLineIsAnObjectAndACallsLineHasItsFields) {
  TestServer server({"--log-format", "json"});
  ASSERT_TRUE(server.Start());
  EXPECT_EQ(IdOfWhoAmI(server.Operator(), {"json.1"}), "json.1");
  const std::string made = IdOfWhoAmI(server.Operator(), {"not one"});
  EXPECT_EQ(server.Terminate(), std::optional<int>(0));
  std::istringstream lines(server.log());
  int calls = 0;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(nlohmann::json::accept(line)) << line;
    const nlohmann::json object = nlohmann::json::parse(line);
    for (const char* key : {"time", "level", "message"}) EXPECT_TRUE(object.contains(key)) << line;
    if (!object.contains("request_id")) continue;
    ++calls;
    EXPECT_EQ(object["message"], "call");
    EXPECT_EQ(object["method"], "ServerService/WhoAmI");
    EXPECT_EQ(object["code"], "OK");
    EXPECT_TRUE(object["ms"].is_number());
    EXPECT_TRUE(absl::StartsWith(object["token"].get<std::string>(), "operator/tokens/")) << line;
    EXPECT_EQ(object["request_id"], calls == 1 ? "json.1" : made);
  }
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace dpar::e2e
