#include "tests/lab/option_setting.h"

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/error.h"

namespace dpar::lab {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

std::string FieldNames() {
  const google::protobuf::Descriptor& type = *v1::TrainingOptions::descriptor();
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(type.field_count()));
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

// The values of an enum but the first, which means that nothing was chosen.
std::string ValueNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) {
    names.push_back(type.value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

absl::Status NotA(const FieldDescriptor& field, absl::string_view what, const std::string& value) {
  return InvalidField("set", absl::StrCat("set ", field.name(), " takes ", what, "; not '", value, "'"));
}

}  // namespace

absl::Status SetOption(const std::string& typed, v1::TrainingOptions& options) {
  const size_t equals = typed.find('=');
  const std::string name = typed.substr(0, equals);
  const FieldDescriptor* field = v1::TrainingOptions::descriptor()->FindFieldByName(name);
  if (equals == std::string::npos || field == nullptr) {
    return InvalidField("set", absl::StrCat("set takes NAME=VALUE, NAME one of ", FieldNames(), "; not '", typed, "'"));
  }
  const std::string value = typed.substr(equals + 1);
  const Reflection& fields = *options.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double number = 0;
      if (!absl::SimpleAtod(value, &number)) {
        return NotA(*field, "a number", value);
      }
      fields.SetDouble(&options, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) {
        return NotA(*field, "a whole number", value);
      }
      fields.SetInt64(&options, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      if (value != "true" && value != "false") {
        return NotA(*field, "true or false", value);
      }
      fields.SetBool(&options, field, value == "true");
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumDescriptor& type = *field->enum_type();
      const auto* chosen = type.FindValueByName(absl::AsciiStrToUpper(value));
      if (chosen == nullptr || chosen->index() == 0) {
        return NotA(*field, absl::StrCat("one of ", ValueNames(type)), value);
      }
      fields.SetEnum(&options, field, chosen);
      return absl::OkStatus();
    }
    default:
      return InvalidField("set", absl::StrCat("set cannot give ", name, " a value"));
  }
}

}  // namespace dpar::lab
