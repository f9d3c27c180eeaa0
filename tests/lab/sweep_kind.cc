#include "tests/lab/sweep_kind.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "tests/lab/option_setting.h"
#include "tests/lab/study.h"

namespace dpar::lab {
namespace {

// What the rivals have besides the parameters that all methods have.
std::vector<SweepKind> MakeRivalKinds() {
  const std::vector<double> both = {1, 8};
  const std::vector<double> sum_bounds = {1, 2, 4, 8, 16, 32};
  // At 12 any graph of Cora-ML's size keeps it, or nearly.
  const std::vector<double> promises = {1, 2, 4, 8, 12};
  return {
      {.name = "hops",
       .title = "hops of GAP",
       .sound_values = {1, 2, 3, 4, 5},
       .published_values = {1, 2, 3, 4, 5},
       .epsilons = both,
       .methods = {v1::GAP},
       .option = "hops"},
      {.name = "aggregation-clip",
       .title = "R, bound of a sum over neighbours",
       .sound_values = sum_bounds,
       .published_values = sum_bounds,
       .epsilons = both,
       .methods = {v1::GAP},
       .option = "aggregation_clip"},
      {.name = "neighbours",
       .title = "neighbours that SAGE samples",
       .sound_values = {1, 2, 5, 10, 25},
       .published_values = {1, 2, 5, 10, 25},
       .epsilons = {8},
       .methods = {v1::SAGE},
       .option = "neighbours"},
      {.name = "promise",
       .title = "D, in multiples of the largest degree",
       .sound_values = promises,
       .published_values = promises,
       .epsilons = both,
       .methods = {v1::GAP},
       .promise = true},
  };
}

const std::vector<v1::Method> kStructure = {v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM};
const std::vector<v1::Method> kAllDpar = {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM};
// Figures that the paper drew at one epsilon have K = 4 there.
const std::vector<std::string> kFourEntries = {"top_k=4"};

// What is spent, and on which stage.
std::vector<SweepKind> MakeSpendKinds() {
  const std::vector<double> epsilons = {0.5, 1, 2, 4, 8, 16};
  const std::vector<double> ratios = {0, 0.1, 0.3, 0.5, 0.7, 0.9};
  const std::vector<double> rates = {0.03, 0.09, 0.25, 0.5, 1};
  return {
      {.name = "accounting",
       .title = "epsilon by the paper's theorems",
       .published_values = {0.25, 0.5, 1, 2, 4, 8, 16},
       .methods = kAllDpar,
       .trains = false},
      {.name = "epsilon",
       .title = "epsilon",
       .sound_values = epsilons,
       .published_values = epsilons,
       .methods = kAllDpar},
      {.name = "ratio",
       .title = "share of epsilon for DP-APPR",
       .sound_values = ratios,
       .published_values = ratios,
       .epsilons = {1, 8},
       .methods = kStructure,
       .option = "structure_share",
       .paper_value = 0.5},
      {.name = "node-sampling",
       .title = "q', share of the nodes that is sampled",
       .sound_values = rates,
       .published_values = rates,
       .epsilons = {1, 8},
       .methods = kAllDpar,
       .option = "node_sampling_rate",
       .paper_value = 0.09},
  };
}

// What DP-APPR and DP-SGD are run with.
std::vector<SweepKind> MakeStageKinds() {
  const std::vector<double> row_bounds = {1e-4, 1e-3, 1e-2, 1e-1, 1};
  const std::vector<double> entries = {2, 4, 8, 16, 32};
  const std::vector<double> seeds = {10, 35, 70, 140, 280};
  const std::vector<double> gradient_bounds = {0.03, 0.1, 0.3, 1, 3, 10};
  return {
      {.name = "bound",
       .title = "clipping bound of DP-APPR (C1 of GM, C2 of EM)",
       .sound_values = row_bounds,
       .published_values = row_bounds,
       .epsilons = {8},
       .methods = kStructure,
       .option = "entry_clip",
       .gm_option = "row_clip",
       .settings = kFourEntries},
      {.name = "top-k",
       .title = "K, entries of a row",
       .sound_values = entries,
       .published_values = entries,
       .epsilons = {1, 8},
       .methods = kStructure,
       .option = "top_k",
       .paper_value = 2},
      {.name = "appr-nodes",
       .title = "M, nodes with a DP-APPR row",
       .sound_values = seeds,
       .published_values = seeds,
       .epsilons = {1, 8},
       .methods = kStructure,
       .option = "appr_nodes",
       .paper_value = 70},
      {.name = "batch",
       .title = "B, expected batch size",
       .sound_values = {30, 60, 120, 240, 600, 1200},
       .published_values = {15, 30, 60, 120, 200},
       .epsilons = {8},
       .methods = kStructure,
       .option = "batch_size",
       .settings = kFourEntries},
      {.name = "gradient-clip",
       .title = "C, bound of a gradient",
       .sound_values = gradient_bounds,
       .published_values = gradient_bounds,
       .epsilons = {8},
       .methods = kStructure,
       .option = "gradient_clip",
       .settings = kFourEntries},
  };
}

}  // namespace

std::span<const SweepKind> SweepKinds() {
  static const auto* kinds = [] {
    auto* all = new std::vector<SweepKind>(MakeSpendKinds());
    for (const std::vector<SweepKind>& more : {MakeStageKinds(), MakeRivalKinds()}) {
      all->insert(all->end(), more.begin(), more.end());
    }
    return all;
  }();
  return *kinds;
}

std::string SweepNames() {
  return absl::StrJoin(SweepKinds(), ", ", [](std::string* out, const SweepKind& kind) { *out += kind.name; });
}

absl::StatusOr<SweepKind> FindSweep(const std::string& name) {
  for (const SweepKind& kind : SweepKinds()) {
    if (kind.name == name) {
      return kind;
    }
  }
  return InvalidField("sweep", absl::StrCat("sweep is one of ", SweepNames(), "; not '", name, "'"));
}

const char* InferenceOf(v1::Method method, Accounting accounting) {
  if (FindMethod(method)->reads_edges) {
    return "none";
  }
  return accounting == Accounting::kSound ? "mean-field" : "power";
}

absl::StatusOr<int64_t> SweepPromise(const SweepKind& kind, int64_t largest_degree, double value) {
  if (!kind.promise || value == 1) {
    return 0;
  }
  constexpr double kMostTimes = 1e6;
  DPAR_RETURN_IF_ERROR(ValidateRange("values", value, 1.0, kMostTimes));
  return static_cast<int64_t>(value * static_cast<double>(largest_degree));
}

absl::StatusOr<v1::TrainingSpec> SweepSpec(const SweepKind& kind, Accounting accounting, v1::Method method,
                                           double epsilon, double delta, double value) {
  const double target = kind.sweeps_epsilon() ? value : epsilon;
  v1::TrainingSpec spec =
      accounting == Accounting::kSound ? SoundSpec(method, target, delta) : PublishedSpec(method, target, delta);
  std::vector<std::string> settings;
  if (FindMethod(method)->structure.has_value()) {
    settings = kind.settings;
  }
  if (!kind.option.empty()) {
    const bool renamed = method == v1::DPAR_GM && !kind.gm_option.empty();
    // %.15g of a whole number has no point, as options that are counts want it.
    settings.push_back(absl::StrCat(renamed ? kind.gm_option : kind.option, "=", absl::StrFormat("%.15g", value)));
  }
  for (const std::string& setting : settings) {
    DPAR_RETURN_IF_ERROR(SetOption(setting, *spec.mutable_options()));
  }
  return spec;
}

}  // namespace dpar::lab
