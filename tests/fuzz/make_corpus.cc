// Writes the fuzzers' seeds: one good example of everything, from which mutations start.
//   make_corpus DIRECTORY      the checked-in ones: make_corpus tests/fuzz/corpus
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/certificate/certificate.h"
#include "core/certificate/key_list.h"
#include "core/certificate/testing/example_statement.h"
#include "core/graph/graph_file.h"
#include "core/infer/model.h"
#include "core/plan/plan.h"
#include "dpar/v1/privacy.pb.h"
#include "dpar/v1/training.pb.h"
#include "google/protobuf/message.h"
#include "server/upkeep/manifest.h"
#include "server/witness/mark.h"
#include "tests/fuzz/messages.h"
#include "tests/fuzz/npz_words.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) {
    text += static_cast<char>(byte);
  }
  return text;
}

class Corpus {
 public:
  explicit Corpus(std::string directory) : directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
  }

  void Add(const std::string& name, const std::string& bytes) const {
    std::ofstream(absl::StrCat(directory_, "/", name), std::ios::binary) << bytes;
  }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

template <size_t count>
int IndexOf(const char* const (&words)[count], const std::string& word) {
  const auto* const found = std::find(std::begin(words), std::end(words), word);
  Require(found != std::end(words), absl::StrCat(word, " is a word of the fuzzer"));
  return static_cast<int>(found - std::begin(words));
}

// One array of the npz fuzzer's input.
template <typename Entry>
std::string Array(const std::string& name, const std::string& type, const std::vector<Entry>& entries,
                  unsigned form = kFittingShape) {
  const std::string content(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(Entry));
  return Bytes({IndexOf(kArrayNames, name), IndexOf(kArrayTypes, type), static_cast<int>(form),
                static_cast<int>(content.size() & 0xff), static_cast<int>(content.size() >> 8)}) +
         content;
}

std::string Edges(const std::string& prefix) {
  return Array<float>(prefix + "data", "<f4", {1, 1, 1, 1}) + Array<int32_t>(prefix + "indices", "<i4", {1, 0, 2, 1}) +
         Array<int32_t>(prefix + "indptr", "<i4", {0, 1, 3, 4}) + Array<int64_t>(prefix + "shape", "<i8", {3, 3});
}

std::string Features() {
  return Array<double>("attr_data", "<f8", {1, 2, 0.5}, kFittingShape | kPacked) +
         Array<int32_t>("attr_indices", "<i4", {0, 1, 0}) + Array<int64_t>("attr_indptr", "<i8", {0, 1, 2, 3}) +
         Array<int64_t>("attr_shape", "<i8", {3, 2});
}

