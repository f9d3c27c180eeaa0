// dpar-lab select: private rows, with the least noise that meets (epsilon, delta).
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/appr/columns.h"
#include "core/appr/private_rows.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/privacy/accountant.h"
#include "core/privacy/calibrate.h"
#include "core/privacy/event.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/row_progress.h"
#include "tests/lab/rows_output.h"
#include "tests/lab/solver_flags.h"

namespace dpar::lab {
namespace {

// The paper's C1 and C2.
constexpr double kGaussianClip = 0.01;
constexpr double kExponentialClip = 0.001;
// No entry and no row's norm is above 1: a larger bound would clip nothing. Far below the least one, steps of the noise
// would be too small for a double.
constexpr double kLeastClip = 1e-12;
constexpr double kMostClip = 1;
constexpr double kValueShare = 0.5;
constexpr size_t kMaxRowsShown = 5;

struct SelectFlags {
  SolverFlags solver;
  std::string mechanism;
  int64_t rows = 70;
  int64_t k = 4;
  std::optional<double> clip;
  double epsilon = 0;
  double delta = 0;
  std::optional<double> value_share;
  std::optional<int64_t> max_occurrence;
  std::optional<double> tau;
  std::optional<std::string> seeds;
};

absl::StatusOr<ApprMechanism> ParseMechanism(const std::string& typed) {
  if (typed == "em0") {
    return ApprMechanism::kEm0;
  }
  if (typed == "em1") {
    return ApprMechanism::kEm1;
  }
  if (typed == "gm") {
    return ApprMechanism::kGm;
  }
  return InvalidField("mechanism", absl::StrCat("mechanism is one of em0, em1, gm; not '", typed, "'"));
}

absl::Status CheckFlags(const SelectFlags& flags) {
  if (flags.seeds.has_value()) {
    return InvalidField("seeds",
                        "seeds is refused here: select draws them itself, uniformly, because seeds chosen by somebody "
                        "who knows the graph would tell about it; dpar-lab appr takes them");
  }
  DPAR_RETURN_IF_ERROR(CheckSolverFlags(flags.solver));
  DPAR_RETURN_IF_ERROR(ValidatePositive("epsilon", flags.epsilon, kMaxTargetEpsilon));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", flags.delta));
  if (flags.clip.has_value()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("clip", *flags.clip, kLeastClip, kMostClip));
  }
  if (flags.value_share.has_value()) {
    DPAR_RETURN_IF_ERROR(ValidateProbability("value_share", *flags.value_share));
    if (flags.mechanism != "em1") {
      return InvalidField("value_share", "value_share is for em1, the only mechanism that prices values on their own");
    }
  }
  if (flags.max_occurrence.has_value()) {
    DPAR_RETURN_IF_ERROR(
        ValidateRange("max_occurrence", *flags.max_occurrence, int64_t{1}, std::numeric_limits<int64_t>::max()));
  }
  return flags.tau.has_value() ? ValidatePositive("tau", *flags.tau) : absl::OkStatus();
}

// The options with noise as large as what one node changes: noise 1 in the words of core/privacy/calibrate.h.
absl::StatusOr<PrivateRowsOptions> UnitNoiseOptions(const SelectFlags& flags) {
  PrivateRowsOptions options;
  options.solver = flags.solver.parameters;
  DPAR_ASSIGN_OR_RETURN(options.mechanism, ParseMechanism(flags.mechanism));
  const bool gaussian = options.mechanism == ApprMechanism::kGm;
  options.rows = flags.rows;
  options.k = flags.k;
  options.clip = flags.clip.value_or(gaussian ? kGaussianClip : kExponentialClip);
  options.noise = options.clip * (gaussian ? std::sqrt(2 * static_cast<double>(flags.rows)) : 2);
  options.value_noise = options.mechanism == ApprMechanism::kEm1 ? options.clip : 0;
  return options;
}

struct Calibrated {
  PrivateRowsOptions options;
  v1::PrivacyEvent event;
  double epsilon = 0;  // what the event costs
};

// Multiplies the noise of `options`, whose event is `unit`, so that the target is met.
absl::Status ScaleToTarget(const SelectFlags& flags, const v1::PrivacyEvent& unit, PrivateRowsOptions& options) {
  if (options.mechanism != ApprMechanism::kEm1) {
    DPAR_ASSIGN_OR_RETURN(const double x, CalibrateNoise([&unit](double noise) { return ScaleNoise(unit, noise); },
                                                         flags.epsilon, flags.delta));
    options.noise *= x;
    return absl::OkStatus();
  }
  const double share = flags.value_share.value_or(kValueShare);
  // The selections get their share of epsilon, and the values all that is left.
  const auto selections = [&unit](double noise) { return ScaleNoise(unit.composition().events(0), noise); };
  DPAR_ASSIGN_OR_RETURN(const double noise, CalibrateNoise(selections, flags.epsilon * (1 - share), flags.delta));
  const auto both = [&](double value_noise) {
    v1::PrivacyEvent event;
    *event.mutable_composition()->add_events() = selections(noise);
    *event.mutable_composition()->add_events() = ScaleNoise(unit.composition().events(1), value_noise);
    return event;
  };
  DPAR_ASSIGN_OR_RETURN(const double value_noise, CalibrateNoise(both, flags.epsilon, flags.delta));
  options.noise *= noise;
  options.value_noise *= value_noise;
  return absl::OkStatus();
}

absl::StatusOr<Calibrated> Calibrate(const SelectFlags& flags, const PrivateRowsOptions& unit_options,
                                     int64_t node_count) {
  Calibrated calibrated;
  calibrated.options = unit_options;
  PrivateRowsOptions& options = calibrated.options;
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent unit, PrivateRowsEvent(options, node_count));
  DPAR_RETURN_IF_ERROR(ScaleToTarget(flags, unit, options));
  // What is drawn is what is priced: scaled options and a scaled event may differ in the last bits.
  for (double nudge = 1e-12;; nudge *= 2) {
    DPAR_ASSIGN_OR_RETURN(calibrated.event, PrivateRowsEvent(options, node_count));
    DPAR_ASSIGN_OR_RETURN(calibrated.epsilon, EventEpsilon(calibrated.event, flags.delta));
    if (calibrated.epsilon <= flags.epsilon) {
      return calibrated;
    }
    options.noise *= 1 + nudge;
    options.value_noise *= 1 + nudge;
  }
}

