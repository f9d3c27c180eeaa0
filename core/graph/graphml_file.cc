#include "core/graph/graphml_file.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/graph/canonical_features.h"
#include "core/graph/edge_list.h"
#include "core/graph/graph_error.h"
#include "core/graph/text_output.h"
#include "core/graph/xml_elements.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr absl::string_view kArray = "graphml";

struct Key {
  enum class Meaning { kIgnored, kFeature, kLabel, kClassCount };
  Meaning meaning = Meaning::kIgnored;
  int32_t column = 0;           // of a feature
  bool is_edge_weight = false;  // a key for all elements can be this besides
};

std::string Attribute(const XmlElement& event, const std::string& name) {
  const auto found = event.attributes.find(name);
  return found == event.attributes.end() ? "" : found->second;
}

bool IsNumberType(const std::string& type) {
  return type == "double" || type == "float" || type == "int" || type == "long" || type == "boolean";
}

std::optional<float> ParseNumber(absl::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true" ? 1.0F : 0.0F;
  }
  float value = 0;
  return absl::SimpleAtof(text, &value) && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

class Reader {
 public:
  Reader(const GraphLimits& limits, std::optional<int64_t> classes)
      : limits_(limits), classes_(classes), classes_given_(classes.has_value()) {}

  absl::StatusOr<ImportedGraph> Read(const std::string& path) {
    DPAR_RETURN_IF_ERROR(ReadXml(
        path, kArray,
        [this](const XmlElement& element) -> absl::Status {
          line_ = element.line;
          DPAR_RETURN_IF_ERROR(Start(element));
          path_.push_back(element.name);
          return absl::OkStatus();
        },
        [this](const XmlElement& element) {
          line_ = element.line;
          path_.pop_back();
          return End(element.name, std::string(absl::StripAsciiWhitespace(element.text)));
        }));
    return Finish();
  }

 private:
  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const { return GraphErrorAt(kArray, line_, fault); }
  [[nodiscard]] bool Within(absl::string_view parent) const { return !path_.empty() && path_.back() == parent; }

  absl::Status Start(const XmlElement& event) {
    if (path_.empty()) {
      return event.name == "graphml" ? absl::OkStatus() : Refuse("is not GraphML");
    }
    if (event.name == "key" && Within("graphml")) {
      return StartKey(event);
    }
    if (event.name == "graph") {
      return Within("graphml") && !std::exchange(has_graph_, true) ? absl::OkStatus()
                                                                   : Refuse("begins a second graph or a nested one");
    }
    if (event.name == "node" || event.name == "edge") {
      // Elsewhere its end tag would count as one of the graph's.
      if (!Within("graph")) {
        return Refuse("holds a node or an edge that is not directly within the graph");
      }
      return event.name == "node" ? StartNode(event) : StartEdge(event);
    }
    if (event.name == "hyperedge" || event.name == "port") {
      return Refuse("holds a hyperedge or a port, which a graph of ours has none of");
    }
    if (event.name == "data") {
      const auto found = keys_.find(Attribute(event, "key"));
      if (found == keys_.end()) {
        return Refuse("holds data of a key that was not declared");
      }
      key_ = found->second;
    }
    return absl::OkStatus();
  }

  absl::Status StartKey(const XmlElement& event) {
    const std::string name = Attribute(event, "attr.name");
    const std::string type = Attribute(event, "attr.type");
    const std::string stated_domain = Attribute(event, "for");
    const std::string domain = stated_domain.empty() ? "all" : stated_domain;
    const bool is_for_nodes = domain == "node" || domain == "all";
    key_ = Key();
    key_.is_edge_weight = name == "weight" && (domain == "edge" || domain == "all");
    if (is_for_nodes && name == "label" && type == "boolean") {
      return Refuse("declares a label that is no integer: labels are 0, 1, 2, ...");
    }
    if (is_for_nodes && name == "label" && IsNumberType(type)) {
      key_.meaning = Key::Meaning::kLabel;
    } else if (is_for_nodes && IsNumberType(type)) {
      if (columns_ >= limits_.max_features) {
        return LimitError("max_features", limits_.max_features);
      }
      key_.meaning = Key::Meaning::kFeature;
      key_.column = static_cast<int32_t>(columns_++);
    } else if (domain == "graph" && name == "num_classes") {
      key_.meaning = Key::Meaning::kClassCount;
    }
    return keys_.emplace(Attribute(event, "id"), key_).second ? absl::OkStatus()
                                                              : Refuse("declares a key for the second time");
  }

