// The way of a file into the store, in any order that two tenants could think of: an input is a list of calls with
// arbitrary names, offsets, sizes, digests and repetitions, on a real Uploads over a store of its own.
//
// Whatever the order: the committed offset is the size of the file, states only move forward, a dataset comes from one
// upload, refused uploads leave no file behind, every ledger verifies, and every error carries a reason.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "core/graph/graph_file.h"
#include "core/graph/sealed_graph.h"
#include "core/random/testing/fixed_random.h"
#include "server/files.h"
#include "server/store/read_from.h"
#include "server/uploads/uploads.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTenants[] = {"tenants/acme", "tenants/other"};
constexpr const char* kDatasets[] = {"a", "b", "", "a-1", "UPPER", "../a", "-", "a/b"};
constexpr const char* kRequests[] = {"r1", "r2", "r3", "r4", "", "with space", "\x01"};
constexpr int64_t kSizes[] = {0, -1, 1, 16, 4096, INT64_MAX, INT64_MIN};
constexpr size_t kMostCalls = 40;

// Two small graphs: a path of three nodes, and the same with another feature.
Graph SmallGraph(float value) {
  Graph graph;
  graph.sizes = {3, 2, 2};
  graph.edge_offsets = {0, 1, 3, 4};
  graph.neighbours = {1, 0, 2, 1};
  graph.features.offsets = {0, 1, 2, 3};
  graph.features.columns = {0, 1, 0};
  graph.features.values = {1.0F, value, 0.5F};
  graph.labels = {0, 1, -1};
  return graph;
}

// What every run begins with: a migrated store with two tenants, made once and copied, and the bytes of the graphs.
class Beginning {
 public:
  Beginning() {
    std::string pattern = (fs::temp_directory_path() / "upload_fuzzer.XXXXXX").string();
    Require(mkdtemp(pattern.data()) != nullptr, "there is a temporary directory");
    root_ = pattern;
    const DataDirectory directory(root_ + "/template");
    Require(MakeParentDirectory(directory.Database()).ok(), "a directory can be made");
    auto database = OpenSqlite(directory.Database());
    Require(database.ok() && Migrate(**database).ok(), "a store can be made");
    for (const std::string tenant : {"acme", "other"}) {
      const absl::Status made = (*database)->Write([&](Transaction& transaction) {
        return InsertTenant(transaction, tenant, "key of " + tenant, absl::UnixEpoch());
      });
      Require(made.ok(), "a tenant can be made");
    }
    for (const float value : {2.0F, 3.0F}) {
      const std::string path = root_ + "/graph.npz";
      Require(WriteGraphFile(path, SmallGraph(value)).ok(), "a graph can be written");
      files_.push_back(ReadWholeFile(path).value());
    }
    std::string spoiled = files_[0];
    spoiled[spoiled.size() / 2] ^= 1;
    files_.push_back(spoiled);
  }
  ~Beginning() { fs::remove_all(root_); }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  // A fresh data directory.
  [[nodiscard]] std::string Copy() const {
    const std::string data = root_ + "/data";
    fs::remove_all(data);
    fs::create_directory(data);
    fs::copy_file(root_ + "/template/dpar.sqlite", data + "/dpar.sqlite");
    return data;
  }
  // Two good files and a damaged one.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

 private:
  std::string root_;
  std::vector<std::string> files_;
};

// An upload as the callers know it.
struct KnownUpload {
  std::string tenant;
  std::string name;
  std::string dataset;
  std::string bytes;  // what was committed
  int64_t size = 0;
  v1::Upload::State state = v1::Upload::OPEN;
};

class World {
 public:
  explicit World(const Beginning& beginning)
      : files_(beginning.files()), directory_(beginning.Copy()), random_(20'261'117) {
    limits_.max_upload_bytes = 1 << 16;
    limits_.max_chunk_bytes = 2048;
    limits_.max_nodes = 1000;
    limits_.max_features = 1000;
    limits_.max_classes = 100;
    limits_.max_edges = 10'000;
    limits_.max_feature_entries = 10'000;
    limits_.max_datasets = 4;
    limits_.max_open_uploads = 3;
    Restart();
  }

  void Call(FuzzInput& input) {
    switch (input.Choice(8)) {
      case 0:
        return Open(Declaration(input));
      case 1:
      case 2:
        return Write(input);
      case 3:
        return Finish(input);
      case 4:
        return Get(NameOf(input));
      case 5:
        return RequireJudged(uploads_->Sweep(), {});
      case 6:
        now_ += absl::Hours(input.Byte());
        return;
      default:
        return input.Bit() ? Restart() : OpenParsed(input);
    }
  }