// So that it comes back as the same bits: a cost must not be shown below what it is.
std::string Exact(double value) { return nlohmann::json(value).dump(); }

std::string Note(const SelectFlags& flags, const Calibrated& calibrated) {
  return absl::StrCat("seeds, ids and values are private under node-level (epsilon ", Exact(calibrated.epsilon),
                      ", delta ", Exact(flags.delta), ") differential privacy; the number of nodes",
                      flags.solver.graph.largest_component ? ", which of the file's are in the largest component" : "",
                      " and the time this took are not private. Nothing was charged to any ledger, and running it "
                      "again spends again");
}

std::string Json(const SelectFlags& flags, const Calibrated& calibrated, const ApprRows& rows) {
  nlohmann::ordered_json json = {{"mechanism", flags.mechanism},
                                 {"epsilon", calibrated.epsilon},
                                 {"delta", flags.delta},
                                 {"noise", calibrated.options.noise}};
  if (calibrated.options.mechanism == ApprMechanism::kEm1) {
    json["value_noise"] = calibrated.options.value_noise;
  }
  json["event"] = MessageToJson(calibrated.event);
  json["rows"] = RowsJson(rows);
  return JsonText(json);
}

std::string Summary(const SelectFlags& flags, const Calibrated& calibrated, const ApprRows& rows) {
  const PrivateRowsOptions& options = calibrated.options;
  std::string text = absl::StrCat("mechanism  ", flags.mechanism, ", ", options.rows, " rows of ", options.k,
                                  " entries, clip ", options.clip, "\n");
  absl::StrAppend(&text, "epsilon    ", Exact(calibrated.epsilon), " at delta ", Exact(flags.delta),
                  " (asked for: ", Exact(flags.epsilon), " or less)\n");
  absl::StrAppend(&text, "noise      ", options.noise);
  if (options.mechanism == ApprMechanism::kEm1) {
    absl::StrAppend(&text, ", of values ", options.value_noise);
  }
  return absl::StrCat(text, "\n\n", RowsTable(rows, kMaxRowsShown));
}

