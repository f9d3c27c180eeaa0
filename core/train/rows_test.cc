#include "core/train/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/train/testing/random_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::RandomFeatures;
using ::testing::ElementsAre;

// Four slots, the last of them null.
Graph FourSlots() {
  Graph graph;
  graph.sizes = {4, 2, 2};
  graph.edge_offsets.assign(5, 0);
  graph.features.offsets = {0, 1, 3, 4, 4};
  graph.features.columns = {0, 0, 1, 1};
  graph.features.values = {1, 3, 4, 2};
  graph.labels = {0, 1, kUnlabelled, kUnlabelled};
  return graph;
}

ApprRows TwoSeeds() {
  ApprRows appr;
  appr.node_count = 4;
  appr.seeds = {1, 0};
  appr.offsets = {0, 2, 4};
  appr.columns = {0, 2, 1, 3};
  appr.values = {0.5, 0.25, -1, 2};
  return appr;
}

TEST(IdentityRows, ListEverySlotOnce) {
  const RowList rows = IdentityRows(FourSlots());
  EXPECT_THAT(rows.labels, ElementsAre(0, 1, kUnlabelled, kUnlabelled));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(rows.slots, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rows.weights, ElementsAre(1, 1, 1, 1));
}

TEST(StructureRows, TakeThePlaceOfTheSeedsIdentityRows) {
  const RowList rows = StructureRows(FourSlots(), TwoSeeds(), v1::APPR_AND_IDENTITY);
  EXPECT_THAT(rows.labels, ElementsAre(0, 1, kUnlabelled, kUnlabelled));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 4, 5, 6));
  EXPECT_THAT(rows.slots, ElementsAre(1, 3, 0, 2, 2, 3));
  EXPECT_THAT(rows.weights, ElementsAre(-1, 2, 0.5, 0.25, 1, 1));
}

TEST(StructureRows, StandAloneWhereOnlyTheyTrain) {
  const RowList rows = StructureRows(FourSlots(), TwoSeeds(), v1::APPR_ONLY);
  EXPECT_THAT(rows.labels, ElementsAre(1, 0));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(rows.slots, ElementsAre(0, 2, 1, 3));
}

TEST(ApplyNullRule, SilencesRowsThatListANullSlotAndNoOthers) {
  RowList rows = StructureRows(FourSlots(), TwoSeeds(), v1::APPR_AND_IDENTITY);
  ApplyNullRule(FourSlots(), rows);
  // Slot 0's row lists the null slot 3. Slot 1's lists slot 2, which has features but no label: not null.
  EXPECT_THAT(rows.labels, ElementsAre(kUnlabelled, 1, kUnlabelled, kUnlabelled));
}

TEST(ApplyNullRule, ASlotWithEdgesButNothingOfItsOwnIsNull) {
  Graph graph = FourSlots();
  graph.edge_offsets = {0, 1, 1, 1, 2};
  graph.neighbours = {3, 0};
  RowList rows = StructureRows(graph, TwoSeeds(), v1::APPR_ONLY);
  ApplyNullRule(graph, rows);
  EXPECT_THAT(rows.labels, ElementsAre(1, kUnlabelled));
}

// |sum w_k z_k| in long double, from the numbers that the row is made of.
long double ExactNorm(const PreparedRows& rows, int64_t row) {
  const GraphView& graph = rows.graph();
  std::vector<long double> sum(static_cast<size_t>(graph.sizes.feature_count) + 1, 0);
  for (auto at = static_cast<size_t>(rows.rows().offsets[static_cast<size_t>(row)]);
       at < static_cast<size_t>(rows.rows().offsets[static_cast<size_t>(row) + 1]); ++at) {
    const int32_t slot = rows.rows().slots[at];
    const long double weight = rows.rows().weights[at];
    const InputScale& scale = rows.scale(slot);
    std::vector<float> phi(graph.features.row_values(slot).size());
    TransformEntries(rows.transform().transform(), graph.features.row_values(slot), phi);
    for (size_t i = 0; i < phi.size(); ++i) {
      sum[static_cast<size_t>(graph.features.row_columns(slot)[i])] += weight * scale.scale * phi[i];
    }
    for (size_t j = 0; j < rows.transform().center().size(); ++j) {
      sum[j] -= weight * scale.shift * rows.transform().center()[j];
    }
    sum.back() += weight * kBiasInput;
  }
  long double square = 0;
  for (const long double value : sum) {
    square += value * value;
  }
  return std::sqrt(square);
}

