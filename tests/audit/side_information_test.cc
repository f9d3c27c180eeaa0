// What a server shows besides what it charges for: two servers get the same calls on two neighbouring graphs, and
// everything else that anybody could read must be the same, byte for byte, but for what is listed here as masked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/graph/keep_slots.h"
#include "core/message_json.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using Json = nlohmann::ordered_json;
using Training = v1::TrainingService::Stub;
using Budgets = v1::BudgetService::Stub;
using Datasets = v1::DatasetService::Stub;

// Fields of messages that are masked, and why.
const std::map<std::string, std::string>& MaskedFields() {
  static const auto* fields = new std::map<std::string, std::string>{
      {"create_time", "a time"},
      {"start_time", "a time"},
      {"end_time", "a time"},
      {"stage_start_time", "a time"},
      {"time", "a time"},
      {"estimated_time", "follows the speed that this server has seen"},
      {"hash", "a hash over times"},
      {"head_hash", "a hash over times"},
      {"content_digest", "a digest under a random key"},
      {"accuracy", "charged, with noise"},
      {"low", "follows the charged accuracy"},
      {"high", "follows the charged accuracy"},
  };
  return *fields;
}

// Of the certificate's statement, which is camel case.
const std::map<std::string, std::string>& MaskedStatementFields() {
  static const auto* fields = new std::map<std::string, std::string>{
      {"sha256", "a digest of the model, whose bytes bear the noise"},
  };
  return *fields;
}

// Parts of texts that are masked, and what stands there instead.
const std::vector<std::pair<std::regex, std::string>>& MaskedPatterns() {
  static const auto* patterns = new std::vector<std::pair<std::regex, std::string>>{
      {std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)"), "TIME"},
      {std::regex(R"(\bms=\d+(\.\d+)?)"), "ms=DURATION"},
      {std::regex(R"(\b127\.0\.0\.1:\d+)"), "PORT"},
      // Ids and digests, but no digits behind a point, which could be anything.
      {std::regex(R"((^|[^.0-9a-f])[0-9a-f]{16,})"), "$1RANDOM"},
      // How many calls there were before follows from how long the test waited.
      {std::regex(R"(RANDOM-\d+)"), "RANDOM"},
  };
  return *patterns;
}

std::string Masked(std::string text) {
  for (const auto& [pattern, name] : MaskedPatterns()) {
    text = std::regex_replace(text, pattern, name);
  }
  return text;
}

void MaskFields(const std::map<std::string, std::string>& fields, Json& json) {
  for (auto& [key, value] : json.items()) {
    if (json.is_object() && fields.contains(key)) {
      value = "MASKED";
    } else if (value.is_structured()) {
      MaskFields(fields, value);
    }
  }
}

std::string MaskedMessage(const google::protobuf::Message& message) {
  Json json = MessageToJson(message, {});
  MaskFields(MaskedFields(), json);
  return Masked(json.dump());
}

std::string MaskedStatement(const std::string& envelope) {
  const Json json = Json::parse(envelope);
  std::string payload;
  EXPECT_TRUE(absl::Base64Unescape(json["payload"].get<std::string>(), &payload));
  Json statement = Json::parse(payload);
  MaskFields(MaskedFields(), statement);
  MaskFields(MaskedStatementFields(), statement);
  return Masked(statement.dump());
}

// What somebody learns of one server, by where it was read.
using Readings = std::map<std::string, std::string>;

class Site {
 public:
  explicit Site(const Graph& graph) : graph_(graph) {}

  Readings Run() {
    if (!server_.Start()) {
      return {};
    }
    tenant_ = server_.NewTenant();
    owner_ = std::make_unique<Client>(server_.MakeChannel(), tenant_.owner_token);
    Upload();
    for (const v1::Method method : {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM}) {
      Train(method);
    }
    Fail();
    ReadBudget();
    const std::string data = server_.data_directory();
    EXPECT_EQ(server_.Terminate(), std::optional<int>(0));
    ReadFiles(data);
    ReadLogs(data);
    return readings_;
  }

