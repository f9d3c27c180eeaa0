#include "core/infer/label_shift.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

Model WithShares(std::vector<float> shares, double noise) {
  Model model;
  model.class_count = static_cast<int64_t>(shares.size());
  model.class_shares = std::move(shares);
  model.share_noise = noise;
  return model;
}

// Logits, half of the logits: the models have no noise in them. Nodes of class 0 with probability `first`, else of
// class 1, whose features are normal around 1 or -1.
NodeMatrix TwoClasses(int64_t nodes, double first, FixedRandom& random) {
  NodeMatrix logits(nodes, 2);
  for (int64_t node = 0; node < nodes; ++node) {
    const double sign = UniformReal(random) < first ? 1 : -1;
    double noise = -6;
    for (int i = 0; i < 12; ++i) {
      noise += UniformReal(random);
    }
    // The log odds of two normals one apart from 0 in either direction: exact under equal classes.
    const double odds = 2 * (sign + noise);
    logits(node, 0) = static_cast<float>(odds / 4);
    logits(node, 1) = static_cast<float>(-odds / 4);
  }
  return logits;
}

// The rule of label_shift.h as it stands there.
std::vector<double> Reference(const Model& model, const NodeMatrix& logits) {
  const auto classes = static_cast<size_t>(logits.cols());
  std::vector<double> correction(classes, 0.0);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> sum(classes, 0.0);
    for (int64_t node = 0; node < logits.rows(); ++node) {
      std::vector<double> p(classes);
      double total = 0;
      for (size_t a = 0; a < classes; ++a) {
        p[a] = std::exp(2 * static_cast<double>(logits(node, static_cast<int64_t>(a))) + correction[a]);
        total += p[a];
      }
      for (size_t a = 0; a < classes; ++a) {
        sum[a] += p[a] / total;
      }
    }
    for (size_t a = 0; a < classes; ++a) {
      const double share = (sum[a] + 1) / static_cast<double>(logits.rows() + logits.cols());
      correction[a] = std::log(share / static_cast<double>(model.class_shares[a]));
    }
  }
  return correction;
}

TEST(ScoreScale, TempersLogitsByTheirNoise) {
  EXPECT_EQ(ScoreScale(0), 2);
  EXPECT_DOUBLE_EQ(ScoreScale(2), 2 / std::sqrt(1 + std::numbers::pi / 2));
  EXPECT_EQ(ScoreScale(1e300), 0);
}

TEST(FindLabelShift, FindsNoneWhereClassesAreMixedAsInTraining) {
  FixedRandom random(1);
  const LabelShift shift = FindLabelShift(WithShares({0.5F, 0.5F}, 0), TwoClasses(4000, 0.5, random), 1);
  EXPECT_FALSE(shift.found());
  EXPECT_LT(shift.distance, 0.02);
  EXPECT_NEAR(shift.threshold, 0.03 + 0.6 * 2 / std::sqrt(2 * 4000), 1e-12);
}

TEST(FindLabelShift, CorrectsByTheTrueRatioOfClasses) {
  FixedRandom random(2);
  const NodeMatrix logits = TwoClasses(20'000, 0.9, random);
  const Model model = WithShares({0.5F, 0.5F}, 0);
  const LabelShift shift = FindLabelShift(model, logits, 2);
  ASSERT_TRUE(shift.found());
  EXPECT_NEAR(shift.correction[0], std::log(0.9 / 0.5), 0.03);
  EXPECT_NEAR(shift.correction[1], std::log(0.1 / 0.5), 0.15);
  const std::vector<double> expected = Reference(model, logits);
  for (size_t a = 0; a < 2; ++a) {
    EXPECT_NEAR(shift.correction[a], expected[a], 1e-5);
  }
}

TEST(FindLabelShift, WantsMoreEvidenceWhereSharesAreNoisy) {
  FixedRandom random(3);
  const NodeMatrix logits = TwoClasses(4000, 0.9, random);
  EXPECT_TRUE(FindLabelShift(WithShares({0.5F, 0.5F}, 0.01), logits, 1).found());
  const LabelShift noisy = FindLabelShift(WithShares({0.5F, 0.5F}, 1), logits, 1);
  EXPECT_FALSE(noisy.found());
  EXPECT_NEAR(noisy.threshold, 0.03 + 1.2 * std::sqrt(1 + 1.0 / 8000), 1e-12);
}

TEST(FindLabelShift, GivesTheSameBitsWhateverTheNumberOfThreads) {
  FixedRandom random(4);
  const NodeMatrix logits = TwoClasses(5000, 0.8, random);
  const Model model = WithShares({0.4F, 0.6F}, 0);
  const LabelShift once = FindLabelShift(model, logits, 1);
  ASSERT_TRUE(once.found());
  for (const int threads : {2, 3, 8}) {
    EXPECT_EQ(FindLabelShift(model, logits, threads).correction, once.correction) << threads;
  }
}

TEST(FindLabelShift, StaysFiniteForOneNodeHugeScoresAndClassesThatNoneHas) {
  NodeMatrix logits = NodeMatrix::Zero(1, 3);
  logits << 1e25F, -1e25F, 0;
  const LabelShift shift = FindLabelShift(WithShares({0.01F, 0.01F, 0.98F}, 0), logits, 1);
  for (const double entry : shift.correction) {
    EXPECT_TRUE(std::isfinite(entry));
  }
  NodeMatrix many = NodeMatrix::Zero(3000, 3);
  many.col(0).setConstant(50);
  const LabelShift found = FindLabelShift(WithShares({0.01F, 0.01F, 0.98F}, 0), many, 1);
  ASSERT_TRUE(found.found());
  EXPECT_NEAR(found.correction[0], std::log(3001.0 / 3003 / 0.01), 1e-5);
  EXPECT_NEAR(found.correction[2], std::log(1.0 / 3003 / 0.98), 1e-5);
}

TEST(MakeScores, TempersLogitsAndAddsTheCorrection) {
  Model model;
  NodeMatrix logits = NodeMatrix::Ones(600, 2);
  LabelShift shift;
  MakeScores(model, shift, 2, logits);
  EXPECT_EQ(logits, NodeMatrix::Constant(600, 2, 2.0F));
  shift.correction = {0.5, -1};
  model.logit_noise = 2;
  logits = NodeMatrix::Ones(600, 2);
  MakeScores(model, shift, 2, logits);
  const auto scale = static_cast<float>(ScoreScale(2));
  EXPECT_EQ(logits.col(0), Eigen::VectorXf::Constant(600, scale + 0.5F));
  EXPECT_EQ(logits.col(1), Eigen::VectorXf::Constant(600, scale - 1.0F));
}

}  // namespace
}  // namespace dpar