  // What holds between any two calls.
  void Check() {
    std::set<std::string> finished;
    std::set<std::string> files;
    for (auto& [name, known] : uploads_known_) {
      const absl::StatusOr<v1::Upload> upload = uploads_->Get(name);
      Require(upload.ok(), absl::StrCat("an upload that was opened is there: ", upload.status().ToString()));
      Require(known.state == v1::Upload::OPEN || upload->state() == known.state, "states only move forward");
      known.state = upload->state();
      Require(upload->dataset() == known.dataset && upload->size_bytes() == known.size, "declarations stay");
      const std::string path = directory_.UploadFile(name);
      if (known.state == v1::Upload::OPEN) {
        Require(upload->committed_offset() == static_cast<int64_t>(known.bytes.size()), "commits are kept");
        Require(known.bytes.empty() || ReadWholeFile(path).value() == known.bytes, "the file is what was committed");
        files.insert(path);
      } else {
        Require(!fs::exists(path), "an upload that has ended leaves no file");
        const bool sealed = known.state == v1::Upload::FINISHED;
        Require(upload->committed_offset() == (sealed ? known.size : 0), "the offset of an ended upload");
        Require(!sealed || finished.insert(known.dataset).second, "a dataset comes from one upload");
      }
    }
    Require(finished == finished_, "a dataset is there from the answer on, and no other");
    for (const std::string& dataset : finished) {
      files.insert(directory_.DatasetFile(dataset));
    }
    RequireOnly(files);
  }

  // What holds at the end: every ledger verifies, and every dataset can be read.
  void CheckStore() {
    const absl::Status read = database_->Read([&](Transaction& transaction) -> absl::Status {
      const absl::StatusOr<std::vector<std::string>> populations = AllPopulations(transaction);
      Require(populations.ok(), "populations can be listed");
      for (const std::string& population : *populations) {
        const absl::StatusOr<v1::VerifyChainResponse> chain = VerifyChain(transaction, population, {});
        Require(chain.ok() && chain->intact(), "every ledger verifies");
        Require(chain->entry_count() == 1, "an upload opens a population and spends nothing");
      }
      return absl::OkStatus();
    });
    Require(read.ok(), "the store can be read");
    for (const std::string& dataset : finished_) {
      const absl::StatusOr<SealedGraph> graph = SealedGraph::Open(directory_.DatasetFile(dataset));
      Require(graph.ok() && graph->Check().ok(), "a sealed dataset is whole");
    }
    RequireJudged(uploads_->Sweep(), {});
    Check();
  }

 private:
  using Code = absl::StatusCode;

  // As after a crash between two calls.
  void Restart() {
    uploads_.reset();
    database_.reset();
    auto database = OpenSqlite(directory_.Database());
    Require(database.ok(), "a store can be opened again");
    database_ = *std::move(database);
    uploads_ = std::make_unique<Uploads>(*database_, directory_, marks_, limits_);
  }

  v1::OpenUploadRequest Declaration(FuzzInput& input) const {
    v1::OpenUploadRequest request;
    request.set_parent(input.Pick(kTenants));
    request.set_dataset_id(input.Pick(kDatasets));
    request.set_request_id(input.Pick(kRequests));
    const uint8_t form = input.Byte();
    request.set_size_bytes((form & 1) != 0 ? input.Pick(kSizes) : static_cast<int64_t>(input.Pick(files_).size()));
    request.set_node_count((form & 2) != 0 ? input.Read<int64_t>() : 3);
    request.set_feature_count((form & 4) != 0 ? input.Read<int64_t>() : 2);
    request.set_class_count((form & 8) != 0 ? input.Read<int64_t>() : 2);
    request.set_is_public((form & 16) != 0);
    if ((form & 32) != 0) {
      request.set_cap_epsilon(input.Read<double>());
    }
    if ((form & 64) != 0) {
      request.set_cap_delta(input.Read<double>());
    }
    if ((form & 128) != 0) {
      request.set_format(static_cast<v1::OpenUploadRequest::Format>(input.Byte()));
    }
    return request;
  }

  // A request as it comes off the wire. The handler has parsed its parent.
  void OpenParsed(FuzzInput& input) {
    v1::OpenUploadRequest request;
    if (request.ParseFromString(input.Take(input.Byte()))) {
      request.set_parent(input.Pick(kTenants));
      Open(request);
    }
  }

  void Open(const v1::OpenUploadRequest& request) {
    const absl::StatusOr<v1::Upload> upload = uploads_->Open(request, now_, random_);
    RequireJudged(upload.status(),
                  {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kResourceExhausted, Code::kAlreadyExists});
    const std::string key = absl::StrCat(request.parent(), " ", request.request_id());
    const auto before = opened_.find(key);
    const std::string content = request.SerializeAsString();
    if (!upload.ok()) {
      Require(before == opened_.end() || before->second.first != content, "a request that was answered is again");
      return;
    }
    if (before != opened_.end()) {
      Require(before->second == std::pair(content, upload->name()), "a repeated request opens nothing new");
      return;
    }
    opened_[key] = {content, upload->name()};
    Require(upload->state() == v1::Upload::OPEN && upload->committed_offset() == 0, "an upload begins empty");
    const bool is_new = uploads_known_
                            .emplace(upload->name(), KnownUpload{request.parent(), upload->name(), upload->dataset(),
                                                                 "", request.size_bytes()})
                            .second;
    Require(is_new, "an upload's name is its own");
    names_.push_back(upload->name());
  }

