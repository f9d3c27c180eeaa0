// Takes note of everything that a server says to clients: every message, every error with its details, all metadata.
#ifndef DPAR_TESTS_END_TO_END_RECORDER_H_
#define DPAR_TESTS_END_TO_END_RECORDER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/end_to_end/harness.h"

namespace dpar::e2e {

// One thing that was said, in every form that a reader might look at: text, proto-JSON and bytes.
struct Utterance {
  std::string method;  // DatasetService/OpenUpload
  std::string text;
};

// Thread-safe. It outlives its channels.
class Recorder {
 public:
  // A TLS channel to the server whose calls are recorded.
  std::shared_ptr<grpc::Channel> MakeChannel(const TestServer& server);

  // Methods that were called, each as in Utterance.
  [[nodiscard]] std::set<std::string> methods() const;
  // Messages of every answer, and of every stream.
  [[nodiscard]] std::vector<Utterance> answers() const;
  // Errors with their details, and the metadata of every answer.
  [[nodiscard]] std::vector<Utterance> errors() const;

  void Called(const std::string& method);
  void Answered(const std::string& method, const google::protobuf::Message& message);
  void Failed(const std::string& method, const grpc::Status& status);
  void Mentioned(const std::string& method, const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

 private:
  mutable std::mutex mutex_;
  std::set<std::string> methods_;
  std::vector<Utterance> answers_;
  std::vector<Utterance> errors_;
};

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_RECORDER_H_
