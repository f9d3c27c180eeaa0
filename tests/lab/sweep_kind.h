// The sweeps of dpar-lab: the paper's figures, two that it lacks, and those of its rivals.
#ifndef DPAR_TESTS_LAB_SWEEP_KIND_H_
#define DPAR_TESTS_LAB_SWEEP_KIND_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dpar/v1/training.pb.h"

namespace dpar::lab {

enum class Accounting { kSound, kPublished };

struct SweepKind {
  std::string name = {};
  std::string title = {};                     // of the horizontal axis
  std::vector<double> sound_values = {};      // what is swept when noise is calibrated by SOUND
  std::vector<double> published_values = {};  // and by the paper's theorems
  std::vector<double> epsilons = {};          // a picture for each; empty when epsilon itself is swept
  std::vector<v1::Method> methods = {};
  std::string option = {};                 // of TrainingOptions; empty when epsilon or the promise is swept
  std::string gm_option = {};              // the same of DPAR-GM, where it has another name
  std::vector<std::string> settings = {};  // NAME=VALUE, besides the defaults, for methods with DP-APPR
  double paper_value = 0;                  // at which the paper's Table 1 stands; 0: nowhere, or everywhere for epsilon
  bool trains = true;                      // false: only the two prices of each plan are asked for
  bool promise = false;                    // the degree promise is swept, in multiples of the largest degree

  [[nodiscard]] const std::vector<double>& values(Accounting accounting) const {
    return accounting == Accounting::kSound ? sound_values : published_values;
  }
  [[nodiscard]] bool sweeps_epsilon() const { return option.empty() && !promise; }
};

std::span<const SweepKind> SweepKinds();
// "accounting, batch, ..."
std::string SweepNames();
// INVALID_FIELD `sweep`.
absl::StatusOr<SweepKind> FindSweep(const std::string& name);

// What a sweep takes the accuracy of a method's models with: the paper's power iteration, or mean-field; for models
// that read edges themselves, neither.
const char* InferenceOf(v1::Method method, Accounting accounting);

// The degree promise of a point, for a graph with this largest degree; 0: that degree itself. INVALID_FIELD `values`
// for a multiple below 1, which the graph would break.
absl::StatusOr<int64_t> SweepPromise(const SweepKind& kind, int64_t largest_degree, double value);

// The spec of one point, which is the paper's figure where the option has the paper's value.
absl::StatusOr<v1::TrainingSpec> SweepSpec(const SweepKind& kind, Accounting accounting, v1::Method method,
                                           double epsilon, double delta, double value);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_SWEEP_KIND_H_