void WriteNpzSeeds(const Corpus& corpus) {
  Graph graph;
  graph.sizes = {3, 2, 2};
  graph.edge_offsets = {0, 1, 3, 4};
  graph.neighbours = {1, 0, 2, 1};
  graph.features.offsets = {0, 1, 2, 3};
  graph.features.columns = {0, 1, 0};
  graph.features.values = {1.0F, 2.0F, 0.5F};
  graph.labels = {0, 1, -1};
  Require(WriteGraphFile(corpus.directory() + "/file.npz", graph).ok(), "a graph can be written");
  const std::string labels = Array<int64_t>("labels", "<i8", {0, 1, -1});
  corpus.Add("arrays", Edges("adj_") + Features() + labels);
  corpus.Add("other_spelling", Edges("adj_matrix.") + Features() + labels);
  corpus.Add("num_classes", Edges("adj_") + Features() + labels + Array<int32_t>("num_classes", "<i4", {2}));
  corpus.Add("directed", Array<float>("adj_data", "<f4", {1, 1}) + Array<int32_t>("adj_indices", "<i4", {1, 2}) +
                             Array<int32_t>("adj_indptr", "<i4", {0, 1, 2, 2}) +
                             Array<int64_t>("adj_shape", "<i8", {3, 3}) + Features() + labels);
  // Rows, columns and the content's length follow the form byte.
  std::string dense = Bytes({IndexOf(kArrayNames, "attr_matrix"), IndexOf(kArrayTypes, "<f4"), 2, 3, 2, 24, 0});
  for (const float value : {1.0F, 0.0F, 0.0F, 2.0F, 0.5F, 0.0F}) {
    dense.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  corpus.Add("dense", Edges("adj_") + dense + labels);
  std::string repeated = Array<float>("attr_data", "<f4", {1}, kFittingShape | kRepeated | kPacked) + Bytes({63});
  corpus.Add("repeated", Edges("adj_") + repeated + labels);
}

// Calls of the upload fuzzer: open (tenant, dataset, request, form, file), write (upload, form, file, lengths), finish
// (upload, request, form), and the others by their number.
void WriteUploadSeeds(const Corpus& corpus) {
  const std::string open = Bytes({0, 0, 0, 0, 0, 0});
  const std::string write = Bytes({1, 0, 0x40, 0, 0xff, 0x07, 0xff, 0x07});
  const std::string finish = Bytes({3, 0, 1, 0});
  corpus.Add("sealed", open + write + write + finish + finish);
  corpus.Add("repeated_open", open + open + write + Bytes({4, 0}) + finish);
  corpus.Add("wrong_digest", open + write + write + Bytes({3, 0, 1, 2}) + finish);
  corpus.Add("damaged", Bytes({0, 0, 0, 0, 0, 2, 1, 0, 0x40, 2, 0xff, 0x07, 0xff, 0x07}) + finish);
  corpus.Add("incomplete", open + finish + write + Bytes({7, 1}) + write + finish);
  corpus.Add("public", Bytes({0, 0, 1, 1, 16, 0}) + write + finish);
  corpus.Add("two_tenants", open + Bytes({0, 1, 0, 0, 0, 1}) + write + Bytes({1, 1, 0x40, 1, 0xff, 7, 0xff, 7}) +
                                finish + Bytes({3, 1, 1, 0, 5}));
  corpus.Add("same_id_twice", open + Bytes({0, 0, 0, 1, 0, 1}) + write + Bytes({1, 1, 0x40, 1, 0xff, 7, 0xff, 7}) +
                                  finish + Bytes({3, 1, 2, 0, 5}));
  corpus.Add("abandoned", open + write + Bytes({6, 200, 0, 0, 1, 1, 0, 0, 5}) + finish);
  corpus.Add("offsets",
             open + Bytes({1, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0}) + write + Bytes({1, 0, 6, 0, 4, 0}) + "data");
}

// A plausible value for a field by its name.
std::string TextFor(const FieldDescriptor& field) {
  static const std::map<std::string, std::string> known = {{"parent", "tenants/acme"},
                                                           {"dataset", "tenants/acme/datasets/demo"},
                                                           {"request_id", "request-1"},
                                                           {"page_token", "1700000000000000:tenants/acme/jobs/1"},
                                                           {"tenant_id", "acme"},
                                                           {"dataset_id", "demo"},
                                                           {"sha256", std::string(64, 'a')},
                                                           {"known_hash", std::string(64, 'b')},
                                                           {"reason", "moved from another server"},
                                                           {"certificate_uri", "spiffe://acme/trainer"},
                                                           {"purpose", "dpar_0123_" + std::string(64, 'c')}};
  if (const auto found = known.find(field.name()); found != known.end()) {
    return found->second;
  }
  const std::string& type = field.containing_type()->name();
  const auto is_about = [&](const char* noun) { return type.find(noun) != std::string::npos; };
  return is_about("Upload")  ? "tenants/acme/uploads/1234"
         : is_about("Token") ? "operator/tokens/1234"
         : is_about("Budget") || is_about("Ledger") || is_about("VerifyChain") || is_about("Population")
             ? "tenants/acme/populations/demo"
         : is_about("Dataset") ? "tenants/acme/datasets/demo"
         : is_about("Stage")   ? "dp-sgd"
                               : "tenants/acme/jobs/1234";
}

void Fill(Message& message, int depth) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_repeated() || (field->real_containing_oneof() != nullptr && depth > 0)) {
      continue;
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        reflection.SetString(&message, field, TextFor(*field));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(&message, field, 3);
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.SetInt32(&message, field, 3);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(&message, field, 0.5);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection.SetEnumValue(&message, field, 1);
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth < 2) {
          Fill(*reflection.MutableMessage(&message, field), depth + 1);
        }
        break;
      default:
        break;
    }
  }
}

