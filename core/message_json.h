// Protocol buffers as JSON that has one form, for documents that are signed or shown: every field under its own name,
// in the order of the definition, with numbers that come back as the same bits.
//
// Fields may be double, int32, int64, bool, string, enum (by name), messages, or lists of messages. A field that is
// declared `optional` or belongs to a oneof is written only when it is present, and of a oneof exactly one is. All
// others are always written, also when they are zero, and must be there to be read.
#ifndef DPAR_CORE_MESSAGE_JSON_H_
#define DPAR_CORE_MESSAGE_JSON_H_

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "core/json_text.h"
#include "google/protobuf/message.h"

namespace dpar {

// Limits on what is read: messages within messages, and messages in one list.
inline constexpr int kMaxMessageDepth = 32;
inline constexpr size_t kMaxListedMessages = 4096;

// `left_out` names fields of `message` itself that are not written.
nlohmann::ordered_json MessageToJson(const google::protobuf::Message& message,
                                     const std::set<std::string>& left_out = {});

// The same as text.
void WriteMessage(const google::protobuf::Message& message, JsonText& json, const std::set<std::string>& left_out = {});

// Reads what MessageToJson writes into an empty message, keys in any order. INVALID_ARGUMENT naming the path, from
// `path` on, for a field that is unknown, missing, mistyped or left out.
absl::Status MessageFromJson(const nlohmann::ordered_json& json, const std::string& path,
                             google::protobuf::Message& message, const std::set<std::string>& left_out = {});

// OK only if MessageFromJson takes back what MessageToJson writes of this message: doubles are finite, enumerators
// known, texts ASCII, of every oneof one field is set, and the limits above hold. Far cheaper than to write and read
// it. INVALID_ARGUMENT names the path.
absl::Status CheckMessageForJson(const google::protobuf::Message& message, const std::string& path,
                                 const std::set<std::string>& left_out = {});

}  // namespace dpar

#endif  // DPAR_CORE_MESSAGE_JSON_H_
