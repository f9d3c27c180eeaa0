#include "server/page/web_message.h"

#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

using google::protobuf::FieldDescriptor;

absl::Status SetField(const FieldDescriptor& field, const std::string& text, google::protobuf::Message& request) {
  const google::protobuf::Reflection& reflection = *request.GetReflection();
  int32_t small = 0;
  int64_t large = 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&request, &field, text);
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT32:
      if (absl::SimpleAtoi(text, &small)) {
        reflection.SetInt32(&request, &field, small);
        return absl::OkStatus();
      }
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      if (absl::SimpleAtoi(text, &large)) {
        reflection.SetInt64(&request, &field, large);
        return absl::OkStatus();
      }
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text == "true" || text == "false") {
        reflection.SetBool(&request, &field, text == "true");
        return absl::OkStatus();
      }
      break;
    default:
      return InvalidField(field.name(), absl::StrCat(field.name(), " cannot be a parameter of a query"));
  }
  return InvalidField(field.name(), absl::StrCat(field.name(), " must be a ", field.cpp_type_name()));
}

}  // namespace

absl::Status ReadQuery(const std::multimap<std::string, std::string>& query, google::protobuf::Message& request) {
  std::set<std::string> seen;
  for (const auto& [name, text] : query) {
    const FieldDescriptor* const field = request.GetDescriptor()->FindFieldByName(name);
    // The name is the caller's, and may be anything.
    if (field == nullptr || field->is_repeated()) {
      return InvalidField(
          "query", absl::StrCat("the query has a parameter that is no field of ", request.GetDescriptor()->name()));
    }
    if (!seen.insert(name).second) {
      return InvalidField(name, absl::StrCat("the query has ", name, " more than once"));
    }
    DPAR_RETURN_IF_ERROR(SetField(*field, text, request));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WriteJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) {
    return absl::InternalError("a message cannot be written as JSON");
  }
  return json;
}

std::string ErrorJson(const absl::Status& status) {
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(status);
  const nlohmann::ordered_json json = {{"error",
                                        {{"code", absl::StatusCodeToString(status.code())},
                                         {"reason", info.has_value() ? info->reason() : ""},
                                         {"message", std::string(status.message())}}}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace dpar