std::vector<v1::TrainingSpec> Specs() {
  v1::TrainingSpec features;
  features.set_dataset("tenants/acme/datasets/demo");
  features.set_epsilon(1);
  std::vector<v1::TrainingSpec> specs(7, features);
  specs[1].mutable_options()->set_steps(50);
  specs[1].mutable_options()->set_hidden_size(16);
  specs[1].mutable_options()->set_optimizer(v1::ADAM);
  specs[1].mutable_options()->set_transform(v1::UNIT);
  specs[2].mutable_evaluation()->set_held_out_share(0.4);
  specs[2].mutable_evaluation()->set_budget_share(0.1);
  specs[3].set_method(v1::DPAR_GM);
  specs[3].set_non_private(true);
  specs[3].clear_epsilon();
  specs[4].set_method(v1::DPAR_EM1);
  specs[4].set_delta(1e-5);
  specs[4].mutable_options()->set_top_k(2);
  specs[4].mutable_options()->set_entry_clip(0.001);
  specs[5].set_preset(v1::PAPER);
  specs[5].set_method(v1::DPAR_EM0);
  specs[6].mutable_options()->set_center(true);
  specs[6].mutable_options()->set_epochs(20);
  specs[6].mutable_options()->set_gradient_clip(0.5);
  specs[6].set_accountant(v1::AS_PUBLISHED);
  return specs;
}

void WriteRequestSeeds(const Corpus& corpus) {
  const std::vector<const Message*>& messages = RequestMessages();
  const absl::StatusOr<v1::Plan> plan = MakePlan(Specs()[4], {2708, 1433, 7});
  Require(plan.ok(), "a plan can be made");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::unique_ptr<Message> message(messages[i]->New());
    Fill(*message, 0);
    const std::string& type = message->GetDescriptor()->name();
    const std::string start = Bytes({static_cast<int>(i), 2});
    corpus.Add(type, start + message->SerializeAsString());
    if (type == v1::CreateJobRequest::descriptor()->name()) {
      const std::vector<v1::TrainingSpec> specs = Specs();
      for (size_t j = 0; j < specs.size(); ++j) {
        v1::CreateJobRequest request;
        request.set_parent("tenants/acme");
        request.set_request_id("request-1");
        *request.mutable_spec() = specs[j];
        corpus.Add(absl::StrCat(type, "_", j), start + request.SerializeAsString());
      }
    }
    if (type == v1::Plan::descriptor()->name()) {
      corpus.Add(type + "_whole", start + plan->SerializeAsString());
    } else if (type == v1::PrivacyEvent::descriptor()->name()) {
      corpus.Add(type + "_of_a_plan", start + plan->event().SerializeAsString());
    }
  }
}

// Without their last line, which the fuzzer adds.
std::string WithoutDigest(const std::string& text) { return text.substr(0, text.rfind('\n', text.size() - 2) + 1); }