  absl::Status StartNode(const XmlElement& event) {
    if (static_cast<int64_t>(nodes_.size()) >= limits_.max_nodes) {
      return LimitError("max_nodes", limits_.max_nodes);
    }
    const auto node = static_cast<int32_t>(nodes_.size());
    if (!nodes_.emplace(Attribute(event, "id"), node).second) {
      return Refuse("declares a node for the second time");
    }
    result_.graph.labels.push_back(kUnlabelled);
    return absl::OkStatus();
  }

  absl::Status StartEdge(const XmlElement& event) {
    const auto source = nodes_.find(Attribute(event, "source"));
    const auto target = nodes_.find(Attribute(event, "target"));
    if (source == nodes_.end() || target == nodes_.end()) {
      return Refuse("names a node that was not declared before");
    }
    if (static_cast<int64_t>(edges_.size()) >= limits_.max_edges) {
      return LimitError("max_edges", limits_.max_edges);
    }
    edges_.push_back({source->second, target->second});
    return absl::OkStatus();
  }

  absl::Status End(const std::string& name, const std::string& text) {
    if (name == "node") {
      result_.graph.features.offsets.push_back(static_cast<int64_t>(result_.graph.features.columns.size()));
    }
    if (name == "default" && key_.meaning == Key::Meaning::kFeature) {
      return ParseNumber(text) == 0.0F ? absl::OkStatus()
                                       : Refuse("gives a feature a default other than 0, which is not read");
    }
    if (name == "default" && key_.meaning == Key::Meaning::kLabel) {
      return Refuse("gives the label a default, which is not read: a node without a label has none");
    }
    if (name != "data") {
      return absl::OkStatus();
    }
    if (Within("node")) {
      return NodeData(text);
    }
    if (Within("edge") && key_.is_edge_weight) {
      const std::optional<float> weight = ParseNumber(text);
      const bool same = weight.has_value() && (!weight_.has_value() || weight == weight_);
      weight_ = weight;
      return same ? absl::OkStatus() : Refuse("holds a weight that is another than those before");
    }
    if (Within("graph") && key_.meaning == Key::Meaning::kClassCount) {
      int64_t stated = 0;
      if (!absl::SimpleAtoi(text, &stated) || stated < 1) {
        return Refuse("holds a number of classes that is none");
      }
      classes_ = classes_given_ ? classes_ : stated;
    }
    return absl::OkStatus();
  }

