#include "server/store/message_text.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/time_util.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {

using google::protobuf::util::TimeUtil;

namespace {

absl::Status Unreadable() {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a stored message could not be read back");
}

}  // namespace

absl::StatusOr<std::string> MessageToText(const google::protobuf::Message& message) {
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text).ok()) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "a message could not be stored");
  }
  return text;
}

absl::Status TextToMessage(const std::string& text, google::protobuf::Message& message) {
  if (!google::protobuf::util::JsonStringToMessage(text, &message).ok()) {
    return Unreadable();
  }
  return absl::OkStatus();
}

std::string PackMessage(const google::protobuf::Message& message) {
  return absl::Base64Escape(message.SerializeAsString());
}

absl::Status UnpackMessage(const std::string& text, google::protobuf::Message& message) {
  std::string bytes;
  return !text.empty() && absl::Base64Unescape(text, &bytes) && message.ParseFromString(bytes) ? absl::OkStatus()
                                                                                               : Unreadable();
}

google::protobuf::Timestamp ToTimestamp(int64_t microseconds) {
  return TimeUtil::MicrosecondsToTimestamp(microseconds);
}

google::protobuf::Duration ToDuration(absl::Duration duration) {
  return TimeUtil::MicrosecondsToDuration(absl::ToInt64Microseconds(duration));
}

int64_t ToMicroseconds(const google::protobuf::Timestamp& timestamp) {
  return TimeUtil::TimestampToMicroseconds(timestamp);
}

Value TextOrNull(const std::string& text) { return text.empty() ? Value() : Value(text); }

Value TimeOrNull(bool present, const google::protobuf::Timestamp& timestamp) {
  return present ? Value(ToMicroseconds(timestamp)) : Value();
}

absl::Status ResourceNotFound(const std::string& name) {
  return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, absl::StrCat("there is no ", name),
                   {{"resource", name}});
}

}  // namespace dpar