  // Mostly an upload that is there.
  std::string NameOf(FuzzInput& input) const {
    const size_t choice = input.Choice(names_.size() + 1);
    return choice == names_.size() ? std::string("tenants/acme/uploads/absent") : names_[choice];
  }

  void Get(const std::string& name) {
    const absl::StatusOr<v1::Upload> upload = uploads_->Get(name);
    RequireJudged(upload.status(), {Code::kNotFound});
    Require(upload.ok() == uploads_known_.contains(name), "whoever was opened is found, and nobody else");
  }

  void Write(FuzzInput& input) {
    const std::string name = NameOf(input);
    const auto known = uploads_known_.find(name);
    const uint8_t form = input.Byte();
    const int64_t held = known == uploads_known_.end() ? 0 : static_cast<int64_t>(known->second.bytes.size());
    const int64_t offset = (form & 1) != 0 ? input.Read<int64_t>() : held;
    const std::string& file = input.Pick(files_);
    const absl::StatusOr<std::unique_ptr<UploadWriter>> writer = uploads_->StartWriting(name, offset);
    RequireJudged(writer.status(), {Code::kNotFound, Code::kOutOfRange, Code::kFailedPrecondition});
    if (!writer.ok()) {
      return;
    }
    Require(offset == held, "only the committed offset can be gone on from");
    for (int i = 0; i <= (form >> 6); ++i) {
      const std::string& bytes = known->second.bytes;
      const size_t length = input.Read<uint16_t>() % 4096;
      const std::string data = (form & 2) != 0              ? input.Take(length)
                               : bytes.size() < file.size() ? file.substr(bytes.size(), length)
                                                            : std::string(length, 'x');
      const absl::Status appended = (*writer)->Append(data);
      RequireJudged(appended, {Code::kInvalidArgument, Code::kResourceExhausted});
      if (!appended.ok()) {
        break;
      }
      known->second.bytes += data;
    }
    // A stream that breaks off commits nothing more than it wrote.
    if ((form & 4) == 0) {
      const absl::StatusOr<int64_t> committed = (*writer)->Commit();
      Require(committed.ok() && *committed == static_cast<int64_t>(known->second.bytes.size()), "commits are counted");
    }
  }

  void Finish(FuzzInput& input) {
    v1::FinishUploadRequest request;
    request.set_name(NameOf(input));
    request.set_request_id(input.Pick(kRequests));
    const auto known = uploads_known_.find(request.name());
    const std::string held = known == uploads_known_.end() ? "" : known->second.bytes;
    const uint8_t form = input.Byte();
    request.set_sha256((form & 3) == 1   ? input.Take(64)
                       : (form & 3) == 2 ? Sha256Hex("something else")
                                         : Sha256Hex(held));
    const std::string tenant = known == uploads_known_.end() ? kTenants[0] : known->second.tenant;
    const absl::StatusOr<v1::FinishUploadResponse> answer =
        uploads_->Finish(request, {absl::StrCat(tenant, "/tokens/t"), now_}, random_, [] { return true; });
    RequireJudged(answer.status(), {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kResourceExhausted,
                                    Code::kNotFound, Code::kAlreadyExists});
    if (!answer.ok()) {
      return;
    }
    Require(answer->dataset().name() == known->second.dataset, "an upload becomes the dataset it was opened for");
    const auto [remembered, is_new] = answers_.emplace(request.name(), answer->digest_key());
    Require(is_new == answer->has_report(), "the report is shown once");
    Require(remembered->second == answer->digest_key(), "a repeated answer has the same key");
    if (is_new) {
      Require(finished_.insert(answer->dataset().name()).second, "a dataset is sealed once");
    }
  }

  // That nothing but these files lies below uploads/ and datasets/.
  void RequireOnly(const std::set<std::string>& files) const {
    for (const char* kind : {"/uploads", "/datasets"}) {
      std::error_code error;
      for (const auto& entry : fs::recursive_directory_iterator(directory_.root() + kind, error)) {
        Require(!entry.is_regular_file() || files.contains(entry.path().string()),
                absl::StrCat("no file is left behind: ", entry.path().string()));
      }
    }
  }

  const std::vector<std::string>& files_;
  const DataDirectory directory_;
  const MarkDirectory marks_{directory_.root() + ".witness"};
  Limits limits_;
  dpar::testing::FixedRandom random_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::unique_ptr<Database> database_;
  std::unique_ptr<Uploads> uploads_;
  std::vector<std::string> names_;                                     // of uploads, as they were opened
  std::map<std::string, KnownUpload> uploads_known_;                   // by name
  std::map<std::string, std::pair<std::string, std::string>> opened_;  // request to content and upload
  std::map<std::string, std::string> answers_;                         // upload to digest key
  std::set<std::string> finished_;                                     // datasets
};

void Run(const uint8_t* data, size_t size) {
  static const Beginning beginning;
  FuzzInput input(data, size);
  World world(beginning);
  for (size_t calls = 0; !input.empty() && calls < kMostCalls; ++calls) {
    world.Call(input);
    world.Check();
  }
  world.CheckStore();
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(data, size);
  return 0;
}
