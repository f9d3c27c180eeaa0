#include "core/privacy/gaussian.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/privacy/testing/expectations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;
using testing::ExpectRelative;
using testing::GoldenFile;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Parameters over many magnitudes, the same on every run.
struct Parameters {
  double epsilon;
  double delta;
};

std::vector<Parameters> ParameterGrid() {
  std::vector<Parameters> grid;
  for (int i = 0; i <= 30; ++i) {
    for (int j = 0; j <= 24; ++j) {
      const double epsilon = std::pow(10, -4 + 0.2371 * i);
      const double delta = j < 20 ? std::pow(10, -0.31 - 1.137 * j) : 1 - std::pow(10, -0.7 * (j - 19));
      grid.push_back({epsilon, delta});
    }
  }
  return grid;
}

TEST(GaussianDeltaTest, AgreesWithHighPrecisionValues) {
  const struct {
    double mu, epsilon, delta;
  } kValues[] = {
      {1, 1, 0.1269367375066439458},
      {2, 4, 0.084953318671071062843},
      {0.5, 8, 1.0486591789128747036e-57},
      {1, 16, 1.0433669260341165418e-55},
      {0.5, 16, 2.4566757241160500585e-223},
      {16, 700, 1.0217927856674770224e-280},
      {37, 700, 0.32787878357153567753},
      {0x1p-10, 0, 0.00038959205522352666543},
      {0x1p-10, 0x1p-8, 6.9914324961325161538e-9},
      {0x1p-20, 0x1p-20, 7.9455862346269595437e-8},
      {8, 0, 0.99993665751633376016},
      {20, 100, 0.9999996146685564468},
  };
  for (const auto& value : kValues) {
    SCOPED_TRACE(value.mu);
    ExpectRelative(GaussianDelta(value.mu, value.epsilon).value(), value.delta, 1e-12);
  }
}

TEST(GaussianDeltaTest, IsZeroWhereNoDoubleIsSmallEnough) {
  EXPECT_EQ(GaussianDelta(0.05, 8).value(), 0);
  EXPECT_EQ(GaussianDelta(1e-300, 1).value(), 0);
  EXPECT_EQ(GaussianDelta(1e-320, 1e300).value(), 0);
}

TEST(GaussianDeltaTest, IsOneForHugeMu) { EXPECT_EQ(GaussianDelta(1e200, 1).value(), 1); }

TEST(GaussianDeltaTest, IsContinuousWhereTheFormulaChanges) {
  // mu = 4, a = -1 at epsilon = 4.
  const double before = GaussianDelta(4, std::nextafter(4.0, 0.0)).value();
  const double after = GaussianDelta(4, 4).value();
  ExpectRelative(before, after, 1e-14);
}

TEST(GaussianDeltaTest, FallsWithEpsilonAndRisesWithMu) {
  for (double mu = 1e-3; mu < 12; mu *= 1.7) {
    double last = 1.1;
    for (double x = 0; x < 12; x += 0.37) {
      const double delta = GaussianDelta(mu, x * mu).value();
      EXPECT_LT(delta, last);
      EXPECT_GT(GaussianDelta(mu * 1.01, x * mu).value(), delta);
      last = delta;
    }
  }
}

TEST(GaussianDeltaTest, RefusesBadInputByName) {
  for (const double mu : {0.0, -1.0, kNan, kInf, -kInf}) {
    ExpectInvalidField(GaussianDelta(mu, 1).status(), "mu");
  }
  for (const double epsilon : {-1e-300, -1.0, kNan, kInf, -kInf}) {
    ExpectInvalidField(GaussianDelta(1, epsilon).status(), "epsilon");
  }
}

TEST(GaussianEpsilonTest, AgreesWithHighPrecisionValuesFromAbove) {
  const struct {
    double mu, delta, epsilon;
  } kValues[] = {
      {1, 1e-5, 4.3771780956812246086},      {1, 1e-300, 37.44884791213910494}, {37, 1e-5, 841.35469704210572242},
      {0.125, 1e-9, 0.67533167299904997959}, {4, 0.5, 7.0179964212391965746},
  };
  for (const auto& value : kValues) {
    const double epsilon = GaussianEpsilon(value.mu, value.delta).value();
    EXPECT_GE(epsilon, value.epsilon * (1 - 1e-15));
    EXPECT_LE(epsilon, value.epsilon * (1 + 1e-12));
  }
}

