#include "client/cli/json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace dpar {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Timestamp;

bool IsShown(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) {
    return true;
  }
  const bool may_be_absent = field.has_presence() || field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
  return !may_be_absent || message.GetReflection()->HasField(message, &field);
}

Json ElementJson(const Message& message, const FieldDescriptor& field, int i) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetRepeatedDouble(message, &field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetRepeatedString(message, &field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumeratorLabel(*reflection.GetRepeatedEnum(message, &field, i));
    default:
      return ResourceJson(reflection.GetRepeatedMessage(message, &field, i));
  }
}

Json ListedJson(const Message& message, const FieldDescriptor& field) {
  Json list = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    list.push_back(ElementJson(message, field, i));
  }
  return list;
}

Json FieldJson(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    return ListedJson(message, field);
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumeratorLabel(*reflection.GetEnum(message, &field));
    default:
      break;
  }
  const Message& value = reflection.GetMessage(message, &field);
  if (const auto* time = dynamic_cast<const Timestamp*>(&value)) {
    return FormatTime(*time);
  }
  if (const auto* duration = dynamic_cast<const Duration*>(&value)) {
    return static_cast<double>(duration->seconds()) + 1e-9 * duration->nanos();
  }
  return ResourceJson(value);
}

std::string KeyOf(const FieldDescriptor& field) {
  const bool is_duration =
      field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field.message_type() == Duration::descriptor();
  return absl::StrCat(absl::StripPrefix(field.name(), "is_"), is_duration ? "_seconds" : "");
}

}  // namespace

Json ResourceJson(const Message& message) {
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (IsShown(message, field)) {
      json[KeyOf(field)] = FieldJson(message, field);
    }
  }
  return json;
}

Json ResourceJson(const v1::Job& job) {
  Json json = {{"name", job.name()},
               {"dataset", job.spec().dataset()},
               {"method", MethodLabel(job.plan().method())},
               {"epsilon", job.plan().epsilon()},
               {"delta", job.plan().delta()}};
  json.update(ResourceJson(static_cast<const Message&>(job)));
  json.erase("spec");
  return json;
}

}  // namespace dpar
