#ifndef DPAR_CLIENT_CLI_JSON_H_
#define DPAR_CLIENT_CLI_JSON_H_

#include "dpar/v1/training.pb.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace dpar {

using Json = nlohmann::ordered_json;

// For --json: every field under its name, in definition order; enumerators as typed, times as text, durations as
// NAME_seconds, is_public as public. Leaves out unset fields, except non-optional numbers, texts and booleans.
Json ResourceJson(const google::protobuf::Message& message);
// A job begins with the main figures of its plan, and leaves out `spec`.
Json ResourceJson(const v1::Job& job);

template <typename Resources>
Json ListJson(const Resources& resources) {
  Json list = Json::array();
  for (const auto& resource : resources) {
    list.push_back(ResourceJson(resource));
  }
  return list;
}

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_JSON_H_
