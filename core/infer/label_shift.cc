#include "core/infer/label_shift.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/infer/softmax.h"
#include "core/parallel.h"

namespace dpar {
namespace {

using DoubleRow = Eigen::RowVectorXd;

constexpr int kRounds = 30;
constexpr double kLeastThreshold = 0.03;
constexpr double kDeviations = 0.6;
constexpr int64_t kMaxPartialSums = 64;

// Parts follow from the number of rows alone and are added in order.
DoubleRow SumOfSoftmax(const NodeMatrix& logits, double scale, const DoubleRow& correction, int threads) {
  const int64_t parts = std::clamp<int64_t>(logits.rows() / kRowBlock, 1, kMaxPartialSums);
  std::vector<DoubleRow> sums(static_cast<size_t>(parts), DoubleRow::Zero(logits.cols()));
  ParallelFor(parts, threads, [&](int /*worker*/, int64_t part) {
    DoubleRow corrected(logits.cols());
    Eigen::RowVectorXf probabilities(logits.cols());
    DoubleRow& sum = sums[static_cast<size_t>(part)];
    for (int64_t node = logits.rows() * part / parts; node < logits.rows() * (part + 1) / parts; ++node) {
      corrected = scale * logits.row(node).cast<double>() + correction;
      Softmax(corrected, probabilities);
      sum += probabilities.cast<double>();
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    sums[0] += sums[static_cast<size_t>(part)];
  }
  return sums[0];
}

}  // namespace

double ScoreScale(double logit_noise) { return 2 / std::sqrt(1 + std::numbers::pi * logit_noise * logit_noise / 8); }

LabelShift FindLabelShift(const Model& model, const NodeMatrix& logits, int threads) {
  const double scale = ScoreScale(model.logit_noise);
  const auto nodes = static_cast<double>(logits.rows());
  const auto classes = static_cast<double>(logits.cols());
  const DoubleRow shares =
      Eigen::Map<const Eigen::RowVectorXf>(model.class_shares.data(), logits.cols()).cast<double>();
  DoubleRow correction = DoubleRow::Zero(logits.cols());
  DoubleRow sum = SumOfSoftmax(logits, scale, correction, threads);
  LabelShift shift;
  shift.distance = (sum / nodes - shares).cwiseAbs().sum() / 2;
  shift.threshold =
      kLeastThreshold + kDeviations * classes * std::hypot(model.share_noise, 1 / std::sqrt(classes * nodes));
  if (shift.distance <= shift.threshold) {
    return shift;
  }
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) {
      sum = SumOfSoftmax(logits, scale, correction, threads);
    }
    correction = ((sum.array() + 1) / (nodes + classes) / shares.array()).log().matrix();
  }
  shift.correction.assign(correction.begin(), correction.end());
  return shift;
}

void MakeScores(const Model& model, const LabelShift& shift, int threads, NodeMatrix& logits) {
  const auto scale = static_cast<float>(ScoreScale(model.logit_noise));
  Eigen::RowVectorXf correction = Eigen::RowVectorXf::Zero(logits.cols());
  if (shift.found()) {
    correction = Eigen::Map<const DoubleRow>(shift.correction.data(), logits.cols()).cast<float>();
  }
  ForRowBlocks(logits.rows(), threads, [&](int64_t first, int64_t last) {
    auto rows = logits.middleRows(first, last - first);
    rows = (scale * rows).rowwise() + correction;
  });
}

}  // namespace dpar
