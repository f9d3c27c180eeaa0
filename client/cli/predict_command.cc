// dpar predict: the caller's graph stays on this machine.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/sdk/atomic_file.h"
#include "core/error.h"
#include "core/graph/local_graph.h"
#include "core/infer/model.h"
#include "core/infer/predict.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;
constexpr size_t kFlushBytes = 1 << 20;

struct PredictArguments {
  std::string model;
  std::string graph;
  std::string propagation = "power";
  std::string output;
};

absl::StatusOr<PredictOptions> ParseOptions(const PredictArguments& arguments) {
  PredictOptions options;
  if (arguments.propagation == "power") {
    options.propagation = Propagation::kPower;
  } else if (arguments.propagation == "none") {
    options.propagation = Propagation::kNone;
  } else {
    return InvalidField("propagation",
                        absl::StrCat("--propagation is power or none; not '", arguments.propagation, "'"));
  }
  return options;
}

absl::Status WriteCsv(const std::string& path, const std::vector<Prediction>& predictions) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, kFileMode));
  std::string text = "node,label,probability\n";
  for (size_t node = 0; node < predictions.size(); ++node) {
    absl::StrAppendFormat(&text, "%d,%d,%.6f\n", node, predictions[node].label,
                          static_cast<double>(predictions[node].probability));
    if (text.size() >= kFlushBytes) {
      DPAR_RETURN_IF_ERROR(file.Append(text));
      text.clear();
    }
  }
  DPAR_RETURN_IF_ERROR(file.Append(text));
  return file.Commit();
}

struct Outcome {
  int64_t nodes = 0;
  int64_t labelled = 0;
  std::optional<double> accuracy;
};

void PrintOutcome(Session& session, const PredictArguments& arguments, const Outcome& outcome) {
  session.out() << "predicted  " << FormatCount(outcome.nodes) << " nodes, propagation " << arguments.propagation
                << "\n";
  if (!arguments.output.empty()) {
    session.out() << "wrote      " << arguments.output << "\n";
  }
  if (outcome.accuracy.has_value()) {
    session.out() << absl::StrFormat("accuracy   %.4f on %s labelled nodes\n", *outcome.accuracy,
                                     FormatCount(outcome.labelled));
  }
}

absl::StatusOr<int> RunPredict(Session& session, const PredictArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const PredictOptions options, ParseOptions(arguments));
  DPAR_RETURN_IF_ERROR(CheckInputFile("model", arguments.model));
  DPAR_RETURN_IF_ERROR(CheckInputFile("graph", arguments.graph));
  if (!arguments.output.empty()) {
    DPAR_RETURN_IF_ERROR(CheckOutputFile("output", arguments.output));
  }
  const auto model = ReadModelFile(arguments.model);
  DPAR_RETURN_IF_ERROR(AsLocal(model.status()));
  const auto local = LocalGraph::Open(arguments.graph);
  DPAR_RETURN_IF_ERROR(AsLocal(local.status()));
  const auto graph = local->View();
  DPAR_RETURN_IF_ERROR(AsLocal(graph.status()));
  const auto predicted = Predict(*model, *graph, options);
  DPAR_RETURN_IF_ERROR(AsLocal(predicted.status()));
  const std::vector<Prediction>& predictions = *predicted;
  const std::span<const int32_t> labels = graph->labels;
  Outcome outcome;
  outcome.nodes = static_cast<int64_t>(predictions.size());
  outcome.labelled = std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label != kUnlabelled; });
  if (outcome.labelled > 0) {
    DPAR_ASSIGN_OR_RETURN(outcome.accuracy, Accuracy(predictions, labels));
  }
  if (!arguments.output.empty()) {
    DPAR_RETURN_IF_ERROR(WriteCsv(arguments.output, predictions));
  }
  session.err() << "note: the guarantee covers the model. Predictions on the graph that it was trained\n"
                   "on are not covered: do not release those.\n";
  if (!session.json()) {
    PrintOutcome(session, arguments, outcome);
    return kDone;
  }
  Json json = {{"nodes", outcome.nodes}, {"propagation", arguments.propagation}, {"labelled", outcome.labelled}};
  if (outcome.accuracy.has_value()) {
    json["accuracy"] = *outcome.accuracy;
  }
  if (!arguments.output.empty()) {
    json["file"] = arguments.output;
  }
  session.PrintJson(json);
  return kDone;
}

}  // namespace

void AddPredictCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = app.add_subcommand("predict", "Label the nodes of a graph of your own with a model");
  command->group(kLocalGroup);
  command->add_option("--model", arguments->model, "model.npz of a download")->required();
  command->add_option("--graph", arguments->graph, "Graph file (npz or sealed); not the one trained on")->required();
  command->add_option("--propagation", arguments->propagation, "power (uses the graph's edges) or none")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "CSV file for node,label,probability");
  command->footer(Examples("  dpar predict --model out/model.npz --graph other.npz -o labels.csv"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunPredict(s, *arguments); }; });
}

}  // namespace dpar
