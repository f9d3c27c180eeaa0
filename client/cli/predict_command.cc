// dpar predict: the caller's graph stays on this machine.
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/digest_keys.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/named_graph.h"
#include "client/cli/prediction_file.h"
#include "client/cli/tables.h"
#include "client/cli/typed_flags.h"
#include "core/certificate/training_graph.h"
#include "core/certificate/unverified.h"
#include "core/error.h"
#include "core/infer/model.h"
#include "core/infer/predict.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxIterations = 1000;
constexpr std::array<const char*, 3> kPowerFlags = {"alpha", "iterations", "normalisation"};

struct PredictArguments {
  std::string model;
  std::string graph;        // a file; or
  TableArguments tables;    // whose schema is the model's
  std::string propagation;  // empty: the model's default
  Flags power;              // alpha, iterations and normalisation, as typed
  bool self_loops = false;
  std::string shift = "on";
  std::string output;
  std::string format;
  std::string certificate;
  std::string digest_key;
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

// Another rule would ignore these options silently.
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
                                             arguments.propagation.empty() ? "mean-field" : arguments.propagation,
                                             " does not take it"));
}

absl::StatusOr<PredictOptions> ParseOptions(const PredictArguments& arguments) {
  PredictOptions options;
  if (!arguments.propagation.empty()) {
    DPAR_ASSIGN_OR_RETURN(options.propagation, ParsePropagation(arguments.propagation));
  }
  if (arguments.shift != "on" && arguments.shift != "off") {
    return InvalidField("shift", absl::StrCat("--shift is on or off; not '", arguments.shift, "'"));
  }
  options.shift = arguments.shift == "on";
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

struct Outcome {
  int64_t nodes = 0;
  int64_t labelled = 0;
  int64_t right = 0;
  std::optional<bool> is_training_graph;  // nothing when there was no key to tell by
  double sureness = 0;                    // sum of the predictions' probabilities
  std::optional<LabelShift> shift;        // nothing when it was not looked for
};

void Count(std::span<const Prediction> predictions, std::span<const int32_t> labels, Outcome& outcome) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    outcome.sureness += static_cast<double>(predictions[i].probability);
    if (labels[i] != kUnlabelled) {
      ++outcome.labelled;
      outcome.right += predictions[i].label == labels[i] ? 1 : 0;
    }
  }
  outcome.nodes += static_cast<int64_t>(predictions.size());
}

double AccuracyOf(const Outcome& outcome) {
  return static_cast<double>(outcome.right) / static_cast<double>(outcome.labelled);
}

// Needs the certificate's digest and the digest key, kept from the upload or named; nothing when either is missing.
absl::StatusOr<std::optional<bool>> IsTrainingGraph(Session& session, const PredictArguments& arguments,
                                                    const GraphView& graph) {
  std::string certificate = arguments.certificate;
  if (certificate.empty()) {
    certificate = (std::filesystem::path(arguments.model).parent_path() / "certificate.json").string();
    if (!CheckInputFile("certificate", certificate).ok()) {
      return std::optional<bool>();
    }
  }
  DPAR_ASSIGN_OR_RETURN(const std::string envelope, ReadSmallFile("certificate", certificate));
  const absl::StatusOr<std::string> digest = DatasetDigest(envelope);
  if (!digest.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", certificate, "': ", digest.status().message()));
  }
  std::optional<std::string> key;
  if (!arguments.digest_key.empty()) {
    DPAR_ASSIGN_OR_RETURN(key, ReadSmallFile("digest-key", arguments.digest_key));
    absl::StripAsciiWhitespace(&*key);
  } else {
    key = FindDigestKey(session.variables(), *digest);
  }
  if (!key.has_value()) {
    return std::optional<bool>();
  }
  const absl::StatusOr<bool> same = IsGraphOfDigest(graph, *key, *digest);
  DPAR_RETURN_IF_ERROR(AsLocal(same.status()));
  return std::optional<bool>(*same);
}

void PrintWarning(Session& session, const std::optional<bool>& is_training_graph) {
  if (is_training_graph.value_or(false)) {
    const bool colour = session.terminal().colour && session.terminal().err_is_terminal;
    session.err() << Coloured(Colour::kYellow, "WARNING:", colour)
                  << " this is the graph that the model was trained on. What is predicted\n"
                     "on it is not covered by the guarantee and may give its nodes away: do not release\n"
                     "the output. Predict on another graph.\n";
    return;
  }
  session.err() << "note: the guarantee covers the model. Predictions on nodes that it was trained on\n"
                   "are not covered: do not release those.\n";
}

