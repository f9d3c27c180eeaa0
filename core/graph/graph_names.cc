#include "core/graph/graph_names.h"

#include <algorithm>
#include <utility>

#include "core/graph/graph_error.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr char kNodeIds[] = "node_ids";
constexpr char kClassNames[] = "class_names";
constexpr char kSchema[] = "schema";
constexpr size_t kMaxSchemaBytes = size_t{1} << 16;

absl::StatusOr<NodeIds> ReadTexts(NpzFile& file, const char* name, int64_t count) {
  NodeIds texts;
  if (!file.Contains(name)) {
    return texts;
  }
  DPAR_ASSIGN_OR_RETURN(const NpyArray array, file.ReadArray(name));
  const auto* bytes = std::get_if<std::string>(&array.data);
  if (bytes == nullptr || array.shape != std::vector<int64_t>{count}) {
    return GraphError(name, "must be an array of byte strings (dtype 'S', UTF-8) with the right number of them");
  }
  const size_t width = bytes->size() / static_cast<size_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    absl::string_view text = absl::string_view(*bytes).substr(static_cast<size_t>(i) * width, width);
    text = text.substr(0, text.find_last_not_of('\0') + 1);
    if (text.empty() || text.size() > kMaxNodeIdBytes || text.find('\0') != absl::string_view::npos) {
      return GraphErrorAt(name, i, "must have 1 to 128 bytes, none of them zero");
    }
    texts.Add(text);
  }
  return texts;
}

// Each as wide as the longest.
std::string PaddedTexts(const NodeIds& texts) {
  const size_t width = texts.longest();
  std::string padded(width * static_cast<size_t>(texts.size()), '\0');
  for (int64_t i = 0; i < texts.size(); ++i) {
    const absl::string_view text = texts[i];
    std::copy(text.begin(), text.end(), padded.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * width));
  }
  return padded;
}

}  // namespace

size_t NodeIds::longest() const {
  size_t longest = 0;
  for (int64_t node = 0; node < size(); ++node) {
    longest = std::max(longest, (*this)[node].size());
  }
  return longest;
}

NodeIds NodeIds::Select(std::span<const int32_t> nodes) const {
  NodeIds selected;
  for (const int32_t node : nodes) {
    selected.Add((*this)[node]);
  }
  return selected;
}

absl::StatusOr<GraphNames> ReadGraphNames(const std::string& path, int64_t node_count, int64_t class_count) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, NpzLimits()));
  GraphNames names;
  DPAR_ASSIGN_OR_RETURN(names.ids, ReadTexts(file, kNodeIds, node_count));
  DPAR_ASSIGN_OR_RETURN(const NodeIds classes, ReadTexts(file, kClassNames, class_count));
  for (int64_t i = 0; i < classes.size(); ++i) {
    names.classes.emplace_back(classes[i]);
  }
  if (file.Contains(kSchema)) {
    DPAR_ASSIGN_OR_RETURN(NpyArray schema, file.ReadArray(kSchema));
    auto* text = std::get_if<std::string>(&schema.data);
    if (text == nullptr || !schema.shape.empty() || text->size() > kMaxSchemaBytes) {
      return GraphError(kSchema, "must be a text of at most 65,536 bytes");
    }
    names.schema = std::move(*text);
  }
  return names;
}

NameArrays::NameArrays(const GraphNames& names) : names_(names), ids_(PaddedTexts(names.ids)) {
  NodeIds classes;
  for (const std::string& name : names.classes) {
    classes.Add(name);
  }
  classes_ = PaddedTexts(classes);
}

void NameArrays::AddTo(std::map<std::string, NpyView>& arrays) const {
  if (!names_.ids.empty()) {
    arrays[kNodeIds] = NpyView{{names_.ids.size()}, absl::string_view(ids_)};
  }
  if (!names_.classes.empty()) {
    arrays[kClassNames] = NpyView{{static_cast<int64_t>(names_.classes.size())}, absl::string_view(classes_)};
  }
  if (!names_.schema.empty()) {
    arrays[kSchema] = NpyView{{}, absl::string_view(names_.schema)};
  }
}

}  // namespace dpar
