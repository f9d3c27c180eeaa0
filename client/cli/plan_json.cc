#include "client/cli/plan_json.h"

#include <string>

#include "client/cli/labels.h"
#include "core/message_json.h"

namespace dpar {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

// Respells the enumerators of a message's JSON. Events have none.
void SpellEnumerators(const Descriptor& type, Json& json) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const auto member = json.find(field.name());
    if (member == json.end()) {
      continue;
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM && member->is_string()) {
      const auto* value = field.enum_type()->FindValueByName(member->get<std::string>());
      if (value != nullptr && value->number() != 0) {
        *member = EnumeratorLabel(*value);
      } else {
        json.erase(member);
      }
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && member->is_object()) {
      SpellEnumerators(*field.message_type(), *member);
    }
  }
}

}  // namespace

nlohmann::ordered_json PlanJson(const v1::Plan& plan) {
  Json json = MessageToJson(plan, plan.has_event() ? std::set<std::string>() : std::set<std::string>{"event"});
  SpellEnumerators(*plan.GetDescriptor(), json);
  return json;
}

}  // namespace dpar
