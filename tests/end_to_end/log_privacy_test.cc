// Nothing private is logged, measured, shown as progress or told in an error: a run over every call of the API, on a
// dataset whose content can be recognised.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/testing/http_client.h"
#include "tests/end_to_end/marks.h"
#include "tests/end_to_end/recorder.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using Datasets = v1::DatasetService::Stub;
using Training = v1::TrainingService::Stub;
using Budgets = v1::BudgetService::Stub;
using Operators = v1::OperatorService::Stub;
using Servers = v1::ServerService::Stub;

// Whole numbers that a float holds exactly.
constexpr int64_t kFirstFeature = 13'579'240;
constexpr int64_t kFeatureMarks = 10;
constexpr int32_t kMarkedLabel = 3719;
constexpr int64_t kClasses = 4000;
constexpr int64_t kNodes = 14'000;
constexpr int64_t kNullNodes = 2771;
constexpr char kNodeName[] = "quetzalcoatl-of-node-17";
constexpr char kFileName[] = "zanzibar-patients.npz";
// As long as the server's own hex digits, and not one of its tokens.
const std::string kWrongSecret = std::string(60, 'e') + "0123";

// Every feature value is a mark, every class occurs, the marked one often, and the last slots are null.
Graph MarkedGraph() {
  Graph graph =
      MakeGraph(900, {.nodes = kNodes, .classes = 3, .features = 40, .average_degree = 14, .features_per_node = 2});
  graph.sizes.class_count = kClasses;
  for (size_t i = 0; i < graph.features.values.size(); ++i) {
    graph.features.values[i] = static_cast<float>(kFirstFeature + static_cast<int64_t>(i) % kFeatureMarks);
  }
  const size_t first_null = kNodes - kNullNodes;
  const int64_t entries = graph.features.offsets[first_null];
  std::fill(graph.features.offsets.begin() + static_cast<int64_t>(first_null), graph.features.offsets.end(), entries);
  graph.features.columns.resize(static_cast<size_t>(entries));
  graph.features.values.resize(static_cast<size_t>(entries));
  for (size_t i = 0; i < graph.labels.size(); ++i) {
    graph.labels[i] = i >= first_null ? -1 : i < static_cast<size_t>(kClasses) ? static_cast<int32_t>(i) : kMarkedLabel;
  }
  return graph;
}

template <typename Entry>
std::string BytesOf(const std::vector<Entry>& entries, size_t first, size_t count) {
  return {reinterpret_cast<const char*>(entries.data() + first), count * sizeof(Entry)};
}

// What is private of the graph.
Marks MarksOf(const Graph& graph) {
  Marks marks;
  for (int64_t value = kFirstFeature; value < kFirstFeature + kFeatureMarks; ++value) {
    marks.AddNumber(value);
    marks.AddText(absl::StrCat("1.3579", value % 1000, "e"));
    marks.AddText(absl::StrCat("1.3579", value % 1000, "E"));
  }
  marks.AddText("1.35792e+07");
  marks.AddNumber(kMarkedLabel);
  marks.AddNumber(graph.edge_count());
  marks.AddNumber(2 * graph.edge_count());
  marks.AddNumber(static_cast<int64_t>(graph.features.values.size()));
  marks.AddNumber(kNodes - kNullNodes);
  marks.AddNumber(kNullNodes);
  marks.AddBytes(BytesOf(graph.features.values, 100, 8));
  marks.AddBytes(BytesOf(graph.labels, 3700, 8));
  marks.AddBytes(BytesOf(graph.neighbours, 100, 8));
  marks.AddText(kNodeName);
  marks.AddText(kFileName);
  return marks;
}

// A graph's file with an array of names that nobody asked for.
std::string MarkedBytes(std::map<std::string, NpyArray> arrays) {
  arrays["node_names"] = NpyArray{{}, std::string(kNodeName)};
  return NpzBytes(arrays);
}

std::string SecretOf(const std::string& token) {
  const std::vector<std::string> parts = absl::StrSplit(token, '_');
  return parts.back();
}

// Every call of the API: DatasetService/OpenUpload and so on.
std::set<std::string> AllMethods() {
  std::set<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Dataset::descriptor()->file(), v1::Job::descriptor()->file(), v1::Budget::descriptor()->file(),
        v1::Tenant::descriptor()->file(), v1::ServerInfo::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.insert(absl::StrCat(file->service(i)->name(), "/", file->service(i)->method(j)->name()));
      }
    }
  }
  return methods;
}

