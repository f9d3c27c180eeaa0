#include "tests/lab/study_graph.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar::lab {
namespace {

constexpr std::array<StudyGraphTraits, 3> kStudyGraphs = {{
    {"cora_ml", "Cora-ML", 2e-3},
    {"coauthor_cs", "CS", 8e-4},
    {"coauthor_phy", "Physics", 1e-4},
}};

std::string DigestOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return absl::StrFormat("%016x", XXH64(content.data(), content.size(), /*seed=*/0));
}

}  // namespace

std::span<const StudyGraphTraits> KnownStudyGraphs() { return kStudyGraphs; }

std::string StudyGraphNames() {
  return absl::StrJoin(kStudyGraphs, ", ",
                       [](std::string* out, const StudyGraphTraits& traits) { *out += traits.name; });
}

absl::StatusOr<StudyGraph> OpenStudyGraph(const std::string& directory, const std::string& name) {
  const auto* found = std::find_if(kStudyGraphs.begin(), kStudyGraphs.end(),
                                   [&name](const StudyGraphTraits& traits) { return name == traits.name; });
  if (found == kStudyGraphs.end()) {
    return InvalidField("datasets", absl::StrCat("datasets are among ", StudyGraphNames(), "; not '", name, "'"));
  }
  StudyGraph graph;
  graph.traits = *found;
  const GraphFlags flags = {.file = absl::StrCat(directory, "/", name, ".npz")};
  DPAR_ASSIGN_OR_RETURN(GraphInput input, GraphInput::Open(flags));
  graph.input = std::make_unique<GraphInput>(std::move(input));
  DPAR_ASSIGN_OR_RETURN(graph.view, graph.input->View());
  graph.digest = DigestOf(flags.file);
  graph.max_degree = graph.view.edges.largest_degree();
  return graph;
}

absl::StatusOr<std::vector<StudyGraph>> OpenStudyGraphs(const std::string& directory,
                                                        const std::vector<std::string>& names) {
  std::vector<StudyGraph> graphs;
  for (const std::string& name : names) {
    DPAR_ASSIGN_OR_RETURN(graphs.emplace_back(), OpenStudyGraph(directory, name));
  }
  return graphs;
}

}  // namespace dpar::lab
