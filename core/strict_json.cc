#include "core/strict_json.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "google/protobuf/util/json_util.h"

namespace dpar {

absl::StatusOr<Json> ParseStrictJson(absl::string_view what, absl::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return InvalidField(what, absl::StrCat("the ", what, " is longer than ", kMaxJsonBytes, " bytes"));
  }
  std::vector<std::set<std::string>> open_objects;
  bool repeated = false;
  bool shallow = true;
  const Json::parser_callback_t callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    shallow = shallow && depth <= kMaxJsonDepth;
    if (event == Json::parse_event_t::object_start) {
      open_objects.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_objects.pop_back();
    } else if (event == Json::parse_event_t::key) {
      repeated = repeated || !open_objects.back().insert(parsed.get<std::string>()).second;
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), callback, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return InvalidField(what, absl::StrCat("the ", what, " is not a JSON object"));
  }
  if (repeated || !shallow) {
    return InvalidField(what, absl::StrCat("the ", what, repeated ? " repeats a key" : " is nested too deeply"));
  }
  return json;
}

const Json* JsonFields::Find(const std::string& place) const {
  const Json::json_pointer pointer(place);
  return document_.contains(pointer) ? &document_.at(pointer) : nullptr;
}

bool JsonFields::IsNull(const std::string& place) const {
  const Json* found = Find(place);
  return found != nullptr && found->is_null();
}

void JsonFields::ReadMessage(const std::string& place, google::protobuf::Message& message) {
  const Json* found = Find(place);
  if (found == nullptr || !found->is_object() ||
      !google::protobuf::util::JsonStringToMessage(found->dump(), &message).ok()) {
    Fail(place);
  }
}

void JsonFields::Fail(const std::string& place) {
  status_.Update(InvalidField(place, absl::StrCat("the ", what_, "'s ", place, " is missing or malformed")));
}

}  // namespace dpar