// What the predictions themselves say; power iteration's probabilities are not made for that.
std::optional<double> ExpectedAccuracy(const PredictOptions& options, const Outcome& outcome) {
  return options.propagation == Propagation::kPower || outcome.nodes == 0
             ? std::nullopt
             : std::optional<double>(outcome.sureness / static_cast<double>(outcome.nodes));
}

std::string ShiftText(const LabelShift& shift, bool mean_field) {
  const std::string weight =
      mean_field && shift.neighbour_weight < 1
          ? absl::StrFormat(";\n           neighbours count %g, since they speak against features",
                            shift.neighbour_weight)
          : "";
  return shift.found()
             ? absl::StrFormat(
                   "shift      found: %.0f%% of these nodes are of other classes than in training; corrected%s",
                   100 * shift.distance, weight)
             : absl::StrFormat("shift      none: class shares as in training (distance %.3f, chance explains %.3f)",
                               shift.distance, shift.threshold);
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
  if (outcome.shift.has_value()) {
    session.out() << ShiftText(*outcome.shift, options.propagation == Propagation::kMeanField) << "\n";
  }
  if (const std::optional<double> expected = ExpectedAccuracy(options, outcome); expected.has_value()) {
    session.out() << absl::StrFormat("expected   %.2f of these predictions are right, by their own probabilities\n",
                                     *expected);
  }
  if (!arguments.output.empty()) {
    session.out() << "wrote      " << arguments.output << "\n";
  }
  if (outcome.labelled > 0) {
    session.out() << absl::StrFormat("accuracy   %.4f on %s labelled nodes\n", AccuracyOf(outcome),
                                     FormatCount(outcome.labelled));
  }
  if (!arguments.output.empty() && outcome.labelled > 0) {
    session.out() << "next       dpar evaluate --predictions " << arguments.output << " --model " << arguments.model
                  << (arguments.graph.empty() ? absl::StrCat(" --nodes ", arguments.tables.files.nodes)
                                              : absl::StrCat(" --graph ", arguments.graph))
                  << "\n";
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
  if (outcome.shift.has_value()) {
    json["shift"] = {{"found", outcome.shift->found()},
                     {"distance", outcome.shift->distance},
                     {"threshold", outcome.shift->threshold},
                     {"neighbour_weight", outcome.shift->neighbour_weight}};
  }
  if (const std::optional<double> expected = ExpectedAccuracy(options, outcome); expected.has_value()) {
    json["expected_accuracy"] = *expected;
  }
  if (outcome.labelled > 0) {
    json["accuracy"] = AccuracyOf(outcome);
  }
  if (outcome.is_training_graph.has_value()) {
    json["training_graph"] = *outcome.is_training_graph;
  }
  if (!arguments.output.empty()) {
    json["file"] = arguments.output;
  }
  session.PrintJson(json);
}

absl::Status CheckFiles(const PredictArguments& arguments) {
  DPAR_RETURN_IF_ERROR(CheckInputFile("model", arguments.model));
  if (!arguments.tables.given()) {
    return arguments.graph.empty() ? InvalidField("graph", "give --graph, or tables with --nodes and --edges")
                                   : CheckGraphInput("graph", arguments.graph);
  }
  if (!arguments.graph.empty()) {
    return InvalidField("graph", "give --graph or tables, not both");
  }
  if (arguments.tables.files.nodes.empty() || arguments.tables.files.edges.empty()) {
    return InvalidField("nodes", "tables need --nodes and --edges");
  }
  DPAR_RETURN_IF_ERROR(CheckInputFile("nodes", arguments.tables.files.nodes));
  return CheckInputFile("edges", arguments.tables.files.edges);
}

absl::StatusOr<std::optional<PredictionFormat>> OutputFormat(const PredictArguments& arguments) {
  std::optional<PredictionFormat> format;
  if (!arguments.output.empty()) {
    DPAR_ASSIGN_OR_RETURN(format, ParsePredictionFormat(arguments.format, arguments.output));
    DPAR_RETURN_IF_ERROR(CheckOutputFile("output", arguments.output));
  } else if (!arguments.format.empty()) {
    return InvalidField("format", "--format is how to write --output, which is not given");
  }
  return format;
}

absl::Status PredictGraph(Session& session, const PredictArguments& arguments, const PredictOptions& options,
                          const Model& model, const NamedGraph& named, Outcome& outcome) {
  DPAR_ASSIGN_OR_RETURN(const std::optional<PredictionFormat> format, OutputFormat(arguments));
  DPAR_ASSIGN_OR_RETURN(const GraphView graph, named.View());
  DPAR_ASSIGN_OR_RETURN(outcome.is_training_graph, IsTrainingGraph(session, arguments, graph));
  PrintWarning(session, outcome.is_training_graph);
  std::unique_ptr<PredictionWriter> writer;
  if (format.has_value()) {
    DPAR_ASSIGN_OR_RETURN(writer, OpenPredictionWriter(arguments.output, *format, named.names()));
  }
  absl::StatusOr<std::optional<LabelShift>> shift =
      PredictBlocks(model, graph, options, [&](int64_t first_node, std::span<const Prediction> predictions) {
        Count(predictions, graph.labels.subspan(static_cast<size_t>(first_node)), outcome);
        return writer == nullptr ? absl::OkStatus() : writer->Add(predictions);
      });
  DPAR_RETURN_IF_ERROR(AsLocal(shift.status()));
  outcome.shift = *std::move(shift);
  return writer == nullptr ? absl::OkStatus() : AsLocal(writer->Finish());
}

absl::StatusOr<int> RunPredict(Session& session, PredictArguments arguments) {
  DPAR_ASSIGN_OR_RETURN(PredictOptions options, ParseOptions(arguments));
  DPAR_RETURN_IF_ERROR(CheckFiles(arguments));
  DPAR_RETURN_IF_ERROR(OutputFormat(arguments).status());
  const auto model = ReadModelFile(arguments.model);
  DPAR_RETURN_IF_ERROR(AsLocal(model.status()));
  if (arguments.propagation.empty()) {
    options.propagation = DefaultPropagation(*model);
    arguments.propagation = options.propagation == Propagation::kNone ? "none" : "mean-field";
  }
  DPAR_ASSIGN_OR_RETURN(const NamedGraph named, arguments.graph.empty()
                                                    ? NamedGraph::OfTables(session, *model, arguments.tables.files)
                                                    : NamedGraph::OfFile(arguments.graph, *model));
  Outcome outcome;
  DPAR_RETURN_IF_ERROR(PredictGraph(session, arguments, options, *model, named, outcome));
  if (session.json()) {
    PrintOutcomeJson(session, arguments, options, outcome);
  } else {
    PrintOutcome(session, arguments, options, outcome);
  }
  return kDone;
}

// The help states the defaults of PredictOptions: a flag with a default could not be told from one given.
void AddPowerFlags(CLI::App& command, PredictArguments& arguments) {
  const PredictOptions defaults;
  AddFlag(command, arguments.power, kPowerFlags[0], "NUMBER",
          absl::StrCat("power: weight of a node's own logits, above 0 up\nto 1; ", defaults.alpha, " unless given"));
  AddFlag(command, arguments.power, kPowerFlags[1], "COUNT",
          absl::StrCat("power: steps along edges, 0 to ", kMaxIterations, "; ", defaults.iterations, " unless given"));
  AddFlag(command, arguments.power, kPowerFlags[2], "NAME",
          "power: row (the mean of the neighbours; unless\ngiven) or symmetric (neighbours weighted by degree)");
  command.add_flag("--self-loops", arguments.self_loops, "power: each node is a neighbour of itself");
}

}  // namespace

void AddPredictCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = app.add_subcommand("predict", "Label the nodes of a graph of your own with a model");
  command->group(kLocalGroup);
  command->add_option("--model", arguments->model, "model.npz of a download")->required();
  command->add_option("--graph", arguments->graph, "Graph file (npz or sealed), not the one trained on;\nor tables:");
  AddTableFileFlags(*command, arguments->tables);
  command->add_option("--propagation", arguments->propagation,
                      "How edges count: mean-field (learns from this graph\n"
                      "which classes are linked; the more nodes, the\n"
                      "better), power (the DPAR paper's: linked nodes are\n"
                      "alike) or none (each node by its own features; a\n"
                      "sealed graph may then be larger than memory). Unless\n"
                      "given: mean-field, and none for models of gap and\n"
                      "sage, which read edges themselves");
  command
      ->add_option("--shift", arguments->shift,
                   "on (unless given) or off: whether predictions are\n"
                   "corrected where the classes of this graph are\n"
                   "mixed differently than in training")
      ->type_name("on|off");
  AddPowerFlags(*command, *arguments);
  command->add_option("-o,--output", arguments->output, "File for the class of each node and its probability");
  command->add_option("--format", arguments->format, "csv, npz or jsonl (default: the ending of --output)");
  command->add_option(
      "--certificate", arguments->certificate,
      "Warns when --graph is what it says was trained on\n(default: certificate.json beside the model)");
  command->add_option("--digest-key", arguments->digest_key,
                      "File with the key of that dataset's digest\n(default: what dpar upload kept here)");
  command->footer(
      Examples("  dpar predict --model out/model.npz --nodes new.csv --edges new_edges.csv -o labels.csv\n"
               "  dpar predict --model out/model.npz --graph other.npz -o labels.csv\n"
               "  dpar predict --model out/model.npz --graph other.npz --propagation power --alpha 0.1"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunPredict(s, *arguments); }; });
}

}  // namespace dpar