// A server at its most talkative, and clients whose every answer is recorded.
class LogPrivacyTest : public ::testing::TestWithParam<const char*> {
 protected:
  LogPrivacyTest()
      : server_({"--log-level", "trace", "--log-format", GetParam()}), graph_(MarkedGraph()), marks_(MarksOf(graph_)) {}

  void SetUp() override {
    // Five digits and more, and none that the kernel gives to ports: no such number comes up by chance.
    ASSERT_GT(graph_.edge_count(), 65'536);
    ASSERT_TRUE(server_.Start());
    tenant_ = server_.NewTenant();
    marks_.AddHex(SecretOf(tenant_.owner_token));
    marks_.AddHex(SecretOf(server_.operator_token()));
    marks_.AddHex(kWrongSecret);
    owner_ = std::make_unique<Client>(recorder_.MakeChannel(server_), tenant_.owner_token);
    operator_ = std::make_unique<Client>(recorder_.MakeChannel(server_), server_.operator_token());
    stranger_ = std::make_unique<Client>(recorder_.MakeChannel(server_), "dpar_nobody_" + kWrongSecret);
  }

  template <typename Stub, typename Request, typename Response>
  Response Must(const Client& client, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request) {
    const Answer<Response> answer = client.Call(method, request);
    EXPECT_THAT(answer.status, IsOk()) << request.GetTypeName();
    return answer.value;
  }

  // A good upload, whose digest key becomes a mark; and files that are refused.
  void Upload();
  void UploadBadFiles();
  void UploadWithTheCommandLine();
  // Jobs of every method, with an evaluation, cancelled, refused and planned only.
  void Train();
  void WatchAndDownload(const std::string& job);
  void ReadEverything();
  void Operate();
  void Fail();

  // What the server's web port says, while it runs.
  void ReadWebPages();
  // Everything that anybody could read, by where it was read.
  std::map<std::string, std::string> Readings() const;
  void ExpectNoMarks() const;

  Recorder recorder_;
  TestServer server_;
  Graph graph_;
  Marks marks_;
  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  std::unique_ptr<Client> operator_;
  std::unique_ptr<Client> stranger_;
  std::string dataset_;
  std::vector<std::string> jobs_;
  std::map<std::string, std::string> web_pages_;  // by path
};

void LogPrivacyTest::Upload() {
  const std::string bytes = MarkedBytes(GraphArrays(graph_));
  const auto answer = UploadFile(*owner_, OpenRequest(tenant_.name, bytes, graph_.sizes), bytes);
  ASSERT_THAT(answer.status, IsOk());
  // The report is the uploader's own, and shows that the numbers that are looked for are those of the graph.
  EXPECT_EQ(answer.value.report().edge_count(), graph_.edge_count());
  EXPECT_EQ(answer.value.report().unlabelled_nodes(), kNullNodes);
  marks_.AddHex(answer.value.digest_key());
  dataset_ = answer.value.dataset().name();
}

void LogPrivacyTest::UploadBadFiles() {
  const auto refused = [&](const std::string& bytes, const PublicSizes& sizes) {
    EXPECT_THAT(UploadFile(*owner_, OpenRequest(tenant_.name, bytes, sizes), bytes).status,
                IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_GRAPH));
  };
  std::map<std::string, NpyArray> arrays = GraphArrays(graph_);
  std::get<std::vector<float>>(arrays.at("attr_data").data)[3] = std::numeric_limits<float>::infinity();
  refused(MarkedBytes(arrays), graph_.sizes);
  const std::string good = MarkedBytes(GraphArrays(graph_));
  PublicSizes fewer_classes = graph_.sizes;
  fewer_classes.class_count = 3000;
  refused(good, fewer_classes);
  refused(good.substr(0, good.size() - 100), graph_.sizes);

  v1::OpenUploadRequest request = OpenRequest(tenant_.name, good, graph_.sizes);
  const v1::Upload upload = Must(*owner_, &Datasets::OpenUpload, request);
  EXPECT_THAT(WriteBytes(*owner_, upload.name(), 5, good).status,
              IsError(grpc::StatusCode::OUT_OF_RANGE, v1::UPLOAD_OFFSET_MISMATCH));
  EXPECT_THAT(WriteBytes(*owner_, upload.name(), 0, good + "past the end").status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  v1::GetUploadRequest get;
  get.set_name(upload.name());
  const int64_t held = Must(*owner_, &Datasets::GetUpload, get).committed_offset();
  EXPECT_THAT(WriteBytes(*owner_, upload.name(), held, good.substr(static_cast<size_t>(held))).status, IsOk());
  EXPECT_THAT(Finish(*owner_, upload.name(), "another file", NewRequestId()).status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::UPLOAD_DIGEST_MISMATCH));
}

