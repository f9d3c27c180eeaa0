#include "core/message_json.h"

namespace dpar {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field that is declared `optional` has a synthetic oneof of its own.
bool MayBeAbsent(const FieldDescriptor* field) {
  return field->has_optional_keyword() || field->real_containing_oneof() != nullptr;
}

Json EnumToJson(const Message& message, const FieldDescriptor* field) {
  const int number = message.GetReflection()->GetEnumValue(message, field);
  const EnumValueDescriptor* value = field->enum_type()->FindValueByNumber(number);
  return value != nullptr ? Json(value->name()) : Json(nullptr);  // which is not taken back
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

bool IsWritten(const Message& message, const FieldDescriptor* field, const std::set<std::string>& left_out) {
  const bool present = !MayBeAbsent(field) || message.GetReflection()->HasField(message, field);
  return present && !left_out.contains(field->name());
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

}  // namespace dpar
