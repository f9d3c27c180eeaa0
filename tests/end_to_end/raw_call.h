// Calls by method name and bytes, for services whose stubs this project does not have and for walks over descriptors.
#ifndef DPAR_TESTS_END_TO_END_RAW_CALL_H_
#define DPAR_TESTS_END_TO_END_RAW_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "tests/end_to_end/harness.h"

namespace dpar::e2e {

// Sends one message to `method` ("/package.Service/Method") and takes one back. Good for unary calls, and for streams
// where one message each way, or an error, is the whole talk.
Answer<std::string> RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                            const std::string& request, grpc::ClientContext& context);

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_RAW_CALL_H_
