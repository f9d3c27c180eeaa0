// Whether the lazy choice has the distribution of the dense one. Streams are fixed, so a false-alarm rate below is the
// chance that the stream chosen once was an unlucky one.
#include "core/appr/selection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/appr/testing/reference.h"
#include "core/appr/testing/small_graphs.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::Dense;
using ::dpar::testing::DenseTopK;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::NoisyEntry;
using ::dpar::testing::NormalCdf;
using ::testing::ElementsAre;

using Outcome = std::vector<int32_t>;

Outcome IdsOf(const std::vector<NoisyEntry>& entries) {
  Outcome ids;
  for (const NoisyEntry& entry : entries) {
    ids.push_back(entry.id);
  }
  return ids;
}

// One problem of choosing K of N.
struct Case {
  int64_t node_count;
  SparseVector scores;
  int64_t k;
  double scale = 1;
};

std::string NameOf(const Case& c) {
  return absl::StrCat("N ", c.node_count, " support ", c.scores.ids.size(), " K ", c.k);
}

// The choice, with noise as far as it is known.
std::vector<NoisyEntry> Lazy(const Case& c, ScoreNoise noise, RandomSource& random) {
  std::vector<NoisyEntry> entries;
  for (const SelectedEntry& entry : SelectTopK(c.scores, c.node_count, c.k, noise, c.scale, random)) {
    const double score = (entry.score.known().low + entry.score.known().high) / 2;
    entries.push_back({entry.id, entry.value, c.scale * score - entry.value});
  }
  return entries;
}

// What is promised of every choice, whatever was drawn.
void ExpectWellFormed(const Case& c, const std::vector<NoisyEntry>& entries) {
  const std::vector<double> scores = Dense(c.scores, c.node_count);
  ASSERT_EQ(static_cast<int64_t>(entries.size()), c.k);
  std::set<int32_t> ids;
  double last = std::numeric_limits<double>::infinity();
  for (const NoisyEntry& entry : entries) {
    ASSERT_GE(entry.id, 0);
    ASSERT_LT(entry.id, c.node_count);
    EXPECT_TRUE(ids.insert(entry.id).second) << "chosen twice: " << entry.id;
    EXPECT_EQ(entry.value, scores[static_cast<size_t>(entry.id)]);
    EXPECT_TRUE(std::isfinite(entry.noise));
    EXPECT_LE(entry.noisy(), last);
    last = entry.noisy();
  }
}

TEST(SelectTopKTest, GivesDistinctSlotsWithTheirScoresInDescendingOrder) {
  FixedRandom random(1);
  for (const int64_t node_count : {1, 2, 3, 10, 100, 3000}) {
    for (const int64_t support : {0, 1, 2, 9, 10, 90, 100}) {
      for (const int64_t k : {1, 2, 5, 10, 99, 100}) {
        if (support > node_count || k > node_count) {
          continue;
        }
        Case c = {.node_count = node_count, .scores = {}, .k = k, .scale = 0.1};
        for (int64_t i = 0; i < support; ++i) {
          c.scores.ids.push_back(static_cast<int32_t>(node_count - 1 - i));
          c.scores.values.push_back(0.01 * static_cast<double>(i + 1));
        }
        SCOPED_TRACE(NameOf(c));
        for (int round = 0; round < 20; ++round) {
          for (const ScoreNoise noise : {ScoreNoise::kGumbel, ScoreNoise::kGaussian}) {
            ExpectWellFormed(c, Lazy(c, noise, random));
          }
        }
      }
    }
  }
}

TEST(SelectTopKTest, TheOnlySlotIsChosenWithTheNoiseOfOneDraw) {
  FixedRandom random(2);
  std::vector<double> noises;
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<NoisyEntry> entries = Lazy({1, {}, 1, 2}, ScoreNoise::kGumbel, random);
    ASSERT_THAT(IdsOf(entries), ElementsAre(0));
    noises.push_back(entries[0].noise / 2);
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(noises, [](double x) { return std::exp(-std::exp(-x)); }), kKolmogorovLimit);
}

