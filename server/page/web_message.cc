#include "server/page/web_message.h"

#include <google/protobuf/util/json_util.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {

absl::Status ReadQuery(const std::multimap<std::string, std::string>& query, google::protobuf::Message& request) {
  using google::protobuf::FieldDescriptor;
  std::set<std::string> seen;
  const std::unique_ptr<google::protobuf::Message> one(request.New());
  for (const auto& [name, text] : query) {
    const FieldDescriptor* const field = request.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated() || field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return InvalidField(
          "query", absl::StrCat("the query has a parameter that is no field of ", request.GetDescriptor()->name()));
    }
    if (!seen.insert(name).second) {
      return InvalidField(name, absl::StrCat("the query has ", name, " more than once"));
    }
    const nlohmann::json json = {{name, text}};
    const std::string dumped = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    one->Clear();
    // Protobuf would take "1" and "t" for true.
    const bool no_truth = field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL && text != "true" && text != "false";
    if (no_truth || !google::protobuf::util::JsonStringToMessage(dumped, one.get()).ok()) {
      return InvalidField(name, absl::StrCat(name, " must be a ", field->cpp_type_name()));
    }
    request.MergeFrom(*one);
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
