// The API's resources as the objects that --json prints.
#ifndef DPAR_CLIENT_CLI_JSON_H_
#define DPAR_CLIENT_CLI_JSON_H_

#include "dpar/v1/training.pb.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace dpar {

using Json = nlohmann::ordered_json;

// Every field under its name, in the order of the definition: enumerators as people type them, moments as text,
// durations in seconds as NAME_seconds, is_public as public. Whatever is unset or unspecified is left out; numbers,
// texts and truth values that are not declared optional are always there.
Json ResourceJson(const google::protobuf::Message& message);
// A job shows what its plan is about first, and not how it was asked for.
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
