#ifndef DPAR_SERVER_STORE_MESSAGE_TEXT_H_
#define DPAR_SERVER_STORE_MESSAGE_TEXT_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/database.h"

namespace dpar {

// As JSON; doubles round-trip. Reading back: DATA_LOSS / STORE_CORRUPT when the text is not that message.
absl::StatusOr<std::string> MessageToText(const google::protobuf::Message& message);
absl::Status TextToMessage(const std::string& text, google::protobuf::Message& message);

// In base64; reading takes a twentieth of JSON's time. For columns that people rarely read. Errors as above.
std::string PackMessage(const google::protobuf::Message& message);
absl::Status UnpackMessage(const std::string& text, google::protobuf::Message& message);

google::protobuf::Timestamp ToTimestamp(int64_t microseconds);
google::protobuf::Duration ToDuration(absl::Duration duration);
int64_t ToMicroseconds(const google::protobuf::Timestamp& timestamp);

Value TextOrNull(const std::string& text);
Value TimeOrNull(bool present, const google::protobuf::Timestamp& timestamp);

// NOT_FOUND / RESOURCE_NOT_FOUND, in the same words for an absent and for a forbidden resource.
absl::Status ResourceNotFound(const std::string& name);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_MESSAGE_TEXT_H_
