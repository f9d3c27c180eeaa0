// Protocol buffers as JSON in one canonical form, for documents that are signed or shown: fields under their own names,
// in the order of the definition, with numbers that come back as the same bits. protobuf's reader takes it back.
//
// Fields may be double, int32, int64, bool, string, enum (by name), messages, or lists of messages. An `optional` field
// or one of a oneof is written only when present, and of a oneof exactly one is; all others always.
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
