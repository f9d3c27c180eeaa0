// dpar-lab accuracy: what a method's models are worth, inductive: part of the slots train, the others are the query
// graph, edges between the two removed. Splits are the same in every run, noise is always fresh.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/error.h"
#include "core/infer/predict.h"
#include "core/message_json.h"
#include "core/parallel.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/privacy/accountant.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/train.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/graph_input.h"
#include "tests/lab/option_setting.h"
#include "tests/lab/progress_line.h"
#include "tests/lab/region_split.h"
#include "tests/lab/rows_output.h"
#include "tests/lab/slot_hash_split.h"
#include "tests/lab/solver_flags.h"
#include "tests/lab/spread.h"

namespace dpar::lab {
namespace {

constexpr int64_t kMaxSeeds = 10'000;

struct AccuracyFlags {
  GraphFlags graph;
  std::string method = "auto";
  std::optional<double> epsilon;
  std::optional<double> delta;
  bool non_private = false;
  std::string preset;
  std::vector<std::string> settings;  // NAME=VALUE
  std::string propagation = "mean-field";
  int64_t seeds = 5;
  double test_share = 0.2;
  std::string split = "random";
  int threads = HardwareThreads();
  bool json = false;
};

absl::StatusOr<v1::Method> ParseMethod(const std::string& typed) {
  if (typed == "auto") {
    return v1::AUTO;
  }
  for (const MethodTraits& method : Methods()) {
    if (typed == method.name) {
      return method.method;
    }
  }
  return InvalidField("method", absl::StrCat("method is one of ", MethodNames(), "; not '", typed, "'"));
}

absl::StatusOr<Propagation> ParsePropagation(const std::string& typed) {
  if (typed == "mean-field") {
    return Propagation::kMeanField;
  }
  if (typed == "power") {
    return Propagation::kPower;
  }
  if (typed == "none") {
    return Propagation::kNone;
  }
  return InvalidField("propagation", absl::StrCat("propagation is one of mean-field, power, none; not '", typed, "'"));
}

absl::Status CheckFlags(const AccuracyFlags& flags) {
  for (const auto& [name, given] : {std::pair("epsilon", flags.epsilon.has_value()),  //
                                    std::pair("delta", flags.delta.has_value())}) {
    if (given == flags.non_private) {
      return InvalidField(name, absl::StrCat(name, given ? " is refused with --non-private, which draws no noise"
                                                         : " is required, unless --non-private is given"));
    }
  }
  if (flags.split != "random" && flags.split != "region") {
    return InvalidField("split", absl::StrCat("split is random or region; not '", flags.split, "'"));
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("seeds", flags.seeds, int64_t{1}, kMaxSeeds));
  DPAR_RETURN_IF_ERROR(ValidateProbability("test_share", flags.test_share));
  return ValidateRange("threads", int64_t{flags.threads}, int64_t{1}, kMaxThreads);
}

absl::StatusOr<v1::TrainingSpec> SpecOf(const AccuracyFlags& flags) {
  v1::TrainingSpec spec;
  DPAR_ASSIGN_OR_RETURN(const v1::Method method, ParseMethod(flags.method));
  spec.set_method(method);
  spec.set_non_private(flags.non_private);
  if (!flags.non_private) {
    spec.set_epsilon(*flags.epsilon);
    spec.set_delta(*flags.delta);
  }
  if (!flags.preset.empty() && flags.preset != "paper") {
    return InvalidField("preset", absl::StrCat("preset is paper or not given; not '", flags.preset, "'"));
  }
  spec.set_preset(flags.preset.empty() ? v1::PRESET_UNSPECIFIED : v1::PAPER);
  for (const std::string& setting : flags.settings) {
    DPAR_RETURN_IF_ERROR(SetOption(setting, *spec.mutable_options()));
  }
  return spec;
}

struct Measured {
  v1::Plan plan;
  std::optional<double> epsilon;  // what the plan's event costs; nothing without noise
  Spread accuracy;                // with the inference rule
  Spread plain;                   // each node from its own features
  Spread calibration;             // its error, with the inference rule
};

// The mean distance between how sure predictions are and how often they are right, over 15 bins of sureness, each with
// the share of the labelled nodes that it has.
double CalibrationError(const std::vector<Prediction>& predictions, const std::vector<int32_t>& labels) {
  constexpr size_t kBins = 15;
  std::array<double, kBins> excess = {};  // of sureness over being right, summed over the bin's nodes
  double labelled = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != kUnlabelled) {
      const auto sure = static_cast<double>(predictions[i].probability);
      excess[std::min(kBins - 1, static_cast<size_t>(sure * kBins))] +=
          sure - (predictions[i].label == labels[i] ? 1 : 0);
      ++labelled;
    }
  }
  double error = 0;
  for (const double bin : excess) {
    error += std::abs(bin) / labelled;
  }
  return error;
}

