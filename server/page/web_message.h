// The API's messages over HTTP: requests as the parameters of a query, answers and errors as JSON.
#ifndef DPAR_SERVER_PAGE_WEB_MESSAGE_H_
#define DPAR_SERVER_PAGE_WEB_MESSAGE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace dpar {

// Sets the fields of `request` that the query names: texts, numbers and truths ("true", "false"), each at most once.
// INVALID_ARGUMENT / INVALID_FIELD otherwise.
absl::Status ReadQuery(const std::multimap<std::string, std::string>& query, google::protobuf::Message& request);

// In protobuf's own JSON, which clients of every language read back: fields under their names in the .proto files, also
// those that are zero; 64-bit numbers as texts, since JavaScript's numbers would round them; times in RFC 3339; bytes
// in base64.
absl::StatusOr<std::string> WriteJson(const google::protobuf::Message& message);

// {"error": {"code": "NOT_FOUND", "reason": "RESOURCE_NOT_FOUND", "message": "..."}}, and the HTTP status for it.
std::string ErrorJson(const absl::Status& status);
int HttpStatusOf(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_WEB_MESSAGE_H_