absl::StatusOr<CommandOutput> RunSelect(const SelectFlags& flags) {
  DPAR_RETURN_IF_ERROR(CheckFlags(flags));
  DPAR_ASSIGN_OR_RETURN(const PrivateRowsOptions unit_options, UnitNoiseOptions(flags));
  DPAR_ASSIGN_OR_RETURN(const GraphInput input, GraphInput::Open(flags.solver.graph));
  DPAR_ASSIGN_OR_RETURN(const GraphView graph, input.View());
  DPAR_ASSIGN_OR_RETURN(const Calibrated calibrated, Calibrate(flags, unit_options, graph.sizes.node_count));
  RowProgress progress(flags.rows);
  const auto callback = [&progress](int64_t rows_done) {
    progress.Update(rows_done);
    return true;
  };
  SecureRandom random;
  DPAR_ASSIGN_OR_RETURN(PrivateRows drawn,
                        DrawPrivateRows(graph, calibrated.options, flags.solver.threads, random, callback));
  ApprRows& rows = drawn.rows;
  DPAR_RETURN_IF_ERROR(BoundColumns(flags.max_occurrence.value_or(std::numeric_limits<int64_t>::max()),
                                    flags.tau.value_or(std::numeric_limits<double>::infinity()), rows));
  return CommandOutput{Note(flags, calibrated),
                       flags.solver.json ? Json(flags, calibrated, rows) : Summary(flags, calibrated, rows)};
}

void AddMechanismFlags(CLI::App& command, SelectFlags& flags) {
  command
      .add_option("--mechanism", flags.mechanism,
                  "em0 (exponential mechanism, equal values), em1 (the same, and noisy values) or gm (Gaussian)")
      ->type_name("NAME")
      ->required();
  command.add_option("--epsilon", flags.epsilon, "What the rows may cost, above 0 and at most 10000")->required();
  command.add_option("--delta", flags.delta, "Above 0 and below 1")->required();
  command.add_option("--rows", flags.rows, "Rows, M: seeds to draw")->capture_default_str();
  command.add_option("--k", flags.k, "Entries of a row, K")->capture_default_str();
  command
      .add_option("--clip", flags.clip,
                  "Most l2 norm of a row for gm (C1), largest entry for em0 and em1 (C2); 1e-12 to 1")
      ->default_str("0.01 for gm, 0.001 for em0 and em1");
  command.add_option("--value-share", flags.value_share, "Share of epsilon for the values, above 0 and below 1 (em1)")
      ->default_str("0.5");
  command.add_option("--max-occurrence", flags.max_occurrence,
                     "Keep at most so many entries for one node, the largest; costs nothing");
  command.add_option("--tau", flags.tau, "Scale a node's entries down to this l1 norm; costs nothing");
  // Hidden, and still known: whoever gives it is told why it is not taken.
  command.add_option("--seeds", flags.seeds)->group("");
}

}  // namespace

void AddSelectCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<SelectFlags>();
  CLI::App* command = app.add_subcommand("select", "Draw private rows: seeds, their top entries and values");
  AddSolverFlags(*command, flags->solver);
  AddMechanismFlags(*command, *flags);
  command->footer(
      "Example:\n"
      "  dpar-lab select --graph graph.npz --mechanism gm --epsilon 1 --delta 1e-5 --rows 70 --k 4 --json\n"
      "With --json: {\"mechanism\", \"epsilon\", \"delta\", \"noise\", \"value_noise\" (em1), \"event\", \"rows\"},\n"
      "where epsilon is what the event really costs. Nothing is charged to any ledger; each run spends again.");
  command->callback([flags, &chosen] { chosen = [flags] { return RunSelect(*flags); }; });
}

}  // namespace dpar::lab
