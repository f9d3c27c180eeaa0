// YAML, and so JSON, as a tree in which every scalar is a text: `NO` stays a country. Made for files of strangers.
#ifndef DPAR_CORE_TABLE_YAML_TREE_H_
#define DPAR_CORE_TABLE_YAML_TREE_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/strict_json.h"

namespace dpar {

inline constexpr size_t kMaxYamlBytes = size_t{1} << 18;
inline constexpr size_t kMaxYamlDepth = 8;

// One document. INVALID_ARGUMENT / INVALID_FIELD `schema` with the line for what is not YAML, for anchors, aliases and
// tags, for repeated keys, keys that are not scalars, and for what exceeds the limits.
absl::StatusOr<Json> ParseYamlTree(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_YAML_TREE_H_
