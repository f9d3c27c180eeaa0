// Nothing private is logged, at any level.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

// Numbers that stand in the graph and, by their length, nowhere else by chance.
constexpr float kMarkedFeature = 91827360.0F;
constexpr int32_t kMarkedLabel = 7391;
constexpr int64_t kClasses = 8000;

Graph MarkedGraph() {
  Graph graph = MakeGraph(900, {.nodes = kClasses + 1000, .classes = 3, .features = 40, .features_per_node = 2});
  graph.sizes.class_count = kClasses;
  for (size_t i = 0; i < graph.features.values.size(); i += 7) graph.features.values[i] = kMarkedFeature;
  // Every class occurs, the marked one often.
  for (size_t i = 0; i < graph.labels.size(); ++i) {
    graph.labels[i] = i < static_cast<size_t>(kClasses) ? static_cast<int32_t>(i) : kMarkedLabel;
  }
  return graph;
}

std::string SecretOf(const std::string& token) {
  const std::vector<std::string> parts = absl::StrSplit(token, '_');
  return parts.back();
}

TEST(LogPrivacyTest, ATraceLevelLogHoldsNoContentOfTheGraphAndNoSecret) {
  TestServer server({"--log-level", "trace"});
  ASSERT_TRUE(server.Start());
  const TenantAccess tenant = server.NewTenant();
  const Client owner = server.Owner(tenant);
  const Graph graph = MarkedGraph();
  const std::string dataset = UploadGraph(owner, tenant.name, graph);
  v1::CreateJobRequest request = JobRequest(dataset, 1);
  request.mutable_spec()->mutable_options()->set_steps(2);
  const auto created = CreateJob(owner, request);
  ASSERT_THAT(created.status, IsOk());
  EXPECT_EQ(WaitForJob(owner, created.value.name()).state(), v1::Job::SUCCEEDED);

  std::map<std::string, NpyArray> arrays = GraphArrays(graph);
  std::get<std::vector<float>>(arrays.at("attr_data").data)[3] = std::numeric_limits<float>::quiet_NaN();
  const std::string spoiled = NpzBytes(arrays);
  EXPECT_THAT(UploadFile(owner, OpenRequest(tenant.name, spoiled, graph.sizes), spoiled).status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_GRAPH));
  Graph unlabelled = graph;
  unlabelled.labels[kMarkedLabel] = -1;
  for (int32_t& label : unlabelled.labels) label = label == kMarkedLabel ? 0 : label;
  const std::string without_a_class = GraphBytes(unlabelled);
  const auto refused = UploadFile(owner, OpenRequest(tenant.name, without_a_class, graph.sizes), without_a_class);
  EXPECT_THAT(refused.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_GRAPH));
  EXPECT_THAT(refused.status.error_message(), ::testing::HasSubstr("7391"));
  const std::string wrong_token = "dpar_nobody_" + std::string(60, 'e') + "0123";
  v1::WhoAmIRequest who;
  EXPECT_FALSE(server.MakeClient(wrong_token).Call(&v1::ServerService::Stub::WhoAmI, who).status.ok());
  const std::string operator_secret = SecretOf(server.operator_token());
  EXPECT_EQ(server.Terminate(), std::optional<int>(0));

  const std::string log = server.log();
  ASSERT_THAT(log, ::testing::Not(::testing::IsEmpty()));
  for (const std::string& mark :
       {std::string("9182736"), std::string("9.18273"), std::string("7391"), std::string("attr_data"),
        SecretOf(tenant.owner_token), operator_secret, SecretOf(wrong_token)}) {
    EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr(mark)));
  }
}

TEST(LogPrivacyTest, NoSecretStandsInTheStore) {
  TestServer server;
  ASSERT_TRUE(server.Start());
  const TenantAccess tenant = server.NewTenant();
  const std::vector<std::string> secrets = {SecretOf(tenant.owner_token), SecretOf(server.operator_token())};
  int files = 0;
  for (const char* file : {"/dpar.sqlite", "/dpar.sqlite-wal"}) {
    const std::string bytes = ReadFile(server.data_directory() + file);
    files += bytes.empty() ? 0 : 1;
    for (const std::string& secret : secrets) EXPECT_EQ(bytes.find(secret), std::string::npos) << file;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace dpar::e2e
