#include "tests/end_to_end/workflow.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/certificate/digest.h"
#include "core/graph/graph_file.h"
#include "core/random/testing/fixed_random.h"

namespace dpar::e2e {
namespace {

constexpr size_t kChunkBytes = 64 << 10;

constexpr const char* kGraphArrays[] = {"adj_data",     "adj_indices", "adj_indptr", "adj_shape", "attr_data",
                                        "attr_indices", "attr_indptr", "attr_shape", "labels"};

template <typename Entry>
std::span<const Entry> ViewOf(const std::vector<Entry>& data) {
  return data;
}

absl::string_view ViewOf(const std::string& data) { return data; }

std::string TenantOf(const std::string& name) { return name.substr(0, name.find('/', sizeof("tenants/") - 1)); }

}  // namespace

std::string OwnPopulation(const std::string& dataset) {
  return absl::StrReplaceAll(dataset, {{"/datasets/", "/populations/"}});
}

std::string PopulationOf(const Client& client, const std::string& dataset) {
  v1::GetDatasetRequest request;
  request.set_name(dataset);
  const auto answer = client.Call(&v1::DatasetService::Stub::GetDataset, request);
  return answer.status.ok() ? answer.value.population() : OwnPopulation(dataset);
}

Graph MakeGraph(uint64_t seed, const GeneratorOptions& options) {
  dpar::testing::FixedRandom random(seed);
  auto graph = GenerateGraph(options, random);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

Graph MakeSlowGraph(uint64_t seed) {
  return MakeGraph(seed,
                   {.nodes = 20'000, .classes = 40, .features = 3000, .average_degree = 2, .features_per_node = 30});
}

std::string GraphBytes(const Graph& graph) {
  const TemporaryDirectory directory;
  const absl::Status written = WriteGraphFile(directory.File("graph.npz"), graph);
  EXPECT_TRUE(written.ok()) << written;
  return ReadFile(directory.File("graph.npz"));
}

std::string NpzBytes(const std::map<std::string, NpyArray>& arrays) {
  std::map<std::string, NpyView> views;
  for (const auto& [name, array] : arrays) {
    NpyView& view = views[name];
    view.shape = array.shape;
    std::visit([&view](const auto& data) { view.data = ViewOf(data); }, array.data);
  }
  const TemporaryDirectory directory;
  const absl::Status written = WriteNpzFile(directory.File("arrays.npz"), views);
  EXPECT_TRUE(written.ok()) << written;
  return ReadFile(directory.File("arrays.npz"));
}

std::map<std::string, NpyArray> GraphArrays(const Graph& graph) {
  const TemporaryDirectory directory;
  const absl::Status written = WriteGraphFile(directory.File("graph.npz"), graph);
  EXPECT_TRUE(written.ok()) << written;
  auto file = NpzFile::Open(directory.File("graph.npz"), NpzLimits{});
  EXPECT_TRUE(file.ok()) << file.status();
  std::map<std::string, NpyArray> arrays;
  if (!file.ok()) return arrays;
  for (const char* name : kGraphArrays) {
    auto array = file->ReadArray(name);
    EXPECT_TRUE(array.ok()) << array.status();
    if (array.ok()) arrays[name] = *std::move(array);
  }
  return arrays;
}

v1::OpenUploadRequest OpenRequest(const std::string& tenant, const std::string& bytes, const PublicSizes& sizes) {
  v1::OpenUploadRequest request;
  request.set_parent(tenant);
  request.set_request_id(NewRequestId());
  request.set_size_bytes(static_cast<int64_t>(bytes.size()));
  request.set_node_count(sizes.node_count);
  request.set_feature_count(sizes.feature_count);
  request.set_class_count(sizes.class_count);
  request.set_format(v1::OpenUploadRequest::NPZ);
  return request;
}

Answer<v1::WriteUploadResponse> WriteBytes(const Client& client, const std::string& upload, int64_t offset,
                                           const std::string& bytes) {
  Answer<v1::WriteUploadResponse> answer;
  const std::unique_ptr<grpc::ClientContext> context = MakeContext(client.token());
  const auto writer = client.stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &answer.value);
  v1::WriteUploadRequest message;
  message.set_name(upload);
  message.set_offset(offset);
  for (size_t start = 0; start == 0 || start < bytes.size(); start += kChunkBytes) {
    message.set_data(bytes.substr(start, kChunkBytes));
    if (!writer->Write(message)) break;
    message.Clear();
  }
  writer->WritesDone();
  answer.status = writer->Finish();
  return answer;
}

Answer<v1::FinishUploadResponse> Finish(const Client& client, const std::string& upload, const std::string& bytes,
                                        const std::string& request_id) {
  v1::FinishUploadRequest request;
  request.set_name(upload);
  request.set_sha256(Sha256Hex(bytes));
  request.set_request_id(request_id);
  return client.Call(&v1::DatasetService::Stub::FinishUpload, request);
}

Answer<v1::FinishUploadResponse> UploadFile(const Client& client, const v1::OpenUploadRequest& request,
                                            const std::string& bytes) {
  const auto opened = client.Call(&v1::DatasetService::Stub::OpenUpload, request);
  if (!opened.status.ok()) return {.status = opened.status, .value = {}};
  const auto written = WriteBytes(client, opened.value.name(), 0, bytes);
  if (!written.status.ok()) return {.status = written.status, .value = {}};
  return Finish(client, opened.value.name(), bytes, NewRequestId());
}

std::string UploadGraph(const Client& client, const std::string& tenant, const Graph& graph) {
  const std::string bytes = GraphBytes(graph);
  const auto answer = UploadFile(client, OpenRequest(tenant, bytes, graph.sizes), bytes);
  EXPECT_THAT(answer.status, IsOk());
  return answer.value.dataset().name();
}

v1::CreateJobRequest JobRequest(const std::string& dataset, double epsilon) {
  v1::CreateJobRequest request;
  request.set_parent(TenantOf(dataset));
  request.set_request_id(NewRequestId());
  request.mutable_spec()->set_dataset(dataset);
  request.mutable_spec()->set_epsilon(epsilon);
  return request;
}

Answer<v1::Job> CreateJob(const Client& client, const v1::CreateJobRequest& request) {
  return client.Call(&v1::TrainingService::Stub::CreateJob, request);
}

Answer<v1::Job> GetJob(const Client& client, const std::string& job) {
  v1::GetJobRequest request;
  request.set_name(job);
  return client.Call(&v1::TrainingService::Stub::GetJob, request);
}

Answer<v1::Job> CancelJob(const Client& client, const std::string& job) {
  v1::CancelJobRequest request;
  request.set_name(job);
  request.set_request_id(NewRequestId());
  return client.Call(&v1::TrainingService::Stub::CancelJob, request);
}

Watched WatchUntil(const Client& client, const std::string& job, bool (*enough)(const v1::WatchJobResponse&),
                   absl::Duration timeout) {
  Watched watched;
  const std::unique_ptr<grpc::ClientContext> context = MakeContext(client.token(), timeout);
  v1::WatchJobRequest request;
  request.set_name(job);
  const auto reader = client.stub<v1::TrainingService::Stub>().WatchJob(context.get(), request);
  v1::WatchJobResponse message;
  bool stopped = false;
  while (!stopped && reader->Read(&message)) {
    watched.messages.push_back(message);
    stopped = enough(message) && !message.terminal();
  }
  if (stopped) {
    context->TryCancel();
    while (reader->Read(&message)) {
    }
  }
  watched.status = reader->Finish();
  if (stopped) watched.status = grpc::Status::OK;
  return watched;
}

bool IsTraining(const v1::WatchJobResponse& message) {
  return message.stage() == "training" && message.completed() > 0;
}

bool IsTerminal(const v1::WatchJobResponse& message) { return message.terminal(); }

v1::Job WaitForJob(const Client& client, const std::string& job) {
  const Watched watched = WatchUntil(client, job, IsTerminal);
  EXPECT_THAT(watched.status, IsOk());
  EXPECT_TRUE(!watched.messages.empty() && watched.messages.back().terminal()) << job << " did not end";
  const Answer<v1::Job> answer = GetJob(client, job);
  EXPECT_THAT(answer.status, IsOk());
  return answer.value;
}

v1::Budget GetBudget(const Client& client, const std::string& dataset) {
  v1::GetBudgetRequest request;
  request.set_name(PopulationOf(client, dataset));
  const auto answer = client.Call(&v1::BudgetService::Stub::GetBudget, request);
  EXPECT_THAT(answer.status, IsOk());
  return answer.value;
}

std::vector<v1::LedgerEntry> LedgerEntries(const Client& client, const std::string& dataset) {
  v1::ListLedgerEntriesRequest request;
  request.set_parent(PopulationOf(client, dataset));
  request.set_page_size(1000);
  const auto answer = client.Call(&v1::BudgetService::Stub::ListLedgerEntries, request);
  EXPECT_THAT(answer.status, IsOk());
  return {answer.value.entries().begin(), answer.value.entries().end()};
}

int64_t CountEntries(const std::vector<v1::LedgerEntry>& entries, v1::LedgerEntry::Kind kind) {
  return std::count_if(entries.begin(), entries.end(), [kind](const auto& entry) { return entry.kind() == kind; });
}

v1::VerifyChainResponse VerifyChain(const Client& client, const std::string& dataset) {
  v1::VerifyChainRequest request;
  request.set_name(PopulationOf(client, dataset));
  const auto answer = client.Call(&v1::BudgetService::Stub::VerifyChain, request);
  EXPECT_THAT(answer.status, IsOk());
  return answer.value;
}

}  // namespace dpar::e2e