 private:
  // The upload itself is the uploader's: its size and its report follow the data (SECURITY.md).
  void Upload() {
    const std::string bytes = GraphBytes(graph_);
    v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes, graph_.sizes);
    request.set_dataset_id("people");
    request.set_request_id("upload");
    const auto answer = UploadFile(*owner_, request, bytes);
    ASSERT_THAT(answer.status, IsOk());
    dataset_ = answer.value.dataset().name();
    v1::GetDatasetRequest get;
    get.set_name(dataset_);
    readings_["dataset"] = MaskedMessage(owner_->Call(&Datasets::GetDataset, get).value);
  }

  void Train(v1::Method method) {
    const std::string name = v1::Method_Name(method);
    v1::CreateJobRequest request = JobRequest(dataset_, 0.5);
    request.set_request_id(name);
    request.mutable_spec()->set_method(method);
    request.mutable_spec()->mutable_options()->set_steps(3);
    request.mutable_spec()->mutable_evaluation()->set_held_out_share(0.2);
    request.mutable_spec()->mutable_evaluation()->set_budget_share(0.1);
    const auto created = CreateJob(*owner_, request);
    ASSERT_THAT(created.status, IsOk()) << name;
    const std::string job = created.value.name();
    const Watched watched = WatchUntil(*owner_, job, IsTerminal);
    ASSERT_FALSE(watched.messages.empty());
    ExpectPublicStages(created.value.plan(), watched.messages);
    v1::WatchJobResponse last = watched.messages.back();
    last.clear_sequence();  // counts messages that nobody waited for
    readings_[name + ": last progress"] = MaskedMessage(last);
    readings_[name + ": job"] = MaskedMessage(GetJob(*owner_, job).value);
    v1::GetCertificateRequest get;
    get.set_name(job);
    readings_[name + ": certificate"] = MaskedStatement(owner_->Call(&Training::GetCertificate, get).value.envelope());
    for (const auto artifact : {v1::DownloadModelRequest::TORCHSCRIPT, v1::DownloadModelRequest::SAFETENSORS,
                                v1::DownloadModelRequest::ONNX}) {
      v1::DownloadModelRequest download;
      download.set_name(job);
      download.set_artifact(artifact);
      const std::unique_ptr<grpc::ClientContext> context = MakeContext(owner_->token());
      const auto reader = owner_->stub<Training>().DownloadModel(context.get(), download);
      v1::DownloadModelResponse part;
      ASSERT_TRUE(reader->Read(&part));
      readings_[absl::StrCat(name, ": size of ", v1::DownloadModelRequest::Artifact_Name(artifact))] =
          absl::StrCat(part.size_bytes());
      while (reader->Read(&part)) {
      }
      EXPECT_THAT(reader->Finish(), IsOk());
    }
  }

  // Which messages are sent follows the clock, since there are only so many in a second. But each is about a stage of
  // the plan, in the plan's order, with the plan's total.
  static void ExpectPublicStages(const v1::Plan& plan, const std::vector<v1::WatchJobResponse>& messages) {
    const std::vector<std::string> order = {"queued",     "loading", "structure", "training",
                                            "evaluating", "saving",  "succeeded"};
    size_t at = 0;
    for (const v1::WatchJobResponse& message : messages) {
      const auto stage = std::find(order.begin(), order.end(), message.stage());
      ASSERT_NE(stage, order.end()) << message.stage();
      EXPECT_GE(static_cast<size_t>(stage - order.begin()), at) << message.stage();
      at = static_cast<size_t>(stage - order.begin());
      EXPECT_EQ(message.total(), message.stage() == "training" || message.stage() == "succeeded" ? plan.steps() : 0)
          << message.stage();
      EXPECT_GE(message.completed(), 0);
      EXPECT_LE(message.completed(), message.total());
    }
  }

  void Fail() {
    const auto note = [&](const std::string& name, const grpc::Status& status) {
      std::string& reading = readings_["error: " + name];
      reading = absl::StrCat(status.error_code(), " ", status.error_message());
      const std::optional<google::rpc::ErrorInfo> info = ErrorInfoOf(status);
      ASSERT_TRUE(info.has_value()) << name;
      // In an order of their own: maps come in any.
      const std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
      for (const auto& [key, value] : metadata) {
        absl::StrAppend(&reading, "\n", key, "=", value);
      }
    };
    note("too much", CreateJob(*owner_, JobRequest(dataset_, 50)).status);
    v1::CreateJobRequest bad = JobRequest(dataset_, 0.5);
    bad.mutable_spec()->mutable_options()->set_batch_size(100'000);
    note("batch size", CreateJob(*owner_, bad).status);
    bad = JobRequest(dataset_, 0.5);
    bad.mutable_spec()->set_method(v1::DPAR_GM);
    bad.mutable_spec()->mutable_options()->set_top_k(1'000'000);
    note("entries", CreateJob(*owner_, bad).status);
    note("absent job", GetJob(*owner_, tenant_.name + "/jobs/absent").status);
  }

  void ReadBudget() {
    readings_["budget"] = MaskedMessage(GetBudget(*owner_, dataset_));
    size_t count = 0;
    for (const v1::LedgerEntry& entry : LedgerEntries(*owner_, dataset_)) {
      readings_[absl::StrCat("ledger entry ", ++count)] = MaskedMessage(entry);
    }
    EXPECT_EQ(count, 9U);  // opened, and reserved and posted for each of four jobs
    EXPECT_TRUE(VerifyChain(*owner_, dataset_).intact());
  }

  // The names of all files, and the sizes of model.pt, model.safetensors and model.onnx. A model.npz is deflated, so
  // that its size follows from its bytes, which bear the noise and are released. What else has a size is not for those
  // who reach the server through its API: keys, the store, and the sealed graph.
  void ReadFiles(const std::string& root) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const std::string name = std::filesystem::relative(entry.path(), root).string();
      std::string size;
      if (name.ends_with("/model.pt") || name.ends_with("/model.safetensors") || name.ends_with("/model.onnx")) {
        size = absl::StrCat(entry.file_size());
      }
      readings_["file " + name] = size;
    }
  }

  // Lines of threads that run side by side come in any order, and how often a loop came round follows the clock.
  void ReadLogs(const std::string& root) {
    for (const auto& [name, text] :
         {std::pair("log", server_.log()), std::pair("audit log", ReadFile(root + "/audit.log"))}) {
      std::set<std::string> lines;
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        lines.insert(Masked(absl::StrReplaceAll(line, {{server_.Scratch(""), "DIRECTORY/"}})));
      }
      EXPECT_GT(lines.size(), 5U) << name;
      std::string& reading = readings_[name];
      for (const std::string& line : lines) {
        absl::StrAppend(&reading, line, "\n");
      }
    }
  }

  const Graph graph_;
  TestServer server_{{"--log-level", "trace"}};
  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  std::string dataset_;
  Readings readings_;
};