TEST(PreparedRows, BoundTheNormOfARowsInputFromAboveAndClosely) {
  FixedRandom random(41);
  const Graph graph = RandomFeatures(50, 30, 4, 0.3, random);
  std::vector<float> center(30, 0.02F);
  for (const v1::Transform transform : {v1::RAW, v1::UNIT, v1::SQRT_UNIT}) {
    for (const bool centered : {false, true}) {
      if (centered && transform == v1::RAW) {
        continue;
      }
      const InputTransform input(transform, centered ? std::span<const float>(center) : std::span<const float>());
      for (const int64_t k : {1, 2, 5, 30}) {
        const RowList rows = testing::RandomRows(graph, 40, k, random);
        const PreparedRows prepared(graph, input, rows, false, [] { return true; });
        for (int64_t row = 0; row < rows.count(); ++row) {
          const long double exact = ExactNorm(prepared, row);
          EXPECT_GE(prepared.bound(row).norm, exact);
          EXPECT_LE(prepared.bound(row).norm, exact + 1e-4 * prepared.bound(row).magnitude);
          EXPECT_GE(prepared.bound(row).magnitude * (1 + 1e-9), prepared.bound(row).norm);
        }
      }
    }
  }
}

TEST(PreparedRows, BoundRowsWhosePartsCancel) {
  FixedRandom random(42);
  const Graph graph = RandomFeatures(50, 30, 4, 0.3, random);
  const InputTransform input(v1::SQRT_UNIT, {});
  RowList rows;
  rows.labels = {0};
  rows.offsets = {0, 2};
  rows.slots = {7, 7};
  rows.weights = {1, -1 - 1e-9};
  const PreparedRows prepared(graph, input, rows, false, [] { return true; });
  EXPECT_GE(prepared.bound(0).norm, ExactNorm(prepared, 0));
  EXPECT_LE(prepared.bound(0).norm, 2e-4);
  EXPECT_GT(prepared.bound(0).magnitude, 1.9);
}

TEST(PreparedRows, ANormThatOverflowsHasNoBound) {
  FixedRandom random(43);
  const Graph graph = RandomFeatures(50, 30, 4, 0.3, random);
  const InputTransform input(v1::SQRT_UNIT, {});
  // The square of the norm is a sum of infinities: of one sign, or of both, which is not a number.
  constexpr double kLarge = 1.2e154;
  for (const std::vector<double>& weights : {std::vector<double>{kLarge, -kLarge, 0}, {kLarge, kLarge, -kLarge}}) {
    RowList rows;
    rows.labels = {0};
    rows.offsets = {0, 3};
    rows.slots = {7, 7, 7};
    rows.weights = weights;
    const PreparedRows prepared(graph, input, rows, false, [] { return true; });
    EXPECT_EQ(prepared.bound(0).norm, std::numeric_limits<double>::infinity());
  }
}

TEST(PreparedRows, HoldTheInnerProductsThatAHiddenLayerNeeds) {
  FixedRandom random(43);
  const Graph graph = RandomFeatures(50, 30, 4, 0.3, random);
  const std::vector<float> center(30, 0.02F);
  const InputTransform input(v1::UNIT, center);
  const RowList rows = testing::RandomRows(graph, 20, 4, random);
  const PreparedRows prepared(graph, input, rows, true, [] { return true; });
  for (int64_t row = 0; row < rows.count(); ++row) {
    const auto products = prepared.products(row);
    ASSERT_EQ(products.size(), 10);
    double square = 0;
    for (size_t k = 0; k < 4; ++k) {
      for (size_t l = 0; l <= k; ++l) {
        const auto at = static_cast<size_t>(rows.offsets[static_cast<size_t>(row)]);
        square += (l < k ? 2 : 1) * rows.weights[at + k] * rows.weights[at + l] * products[k * (k + 1) / 2 + l];
      }
    }
    EXPECT_NEAR(std::sqrt(square), static_cast<double>(ExactNorm(prepared, row)), 1e-9);
  }
}

}  // namespace
}  // namespace dpar