void WriteCertificateSeeds(const Corpus& corpus) {
  const SigningKey key = SigningKey::Generate().value();
  const Statement statement = ExampleStatement();
  corpus.Add("statement", StatementToJson(statement));
  corpus.Add("public", StatementToJson(ExamplePublicStatement()));
  corpus.Add("envelope", SignStatement(statement, key).value());
  KnownKey revoked(key.verifying_key());
  revoked.create_time = absl::FromUnixSeconds(1'700'000'000);
  revoked.revoke_time = absl::FromUnixSeconds(1'700'000'100);
  revoked.revoke_reason = "lost";
  corpus.Add("keys", FormatKeyList({revoked}));
}

void WriteHttpSeeds(const Corpus& corpus) {
  corpus.Add("get", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  corpus.Add("query", "GET /api/jobs?tenant=tenants%2Facme&size=10 HTTP/1.1\r\nHost: h\r\nCookie: a=b\r\n\r\n");
  corpus.Add("post", "POST /api/session HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n");
  corpus.Add("body", "PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
  corpus.Add("chunked", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  corpus.Add("two_hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  corpus.Add("head", "HEAD / HTTP/1.0\r\n\r\n");
  corpus.Add("cut_short", "GET / HTTP/1.1\r\nHost");
}

void WriteMarkSeeds(const Corpus& corpus) {
  Mark mark;
  mark.population = "tenants/acme/populations/demo";
  mark.terms = {8, 1e-5, 32, 1'000'000, 50, 1200, false};
  AddCheckpoint(mark, {1, std::string(64, 'b'), 100});
  AddCheckpoint(mark, {3, std::string(64, 'c'), 250});
  corpus.Add("mark", FormatMark(mark));
  corpus.Add("lines", WithoutDigest(FormatMark(mark)));
}

void WriteManifestSeeds(const Corpus& corpus) {
  Manifest manifest;
  manifest.made_at = "2026-11-01T02:03:04Z";
  manifest.software = "dpard 1.2.3";
  manifest.files = {{"datasets/acme/d.graph", 4096, std::string(64, 'a')},
                    {kSqliteCopy, 123, std::string(64, 'b')},
                    {"keys/signing.key", 119, std::string(64, 'c')}};
  corpus.Add("manifest", FormatManifest(manifest));
  corpus.Add("lines", WithoutDigest(FormatManifest(manifest)));
}

void WriteModelSeeds(const Corpus& corpus) {
  Model model;
  model.feature_count = 2;
  model.class_count = 2;
  model.weights = {1, 2, 3, 4, 5, 6};
  Require(WriteModelFile(corpus.directory() + "/file.npz", model).ok(), "a model can be written");
  const auto header = [](const Model& of) {
    const std::string text = ModelHeader(of);
    return Bytes({static_cast<int>(text.size() & 0xff), static_cast<int>(text.size() >> 8)}) + text;
  };
  const std::string numbers = Bytes({0, 0, 0, 0x80, 0x3f});  // one number, 1
  corpus.Add("softmax", header(model) + Bytes({0, 2, 3, 2}) + numbers);
  corpus.Add("hidden", header(model) + Bytes({0, 2, 3, 4}) + numbers + Bytes({1, 2, 4, 2}) + numbers);
  corpus.Add("centred", header(model) + Bytes({0, 2, 3, 2}) + numbers + Bytes({2, 1, 2}) + numbers);
  model.reads = ModelInputs::kHops;
  model.hops = 1;
  corpus.Add("hops", header(model) + Bytes({0, 2, 7, 2}) + numbers + Bytes({3, 2, 3, 3}) + numbers);
}

// Changes of the sealed fuzzer: section, place, length, bytes.
void WriteSealedSeeds(const Corpus& corpus) {
  corpus.Add("nothing", "");
  corpus.Add("neighbour", Bytes({1, 4, 0, 3, 9, 0, 0, 0}));
  corpus.Add("offset", Bytes({0, 8, 0, 7, 255, 255, 255, 255, 255, 255, 255, 127}));
  corpus.Add("header", Bytes({6, 16, 0, 7, 1, 0, 0, 0, 1, 0, 0, 0}));
  corpus.Add("shorter", Bytes({7, 0, 16, 0, 0}));
}

}  // namespace
}  // namespace dpar::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_corpus DIRECTORY\n";
    return 2;
  }
  const std::string root = argv[1];
  dpar::fuzz::WriteNpzSeeds(dpar::fuzz::Corpus(root + "/npz"));
  dpar::fuzz::WriteUploadSeeds(dpar::fuzz::Corpus(root + "/upload"));
  dpar::fuzz::WriteRequestSeeds(dpar::fuzz::Corpus(root + "/request"));
  dpar::fuzz::WriteCertificateSeeds(dpar::fuzz::Corpus(root + "/certificate"));
  dpar::fuzz::WriteHttpSeeds(dpar::fuzz::Corpus(root + "/http"));
  dpar::fuzz::WriteMarkSeeds(dpar::fuzz::Corpus(root + "/mark"));
  dpar::fuzz::WriteManifestSeeds(dpar::fuzz::Corpus(root + "/manifest"));
  dpar::fuzz::WriteModelSeeds(dpar::fuzz::Corpus(root + "/model"));
  dpar::fuzz::WriteSealedSeeds(dpar::fuzz::Corpus(root + "/sealed"));
  return 0;
}
