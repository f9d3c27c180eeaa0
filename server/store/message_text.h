// How messages and times stand in the store's columns.
#ifndef DPAR_SERVER_STORE_MESSAGE_TEXT_H_
#define DPAR_SERVER_STORE_MESSAGE_TEXT_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/database.h"

namespace dpar {

// A message as JSON. Doubles round-trip.
absl::StatusOr<std::string> MessageToText(const google::protobuf::Message& message);
// DATA_LOSS / STORE_CORRUPT when the text is not that message.
absl::Status TextToMessage(const std::string& text, google::protobuf::Message& message);

// A message in base64, for what is read far more often than by people: a twentieth of what JSON takes to read.
std::string PackMessage(const google::protobuf::Message& message);
// DATA_LOSS / STORE_CORRUPT when the text is not that message.
absl::Status UnpackMessage(const std::string& text, google::protobuf::Message& message);

google::protobuf::Timestamp ToTimestamp(int64_t microseconds);
google::protobuf::Duration ToDuration(absl::Duration duration);
int64_t ToMicroseconds(const google::protobuf::Timestamp& timestamp);

// A column that may be NULL.
Value TextOrNull(const std::string& text);
Value TimeOrNull(bool present, const google::protobuf::Timestamp& timestamp);

// NOT_FOUND / RESOURCE_NOT_FOUND, in the same words for what is absent and for what the caller may not know of.
absl::Status ResourceNotFound(const std::string& name);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_MESSAGE_TEXT_H_
