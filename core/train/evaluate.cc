#include "core/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/infer/logits.h"
#include "core/parallel.h"
#include "core/random/lattice.h"
#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<v1::Evaluation> Evaluate(const v1::Plan& plan, const Model& model, const GraphView& held_out,
                                        RandomSource& random, const std::function<bool()>& keep_going) {
  constexpr double kNormalQuantile = 1.959963984540054;  // of 0.975
  DPAR_ASSIGN_OR_RETURN(const NodeMatrix logits, Logits(model, held_out.features, HardwareThreads(), keep_going));
  double right = 0;
  for (Eigen::Index slot = 0; slot < logits.rows(); ++slot) {
    const float* row = logits.row(slot).data();
    const auto predicted = std::max_element(row, row + logits.cols()) - row;
    right += predicted == held_out.labels[static_cast<size_t>(slot)] ? 1 : 0;
  }
  const double noise = plan.evaluation().noise_stddev();
  if (!plan.non_private()) {
    AddLatticeNoise(random, noise, plan.lattice_bits(), std::span(&right, 1));
  }
  const auto slots = static_cast<double>(plan.evaluation().held_out_slots());
  const double accuracy = std::clamp(right / slots, 0.0, 1.0);
  // Agresti and Coull's two more of each keep the spread from vanishing at 0 and 1.
  const double centre = (accuracy * slots + 2) / (slots + 4);
  const double spread = kNormalQuantile * std::sqrt(centre * (1 - centre) / slots + noise * noise / (slots * slots));
  v1::Evaluation evaluation;
  evaluation.set_accuracy(accuracy);
  evaluation.set_low(std::clamp(accuracy - spread, 0.0, 1.0));
  evaluation.set_high(std::clamp(accuracy + spread, 0.0, 1.0));
  evaluation.set_held_out_slots(plan.evaluation().held_out_slots());
  return evaluation;
}

}  // namespace dpar
