#include "core/infer/propagate.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/infer/label_shift.h"
#include "core/infer/logits.h"
#include "core/infer/neighbour_weight.h"
#include "core/infer/power_iteration.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxIterations = 1000;

}  // namespace

absl::Status ValidatePropagation(const PredictOptions& options) {
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    return InvalidField("alpha", absl::StrCat("alpha must be above 0 and at most 1, got ", options.alpha));
  }
  return ValidateRange("iterations", options.iterations, int64_t{0}, kMaxIterations);
}

Propagated Propagate(const Model& model, const EdgesView& edges, NodeMatrix logits, const PredictOptions& options,
                     int threads) {
  if (options.propagation == Propagation::kPower) {
    return {PowerIteration(edges, logits, options, threads), std::nullopt};
  }
  std::optional<LabelShift> shift;
  if (options.shift && !model.class_shares.empty() && logits.rows() > 0) {
    shift = FindLabelShift(model, logits, threads);
  }
  const LabelShift found = shift.value_or(LabelShift());
  const double scale = ScoreScale(model.logit_noise);
  MakeScores(model, found, threads, logits);
  double weight = 0;
  if (options.propagation == Propagation::kMeanField) {
    HeardNeighbours heard = HearNeighbours(edges, std::move(logits), found.correction, scale, threads);
    logits = std::move(heard.scores);
    weight = heard.weight;
  }
  if (shift.has_value()) {
    shift->neighbour_weight = weight;
  }
  TemperScores(edges, scale, weight, threads, logits);
  return {std::move(logits), std::move(shift)};
}

NodeMatrix Probabilities(Propagated propagated, int threads) {
  NodeMatrix rows = std::move(propagated.rows);
  ForRowBlocks(rows.rows(), threads, [&](int64_t first, int64_t last) {
    Eigen::RowVectorXd exponentials(rows.cols());
    for (int64_t node = first; node < last; ++node) {
      const auto best = static_cast<double>(rows.row(node).maxCoeff());
      double total = 0;
      for (Eigen::Index i = 0; i < rows.cols(); ++i) {
        exponentials[i] = std::exp(static_cast<double>(rows(node, i)) - best);
        total += exponentials[i];
      }
      rows.row(node) = (exponentials / total).cast<float>();
    }
  });
  return rows;
}

}  // namespace dpar
