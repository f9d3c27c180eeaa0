#include "core/certificate/strict_json.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {
namespace {

const Json& EmptyObject() {
  static const Json empty = Json::object();
  return empty;
}

const Json& EmptyArray() {
  static const Json empty = Json::array();
  return empty;
}

bool IsInteger(const Json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
}

}  // namespace

absl::StatusOr<Json> ParseStrictJson(absl::string_view what, absl::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return InvalidField(what, absl::StrCat("the ", what, " is longer than ", kMaxJsonBytes, " bytes"));
  }
  std::vector<std::set<std::string>> open_objects;
  bool repeated = false;
  const Json::parser_callback_t callback = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
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
  if (repeated) {
    return InvalidField(what, absl::StrCat("the ", what, " repeats a key"));
  }
  return json;
}

JsonReader::JsonReader(const Json& object, std::string path, absl::Status& status)
    : object_(object), path_(std::move(path)), status_(status) {}

void JsonReader::Fail(const std::string& key, absl::string_view expected) const {
  if (status_.ok()) {
    const std::string field = path_.empty() ? key : absl::StrCat(path_, ".", key);
    status_ = InvalidField(field, absl::StrCat(field, " must be ", expected));
  }
}

const Json* JsonReader::Find(const std::string& key, bool (*is_type)(const Json&), absl::string_view expected) const {
  const auto field = object_.find(key);
  if (field == object_.end() || !is_type(*field)) {
    Fail(key, expected);
    return nullptr;
  }
  return &*field;
}

const Json& JsonReader::RawObject(const std::string& key) const {
  const Json* value = Find(
      key, [](const Json& json) { return json.is_object(); }, "an object");
  return value != nullptr ? *value : EmptyObject();
}

JsonReader JsonReader::Object(const std::string& key) const {
  return {RawObject(key), path_.empty() ? key : absl::StrCat(path_, ".", key), status_};
}

const Json& JsonReader::Array(const std::string& key) const {
  const Json* value = Find(
      key, [](const Json& json) { return json.is_array(); }, "an array");
  return value != nullptr ? *value : EmptyArray();
}

std::string JsonReader::Text(const std::string& key) const {
  const Json* value = Find(
      key, [](const Json& json) { return json.is_string(); }, "a string");
  return value != nullptr ? value->get<std::string>() : std::string();
}

double JsonReader::Number(const std::string& key) const {
  const Json* value = Find(
      key, [](const Json& json) { return json.is_number(); }, "a number");
  return value != nullptr ? value->get<double>() : 0;
}

int64_t JsonReader::Integer(const std::string& key) const {
  const Json* value = Find(key, &IsInteger, "an integer");
  return value != nullptr ? value->get<int64_t>() : 0;
}

bool JsonReader::Boolean(const std::string& key) const {
  const Json* value = Find(
      key, [](const Json& json) { return json.is_boolean(); }, "true or false");
  return value != nullptr && value->get<bool>();
}

bool JsonReader::Has(const std::string& key) const {
  const auto field = object_.find(key);
  return field != object_.end() && !field->is_null();
}

}  // namespace dpar