TEST(SelectTopKTest, WithNoiseFarBelowTheScoresTheLargestScoresWin) {
  FixedRandom random(3);
  const SparseVector scores = {{70, 3, 999'999'999, 12}, {0.2, 0.5, 0.4, 0.1}};
  for (const ScoreNoise noise : {ScoreNoise::kGumbel, ScoreNoise::kGaussian}) {
    EXPECT_THAT(IdsOf(Lazy({1'000'000'000, scores, 3, 1e-6}, noise, random)), ElementsAre(3, 999'999'999, 70));
  }
}

TEST(SelectTopKTest, CostsNothingForTheSlotsOfAHugeGraph) {
  FixedRandom random(4);
  constexpr int64_t kNodes = 2'000'000'000;
  const Case c = {.node_count = kNodes, .scores = {{5, 1'999'999'999}, {1.0, 0.5}}, .k = 10};
  for (int round = 0; round < 1000; ++round) {
    const auto entries = Lazy(c, ScoreNoise::kGaussian, random);
    ASSERT_EQ(entries.size(), 10U);
    EXPECT_GT(entries[9].noisy(), 5) << "the tenth of two billion normals is near 5.8";
  }
}

// All sequences of k distinct slots.
std::vector<Outcome> OutcomesOf(int64_t node_count, int64_t k) {
  std::vector<Outcome> outcomes = {{}};
  for (int64_t place = 0; place < k; ++place) {
    std::vector<Outcome> longer;
    for (const Outcome& outcome : outcomes) {
      for (int32_t id = 0; id < node_count; ++id) {
        if (std::find(outcome.begin(), outcome.end(), id) == outcome.end()) {
          longer.push_back(outcome);
          longer.back().push_back(id);
        }
      }
    }
    outcomes = std::move(longer);
  }
  return outcomes;
}

// The peeled exponential mechanism: each choice is a softmax of the scores over the scale, on the slots that are left.
double PeeledProbability(const Case& c, const Outcome& outcome) {
  std::vector<double> weights;
  for (const double score : Dense(c.scores, c.node_count)) {
    weights.push_back(std::exp(score / c.scale));
  }
  double probability = 1;
  for (const int32_t id : outcome) {
    double& weight = weights[static_cast<size_t>(id)];
    probability *= weight / std::accumulate(weights.begin(), weights.end(), 0.0);
    weight = 0;
  }
  return probability;
}

using Selector = std::function<std::vector<NoisyEntry>(const Case& c, ScoreNoise noise, RandomSource& random)>;

std::vector<NoisyEntry> DenseForm(const Case& c, ScoreNoise noise, RandomSource& random) {
  return DenseTopK(c.scores, c.node_count, c.k, noise, c.scale, random);
}

// An outcome as a number of as many digits.
size_t NumberOf(const Outcome& outcome, int64_t node_count) {
  size_t number = 0;
  for (const int32_t id : outcome) {
    number = number * static_cast<size_t>(node_count) + static_cast<size_t>(id);
  }
  return number;
}

// How often each outcome came, in the order of OutcomesOf.
std::vector<int64_t> CountOutcomes(const Case& c, const Selector& select, ScoreNoise noise, int64_t draws,
                                   RandomSource& random) {
  std::vector<int64_t> counts(static_cast<size_t>(std::pow(c.node_count, c.k)), 0);
  for (int64_t i = 0; i < draws; ++i) {
    ++counts.at(NumberOf(IdsOf(select(c, noise, random)), c.node_count));
  }
  std::vector<int64_t> listed;
  for (const Outcome& outcome : OutcomesOf(c.node_count, c.k)) {
    listed.push_back(counts[NumberOf(outcome, c.node_count)]);
  }
  EXPECT_EQ(std::accumulate(listed.begin(), listed.end(), int64_t{0}), draws) << "an outcome that should not exist";
  return listed;
}

std::vector<double> PeeledCounts(const Case& c, int64_t draws) {
  std::vector<double> expected;
  for (const Outcome& outcome : OutcomesOf(c.node_count, c.k)) {
    expected.push_back(static_cast<double>(draws) * PeeledProbability(c, outcome));
  }
  return expected;
}

constexpr int64_t kDraws = 400'000;

const SparseVector kNone = {};
const SparseVector kTwo = {{3, 1}, {0.9, 0.4}};
const SparseVector kThree = {{0, 4, 2}, {1.2, 0.3, 0.6}};
const SparseVector kAll = {{4, 2, 0, 1, 3}, {0.2, 0.8, 0.5, 1.1, 0.05}};

// Supports that are empty, small, larger and smaller than K, and everything; K up to N.
std::vector<Case> CasesOfFive() {
  return {{5, kNone, 2, 0.7},  {5, kTwo, 1, 0.7},   {5, kTwo, 2, 0.7},   {5, kTwo, 3, 0.7},
          {5, kThree, 2, 0.7}, {5, kThree, 3, 0.7}, {5, kThree, 5, 1.5}, {5, kAll, 2, 0.7}};
}

TEST(SelectTopKTest, GumbelNoiseIsThePeeledExponentialMechanism) {
  FixedRandom random(5);
  int64_t comparisons = 0;
  for (const Case& c : CasesOfFive()) {
    SCOPED_TRACE(NameOf(c));
    const std::vector<int64_t> counts = CountOutcomes(c, Lazy, ScoreNoise::kGumbel, kDraws, random);
    const std::vector<double> expected = PeeledCounts(c, kDraws);
    for (size_t i = 0; i < counts.size(); ++i) {
      const double deviation = std::sqrt(expected[i] * (1 - expected[i] / static_cast<double>(kDraws)));
      EXPECT_NEAR(static_cast<double>(counts[i]), expected[i], 4 * deviation) << "outcome " << i;
      ++comparisons;
    }
    EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely);
  }
  // Each fails by chance with probability 6.3e-5, so one of them all with 2.0%; a chi-square with 1e-6.
  EXPECT_EQ(comparisons, 325);
}

TEST(SelectTopKTest, TheDenseFormIsThePeeledExponentialMechanismToo) {
  FixedRandom random(6);
  const Case c = {.node_count = 5, .scores = kThree, .k = 2, .scale = 0.7};
  const auto counts = CountOutcomes(c, DenseForm, ScoreNoise::kGumbel, kDraws, random);
  EXPECT_GT(ChiSquareTail(counts, PeeledCounts(c, kDraws)), kUnlikely);
}

// Pearson's statistic of two samples of equal size, whose cells must not be too small.
double TwoSampleTail(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
  double statistic = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto difference = static_cast<double>(first[i] - second[i]);
    const auto total = static_cast<double>(first[i] + second[i]);
    EXPECT_GT(total, 20) << "cell " << i;
    statistic += difference * difference / total;
  }
  return ChiSquareTail(statistic, static_cast<int64_t>(first.size()) - 1);
}

// How probable it is that Gaussian noise chooses this slot, or these two in this order: over what the last one chosen
// comes to, the one before it is above and all others are below. By the trapezoidal rule, whose error is far below
// 1e-12.
double GaussianProbability(const Case& c, const Outcome& outcome) {
  const std::vector<double> scores = Dense(c.scores, c.node_count);
  constexpr double kStep = 0.05;
  double sum = 0;
  for (double t = -12; t < 14; t += kStep) {
    double density = 1;
    for (int32_t slot = 0; slot < c.node_count; ++slot) {
      const double z = (t * c.scale - scores[static_cast<size_t>(slot)]) / c.scale;
      if (slot == outcome.back()) {
        density *= std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      } else {
        density *= slot == outcome.front() ? NormalCdf(-z) : NormalCdf(z);
      }
    }
    sum += density * kStep;
  }
  return sum;
}

TEST(SelectTopKTest, GaussianNoiseChoosesWithTheProbabilitiesOfItsIntegral) {
  FixedRandom random(17);
  int64_t comparisons = 0;
  for (const Case& c : CasesOfFive()) {
    if (c.k > 2) {
      continue;
    }
    SCOPED_TRACE(NameOf(c));
    const std::vector<Outcome> outcomes = OutcomesOf(c.node_count, c.k);
    const std::vector<int64_t> counts = CountOutcomes(c, Lazy, ScoreNoise::kGaussian, kDraws, random);
    double total = 0;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      const double probability = GaussianProbability(c, outcomes[i]);
      const double deviation = std::sqrt(kDraws * probability * (1 - probability));
      EXPECT_NEAR(static_cast<double>(counts[i]), kDraws * probability, 4 * deviation) << "outcome " << i;
      total += probability;
      ++comparisons;
    }
    EXPECT_NEAR(total, 1, 1e-9);
  }
  // Each fails by chance with probability 6.3e-5, so one of them all with 0.5%.
  EXPECT_EQ(comparisons, 85);
}

TEST(SelectTopKTest, GaussianNoiseChoosesAsTheDenseFormDoes) {
  FixedRandom random(7);
  for (const Case& c : CasesOfFive()) {
    SCOPED_TRACE(NameOf(c));
    const auto lazy = CountOutcomes(c, Lazy, ScoreNoise::kGaussian, kDraws / 4, random);
    const auto dense = CountOutcomes(c, DenseForm, ScoreNoise::kGaussian, kDraws / 4, random);
    // False-alarm rate 1e-6 each.
    EXPECT_GT(TwoSampleTail(lazy, dense), kUnlikely);
  }
}

TEST(SelectTopKTest, GaussianNoiseChoosesUniformlyWithoutScores) {
  FixedRandom random(8);
  const Case c = {.node_count = 5, .scores = kNone, .k = 3};
  EXPECT_GT(ChiSquareTail(CountOutcomes(c, Lazy, ScoreNoise::kGaussian, kDraws, random)), kUnlikely);
}

TEST(SelectTopKTest, ListingTheFreeSlotsAndDrawingThemGiveTheSameDistribution) {
  // A support of 2 and up to K = 2 slots outside it: with 8 slots for each, 24 and 32 are where the two ways meet.
  FixedRandom random(9);
  for (const int64_t node_count : {23, 24, 31, 32}) {
    for (const int64_t k : {1, 2}) {
      const Case c = {.node_count = node_count, .scores = {{7, 20}, {1.5, 0.8}}, .k = k, .scale = 0.7};
      SCOPED_TRACE(NameOf(c));
      const auto counts = CountOutcomes(c, Lazy, ScoreNoise::kGumbel, kDraws / 4, random);
      // False-alarm rate 1e-6 each.
      EXPECT_GT(ChiSquareTail(counts, PeeledCounts(c, kDraws / 4)), kUnlikely);
    }
  }
}

// A graph of realistic size: 60 decaying scores among 10,000 slots, the largest of which stand out of the noise.
constexpr int64_t kNodes = 10'000;
constexpr int64_t kChosen = 16;
constexpr int64_t kSupport = 60;

Case Realistic(double strongest) {
  Case c = {.node_count = kNodes, .scores = {}, .k = kChosen, .scale = 0.5};
  for (int32_t i = 0; i < kSupport; ++i) {
    c.scores.ids.push_back((i * 1117 + 13) % static_cast<int32_t>(kNodes));
    c.scores.values.push_back(strongest * std::pow(0.93, i));
  }
  return c;
}

Case RealisticFor(ScoreNoise noise) { return Realistic(noise == ScoreNoise::kGumbel ? 5 : 2.5); }

// What is compared of many rows.
struct Rows {
  std::vector<double> largest;          // noisy values
  std::vector<double> last;             // the K-th
  std::vector<double> strongest_noise;  // of the slot with the largest score, where it was chosen
  std::vector<double> chosen_noise;     // of the support's first chosen slot
  std::vector<int64_t> support_counts;  // how often each slot of the support was chosen
  std::vector<double> outside;          // slots chosen outside it
};

Rows DrawRows(const Case& c, const Selector& select, ScoreNoise noise, int64_t draws, RandomSource& random) {
  std::map<int32_t, size_t> place;
  for (size_t i = 0; i < c.scores.ids.size(); ++i) {
    place[c.scores.ids[i]] = i;
  }
  Rows rows;
  rows.support_counts.assign(c.scores.ids.size(), 0);
  for (int64_t draw = 0; draw < draws; ++draw) {
    const std::vector<NoisyEntry> entries = select(c, noise, random);
    rows.largest.push_back(entries.front().noisy());
    rows.last.push_back(entries.back().noisy());
    int64_t inside = 0;
    for (const NoisyEntry& entry : entries) {
      const auto found = place.find(entry.id);
      if (found == place.end()) {
        continue;
      }
      ++rows.support_counts[found->second];
      if (found->second == 0) {
        rows.strongest_noise.push_back(entry.noise);
      }
      if (++inside == 1) {
        rows.chosen_noise.push_back(entry.noise);
      }
    }
    rows.outside.push_back(static_cast<double>(c.k - inside));
  }
  return rows;
}

// How many standard errors apart two shares of this many draws are.
double SharesApart(int64_t first, int64_t second, int64_t draws) {
  const double pooled = static_cast<double>(first + second) / static_cast<double>(2 * draws);
  const double error = std::sqrt(2 * pooled * (1 - pooled) * static_cast<double>(draws));
  return error == 0 ? 0 : std::abs(static_cast<double>(first - second)) / error;
}

// 5 standard errors: a false alarm in 1.7 million.
constexpr double kTooFarApart = 5;
constexpr int64_t kRealisticDraws = 10'000;

class RealisticSelectionTest : public ::testing::TestWithParam<ScoreNoise> {};

TEST_P(RealisticSelectionTest, TheLazyFormIsTheDenseForm) {
  FixedRandom random(10);
  const Case c = RealisticFor(GetParam());
  const Rows lazy = DrawRows(c, Lazy, GetParam(), kRealisticDraws, random);
  const Rows dense = DrawRows(c, DenseForm, GetParam(), kRealisticDraws, random);
  // False-alarm rate 7.5e-6 each.
  EXPECT_LT(KolmogorovStatistic(lazy.largest, dense.largest), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(lazy.last, dense.last), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(lazy.strongest_noise, dense.strongest_noise), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(lazy.chosen_noise, dense.chosen_noise), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(lazy.outside, dense.outside), kKolmogorovLimit);
  // False-alarm rate 6e-7 each.
  for (size_t i = 0; i < lazy.support_counts.size(); ++i) {
    EXPECT_LT(SharesApart(lazy.support_counts[i], dense.support_counts[i], kRealisticDraws), kTooFarApart) << i;
  }
  // The cases are worth comparing: some of the support is chosen often and some hardly ever, and so is the outside.
  EXPECT_GT(lazy.support_counts.front(), kRealisticDraws / 2);
  EXPECT_LT(lazy.support_counts.back(), kRealisticDraws / 20);
  EXPECT_GT(*std::min_element(lazy.outside.begin(), lazy.outside.end()), 0);
}

// The K-th largest is where the power is: it varies little, and moves in proportion to the scale.
TEST_P(RealisticSelectionTest, TheComparisonFindsAScaleThatIsWrongByOnePerCent) {
  FixedRandom random(11);
  const Case c = RealisticFor(GetParam());
  const Rows dense = DrawRows(c, DenseForm, GetParam(), kRealisticDraws, random);
  for (const double factor : {0.99, 1.01}) {
    Case wrong = c;
    wrong.scale *= factor;
    EXPECT_GT(KolmogorovStatistic(DrawRows(wrong, Lazy, GetParam(), kRealisticDraws, random).last, dense.last),
              2 * kKolmogorovLimit)
        << factor;
  }
}

TEST_P(RealisticSelectionTest, TheComparisonFindsScoresThatWereForgotten) {
  FixedRandom random(12);
  const Case c = RealisticFor(GetParam());
  const Rows dense = DrawRows(c, DenseForm, GetParam(), kRealisticDraws / 10, random);
  Case wrong = c;
  wrong.scores.values[3] = 0;
  const Rows lazy = DrawRows(wrong, Lazy, GetParam(), kRealisticDraws / 10, random);
  EXPECT_GT(SharesApart(lazy.support_counts[3], dense.support_counts[3], kRealisticDraws / 10), 2 * kTooFarApart);
}

TEST_P(RealisticSelectionTest, SlotsOutsideTheSupportAreEquallyLikely) {
  constexpr size_t kBins = 100;
  FixedRandom random(13);
  const Case c = RealisticFor(GetParam());
  std::vector<int32_t> rank(kNodes, 0);  // the slot's place among those outside the support
  for (const int32_t id : c.scores.ids) {
    rank[static_cast<size_t>(id)] = -1;
  }
  int32_t outside = 0;
  for (int32_t& place : rank) {
    place = place == 0 ? outside++ : -1;
  }
  std::vector<int64_t> counts(kBins, 0);
  std::vector<double> expected(kBins, 0);
  for (int32_t place = 0; place < outside; ++place) {
    ++expected[static_cast<size_t>(place) * kBins / static_cast<size_t>(outside)];
  }
  int64_t total = 0;
  for (int64_t draw = 0; draw < 4 * kRealisticDraws; ++draw) {
    for (const NoisyEntry& entry : Lazy(c, GetParam(), random)) {
      const int32_t place = rank[static_cast<size_t>(entry.id)];
      if (place >= 0) {
        ++counts[static_cast<size_t>(place) * kBins / static_cast<size_t>(outside)];
        ++total;
      }
    }
  }
  for (double& count : expected) {
    count *= static_cast<double>(total) / outside;
  }
  // Slots of one row are distinct, which makes the statistic smaller if anything. False-alarm rate at most 1e-6.
  EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely);
}

std::string NoiseName(const ::testing::TestParamInfo<ScoreNoise>& info) {
  return info.param == ScoreNoise::kGumbel ? "Gumbel" : "Gaussian";
}

INSTANTIATE_TEST_SUITE_P(Noise, RealisticSelectionTest, ::testing::Values(ScoreNoise::kGumbel, ScoreNoise::kGaussian),
                         NoiseName);

}  // namespace
}  // namespace dpar