  absl::Status NodeData(const std::string& text) {
    Graph& graph = result_.graph;
    if (key_.meaning == Key::Meaning::kFeature) {
      const std::optional<float> value = ParseNumber(text);
      if (!value.has_value()) {
        return Refuse("holds a feature that is no finite number");
      }
      if (static_cast<int64_t>(graph.features.columns.size()) >= limits_.max_feature_entries) {
        return LimitError("max_feature_entries", limits_.max_feature_entries);
      }
      graph.features.columns.push_back(key_.column);
      graph.features.values.push_back(*value);
    } else if (key_.meaning == Key::Meaning::kLabel) {
      // Tools that know no integers write 2 as 2.0.
      double label = 0;
      if (!absl::SimpleAtod(text, &label) || label != std::floor(label) || label < kUnlabelled) {
        return Refuse("holds a label that is neither -1 nor 0, 1, 2, ...");
      }
      if (label >= static_cast<double>(limits_.max_classes)) {
        return LimitError("max_classes", limits_.max_classes);
      }
      if (graph.labels.back() != kUnlabelled) {
        return Refuse("gives a node a second label");
      }
      graph.labels.back() = static_cast<int32_t>(label);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ImportedGraph> Finish() {
    Graph& graph = result_.graph;
    if (nodes_.empty() || columns_ == 0) {
      return GraphError(kArray, "declares no node or no feature");
    }
    DPAR_RETURN_IF_ERROR(CheckStatedClasses(classes_));
    if (*std::max_element(graph.labels.begin(), graph.labels.end()) >= *classes_) {
      return GraphError(kArray, "has a label that is not below its number of classes");
    }
    graph.sizes = {static_cast<int64_t>(nodes_.size()), columns_, *classes_};
    FillEdges(edges_, result_);
    // GraphML names an edge once, whichever way it points, so making it symmetric is no change.
    result_.report.edges_symmetrised = 0;
    if (CanonicaliseFeatures(graph.features, result_.report.zero_features_dropped).has_value()) {
      return GraphError(kArray, "gives a node the same feature twice");
    }
    return std::move(result_);
  }

  const GraphLimits& limits_;
  std::optional<int64_t> classes_;
  const bool classes_given_;  // so that the file's own number does not count
  std::vector<std::string> path_;
  int64_t line_ = 1;  // of the tag that is looked at
  absl::flat_hash_map<std::string, Key> keys_;
  Key key_;  // of the element that is open
  absl::flat_hash_map<std::string, int32_t> nodes_;
  std::vector<Edge> edges_;
  std::optional<float> weight_;
  int64_t columns_ = 0;
  bool has_graph_ = false;
  ImportedGraph result_;
};

}  // namespace

bool IsGraphMlName(absl::string_view path) { return absl::EndsWith(path, ".graphml"); }

absl::StatusOr<ImportedGraph> ReadGraphMlFile(const std::string& path, const GraphLimits& limits,
                                              std::optional<int64_t> classes) {
  return Reader(limits, classes).Read(path);
}

absl::Status WriteGraphMlFile(const std::string& path, const GraphView& graph) {
  DPAR_ASSIGN_OR_RETURN(TextOutput out, TextOutput::Create(path));
  out.Add(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
      "<key id=\"c\" for=\"graph\" attr.name=\"num_classes\" attr.type=\"int\"/>\n"
      "<key id=\"y\" for=\"node\" attr.name=\"label\" attr.type=\"int\"/>\n");
  for (int64_t column = 0; column < graph.sizes.feature_count; ++column) {
    out.Add(absl::StrCat("<key id=\"x", column, "\" for=\"node\" attr.name=\"x", column,
                         "\" attr.type=\"float\"><default>0</default></key>\n"));
  }
  out.Add(absl::StrCat("<graph edgedefault=\"undirected\">\n<data key=\"c\">", graph.sizes.class_count, "</data>\n"));
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    out.Add(absl::StrCat("<node id=\"n", node, "\">"));
    if (const int32_t label = graph.labels[static_cast<size_t>(node)]; label != kUnlabelled) {
      out.Add(absl::StrCat("<data key=\"y\">", label, "</data>"));
    }
    const auto columns = graph.features.row_columns(node);
    const auto values = graph.features.row_values(node);
    for (size_t i = 0; i < columns.size(); ++i) {
      out.Add(absl::StrFormat("<data key=\"x%d\">%.9g</data>", columns[i], static_cast<double>(values[i])));
    }
    out.Add("</node>\n");
  }
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    for (const int32_t neighbour : graph.edges.neighbours_of(node)) {
      if (neighbour > node) {
        out.Add(absl::StrCat("<edge source=\"n", node, "\" target=\"n", neighbour, "\"/>\n"));
      }
    }
  }
  out.Add("</graph>\n</graphml>\n");
  return out.Finish();
}

}  // namespace dpar
