// dpar-lab appr: exact vectors of chosen seeds. Not private.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/appr/private_rows.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "tests/lab/commands.h"
#include "tests/lab/row_progress.h"
#include "tests/lab/rows_output.h"
#include "tests/lab/solver_flags.h"

namespace dpar::lab {
namespace {

constexpr const char* kNote =
    "exact vectors, NOT private: whoever sees ids and values learns about the edges of the graph";

struct ApprFlags {
  SolverFlags solver;
  std::string seeds;
};

absl::StatusOr<std::vector<int64_t>> ParseSeeds(const std::string& typed) {
  std::vector<int64_t> seeds;
  for (const absl::string_view part : absl::StrSplit(typed, ',')) {
    int64_t seed = 0;
    if (!absl::SimpleAtoi(part, &seed) || seed < 0) {
      return InvalidField("seeds", absl::StrCat("seeds must be node ids such as 0,5,9; not '", part, "'"));
    }
    seeds.push_back(seed);
  }
  return seeds;
}

absl::StatusOr<std::vector<int32_t>> AsNodes(const std::vector<int64_t>& seeds, int64_t node_count, bool component) {
  for (const int64_t seed : seeds) {
    if (seed >= node_count) {
      return InvalidField("seeds", absl::StrCat("seeds must be below ", node_count, ", the number of nodes of the ",
                                                component ? "largest component" : "graph", ", got ", seed));
    }
  }
  return std::vector<int32_t>(seeds.begin(), seeds.end());
}

std::string Json(const ApprRows& rows, const GraphInput& graph) {
  nlohmann::ordered_json json = {{"rows", RowsJson(rows)}};
  if (graph.nodes().has_value()) {
    json["nodes"] = *graph.nodes();
  }
  return JsonText(json);
}

std::string Table(const ApprRows& rows, const GraphInput& graph) {
  return absl::StrCat(
      RowsTable(rows, std::numeric_limits<size_t>::max()),
      graph.nodes().has_value() ? "ids are positions in the largest component; --json lists its nodes' ids\n" : "");
}

absl::StatusOr<CommandOutput> RunAppr(const ApprFlags& flags) {
  DPAR_RETURN_IF_ERROR(CheckSolverFlags(flags.solver));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> typed, ParseSeeds(flags.seeds));
  DPAR_ASSIGN_OR_RETURN(const GraphInput graph, GraphInput::Open(flags.solver.graph));
  DPAR_ASSIGN_OR_RETURN(const EdgesView edges, graph.Edges());
  DPAR_ASSIGN_OR_RETURN(const std::vector<int32_t> seeds,
                        AsNodes(typed, edges.node_count(), graph.nodes().has_value()));
  RowProgress progress(static_cast<int64_t>(seeds.size()));
  const auto callback = [&progress](int64_t rows_done) {
    progress.Update(rows_done);
    return true;
  };
  DPAR_ASSIGN_OR_RETURN(const ApprRows rows,
                        SolveRows(edges, flags.solver.parameters, seeds, flags.solver.threads, callback));
  return CommandOutput{kNote, flags.solver.json ? Json(rows, graph) : Table(rows, graph)};
}

}  // namespace

void AddApprCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<ApprFlags>();
  CLI::App* command = app.add_subcommand("appr", "Exact personalised PageRank vectors of chosen seeds. Not private");
  AddSolverFlags(*command, flags->solver);
  command->add_option("--seeds", flags->seeds, "Node ids, separated by commas")->type_name("INT,...")->required();
  command->footer(
      "Example:\n"
      "  dpar-lab appr --graph graph.npz --seeds 0,5,9 --alpha .25 --rho 1e-4 --gamma 1e-4 --json\n"
      "With --json: {\"rows\": [{\"seed\", \"ids\", \"values\"}, ...]}, and with --largest-component \"nodes\",\n"
      "the file's ids of the component's nodes. Without: the 10 largest entries of each vector.");
  command->callback([flags, &chosen] { chosen = [flags] { return RunAppr(*flags); }; });
}

}  // namespace dpar::lab
