// dpar predict: the caller's graph stays on this machine.
#include <algorithm>
#include <array>
#include <cstdint>
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
#include "client/cli/typed_flags.h"
#include "client/sdk/atomic_file.h"
#include "core/error.h"
#include "core/graph/local_graph.h"
#include "core/infer/model.h"
#include "core/infer/predict.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;
constexpr size_t kFlushBytes = 1 << 20;

constexpr int64_t kMaxIterations = 1000;
constexpr std::array<const char*, 3> kPowerFlags = {"alpha", "iterations", "normalisation"};

struct PredictArguments {
  std::string model;
  std::string graph;
  std::string propagation = "mean-field";
  Flags power;  // alpha, iterations and normalisation, as typed
  bool self_loops = false;
  std::string output;
};

absl::StatusOr<Propagation> ParsePropagation(const std::string& text) {
  if (text == "mean-field") {
    return Propagation::kMeanField;
  }
  if (text == "power") {
    return Propagation::kPower;
  }
  if (text == "none") {
    return Propagation::kNone;
  }
  return InvalidField("propagation", absl::StrCat("--propagation is mean-field, power or none; not '", text, "'"));
}

absl::StatusOr<Normalisation> ParseNormalisation(const std::string& text) {
  if (text == "row") {
    return Normalisation::kRow;
  }
  if (text == "symmetric") {
    return Normalisation::kSymmetric;
  }
  return InvalidField("normalisation", absl::StrCat("--normalisation is row or symmetric; not '", text, "'"));
}

absl::Status CheckAlpha(absl::string_view flag, double value) { return ValidatePositive(flag, value, 1); }

// Another rule would ignore what was typed, and the caller would not know.
absl::Status RefusePowerOptions(const PredictArguments& arguments) {
  std::vector<std::string> given;
  for (const char* name : kPowerFlags) {
    if (IsGiven(arguments.power, name)) {
      given.push_back(name);
    }
  }
  if (arguments.self_loops) {
    given.push_back("self-loops");
  }
  if (given.empty()) {
    return absl::OkStatus();
  }
  return InvalidField(given[0], absl::StrCat("--", given[0], " is for --propagation power; --propagation ",
                                             arguments.propagation, " does not take it"));
}

absl::StatusOr<PredictOptions> ParseOptions(const PredictArguments& arguments) {
  PredictOptions options;
  DPAR_ASSIGN_OR_RETURN(options.propagation, ParsePropagation(arguments.propagation));
  if (options.propagation != Propagation::kPower) {
    DPAR_RETURN_IF_ERROR(RefusePowerOptions(arguments));
    return options;
  }
  if (IsGiven(arguments.power, "alpha")) {
    DPAR_ASSIGN_OR_RETURN(options.alpha, ReadNumber(arguments.power, "alpha", CheckAlpha));
  }
  if (IsGiven(arguments.power, "iterations")) {
    DPAR_ASSIGN_OR_RETURN(options.iterations, ReadInteger(arguments.power, "iterations", 0, kMaxIterations));
  }
  if (IsGiven(arguments.power, "normalisation")) {
    DPAR_ASSIGN_OR_RETURN(options.normalisation, ParseNormalisation(Typed(arguments.power, "normalisation")));
  }
  options.self_loops = arguments.self_loops;
  return options;
}

absl::string_view NormalisationName(Normalisation normalisation) {
  return normalisation == Normalisation::kRow ? "row" : "symmetric";
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

Outcome Measure(const std::vector<Prediction>& predictions, std::span<const int32_t> labels) {
  Outcome outcome;
  outcome.nodes = static_cast<int64_t>(predictions.size());
  outcome.labelled = std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label != kUnlabelled; });
  const auto accuracy = Accuracy(predictions, labels);
  if (accuracy.ok()) {
    outcome.accuracy = *accuracy;
  }
  return outcome;
}