// One training and its predictions for every seed.
class Measurement {
 public:
  Measurement(const AccuracyFlags& flags, const v1::TrainingSpec& spec, Propagation propagation, const GraphView& graph)
      : flags_(flags), spec_(spec), propagation_(propagation), graph_(graph) {}

  absl::StatusOr<Measured> Run() {
    for (int64_t seed = 1; seed <= flags_.seeds; ++seed) {
      DPAR_RETURN_IF_ERROR(Measure(seed));
    }
    if (!measured_.plan.non_private()) {
      DPAR_ASSIGN_OR_RETURN(measured_.epsilon, EventEpsilon(measured_.plan.event(), measured_.plan.delta()));
    }
    return std::move(measured_);
  }

 private:
  absl::Status Measure(int64_t seed) {
    const auto key = static_cast<uint64_t>(seed);
    DPAR_ASSIGN_OR_RETURN(const SlotSplit split, flags_.split == "region"
                                                     ? SplitByRegion(graph_.edges, key)
                                                     : SplitByHash(graph_.sizes.node_count, flags_.test_share, key));
    const Graph query = InducedSubgraph(graph_, split.test);
    DPAR_ASSIGN_OR_RETURN(const Model model, TrainOn(InducedSubgraph(graph_, split.train), seed));
    DPAR_RETURN_IF_ERROR(Score(model, query, propagation_, measured_.accuracy, &measured_.calibration));
    return Score(model, query, Propagation::kNone, measured_.plain, nullptr);
  }

  absl::StatusOr<Model> TrainOn(const Graph& training, int64_t seed) {
    if (seed == 1) {
      // Every split has as many slots, so all have one plan. The degree promise, for methods that need one, is the
      // whole graph's own largest degree: nothing here is private.
      DPAR_ASSIGN_OR_RETURN(measured_.plan, MakePlan(spec_, training.sizes, graph_.edges.largest_degree()));
    }
    TrainingCallbacks callbacks;
    callbacks.keep_going = [] { return true; };
    callbacks.on_progress = [&](TrainingStage stage, int64_t completed, int64_t total) {
      line_.Show(absl::StrCat(
          "seed ", seed, " of ", flags_.seeds,
          stage == TrainingStage::kStructure ? ", DP-APPR" : absl::StrCat(", step ", completed, " of ", total)));
    };
    DPAR_ASSIGN_OR_RETURN(TrainedModel trained,
                          Train(measured_.plan, training, {"cpu", flags_.threads}, random_, callbacks));
    return std::move(trained.model);
  }

  static absl::Status Score(const Model& model, const Graph& query, Propagation propagation, Spread& spread,
                            Spread* calibration) {
    PredictOptions options;
    options.propagation = propagation;
    DPAR_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, Predict(model, query, options));
    DPAR_ASSIGN_OR_RETURN(const double accuracy, Accuracy(predictions, query.labels));
    spread.values.push_back(accuracy);
    if (calibration != nullptr) {
      calibration->values.push_back(CalibrationError(predictions, query.labels));
    }
    return absl::OkStatus();
  }

  const AccuracyFlags& flags_;
  const v1::TrainingSpec& spec_;
  const Propagation propagation_;
  const GraphView graph_;
  SecureRandom random_;
  ProgressLine line_;
  Measured measured_;
};

std::string Note(const AccuracyFlags& flags, const Measured& measured) {
  const std::string models =
      measured.epsilon.has_value()
          ? absl::StrCat("each model is private under node-level (epsilon ", nlohmann::json(*measured.epsilon).dump(),
                         ", delta ", nlohmann::json(*flags.delta).dump(), ") differential privacy")
          : "the models were trained without noise";
  return absl::StrCat("accuracies are NOT private: they are counted on the labels of held-out nodes; ", models,
                      ". Nothing was charged to any ledger");
}

