// The API's messages over HTTP: requests as query parameters, answers and errors as JSON.
#ifndef DPAR_SERVER_PAGE_WEB_MESSAGE_H_
#define DPAR_SERVER_PAGE_WEB_MESSAGE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace dpar {

// Sets fields: texts, numbers, "true" or "false", each at most once. INVALID_ARGUMENT / INVALID_FIELD otherwise.
absl::Status ReadQuery(const std::multimap<std::string, std::string>& query, google::protobuf::Message& request);

// Protobuf's JSON: .proto field names, zeros included, 64-bit numbers as texts (JavaScript would round them).
absl::StatusOr<std::string> WriteJson(const google::protobuf::Message& message);

// {"error": {"code": "NOT_FOUND", "reason": "RESOURCE_NOT_FOUND", "message": "..."}}, and the HTTP status for it.
std::string ErrorJson(const absl::Status& status);
int HttpStatusOf(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_WEB_MESSAGE_H_
