#include "tests/end_to_end/raw_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <vector>

#include "dpar/v1/overview.pb.h"

namespace dpar::e2e {
namespace {

// Waits for the one operation that was started; whether it went well.
bool Await(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& part : slices) bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  }
  return bytes;
}

}  // namespace

std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Dataset::descriptor()->file(), v1::Job::descriptor()->file(), v1::Budget::descriptor()->file(),
        v1::Tenant::descriptor()->file(), v1::ServerInfo::descriptor()->file(), v1::Overview::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) methods.push_back(file->service(s)->method(m));
    }
  }
  return methods;
}

Answer<std::string> RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                            const std::string& request, grpc::ClientContext& context) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  Answer<std::string> answer;
  const grpc::Slice slice(request);
  if (Await(queue)) {
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    Await(queue);
    bool first = true;
    for (grpc::ByteBuffer response; call->Read(&response, nullptr), Await(queue); first = false) {
      if (first) answer.value = Bytes(response);
    }
  }
  call->Finish(&answer.status, nullptr);
  Await(queue);
  queue.Shutdown();
  return answer;
}

}  // namespace dpar::e2e
