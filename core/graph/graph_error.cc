#include "core/graph/graph_error.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {

absl::Status GraphError(absl::string_view array, absl::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_GRAPH, absl::StrCat(array, " ", fault),
                   {{"array", std::string(array)}});
}

absl::Status GraphErrorAt(absl::string_view array, int64_t position, absl::string_view fault) {
  return MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_GRAPH,
                   absl::StrCat(array, "[", position, "] ", fault),
                   {{"array", std::string(array)}, {"position", absl::StrCat(position)}});
}

absl::Status LimitError(absl::string_view limit, int64_t maximum) {
  return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                   absl::StrCat("the graph exceeds ", limit, ", which is ", maximum),
                   {{"limit", std::string(limit)}, {"maximum", absl::StrCat(maximum)}});
}

absl::Status CheckStatedClasses(std::optional<int64_t> classes) {
  if (!classes.has_value()) {
    return GraphError("num_classes",
                      "is missing. The number of classes is public and must be known without the labels; state it with "
                      "--classes");
  }
  return *classes < 1 ? InvalidField("classes", "the number of classes must be above 0") : absl::OkStatus();
}

}  // namespace dpar