std::string Json(const Measured& measured) {
  // A price is the ledger's to say, and without noise there is no event.
  std::set<std::string> left_out = {"price_units", "left_units"};
  if (!measured.epsilon.has_value()) {
    left_out.insert("event");
  }
  nlohmann::ordered_json json;
  json["accuracy"] = {{"mean", measured.accuracy.Mean()}, {"std", measured.accuracy.Deviation()}};
  json["plain"] = {{"mean", measured.plain.Mean()}, {"std", measured.plain.Deviation()}};
  json["calibration_error"] = {{"mean", measured.calibration.Mean()}, {"std", measured.calibration.Deviation()}};
  json["epsilon"] = measured.epsilon.has_value() ? nlohmann::ordered_json(*measured.epsilon) : nullptr;
  json["plan"] = MessageToJson(measured.plan, left_out);
  return JsonText(json);
}

std::string Table(const AccuracyFlags& flags, const Measured& measured) {
  std::string table = absl::StrFormat("%-10s  %10s  %10s  %17s\n", "SEED", absl::AsciiStrToUpper(flags.propagation),
                                      "NONE", "CALIBRATION-ERROR");
  const auto line = [&table](absl::string_view name, double accuracy, double plain, double calibration) {
    absl::StrAppendFormat(&table, "%-10s  %10.4f  %10.4f  %17.4f\n", name, accuracy, plain, calibration);
  };
  for (size_t i = 0; i < measured.plain.values.size(); ++i) {
    line(absl::StrCat(i + 1), measured.accuracy.values[i], measured.plain.values[i], measured.calibration.values[i]);
  }
  line("mean", measured.accuracy.Mean(), measured.plain.Mean(), measured.calibration.Mean());
  line("std", measured.accuracy.Deviation(), measured.plain.Deviation(), measured.calibration.Deviation());
  return table;
}

absl::StatusOr<CommandOutput> RunAccuracy(const AccuracyFlags& flags) {
  DPAR_RETURN_IF_ERROR(CheckFlags(flags));
  DPAR_ASSIGN_OR_RETURN(const v1::TrainingSpec spec, SpecOf(flags));
  DPAR_ASSIGN_OR_RETURN(const Propagation propagation, ParsePropagation(flags.propagation));
  DPAR_ASSIGN_OR_RETURN(const GraphInput input, GraphInput::Open(flags.graph));
  DPAR_ASSIGN_OR_RETURN(const GraphView graph, input.View());
  DPAR_ASSIGN_OR_RETURN(const Measured measured, Measurement(flags, spec, propagation, graph).Run());
  return CommandOutput{Note(flags, measured), flags.json ? Json(measured) : Table(flags, measured)};
}

void AddTrainingFlags(CLI::App& command, AccuracyFlags& flags) {
  command.add_option("--method", flags.method, absl::StrCat("One of ", MethodNames()))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--epsilon", flags.epsilon, "What each training may cost, 0.001 to 100");
  command.add_option("--delta", flags.delta, "Above 0 and below 1");
  command.add_flag("--non-private", flags.non_private, "Train without noise, instead of --epsilon and --delta");
  command.add_option("--preset", flags.preset, "paper: the DPAR paper's own values; --epsilon is then its claim")
      ->type_name("NAME");
  command
      .add_option("--set", flags.settings, "Set one training option, such as steps=100; may be given again and again")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

}  // namespace

void AddAccuracyCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<AccuracyFlags>();
  CLI::App* command = app.add_subcommand("accuracy", "Train on random splits and count right predictions. Not private");
  AddGraphFlags(*command, flags->graph);
  AddTrainingFlags(*command, *flags);
  command->add_option("--propagation", flags->propagation, "Inference rule: mean-field, power or none")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--seeds", flags->seeds, "Splits; each is the same in every run, noise never is")
      ->capture_default_str();
  command->add_option("--test-share", flags->test_share, "Share of the nodes that is predicted")->capture_default_str();
  command
      ->add_option(
          "--split", flags->split,
          "random, or region: a connected ninth of the nodes is predicted, where classes are mixed differently")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads, 1 to 1024")->default_str("all cores");
  command->add_flag("--json", flags->json, "One JSON object on stdout, prose on stderr");
  command->footer(
      "Example:\n"
      "  dpar-lab accuracy --graph graph.npz --method auto --epsilon 1 --delta 1e-5 --seeds 5 --json\n"
      "With --json: {\"accuracy\": {\"mean\", \"std\"}, \"plain\": {\"mean\", \"std\"}, \"calibration_error\": "
      "{\"mean\",\n"
      "\"std\"}, \"epsilon\", \"plan\"}, where accuracy is with the inference rule, plain without it, "
      "calibration_error how\n"
      "far the rule's probabilities are from how often it is right, over 15 bins, and epsilon what the plan's event\n"
      "costs (null without noise).");
  command->callback([flags, &chosen] { chosen = [flags] { return RunAccuracy(*flags); }; });
}

}  // namespace dpar::lab
