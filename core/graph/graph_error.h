// The two ways in which a file is refused. Messages name arrays and positions, never a value of the file.
#ifndef DPAR_CORE_GRAPH_GRAPH_ERROR_H_
#define DPAR_CORE_GRAPH_GRAPH_ERROR_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dpar {

// The `array` of errors in the container itself.
inline constexpr absl::string_view kWholeFile = "file";

// INVALID_ARGUMENT / INVALID_GRAPH: "<array> <fault>".
absl::Status GraphError(absl::string_view array, absl::string_view fault);

// The same for one entry: "<array>[<position>] <fault>".
absl::Status GraphErrorAt(absl::string_view array, int64_t position, absl::string_view fault);

// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED. `limit` is a field name of v1.Limits.
absl::Status LimitError(absl::string_view limit, int64_t maximum);

// INVALID_GRAPH (array: num_classes) when no number of classes is stated, INVALID_FIELD when it is not positive.
absl::Status CheckStatedClasses(std::optional<int64_t> classes);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_ERROR_H_
