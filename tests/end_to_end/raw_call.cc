#include "tests/end_to_end/raw_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <vector>

namespace dpar::e2e {

Answer<std::string> RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                            const std::string& request, grpc::ClientContext& context) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer message(&slice, 1);
  const auto call = stub.PrepareUnaryCall(&context, method, message, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  Answer<std::string> answer;
  call->Finish(&response, &answer.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  if (answer.status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& part : slices) {
      answer.value.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answer;
}

}  // namespace dpar::e2e
