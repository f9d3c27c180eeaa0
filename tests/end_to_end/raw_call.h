// Calls by method name and bytes, for services whose stubs this project does not have and for walks over descriptors.
#ifndef DPAR_TESTS_END_TO_END_RAW_CALL_H_
#define DPAR_TESTS_END_TO_END_RAW_CALL_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/end_to_end/harness.h"

namespace dpar::e2e {

// Every method of the API, as the descriptors have them.
std::vector<const google::protobuf::MethodDescriptor*> AllMethods();

// Sends one message to `method` ("/package.Service/Method"), takes what comes back to its end, and keeps the first
// message of it. Good for unary calls and for streams to which one message is all there is to say.
Answer<std::string> RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                            const std::string& request, grpc::ClientContext& context);

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_RAW_CALL_H_
