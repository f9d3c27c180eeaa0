#include "core/message_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

// Whether a message can be without the field. A field that is declared `optional` has a oneof of its own, which is
// none.
bool MayBeAbsent(const FieldDescriptor* field) {
  return field->has_optional_keyword() || field->real_containing_oneof() != nullptr;
}

Json EnumToJson(const Message& message, const FieldDescriptor* field) {
  const int number = message.GetReflection()->GetEnumValue(message, field);
  const EnumValueDescriptor* value = field->enum_type()->FindValueByNumber(number);
  return value != nullptr ? Json(value->name()) : Json(number);  // a number is not taken back
}

Json ValueToJson(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  if (field->is_repeated()) {
    Json list = Json::array();
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      list.push_back(MessageToJson(reflection->GetRepeatedMessage(message, field, i)));
    }
    return list;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(message, field);
    default:
      return MessageToJson(reflection->GetMessage(message, field));
  }
}

// What ValueToJson gives.
void WriteValue(const Message& message, const FieldDescriptor* field, JsonText& json) {
  const Reflection* reflection = message.GetReflection();
  if (field->is_repeated()) {
    json.BeginList();
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      WriteMessage(reflection->GetRepeatedMessage(message, field, i), json);
    }
    json.EndList();
    return;
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return json.Value(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_INT32:
      return json.Value(reflection->GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return json.Value(reflection->GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return json.Value(reflection->GetBool(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return json.Value(reflection->GetString(message, field));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = reflection->GetEnumValue(message, field);
      const EnumValueDescriptor* value = field->enum_type()->FindValueByNumber(number);
      return value != nullptr ? json.Value(value->name()) : json.Value(number);
    }
    default:
      return WriteMessage(reflection->GetMessage(message, field), json);
  }
}

// Whether the field is written at all.
bool IsWritten(const Message& message, const FieldDescriptor* field, const std::set<std::string>& left_out) {
  const bool present = !MayBeAbsent(field) || message.GetReflection()->HasField(message, field);
  return present && !left_out.contains(field->name());
}

absl::Status Mistyped(const std::string& path, absl::string_view expected) {
  return InvalidField(path, absl::StrCat(path, " must be ", expected));
}

bool IsIntegerWithin(const Json& json, int64_t low, int64_t high) {
  if (json.is_number_unsigned()) {
    return json.get<uint64_t>() <= static_cast<uint64_t>(high);
  }
  return json.is_number_integer() && json.get<int64_t>() >= low && json.get<int64_t>() <= high;
}

absl::Status ReadMessage(const Json& json, const std::string& path, int depth, const std::set<std::string>& left_out,
                         Message& message);

absl::Status ReadList(const Json& json, const std::string& path, int depth, const FieldDescriptor* field,
                      Message& message) {
  if (!json.is_array() || json.size() > kMaxListedMessages) {
    return Mistyped(path, absl::StrCat("a list of at most ", kMaxListedMessages, " objects"));
  }
  for (size_t i = 0; i < json.size(); ++i) {
    Message& element = *message.GetReflection()->AddMessage(&message, field);
    DPAR_RETURN_IF_ERROR(ReadMessage(json[i], absl::StrCat(path, "[", i, "]"), depth + 1, {}, element));
  }
  return absl::OkStatus();
}

absl::Status ReadEnum(const Json& json, const std::string& path, const FieldDescriptor* field, Message& message) {
  const EnumValueDescriptor* value =
      json.is_string() ? field->enum_type()->FindValueByName(json.get<std::string>()) : nullptr;
  if (value == nullptr) {
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(field->enum_type()->value_count()));
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      names.push_back(field->enum_type()->value(i)->name());
    }
    return Mistyped(path, absl::StrCat("one of ", absl::StrJoin(names, ", ")));
  }
  message.GetReflection()->SetEnum(&message, field, value);
  return absl::OkStatus();
}

absl::Status ReadValue(const Json& json, const std::string& path, int depth, const FieldDescriptor* field,
                       Message& message) {
  const Reflection* reflection = message.GetReflection();
  if (field->is_repeated()) {
    return ReadList(json, path, depth, field, message);
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!json.is_number()) {
        return Mistyped(path, "a number");
      }
      reflection->SetDouble(&message, field, json.get<double>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT32:
      if (!IsIntegerWithin(json, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max())) {
        return Mistyped(path, "an integer of 32 bits");
      }
      reflection->SetInt32(&message, field, json.get<int32_t>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT64:
      if (!IsIntegerWithin(json, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max())) {
        return Mistyped(path, "an integer");
      }
      reflection->SetInt64(&message, field, json.get<int64_t>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!json.is_boolean()) {
        return Mistyped(path, "true or false");
      }
      reflection->SetBool(&message, field, json.get<bool>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_STRING:
      if (!json.is_string()) {
        return Mistyped(path, "a string");
      }
      reflection->SetString(&message, field, json.get<std::string>());
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM:
      return ReadEnum(json, path, field, message);
    default:
      return ReadMessage(json, path, depth + 1, {}, *reflection->MutableMessage(&message, field));
  }
}

// Exactly one of each choice.
absl::Status CheckChoices(const Json& json, const std::string& path, const Descriptor* descriptor) {
  for (int i = 0; i < descriptor->real_oneof_decl_count(); ++i) {
    const OneofDescriptor* choice = descriptor->oneof_decl(i);
    std::vector<std::string> names;
    int chosen = 0;
    for (int j = 0; j < choice->field_count(); ++j) {
      names.push_back(choice->field(j)->name());
      chosen += json.contains(names.back()) ? 1 : 0;
    }
    if (chosen != 1) {
      return Mistyped(path, absl::StrCat("an object with one of ", absl::StrJoin(names, ", ")));
    }
  }
  return absl::OkStatus();
}

// Nothing unknown and nothing missing.
absl::Status CheckKeys(const Json& json, const std::string& path, const std::set<std::string>& left_out,
                       const Descriptor* descriptor) {
  const auto most = static_cast<size_t>(descriptor->field_count()) - left_out.size();
  if (json.size() > most) {
    return Mistyped(path, absl::StrCat("an object of at most ", most, " fields"));
  }
  for (const auto& [key, value] : json.items()) {
    if (descriptor->FindFieldByName(key) == nullptr || left_out.contains(key)) {
      const std::string key_path = absl::StrCat(path, ".", key);
      return InvalidField(key_path, absl::StrCat(key_path, " is not known"));
    }
  }
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (!MayBeAbsent(field) && !left_out.contains(field->name()) && !json.contains(field->name())) {
      return Mistyped(path, absl::StrCat("an object with the field ", field->name()));
    }
  }
  return CheckChoices(json, path, descriptor);
}

absl::Status ReadMessage(const Json& json, const std::string& path, int depth, const std::set<std::string>& left_out,
                         Message& message) {
  if (!json.is_object() || depth > kMaxMessageDepth) {
    return Mistyped(path, absl::StrCat("an object, at most ", kMaxMessageDepth, " deep"));
  }
  const Descriptor* descriptor = message.GetDescriptor();
  DPAR_RETURN_IF_ERROR(CheckKeys(json, path, left_out, descriptor));
  for (const auto& [key, value] : json.items()) {
    DPAR_RETURN_IF_ERROR(
        ReadValue(value, absl::StrCat(path, ".", key), depth, descriptor->FindFieldByName(key), message));
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const Message& message, const std::string& path, int depth,
                          const std::set<std::string>& left_out);

// A field that is present and no list.
absl::Status CheckValue(const Message& message, const std::string& path, int depth, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  const auto field_path = [&] { return absl::StrCat(path, ".", field->name()); };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return std::isfinite(reflection->GetDouble(message, field)) ? absl::OkStatus()
                                                                  : Mistyped(field_path(), "a number");
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = reflection->GetString(message, field);
      const bool ascii =
          std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
      return ascii ? absl::OkStatus() : Mistyped(field_path(), "ASCII");
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = reflection->GetEnumValue(message, field);
      return field->enum_type()->FindValueByNumber(number) != nullptr ? absl::OkStatus()
                                                                      : Mistyped(field_path(), "a known enumerator");
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckMessage(reflection->GetMessage(message, field), field_path(), depth + 1, {});
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckMessage(const Message& message, const std::string& path, int depth,
                          const std::set<std::string>& left_out) {
  if (depth > kMaxMessageDepth) {
    return Mistyped(path, absl::StrCat("an object, at most ", kMaxMessageDepth, " deep"));
  }
  const Descriptor* descriptor = message.GetDescriptor();
  const Reflection* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->real_oneof_decl_count(); ++i) {
    if (!reflection->HasOneof(message, descriptor->oneof_decl(i))) {
      return Mistyped(path, absl::StrCat("an object with one of its choices of ", descriptor->oneof_decl(i)->name()));
    }
  }
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (left_out.contains(field->name()) || (MayBeAbsent(field) && !reflection->HasField(message, field))) {
      continue;
    }
    if (!field->is_repeated()) {
      DPAR_RETURN_IF_ERROR(CheckValue(message, path, depth, field));
      continue;
    }
    const int size = reflection->FieldSize(message, field);
    if (static_cast<size_t>(size) > kMaxListedMessages) {
      return Mistyped(absl::StrCat(path, ".", field->name()),
                      absl::StrCat("a list of at most ", kMaxListedMessages, " objects"));
    }
    for (int j = 0; j < size; ++j) {
      DPAR_RETURN_IF_ERROR(CheckMessage(reflection->GetRepeatedMessage(message, field, j),
                                        absl::StrCat(path, ".", field->name(), "[", j, "]"), depth + 1, {}));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Json MessageToJson(const Message& message, const std::set<std::string>& left_out) {
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (IsWritten(message, field, left_out)) {
      json[field->name()] = ValueToJson(message, field);
    }
  }
  return json;
}

void WriteMessage(const Message& message, JsonText& json, const std::set<std::string>& left_out) {
  json.BeginObject();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (IsWritten(message, field, left_out)) {
      json.Key(field->name());
      WriteValue(message, field, json);
    }
  }
  json.EndObject();
}

absl::Status MessageFromJson(const Json& json, const std::string& path, Message& message,
                             const std::set<std::string>& left_out) {
  return ReadMessage(json, path, 1, left_out, message);
}

absl::Status CheckMessageForJson(const Message& message, const std::string& path,
                                 const std::set<std::string>& left_out) {
  return CheckMessage(message, path, 1, left_out);
}

}  // namespace dpar
