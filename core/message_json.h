// Protocol buffers as JSON that has one form, for documents that are signed or shown: every field under its own name,
// in the order of the definition, with numbers that come back as the same bits.
//
// Fields may be double, int32, int64, bool, string, enum (by name), messages, or lists of messages. A field that is
// declared `optional` or belongs to a oneof is written only when it is present, and of a oneof exactly one is. All
// others are always written, also when they are zero. protobuf's own reader of JSON takes it back.
#ifndef DPAR_CORE_MESSAGE_JSON_H_
#define DPAR_CORE_MESSAGE_JSON_H_

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "google/protobuf/message.h"

namespace dpar {

// `left_out` names fields of `message` itself that are not written.
nlohmann::ordered_json MessageToJson(const google::protobuf::Message& message,
                                     const std::set<std::string>& left_out = {});

}  // namespace dpar

#endif  // DPAR_CORE_MESSAGE_JSON_H_
