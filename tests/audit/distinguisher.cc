#include "tests/audit/distinguisher.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace dpar::audit {
namespace {

// Added to variances of 1, so that what is constant has a density too.
constexpr double kRidge = 1e-9;
// Events of the first quarter have at least so many runs in them on one side.
constexpr double kFewestRuns = 20;
// The best of many events looks better than it is. A smaller error makes rare ones, of which that is true most, look
// worse.
constexpr double kCaution = 1e-4;
// Thresholds are at tails that grow by this factor.
constexpr double kTailGrowth = 1.2;

using Score = std::function<double(const Eigen::RowVectorXd&)>;

struct Moments {
  Eigen::RowVectorXd mean;
  Eigen::MatrixXd covariance;
};

Moments MomentsOf(const Releases& sample) {
  Moments moments;
  moments.mean = sample.colwise().mean();
  const Eigen::MatrixXd centred = sample.rowwise() - moments.mean;
  moments.covariance = centred.transpose() * centred / static_cast<double>(sample.rows());
  moments.covariance.diagonal().array() += kRidge;
  return moments;
}

// The log density of a normal distribution, but for a constant.
Score LogDensity(const Moments& moments) {
  const Eigen::LLT<Eigen::MatrixXd> factor(moments.covariance);
  const Eigen::MatrixXd lower = factor.matrixL();
  const double log_determinant = lower.diagonal().array().log().sum();
  return [lower, log_determinant, mean = moments.mean](const Eigen::RowVectorXd& x) {
    const Eigen::VectorXd whitened = lower.triangularView<Eigen::Lower>().solve((x - mean).transpose().eval());
    return -0.5 * whitened.squaredNorm() - log_determinant;
  };
}

std::vector<Score> FitScores(const Releases& with, const Releases& without) {
  const Moments one = MomentsOf(with);
  const Moments other = MomentsOf(without);
  const Eigen::MatrixXd pooled = (one.covariance + other.covariance) / 2;
  const Eigen::VectorXd direction = pooled.llt().solve((one.mean - other.mean).transpose().eval());
  std::vector<Score> scores;
  scores.emplace_back([direction](const Eigen::RowVectorXd& x) { return x.dot(direction.transpose()); });
  scores.emplace_back([density = LogDensity(one), other_density = LogDensity(other)](const Eigen::RowVectorXd& x) {
    return density(x) - other_density(x);
  });
  return scores;
}

std::vector<double> Scored(const Releases& sample, const Score& score) {
  std::vector<double> scores(static_cast<size_t>(sample.rows()));
  for (Eigen::Index i = 0; i < sample.rows(); ++i) {
    scores[static_cast<size_t>(i)] = score(sample.row(i));
  }
  return scores;
}

// Score at least `threshold`, or at most it, as evidence for the first or the second sample.
struct Event {
  bool high = true;
  double threshold = 0;
};

int64_t Hits(const std::vector<double>& scores, const Event& event) {
  return std::count_if(scores.begin(), scores.end(),
                       [&](double score) { return event.high ? score >= event.threshold : score <= event.threshold; });
}

double BoundOf(const Event& event, const std::vector<double>& with, const std::vector<double>& without, double delta,
               double error) {
  const std::vector<double>& likely = event.high ? with : without;
  const std::vector<double>& unlikely = event.high ? without : with;
  const double p = ProbabilityAtLeast(Hits(likely, event), static_cast<int64_t>(likely.size()), error / 2);
  const double q = ProbabilityAtMost(Hits(unlikely, event), static_cast<int64_t>(unlikely.size()), error / 2);
  return p > delta ? std::max(0.0, std::log((p - delta) / q)) : 0;
}

// Thresholds at tails of both samples.
std::vector<Event> CandidateEvents(std::vector<double> with, std::vector<double> without) {
  std::sort(with.begin(), with.end());
  std::sort(without.begin(), without.end());
  std::vector<Event> events;
  for (const std::vector<double>& scores : {with, without}) {
    for (double tail = kFewestRuns; tail < static_cast<double>(scores.size()); tail *= kTailGrowth) {
      const auto place = static_cast<size_t>(tail);
      events.push_back({true, scores[scores.size() - place]});
      events.push_back({false, scores[place - 1]});
    }
  }
  return events;
}

// Every column with mean 0 and variance 1 over the first quarters, and constant columns at 0.
void Standardise(Eigen::Index few, Releases& with, Releases& without) {
  for (Eigen::Index column = 0; column < with.cols(); ++column) {
    const double mean = (with.col(column).head(few).mean() + without.col(column).head(few).mean()) / 2;
    with.col(column).array() -= mean;
    without.col(column).array() -= mean;
    const double variance = (with.col(column).head(few).squaredNorm() + without.col(column).head(few).squaredNorm()) /
                            static_cast<double>(2 * few);
    const double scale = variance > 0 ? 1 / std::sqrt(variance) : 0;
    with.col(column) *= scale;
    without.col(column) *= scale;
  }
}

}  // namespace

double ProbabilityAtLeast(int64_t hits, int64_t trials, double error) {
  return hits == 0 ? 0
                   : boost::math::ibeta_inv(static_cast<double>(hits), static_cast<double>(trials - hits + 1), error);
}

double ProbabilityAtMost(int64_t hits, int64_t trials, double error) {
  return hits == trials
             ? 1
             : boost::math::ibetac_inv(static_cast<double>(hits + 1), static_cast<double>(trials - hits), error);
}

double EpsilonAtLeast(Releases with, Releases without, double delta, double error) {
  const Eigen::Index few = std::min(with.rows(), without.rows()) / 4;
  const auto finite = [](double value) { return std::isfinite(value) ? value : 0; };
  with = with.unaryExpr(finite);
  without = without.unaryExpr(finite);
  Standardise(few, with, without);
  const std::vector<Score> scores = FitScores(with.topRows(few), without.topRows(few));
  // The best event of each score is measured, and each has its share of the error: the score that looks better on the
  // first quarter may be the one that fails on the rest.
  const double share = error / static_cast<double>(scores.size());
  double proven = 0;
  for (const Score& score : scores) {
    const std::vector<double> with_scores = Scored(with.topRows(few), score);
    const std::vector<double> without_scores = Scored(without.topRows(few), score);
    double best = -1;
    Event chosen;
    for (const Event& event : CandidateEvents(with_scores, without_scores)) {
      const double bound = BoundOf(event, with_scores, without_scores, delta, share * kCaution);
      if (bound > best) {
        best = bound;
        chosen = event;
      }
    }
    proven = std::max(proven, BoundOf(chosen, Scored(with.bottomRows(with.rows() - few), score),
                                      Scored(without.bottomRows(without.rows() - few), score), delta, share));
  }
  return proven;
}

}  // namespace dpar::audit