void LogPrivacyTest::UploadWithTheCommandLine() {
  const std::string path = server_.Scratch(kFileName);
  WriteFile(path, MarkedBytes(GraphArrays(graph_)));
  const CommandResult result = server_.Dpar(
      tenant_.owner_token, {"upload", path, "--name", "again", "--classes", absl::StrCat(graph_.sizes.class_count)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

void LogPrivacyTest::Train() {
  for (const v1::Method method : {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM}) {
    v1::CreateJobRequest request = JobRequest(dataset_, 0.5);
    request.mutable_spec()->set_method(method);
    request.mutable_spec()->mutable_options()->set_steps(2);
    if (method == v1::FEATURES) {
      request.mutable_spec()->mutable_evaluation()->set_held_out_share(0.2);
      request.mutable_spec()->mutable_evaluation()->set_budget_share(0.1);
    }
    jobs_.push_back(Must(*owner_, &Training::CreateJob, request).name());
  }
  v1::CreateJobRequest planned = JobRequest(dataset_, 0.5);
  planned.set_validate_only(true);
  Must(*owner_, &Training::CreateJob, planned);
  EXPECT_THAT(CreateJob(*owner_, JobRequest(dataset_, 50)).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
  v1::CreateJobRequest cancelled = JobRequest(dataset_, 0.1);
  cancelled.mutable_spec()->mutable_options()->set_steps(100'000);
  const std::string job = Must(*owner_, &Training::CreateJob, cancelled).name();
  EXPECT_THAT(CancelJob(*owner_, job).status, IsOk());
  EXPECT_EQ(WaitForJob(*owner_, job).state(), v1::Job::CANCELLED);
  for (const std::string& name : jobs_) WatchAndDownload(name);
}

void LogPrivacyTest::WatchAndDownload(const std::string& job) {
  EXPECT_EQ(WaitForJob(*owner_, job).state(), v1::Job::SUCCEEDED);
  const std::unique_ptr<grpc::ClientContext> context = MakeContext(owner_->token());
  v1::DownloadModelRequest download;
  download.set_name(job);
  const auto reader = owner_->stub<Training>().DownloadModel(context.get(), download);
  v1::DownloadModelResponse part;
  while (reader->Read(&part)) {
  }
  EXPECT_THAT(reader->Finish(), IsOk());
  v1::GetCertificateRequest certificate;
  certificate.set_name(job);
  Must(*owner_, &Training::GetCertificate, certificate);
}

void LogPrivacyTest::ReadEverything() {
  const std::string budget = OwnPopulation(dataset_);
  for (const Client* client : {owner_.get(), operator_.get()}) {
    v1::GetDatasetRequest dataset;
    dataset.set_name(dataset_);
    Must(*client, &Datasets::GetDataset, dataset);
    v1::ListDatasetsRequest datasets;
    datasets.set_parent(tenant_.name);
    Must(*client, &Datasets::ListDatasets, datasets);
    v1::GetJobRequest job;
    job.set_name(jobs_[0]);
    Must(*client, &Training::GetJob, job);
    v1::ListJobsRequest jobs;
    jobs.set_parent(tenant_.name);
    Must(*client, &Training::ListJobs, jobs);
    v1::GetBudgetRequest get;
    get.set_name(budget);
    Must(*client, &Budgets::GetBudget, get);
    v1::ListBudgetsRequest budgets;
    budgets.set_parent(tenant_.name);
    Must(*client, &Budgets::ListBudgets, budgets);
    v1::ListLedgerEntriesRequest entries;
    entries.set_parent(budget);
    Must(*client, &Budgets::ListLedgerEntries, entries);
    v1::VerifyChainRequest verify;
    verify.set_name(budget);
    EXPECT_TRUE(Must(*client, &Budgets::VerifyChain, verify).intact());
    Must(*client, &Servers::GetServerInfo, v1::GetServerInfoRequest());
    Must(*client, &Servers::WhoAmI, v1::WhoAmIRequest());
    Must(*client, &Servers::ListSigningKeys, v1::ListSigningKeysRequest());
  }
}

void LogPrivacyTest::Operate() {
  v1::CreateTenantRequest tenant;
  tenant.set_tenant_id("another");
  tenant.set_request_id(NewRequestId());
  Must(*operator_, &Operators::CreateTenant, tenant);
  Must(*operator_, &Operators::ListTenants, v1::ListTenantsRequest());
  v1::CreateTokenRequest create;
  create.set_request_id(NewRequestId());
  create.set_parent(tenant_.name);
  create.mutable_token()->set_role(v1::READER);
  create.set_request_id(NewRequestId());
  const v1::CreateTokenResponse token = Must(*operator_, &Operators::CreateToken, create);
  marks_.AddHex(SecretOf(token.secret()));
  Must(Client(recorder_.MakeChannel(server_), token.secret()), &Servers::WhoAmI, v1::WhoAmIRequest());
  v1::ListTokensRequest tokens;
  tokens.set_parent(tenant_.name);
  Must(*operator_, &Operators::ListTokens, tokens);
  v1::RotateTokenRequest rotate;
  rotate.set_name(token.token().name());
  rotate.set_request_id(NewRequestId());
  marks_.AddHex(SecretOf(Must(*operator_, &Operators::RotateToken, rotate).secret()));
  v1::RevokeTokenRequest revoke;
  revoke.set_name(token.token().name());
  Must(*operator_, &Operators::RevokeToken, revoke);
  v1::SetBudgetCapRequest cap;
  cap.set_name(OwnPopulation(dataset_));
  cap.set_cap_epsilon(9);
  cap.set_reason("as agreed");
  cap.set_request_id(NewRequestId());
  Must(*operator_, &Operators::SetBudgetCap, cap);
  v1::AdjustLedgerRequest debit;
  debit.set_name(cap.name());
  debit.set_debit_units(5);
  debit.set_reason("spent elsewhere");
  debit.set_request_id(NewRequestId());
  Must(*operator_, &Operators::AdjustLedger, debit);
  Must(*operator_, &Budgets::ListBudgets, v1::ListBudgetsRequest());
}

// Calls that fail, each for another reason.
void LogPrivacyTest::Fail() {
  EXPECT_THAT(stranger_->Call(&Servers::WhoAmI, v1::WhoAmIRequest()).status,
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  EXPECT_THAT(owner_->Call(&Budgets::ListBudgets, v1::ListBudgetsRequest()).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_THAT(GetJob(*owner_, tenant_.name + "/jobs/absent").status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(GetJob(*owner_, "no name").status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  EXPECT_THAT(CancelJob(*owner_, jobs_[0]).status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::JOB_ENDED));
  v1::MergePopulationRequest merge;
  merge.set_name(OwnPopulation(dataset_));
  merge.set_into(merge.name());
  merge.set_reason("the same people");
  merge.set_request_id(NewRequestId());
  EXPECT_THAT(owner_->Call(&Budgets::MergePopulation, merge).status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  v1::CreateJobRequest bad = JobRequest(dataset_, 0.5);
  bad.mutable_spec()->mutable_options()->set_batch_size(kNodes + 1);
  EXPECT_THAT(CreateJob(*owner_, bad).status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  v1::DeleteDatasetRequest remove;
  remove.set_name(dataset_);
  remove.set_request_id(NewRequestId());
  Must(*owner_, &Datasets::DeleteDataset, remove);
  EXPECT_THAT(CreateJob(*owner_, JobRequest(dataset_, 0.5)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
}

void LogPrivacyTest::ReadWebPages() {
  for (const char* path : {"/metrics", "/livez", "/readyz"}) {
    const HttpReply reply = SendHttp({.address = server_.metrics_address(), .path = path});
    EXPECT_EQ(reply.status, 200) << path;
    web_pages_[path] = reply.body;
  }
  EXPECT_THAT(web_pages_["/metrics"], ::testing::HasSubstr("dpar"));
}

// A certificate's payload is in base64.
std::string Decoded(const Utterance& said) {
  const std::string kStart = "\"payload\":\"";
  const size_t start = said.text.find(kStart);
  if (start == std::string::npos) return "";
  const size_t begin = start + kStart.size();
  std::string payload;
  EXPECT_TRUE(absl::Base64Unescape(said.text.substr(begin, said.text.find('"', begin) - begin), &payload));
  return payload;
}

std::map<std::string, std::string> LogPrivacyTest::Readings() const {
  std::map<std::string, std::string> readings = web_pages_;
  readings["log"] = server_.log();
  readings["audit log"] = ReadFile(server_.data_directory() + "/audit.log");
  // What is for the uploader or the holder alone, and the model, whose noise is what makes it public.
  const std::set<std::string> for_one = {"DatasetService/FinishUpload", "OperatorService/CreateToken",
                                         "OperatorService/RotateToken", "TrainingService/DownloadModel"};
  size_t count = 0;
  for (const Utterance& said : recorder_.answers()) {
    if (for_one.contains(said.method)) continue;
    readings[absl::StrCat("answer ", ++count, " of ", said.method)] = absl::StrCat(said.text, "\n", Decoded(said));
  }
  for (const Utterance& said : recorder_.errors()) {
    readings[absl::StrCat("error ", ++count, " of ", said.method)] = said.text;
  }
  return readings;
}

void LogPrivacyTest::ExpectNoMarks() const {
  size_t progress = 0;
  size_t certificates = 0;
  size_t errors = 0;
  for (const auto& [where, text] : Readings()) {
    EXPECT_FALSE(text.empty()) << where;
    EXPECT_THAT(marks_.FindIn(text), ::testing::IsEmpty()) << where;
    progress += absl::StrContains(where, "TrainingService/WatchJob") ? 1U : 0U;
    certificates += absl::StrContains(text, "urn:dpar:privacy-certificate") ? 1U : 0U;
    errors += absl::StrContains(text, "\"domain\":\"dpar.v1\"") ? 1U : 0U;
  }
  // That there was something to read.
  EXPECT_GE(progress, jobs_.size());
  EXPECT_EQ(certificates, jobs_.size());
  EXPECT_GE(errors, 12U);
}

TEST_P(LogPrivacyTest, NoMarkOfADatasetIsInLogsMetricsProgressAnswersOrErrorsOfAFullRun) {
  Upload();
  ASSERT_FALSE(dataset_.empty());
  UploadBadFiles();
  UploadWithTheCommandLine();
  Train();
  ReadEverything();
  Operate();
  Fail();
  ReadWebPages();
  EXPECT_EQ(recorder_.methods(), AllMethods()) << "a full run calls every method";
  EXPECT_EQ(server_.Terminate(), std::optional<int>(0));
  ExpectNoMarks();
  // Nor what a refused file was refused for, beyond the kind of fault.
  EXPECT_THAT(server_.log(), ::testing::Not(::testing::HasSubstr("attr_data")));
}

INSTANTIATE_TEST_SUITE_P(Formats, LogPrivacyTest, ::testing::Values("text", "json"),
                         [](const auto& format) { return std::string(format.param); });

TEST(StoredSecretTest, NoSecretStandsInTheStore) {
  TestServer server;
  ASSERT_TRUE(server.Start());
  const TenantAccess tenant = server.NewTenant();
  Marks marks;
  marks.AddHex(SecretOf(tenant.owner_token));
  marks.AddHex(SecretOf(server.operator_token()));
  int files = 0;
  for (const char* file : {"/dpar.sqlite", "/dpar.sqlite-wal"}) {
    const std::string bytes = ReadFile(server.data_directory() + file);
    files += bytes.empty() ? 0 : 1;
    EXPECT_THAT(marks.FindIn(bytes), ::testing::IsEmpty()) << file;
  }
  EXPECT_GT(files, 0);
}

TEST(MarksTest, AreFoundInEveryFormThatTheyCouldLeakIn) {
  const std::string bytes = "sixteen bytes, or more";
  Marks marks;
  marks.AddBytes(bytes);
  for (const char* before : {"", "x", "xy"}) {
    const std::string text = absl::StrCat(before, bytes, " and what follows");
    EXPECT_THAT(marks.FindIn(text), ::testing::Not(::testing::IsEmpty()));
    EXPECT_THAT(marks.FindIn(absl::BytesToHexString(text)), ::testing::Not(::testing::IsEmpty()));
    EXPECT_THAT(marks.FindIn(absl::Base64Escape(text)), ::testing::Not(::testing::IsEmpty()));
    EXPECT_THAT(marks.FindIn(absl::WebSafeBase64Escape(text)), ::testing::Not(::testing::IsEmpty()));
  }
  EXPECT_THAT(marks.FindIn("sixteen other bytes"), ::testing::IsEmpty());
}

TEST(MarksTest, ANumberIsFoundAsAWordAndNotInsideAnother) {
  Marks marks;
  marks.AddNumber(3719);
  for (const char* text : {"3719", "edges=3719", "{\"label\":3719}", "found 3719.", "label -3719,"}) {
    EXPECT_THAT(marks.FindIn(text), ::testing::ElementsAre("3719")) << text;
  }
  for (const char* text : {"37190", "tenants/a3719f", "ms=3719.4", "0.3719", ""}) {
    EXPECT_THAT(marks.FindIn(text), ::testing::IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace dpar::e2e
