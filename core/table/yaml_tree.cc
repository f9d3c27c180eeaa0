#include "core/table/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/table/utf8.h"

namespace dpar {
namespace {

// yaml-cpp reports by exceptions; this one ends its parser.
struct Refusal {
  int line;
  std::string fault;
};

// Builds the tree and refuses at the first event that the tree has no place for, so that nothing grows beyond the text.
class TreeBuilder final : public YAML::EventHandler {
 public:
  Json Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(mark, "", anchor, Json("")); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { Refuse(mark, "aliases are not read"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Add(mark, tag, anchor, Json(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    Json value;
    std::optional<std::string> key;
    int line = 0;
  };

  [[noreturn]] static void Refuse(const YAML::Mark& mark, std::string fault) {
    throw Refusal{mark.line + 1, std::move(fault)};
  }

  static void CheckPlain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) {
      Refuse(mark, "anchors are not read");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      Refuse(mark, "tags are not read");
    }
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json empty) {
    CheckPlain(mark, tag, anchor);
    if (levels_.size() >= kMaxYamlDepth) {
      Refuse(mark, "it is nested too deeply");
    }
    if (!levels_.empty() && levels_.back().value.is_object() && !levels_.back().key.has_value()) {
      Refuse(mark, "a key must be a text");
    }
    levels_.push_back({std::move(empty), std::nullopt, mark.line});
  }

  void Close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    YAML::Mark mark;
    mark.line = level.line;
    Place(mark, std::move(level.value));
  }

  void Add(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json scalar) {
    CheckPlain(mark, tag, anchor);
    Place(mark, std::move(scalar));
  }

  void Place(const YAML::Mark& mark, Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else if (!level.key.has_value()) {
      level.key = value.get<std::string>();
      if (level.value.contains(*level.key)) {
        Refuse(mark, absl::StrCat("the key '", *level.key, "' stands twice"));
      }
    } else {
      level.value[*std::exchange(level.key, std::nullopt)] = std::move(value);
    }
  }

  Json root_ = Json("");
  std::vector<Level> levels_;
};

absl::Status SchemaError(int line, absl::string_view fault) {
  return InvalidField("schema", absl::StrCat("the schema is not read: line ", line, ": ", fault));
}

}  // namespace

absl::StatusOr<Json> ParseYamlTree(absl::string_view text) {
  if (text.size() > kMaxYamlBytes) {
    return InvalidField("schema", absl::StrCat("the schema has more than ", kMaxYamlBytes, " bytes"));
  }
  if (!IsUtf8(text) || text.find('\0') != absl::string_view::npos) {
    return InvalidField("schema", "the schema is not a text in UTF-8");
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    if (!parser.HandleNextDocument(builder)) {
      return InvalidField("schema", "the schema is empty");
    }
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return InvalidField("schema", "the schema holds more than one document");
    }
    return builder.Take();
  } catch (const Refusal& refusal) {
    return SchemaError(refusal.line, refusal.fault);
  } catch (const YAML::Exception& error) {
    return SchemaError(error.mark.line + 1, error.msg);
  }
}

}  // namespace dpar