void PrintOutcome(Session& session, const PredictArguments& arguments, const PredictOptions& options,
                  const Outcome& outcome) {
  session.out() << "predicted  " << FormatCount(outcome.nodes) << " nodes, propagation " << arguments.propagation;
  if (options.propagation == Propagation::kPower) {
    session.out() << absl::StrFormat(" (alpha %g, %d iterations, %s normalisation, %s self loops)", options.alpha,
                                     options.iterations, NormalisationName(options.normalisation),
                                     options.self_loops ? "with" : "no");
  }
  session.out() << "\n";
  if (!arguments.output.empty()) {
    session.out() << "wrote      " << arguments.output << "\n";
  }
  if (outcome.accuracy.has_value()) {
    session.out() << absl::StrFormat("accuracy   %.4f on %s labelled nodes\n", *outcome.accuracy,
                                     FormatCount(outcome.labelled));
  }
}

void PrintOutcomeJson(Session& session, const PredictArguments& arguments, const PredictOptions& options,
                      const Outcome& outcome) {
  Json json = {{"nodes", outcome.nodes}, {"propagation", arguments.propagation}, {"labelled", outcome.labelled}};
  if (options.propagation == Propagation::kPower) {
    json["alpha"] = options.alpha;
    json["iterations"] = options.iterations;
    json["normalisation"] = NormalisationName(options.normalisation);
    json["self_loops"] = options.self_loops;
  }
  if (outcome.accuracy.has_value()) {
    json["accuracy"] = *outcome.accuracy;
  }
  if (!arguments.output.empty()) {
    json["file"] = arguments.output;
  }
  session.PrintJson(json);
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
  const auto predictions = Predict(*model, *graph, options);
  DPAR_RETURN_IF_ERROR(AsLocal(predictions.status()));
  const Outcome outcome = Measure(*predictions, graph->labels);
  if (!arguments.output.empty()) {
    DPAR_RETURN_IF_ERROR(WriteCsv(arguments.output, *predictions));
  }
  session.err() << "note: the guarantee covers the model. Predictions on the graph that it was trained\n"
                   "on are not covered: do not release those.\n";
  if (session.json()) {
    PrintOutcomeJson(session, arguments, options, outcome);
  } else {
    PrintOutcome(session, arguments, options, outcome);
  }
  return kDone;
}

// Defaults are those of PredictOptions, said in the help: a flag with a default could not be told from one given.
void AddPowerFlags(CLI::App& command, PredictArguments& arguments) {
  const PredictOptions defaults;
  AddFlag(command, arguments.power, kPowerFlags[0], "NUMBER",
          absl::StrCat("power: weight of a node's own logits, above 0 up to 1; ", defaults.alpha, " unless given"));
  AddFlag(command, arguments.power, kPowerFlags[1], "COUNT",
          absl::StrCat("power: steps along edges, 0 to ", kMaxIterations, "; ", defaults.iterations, " unless given"));
  AddFlag(command, arguments.power, kPowerFlags[2], "NAME",
          "power: row (the mean of the neighbours; unless given) or symmetric (neighbours weighted by degree)");
  command.add_flag("--self-loops", arguments.self_loops, "power: each node is a neighbour of itself");
}

}  // namespace

void AddPredictCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = app.add_subcommand("predict", "Label the nodes of a graph of your own with a model");
  command->group(kLocalGroup);
  command->add_option("--model", arguments->model, "model.npz of a download")->required();
  command->add_option("--graph", arguments->graph, "Graph file (npz or sealed); not the one trained on")->required();
  command
      ->add_option("--propagation", arguments->propagation,
                   "How edges count: mean-field (learns from this graph which classes are linked;\n"
                   "the more nodes, the better), power (the DPAR paper's: linked nodes are alike)\n"
                   "or none (each node by its own features)")
      ->capture_default_str();
  AddPowerFlags(*command, *arguments);
  command->add_option("-o,--output", arguments->output, "CSV file for node,label,probability");
  command->footer(
      Examples("  dpar predict --model out/model.npz --graph other.npz -o labels.csv\n"
               "  dpar predict --model out/model.npz --graph other.npz --propagation power --alpha 0.1"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunPredict(s, *arguments); }; });
}

}  // namespace dpar