TEST(GaussianEpsilonTest, AgreesWithTheGoldenFile) {
  const nlohmann::json golden = GoldenFile();
  if (golden.is_null()) {
    return;
  }
  int compared = 0;
  for (const nlohmann::json& row : golden.at("a_gaussian")) {
    const double mu = 1 / row.at("sigma").get<double>();
    if (row.contains("eps_exact")) {
      const double delta = row.at("delta").get<double>();
      ExpectRelative(GaussianEpsilon(mu, delta).value(), row.at("eps_exact").get<double>(), 1e-10);
      ++compared;
    } else {
      const double expected = std::strtod(row.at("delta_exact").get<std::string>().c_str(), nullptr);
      ExpectRelative(GaussianDelta(mu, row.at("eps").get<double>()).value(), expected, 1e-10);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 35);
}

TEST(GaussianEpsilonTest, IsZeroWhenTheProfileMeetsDeltaAtZero) {
  EXPECT_EQ(GaussianEpsilon(1e-6, 1e-5).value(), 0);
  EXPECT_EQ(GaussianEpsilon(1, 0.5).value(), 0);  // delta(0) = 0.383
}

TEST(GaussianEpsilonTest, NeverUnderstatesOverAGrid) {
  for (const Parameters& p : ParameterGrid()) {
    const double mu = p.epsilon;  // any positive numbers will do
    const double epsilon = GaussianEpsilon(mu, p.delta).value();
    EXPECT_LE(GaussianDelta(mu, epsilon).value(), p.delta) << mu << " " << p.delta;
    if (epsilon > mu / 100) {
      EXPECT_GT(GaussianDelta(mu, epsilon * (1 - 1e-11)).value(), p.delta) << mu << " " << p.delta;
    }
  }
}

TEST(GaussianEpsilonTest, RisesWithMuAndFallsWithDelta) {
  for (const Parameters& p : ParameterGrid()) {
    const double epsilon = GaussianEpsilon(p.epsilon, p.delta).value();
    EXPECT_GE(GaussianEpsilon(p.epsilon * (1 + 1e-9), p.delta).value(), epsilon);
    EXPECT_GE(GaussianEpsilon(p.epsilon, p.delta * (1 - 1e-9)).value(), epsilon);
  }
}

TEST(GaussianEpsilonTest, RefusesBadInputByName) {
  for (const double mu : {0.0, -1.0, kNan, kInf, 1e200}) {
    ExpectInvalidField(GaussianEpsilon(mu, 0.1).status(), "mu");
  }
  for (const double delta : {0.0, 1.0, -0.1, 1.5, kNan, kInf}) {
    ExpectInvalidField(GaussianEpsilon(1, delta).status(), "delta");
  }
}

TEST(GaussianMuTest, MeetsItsEpsilonAndLosesAlmostNothing) {
  for (const Parameters& p : ParameterGrid()) {
    const double mu = GaussianMu(p.epsilon, p.delta).value();
    EXPECT_LE(GaussianEpsilon(mu, p.delta).value(), p.epsilon) << p.epsilon << " " << p.delta;
    EXPECT_LE(GaussianDelta(mu, p.epsilon).value(), p.delta) << p.epsilon << " " << p.delta;
    EXPECT_GT(GaussianDelta(mu * (1 + 1e-11), p.epsilon).value(), p.delta) << p.epsilon << " " << p.delta;
  }
}

TEST(GaussianMuTest, AgreesWithTheClosedFormAtEpsilonZero) {
  // delta(0) = 2 Phi(mu/2) - 1 = erf(mu / sqrt(8)).
  for (const double mu : {1e-9, 1e-3, 0.5, 2.0, 5.0}) {
    const double delta = std::erf(mu / std::sqrt(8.0));
    ExpectRelative(GaussianMu(0, delta).value(), mu, 1e-12);
  }
}

TEST(GaussianMuTest, AgreesWithTheGoldenCalibration) {
  const nlohmann::json golden = GoldenFile();
  if (golden.is_null()) {
    // The first rows of it.
    ExpectRelative(1 / GaussianMu(0.5, 1e-5).value(), 7.0318266755825025, 1e-9);
    ExpectRelative(1 / GaussianMu(1, 1e-5).value(), 3.730631634815945, 1e-9);
    return;
  }
  int compared = 0;
  for (const nlohmann::json& row : golden.at("e_calibration")) {
    if (row.value("method", "") != "exact analytic Gaussian") {
      continue;
    }
    const double mu = GaussianMu(row.at("eps").get<double>(), row.at("delta").get<double>()).value();
    const double sigma = std::sqrt(row.at("T").get<double>()) / mu;
    ExpectRelative(sigma, row.at("sigma").get<double>(), row.at("tol_sigma_rel").get<double>());
    ++compared;
  }
  EXPECT_GE(compared, 9);
}

TEST(GaussianMuTest, RefusesBadInputByName) {
  for (const double epsilon : {-1.0, -1e-300, kNan, kInf}) {
    ExpectInvalidField(GaussianMu(epsilon, 0.1).status(), "epsilon");
  }
  for (const double delta : {0.0, 1.0, -0.1, kNan}) {
    ExpectInvalidField(GaussianMu(1, delta).status(), "delta");
  }
}

}  // namespace
}  // namespace dpar
