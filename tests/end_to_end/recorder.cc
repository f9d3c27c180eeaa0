#include "tests/end_to_end/recorder.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/support/client_interceptor.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"

namespace dpar::e2e {
namespace {

using grpc::experimental::InterceptionHookPoints;

std::string InEveryForm(const google::protobuf::Message& message) {
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(message, &json).ok());
  return absl::StrCat(message.DebugString(), json, "\n", message.SerializeAsString());
}

class RecordingInterceptor final : public grpc::experimental::Interceptor {
 public:
  RecordingInterceptor(Recorder& recorder, std::string method) : recorder_(recorder), method_(std::move(method)) {
    recorder_.Called(method_);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      recorder_.Mentioned(method_, *methods->GetRecvInitialMetadata());
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      // gRPC hands over the message as it came from the stub: generated, so a Message with nothing before it.
      const auto* message = static_cast<const google::protobuf::Message*>(methods->GetRecvMessage());
      if (message != nullptr) recorder_.Answered(method_, *message);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS)) {
      recorder_.Failed(method_, *methods->GetRecvStatus());
      recorder_.Mentioned(method_, *methods->GetRecvTrailingMetadata());
    }
    methods->Proceed();
  }

 private:
  Recorder& recorder_;
  const std::string method_;
};

class RecordingFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit RecordingFactory(Recorder& recorder) : recorder_(recorder) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo* info) override {
    const std::string method = info->method();  // /dpar.v1.DatasetService/OpenUpload
    return new RecordingInterceptor(recorder_, method.substr(method.rfind('.') + 1));
  }

 private:
  Recorder& recorder_;
};

}  // namespace

std::shared_ptr<grpc::Channel> Recorder::MakeChannel(const TestServer& server) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ReadFile(server.ca_file());
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<RecordingFactory>(*this));
  return grpc::experimental::CreateCustomChannelWithInterceptors(server.address(), grpc::SslCredentials(tls), arguments,
                                                                 std::move(factories));
}

std::set<std::string> Recorder::methods() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return methods_;
}

std::vector<Utterance> Recorder::answers() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return answers_;
}

std::vector<Utterance> Recorder::errors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return errors_;
}

void Recorder::Called(const std::string& method) {
  const std::lock_guard<std::mutex> lock(mutex_);
  methods_.insert(method);
}

void Recorder::Answered(const std::string& method, const google::protobuf::Message& message) {
  Utterance said{method, InEveryForm(message)};
  const std::lock_guard<std::mutex> lock(mutex_);
  answers_.push_back(std::move(said));
}

void Recorder::Failed(const std::string& method, const grpc::Status& status) {
  if (status.ok()) return;
  std::string text = absl::StrCat(status.error_message(), "\n", status.error_details(), "\n");
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest request;
    for (const google::protobuf::Any& detail : details.details()) {
      if (detail.UnpackTo(&info)) absl::StrAppend(&text, InEveryForm(info));
      if (detail.UnpackTo(&request)) absl::StrAppend(&text, InEveryForm(request));
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  errors_.push_back({method, text});
}

void Recorder::Mentioned(const std::string& method, const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    absl::StrAppend(&text, absl::string_view(key.data(), key.size()), "=",
                    absl::string_view(value.data(), value.size()), "\n");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!text.empty()) errors_.push_back({method, text});
}

}  // namespace dpar::e2e