// The graph without its node of most neighbours.
Graph WithoutHub(const Graph& graph) {
  int64_t hub = 0;
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    if (graph.edges().neighbours_of(node).size() > graph.edges().neighbours_of(hub).size()) {
      hub = node;
    }
  }
  std::vector<int64_t> kept(static_cast<size_t>(graph.sizes.node_count));
  std::iota(kept.begin(), kept.end(), int64_t{0});
  kept.erase(kept.begin() + hub);
  const auto result = KeepSlots(graph, kept, [] { return true; });
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(SideInformation, IsTheSameForNeighbours) {
  const Graph graph = MakeGraph(77);
  const Graph neighbour = WithoutHub(graph);
  ASSERT_LT(neighbour.edge_count() + 5, graph.edge_count());
  const Readings one = Site(graph).Run();
  const Readings other = Site(neighbour).Run();
  ASSERT_GT(one.size(), 40U);
  for (const auto& [where, text] : one) {
    const auto same = other.find(where);
    EXPECT_TRUE(same != other.end()) << where << " is there for one graph only";
    if (same != other.end()) {
      EXPECT_EQ(text, same->second) << where;
    }
  }
  for (const auto& [where, text] : other) {
    EXPECT_TRUE(one.contains(where)) << where << " is there for one graph only";
  }
}

TEST(Masks, HideWhatIsListedAndNothingElse) {
  EXPECT_EQ(Masked("2026-11-17T17:00:00.123456Z ms=12.5 on 127.0.0.1:4711"), "TIME ms=DURATION on PORT");
  EXPECT_EQ(Masked("0123456789abcdef and 0123456789abcde"), "RANDOM and 0123456789abcde");
  EXPECT_EQ(Masked("nodes=120 edges=481 loss 0.2512345678901234567"), "nodes=120 edges=481 loss 0.2512345678901234567");
  Json json = {{"time", 5}, {"units", 7}, {"inner", {{"hash", "x"}, {"reason", "y"}}}};
  MaskFields(MaskedFields(), json);
  EXPECT_EQ(json.dump(), R"({"time":"MASKED","units":7,"inner":{"hash":"MASKED","reason":"y"}})");
}

}  // namespace
}  // namespace dpar::e2e
