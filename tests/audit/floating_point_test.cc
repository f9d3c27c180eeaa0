// What the low bits of a release tell, in the spirit of Mironov (2012) and of the precision attacks of 2022 (Haney,
// Desfontaines, Hartman, Shrestha, Hay; Casacuberta, Shoemate, Vadhan, Wagaman): noise of doubles on two neighbouring
// values does not reach the same doubles. On the lattice it does.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/plan/plan_event.h"
#include "core/random/lattice.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/plain_noise.h"
#include "core/random/testing/statistics.h"
#include "core/train/structure.h"
#include "tests/audit/case.h"
#include "tests/audit/distinguisher.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::FillGaussian;
using ::dpar::testing::FillLaplace;
using ::dpar::testing::FixedRandom;

constexpr int64_t kRuns = 20'000;
constexpr double kScale = 0.7;
constexpr int kBits = kPlanLatticeBits;
constexpr double kUnlikely = 1e-6;

using AddNoise = std::function<void(RandomSource&, std::span<double>)>;

// Noise as one might add it.
void AddPlainGaussian(RandomSource& random, std::span<double> values) {
  std::vector<double> noise(values.size());
  FillGaussian(random, noise);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += kScale * noise[i];
  }
}
void AddPlainLaplace(RandomSource& random, std::span<double> values) {
  std::vector<double> noise(values.size());
  FillLaplace(random, noise);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += kScale * noise[i];
  }
}
void AddGaussian(RandomSource& random, std::span<double> values) { AddLatticeNoise(random, kScale, kBits, values); }
void AddLaplace(RandomSource& random, std::span<double> values) { AddLatticeLaplace(random, kScale, kBits, values); }

std::vector<double> Released(const AddNoise& add, double value, uint64_t seed) {
  FixedRandom random(seed);
  std::vector<double> values(kRuns, value);
  add(random, values);
  return values;
}

// How many zeros a number ends in, in binary: 52 for whole numbers that end in 1, below that for finer ones.
double TrailingZeros(double value) {
  constexpr int kFinest = 120;
  for (int zeros = 0; zeros < kFinest; ++zeros) {
    const double scaled = std::ldexp(value, kFinest - zeros - 1);
    if (scaled != std::nearbyint(scaled)) {
      return zeros;
    }
  }
  return kFinest;
}

// What the low bits of releases of two values prove about epsilon at delta 0.
double ProvenByLowBits(const AddNoise& add, double value, double neighbour) {
  std::vector<Releases> samples;
  uint64_t seed = 1;
  for (const double one : {value, neighbour}) {
    const std::vector<double> released = Released(add, one, seed++);
    Releases& sample = samples.emplace_back(kRuns, 1);
    for (size_t i = 0; i < released.size(); ++i) {
      sample(static_cast<Eigen::Index>(i), 0) = TrailingZeros(released[i]);
    }
  }
  return EpsilonAtLeast(samples[0], samples[1], 0, 1e-4);
}

// Neighbouring counts and sums, small and large: a double near 2^20 has 20 bits less behind the point than one near 1.
const std::vector<std::pair<double, double>> kNeighbours = {{0, 1}, {1, 2}, {0x1p20 - 1, 0x1p20}};

TEST(PlainNoise, TellsNeighboursApartByItsLowBits) {
  // Whatever the scale of the noise. (The lattice's proof does not need that an attack works, the test does.)
  for (const auto& [value, neighbour] : kNeighbours) {
    EXPECT_GT(ProvenByLowBits(AddPlainGaussian, value, neighbour), 0.3) << value;
    EXPECT_GT(ProvenByLowBits(AddPlainLaplace, value, neighbour), 0.3) << value;
  }
  EXPECT_GT(ProvenByLowBits(AddPlainGaussian, 0, 1), 5);
  EXPECT_GT(ProvenByLowBits(AddPlainLaplace, 0, 1), 5);
}

TEST(LatticeNoise, HasTheSameLowBitsForNeighbours) {
  for (const auto& [value, neighbour] : kNeighbours) {
    EXPECT_LT(ProvenByLowBits(AddGaussian, value, neighbour), 0.05) << value;
    EXPECT_LT(ProvenByLowBits(AddLaplace, value, neighbour), 0.05) << value;
  }
}

TEST(LatticeNoise, IsOnTheLatticeAndEveryResidueIsEquallyLikely) {
  constexpr int64_t kResidues = 16;
  const double step = LatticeStep(kScale, kBits);
  for (const AddNoise& add : {AddNoise(AddGaussian), AddNoise(AddLaplace)}) {
    // 1/3 is no point of the lattice: it is rounded before noise is added.
    for (const double value : {0.0, 1.0, 1.0 / 3, 0x1p20}) {
      std::vector<int64_t> counts(kResidues, 0);
      for (const double released : Released(add, value, 3)) {
        const double steps = released / step;
        ASSERT_EQ(steps, std::nearbyint(steps)) << value;
        const auto whole = static_cast<int64_t>(steps);
        ++counts[static_cast<size_t>(((whole % kResidues) + kResidues) % kResidues)];
      }
      EXPECT_GT(ChiSquareTail(counts), kUnlikely) << value;
    }
  }
}

TEST(LatticeNoise, ReachesTheSamePointsFromNeighbours) {
  // On a coarse lattice all points within three scales of both values are drawn, of either, and nothing between them.
  constexpr int kCoarse = 5;
  const double step = LatticeStep(kScale, kCoarse);
  std::vector<std::set<double>> reached;
  for (const double value : {10.0, 11.0}) {
    FixedRandom random(4);
    std::vector<double> values(10 * kRuns, value);
    AddLatticeNoise(random, kScale, kCoarse, values);
    std::set<double>& points = reached.emplace_back();
    for (const double released : values) {
      if (released >= 11 - 3 * kScale && released <= 10 + 3 * kScale) {
        points.insert(released);
      }
    }
  }
  EXPECT_EQ(reached[0], reached[1]);
  EXPECT_EQ(static_cast<double>(reached[0].size()), std::floor((6 * kScale - 1) / step) + 1);
}

TEST(Rows, HaveValuesOnTheSameLatticeForNeighbours) {
  const Neighbours graphs = Remove(GraphOf(std::vector<Node>(5), StarEdges(4), 1, 2), 0);
  for (const v1::Method method : {v1::DPAR_GM, v1::DPAR_EM1}) {
    v1::TrainingSpec spec = SpecOf(method, 2);
    spec.mutable_options()->set_structure_share(0.5);
    spec.mutable_options()->set_appr_nodes(5);
    spec.mutable_options()->set_top_k(5);
    spec.mutable_options()->set_max_occurrence(5);
    spec.mutable_options()->set_column_clip(1e12);  // scales nothing
    const v1::Plan plan = PlanFor(spec, graphs.with.sizes);
    const v1::StructurePlan& structure = plan.structure();
    const double step =
        LatticeStep(method == v1::DPAR_GM ? structure.noise() : structure.value_noise(), kApprLatticeBits);
    for (const bool with : {true, false}) {
      FixedRandom random(5);
      for (int run = 0; run < 200; ++run) {
        for (const double value : Must(DrawStructure(plan, graphs.of(with), 1, random, Always)).values) {
          ASSERT_EQ(value / step, std::nearbyint(value / step));
        }
      }
    }
  }
}

}  // namespace
}  // namespace dpar::audit
